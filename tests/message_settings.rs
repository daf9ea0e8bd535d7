//! What a message asks of others, and what it carries for them. On a real cluster too.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and is outside of what loom models"
)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rocketmq_blocking::{
    ConsumeFromWhere, DefaultMQProducer, DefaultMQPushConsumer, MQClientManager, Message,
    SelectMessageQueueByHash, SendStatus,
};
use support::{GENEROUS, Inbox, Target, producer_in, quick, started, unique};

const TIMEOUT: Duration = Duration::from_secs(5);

fn producer(target: &Target) -> DefaultMQProducer {
    let producer = producer_in(&unique("pg"), target.namesrv());
    started(producer.send_msg_timeout(GENEROUS))
}

fn consumer(target: &Target, topic: &str, inbox: &Inbox) -> DefaultMQPushConsumer {
    let consumer = quick(DefaultMQPushConsumer::builder(unique("cg")))
        .client_manager(&MQClientManager::new())
        .namesrv_addr(target.namesrv())
        .subscribe(topic, "*")
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .message_listener(inbox.listener())
        .build()
        .unwrap();
    consumer.start().unwrap();
    consumer
}

#[test]
fn what_is_set_on_a_message_comes_with_it() {
    let target = Target::start(1);
    let topic = unique("Set");
    target.create_topic(&topic, 1);
    let mut message = Message::new(&*topic, "m").with_tags("A").with_keys("k1 k2");
    message.set_flag(7);
    message.set_wait_store_msg_ok(false);
    message.set_sharding_key("order-7");
    message.set_buyer_id("b 1");
    message.set_instance_id("MQ_INST_1");
    message.put_user_property("colour", "blue").unwrap();
    let producer = producer(&target);
    let sent = producer.send(&message).unwrap();
    assert_eq!(sent.send_status, SendStatus::SendOk);

    let inbox = Inbox::new();
    let consumer = consumer(&target, &topic, &inbox);
    let received = inbox.wait_for(1).remove(0);
    for (name, value) in message.properties() {
        assert_eq!(received.property(name), Some(value.as_str()), "{name}");
    }
    assert_eq!(received.flag(), 7);
    assert!(!received.is_wait_store_msg_ok());
    assert_eq!(received.sharding_key(), Some("order-7"));
    assert_eq!(received.buyer_id(), Some("b 1"));
    assert_eq!(received.msg_id(), sent.msg_id);
    consumer.shutdown(TIMEOUT);
    producer.shutdown(TIMEOUT);
}

#[test]
fn messages_of_one_sharding_key_keep_their_order() {
    const KEYS: usize = 5;
    const PER_KEY: usize = 20;
    let target = Target::start(1);
    let topic = unique("Sharded");
    target.create_topic(&topic, 4);
    let producer = producer(&target);
    for number in 0..PER_KEY {
        for key in 0..KEYS {
            let key = format!("order-{key}");
            let mut message = Message::new(&*topic, number.to_string());
            message.set_sharding_key(&*key);
            producer
                .send_with_selector(&message, &SelectMessageQueueByHash, &*key)
                .unwrap();
        }
    }
    let inbox = Inbox::new();
    let consumer = consumer(&target, &topic, &inbox);
    let mut queues: BTreeMap<String, BTreeSet<i32>> = BTreeMap::new();
    let mut offsets: BTreeMap<String, BTreeMap<i64, String>> = BTreeMap::new();
    for message in inbox.wait_for(KEYS * PER_KEY) {
        let key = message.sharding_key().unwrap().to_owned();
        let body = String::from_utf8(message.body().to_vec()).unwrap();
        queues
            .entry(key.clone())
            .or_default()
            .insert(message.queue_id());
        let of_key = offsets.entry(key).or_default();
        of_key.insert(message.queue_offset(), body);
    }
    assert_eq!(queues.len(), KEYS);
    let used: BTreeSet<_> = queues.values().flatten().collect();
    assert!(used.len() > 1, "the keys are spread: {queues:?}");
    for (key, of_key) in offsets {
        assert_eq!(queues[&key].len(), 1, "{key}");
        let bodies: Vec<String> = of_key.into_values().collect();
        let expected: Vec<String> = (0..PER_KEY).map(|number| number.to_string()).collect();
        assert_eq!(bodies, expected, "{key}");
    }
    consumer.shutdown(TIMEOUT);
    producer.shutdown(TIMEOUT);
}
