//! How many allocations the messages of a pull reply cost. The figures are exact: a change that adds
//! one to each message is seen here, not in a profile some day.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::alloc::System;
use std::sync::{Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use rocketmq_protocol::{MessageExt, StoredMessage, StoredMessages, SubscriptionData, property};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Allocations are counted for the whole process, so one test runs at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The fewest allocations of some runs: the test harness may allocate on its own thread meanwhile.
fn allocations(mut work: impl FnMut()) -> usize {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    (0..20)
        .map(|_| {
            let region = Region::new(ALLOCATOR);
            work();
            let change = region.change();
            change.allocations + change.reallocations
        })
        .min()
        .expect("there are runs")
}

const COUNT: usize = 32;

fn pull_reply() -> Bytes {
    let mut reply = BytesMut::new();
    for number in 0..COUNT {
        let message = StoredMessage {
            queue_id: 1,
            flag: 0,
            queue_offset: number as i64,
            commit_log_offset: 1024 * number as i64,
            sys_flag: 0,
            born_timestamp: 1,
            born_host: "10.0.0.1:1234".parse().unwrap(),
            store_timestamp: 2,
            store_host: "10.0.0.2:10911".parse().unwrap(),
            reconsume_times: 0,
            prepared_transaction_offset: 0,
            body: vec![7; 1024].into(),
            topic: "Topic".to_owned(),
            properties: format!(
                "TAGS\u{1}TagA\u{2}KEYS\u{1}k{number}\u{2}UNIQ_KEY\u{1}{number:032X}\u{2}"
            ),
        };
        message.encode(&mut reply).unwrap();
    }
    let reply = reply.freeze();
    // The counter of the reply's users is made with the first clone.
    drop(reply.clone());
    reply
}

fn read_all(reply: &Bytes, mut with: impl FnMut(&mut MessageExt)) {
    let mut messages = Vec::with_capacity(COUNT);
    for message in StoredMessages::new(reply.clone()) {
        let mut message = message.unwrap();
        with(&mut message);
        messages.push(message);
    }
    assert_eq!(messages.len(), COUNT);
}

/// The vector for the messages, and the topic that they share.
const OF_A_REPLY: usize = 2;

#[test]
fn the_messages_of_a_pull_reply_are_read_without_an_allocation_each() {
    let reply = pull_reply();
    assert_eq!(allocations(|| read_all(&reply, |_| {})), OF_A_REPLY);
}

#[test]
fn what_a_consumer_does_with_each_message_allocates_nothing() {
    let reply = pull_reply();
    let subscription = SubscriptionData::build("Topic", "TagA || TagB", 1).unwrap();
    let broker = "broker-a".into();
    let count = allocations(|| {
        read_all(&reply, |message| {
            assert!(subscription.matches_tag(message.tags()));
            message.set_queue(std::sync::Arc::clone(&broker), 1);
            message.set_offset_bounds(i64::MIN, i64::MAX);
            message.set_consume_start_timestamp(1_790_000_000_000);
            assert_eq!(message.msg_id().len(), 32);
            assert_eq!(message.property("nowhere"), None);
            assert_eq!(
                message.property(property::MIN_OFFSET),
                Some("-9223372036854775808")
            );
        });
    });
    assert_eq!(count, OF_A_REPLY);
}

#[test]
fn who_wants_a_map_or_memory_of_its_own_pays_for_it() {
    let reply = pull_reply();
    let with_maps = allocations(|| {
        read_all(&reply, |message| {
            assert_eq!(message.properties().len(), 3);
            assert_eq!(message.properties().len(), 3, "the map is kept");
        });
    });
    assert!(with_maps >= OF_A_REPLY + COUNT, "{with_maps} allocations");
    let ids = allocations(|| {
        read_all(&reply, |message| {
            assert_eq!(message.offset_msg_id(), message.clone().offset_msg_id());
        });
    });
    assert!(ids >= OF_A_REPLY + COUNT, "{ids} allocations");
    let detached = allocations(|| read_all(&reply, |message| message.detach_into(Bytes::from)));
    assert_eq!(
        detached,
        OF_A_REPLY + 2 * COUNT,
        "one copy of body and properties, and the count of its users"
    );
}
