//! What a consumer receives, what of it counts as done, and where it goes on.
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

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rocketmq_blocking::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, DefaultMQProducer,
    DefaultMQPushConsumer, DefaultMQPushConsumerBuilder, MQClientManager, Message, MessageExt,
    MessageQueue, SendResult, response_code,
};
use rocketmq_embedded::{ControlAction, ControlTimes};
use support::{GENEROUS, Inbox, Target, holds_within, quick, unique, wait_until};

const UPDATE_CONSUMER_OFFSET: i32 = 15;
const CONSUMER_SEND_MSG_BACK: i32 = 36;
const PULL_MESSAGE: i32 = 11;
const QUERY_CONSUMER_OFFSET: i32 = 14;
const TIMEOUT: Duration = Duration::from_secs(10);
const NEVER: Duration = Duration::from_secs(600);

struct World {
    target: Target,
    topic: String,
    group: String,
    manager: MQClientManager,
    producer: DefaultMQProducer,
}

impl World {
    fn start(brokers: usize, queues_per_broker: u16) -> Self {
        let target = Target::start(brokers);
        let topic = unique("T");
        target.create_topic(&topic, queues_per_broker);
        let manager = MQClientManager::new();
        let producer = DefaultMQProducer::builder("p")
            .client_manager(&manager)
            .namesrv_addr(target.namesrv())
            .build()
            .unwrap();
        producer.start().unwrap();
        Self {
            target,
            topic,
            group: unique("g"),
            manager,
            producer,
        }
    }

    fn builder(&self) -> DefaultMQPushConsumerBuilder {
        quick(DefaultMQPushConsumer::builder(self.group.as_str()))
            .client_manager(&self.manager)
            .namesrv_addr(self.target.namesrv())
            .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
            .subscribe(&self.topic, "*")
    }

    fn consume(&self, builder: DefaultMQPushConsumerBuilder) -> (DefaultMQPushConsumer, Inbox) {
        let inbox = Inbox::new();
        let consumer = builder.message_listener(inbox.listener()).build().unwrap();
        consumer.start().unwrap();
        (consumer, inbox)
    }

    fn message(&self, body: impl Into<String>) -> Message {
        Message::new(self.topic.as_str(), body.into())
    }

    fn send(&self, prefix: &str, count: usize) -> Vec<SendResult> {
        (0..count)
            .map(|n| {
                self.producer
                    .send(&self.message(format!("{prefix}{n}")))
                    .unwrap()
            })
            .collect()
    }

    fn queues(&self) -> Vec<MessageQueue> {
        self.producer
            .fetch_publish_message_queues(&self.topic)
            .unwrap()
    }

    /// Whether the broker's offsets of the group are the ends of all queues; true where it cannot
    /// be asked.
    fn all_committed(&self) -> bool {
        self.target.embedded().is_none_or(|cluster| {
            self.queues().iter().all(|mq| {
                cluster.committed_offset(&self.group, mq).unwrap_or(0) == cluster.max_offset(mq)
            })
        })
    }
}

#[track_caller]
fn each_once(inbox: &Inbox) {
    let more: BTreeMap<_, _> = inbox
        .bodies()
        .into_iter()
        .filter(|(_, n)| *n != 1)
        .collect();
    assert!(more.is_empty(), "received more than once: {more:?}");
}

#[test]
fn all_messages_arrive_with_all_that_was_sent() {
    const COUNT: usize = 2_000;
    let world = World::start(2, 4);
    let (consumer, inbox) = world.consume(world.builder());
    let mut sent: BTreeMap<String, (SendResult, usize)> = BTreeMap::new();
    for n in 0..COUNT {
        let mut message = world
            .message(format!("m{n}"))
            .with_tags(format!("Tag{}", n % 3))
            .with_keys(format!("key{n}"));
        message.put_user_property("number", n.to_string()).unwrap();
        message.set_flag(n as i32);
        let result = world.producer.send(&message).unwrap();
        sent.insert(result.msg_id.clone(), (result, n));
    }
    assert_eq!(sent.len(), COUNT, "unique keys");
    inbox.wait_for_bodies(COUNT);
    each_once(&inbox);
    for message in inbox.messages() {
        let (result, n) = &sent[message.msg_id()];
        assert_eq!(message.body(), format!("m{n}").as_bytes());
        assert_eq!(message.topic(), world.topic);
        assert_eq!(message.tags(), Some(format!("Tag{}", n % 3).as_str()));
        assert_eq!(message.keys(), Some(format!("key{n}").as_str()));
        assert_eq!(message.property("number"), Some(n.to_string().as_str()));
        assert_eq!(message.flag(), *n as i32);
        assert_eq!(message.broker_name(), result.message_queue.broker_name());
        assert_eq!(message.queue_id(), result.message_queue.queue_id());
        assert_eq!(message.queue_offset(), result.queue_offset);
        assert_eq!(message.offset_msg_id(), result.offset_msg_id);
        assert_eq!(message.reconsume_times(), 0);
        assert!(message.born_timestamp() > 0 && message.store_timestamp() > 0);
        assert_ne!(message.born_host().port(), 0);
        if let Some(cluster) = world.target.embedded() {
            assert!(message.born_host().ip().is_loopback());
            let broker = cluster.broker_addr(message.broker_name()).unwrap();
            assert_eq!(message.store_host().to_string(), broker);
        }
    }
    let queues: BTreeSet<_> = sent
        .values()
        .map(|(result, _)| &result.message_queue)
        .collect();
    assert_eq!(queues.len(), world.queues().len(), "all queues were used");
    wait_until("the offsets are saved", || world.all_committed());
    let report = consumer.shutdown(TIMEOUT);
    assert_eq!(report.abandoned, 0);
}

#[test]
fn a_tag_with_the_same_hash_code_is_not_delivered() {
    // Brokers compare hash codes only.
    assert_eq!(java_hash("AaAa"), java_hash("BBBB"));
    let world = World::start(1, 1);
    for n in 0..10 {
        for tag in ["AaAa", "BBBB", "CC"] {
            let message = world.message(format!("{tag}{n}")).with_tags(tag);
            world.producer.send(&message).unwrap();
        }
    }
    world.producer.send(&world.message("untagged")).unwrap();
    let builder = world.builder().subscribe(&world.topic, "AaAa || DD");
    let (consumer, inbox) = world.consume(builder);
    inbox.wait_for_bodies(10);
    world
        .producer
        .send(&world.message("last").with_tags("DD"))
        .unwrap();
    inbox.wait_for_bodies(11);
    each_once(&inbox);
    assert!(
        inbox
            .messages()
            .iter()
            .all(|m| matches!(m.tags(), Some("AaAa" | "DD")))
    );
    wait_until("what was passed over is done too", || world.all_committed());
    consumer.shutdown(TIMEOUT);
}

fn java_hash(text: &str) -> i32 {
    text.bytes().fold(0, |hash: i32, byte| {
        hash.wrapping_mul(31).wrapping_add(i32::from(byte))
    })
}

#[test]
fn what_failed_or_panicked_is_delivered_again() {
    let world = World::start(1, 2);
    world.send("m", 6);
    let tries: Arc<Mutex<BTreeMap<String, Vec<i32>>>> = Arc::default();
    let noted = Arc::clone(&tries);
    let consumer = world
        .builder()
        .message_listener(
            move |messages: &[MessageExt], context: &mut ConsumeConcurrentlyContext| {
                let message = &messages[0];
                let body = String::from_utf8_lossy(message.body()).into_owned();
                let times = message.reconsume_times();
                let first = {
                    let mut tries = noted.lock().unwrap();
                    let tries = tries.entry(body.clone()).or_default();
                    tries.push(times);
                    tries.len() == 1
                };
                match body.as_str() {
                    "m0" | "m1" if first => ConsumeConcurrentlyStatus::ReconsumeLater,
                    "m2" | "m3" if first => panic!("on purpose"),
                    "m4" if first => {
                        context.set_delay_level_when_next_consume(1);
                        ConsumeConcurrentlyStatus::ReconsumeLater
                    }
                    _ => ConsumeConcurrentlyStatus::ConsumeSuccess,
                }
            },
        )
        .build()
        .unwrap();
    consumer.start().unwrap();
    wait_until("the failed ones have come again", || {
        let tries = tries.lock().unwrap();
        tries.len() == 6 && tries.values().map(Vec::len).sum::<usize>() >= 11
    });
    let found = tries.lock().unwrap().clone();
    for body in ["m0", "m1", "m2", "m3", "m4"] {
        assert_eq!(found[body], [0, 1], "{body}");
    }
    assert_eq!(found["m5"], [0]);
    wait_until("all are done", || world.all_committed());
    consumer.shutdown(TIMEOUT);
}

#[test]
fn an_ack_index_divides_a_batch() {
    let world = World::start(1, 1);
    world.send("m", 4);
    let calls: Arc<Mutex<Vec<Vec<String>>>> = Arc::default();
    let noted = Arc::clone(&calls);
    let consumer = world
        .builder()
        .consume_message_batch_max_size(4)
        .message_listener(
            move |messages: &[MessageExt], context: &mut ConsumeConcurrentlyContext| {
                let bodies = messages.iter();
                let bodies =
                    bodies.map(|message| String::from_utf8_lossy(message.body()).into_owned());
                let mut calls = noted.lock().unwrap();
                calls.push(bodies.collect());
                if calls.len() == 1 {
                    context.set_ack_index(0);
                }
                ConsumeConcurrentlyStatus::ConsumeSuccess
            },
        )
        .build()
        .unwrap();
    consumer.start().unwrap();
    // The four are in one queue, or on a cluster of several brokers in several.
    let behind = |calls: &[Vec<String>]| calls[0][1..].to_vec();
    wait_until("those behind the index have come again", || {
        let calls = calls.lock().unwrap();
        let delivered = calls.iter().map(Vec::len).sum::<usize>();
        !calls.is_empty() && delivered >= 4 + behind(&calls).len()
    });
    let calls = calls.lock().unwrap().clone();
    assert!(calls[0].len() > 1, "{calls:?}");
    let mut delivered = calls.concat();
    let mut expected: Vec<String> = (0..4).map(|i| format!("m{i}")).collect();
    expected.extend(behind(&calls));
    delivered.sort();
    expected.sort();
    assert_eq!(delivered, expected);
    consumer.shutdown(TIMEOUT);
}

/// Lets a listener through when the test says so.
#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.changed.notify_all();
    }

    fn pass(&self) {
        let open = self.open.lock().unwrap();
        let _ = self
            .changed
            .wait_timeout_while(open, GENEROUS, |open| !*open)
            .unwrap();
    }
}

/// The messages of a queue wait for no other: a slow listener is called as often at once as it has threads.
#[test]
fn one_queue_gives_work_to_all_threads() {
    const THREADS: usize = 20;
    let world = World::start(1, 1);
    world.send("m", 3 * THREADS);
    let gate = Arc::new(Gate::default());
    let inside = Arc::new(AtomicUsize::new(0));
    let (most, calls) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (pass, now, peak, all) = (
        Arc::clone(&gate),
        Arc::clone(&inside),
        Arc::clone(&most),
        Arc::clone(&calls),
    );
    let consumer = world
        .builder()
        .message_listener(
            move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
                assert_eq!(messages.len(), 1);
                peak.fetch_max(1 + now.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
                pass.pass();
                now.fetch_sub(1, Ordering::SeqCst);
                all.fetch_add(1, Ordering::SeqCst);
                ConsumeConcurrentlyStatus::ConsumeSuccess
            },
        )
        .build()
        .unwrap();
    consumer.start().unwrap();
    wait_until("all threads are in the listener", || {
        inside.load(Ordering::SeqCst) == THREADS
    });
    gate.open();
    wait_until("all messages are consumed", || {
        calls.load(Ordering::SeqCst) == 3 * THREADS
    });
    assert_eq!(most.load(Ordering::SeqCst), THREADS);
    consumer.shutdown(TIMEOUT);
}

#[test]
fn a_blocked_listener_stops_the_pulls_of_its_queue() {
    const COUNT: usize = 200;
    let world = World::start(1, 1);
    let Some(cluster) = world.target.embedded() else {
        return;
    };
    world.send("m", COUNT);
    let pulls = cluster.control(
        PULL_MESSAGE,
        ControlAction::Delay(Duration::ZERO),
        ControlTimes::UntilLifted,
    );
    let gate = Arc::new(Gate::default());
    let inbox = Inbox::new();
    let (waiting, received) = (Arc::clone(&gate), inbox.clone());
    let consumer = world
        .builder()
        .pull_batch_size(5)
        .pull_threshold_for_queue(12)
        .message_listener(
            move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
                waiting.pass();
                received.put(messages);
                ConsumeConcurrentlyStatus::ConsumeSuccess
            },
        )
        .build()
        .unwrap();
    consumer.start().unwrap();
    // 5, 10 and 15 messages are 3 pulls; one more waits for messages of the retry topic.
    assert!(pulls.wait_for_hits(4, GENEROUS));
    // Flow control looks again every 50 ms; here it has had ten times that.
    let more = holds_within(Duration::from_millis(500), || pulls.hits() > 4);
    assert!(
        !more,
        "{} pulls although 15 messages are unfinished",
        pulls.hits()
    );
    assert_eq!(inbox.len(), 0);
    assert!(!world.all_committed());
    gate.open();
    inbox.wait_for_bodies(COUNT);
    each_once(&inbox);
    assert!(pulls.hits() > 40);
    consumer.shutdown(TIMEOUT);
    assert!(world.all_committed());
}

#[test]
fn a_stuck_message_holds_the_offset_and_the_span() {
    const COUNT: usize = 100;
    let world = World::start(1, 1);
    let Some(cluster) = world.target.embedded() else {
        return;
    };
    world.send("m", COUNT);
    let pulls = cluster.control(
        PULL_MESSAGE,
        ControlAction::Delay(Duration::ZERO),
        ControlTimes::UntilLifted,
    );
    let gate = Arc::new(Gate::default());
    let inbox = Inbox::new();
    let (waiting, received) = (Arc::clone(&gate), inbox.clone());
    let consumer = world
        .builder()
        .pull_batch_size(5)
        .consume_concurrently_max_span(20)
        .message_listener(
            move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
                // The span is that of the unfinished ones, so both its ends have to stay.
                if !(4..20).contains(&messages[0].queue_offset()) {
                    waiting.pass();
                }
                received.put(messages);
                ConsumeConcurrentlyStatus::ConsumeSuccess
            },
        )
        .build()
        .unwrap();
    consumer.start().unwrap();
    inbox.wait_for(16);
    // Five pulls bring the offsets up to 24, which is more than 20 away from 0; one more waits for
    // messages of the retry topic.
    let more = holds_within(Duration::from_millis(500), || pulls.hits() > 6);
    assert!(
        !more,
        "{} pulls although the first message is stuck",
        pulls.hits()
    );
    assert!(pulls.wait_for_hits(6, GENEROUS));
    assert_eq!(
        cluster
            .committed_offset(&world.group, &world.queues()[0])
            .unwrap_or(0),
        0
    );
    gate.open();
    inbox.wait_for_bodies(COUNT);
    each_once(&inbox);
    wait_until("all are done", || world.all_committed());
    consumer.shutdown(TIMEOUT);
}

#[test]
fn a_message_that_the_listener_does_not_return_is_given_back() {
    let world = World::start(1, 1);
    let Some(cluster) = world.target.embedded() else {
        return;
    };
    let given_back = cluster.control(
        CONSUMER_SEND_MSG_BACK,
        ControlAction::Respond(response_code::SUCCESS, None),
        ControlTimes::UntilLifted,
    );
    world.send("m", 10);
    let gate = Arc::new(Gate::default());
    let inbox = Inbox::new();
    let (waiting, received) = (Arc::clone(&gate), inbox.clone());
    let consumer = world
        .builder()
        .consume_timeout(Duration::from_millis(200))
        .message_listener(
            move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
                if matches!(messages[0].queue_offset(), 2 | 3 | 7) {
                    waiting.pass();
                }
                received.put(messages);
                // What was given back is not given back again, whatever the listener says.
                ConsumeConcurrentlyStatus::ReconsumeLater
            },
        )
        .build()
        .unwrap();
    consumer.start().unwrap();
    wait_until(
        "the listener has no message that holds the offset back",
        || world.all_committed(),
    );
    assert_eq!(
        given_back.hits(),
        10,
        "7 that failed and 3 that were not returned"
    );
    assert_eq!(inbox.len(), 7);
    gate.open();
    inbox.wait_for(10);
    assert_eq!(consumer.shutdown(TIMEOUT).abandoned, 0);
    assert_eq!(given_back.hits(), 10);
    assert!(world.all_committed());
}

#[test]
fn as_many_threads_call_the_listener_as_it_may_have() {
    let world = World::start(1, 1);
    world.send("m", 8);
    let gate = Arc::new(Gate::default());
    let inside = Arc::new(AtomicUsize::new(0));
    let (waiting, entered) = (Arc::clone(&gate), Arc::clone(&inside));
    let inbox = Inbox::new();
    let received = inbox.clone();
    let consumer = world
        .builder()
        .consume_threads(2)
        .message_listener(
            move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
                entered.fetch_add(1, Ordering::SeqCst);
                waiting.pass();
                received.put(messages);
                ConsumeConcurrentlyStatus::ConsumeSuccess
            },
        )
        .build()
        .unwrap();
    consumer.start().unwrap();
    let calls = || inside.load(Ordering::SeqCst);
    wait_until("two threads are in the listener", || calls() == 2);
    consumer.update_core_pool_size(0).unwrap_err();
    consumer.update_core_pool_size(5).unwrap();
    wait_until("five threads are in the listener", || calls() == 5);
    gate.open();
    inbox.wait_for_bodies(8);
    consumer.shutdown(TIMEOUT);
}

#[test]
fn offsets_are_saved_at_each_interval_and_a_successor_goes_on_there() {
    let world = World::start(2, 2);
    world.send("first", 40);
    // Pulls bring offsets along as well, some time later.
    let saves = world.target.embedded().map(|cluster| {
        let counted = ControlAction::Delay(Duration::ZERO);
        cluster.control(UPDATE_CONSUMER_OFFSET, counted, ControlTimes::UntilLifted)
    });
    let (consumer, inbox) = world.consume(world.builder());
    inbox.wait_for_bodies(40);
    if let Some(saves) = saves {
        assert!(
            saves.wait_for_hits(4, GENEROUS),
            "nothing is saved while it runs"
        );
    }
    wait_until("the offsets are saved while it runs", || {
        world.all_committed()
    });
    consumer.shutdown(TIMEOUT);

    world.send("second", 40);
    let (consumer, successor) = world.consume(world.builder());
    successor.wait_for_bodies(40);
    each_once(&successor);
    assert!(
        successor
            .bodies()
            .keys()
            .all(|body| body.starts_with("second"))
    );
    consumer.shutdown(TIMEOUT);
}

#[test]
fn offsets_are_saved_at_shutdown() {
    let world = World::start(2, 2);
    world.send("first", 40);
    let late = || world.builder().persist_consumer_offset_interval(NEVER);
    let (consumer, inbox) = world.consume(late());
    inbox.wait_for_bodies(40);
    let report = consumer.shutdown(TIMEOUT);
    assert!(report.offsets_saved >= 4, "{report:?}");
    assert!(world.all_committed());
    world.send("second", 1);
    let (consumer, successor) = world.consume(late());
    successor.wait_for_bodies(1);
    assert_eq!(
        successor.bodies(),
        BTreeMap::from([("second0".to_owned(), 1)])
    );
    drop(consumer);
    wait_until("a drop saves them too", || world.all_committed());
}

#[test]
fn a_shutdown_finishes_what_was_pulled() {
    let world = World::start(1, 1);
    world.send("m", 60);
    let (entered, entries) = channel();
    let entered = Mutex::new(entered);
    let inbox = Inbox::new();
    let received = inbox.clone();
    let consumer = world
        .builder()
        .consume_threads(2)
        .message_listener(
            move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
                let _ = entered.lock().unwrap().send(());
                thread::sleep(Duration::from_millis(2));
                received.put(messages);
                ConsumeConcurrentlyStatus::ConsumeSuccess
            },
        )
        .build()
        .unwrap();
    consumer.start().unwrap();
    entries.recv_timeout(GENEROUS).unwrap();
    let report = consumer.shutdown(GENEROUS);
    assert_eq!(report.abandoned, 0);
    let done = inbox.len();
    assert!(done > 0);
    if let Some(cluster) = world.target.embedded() {
        let mq = &world.queues()[0];
        assert_eq!(
            cluster.committed_offset(&world.group, mq),
            Some(done as i64)
        );
    }
    let (consumer, rest) = world.consume(world.builder());
    if done < 60 {
        rest.wait_for_bodies(60 - done);
    }
    assert!(
        rest.bodies()
            .keys()
            .all(|body| !inbox.bodies().contains_key(body))
    );
    consumer.shutdown(TIMEOUT);
}

#[test]
fn a_shutdown_gives_up_at_its_deadline() {
    let world = World::start(1, 1);
    world.send("m", 30);
    let gate = Arc::new(Gate::default());
    let (waiting, (entered, entries)) = (Arc::clone(&gate), channel());
    let entered = Mutex::new(entered);
    let consumer = world
        .builder()
        .consume_threads(1)
        .message_listener(
            move |_: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
                let _ = entered.lock().unwrap().send(());
                waiting.pass();
                ConsumeConcurrentlyStatus::ConsumeSuccess
            },
        )
        .build()
        .unwrap();
    consumer.start().unwrap();
    entries.recv_timeout(GENEROUS).unwrap();
    let report = consumer.shutdown(Duration::from_millis(300));
    assert!(
        !report.threads_joined,
        "the listener is still in its call: {report:?}"
    );
    assert!(report.abandoned <= 29 && report.drained == 0, "{report:?}");
    if let Some(cluster) = world.target.embedded() {
        let mq = &world.queues()[0];
        assert_eq!(cluster.committed_offset(&world.group, mq).unwrap_or(0), 0);
        wait_until("the group is left", || {
            cluster.consumer_ids(&world.group).is_empty()
        });
    }
    gate.open();
    let (consumer, inbox) = world.consume(world.builder());
    inbox.wait_for_bodies(30);
    consumer.shutdown(TIMEOUT);
}

/// Brokers answer 0 for a queue whose first message they still have in memory, so that a new group
/// misses nothing; that they have no offset is what the setting is for.
#[test]
fn a_group_without_offsets_starts_where_it_is_told_to() {
    let world = World::start(1, 2);
    let Some(cluster) = world.target.embedded() else {
        return;
    };
    cluster.control(
        QUERY_CONSUMER_OFFSET,
        ControlAction::Respond(response_code::QUERY_NOT_FOUND, None),
        ControlTimes::UntilLifted,
    );
    world.send("early", 10);
    // Brokers find a time by the millisecond.
    thread::sleep(Duration::from_millis(20));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    thread::sleep(Duration::from_millis(20));
    world.send("late", 10);

    let start = |from: ConsumeFromWhere| {
        let builder = quick(DefaultMQPushConsumer::builder(unique("g")))
            .client_manager(&world.manager)
            .namesrv_addr(world.target.namesrv())
            .subscribe(&world.topic, "*")
            .consume_from_where(from)
            .consume_timestamp(now.as_millis() as i64);
        world.consume(builder)
    };
    let (_first, from_first) = start(ConsumeFromWhere::ConsumeFromFirstOffset);
    let (_timestamp, from_timestamp) = start(ConsumeFromWhere::ConsumeFromTimestamp);
    from_first.wait_for_bodies(20);
    from_timestamp.wait_for_bodies(10);
    let bodies = from_timestamp.bodies();
    assert!(
        bodies.keys().all(|body| body.starts_with("late")),
        "{bodies:?}"
    );

    let (_last, from_last) = start(ConsumeFromWhere::ConsumeFromLastOffset);
    // The end is asked for in the background: messages from before it never come, later ones do.
    let mut rounds = 0;
    wait_until("messages from after the start arrive", || {
        rounds += 1;
        world.send(&format!("new{rounds}_"), 4);
        from_last.len() > 0
    });
    let bodies = from_last.bodies();
    assert!(
        bodies.keys().all(|body| body.starts_with("new")),
        "{bodies:?}"
    );
    from_first.wait_for_bodies(20 + 4 * rounds);
    from_timestamp.wait_for_bodies(10 + 4 * rounds);
    for inbox in [&from_first, &from_timestamp, &from_last] {
        each_once(inbox);
    }
}

#[test]
fn a_broker_that_is_restarted_loses_nothing() {
    let world = World::start(2, 2);
    let Some(cluster) = world.target.embedded() else {
        return;
    };
    let inbox = Inbox::new();
    let received = inbox.clone();
    let consumer = world
        .builder()
        .message_listener(
            move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
                thread::sleep(Duration::from_millis(2));
                received.put(messages);
                ConsumeConcurrentlyStatus::ConsumeSuccess
            },
        )
        .build()
        .unwrap();
    consumer.start().unwrap();
    world.send("before", 200);
    cluster.stop_broker("broker-a").unwrap();
    world.send("during", 100);
    cluster.start_broker("broker-a").unwrap();
    world.send("after", 200);
    inbox.wait_for_bodies(500);
    wait_until("the restarted broker has the offsets", || {
        world.all_committed()
    });
    wait_until("the restarted broker knows the member", || {
        cluster.consumer_ids_on("broker-a", &world.group).len() == 1
    });
    consumer.shutdown(TIMEOUT);
}

#[test]
fn large_bodies_are_compressed_on_the_way() {
    let world = World::start(1, 1);
    let sizes = [4095, 4096, 100_000];
    let body = |size: usize| "compressible ".repeat(size / 13 + 1)[..size].to_owned();
    for size in sizes {
        world.producer.send(&world.message(body(size))).unwrap();
    }
    let (consumer, inbox) = world.consume(world.builder());
    let mut messages = inbox.wait_for(sizes.len());
    // They may be in several queues, and the consumer's threads bring them in any order.
    messages.sort_by_key(|message| message.body().len());
    for (message, size) in messages.iter().zip(sizes) {
        assert!(
            message.body() == body(size).as_bytes(),
            "{size} bytes have changed"
        );
        let compressed = size >= 4096;
        assert_eq!(
            message.store_size() < size,
            compressed,
            "{size}: {}",
            message.store_size()
        );
    }
    consumer.shutdown(TIMEOUT);
}

#[test]
fn a_listener_is_given_batches_if_it_wants_them() {
    let world = World::start(1, 1);
    world.send("m", 100);
    let builder = world.builder().consume_message_batch_max_size(16);
    let (consumer, inbox) = world.consume(builder);
    inbox.wait_for_bodies(100);
    each_once(&inbox);
    let sizes = inbox.call_sizes();
    assert!(
        sizes.iter().all(|size| (1..=16).contains(size)),
        "{sizes:?}"
    );
    assert!(sizes.contains(&16), "{sizes:?}");
    consumer.shutdown(TIMEOUT);

    world.send("n", 20);
    let (consumer, inbox) = world.consume(world.builder());
    inbox.wait_for_bodies(20);
    assert!(inbox.call_sizes().iter().all(|size| *size == 1));
    consumer.shutdown(TIMEOUT);
}

#[test]
fn a_topic_that_comes_later_is_consumed() {
    let world = World::start(1, 1);
    let later = unique("Later");
    let builder = world
        .builder()
        .subscribe(&later, "*")
        .poll_name_server_interval(Duration::from_millis(200));
    let (consumer, inbox) = world.consume(builder);
    world
        .producer
        .send(&Message::new(later.as_str(), "m"))
        .unwrap();
    assert_eq!(inbox.wait_for(1)[0].topic(), later);
    consumer.shutdown(TIMEOUT);
}

/// Another group that consumes the same topics: what has reached it could have reached the first too.
fn witness(world: &World, topics: &[&str]) -> (DefaultMQPushConsumer, Inbox) {
    let mut builder = quick(DefaultMQPushConsumer::builder(unique("witness")))
        .client_manager(&world.manager)
        .namesrv_addr(world.target.namesrv())
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset);
    for topic in topics {
        builder = builder.subscribe(topic, "*");
    }
    world.consume(builder)
}

#[test]
fn what_is_sent_while_a_consumer_is_suspended_comes_when_it_is_resumed() {
    let world = World::start(1, 2);
    let (consumer, inbox) = world.consume(world.builder());
    let (_witness, seen) = witness(&world, &[&world.topic]);
    world.send("a", 4);
    inbox.wait_for_bodies(4);
    consumer.suspend();
    world.send("b", 4);
    seen.wait_for_bodies(8);
    assert_eq!(inbox.len(), 4, "delivered while suspended");
    consumer.resume();
    inbox.wait_for_bodies(8);
}

#[test]
fn an_unsubscribed_topic_is_left_and_taken_up_again() {
    let world = World::start(1, 2);
    let other = unique("U");
    world.target.create_topic(&other, 2);
    let (consumer, inbox) = world.consume(world.builder().subscribe(&other, "*"));
    let (_witness, seen) = witness(&world, &[&world.topic, &other]);
    let send_other = |body: &str| {
        let message = Message::new(other.as_str(), body.to_owned());
        world.producer.send(&message).unwrap();
    };
    world.send("a", 2);
    send_other("other0");
    inbox.wait_for_bodies(3);
    let owns = |topic: &str| {
        let queues = consumer.owned_queues().into_iter();
        queues.filter(|mq| mq.topic() == topic).count()
    };
    consumer.unsubscribe(&world.topic).unwrap();
    wait_until("its queues are given up", || owns(&world.topic) == 0);
    world.send("b", 2);
    send_other("other1");
    inbox.wait_for_bodies(4);
    seen.wait_for_bodies(6);
    assert_eq!(
        inbox.len(),
        4,
        "delivered after the end of the subscription"
    );
    consumer.subscribe(&world.topic, "*").unwrap();
    inbox.wait_for_bodies(6);
}

/// A broker that hears of a new group's first two offsets at once may lose one of them.
#[test]
fn the_first_offset_of_a_topic_is_saved_before_the_others() {
    let world = World::start(1, 4);
    let Some(cluster) = world.target.embedded() else {
        return;
    };
    let (consumer, inbox) = world.consume(world.builder().persist_consumer_offset_interval(NEVER));
    world.send("m", 8);
    inbox.wait_for_bodies(8);
    let held = cluster.control(
        UPDATE_CONSUMER_OFFSET,
        ControlAction::HoldAnswer,
        ControlTimes::UntilLifted,
    );
    let end = thread::spawn(move || consumer.shutdown(GENEROUS));
    assert!(held.wait_for_hits(1, GENEROUS));
    // A pull that comes by later than an offset sent side by side with the first would have.
    let _other = witness(&world, &[&world.topic]);
    assert_eq!(held.hits(), 1, "sent before the first was answered");
    held.lift();
    let report = end.join().unwrap();
    assert_eq!(report.offsets_saved, 4, "{report:?}");
    assert!(world.all_committed());
}
