//! How much memory received messages keep, and what limits it.
//!
//! Allocations of the whole process are counted, so this is one test that runs its scenarios one
//! after the other.
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

use std::alloc::System;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use rocketmq_blocking::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, DefaultMQPushConsumer,
    DefaultMQPushConsumerBuilder, MQClientManager, Message, MessageExt,
};
use rocketmq_embedded::Cluster;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use support::{GENEROUS, keep_logs, logged, producer_at, quick, started, unique, wait_until};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const KIBIBYTE: usize = 1024;
const MEBIBYTE: usize = 1024 * KIBIBYTE;
const TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes in use.
fn in_use() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// What a listener has put aside.
#[derive(Default)]
struct Kept {
    messages: Mutex<(usize, Vec<MessageExt>)>,
    changed: Condvar,
}

impl Kept {
    /// Counts a message, and keeps it if it is wanted.
    fn put(&self, message: &MessageExt, keep: bool) {
        let mut messages = self.messages.lock().unwrap();
        messages.0 += 1;
        if keep {
            messages.1.push(message.clone());
        }
        self.changed.notify_all();
    }

    fn received(&self) -> usize {
        self.messages.lock().unwrap().0
    }

    /// Lets go of what is kept, and says how much that was.
    fn clear(&self) -> usize {
        let kept = std::mem::take(&mut self.messages.lock().unwrap().1);
        kept.len()
    }

    #[track_caller]
    fn wait_for(&self, count: usize) {
        let messages = self.messages.lock().unwrap();
        let (messages, _) = self
            .changed
            .wait_timeout_while(messages, GENEROUS, |messages| messages.0 < count)
            .unwrap();
        assert!(messages.0 >= count, "{} of {count}", messages.0);
    }
}

/// Puts so many messages of a size into the one queue of a new topic.
fn fill(cluster: &Cluster, count: usize, size: usize) -> String {
    let topic = unique("T");
    cluster.create_topic(&topic, 1).unwrap();
    let producer =
        started(producer_at(&cluster.namesrv_addr()).compress_msg_body_over_howmuch(usize::MAX));
    let message = Message::new(topic.as_str(), vec![b'x'; size])
        .with_tags("A")
        .with_keys("some keys of it");
    for _ in 0..count {
        producer.send(&message).unwrap();
    }
    producer.shutdown(TIMEOUT);
    topic
}

fn builder(cluster: &Cluster, topic: &str) -> DefaultMQPushConsumerBuilder {
    quick(DefaultMQPushConsumer::builder("g"))
        .client_manager(&MQClientManager::new())
        .namesrv_addr(&cluster.namesrv_addr())
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .subscribe(topic, "*")
}

/// Starts a consumer whose listener keeps every `every`th message.
fn consume(
    builder: DefaultMQPushConsumerBuilder,
    every: usize,
) -> (DefaultMQPushConsumer, Arc<Kept>) {
    let kept = Arc::new(Kept::default());
    let keeping = Arc::clone(&kept);
    let consumer = builder
        .message_listener(
            move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
                for message in messages {
                    let keep = message.queue_offset() as usize % every == 0;
                    keeping.put(message, keep);
                }
                ConsumeConcurrentlyStatus::ConsumeSuccess
            },
        )
        .build()
        .unwrap();
    consumer.start().unwrap();
    (consumer, kept)
}

#[test]
fn received_messages_keep_no_more_than_they_may() {
    keep_logs();
    let cluster = Cluster::builder().start().unwrap();
    for (count, size) in [(1_000, 8 * KIBIBYTE), (4_000, 10), (10, MEBIBYTE)] {
        a_listener_that_keeps_all_stops_the_pulls(&cluster, count, size);
    }
    a_message_that_is_kept_does_not_keep_its_reply(&cluster);
}

fn a_listener_that_keeps_all_stops_the_pulls(cluster: &Cluster, count: usize, size: usize) {
    const MOST: usize = 2 * MEBIBYTE;
    let topic = fill(cluster, count, size);
    let before = in_use();
    let told = logged(&["max_retained_bytes"]).len();
    let (consumer, kept) = consume(builder(cluster, &topic).max_retained_bytes(MOST as u64), 1);
    let mut rounds = 0;
    while kept.received() < count {
        rounds += 1;
        wait_until("nothing more is pulled, or all was received", || {
            logged(&["max_retained_bytes"]).len() >= told + rounds || kept.received() == count
        });
        // The reply that was under way, and what the client itself needs.
        let one_more = size.max(256 * KIBIBYTE);
        let grown = in_use().saturating_sub(before);
        assert!(
            grown < MOST + 2 * one_more + MEBIBYTE,
            "{count} messages of {size} bytes: {grown} bytes after {} messages",
            kept.received()
        );
        if kept.received() < count {
            let at = kept.received();
            assert!(kept.clear() > 0);
            kept.wait_for(at + 1);
        }
    }
    assert!(rounds > 1, "the limit was never reached");
    consumer.shutdown(TIMEOUT);
}

fn a_message_that_is_kept_does_not_keep_its_reply(cluster: &Cluster) {
    const COUNT: usize = 3_200;
    const SIZE: usize = 8 * KIBIBYTE;
    let topic = fill(cluster, COUNT, SIZE);
    let before = in_use();
    // One of each reply's 32 or less.
    let (consumer, kept) = consume(builder(cluster, &topic), 32);
    kept.wait_for(COUNT);
    consumer.shutdown(TIMEOUT);
    let grown = in_use().saturating_sub(before);
    let messages = kept.clear();
    assert_eq!(messages, COUNT / 32);
    assert!(
        grown < messages * SIZE + MEBIBYTE,
        "{grown} bytes for {messages} messages of {SIZE} bytes"
    );
}
