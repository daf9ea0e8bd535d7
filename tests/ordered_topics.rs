//! Topics whose queues somebody has set the order of, at the name server.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and is outside of what loom models"
)]

mod support;

use std::time::Duration;

use rocketmq_blocking::{
    DefaultMQProducer, Error, Message, MessageQueue, SelectMessageQueueByHash,
};
use rocketmq_embedded::Cluster;
use support::{GENEROUS, keep_logs, logged, producer_at, started, wait_until};

const ORDER_TOPIC_CONFIG: &str = "ORDER_TOPIC_CONFIG";

fn cluster() -> Cluster {
    Cluster::builder()
        .brokers(2)
        .configure_name_server(|config| config.order_message_enable = true)
        .start()
        .unwrap()
}

fn producer(cluster: &Cluster) -> DefaultMQProducer {
    started(
        producer_at(&cluster.namesrv_addr())
            .send_msg_timeout(GENEROUS)
            .poll_name_server_interval(Duration::from_millis(50)),
    )
}

fn name(mq: &MessageQueue) -> String {
    let broker = mq.broker_name().trim_start_matches("broker-");
    format!("{broker}{}", mq.queue_id())
}

/// The queues that sends to a topic go round.
fn queues(producer: &DefaultMQProducer, topic: &str) -> String {
    let queues = producer.fetch_publish_message_queues(topic).unwrap();
    queues.iter().map(name).collect::<Vec<_>>().join(" ")
}

/// The queues of so many sends, one after the other.
fn round(producer: &DefaultMQProducer, topic: &str, sends: usize) -> Vec<String> {
    (0..sends)
        .map(|_| {
            let sent = producer.send(&Message::new(topic, "m")).unwrap();
            name(&sent.message_queue)
        })
        .collect()
}

#[test]
fn sends_go_round_the_queues_in_the_order_that_is_set() {
    let cluster = cluster();
    cluster.create_topic("T", 4).unwrap();
    let producer = producer(&cluster);
    assert_eq!(queues(&producer, "T"), "a0 a1 a2 a3 b0 b1 b2 b3");

    cluster.put_kv_config(ORDER_TOPIC_CONFIG, "T", "broker-b:2;broker-a:1");
    assert_eq!(queues(&producer, "T"), "b0 b1 a0");
    wait_until("the producer has the new route", || {
        let round = round(&producer, "T", 8);
        round
            .iter()
            .all(|name| ["b0", "b1", "a0"].contains(&&**name))
    });
    let mut got = round(&producer, "T", 6);
    let first = got.iter().position(|name| name == "b0").unwrap();
    got.rotate_left(first % 3);
    assert_eq!(got, ["b0", "b1", "a0", "b0", "b1", "a0"]);

    cluster.delete_kv_config(ORDER_TOPIC_CONFIG, "T");
    assert_eq!(queues(&producer, "T"), "a0 a1 a2 a3 b0 b1 b2 b3");
    wait_until("the producer goes round all queues again", || {
        round(&producer, "T", 8).contains(&"a3".to_owned())
    });
}

/// What the order is for: a key keeps its queue while a broker is gone, and its messages wait or fail
/// rather than overtake others elsewhere.
#[test]
fn a_key_keeps_its_queue_while_the_broker_is_gone() {
    let cluster = cluster();
    for topic in ["Fixed", "Free"] {
        cluster.create_topic(topic, 1).unwrap();
    }
    cluster.put_kv_config(ORDER_TOPIC_CONFIG, "Fixed", "broker-a:1;broker-b:1");
    let producer = producer(&cluster);
    let send = |topic: &str, key: i32| {
        let message = Message::new(topic, "m");
        producer.send_with_selector(&message, &SelectMessageQueueByHash, &key)
    };
    for topic in ["Fixed", "Free"] {
        assert_eq!(name(&send(topic, 0).unwrap().message_queue), "a0");
        assert_eq!(name(&send(topic, 1).unwrap().message_queue), "b0");
    }
    cluster.stop_broker("broker-b").unwrap();
    wait_until("keys of the other topic have moved", || {
        send("Free", 1).is_ok_and(|sent| name(&sent.message_queue) == "a0")
    });
    assert_eq!(queues(&producer, "Fixed"), "a0 b0");
    let error = send("Fixed", 1).unwrap_err();
    assert!(!matches!(error, Error::InvalidMessage { .. }), "{error}");
    assert_eq!(name(&send("Fixed", 0).unwrap().message_queue), "a0");

    cluster.start_broker("broker-b").unwrap();
    wait_until("the key's queue is there again", || {
        send("Fixed", 1).is_ok_and(|sent| name(&sent.message_queue) == "b0")
    });
}

/// apache/rocketmq#10838 (PR#11127, #11115): one segment that was typed wrong made the route fail, and
/// with it those of all other topics.
#[test]
fn b80_a_mistyped_order_configuration_is_told_of_and_other_topics_go_on() {
    keep_logs();
    let cluster = cluster();
    for topic in ["Mistyped", "Other"] {
        cluster.create_topic(topic, 2).unwrap();
    }
    let conf = "broker-a:2;broker-b;broker-b:x;:3;broker-b:-1;broker-b:2147483647;";
    cluster.put_kv_config(ORDER_TOPIC_CONFIG, "Mistyped", conf);
    let producer = producer(&cluster);
    assert_eq!(queues(&producer, "Mistyped"), "a0 a1");
    let mut got = round(&producer, "Mistyped", 2);
    got.sort();
    assert_eq!(got, ["a0", "a1"]);
    assert_eq!(queues(&producer, "Other"), "a0 a1 b0 b1");
    round(&producer, "Other", 1);

    let told = logged(&["order configuration of topic Mistyped"]);
    let [(log::Level::Warn, line)] = &told[..] else {
        panic!("one warning: {told:?}");
    };
    for segment in [
        "5 of its segments",
        "\"broker-b\"",
        "\"broker-b:x\"",
        "\":3\"",
        "\"broker-b:-1\"",
    ] {
        assert!(line.contains(segment), "{segment} in {line}");
    }

    // The routes of other topics are still heard of, and the warning does not come at every poll.
    cluster.create_topic("Other", 3).unwrap();
    wait_until("the other topic's new queues are used", || {
        round(&producer, "Other", 6).contains(&"b2".to_owned())
    });
    assert_eq!(logged(&["order configuration of topic Mistyped"]).len(), 1);
}
