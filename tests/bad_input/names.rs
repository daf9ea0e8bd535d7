use rocketmq_blocking::{DefaultMQProducer, DefaultMQPushConsumer, Error, Message};
use rocketmq_embedded::Cluster;

use crate::support::Inbox;
use crate::{consumer_builder, problems, producer, producer_builder, says};

const ALLOWED: &str = "allowed are % | - _ 0-9 a-z A-Z";

#[test]
fn a_topic_that_cannot_be_is_refused_wherever_it_is_named() {
    let cluster = Cluster::builder().start().unwrap();
    let namesrv = cluster.namesrv_addr();
    let producer = producer(&namesrv);
    let consumer = consumer_builder(&namesrv, "g")
        .message_listener(Inbox::new().listener())
        .build()
        .unwrap();
    let long = "t".repeat(128);
    for (topic, why) in [
        ("", "the name is blank"),
        (" \t", "the name is blank"),
        ("a b", ALLOWED),
        ("a\u{1}b", "contains '\\u{1}'"),
        ("主题", "contains '主'"),
        ("a/b", "contains '/'"),
        (&long, "the name is longer than 127 characters"),
    ] {
        let quoted = format!("{topic:?}");
        let sent = producer.send(&Message::new(topic, "m")).unwrap_err();
        assert!(matches!(sent, Error::InvalidMessage { .. }), "{sent:?}");
        says(&sent, &["topic", &quoted, why]);
        assert!(!sent.is_retryable() && !sent.may_have_been_stored());
        let created = producer.create_topic("TBW102", topic, 1).unwrap_err();
        says(&created, &["topic", &quoted, why]);
        says(
            &consumer.subscribe(topic, "*").unwrap_err(),
            &[&quoted, why],
        );
        let built = consumer_builder(&namesrv, "g")
            .subscribe(topic, "*")
            .message_listener(Inbox::new().listener())
            .build();
        says(&built.unwrap_err(), &[&quoted, why]);
    }
    let number = producer.create_topic("TBW102", "T", 0).unwrap_err();
    says(&number, &["queue_num is 0, the least is 1"]);
}

#[test]
fn a_topic_that_brokers_write_is_not_sent_to() {
    let error = producer("127.0.0.1:1")
        .send(&Message::new("SCHEDULE_TOPIC_XXXX", "m"))
        .unwrap_err();
    says(
        &error,
        &[
            "\"SCHEDULE_TOPIC_XXXX\"",
            "only brokers write to this topic",
        ],
    );
}

#[test]
fn a_group_that_cannot_be_is_refused() {
    let long = "g".repeat(121);
    for (group, why) in [
        ("", "the name is blank"),
        ("a.b", ALLOWED),
        ("a\u{2}b", "contains '\\u{2}'"),
        (&long, "the name is longer than 120 characters"),
    ] {
        let quoted = format!("group {group:?}: ");
        let built = DefaultMQProducer::builder(group)
            .namesrv_addr("h:1")
            .build();
        says(&built.unwrap_err(), &["producer ", &quoted, why]);
        let built = DefaultMQPushConsumer::builder(group)
            .namesrv_addr("h:1")
            .subscribe("T", "*")
            .message_listener(Inbox::new().listener())
            .build();
        says(&built.unwrap_err(), &["consumer ", &quoted, why]);
    }
    let built = DefaultMQProducer::builder("DEFAULT_PRODUCER")
        .namesrv_addr("h:1")
        .build();
    says(&built.unwrap_err(), &["DEFAULT_PRODUCER is reserved"]);
    let built = consumer_builder("h:1", "DEFAULT_CONSUMER")
        .message_listener(Inbox::new().listener())
        .build();
    says(&built.unwrap_err(), &["DEFAULT_CONSUMER is reserved"]);
}

/// With its namespace a topic may be too long; and the group's own retry topic is not the user's.
#[test]
fn a_topic_that_servers_would_refuse_is_refused_by_build() {
    let topic = "t".repeat(120);
    let built = consumer_builder("h:1", "g")
        .namespace("namespace")
        .subscribe(&topic, "*")
        .subscribe("%RETRY%g", "A")
        .subscribe("U", "||")
        .message_listener(Inbox::new().listener())
        .build();
    let problems = problems(built.unwrap_err());
    let about = |word: &str| problems.iter().filter(|p| p.contains(word)).count();
    assert_eq!(about("longer than 127 characters"), 1, "{problems:?}");
    assert_eq!(
        about("it is the group's own retry topic"),
        1,
        "{problems:?}"
    );
    assert_eq!(about("topic \"U\""), 1, "{problems:?}");
    assert_eq!(problems.len(), 3, "{problems:?}");
}

#[test]
fn parts_of_a_client_id_have_a_length_and_no_control_characters() {
    let built = producer_builder("h:1")
        .instance_name("a\nb")
        .unit_name("u".repeat(256))
        .build();
    assert_eq!(
        problems(built.unwrap_err()),
        [
            "instance_name \"a\\nb\" contains a control character",
            "unit_name has 256 bytes, the most is 255",
        ]
    );
    let built = producer_builder("h:1")
        .instance_name("i".repeat(255))
        .build();
    assert!(built.is_ok());
}

#[test]
fn a_namespace_has_no_separator() {
    let built = producer_builder("h:1").namespace("a%b").build();
    says(&built.unwrap_err(), &["namespace \"a%b\"", "%"]);
}
