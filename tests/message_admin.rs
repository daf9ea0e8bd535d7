//! Messages looked up by key and id, offsets by time, and messages with a time of their own.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and is outside of what loom models"
)]

mod support;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rocketmq_blocking::{DefaultMQProducer, Error, Message, MessageQueue, response_code};
use rocketmq_embedded::Cluster;
use support::{Target, producer_at, producer_in, started, unique, wait_until};

fn producer(cluster: &Cluster, namespace: &str) -> DefaultMQProducer {
    started(producer_at(&cluster.namesrv_addr()).namespace(namespace))
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since.as_millis() as i64
}

fn code(error: &Error) -> Option<i32> {
    match error {
        Error::MQClient { code, .. } => *code,
        _ => None,
    }
}

/// apache/rocketmq-client-go#1030, #1011 (PR#1031), apache/rocketmq-spring#729: of several keys none
/// found the message. Each does, and on all brokers.
#[test]
fn b100_messages_are_found_by_each_of_their_keys() {
    for namespace in ["", "ns"] {
        let cluster = Cluster::builder().brokers(2).start().unwrap();
        let producer = producer(&cluster, namespace);
        producer.create_topic("TBW102", "T", 1).unwrap();
        let mut ids = Vec::new();
        for (number, keys) in ["k1", "k1 k2", "k2", "other"].into_iter().enumerate() {
            let body = number.to_string().into_bytes();
            let message = Message::new("T", body).with_keys(keys);
            ids.push(producer.send(&message).unwrap());
        }
        let bodies = |key: &str| {
            let found = producer.query_message("T", key, 32, 0, i64::MAX).unwrap();
            assert!(found.index_last_update_timestamp > 0);
            assert!(found.messages.iter().all(|message| message.topic() == "T"));
            let messages = found.messages.iter();
            let mut bodies: Vec<_> = messages.map(|message| message.body().to_vec()).collect();
            bodies.sort();
            bodies
        };
        assert_eq!(bodies("k1"), [b"0", b"1"]);
        assert_eq!(bodies("k2"), [b"1", b"2"]);
        let none = producer
            .query_message("T", "k", 32, 0, i64::MAX)
            .unwrap_err();
        assert_eq!(code(&none), Some(response_code::NO_MESSAGE));
        let early = producer.query_message("T", "k1", 32, 0, 1000).unwrap_err();
        assert_eq!(code(&early), Some(response_code::NO_MESSAGE));
        for sent in &ids {
            let by_key = producer
                .query_message_by_uniq_key("T", &sent.msg_id)
                .unwrap();
            assert_eq!(
                (by_key.topic(), by_key.msg_id()),
                ("T", sent.msg_id.as_str())
            );
            for id in [&sent.msg_id, &sent.offset_msg_id] {
                let viewed = producer.view_message("T", id).unwrap();
                assert_eq!(viewed.offset_msg_id(), sent.offset_msg_id);
            }
        }
        // A place in a log where no message begins.
        let nowhere = format!("{}FF", &ids[0].offset_msg_id[..30]);
        let none = producer.view_message("T", &nowhere).unwrap_err();
        assert_eq!(code(&none), Some(response_code::NO_MESSAGE), "{none}");
    }
}

/// On a real cluster too, with `recallMessageEnable=true`.
#[test]
fn a_message_is_found_and_another_one_taken_back_on_any_cluster() {
    let target = Target::start(1);
    if let Some(cluster) = target.embedded() {
        let set = cluster.configure(|config| config.recall_message_enable = true);
        set.unwrap();
    }
    let topic = unique("Found");
    target.create_topic(&topic, 1);
    let producer = started(producer_in(&unique("pg"), target.namesrv()));
    let send = |body: &str, delay: Option<u64>| {
        let mut message = Message::new(topic.as_str(), body.as_bytes().to_vec()).with_keys("a b");
        if let Some(seconds) = delay {
            message.set_delay_time_sec(seconds);
        }
        producer.send(&message).unwrap()
    };
    let taken_back = send("taken back", Some(3));
    let handle = taken_back.recall_handle.unwrap();
    assert_eq!(
        producer.recall_message(&topic, &handle).unwrap(),
        taken_back.msg_id
    );
    let found = send("found", None);
    send("later", Some(4));
    wait_until("the index is written", || {
        producer.query_message(&topic, "b", 32, 0, i64::MAX).is_ok()
    });
    for id in [&found.msg_id, &found.offset_msg_id] {
        let viewed = producer.view_message(&topic, id).unwrap();
        assert_eq!(&viewed.body()[..], b"found");
    }
    let queue = MessageQueue::new(topic.as_str(), found.message_queue.broker_name(), 0);
    wait_until("the later one is there", || {
        producer.max_offset(&queue).unwrap() == 2
    });
    wait_until("it is found, too", || {
        let found = producer
            .query_message(&topic, "a", 32, 0, i64::MAX)
            .unwrap();
        let bodies = found.messages.iter().map(|message| message.body().to_vec());
        bodies.collect::<Vec<_>>() == [&b"found"[..], b"later"]
    });
}

#[test]
fn a_broker_that_is_down_is_passed_over_as_long_as_another_one_has_the_message() {
    let cluster = Cluster::builder().brokers(2).start().unwrap();
    cluster.create_topic("T", 1).unwrap();
    let producer = producer(&cluster, "");
    let message = Message::new("T", b"x".as_slice()).with_keys("k");
    let sent = producer.send(&message).unwrap();
    let other = if sent.message_queue.broker_name() == "broker-a" {
        "broker-b"
    } else {
        "broker-a"
    };
    cluster.kill_broker(other).unwrap();
    let found = producer.query_message("T", "k", 32, 0, i64::MAX).unwrap();
    assert_eq!(found.messages.len(), 1);
    let none = producer
        .query_message("T", "none", 32, 0, i64::MAX)
        .unwrap_err();
    let Error::MQClient { source, .. } = &none else {
        panic!("{none}");
    };
    assert!(
        source.is_some(),
        "it says that a broker could not be asked: {none}"
    );
}

#[test]
fn offsets_are_found_by_time() {
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("T", 1).unwrap();
    let producer = producer(&cluster, "");
    let queue = MessageQueue::new("T", "broker-a", 0);
    assert_eq!(producer.earliest_msg_store_time(&queue).unwrap(), -1);
    let before = now();
    for _ in 0..2 {
        producer.send(&Message::new("T", b"x".as_slice())).unwrap();
        let stored = cluster.messages("T").last().unwrap().store_timestamp();
        wait_until("the clock has gone on", || now() > stored);
    }
    let messages = cluster.messages("T");
    let times: Vec<_> = messages.iter().map(|m| m.store_timestamp()).collect();
    assert!(times[0] < times[1] && times[0] >= before);
    assert_eq!(producer.earliest_msg_store_time(&queue).unwrap(), times[0]);
    let lower = |time| producer.search_offset(&queue, time).unwrap();
    let upper = |time| producer.search_upper_offset(&queue, time).unwrap();
    assert_eq!(
        (lower(0), lower(times[0] + 1), lower(times[1] + 1)),
        (0, 1, 2)
    );
    assert_eq!((upper(0), upper(times[1] - 1), upper(i64::MAX)), (0, 0, 1));
}

#[test]
fn messages_wait_for_their_time_unless_they_are_taken_back() {
    let cluster = Cluster::builder()
        .delay_levels([Duration::from_millis(200)])
        .configure(|config| {
            config.timer_precision = Duration::from_millis(100);
            config.recall_message_enable = true;
        })
        .start()
        .unwrap();
    cluster.create_topic("T", 1).unwrap();
    let producer = producer(&cluster, "");
    let message = |name: &str| Message::new("T", name.as_bytes().to_vec());
    let mut taken_back = message("taken back");
    taken_back.set_delay_time_sec(2);
    let sent = producer.send(&taken_back).unwrap();
    let handle = sent.recall_handle.unwrap();
    assert_eq!(producer.recall_message("T", &handle).unwrap(), sent.msg_id);

    let start = now();
    let mut later = message("at a time");
    later.set_deliver_time_ms(start + 900);
    assert!(producer.send(&later).unwrap().recall_handle.is_some());
    let mut soon = message("after a time");
    soon.set_delay_time_ms(500);
    producer.send(&soon).unwrap();
    let mut level = message("of a level");
    level.set_delay_time_level(1);
    assert_eq!(producer.send(&level).unwrap().recall_handle, None);
    assert_eq!(cluster.stored_count("T"), 0);
    let mut last = message("last");
    last.set_delay_time_sec(3);
    producer.send(&last).unwrap();
    wait_until("all are there", || cluster.stored_count("T") == 4);
    let messages = cluster.messages("T");
    let bodies: Vec<_> = messages.iter().map(|m| m.body().to_vec()).collect();
    assert_eq!(
        bodies,
        [&b"of a level"[..], b"after a time", b"at a time", b"last"]
    );
    assert!(messages[2].store_timestamp() >= start + 900);

    for (topic, handle) in [("T", "nonsense"), ("%RETRY%g", &handle), ("", &handle)] {
        let refused = producer.recall_message(topic, handle).unwrap_err();
        assert!(matches!(refused, Error::InvalidMessage { .. }), "{refused}");
    }
    let late = producer.recall_message("T", &handle).unwrap_err();
    assert_eq!(late.broker_code(), Some(604), "{late}");
    cluster
        .configure(|config| config.recall_message_enable = false)
        .unwrap();
    let off = producer.recall_message("T", &handle).unwrap_err();
    assert_eq!(off.broker_code(), Some(16), "{off}");
}
