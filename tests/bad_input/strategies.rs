use std::fmt;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use rocketmq_blocking::rebalance::{
    AllocateError, AllocateMessageQueueByConfig, AllocateMessageQueueStrategy,
};
use rocketmq_blocking::{DefaultMQPushConsumer, Message, MessageQueue};
use rocketmq_embedded::Cluster;

use crate::support::{GENEROUS, Inbox, cluster_of, keep_logs, logged, wait_until};
use crate::{LIMIT, SLACK, consumer_builder, producer};

type Allocate = dyn Fn(&[MessageQueue]) -> Result<Vec<MessageQueue>, AllocateError> + Send + Sync;

/// A user's own, made of a closure.
struct Own(Box<Allocate>);

impl Own {
    fn new(
        allocate: impl Fn(&[MessageQueue]) -> Result<Vec<MessageQueue>, AllocateError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self(Box::new(allocate))
    }
}

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Own")
    }
}

impl AllocateMessageQueueStrategy for Own {
    fn name(&self) -> &str {
        "OWN"
    }

    fn allocate(
        &self,
        _: &str,
        _: &str,
        mq_all: &[MessageQueue],
        _: &[String],
    ) -> Result<Vec<MessageQueue>, AllocateError> {
        (self.0)(mq_all)
    }
}

fn start(
    cluster: &Cluster,
    group: &str,
    strategy: impl AllocateMessageQueueStrategy + 'static,
) -> (DefaultMQPushConsumer, Inbox) {
    let inbox = Inbox::new();
    let consumer = consumer_builder(&cluster.namesrv_addr(), group)
        .allocate_message_queue_strategy(strategy)
        .message_listener(inbox.listener())
        .build()
        .unwrap();
    consumer.start().unwrap();
    (consumer, inbox)
}

fn send(cluster: &Cluster, count: usize) {
    let producer = producer(&cluster.namesrv_addr());
    for n in 0..count {
        producer.send(&Message::new("T", format!("m{n}"))).unwrap();
    }
}

fn ids(consumer: &DefaultMQPushConsumer) -> Vec<i32> {
    let queues = consumer.owned_queues();
    let of_topic = queues.iter().filter(|mq| mq.topic() == "T");
    of_topic.map(MessageQueue::queue_id).collect()
}

#[test]
fn a_strategy_that_panics_or_fails_leaves_the_queues_and_is_asked_again() {
    keep_logs();
    let cluster = cluster_of(1, 4);
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let (consumer, inbox) = start(
        &cluster,
        "panics",
        Own::new(move |mq_all| match counted.fetch_add(1, Ordering::SeqCst) {
            0..3 => panic!("a strategy, on purpose"),
            3..6 => Err(AllocateError::Other("out of order".to_owned())),
            _ => Ok(mq_all.to_vec()),
        }),
    );
    send(&cluster, 8);
    inbox.wait_for_bodies(8);
    for words in [
        [
            "group panics",
            "its queues stay as they are",
            "the strategy Own panicked: ",
        ],
        [
            "group panics",
            "its queues stay as they are",
            "strategy OWN: out of order",
        ],
    ] {
        assert!(!logged(&words).is_empty(), "{words:?}");
    }
    assert!(inbox.bodies().values().all(|times| *times == 1));
    assert!(consumer.shutdown(GENEROUS).threads_joined);
}

#[test]
fn queues_that_are_foreign_or_there_twice_are_left_out() {
    keep_logs();
    let cluster = cluster_of(1, 4);
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let (consumer, inbox) = start(
        &cluster,
        "foreign",
        Own::new(move |mq_all| {
            counted.fetch_add(1, Ordering::SeqCst);
            let mut queues: Vec<_> = mq_all.iter().rev().chain(mq_all).cloned().collect();
            queues.push(MessageQueue::new("Other", "broker-a", 0));
            queues.push(MessageQueue::new("T", "broker-z", 7));
            Ok(queues)
        }),
    );
    send(&cluster, 8);
    inbox.wait_for_bodies(8);
    assert!(inbox.bodies().values().all(|times| *times == 1));
    assert_eq!(ids(&consumer), [0, 1, 2, 3]);
    assert!(
        consumer
            .owned_queues()
            .iter()
            .all(|mq| mq.broker_name() == "broker-a")
    );
    let told = logged(&[
        "group foreign",
        "strategy OWN gave",
        "broker-z",
        "is left out",
    ]);
    assert!(!told.is_empty());
    assert!(consumer.shutdown(GENEROUS).threads_joined);
}

/// A fixed list names the queues of all topics, and the strategy is asked topic by topic: what is
/// another topic's is none of a fault, and the group is balanced.
#[test]
fn a_fixed_list_of_several_topics_is_balanced() {
    let cluster = cluster_of(1, 4);
    cluster.create_topic("U", 2).unwrap();
    let list: Vec<_> = [("T", 1), ("T", 2), ("U", 0)]
        .map(|(topic, id)| MessageQueue::new(topic, "broker-a", id))
        .into();
    let inbox = Inbox::new();
    let consumer = consumer_builder(&cluster.namesrv_addr(), "fixed")
        .subscribe("U", "*")
        .rebalance_min_interval(Duration::from_millis(1))
        .allocate_message_queue_strategy(AllocateMessageQueueByConfig::new(list.clone()))
        .message_listener(inbox.listener())
        .build()
        .unwrap();
    consumer.start().unwrap();
    wait_until("it has its list", || consumer.owned_queues() == list);
    // An unbalanced group would be looked at again each millisecond.
    const MEMBERS: i32 = rocketmq_protocol::request_code::GET_CONSUMER_LIST_BY_GROUP;
    let before = cluster.request_count(MEMBERS);
    assert!(!cluster.wait_for(MEMBERS, before + 20, Duration::from_millis(500)));
    assert!(consumer.shutdown(GENEROUS).threads_joined);
}

#[test]
fn a_strategy_may_call_the_client_and_one_that_never_returns_does_not_keep_a_shutdown() {
    let cluster = cluster_of(1, 4);
    let calling = producer(&cluster.namesrv_addr());
    let (go, waits) = channel::<()>();
    let (entered, entries) = channel();
    let (waits, entered) = (Mutex::new(waits), Mutex::new(entered));
    let (consumer, _inbox) = start(
        &cluster,
        "blocks",
        Own::new(move |mq_all| {
            let sent = calling.send(&Message::new("Sent", "by a strategy"));
            let report = calling.shutdown(GENEROUS);
            entered
                .lock()
                .unwrap()
                .send((sent.is_ok(), report.deferred))
                .unwrap();
            let _ = waits.lock().unwrap().recv();
            Ok(mq_all.to_vec())
        }),
    );
    assert_eq!(entries.recv_timeout(GENEROUS).unwrap(), (true, true));
    let begun = Instant::now();
    let report = consumer.shutdown(LIMIT);
    assert!(begun.elapsed() < LIMIT + SLACK, "{:?}", begun.elapsed());
    assert!(!report.threads_joined, "{report:?}");
    assert_eq!(cluster.stored_count("Sent"), 1);
    drop(go);
}
