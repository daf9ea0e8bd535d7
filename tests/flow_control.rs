//! How much a consumer takes on before it pulls no more, and how often it pulls.
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

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rocketmq_blocking::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, DefaultMQPushConsumer,
    DefaultMQPushConsumerBuilder, Error, MQClientManager, Message, MessageExt, Properties,
    request_code,
};
use rocketmq_embedded::{Cluster, ControlAction, ControlHandle, ControlTimes};
use support::{
    Answer, GENEROUS, Inbox, ScriptedBroker, holds_within, producer_at, quick, started, wait_until,
};

const TIMEOUT: Duration = Duration::from_secs(10);
/// Flow control looks again every 50 ms.
const TEN_LOOKS: Duration = Duration::from_millis(500);

struct World {
    cluster: Cluster,
    pulls: ControlHandle,
    held: Arc<Mutex<()>>,
    inbox: Inbox,
}

impl World {
    /// A topic with so many queues, each of which has so many messages of a size.
    fn start(queues: u16, count: usize, size: usize) -> Self {
        let cluster = Cluster::builder().start().unwrap();
        cluster.create_topic("T", queues).unwrap();
        let producer = started(
            producer_at(&cluster.namesrv_addr()).compress_msg_body_over_howmuch(usize::MAX),
        );
        for n in 0..count * usize::from(queues) {
            let mut body = n.to_string();
            body.extend(std::iter::repeat_n(' ', size));
            producer.send(&Message::new("T", body)).unwrap();
        }
        producer.shutdown(TIMEOUT);
        let pulls = cluster.control(
            request_code::PULL_MESSAGE,
            ControlAction::Delay(Duration::ZERO),
            ControlTimes::UntilLifted,
        );
        Self {
            cluster,
            pulls,
            held: Arc::default(),
            inbox: Inbox::new(),
        }
    }

    fn builder(&self) -> DefaultMQPushConsumerBuilder {
        quick(DefaultMQPushConsumer::builder("g"))
            .client_manager(&MQClientManager::new())
            .namesrv_addr(&self.cluster.namesrv_addr())
            .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
            .pull_batch_size(1)
            .subscribe("T", "*")
    }

    /// Starts a consumer whose listener waits while the test holds the lock.
    fn consume(&self, builder: DefaultMQPushConsumerBuilder) -> DefaultMQPushConsumer {
        let (held, received) = (Arc::clone(&self.held), self.inbox.clone());
        let consumer = builder
            .message_listener(
                move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
                    drop(held.lock().unwrap());
                    received.put(messages);
                    ConsumeConcurrentlyStatus::ConsumeSuccess
                },
            )
            .build()
            .unwrap();
        consumer.start().unwrap();
        consumer
    }

    /// Waits for so many pulls, and sees that no more than that and one come: the retry topic's
    /// queue is pulled too, by whoever has it.
    #[track_caller]
    fn stops_after(&self, pulls: u64) {
        assert!(
            self.pulls.wait_for_hits(pulls, GENEROUS),
            "{} of {pulls} pulls",
            self.pulls.hits()
        );
        let more = holds_within(TEN_LOOKS, || self.pulls.hits() > pulls + 1);
        assert!(!more, "{} pulls, {pulls} expected", self.pulls.hits());
    }
}

#[test]
fn the_size_of_what_is_in_work_stops_the_pulls_of_its_queue() {
    const SIZE: usize = 300 * 1024;
    let world = World::start(1, 12, SIZE);
    let gate = world.held.lock().unwrap();
    let consumer = world.consume(world.builder().pull_threshold_size_for_queue(1));
    // Whole MiB count: with the seventh message there are two.
    world.stops_after(1 + 7);
    drop(gate);
    world.inbox.wait_for_bodies(12);
    assert_eq!(consumer.shutdown(TIMEOUT).abandoned, 0);
}

#[test]
fn a_threshold_of_the_topic_is_divided_among_the_own_queues() {
    let world = World::start(4, 10, 1);
    let gate = world.held.lock().unwrap();
    let builder = || {
        let builder = world.builder().pull_threshold_for_topic(8);
        builder.hand_over_grace(Duration::ZERO)
    };
    let first = world.consume(builder());
    // Two a queue, and one more is pulled before it is found to be too many.
    world.stops_after(1 + 4 * 3);
    let second = world.consume(builder());
    // Now each has two queues, and four messages a queue: the first goes on with two of its queues,
    // the second begins with the others.
    world.stops_after(1 + 4 * 3 + 2 * 2 + 2 * 5);
    drop(gate);
    world.inbox.wait_for_bodies(40);
    second.shutdown(TIMEOUT);
    first.shutdown(TIMEOUT);
}

#[test]
fn a_size_of_the_topic_is_divided_among_the_own_queues() {
    const SIZE: usize = 600 * 1024;
    let world = World::start(2, 6, SIZE);
    let gate = world.held.lock().unwrap();
    let consumer = world.consume(world.builder().pull_threshold_size_for_topic(2));
    // One MiB a queue; with the fourth message of 600 KiB there are two.
    world.stops_after(1 + 2 * 4);
    drop(gate);
    world.inbox.wait_for_bodies(12);
    consumer.shutdown(TIMEOUT);
}

#[test]
fn a_pull_interval_lies_between_the_pulls() {
    const INTERVAL: Duration = Duration::from_millis(150);
    let broker = ScriptedBroker::start(|_| Answer::Usual);
    for n in 0..5 {
        broker.put(&n.to_string(), &Properties::new());
    }
    let inbox = Inbox::new();
    let consumer = quick(DefaultMQPushConsumer::builder("g"))
        .client_manager(&MQClientManager::new())
        .namesrv_addr(&broker.namesrv())
        .pull_interval(INTERVAL)
        .pull_batch_size(1)
        .subscribe("T", "*")
        .message_listener(inbox.listener())
        .build()
        .unwrap();
    consumer.start().unwrap();
    inbox.wait_for_bodies(5);
    let pulls = broker.requests(request_code::PULL_MESSAGE).into_iter();
    let of_topic: Vec<_> = pulls
        .filter(|(_, pull)| pull.ext_fields.get("topic") == Some("T"))
        .collect();
    assert!(of_topic.len() >= 5);
    for pair in of_topic[..5].windows(2) {
        let pause = pair[1].0 - pair[0].0;
        assert!(pause > INTERVAL * 3 / 4, "{pause:?}");
        assert_eq!(pair[0].1.ext_fields.get("maxMsgNums"), Some("1"));
    }
    wait_until("it is left", || consumer.shutdown(TIMEOUT).threads_joined);
}

#[test]
fn settings_out_of_range_are_told_of_all_at_once() {
    let error = DefaultMQPushConsumer::builder("g")
        .namesrv_addr("127.0.0.1:9876")
        .subscribe("T", "*")
        .pull_threshold_for_topic(0)
        .pull_threshold_size_for_topic(102_401)
        .max_retained_bytes(1_048_575)
        .pull_batch_size_in_bytes(0)
        .pull_time_delay_when_exception(Duration::ZERO)
        .hand_over_grace(Duration::from_secs(61))
        .max_reconsume_times(-1)
        .consume_timestamp(-1)
        .message_listener(Inbox::new().listener())
        .build()
        .unwrap_err();
    let Error::InvalidConfig { problems } = error else {
        panic!("{error:?}");
    };
    for name in [
        "pull_threshold_for_topic",
        "pull_threshold_size_for_topic",
        "max_retained_bytes",
        "pull_batch_size_in_bytes",
        "pull_time_delay_when_exception",
        "hand_over_grace",
        "max_reconsume_times",
        "consume_timestamp",
    ] {
        let about = problems
            .iter()
            .filter(|p| p.starts_with(&format!("{name} is")));
        assert_eq!(about.count(), 1, "{name}: {problems:?}");
    }
    assert_eq!(problems.len(), 8, "{problems:?}");
}
