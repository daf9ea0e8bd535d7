//! Delayed messages, and messages that consumers give back.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod raw_client;

use std::time::{Duration, Instant};

use raw_client::{RawClient, heartbeat_data, pull_answer, pull_header, pull_request, wait_until};
use rocketmq_embedded::{Cluster, MessageExt};
use rocketmq_protocol::header::ConsumerSendMsgBackRequestHeader;
use rocketmq_protocol::{Message, RemotingCommand, request_code, sys_flag};

const SHORT: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_secs(3600);

fn cluster(levels: &[Duration]) -> (Cluster, RawClient) {
    let cluster = Cluster::builder().delay_levels(levels).start().unwrap();
    cluster.create_topic("T", 2).unwrap();
    let client = RawClient::to_broker(&cluster, "broker-a");
    (cluster, client)
}

fn give_back(
    client: &mut RawClient,
    message: &MessageExt,
    delay_level: i32,
    max_reconsume_times: Option<i32>,
) -> RemotingCommand {
    let header = ConsumerSendMsgBackRequestHeader {
        offset: message.commit_log_offset(),
        group: "g".to_owned(),
        delay_level,
        origin_msg_id: Some(message.msg_id().to_owned()),
        origin_topic: Some(message.topic().to_owned()),
        unit_mode: None,
        max_reconsume_times,
        broker_name: None,
    };
    client.call_with(request_code::CONSUMER_SEND_MSG_BACK, &header)
}

fn only(cluster: &Cluster, topic: &str) -> MessageExt {
    let mut messages = cluster.messages(topic);
    assert_eq!(messages.len(), 1, "{topic}");
    messages.remove(0)
}

#[test]
fn a_delayed_message_wakes_a_waiting_pull_when_it_is_due() {
    let (cluster, mut client) = cluster(&[SHORT]);
    let mut message = Message::new("T", b"later".as_slice()).with_tags("A");
    message.put_property("DELAY", "7");
    let started = Instant::now();
    let sent = client.produce(1, &message);
    assert_eq!((sent.queue_id, sent.queue_offset), (1, 0));
    assert_eq!(cluster.stored_count("T"), 0);
    let waiting = only(&cluster, "SCHEDULE_TOPIC_XXXX");
    assert_eq!(
        (waiting.queue_id(), waiting.offset_msg_id()),
        (0, sent.msg_id.as_str())
    );
    let mut header = pull_header("T", 1, 0);
    header.sys_flag |= sys_flag::PULL_SUSPEND;
    header.suspend_timeout_millis = 3_600_000;
    header.subscription = Some("A".to_owned());
    let (_, messages) = pull_answer(&client.call(pull_request(&header)));
    assert!(started.elapsed() >= SHORT);
    let message = &messages[0];
    assert_eq!((message.topic(), message.queue_id()), ("T", 1));
    assert_eq!(&message.body()[..], b"later");
    assert_eq!(message.property("REAL_TOPIC"), Some("T"));
    assert_eq!(message.property("REAL_QID"), Some("1"));
    assert_eq!(message.property("DELAY"), Some("7"));
}

#[test]
fn levels_of_zero_and_below_are_no_delay() {
    let (cluster, mut client) = cluster(&[LONG]);
    for level in ["0", "-1", "x"] {
        let mut message = Message::new("T", b"now".as_slice());
        message.put_property("DELAY", level);
        client.produce(0, &message);
    }
    assert_eq!(cluster.stored_count("T"), 3);
}

#[test]
fn delayed_messages_outlive_a_restart() {
    let (cluster, mut client) = cluster(&[SHORT, LONG]);
    for level in ["1", "2"] {
        let mut message = Message::new("T", level.as_bytes());
        message.put_property("DELAY", level);
        client.produce(0, &message);
    }
    cluster.stop_broker("broker-a").unwrap();
    std::thread::sleep(SHORT * 2);
    assert_eq!(cluster.stored_count("T"), 0);
    cluster.start_broker("broker-a").unwrap();
    wait_until("the first is delivered", || cluster.stored_count("T") == 1);
    assert_eq!(&only(&cluster, "T").body()[..], b"1");
}

#[test]
fn a_message_that_is_given_back_comes_again_in_the_retry_topic() {
    let (cluster, mut client) = cluster(&[LONG, LONG, SHORT, SHORT, LONG]);
    client.heartbeat(&heartbeat_data("c1", "g", &["T"]));
    client.note();
    let mut message = Message::new("T", b"again".as_slice())
        .with_tags("A")
        .with_keys("k");
    message.put_property("UNIQ_KEY", "0123");
    client.produce(0, &message);
    let first = only(&cluster, "T");
    // Level 0 leaves the choice to the broker: 3, then 4.
    assert_eq!(give_back(&mut client, &first, 0, None).code, 0);
    wait_until("the first retry", || cluster.stored_count("%RETRY%g") == 1);
    let retried = only(&cluster, "%RETRY%g");
    assert_eq!((retried.reconsume_times(), retried.queue_id()), (1, 0));
    assert_eq!((retried.tags(), retried.keys()), (Some("A"), Some("k")));
    assert_eq!(&retried.body()[..], b"again");
    assert_eq!(retried.msg_id(), "0123");
    let property = |name| retried.property(name);
    assert_eq!(property("RETRY_TOPIC"), Some("T"));
    assert_eq!(property("ORIGIN_MESSAGE_ID"), Some(first.offset_msg_id()));
    assert_eq!(
        (property("WAIT"), property("DELAY")),
        (Some("false"), Some("3"))
    );
    assert_eq!(property("REAL_TOPIC"), Some("%RETRY%g"));

    assert_eq!(give_back(&mut client, &retried, 0, None).code, 0);
    wait_until("the second retry", || cluster.stored_count("%RETRY%g") == 2);
    let again = cluster.messages("%RETRY%g").remove(1);
    assert_eq!(again.reconsume_times(), 2);
    assert_eq!(again.property("DELAY"), Some("4"));
    assert_eq!(again.property("RETRY_TOPIC"), Some("T"));
    assert_eq!(
        again.property("ORIGIN_MESSAGE_ID"),
        Some(first.offset_msg_id())
    );

    // A level of the consumer's own.
    assert_eq!(give_back(&mut client, &again, 1, None).code, 0);
    let waiting = cluster.messages("SCHEDULE_TOPIC_XXXX");
    assert_eq!(waiting.iter().filter(|m| m.queue_id() == 0).count(), 1);
    assert_eq!(cluster.stored_count("%DLQ%g"), 0);
}

#[test]
fn a_message_goes_to_the_dead_letters_when_it_was_tried_as_often_as_allowed() {
    let (cluster, mut client) = cluster(&[SHORT]);
    client.produce(0, &Message::new("T", b"bad".as_slice()));
    let first = only(&cluster, "T");
    assert_eq!(give_back(&mut client, &first, 1, Some(1)).code, 0);
    wait_until("the retry", || cluster.stored_count("%RETRY%g") == 1);
    let retried = only(&cluster, "%RETRY%g");
    assert_eq!(give_back(&mut client, &retried, 1, Some(1)).code, 0);
    let dead = only(&cluster, "%DLQ%g");
    assert_eq!(dead.reconsume_times(), 2);
    assert_eq!(dead.property("RETRY_TOPIC"), Some("T"));
    assert_eq!(
        dead.property("ORIGIN_MESSAGE_ID"),
        Some(first.offset_msg_id())
    );
    // A negative level means the dead letters at once.
    assert_eq!(give_back(&mut client, &first, -1, None).code, 0);
    assert_eq!(cluster.stored_count("%DLQ%g"), 2);
    assert_eq!(cluster.stored_count("%RETRY%g"), 1);
}

#[test]
fn what_is_no_message_cannot_be_given_back() {
    let (cluster, mut client) = cluster(&[SHORT]);
    client.produce(0, &Message::new("T", b"x".as_slice()));
    let message = only(&cluster, "T");
    let mut header = ConsumerSendMsgBackRequestHeader {
        offset: message.commit_log_offset() + 1,
        group: "g".to_owned(),
        delay_level: 0,
        origin_msg_id: None,
        origin_topic: None,
        unit_mode: None,
        max_reconsume_times: None,
        broker_name: None,
    };
    let code = request_code::CONSUMER_SEND_MSG_BACK;
    assert_eq!(client.call_with(code, &header).code, 1);
    header.group = "x".repeat(121);
    assert_eq!(client.call_with(code, &header).code, 26);
}
