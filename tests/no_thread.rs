//! A consumer that the system gives no threads. The options of threads are the whole process's, so
//! this is a test of its own.
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

use std::time::Duration;

use rocketmq_blocking::service::ThreadOptions;
use rocketmq_blocking::{
    ConsumeFromWhere, DefaultMQProducer, DefaultMQPushConsumer, MQClientManager, Message,
};
use rocketmq_embedded::Cluster;
use support::{Inbox, keep_logs, logged, quick, wait_until};

/// apache/rocketmq PR#3490: messages that the pool did not take were tried again once, and lost if it
/// did not take them then. They are tried again until it does.
#[test]
fn b51_messages_wait_until_there_is_a_thread() {
    /// More than there are addresses.
    const IMPOSSIBLE: usize = 1 << 50;
    keep_logs();
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("T", 1).unwrap();
    let manager = MQClientManager::new();
    let producer = DefaultMQProducer::builder("p")
        .client_manager(&manager)
        .namesrv_addr(&cluster.namesrv_addr())
        .build()
        .unwrap();
    producer.start().unwrap();
    let inbox = Inbox::new();
    let consumer = quick(DefaultMQPushConsumer::builder("g"))
        .client_manager(&manager)
        .namesrv_addr(&cluster.namesrv_addr())
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .consume_message_batch_max_size(32)
        .subscribe("T", "*")
        .message_listener(inbox.listener())
        .build()
        .unwrap();
    consumer.start().unwrap();
    wait_until("it has its queues", || consumer.owned_queues().len() == 2);
    // All other threads are there by the time of the first answer to a send.
    producer.send(&Message::new("Other", "m")).unwrap();
    ThreadOptions::new().stack_size(IMPOSSIBLE).install();
    producer.send(&Message::new("T", "m")).unwrap();
    let refusals = || logged(&["messages wait for", "no thread"]).len();
    wait_until("the pool has refused it twice", || refusals() >= 2);
    assert_eq!(inbox.len(), 0);
    ThreadOptions::new().install();
    inbox.wait_for_bodies(1);
    wait_until("the offset moves", || {
        let queues = producer.fetch_publish_message_queues("T").unwrap();
        cluster.committed_offset("g", &queues[0]) == Some(1)
    });
    assert!(consumer.shutdown(Duration::from_secs(10)).threads_joined);
}
