use std::collections::BTreeMap;

use rocketmq_blocking::{Error, Message, property};

use crate::support::{Inbox, cluster_of};
use crate::{consumer_builder, producer, producer_builder, says, started};

/// What separates properties would end one and begin another: a message came with other tags and
/// keys than it was sent with. It is refused, and the rest goes as it is.
#[test]
fn separators_in_tags_keys_and_properties_are_refused() {
    let cluster = cluster_of(1, 1);
    let producer = producer(&cluster.namesrv_addr());
    let with = |name: &str, value: &str| {
        let mut message = Message::new("T", "m");
        message.put_property(name, value);
        message
    };
    for (message, name) in [
        (
            Message::new("T", "m").with_tags("A\u{2}KEYS\u{1}k"),
            "\"TAGS\"",
        ),
        (Message::new("T", "m").with_tags("A\u{1}B"), "\"TAGS\""),
        (Message::new("T", "m").with_keys("a\u{1}b"), "\"KEYS\""),
        (
            Message::new("T", "m").with_key_list(["a", "b\u{2}"]),
            "\"KEYS\"",
        ),
        (with("a\u{1}b", "v"), "\"a\\u{1}b\""),
        (with("a", "v\u{2}"), "\"a\" = \"v\\u{2}\""),
        (
            with("", "v"),
            "a property without a name has the value \"v\"",
        ),
    ] {
        let error = producer.send(&message).unwrap_err();
        assert!(matches!(error, Error::InvalidMessage { .. }), "{error:?}");
        says(&error, &["topic \"T\"", name]);
        assert!(!error.is_retryable() && !error.may_have_been_stored());
    }
    assert_eq!(cluster.stored_count("T"), 0);
    producer
        .send(&with("a b\n=,;\u{3}", "\u{0}\u{3}=,; é").with_tags("A | B"))
        .unwrap();
    let stored = cluster.messages("T");
    assert_eq!(stored[0].property("a b\n=,;\u{3}"), Some("\u{0}\u{3}=,; é"));
    assert_eq!(stored[0].tags(), Some("A | B"));
}

/// The rules that the documentation of tags and of properties states.
#[test]
fn an_empty_value_is_none_and_bars_in_a_tag_match_everything_only() {
    let cluster = cluster_of(1, 1);
    let namesrv = cluster.namesrv_addr();
    let producer = producer(&namesrv);
    for tag in ["", "A||B", " A "] {
        producer
            .send(&Message::new("T", format!("of {tag:?}")).with_tags(tag))
            .unwrap();
    }
    producer
        .send(&Message::new("T", "of A").with_tags("A"))
        .unwrap();
    let inboxes = ["*", "A||B"].map(|expression| {
        let inbox = Inbox::new();
        let group = if expression == "*" { "all" } else { "some" };
        let consumer = consumer_builder(&namesrv, group)
            .subscribe("T", expression)
            .message_listener(inbox.listener())
            .build()
            .unwrap();
        consumer.start().unwrap();
        (consumer, inbox)
    });
    inboxes[0].1.wait_for_bodies(4);
    inboxes[1].1.wait_for_bodies(1);
    let all = inboxes[0].1.messages();
    assert_eq!(all[0].tags(), None);
    let only = BTreeMap::from([("of A".to_owned(), 1)]);
    assert_eq!(inboxes[1].1.bodies(), only);
}

#[test]
fn names_that_steer_clients_and_brokers_are_no_user_properties() {
    let mut message = Message::new("T", "m");
    for name in ["TAGS", "KEYS", "DELAY", "UNIQ_KEY", "WAIT", "RETRY_TOPIC"] {
        let error = message.put_user_property(name, "v").unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    }
    for (name, value) in [("", "v"), ("a", " "), ("a\u{1}", "v"), ("a", "\u{2}")] {
        message.put_user_property(name, value).unwrap_err();
    }
    assert_eq!(message.properties(), Message::new("T", "m").properties());
}

#[test]
fn bodies_and_properties_have_limits_that_the_error_tells() {
    let cluster = cluster_of(1, 1);
    let small = started(producer_builder(&cluster.namesrv_addr()).max_message_size(10));
    let refused = |body: &str| small.send(&Message::new("T", body.to_owned())).unwrap_err();
    says(&refused(""), &["topic \"T\"", "the body is empty"]);
    says(
        &refused("12345678901"),
        &["11 bytes", "max_message_size is 10"],
    );
    let mut message = Message::new("T", "m");
    message.put_property("a", "v".repeat(40_000));
    says(
        &small.send(&message).unwrap_err(),
        &["topic \"T\"", "the properties have 400", "32767"],
    );
    let mut message = Message::new("T", "m");
    message.put_property(property::INNER_MULTI_DISPATCH, "%LMQ%a,%LMQ%b/c");
    says(
        &small.send(&message).unwrap_err(),
        &["topic \"T\"", "%LMQ%b/c", "'/'"],
    );
    assert_eq!(cluster.stored_count("T"), 0);
    small.send(&Message::new("T", "1234567890")).unwrap();

    // The broker's own limit is told with its address and words, and not tried elsewhere.
    let large = started(
        producer_builder(&cluster.namesrv_addr())
            .retry_times_when_send_failed(2)
            .max_message_size(usize::MAX)
            .compress_msg_body_over_howmuch(usize::MAX),
    );
    let error = large
        .send(&Message::new("T", vec![0; 5 * 1024 * 1024]))
        .unwrap_err();
    let addr = cluster.broker_addr("broker-a").unwrap();
    says(
        &error,
        &[
            "topic T",
            "after 1 attempts",
            "broker-a",
            &addr,
            "MESSAGE_ILLEGAL (13)",
        ],
    );
    assert!(!error.is_retryable() && !error.may_have_been_stored());
    assert_eq!(cluster.stored_count("T"), 1);
}
