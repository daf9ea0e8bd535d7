//! Members of a group come, go and die; each queue has one owner, the one that the strategy says.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test is outside of what loom models, and fails by panicking"
)]

mod support;

use std::collections::BTreeMap;
use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rocketmq_blocking::rebalance::{
    AllocateError, AllocateMessageQueueAveragely, AllocateMessageQueueStrategy,
};
use rocketmq_blocking::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, DefaultMQProducer,
    DefaultMQPushConsumer, DefaultMQPushConsumerBuilder, MQClientManager, Message, MessageExt,
    MessageQueue,
};
use rocketmq_embedded::{Cluster, ControlAction, ControlScope, ControlTimes};
use support::{GENEROUS, Inbox, Target, producer_at, quick, started, unique, wait_until};

const GET_CONSUMER_LIST_BY_GROUP: i32 = 38;
/// Longer than a test waits: whatever happens in time has another cause.
const NEVER: Duration = Duration::from_secs(600);
const TIMEOUT: Duration = Duration::from_secs(10);

fn builder(
    namesrv: &str,
    manager: &MQClientManager,
    group: &str,
    topic: &str,
) -> DefaultMQPushConsumerBuilder {
    quick(DefaultMQPushConsumer::builder(group))
        .client_manager(manager)
        .namesrv_addr(namesrv)
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .subscribe(topic, "*")
}

fn member(
    namesrv: &str,
    manager: &MQClientManager,
    group: &str,
    topic: &str,
    inbox: &Inbox,
) -> DefaultMQPushConsumer {
    let consumer = builder(namesrv, manager, group, topic)
        .rebalance_wait_interval(NEVER)
        .message_listener(inbox.listener())
        .build()
        .unwrap();
    consumer.start().unwrap();
    consumer
}

fn owned(consumer: &DefaultMQPushConsumer, topic: &str) -> Vec<MessageQueue> {
    let mut queues = consumer.owned_queues();
    queues.retain(|mq| mq.topic() == topic);
    queues
}

/// Whether the members own together what they should, each what the strategy gives it.
fn is_settled(members: &[&DefaultMQPushConsumer], topic: &str, queues: &[MessageQueue]) -> bool {
    let mut ids: Vec<String> = members.iter().map(|m| m.client_id().unwrap()).collect();
    ids.sort();
    members.iter().all(|member| {
        let id = member.client_id().unwrap();
        let wanted = AllocateMessageQueueAveragely
            .allocate("g", &id, queues, &ids)
            .unwrap();
        owned(member, topic) == wanted
    })
}

#[track_caller]
fn wait_until_settled(members: &[&DefaultMQPushConsumer], topic: &str, queues: &[MessageQueue]) {
    wait_until("each member owns its share", || {
        is_settled(members, topic, queues)
    });
    let mut all: Vec<_> = members.iter().flat_map(|m| owned(m, topic)).collect();
    all.sort();
    assert_eq!(all, queues, "each queue has one owner");
}

/// The queues of a topic, sorted, as a producer finds them.
fn queues_of(namesrv: &str, topic: &str) -> Vec<MessageQueue> {
    let producer = producer(namesrv);
    let mut queues = producer.fetch_publish_message_queues(topic).unwrap();
    queues.sort();
    queues
}

fn producer(namesrv: &str) -> DefaultMQProducer {
    started(producer_at(namesrv))
}

#[test]
fn members_come_and_go() {
    let target = Target::start(2);
    let (topic, group) = (unique("T"), unique("g"));
    target.create_topic(&topic, 4);
    let queues = queues_of(target.namesrv(), &topic);
    let manager = MQClientManager::new();
    let inbox = Inbox::new();
    let mut members: Vec<DefaultMQPushConsumer> = Vec::new();
    let check = |members: &[DefaultMQPushConsumer]| {
        let members: Vec<_> = members.iter().collect();
        wait_until_settled(&members, &topic, &queues);
    };
    for count in 1..=5 {
        members.push(member(target.namesrv(), &manager, &group, &topic, &inbox));
        check(&members);
        assert_eq!(manager.instance_count(), count, "one client id a member");
    }
    // One that is neither the first nor the last in the order of ids, one dropped, then the rest.
    members.remove(2).shutdown(TIMEOUT);
    check(&members);
    drop(members.remove(0));
    check(&members);
    members.push(member(target.namesrv(), &manager, &group, &topic, &inbox));
    check(&members);
    while members.len() > 1 {
        members.remove(0).shutdown(TIMEOUT);
        check(&members);
    }
}

#[test]
fn more_members_than_queues_leave_some_idle() {
    let target = Target::start(1);
    let (topic, group) = (unique("T"), unique("g"));
    target.create_topic(&topic, 2);
    let queues = queues_of(target.namesrv(), &topic);
    let manager = MQClientManager::new();
    let inbox = Inbox::new();
    let members: Vec<_> = (0..4)
        .map(|_| member(target.namesrv(), &manager, &group, &topic, &inbox))
        .collect();
    wait_until_settled(&members.iter().collect::<Vec<_>>(), &topic, &queues);
    assert_eq!(
        members
            .iter()
            .filter(|m| owned(m, &topic).is_empty())
            .count(),
        queues.len().max(2)
    );
}

#[test]
fn nothing_is_lost_or_left_behind_when_queues_change_hands() {
    let target = Target::start(2);
    let (topic, group) = (unique("T"), unique("g"));
    target.create_topic(&topic, 4);
    let queues = queues_of(target.namesrv(), &topic);
    let manager = MQClientManager::new();
    let inbox = Inbox::new();
    let producer = producer(target.namesrv());
    let mut sent = 0;
    let mut send = |count: usize| {
        for _ in 0..count {
            producer
                .send(&Message::new(topic.as_str(), format!("m{sent}")))
                .unwrap();
            sent += 1;
        }
        sent
    };
    let first = member(target.namesrv(), &manager, &group, &topic, &inbox);
    send(200);
    let second = member(target.namesrv(), &manager, &group, &topic, &inbox);
    send(200);
    wait_until_settled(&[&first, &second], &topic, &queues);
    let third = member(target.namesrv(), &manager, &group, &topic, &inbox);
    send(200);
    first.shutdown(TIMEOUT);
    let total = send(200);
    wait_until_settled(&[&second, &third], &topic, &queues);
    inbox.wait_for_bodies(total);
    // Two that own all queues in the end have all offsets.
    second.shutdown(TIMEOUT);
    third.shutdown(TIMEOUT);
    if let Some(cluster) = target.embedded() {
        for mq in &queues {
            let end = cluster.max_offset(mq);
            assert_eq!(cluster.committed_offset(&group, mq), Some(end), "{mq}");
        }
    }
}

#[test]
fn a_queue_that_changes_hands_takes_its_offset_along() {
    let cluster = Cluster::builder().brokers(2).start().unwrap();
    cluster.create_topic("T", 4).unwrap();
    let namesrv = cluster.namesrv_addr();
    let queues = queues_of(&namesrv, "T");
    let manager = MQClientManager::new();
    // Nothing but the change of hands saves offsets, and no pull does: they wait for messages.
    let member = |inbox: &Inbox| {
        let consumer = builder(&namesrv, &manager, "g", "T")
            .persist_consumer_offset_interval(NEVER)
            .rebalance_wait_interval(NEVER)
            .message_listener(inbox.listener())
            .build()
            .unwrap();
        consumer.start().unwrap();
        consumer
    };
    let (received, second_inbox) = (Inbox::new(), Inbox::new());
    let first = member(&received);
    wait_until_settled(&[&first], "T", &queues);
    let producer = producer(&namesrv);
    for n in 0..8 {
        producer.send(&Message::new("T", format!("m{n}"))).unwrap();
    }
    received.wait_for_bodies(8);
    let second = member(&second_inbox);
    wait_until_settled(&[&first, &second], "T", &queues);
    for mq in owned(&second, "T") {
        wait_until("its offset was saved by the former owner", || {
            cluster.committed_offset("g", &mq) == Some(1)
        });
    }
    for n in 0..8 {
        producer.send(&Message::new("T", format!("n{n}"))).unwrap();
    }
    second_inbox.wait_for_bodies(4);
    let bodies = second_inbox.bodies();
    assert!(
        bodies.keys().all(|body| body.starts_with('n')),
        "{bodies:?}"
    );
}

/// What a listener says of messages whose queue has gone to another member does not count: the
/// other one receives them.
#[test]
fn a_result_that_comes_after_the_queue_has_gone_is_ignored() {
    const CONSUMER_SEND_MSG_BACK: i32 = 36;
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("T", 2).unwrap();
    let namesrv = cluster.namesrv_addr();
    let queues = queues_of(&namesrv, "T");
    let manager = MQClientManager::new();
    let sent_back = cluster.control(
        CONSUMER_SEND_MSG_BACK,
        ControlAction::Delay(Duration::ZERO),
        ControlTimes::UntilLifted,
    );
    let (entered, entries) = std::sync::mpsc::channel();
    let (release, gate) = std::sync::mpsc::channel::<()>();
    let (entered, gate) = (Mutex::new(entered), Mutex::new(gate));
    let first = builder(&namesrv, &manager, "g", "T")
        .instance_name("a")
        .message_listener(
            move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
                if messages[0].queue_id() == 0 {
                    return ConsumeConcurrentlyStatus::ConsumeSuccess;
                }
                let _ = entered.lock().unwrap().send(());
                let _ = gate.lock().unwrap().recv_timeout(GENEROUS);
                ConsumeConcurrentlyStatus::ReconsumeLater
            },
        )
        .build()
        .unwrap();
    first.start().unwrap();
    wait_until_settled(&[&first], "T", &queues);
    let producer = producer(&namesrv);
    for n in 0..2 {
        producer.send(&Message::new("T", format!("m{n}"))).unwrap();
    }
    entries.recv_timeout(GENEROUS).unwrap();
    // The second one is behind the first in the order of ids, so queue 1 goes to it.
    let inbox = Inbox::new();
    let second = builder(&namesrv, &manager, "g", "T")
        .instance_name("b")
        .message_listener(inbox.listener())
        .build()
        .unwrap();
    second.start().unwrap();
    wait_until_settled(&[&first, &second], "T", &queues);
    assert_eq!(owned(&second, "T"), [queues[1].clone()]);
    inbox.wait_for(1);
    release.send(()).unwrap();
    assert!(
        first.shutdown(TIMEOUT).threads_joined,
        "the listener has returned"
    );
    assert_eq!(sent_back.hits(), 0);
    wait_until_settled(&[&second], "T", &queues);
    second.shutdown(TIMEOUT);
    assert_eq!(inbox.len(), 1);
    assert_eq!(cluster.committed_offset("g", &queues[1]), Some(1));
}

#[test]
fn members_that_come_and_go_all_the_time_lose_nothing() {
    let cluster = Cluster::builder().brokers(2).start().unwrap();
    cluster.create_topic("T", 4).unwrap();
    let namesrv = cluster.namesrv_addr();
    let queues = queues_of(&namesrv, "T");
    let manager = MQClientManager::new();
    let inbox = Inbox::new();
    let producer = producer(&namesrv);
    let stays = member(&namesrv, &manager, "g", "T", &inbox);
    let mut sent = 0;
    for round in 0_u32..24 {
        let guests: Vec<_> = (0..=round % 3)
            .map(|_| member(&namesrv, &manager, "g", "T", &inbox))
            .collect();
        for _ in 0..10 {
            producer
                .send(&Message::new("T", format!("m{sent}")))
                .unwrap();
            sent += 1;
        }
        // Some leave at once, some in the middle of their work, in both ways.
        for (number, guest) in (0..).zip(guests) {
            if (round + number) % 4 == 0 {
                inbox.wait_for_bodies(sent);
            }
            if (round + number) % 2 == 0 {
                let report = guest.shutdown(TIMEOUT);
                assert!(report.threads_joined && report.abandoned == 0, "{report:?}");
            }
        }
    }
    inbox.wait_for_bodies(sent);
    wait_until_settled(&[&stays], "T", &queues);
    wait_until("all offsets are those of the ends", || {
        queues
            .iter()
            .all(|mq| cluster.committed_offset("g", mq).unwrap_or(0) == cluster.max_offset(mq))
    });
    assert_eq!(manager.instance_count(), 1);
}

/// A change of a member's queues: when, and how many it has then.
type Change = (Instant, usize);

fn watched(
    builder: DefaultMQPushConsumerBuilder,
    topic: &str,
) -> (DefaultMQPushConsumer, Arc<Mutex<Vec<Change>>>) {
    let changes: Arc<Mutex<Vec<Change>>> = Arc::default();
    let (topic, noted) = (topic.to_owned(), Arc::clone(&changes));
    let consumer = builder
        .message_queue_listener(move |of: &str, _: &[MessageQueue], mine: &[MessageQueue]| {
            if of == topic {
                noted.lock().unwrap().push((Instant::now(), mine.len()));
            }
        })
        .message_listener(Inbox::new().listener())
        .build()
        .unwrap();
    consumer.start().unwrap();
    (consumer, changes)
}

#[test]
fn without_notes_the_old_owner_finds_out_in_its_next_round() {
    const PERIOD: Duration = Duration::from_secs(3);
    let cluster = Cluster::builder()
        .brokers(2)
        .notify_consumer_ids_changed(false)
        .start()
        .unwrap();
    cluster.create_topic("T", 4).unwrap();
    let namesrv = cluster.namesrv_addr();
    let queues = queues_of(&namesrv, "T");
    let manager = MQClientManager::new();
    let old = builder(&namesrv, &manager, "g", "T").rebalance_wait_interval(PERIOD);
    let (old, changes) = watched(old, "T");
    wait_until_settled(&[&old], "T", &queues);

    // The next question for the members is that of a periodic round, from which the period counts.
    let asked = cluster.control(
        GET_CONSUMER_LIST_BY_GROUP,
        ControlAction::Delay(Duration::ZERO),
        ControlTimes::UntilLifted,
    );
    assert!(asked.wait_for_hits(1, GENEROUS));
    let round = Instant::now();
    let joined = member(&namesrv, &manager, "g", "T", &Inbox::new());
    wait_until("the new member has taken its share", || {
        owned(&joined, "T").len() == 4
    });
    assert!(
        round.elapsed() < PERIOD,
        "this test was held up for too long to say anything"
    );
    assert_eq!(owned(&old, "T").len(), 8, "nobody has told the old owner");

    wait_until_settled(&[&old, &joined], "T", &queues);
    // The listener is called once the queues are given up.
    let last = || *changes.lock().unwrap().last().unwrap();
    wait_until("the old owner is told", || last().1 == 4);
    let (at, _) = last();
    let after = at.duration_since(round);
    assert!(
        after > PERIOD * 9 / 10,
        "{after:?} after its round, {PERIOD:?} is the period"
    );
    assert_eq!(cluster.notes_sent("g"), 0);
}

#[test]
fn with_notes_it_finds_out_at_once() {
    let cluster = Cluster::builder().brokers(2).start().unwrap();
    cluster.create_topic("T", 4).unwrap();
    let namesrv = cluster.namesrv_addr();
    let queues = queues_of(&namesrv, "T");
    let manager = MQClientManager::new();
    let old = builder(&namesrv, &manager, "g", "T").rebalance_wait_interval(NEVER);
    let (old, changes) = watched(old, "T");
    wait_until_settled(&[&old], "T", &queues);

    // Without notes the join is not seen: no other wake-up does it.
    cluster.set_notify_consumer_ids_changed(false);
    let unseen = member(&namesrv, &manager, "g", "T", &Inbox::new());
    wait_until("the new member has taken its share", || {
        owned(&unseen, "T").len() == 4
    });
    let before = changes.lock().unwrap().len();
    assert_eq!(owned(&old, "T").len(), 8);
    unseen.shutdown(TIMEOUT);
    assert_eq!(changes.lock().unwrap().len(), before);

    cluster.set_notify_consumer_ids_changed(true);
    let notes = cluster.notes_sent("g");
    let joined = member(&namesrv, &manager, "g", "T", &Inbox::new());
    wait_until_settled(&[&old, &joined], "T", &queues);
    assert!(cluster.notes_sent("g") > notes);
    let notes = cluster.notes_sent("g");
    joined.shutdown(TIMEOUT);
    wait_until_settled(&[&old], "T", &queues);
    assert!(
        cluster.notes_sent("g") > notes,
        "a member that leaves is noted too"
    );
}

#[test]
fn a_member_that_is_killed_loses_its_queues() {
    let target = Target::start(2);
    let (topic, group) = (unique("T"), unique("g"));
    target.create_topic(&topic, 4);
    let queues = queues_of(target.namesrv(), &topic);
    let manager = MQClientManager::new();
    let inbox = Inbox::new();
    let survivor = member(target.namesrv(), &manager, &group, &topic, &inbox);
    wait_until_settled(&[&survivor], &topic, &queues);

    let mut other = ChildMember::start(target.namesrv(), &group, &topic);
    let line = other.wait_for_line("owned ");
    let theirs = line
        .trim_start_matches("owned ")
        .trim()
        .parse::<usize>()
        .unwrap();
    assert!(theirs > 0);
    wait_until("the survivor has given queues up", || {
        owned(&survivor, &topic).len() + theirs == queues.len()
    });
    let producer = producer(target.namesrv());
    other.child.kill().unwrap();
    other.child.wait().unwrap();
    wait_until_settled(&[&survivor], &topic, &queues);
    for n in 0..queues.len() {
        producer
            .send(&Message::new(topic.as_str(), format!("m{n}")))
            .unwrap();
    }
    inbox.wait_for_bodies(queues.len());
}

const CHILD: &str = "ROCKETMQ_TEST_CHILD_MEMBER";

/// A member of the group in a process of its own: this test binary with one test chosen.
struct ChildMember {
    child: Child,
    lines: std::sync::mpsc::Receiver<String>,
}

impl ChildMember {
    fn start(namesrv: &str, group: &str, topic: &str) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "the_child_member", "--ignored", "--nocapture"])
            .env(CHILD, format!("{namesrv} {group} {topic}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self { child, lines }
    }

    fn wait_for_line(&self, start: &str) -> String {
        loop {
            let line = self
                .lines
                .recv_timeout(GENEROUS)
                .expect("the child says what it owns");
            if line.starts_with(start) {
                return line;
            }
        }
    }
}

impl Drop for ChildMember {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "run by another test, in a process of its own"]
fn the_child_member() {
    let Ok(words) = env::var(CHILD) else {
        return;
    };
    let words: Vec<&str> = words.split(' ').collect();
    let manager = MQClientManager::new();
    let consumer = member(words[0], &manager, words[1], words[2], &Inbox::new());
    let all = queues_of(words[0], words[2]).len();
    let mut mine = 0;
    wait_until("the queues are shared", || {
        mine = owned(&consumer, words[2]).len();
        mine > 0 && mine < all
    });
    println!("\nowned {mine}");
    // Until it is killed, or its parent dies.
    let _ = std::io::stdin().read_line(&mut String::new());
}

#[test]
fn a_topic_that_grows_is_shared_anew() {
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("T", 2).unwrap();
    let manager = MQClientManager::new();
    let inbox = Inbox::new();
    let consumers = [(); 2].map(|()| {
        let consumer = builder(&cluster.namesrv_addr(), &manager, "g", "T")
            .rebalance_wait_interval(NEVER)
            .poll_name_server_interval(Duration::from_millis(200))
            .message_listener(inbox.listener())
            .build()
            .unwrap();
        consumer.start().unwrap();
        consumer
    });
    let members: Vec<_> = consumers.iter().collect();
    wait_until_settled(&members, "T", &queues_of(&cluster.namesrv_addr(), "T"));
    cluster.create_topic("T", 6).unwrap();
    wait_until_settled(&members, "T", &queues_of(&cluster.namesrv_addr(), "T"));
}

/// A listener that hears of both kinds of topics hears of the retry topic as well.
#[test]
fn the_queue_listener_hears_what_is_owned() {
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("T", 3).unwrap();
    let manager = MQClientManager::new();
    let heard: Arc<Mutex<BTreeMap<String, (usize, usize)>>> = Arc::default();
    let noted = Arc::clone(&heard);
    let consumer = builder(&cluster.namesrv_addr(), &manager, "g", "T")
        .message_listener(Inbox::new().listener())
        .message_queue_listener(
            move |topic: &str, all: &[MessageQueue], mine: &[MessageQueue]| {
                noted
                    .lock()
                    .unwrap()
                    .insert(topic.to_owned(), (all.len(), mine.len()));
            },
        )
        .build()
        .unwrap();
    consumer.start().unwrap();
    wait_until("both topics are heard of", || {
        let heard = heard.lock().unwrap();
        heard.get("T") == Some(&(3, 3)) && heard.get("%RETRY%g") == Some(&(1, 1))
    });
}

fn on(broker: &str) -> ControlScope {
    ControlScope::Broker(broker.to_owned())
}

/// Questions for members that get no answer are given up after 20 s here, and there are ten groups
/// that ask them: if anybody had to wait for one of them, the test would not end in time.
#[test]
fn a_silent_broker_delays_nothing_that_concerns_others() {
    const HELD_UP: Duration = Duration::from_secs(20);
    let cluster = Cluster::builder().brokers(2).start().unwrap();
    cluster.create_topic_on("broker-a", "A", 4).unwrap();
    cluster.create_topic_on("broker-b", "B", 4).unwrap();
    let namesrv = cluster.namesrv_addr();
    let silence = cluster.control_on(
        on("broker-b"),
        GET_CONSUMER_LIST_BY_GROUP,
        ControlAction::Drop,
        ControlTimes::UntilLifted,
    );
    let manager = MQClientManager::new();
    let inbox = Inbox::new();
    let start = |builder: DefaultMQPushConsumerBuilder| {
        let consumer = builder
            .mq_client_api_timeout(HELD_UP)
            .rebalance_wait_interval(NEVER)
            .message_listener(inbox.listener())
            .build()
            .unwrap();
        consumer.start().unwrap();
        consumer
    };
    let groups: Vec<_> = (0..20)
        .map(|n| {
            let topic = if n % 2 == 0 { "B" } else { "A" };
            start(builder(&namesrv, &manager, &format!("g{n:02}"), topic))
        })
        .collect();
    assert_eq!(manager.instance_count(), 1);
    wait_until("the groups of the living broker have their queues", || {
        groups
            .iter()
            .skip(1)
            .step_by(2)
            .all(|group| owned(group, "A").len() == 4)
    });
    // The same within one group, when its members change again and again.
    let both = || builder(&namesrv, &manager, "both", "A").subscribe("B", "*");
    let first = start(both());
    let queues = queues_of(&namesrv, "A");
    wait_until_settled(&[&first], "A", &queues);
    for _ in 0..3 {
        let second = start(both());
        wait_until_settled(&[&first, &second], "A", &queues);
        second.shutdown(TIMEOUT);
        wait_until_settled(&[&first], "A", &queues);
    }
    assert!(silence.hits() >= 12);
    for group in groups.iter().step_by(2).chain([&first]) {
        assert_eq!(owned(group, "B").len(), 0, "nobody has answered for it");
    }
}

#[test]
fn queues_of_a_silent_broker_are_looked_at_again_after_the_short_pause() {
    let cluster = Cluster::builder().brokers(2).start().unwrap();
    cluster.create_topic_on("broker-a", "A", 4).unwrap();
    cluster.create_topic_on("broker-b", "B", 4).unwrap();
    let silence = cluster.control_on(
        on("broker-b"),
        GET_CONSUMER_LIST_BY_GROUP,
        ControlAction::Drop,
        ControlTimes::UntilLifted,
    );
    let consumer = builder(&cluster.namesrv_addr(), &MQClientManager::new(), "g", "A")
        .subscribe("B", "*")
        .mq_client_api_timeout(Duration::from_millis(300))
        .rebalance_wait_interval(NEVER)
        .message_listener(Inbox::new().listener())
        .build()
        .unwrap();
    consumer.start().unwrap();
    assert!(silence.wait_for_hits(3, GENEROUS));
    assert_eq!(owned(&consumer, "A").len(), 4);
    assert_eq!(owned(&consumer, "B").len(), 0);
    silence.lift();
    wait_until("its queues are owned", || owned(&consumer, "B").len() == 4);
}

/// One broker of three closes each connection on which it is asked, or says nothing for longer than
/// the test waits.
#[test]
fn another_broker_of_the_topic_is_asked_when_one_does_not_answer() {
    for action in [ControlAction::Drop, ControlAction::Close] {
        let cluster = Cluster::builder().brokers(3).start().unwrap();
        cluster.create_topic("T", 2).unwrap();
        let namesrv = cluster.namesrv_addr();
        let queues = queues_of(&namesrv, "T");
        let failing = cluster.control_on(
            on("broker-b"),
            GET_CONSUMER_LIST_BY_GROUP,
            action,
            ControlTimes::UntilLifted,
        );
        let manager = MQClientManager::new();
        let inbox = Inbox::new();
        let start = || {
            let consumer = builder(&namesrv, &manager, "g", "T")
                .mq_client_api_timeout(NEVER)
                .rebalance_wait_interval(NEVER)
                .message_listener(inbox.listener())
                .build()
                .unwrap();
            consumer.start().unwrap();
            consumer
        };
        let first = start();
        wait_until_settled(&[&first], "T", &queues);
        for _ in 0..3 {
            let second = start();
            wait_until_settled(&[&first, &second], "T", &queues);
            second.shutdown(TIMEOUT);
            wait_until_settled(&[&first], "T", &queues);
        }
        assert!(failing.hits() > 0, "it was asked");
    }
}

/// The strategy of one member, which counts how often it is asked for its own share.
#[derive(Debug, Clone, Default)]
struct Counting(Arc<Mutex<BTreeMap<String, usize>>>);

impl Counting {
    fn of(&self, group: &str) -> usize {
        self.0.lock().unwrap().get(group).copied().unwrap_or(0)
    }
}

impl AllocateMessageQueueStrategy for Counting {
    fn name(&self) -> &str {
        "AVG"
    }

    fn allocate(
        &self,
        consumer_group: &str,
        current_cid: &str,
        mq_all: &[MessageQueue],
        cid_all: &[String],
    ) -> Result<Vec<MessageQueue>, AllocateError> {
        if mq_all[0].topic() == "T" {
            let mut counts = self.0.lock().unwrap();
            *counts.entry(consumer_group.to_owned()).or_default() += 1;
        }
        AllocateMessageQueueAveragely.allocate(consumer_group, current_cid, mq_all, cid_all)
    }
}

#[test]
fn a_note_wakes_its_group_only_and_three_looks_are_all_until_a_token_is_back() {
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("T", 8).unwrap();
    let namesrv = cluster.namesrv_addr();
    let queues = queues_of(&namesrv, "T");
    let manager = MQClientManager::new();
    let counting = Counting::default();
    let inbox = Inbox::new();
    let start = |group: &str| {
        let consumer = builder(&namesrv, &manager, group, "T")
            // No token comes back.
            .rebalance_min_interval(NEVER)
            .rebalance_wait_interval(NEVER)
            .allocate_message_queue_strategy(counting.clone())
            .message_listener(inbox.listener())
            .build()
            .unwrap();
        consumer.start().unwrap();
        consumer
    };
    // What h is told of its own start it has looked at when g, on the same connection, has its queues.
    let (h, g) = (start("h"), start("g"));
    assert_eq!(manager.instance_count(), 1);
    wait_until("both have their queues", || {
        owned(&g, "T").len() == 8 && owned(&h, "T").len() == 8
    });
    let before = counting.of("h");
    let elsewhere = MQClientManager::new();
    let mut guests = vec![member(&namesrv, &elsewhere, "g", "T", &inbox)];
    wait_until_settled(&[&g, &guests[0]], "T", &queues);
    for _ in 0..6 {
        guests.push(member(&namesrv, &elsewhere, "g", "T", &inbox));
    }
    wait_until("the last one has its share", || {
        owned(&guests[6], "T").len() == 1
    });
    assert_eq!(counting.of("h"), before, "nobody has told of a change of h");
    // A start and two changes; each change is told of more than once, which costs nothing once. Two
    // more answers are for what a member that has left had.
    assert!(counting.of("g") <= 3 * 2, "{}", counting.of("g"));
}

/// One of two brokers does not hear of a second member for a while.
#[test]
fn with_confirm_shrink_queues_are_given_up_when_two_brokers_agree() {
    let cluster = Cluster::builder().brokers(2).start().unwrap();
    cluster.create_topic("T", 4).unwrap();
    let namesrv = cluster.namesrv_addr();
    let queues = queues_of(&namesrv, "T");
    let manager = MQClientManager::new();
    let inbox = Inbox::new();
    let start = |name: &str| {
        let consumer = builder(&namesrv, &manager, "g", "T")
            .instance_name(name)
            .confirm_shrink(true)
            .rebalance_wait_interval(Duration::from_millis(100))
            .heartbeat_broker_interval(Duration::from_millis(100))
            .message_listener(inbox.listener())
            .build()
            .unwrap();
        consumer.start().unwrap();
        consumer
    };
    let first = start("a");
    wait_until_settled(&[&first], "T", &queues);
    // Broker-b does not hear of the second one: heartbeats to it get lost.
    const HEART_BEAT: i32 = 34;
    let lost = cluster.control_on(
        on("broker-b"),
        HEART_BEAT,
        ControlAction::Respond(0, None),
        ControlTimes::UntilLifted,
    );
    let asked = cluster.control(
        GET_CONSUMER_LIST_BY_GROUP,
        ControlAction::Delay(Duration::ZERO),
        ControlTimes::UntilLifted,
    );
    let second = start("b");
    wait_until("the second one has its share", || {
        !owned(&second, "T").is_empty()
    });
    let hits = asked.hits();
    assert!(asked.wait_for_hits(hits + 20, GENEROUS));
    assert_eq!(owned(&first, "T").len(), 8, "only one broker says so");
    assert_eq!(cluster.consumer_ids_on("broker-b", "g").len(), 1);
    lost.lift();
    wait_until_settled(&[&first, &second], "T", &queues);
}
