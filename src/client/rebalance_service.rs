//! The thread that keeps each group balanced.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use log::Level;

use super::group_registry::ConsumerTable;
use super::member_lists::{AskFirst, MemberLists, MemberQuestions, Outcome, Verdict};
use super::rebalance_pace::Pace;
use super::{MQConsumerInner, TopicBalance};
use crate::service::{ServiceContext, ServiceThread, catch_panic};
use crate::sync::{Arc, Deadline, Mutex, add, now};

/// Looks at groups: at each when it is due, and when somebody asks for it.
///
/// The thread waits for nobody. It asks brokers who is in the groups that are due, all side by side,
/// and works on a topic when the answer for it is there. So a silent broker delays no group but
/// those that have nobody else to ask, and of those only the topics concerned, which are looked at
/// again after the short pause. As there is one thread, a group is worked on once at a time.
///
/// # Java
/// `RebalanceService`, where one thread waits for one answer after the other, with one pace for the
/// process.
#[derive(Debug)]
pub(crate) struct RebalanceService {
    consumers: Arc<ConsumerTable>,
    member_lists: Arc<dyn MemberLists>,
    wait_interval: Duration,
    min_interval: Duration,
    /// Groups that somebody asked to look at, with the broker that told of a change, if one did.
    /// Taken by the thread, so that a request made while the group is being looked at leads to one
    /// more look.
    requested: Mutex<BTreeMap<String, AskFirst>>,
}

type Consumers = BTreeMap<String, Arc<dyn MQConsumerInner>>;
type Paces = BTreeMap<String, Pace>;

impl RebalanceService {
    pub(super) fn new(
        consumers: Arc<ConsumerTable>,
        member_lists: Arc<dyn MemberLists>,
        wait_interval: Duration,
        min_interval: Duration,
    ) -> Self {
        Self {
            consumers,
            member_lists,
            wait_interval,
            min_interval,
            requested: Mutex::new(BTreeMap::new()),
        }
    }

    /// Asks for a look at one group, or at all when it is not one of this client. The thread must be
    /// woken afterwards.
    pub(crate) fn request(&self, group: &str) {
        self.request_for(group, None);
    }

    /// The same when a broker has told of a change.
    pub(crate) fn request_told_by(&self, group: &str, addr: &str) {
        self.request_for(group, Some(addr.into()));
    }

    pub(crate) fn request_all(&self) {
        let groups = self.consumers.groups();
        let mut requested = self.requested.lock();
        for group in groups {
            requested.entry(group).or_default();
        }
    }

    fn request_for(&self, group: &str, told_by: AskFirst) {
        if self.consumers.get(group).is_none() {
            return self.request_all();
        }
        let mut requested = self.requested.lock();
        let ask_first = requested.entry(group.to_owned()).or_default();
        *ask_first = told_by.or_else(|| ask_first.take());
    }

    /// Begins to look at the groups that it is time for.
    fn begin_looks(
        &self,
        consumers: &Consumers,
        paces: &mut Paces,
        questions: &mut MemberQuestions,
    ) {
        let mut requested = std::mem::take(&mut *self.requested.lock());
        paces.retain(|group, _| consumers.contains_key(group));
        questions.retain_groups(|group| consumers.contains_key(group));
        for (group, consumer) in consumers {
            // A member that was stopped and started anew begins with a full bucket.
            let member = Arc::as_ptr(consumer).cast::<()>() as usize;
            let new_pace = || Pace::new(member, now(), self.wait_interval);
            let pace = paces.entry(group.clone()).or_insert_with(new_pace);
            if pace.member != member {
                *pace = new_pace();
                questions.forget(group);
            }
            if let Some(told_by) = requested.remove(group) {
                pace.request(told_by);
            }
            let is_ready = consumer.is_ready();
            let begun = is_ready.then(|| pace.begin(now(), self.min_interval));
            let Some(ask_first) = begun.flatten() else {
                continue;
            };
            let begun = catch_panic(|| Arc::clone(consumer).begin_rebalance());
            pace.due_at(add(now(), self.wait_interval));
            match begun {
                Ok(topics) => questions.ask(group, topics, &ask_first, now()),
                Err(reason) => {
                    log::error!("rebalancing group {group} panicked: {reason}");
                    pace.due_by(add(now(), self.min_interval));
                }
            }
        }
    }

    fn rebalance_by_topic(
        &self,
        consumers: &Consumers,
        paces: &mut Paces,
        (group, topic): (&str, &str),
        outcome: Outcome<'_>,
    ) -> Verdict {
        let (Some(consumer), Some(pace)) = (consumers.get(group), paces.get_mut(group)) else {
            return Verdict::Done;
        };
        let level = if pace.is_first_failure(topic, outcome.is_err()) {
            Level::Warn
        } else {
            Level::Info
        };
        let decided = outcome.map(|members| {
            let consumer = Arc::clone(consumer);
            catch_panic(|| consumer.rebalance_by_topic(topic, members)).unwrap_or_else(|reason| {
                log::error!("rebalancing group {group} panicked at topic {topic}: {reason}");
                TopicBalance::Unbalanced
            })
        });
        match decided {
            Ok(TopicBalance::Balanced) => return Verdict::Done,
            Ok(TopicBalance::Changed) => {
                pace.has_changed(now(), self.min_interval);
                return Verdict::Done;
            }
            Ok(TopicBalance::Unconfirmed) => return Verdict::AskAnother,
            Ok(TopicBalance::Unbalanced) => {}
            // Brokers that are down for hours are told of once.
            Err(error) => log::log!(
                level,
                "group {group}, topic {topic}: its queues stay as they are, tried again soon: \
                 {error}"
            ),
        }
        pace.due_by(add(now(), self.min_interval));
        Verdict::Done
    }
}

impl ServiceThread for RebalanceService {
    fn service_name(&self) -> String {
        "RebalanceService".to_owned()
    }

    fn run(&self, context: &ServiceContext) {
        let mut paces = Paces::new();
        let mut questions =
            MemberQuestions::new(Arc::clone(&self.member_lists), context.wakeup_of_thread());
        let mut next = add(now(), self.wait_interval);
        loop {
            context.wait_until(Deadline::at(next));
            if context.is_stopped() {
                return;
            }
            let consumers: Consumers = self.consumers.snapshot().into_iter().collect();
            self.begin_looks(&consumers, &mut paces, &mut questions);
            let mut looked_at = BTreeSet::new();
            questions.work_off(now(), &mut |group, topic, outcome| {
                if !looked_at.contains(group) {
                    looked_at.insert(group.to_owned());
                }
                self.rebalance_by_topic(&consumers, &mut paces, (group, topic), outcome)
            });
            for consumer in looked_at.iter().filter_map(|group| consumers.get(group)) {
                consumer.end_rebalance();
            }
            next = add(now(), self.wait_interval);
            for (group, pace) in &paces {
                // One that starts still has the thread woken when it is ready.
                if consumers.get(group).is_some_and(|c| c.is_ready()) {
                    next = next.min(pace.next(self.min_interval));
                }
            }
            next = questions.next().map_or(next, |at| next.min(at));
        }
    }
}
