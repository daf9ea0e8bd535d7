use std::collections::HashMap;

use super::*;
use crate::sync::now;

/// Brokers that answer when the test says so.
#[derive(Default)]
struct Brokers {
    of_topic: HashMap<&'static str, Vec<&'static str>>,
    asked: Mutex<Vec<(String, Answered)>>,
}

impl fmt::Debug for Brokers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Brokers")
    }
}

impl MemberLists for Brokers {
    fn brokers_of(&self, topic: &str, _turn: usize) -> Vec<Arc<str>> {
        let brokers = self.of_topic.get(topic).into_iter().flatten();
        brokers.map(|addr| Arc::from(*addr)).collect()
    }

    fn ask(&self, addr: &str, group: &str, answered: Answered) {
        self.asked
            .lock()
            .push((format!("{addr} {group}"), answered));
    }
}

struct Test {
    brokers: Arc<Brokers>,
    questions: MemberQuestions,
    now: Instant,
    /// What the consumer says of answers that are not confirmed.
    verdict: Verdict,
}

impl Test {
    fn new(topics: &[(&'static str, &[&'static str])]) -> Self {
        let brokers = Arc::new(Brokers {
            of_topic: topics
                .iter()
                .map(|(topic, addrs)| (*topic, addrs.to_vec()))
                .collect(),
            ..Brokers::default()
        });
        let source: Arc<dyn MemberLists> = Arc::clone(&brokers) as _;
        Self {
            brokers,
            questions: MemberQuestions::new(source, Arc::new(Wakeup::new())),
            now: now(),
            verdict: Verdict::Done,
        }
    }

    fn ask(&mut self, group: &str, topics: &[&str]) {
        let topics = topics.iter().map(|topic| (*topic).to_owned()).collect();
        self.questions.ask(group, topics, &None, self.now);
    }

    /// Who is asked and has not answered.
    fn asked(&self) -> Vec<String> {
        let asked = self.brokers.asked.lock();
        asked.iter().map(|(of, _)| of.clone()).collect()
    }

    fn answer(&self, of: &str, answer: Result<Vec<String>>) {
        let mut asked = self.brokers.asked.lock();
        let position = asked.iter().position(|(asked, _)| asked == of).unwrap();
        let (_, answered) = asked.remove(position);
        drop(asked);
        answered(answer);
    }

    /// What the consumers are told, a line each.
    fn told(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        let verdict = self.verdict;
        self.questions
            .work_off(self.now, &mut |group, topic, outcome| match outcome {
                Ok(members) => {
                    let confirmed = if members.confirmed { "!" } else { "" };
                    told.push(format!(
                        "{group} {topic}: {}{confirmed}",
                        members.cid_all.join(",")
                    ));
                    if members.confirmed {
                        Verdict::Done
                    } else {
                        verdict
                    }
                }
                Err(_) => {
                    told.push(format!("{group} {topic}: nothing"));
                    Verdict::Done
                }
            });
        told
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
    }
}

fn members(cid_all: &str) -> Result<Vec<String>> {
    Ok(cid_all.split_terminator(',').map(str::to_owned).collect())
}

fn failure() -> Result<Vec<String>> {
    Err(other_than_asked("it is down".to_owned()))
}

const NONE: [&str; 0] = [];

#[test]
fn groups_and_topics_are_asked_for_side_by_side_and_a_broker_once_a_group() {
    let mut test = Test::new(&[("s", &["a"]), ("t", &["a"]), ("u", &["b"])]);
    test.ask("g", &["s", "t", "u"]);
    test.ask("h", &["t"]);
    assert_eq!(test.asked(), ["a g", "b g", "a h"]);
    // Answers count in the order in which they come, whoever else is silent.
    test.answer("a h", members("x"));
    assert_eq!(test.told(), ["h t: x"]);
    test.answer("a g", members("x,y"));
    assert_eq!(test.told(), ["g s: x,y", "g t: x,y"]);
    test.answer("b g", members("z"));
    assert_eq!(test.told(), ["g u: z"]);
    assert_eq!(test.told(), NONE);
}

#[test]
fn a_broker_that_fails_is_followed_by_the_next_at_once_and_asked_last_for_a_while() {
    let mut test = Test::new(&[("t", &["a", "b", "c"])]);
    test.ask("g", &["t"]);
    test.answer("a g", failure());
    assert_eq!(test.told(), NONE);
    assert_eq!(test.asked(), ["b g"], "without a pause");
    test.answer("b g", members(""));
    assert_eq!(test.told(), NONE, "a broker without members knows nothing");
    test.answer("c g", members("x"));
    assert_eq!(test.told(), ["g t: x"]);

    test.ask("h", &["t"]);
    assert_eq!(test.asked(), ["c h"], "of any group");
    test.answer("c h", members("x"));
    test.told();
    test.pass(ASKED_LAST_FOR);
    test.ask("g", &["t"]);
    assert_eq!(test.asked(), ["a g"]);
}

#[test]
fn a_silent_broker_is_joined_by_the_next_and_the_first_answer_counts() {
    let mut test = Test::new(&[("t", &["a", "b"])]);
    test.ask("g", &["t"]);
    assert_eq!(test.questions.next(), Some(test.now + ASK_ANOTHER_AFTER));
    test.pass(ASK_ANOTHER_AFTER - Duration::from_millis(1));
    test.told();
    assert_eq!(test.asked(), ["a g"]);
    test.pass(Duration::from_millis(1));
    test.told();
    assert_eq!(test.asked(), ["a g", "b g"]);
    assert_eq!(test.questions.next(), None, "there is nobody else to ask");
    test.answer("b g", members("x"));
    assert_eq!(test.told(), ["g t: x"]);
    test.answer("a g", members("y"));
    assert_eq!(test.told(), NONE, "it comes too late");

    // It has answered, so it is as good as any other.
    test.ask("g", &["t"]);
    assert_eq!(test.asked(), ["a g"]);
    test.pass(ASK_ANOTHER_AFTER);
    test.told();
    test.answer("b g", members("x"));
    test.told();
    test.ask("g", &["t"]);
    assert_eq!(test.asked(), ["a g", "b g"], "a is silent still");
}

#[test]
fn where_nobody_answers_the_topic_ends_in_vain() {
    let mut test = Test::new(&[("t", &["a", "b"])]);
    test.ask("g", &["t", "without brokers"]);
    assert_eq!(test.told(), ["g without brokers: nothing"]);
    test.answer("a g", failure());
    assert_eq!(test.told(), NONE);
    test.answer("b g", failure());
    assert_eq!(test.told(), ["g t: nothing"]);
    test.ask("g", &["t"]);
    assert_eq!(test.asked(), ["a g"], "one of two that failed");
}

#[test]
fn what_is_asked_for_meanwhile_is_asked_for_once_more() {
    let mut test = Test::new(&[("t", &["a"]), ("u", &["b"])]);
    test.ask("g", &["t", "u"]);
    test.ask("g", &["t", "u"]);
    test.ask("g", &["t", "u"]);
    assert_eq!(test.asked(), ["a g", "b g"]);
    test.answer("a g", members("x"));
    assert_eq!(test.told(), ["g t: x"]);
    assert_eq!(test.asked(), ["b g", "a g"], "b holds up nobody else");
    test.answer("a g", members("x,y"));
    assert_eq!(test.told(), ["g t: x,y"]);
    assert_eq!(test.asked(), ["b g"], "once, not twice");
}

#[test]
fn a_broker_that_told_of_a_change_is_asked_first_even_if_it_failed_before() {
    let mut test = Test::new(&[("t", &["a", "b", "c"])]);
    let first: AskFirst = Some("b".into());
    let topics = || vec!["t".to_owned()];
    test.questions.ask("g", topics(), &first, test.now);
    test.answer("b g", failure());
    test.told();
    assert_eq!(test.asked(), ["a g"]);
    // Also when the topic is being asked for.
    test.questions.ask("g", topics(), &first, test.now);
    test.answer("a g", members("x"));
    test.told();
    assert_eq!(test.asked(), ["b g"]);
    test.questions
        .ask("h", topics(), &Some("elsewhere".into()), test.now);
    assert_eq!(test.asked(), ["b g", "a h"]);
}

#[test]
fn a_second_broker_confirms_or_contradicts() {
    let mut test = Test::new(&[("t", &["a", "b", "c"])]);
    test.verdict = Verdict::AskAnother;
    test.ask("g", &["t"]);
    test.answer("a g", members("x,y"));
    assert_eq!(test.told(), ["g t: x,y"]);
    assert_eq!(test.asked(), ["b g"], "without a pause");
    test.answer("b g", members("y,x"));
    assert_eq!(test.told(), ["g t: y,x!"]);

    test.ask("g", &["t"]);
    test.answer("a g", members("x,y"));
    test.told();
    test.answer("b g", members("x"));
    assert_eq!(test.told(), ["g t: nothing"]);
    assert_eq!(test.asked(), NONE);
}

#[test]
fn brokers_that_do_not_answer_contradict_nobody() {
    let mut test = Test::new(&[("t", &["a", "b"]), ("u", &["c"])]);
    test.verdict = Verdict::AskAnother;
    test.ask("g", &["t", "u"]);
    test.answer("a g", members("x"));
    test.answer("c g", members("y"));
    assert_eq!(test.told(), ["g t: x", "g u: y", "g u: y!"]);
    test.answer("b g", failure());
    assert_eq!(test.told(), ["g t: x!"]);
}

#[test]
fn the_answers_for_a_group_that_was_forgotten_are_nobodys() {
    let mut test = Test::new(&[("t", &["a"])]);
    test.ask("g", &["t"]);
    test.questions.forget("g");
    test.ask("g", &["t"]);
    test.answer("a g", members("old"));
    assert_eq!(test.told(), NONE);
    test.answer("a g", members("new"));
    assert_eq!(test.told(), ["g t: new"]);
}

#[test]
fn topics_that_are_asked_for_again_meanwhile_share_a_question_again() {
    let mut test = Test::new(&[("s", &["a"]), ("t", &["a"]), ("u", &["a"])]);
    test.ask("g", &["s", "t", "u"]);
    test.ask("g", &["s", "t", "u"]);
    test.answer("a g", members("x"));
    assert_eq!(test.told(), ["g s: x", "g t: x", "g u: x"]);
    assert_eq!(test.asked(), ["a g"], "one question and not three");
    test.answer("a g", members("x,y"));
    assert_eq!(test.told(), ["g s: x,y", "g t: x,y", "g u: x,y"]);
    assert_eq!(test.asked(), NONE);
}
