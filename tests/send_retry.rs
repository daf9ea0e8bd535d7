//! What a send does when brokers fail.
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

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rocketmq_blocking::{
    DefaultMQProducer, Error, Message, SendResult, client_error_code, response_code,
};
use rocketmq_embedded::{Cluster, ControlAction, ControlHandle, ControlScope, ControlTimes};
use support::{GENEROUS, cluster_of, producer_of, started, wait_until};

const SEND_MESSAGE_V2: i32 = 310;
const GET_ROUTEINFO_BY_TOPIC: i32 = 105;
/// Not in the set of codes after which another broker is tried.
const MESSAGE_ILLEGAL: i32 = 13;

fn at_broker_a(cluster: &Cluster, action: ControlAction) -> ControlHandle {
    cluster.control_on(
        ControlScope::Broker("broker-a".to_owned()),
        SEND_MESSAGE_V2,
        action,
        ControlTimes::UntilLifted,
    )
}

fn everywhere(cluster: &Cluster, action: ControlAction) -> ControlHandle {
    cluster.control(SEND_MESSAGE_V2, action, ControlTimes::UntilLifted)
}

fn busy() -> ControlAction {
    ControlAction::Respond(response_code::SYSTEM_BUSY, Some("[OVERLOAD]".to_owned()))
}

/// Sends eight messages, which all have to be stored by the other broker, once each.
#[track_caller]
fn all_go_to_broker_b(cluster: &Cluster, producer: &DefaultMQProducer) -> Vec<SendResult> {
    let results: Vec<_> = (0..8)
        .map(|n| producer.send(&Message::new("T", format!("m{n}"))).unwrap())
        .collect();
    assert!(
        results
            .iter()
            .all(|r| r.message_queue.broker_name() == "broker-b"),
        "{results:?}"
    );
    let sent: BTreeSet<&str> = results
        .iter()
        .map(|result| result.msg_id.as_str())
        .collect();
    assert_eq!(sent.len(), 8);
    let stored = cluster.messages("T");
    assert_eq!(stored.len(), 8, "each is stored once");
    assert_eq!(
        stored.iter().map(|m| m.msg_id()).collect::<BTreeSet<_>>(),
        sent
    );
    results
}

#[test]
fn a_busy_broker_is_left_for_another() {
    let cluster = cluster_of(2, 4);
    let control = at_broker_a(&cluster, busy());
    all_go_to_broker_b(&cluster, &started(producer_of(&cluster)));
    assert!(control.hits() > 0, "the busy broker was asked");
}

#[test]
fn a_broker_that_closes_the_connection_is_left_for_another() {
    let cluster = cluster_of(2, 4);
    let control = at_broker_a(&cluster, ControlAction::Close);
    all_go_to_broker_b(&cluster, &started(producer_of(&cluster)));
    assert!(control.hits() > 0);
}

#[test]
fn a_silent_broker_is_left_for_another_within_the_time_of_an_attempt() {
    let cluster = cluster_of(2, 4);
    let control = at_broker_a(&cluster, ControlAction::Drop);
    let producer = producer_of(&cluster)
        .send_msg_timeout(GENEROUS)
        .send_msg_max_timeout_per_request(Duration::from_millis(100));
    all_go_to_broker_b(&cluster, &started(producer));
    assert!(control.hits() > 0);
}

#[test]
fn a_broker_that_is_down_is_left_for_another() {
    let cluster = cluster_of(2, 4);
    let producer = started(producer_of(&cluster));
    // Now it has the route of both.
    let before = producer.fetch_publish_message_queues("T").unwrap();
    assert_eq!(before.len(), 8);
    let refused = at_broker_a(&cluster, busy());
    let first = producer.send(&Message::new("T", "first")).unwrap();
    assert_eq!(first.message_queue.broker_name(), "broker-b");
    refused.lift();
    cluster.stop_broker("broker-a").unwrap();
    for n in 0..8 {
        let result = producer.send(&Message::new("T", format!("m{n}"))).unwrap();
        assert_eq!(result.message_queue.broker_name(), "broker-b");
    }
    assert_eq!(cluster.stored_count("T"), 9);

    cluster.start_broker("broker-a").unwrap();
    wait_until("the broker that is back is used again", || {
        let result = producer.send(&Message::new("T", "back")).unwrap();
        result.message_queue.broker_name() == "broker-a"
    });
}

#[test]
fn an_answer_that_another_broker_would_give_too_is_returned_at_once() {
    let cluster = cluster_of(2, 4);
    let action = ControlAction::Respond(MESSAGE_ILLEGAL, Some("no such thing".to_owned()));
    let control = everywhere(&cluster, action);
    let error = started(producer_of(&cluster))
        .send(&Message::new("T", "m"))
        .unwrap_err();
    assert_eq!(error.broker_code(), Some(MESSAGE_ILLEGAL));
    assert!(error.to_string().contains("no such thing"), "{error}");
    assert!(
        !error.is_retryable() && !error.may_have_been_stored(),
        "{error:?}"
    );
    assert_eq!(control.hits(), 1);
    assert_eq!(cluster.stored_count("T"), 0);
}

#[test]
fn the_codes_that_lead_to_another_broker_can_be_chosen() {
    let cluster = cluster_of(2, 4);
    let illegal = ControlAction::Respond(MESSAGE_ILLEGAL, None);
    let control = at_broker_a(&cluster, illegal);
    let producer = producer_of(&cluster).retry_response_codes([MESSAGE_ILLEGAL]);
    all_go_to_broker_b(&cluster, &started(producer));
    assert!(control.hits() > 0);
}

#[test]
fn attempts_are_counted_and_their_last_answer_is_told() {
    let cluster = cluster_of(2, 4);
    for retries in [0, 1, 2, 5] {
        let control = everywhere(&cluster, busy());
        let producer = started(producer_of(&cluster).retry_times_when_send_failed(retries));
        let error = producer.send(&Message::new("T", "m")).unwrap_err();
        assert_eq!(control.hits(), u64::from(retries) + 1);
        assert_eq!(error.broker_code(), Some(response_code::SYSTEM_BUSY));
        assert!(error.is_retryable());
        assert!(
            !error.may_have_been_stored(),
            "every broker has answered: {error:?}"
        );
        assert!(error.to_string().contains("[OVERLOAD]"), "{error}");
        control.lift();
    }
    assert_eq!(cluster.stored_count("T"), 0);
}

#[test]
fn when_all_brokers_are_down_the_error_names_them() {
    let cluster = cluster_of(2, 4);
    let producer = started(producer_of(&cluster));
    producer
        .send(&Message::new("T", "while they are up"))
        .unwrap();
    cluster.stop_broker("broker-a").unwrap();
    cluster.stop_broker("broker-b").unwrap();
    let mut errors = Vec::new();
    wait_until("the closed connections are noticed", || {
        let error = producer.send(&Message::new("T", "m")).unwrap_err();
        let noticed = !error.may_have_been_stored();
        errors.push(error);
        noticed
    });
    let error = errors.last().unwrap();
    let text = error.to_string();
    assert!(
        text.contains("broker-a") && text.contains("broker-b"),
        "{text}"
    );
    assert!(text.contains("3 attempts"), "{text}");
    let code = client_error_code::CONNECT_BROKER_EXCEPTION;
    assert!(
        matches!(error, Error::MQClient { code: Some(found), .. } if *found == code),
        "{error:?}"
    );
    assert!(error.is_retryable());
    assert_eq!(error.broker_code(), None);
    assert_eq!(cluster.stored_count("T"), 1);
}

#[test]
fn only_what_was_written_and_not_answered_may_have_been_stored() {
    let cluster = cluster_of(2, 4);
    let quick = || producer_of(&cluster).send_msg_timeout(Duration::from_millis(300));
    let fails = |action| {
        let control = everywhere(&cluster, action);
        let error = started(quick()).send(&Message::new("T", "m")).unwrap_err();
        assert!(control.hits() > 0);
        control.lift();
        error
    };
    let silent = fails(ControlAction::Drop);
    assert!(
        silent.may_have_been_stored() && silent.is_retryable(),
        "{silent:?}"
    );
    let closed = fails(ControlAction::Close);
    assert!(
        closed.may_have_been_stored() && closed.is_retryable(),
        "{closed:?}"
    );
    let answered = fails(busy());
    assert!(!answered.may_have_been_stored(), "{answered:?}");
}

#[test]
fn a_doubt_outlives_a_later_clear_answer() {
    let cluster = cluster_of(2, 4);
    // Whichever broker is first says nothing, and the other one refuses.
    let silent = cluster.control(SEND_MESSAGE_V2, ControlAction::Drop, ControlTimes::Once);
    let refusing = everywhere(&cluster, busy());
    let producer =
        producer_of(&cluster).send_msg_max_timeout_per_request(Duration::from_millis(100));
    let error = started(producer).send(&Message::new("T", "m")).unwrap_err();
    assert_eq!((silent.hits(), refusing.hits()), (1, 2));
    assert!(error.may_have_been_stored(), "{error:?}");
}

#[test]
fn a_send_ends_at_its_timeout_whatever_keeps_silent() {
    let cluster = cluster_of(2, 4);
    let margin = Duration::from_secs(5);
    let timeout = Duration::from_millis(500);
    for code in [SEND_MESSAGE_V2, GET_ROUTEINFO_BY_TOPIC] {
        let control = cluster.control(code, ControlAction::Drop, ControlTimes::UntilLifted);
        let producer = started(producer_of(&cluster));
        let begun = Instant::now();
        let error = producer
            .send_with_timeout(&Message::new("T", "m"), timeout)
            .unwrap_err();
        let took = begun.elapsed();
        assert!(
            took >= timeout && took < timeout + margin,
            "{took:?}: {error}"
        );
        assert!(error.is_retryable(), "{error:?}");
        assert!(control.hits() > 0);
        control.lift();
    }
}

#[test]
fn every_attempt_has_the_same_unique_key() {
    let cluster = cluster_of(2, 4);
    // The first attempt is stored too, but its answer comes too late.
    let late = ControlAction::Delay(Duration::from_millis(500));
    let control = cluster.control(SEND_MESSAGE_V2, late, ControlTimes::Times(2));
    let producer = producer_of(&cluster)
        .send_msg_timeout(GENEROUS)
        .send_msg_max_timeout_per_request(Duration::from_millis(50));
    let result = started(producer).send(&Message::new("T", "m")).unwrap();
    assert_eq!(control.hits(), 2);
    wait_until("all attempts are stored", || cluster.stored_count("T") == 3);
    let stored = cluster.messages("T");
    assert!(
        stored.iter().all(|m| m.msg_id() == result.msg_id),
        "{stored:?}"
    );
    assert!(
        stored
            .iter()
            .all(|m| m.property("UNIQ_KEY") == Some(&result.msg_id))
    );
}

#[test]
fn what_no_broker_would_take_does_not_reach_the_wire() {
    let cluster = cluster_of(2, 4);
    let sent = everywhere(&cluster, ControlAction::Delay(Duration::ZERO));
    let asked = cluster.control(
        GET_ROUTEINFO_BY_TOPIC,
        ControlAction::Delay(Duration::ZERO),
        ControlTimes::UntilLifted,
    );
    let producer = started(producer_of(&cluster).max_message_size(1000));
    let long = "x".repeat(20_000);
    let mut too_long = Message::new("T", "m");
    too_long.put_user_property("a", long.as_str()).unwrap();
    too_long.put_user_property("b", long.as_str()).unwrap();
    for (message, why) in [
        (Message::new("T", ""), "the body is empty"),
        (Message::new("T", vec![1; 1001]), "1001 bytes"),
        (Message::new("", "m"), "topic"),
        (Message::new("no blanks", "m"), "' '"),
        (Message::new("x".repeat(128), "m"), "127"),
        (
            Message::new("SCHEDULE_TOPIC_XXXX", "m"),
            "only brokers write",
        ),
        (too_long, "the properties have"),
    ] {
        let error = producer.send(&message).unwrap_err();
        assert!(matches!(error, Error::InvalidMessage { .. }), "{error:?}");
        assert!(error.to_string().contains(why), "{error}");
        assert!(!error.is_retryable() && !error.may_have_been_stored());
    }
    assert_eq!((sent.hits(), asked.hits()), (0, 0));
    assert_eq!(cluster.connection_count(), 0);
    producer.send(&Message::new("T", vec![1; 1000])).unwrap();
    assert_eq!((sent.hits(), asked.hits()), (1, 1));
}

#[test]
fn the_first_send_to_an_unknown_topic_creates_it() {
    let cluster = Cluster::builder().start().unwrap();
    let producer = started(producer_of(&cluster));
    producer.send(&Message::new("New", "m")).unwrap();
    assert_eq!(
        producer.fetch_publish_message_queues("New").unwrap().len(),
        4
    );
    assert_eq!(cluster.stored_count("New"), 1);

    let two = started(producer_of(&cluster).default_topic_queue_nums(2));
    two.send(&Message::new("Small", "m")).unwrap();
    assert_eq!(two.fetch_publish_message_queues("Small").unwrap().len(), 2);
}

#[test]
fn a_topic_that_nobody_creates_is_told_so() {
    let cluster = Cluster::builder().auto_create_topic(false).start().unwrap();
    let producer = started(producer_of(&cluster));
    let error = producer.send(&Message::new("New", "m")).unwrap_err();
    let code = client_error_code::NOT_FOUND_TOPIC_EXCEPTION;
    assert!(
        matches!(error, Error::MQClient { code: Some(found), .. } if found == code),
        "{error:?}"
    );
    assert!(
        error.to_string().contains("no route for topic New"),
        "{error}"
    );
    assert!(error.is_retryable() && !error.may_have_been_stored());
    cluster.create_topic("New", 1).unwrap();
    producer.send(&Message::new("New", "m")).unwrap();
}

#[test]
fn sending_in_the_wrong_state_is_refused() {
    let cluster = cluster_of(2, 4);
    let producer = producer_of(&cluster).build().unwrap();
    let unstarted = producer.send(&Message::new("T", "m")).unwrap_err();
    assert!(
        matches!(unstarted, Error::ServiceState { .. }),
        "{unstarted:?}"
    );
    producer.start().unwrap();
    assert!(matches!(producer.start(), Err(Error::ServiceState { .. })));
    producer.send(&Message::new("T", "m")).unwrap();
    producer.shutdown(Duration::from_secs(5));
    let ended = producer.send(&Message::new("T", "m")).unwrap_err();
    assert!(matches!(ended, Error::ServiceState { .. }), "{ended:?}");
    assert!(matches!(producer.start(), Err(Error::ServiceState { .. })));
}
