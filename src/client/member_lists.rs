//! Who is in a group: asked of the brokers of its topics, side by side and without waiting.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::time::{Duration, Instant};

use rocketmq_protocol::body::MASTER_ID;

use super::MQClientApi;
use super::mq_consumer_inner::Members;
use super::topic_route::TopicRoutes;
use crate::error::{Error, Result, client_error_code};
use crate::sync::{Arc, Deadline, Mutex, Wakeup, add};

/// How long a broker may think about a question before the topic's next one is asked as well.
pub(super) const ASK_ANOTHER_AFTER: Duration = Duration::from_millis(200);
/// How long a broker that failed, or let the next one be asked, is asked after all others.
const ASKED_LAST_FOR: Duration = Duration::from_secs(30);

/// Where lists of members come from.
pub(super) trait MemberLists: Send + Sync + fmt::Debug {
    /// The brokers of a topic, the one to be asked first in front. `turn` is another number each
    /// time, so that not all questions go to the same one.
    fn brokers_of(&self, topic: &str, turn: usize) -> Vec<Arc<str>>;

    /// Asks a broker for the members of a group; `answered` runs once, in a bounded time, maybe
    /// before this returns.
    fn ask(&self, addr: &str, group: &str, answered: Answered);
}

pub(super) type Answered = Box<dyn FnOnce(Result<Vec<String>>) + Send>;

/// The lists as brokers give them.
#[derive(Debug)]
pub(super) struct BrokerMemberLists {
    pub(super) api: Arc<MQClientApi>,
    pub(super) routes: Arc<TopicRoutes>,
}

impl MemberLists for BrokerMemberLists {
    /// The masters from the one on whose turn it is (Java `MQClientInstance#findBrokerAddrByTopic`
    /// takes a random one and knows no second), then the replicas, which hear the same heartbeats.
    fn brokers_of(&self, topic: &str, turn: usize) -> Vec<Arc<str>> {
        let Some(route) = self.routes.route(topic) else {
            return Vec::new();
        };
        let mut brokers: Vec<_> = route.broker_datas.iter().collect();
        let first = turn % brokers.len().max(1);
        brokers.rotate_left(first);
        let of = |is_wanted: fn(i64) -> bool| {
            brokers
                .iter()
                .flat_map(|broker| &broker.broker_addrs)
                .filter(move |(id, _)| is_wanted(**id))
                .map(|(_, addr)| Arc::from(addr.as_str()))
        };
        of(|id| id == MASTER_ID)
            .chain(of(|id| id != MASTER_ID))
            .collect()
    }

    fn ask(&self, addr: &str, group: &str, answered: Answered) {
        let deadline = Deadline::after(self.api.timeout());
        self.api
            .consumer_id_list_async(addr, group, deadline, answered);
    }
}

/// What became of the question for the members of a group on a topic.
pub(super) type Outcome<'a> = Result<Members<'a>>;

/// What is to be done after a list of members was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Done,
    /// Another broker is to say the same first.
    AskAnother,
}

/// All questions of one thread that are under way.
///
/// The brokers of a topic are asked one after the other until one answers: the next one as soon as
/// the one before has failed, and side by side with it once that has been silent for
/// [`ASK_ANOTHER_AFTER`]. A broker that did so is asked last for [`ASKED_LAST_FOR`]. Topics of a
/// group that come to the same broker at the same time share a question.
///
/// A broker that has just told of a change is asked first: another may not know of it yet.
///
/// A topic that is asked for again while it is being asked for is asked for once more afterwards:
/// the answer under way may be older than what the asker wants to know about.
#[derive(Debug)]
pub(super) struct MemberQuestions {
    source: Arc<dyn MemberLists>,
    inbox: Arc<Inbox>,
    topics: BTreeMap<Key, Asking>,
    questions: HashMap<u64, Question>,
    asked_last: HashMap<Arc<str>, Instant>,
    next_number: u64,
    turn: usize,
}

/// Group and topic.
type Key = (String, String);

#[derive(Debug)]
struct Inbox {
    answers: Mutex<Vec<(u64, Result<Vec<String>>)>>,
    wakeup: Arc<Wakeup>,
}

#[derive(Debug)]
struct Question {
    addr: Arc<str>,
    group: String,
    /// The topics it was asked for, each with the number of its [`Asking`].
    topics: Vec<Asked>,
}

type Asked = (String, u64);

#[derive(Debug)]
struct Asking {
    number: u64,
    to_ask: VecDeque<Arc<str>>,
    under_way: Vec<Arc<str>>,
    /// When the next broker is asked whether or not one has answered.
    ask_another_at: Option<Instant>,
    /// An answer that another broker is to confirm, sorted.
    to_confirm: Option<Arc<[String]>>,
    last_error: Option<Error>,
    again: Option<AskFirst>,
}

/// The broker to be asked before all others, if there is one.
pub(super) type AskFirst = Option<Arc<str>>;

impl Asking {
    fn has_ended(&self) -> bool {
        self.under_way.is_empty() && self.to_ask.is_empty()
    }
}

impl MemberQuestions {
    /// `wakeup` is woken when there is an answer to work off.
    pub(super) fn new(source: Arc<dyn MemberLists>, wakeup: Arc<Wakeup>) -> Self {
        Self {
            source,
            inbox: Arc::new(Inbox {
                answers: Mutex::new(Vec::new()),
                wakeup,
            }),
            topics: BTreeMap::new(),
            questions: HashMap::new(),
            asked_last: HashMap::new(),
            next_number: 0,
            turn: 0,
        }
    }

    /// Begins to ask for the members of a group on each of these topics.
    pub(super) fn ask(
        &mut self,
        group: &str,
        topics: Vec<String>,
        ask_first: &AskFirst,
        now: Instant,
    ) {
        self.asked_last.retain(|_, until| now < *until);
        self.turn = self.turn.wrapping_add(1);
        let mut fresh = Vec::new();
        for topic in topics {
            let key = (group.to_owned(), topic);
            if let Some(asking) = self.topics.get_mut(&key) {
                asking.again = Some(ask_first.clone());
                continue;
            }
            let mut brokers = self.source.brokers_of(&key.1, self.turn);
            brokers.sort_by_key(|addr| {
                let is_first = ask_first.as_ref() == Some(addr);
                (!is_first, self.asked_last.contains_key(addr))
            });
            let asking = Asking {
                number: self.take_number(),
                to_ask: brokers.into(),
                under_way: Vec::new(),
                ask_another_at: None,
                to_confirm: None,
                last_error: None,
                again: None,
            };
            self.topics.insert(key.clone(), asking);
            fresh.push(key);
        }
        self.ask_next(fresh, now);
    }

    /// Forgets what was asked for a group.
    pub(super) fn forget(&mut self, group: &str) {
        self.topics.retain(|(of, _), _| of != group);
    }

    /// Forgets what was asked for other groups than these.
    pub(super) fn retain_groups(&mut self, is_there: impl Fn(&str) -> bool) {
        self.topics.retain(|(group, _), _| is_there(group));
    }

    /// When there is something to work off even if no answer comes.
    pub(super) fn next(&self) -> Option<Instant> {
        let next = |asking: &Asking| asking.ask_another_at;
        self.topics.values().filter_map(next).min()
    }

    /// Takes answers in, and asks on where there is none. `decide` is told of each topic that has an
    /// answer, or will have none; only with an answer does it matter what it says.
    pub(super) fn work_off(
        &mut self,
        now: Instant,
        decide: &mut dyn FnMut(&str, &str, Outcome<'_>) -> Verdict,
    ) {
        let answers = std::mem::take(&mut *self.inbox.answers.lock());
        for (number, answer) in answers {
            let Some(question) = self.questions.remove(&number) else {
                continue;
            };
            // A member that asks is a member: the broker has not heard of it, or has forgotten it.
            let answer = match answer {
                Ok(cid_all) if cid_all.is_empty() => Err(other_than_asked(format!(
                    "{} knows no member of the group",
                    question.addr
                ))),
                answer => answer.map(Arc::from),
            };
            self.take_in(&question, &answer, now, decide);
        }
        self.ask_on(now);
        self.end_in_vain(decide);
    }

    fn take_in(
        &mut self,
        question: &Question,
        answer: &Result<Arc<[String]>>,
        now: Instant,
        decide: &mut dyn FnMut(&str, &str, Outcome<'_>) -> Verdict,
    ) {
        match answer {
            Ok(_) => drop(self.asked_last.remove(&question.addr)),
            Err(_) => self.ask_last(&question.addr, now),
        }
        let mut again: BTreeMap<AskFirst, Vec<String>> = BTreeMap::new();
        for (topic, number) in &question.topics {
            let key = (question.group.clone(), topic.clone());
            let Some(asking) = self.topics.get_mut(&key).filter(|a| a.number == *number) else {
                continue;
            };
            asking.under_way.retain(|addr| *addr != question.addr);
            let cid_all = match answer {
                Ok(cid_all) => cid_all,
                Err(error) => {
                    asking.last_error = Some(error.clone());
                    asking.ask_another_at = Some(now);
                    continue;
                }
            };
            let has_decided = match &asking.to_confirm {
                None => {
                    let members = Members {
                        cid_all,
                        confirmed: false,
                    };
                    decide(&key.0, topic, Ok(members)) == Verdict::Done
                }
                Some(first) => {
                    let outcome = if *first == sorted(cid_all) {
                        Ok(Members {
                            cid_all,
                            confirmed: true,
                        })
                    } else {
                        Err(other_than_asked(format!(
                            "{} names other members than the broker asked before",
                            question.addr
                        )))
                    };
                    decide(&key.0, topic, outcome);
                    true
                }
            };
            if has_decided {
                let asking = self.topics.remove(&key);
                if let Some(ask_first) = asking.and_then(|asking| asking.again) {
                    again.entry(ask_first).or_default().push(topic.clone());
                }
            } else {
                asking.to_confirm = Some(sorted(cid_all));
                asking.ask_another_at = Some(now);
            }
        }
        // Together, so that they share a question once more.
        for (ask_first, topics) in again {
            self.ask(&question.group, topics, &ask_first, now);
        }
    }

    /// Asks the next brokers where one has failed or been silent for too long.
    fn ask_on(&mut self, now: Instant) {
        let (mut due, mut silent) = (Vec::new(), Vec::new());
        for (key, asking) in &self.topics {
            if asking.ask_another_at.is_some_and(|at| at <= now) {
                due.push(key.clone());
                silent.extend(asking.under_way.iter().cloned());
            }
        }
        for addr in silent {
            self.ask_last(&addr, now);
        }
        self.ask_next(due, now);
    }

    /// Ends what nobody is left to answer for.
    fn end_in_vain(&mut self, decide: &mut dyn FnMut(&str, &str, Outcome<'_>) -> Verdict) {
        self.topics.retain(|(group, topic), asking| {
            if !asking.has_ended() {
                return true;
            }
            let outcome = match (&asking.to_confirm, asking.last_error.take()) {
                // Whoever does not answer contradicts nobody.
                (Some(cid_all), _) => Ok(Members {
                    cid_all,
                    confirmed: true,
                }),
                (None, Some(error)) => Err(error),
                (None, None) => Err(Error::client(
                    client_error_code::NOT_FOUND_TOPIC_EXCEPTION,
                    format!("no broker of topic {topic} is known to ask for the members"),
                )),
            };
            decide(group, topic, outcome);
            false
        });
    }

    fn ask_last(&mut self, addr: &Arc<str>, now: Instant) {
        let until = add(now, ASKED_LAST_FOR);
        self.asked_last.insert(Arc::clone(addr), until);
    }

    fn ask_next(&mut self, keys: Vec<Key>, now: Instant) {
        let mut by_broker: BTreeMap<(String, Arc<str>), Vec<Asked>> = BTreeMap::new();
        for key in keys {
            let Some(asking) = self.topics.get_mut(&key) else {
                continue;
            };
            asking.ask_another_at = None;
            let Some(addr) = asking.to_ask.pop_front() else {
                continue;
            };
            asking.under_way.push(Arc::clone(&addr));
            if !asking.to_ask.is_empty() {
                asking.ask_another_at = Some(add(now, ASK_ANOTHER_AFTER));
            }
            let (group, topic) = key;
            let topics = by_broker.entry((group, addr)).or_default();
            topics.push((topic, asking.number));
        }
        for ((group, addr), topics) in by_broker {
            let number = self.take_number();
            let inbox = Arc::clone(&self.inbox);
            let answered = move |answer: Result<Vec<String>>| {
                inbox.answers.lock().push((number, answer));
                inbox.wakeup.wakeup();
            };
            let question = Question {
                addr: Arc::clone(&addr),
                group: group.clone(),
                topics,
            };
            self.questions.insert(number, question);
            self.source.ask(&addr, &group, Box::new(answered));
        }
    }

    fn take_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }
}

fn other_than_asked(reason: String) -> Error {
    Error::MQClient {
        code: None,
        reason,
        source: None,
    }
}

fn sorted(cid_all: &[String]) -> Arc<[String]> {
    let mut sorted = cid_all.to_vec();
    sorted.sort();
    sorted.into()
}

#[cfg(test)]
mod tests;
