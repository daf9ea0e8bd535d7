//! What a broker answers to pulls.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod raw_client;

use std::time::Duration;

use raw_client::{RawClient, heartbeat_data, pull_answer, pull_header, pull_request};
use rocketmq_embedded::{Cluster, MessageQueue};
use rocketmq_protocol::header::PullMessageRequestHeader;
use rocketmq_protocol::{Message, SubscriptionData, sys_flag};

const WAITING: i32 = sys_flag::PULL_SUBSCRIPTION | sys_flag::PULL_SUSPEND;

fn cluster_with(messages: usize) -> (Cluster, RawClient) {
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("T", 1).unwrap();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    for number in 0..messages {
        client.produce(0, &Message::new("T", number.to_string().into_bytes()));
    }
    (cluster, client)
}

#[test]
fn messages_come_in_order_and_at_most_32() {
    let (_cluster, mut client) = cluster_with(40);
    let mut header = pull_header("T", 0, 0);
    header.max_msg_nums = 100;
    let response = client.call(pull_request(&header));
    assert_eq!(
        (response.code, response.remark.as_deref()),
        (0, Some("FOUND"))
    );
    let (answer, messages) = pull_answer(&response);
    let ends = (
        answer.next_begin_offset,
        answer.min_offset,
        answer.max_offset,
    );
    assert_eq!(ends, (32, 0, 40));
    assert_eq!(messages.len(), 32);
    for (number, message) in messages.iter().enumerate() {
        assert_eq!(message.queue_offset(), number as i64);
        assert_eq!(message.body(), number.to_string().as_bytes());
    }
    let mut pulled = |max_msg_nums, offset| {
        header.max_msg_nums = max_msg_nums;
        header.queue_offset = offset;
        pull_answer(&client.call(pull_request(&header))).1.len()
    };
    assert_eq!(pulled(5, 32), 5);
    assert_eq!(pulled(0, 32), 1);
    assert_eq!(pulled(32, 32), 8);
}

#[test]
fn an_answer_stops_at_262144_bytes_but_has_at_least_one_message() {
    let (_cluster, mut client) = cluster_with(0);
    for size in [100_000, 100_000, 100_000, 300_000] {
        client.produce(0, &Message::new("T", vec![b'x'; size]));
    }
    let mut pulled = |offset| {
        let request = pull_request(&pull_header("T", 0, offset));
        let (answer, messages) = pull_answer(&client.call(request));
        (messages.len(), answer.next_begin_offset)
    };
    assert_eq!(pulled(0), (2, 2));
    assert_eq!(pulled(2), (1, 3));
    assert_eq!(pulled(3), (1, 4));
}

#[test]
fn each_wrong_offset_has_its_code() {
    let (cluster, mut client) = cluster_with(3);
    cluster.create_topic("Empty", 1).unwrap();
    let mut pulled = |topic, offset| {
        let response = client.call(pull_request(&pull_header(topic, 0, offset)));
        (response.code, pull_answer(&response).0.next_begin_offset)
    };
    assert_eq!(pulled("T", 3), (19, 3));
    assert_eq!(pulled("T", 4), (21, 3));
    assert_eq!(pulled("T", -1), (21, 0));
    assert_eq!(pulled("Empty", 0), (19, 0));
    assert_eq!(pulled("Empty", 5), (21, 0));
}

#[test]
fn other_refusals_have_theirs_and_no_header() {
    let (cluster, mut client) = cluster_with(1);
    let mut code = |change: fn(&mut PullMessageRequestHeader)| {
        let mut header = pull_header("T", 0, 0);
        change(&mut header);
        let response = client.call(pull_request(&header));
        assert_eq!(response.ext_fields.get("nextBeginOffset"), None);
        response.code
    };
    assert_eq!(code(|h| h.topic = "Unknown".to_owned()), 17);
    assert_eq!(code(|h| h.queue_id = 1), 29);
    assert_eq!(code(|h| h.queue_id = -1), 29);
    assert_eq!(code(|h| h.subscription = Some("||".to_owned())), 23);
    assert_eq!(code(|h| h.consumer_group = "x".repeat(121)), 26);
    assert_eq!(code(|h| h.sys_flag = 0), 24);
    let mut member = RawClient::to_broker(&cluster, "broker-a");
    member.heartbeat(&heartbeat_data("c1", "g", &["Other"]));
    assert_eq!(code(|h| h.sys_flag = 0), 24);
    member.heartbeat(&heartbeat_data("c1", "g", &["T"]));
    let newer = |h: &mut PullMessageRequestHeader| {
        h.sys_flag = 0;
        h.sub_version = 2;
    };
    assert_eq!(code(newer), 25);
}

#[test]
fn a_topic_that_may_not_be_read_says_so() {
    let (cluster, mut client) = cluster_with(0);
    let mut request = rocketmq_protocol::RemotingCommand::request_without_header(17);
    for (name, value) in [
        ("topic", "W"),
        ("defaultTopic", "TBW102"),
        ("readQueueNums", "1"),
        ("writeQueueNums", "1"),
        ("perm", "2"),
    ] {
        request.ext_fields.set(name, value);
    }
    assert_eq!(client.call(request).code, 0);
    let response = client.call(pull_request(&pull_header("W", 0, 0)));
    assert_eq!(response.code, 16);
    assert_eq!(response.ext_fields.get("forbiddenType"), Some("3"));
    drop(cluster);
}

fn produce_tags(client: &mut RawClient, tags: &[&str]) {
    for tag in tags {
        let message = Message::new("T", b"x".as_slice()).with_tags(*tag);
        client.produce(0, &message);
    }
}

#[test]
fn tags_are_filtered_by_the_request_or_by_the_heartbeat() {
    let (cluster, mut client) = cluster_with(1);
    produce_tags(&mut client, &["A", "B", "A"]);
    let mut member = RawClient::to_broker(&cluster, "broker-a");
    let mut data = heartbeat_data("c1", "g", &[]);
    let subscription = SubscriptionData::build("T", "B", 1).unwrap();
    data.consumer_data_set[0].subscription_data_set = vec![subscription];
    member.heartbeat(&data);
    let mut offsets = |sys_flag, expression: Option<&str>| {
        let mut header = pull_header("T", 0, 0);
        header.sys_flag = sys_flag;
        header.subscription = expression.map(str::to_owned);
        let (answer, messages) = pull_answer(&client.call(pull_request(&header)));
        assert_eq!(answer.next_begin_offset, 4);
        let offsets = messages.iter().map(|message| message.queue_offset());
        offsets.collect::<Vec<_>>()
    };
    assert_eq!(offsets(sys_flag::PULL_SUBSCRIPTION, Some("A")), [1, 3]);
    assert_eq!(
        offsets(sys_flag::PULL_SUBSCRIPTION, Some("A || B")),
        [1, 2, 3]
    );
    assert_eq!(offsets(sys_flag::PULL_SUBSCRIPTION, None), [0, 1, 2, 3]);
    assert_eq!(offsets(0, Some("A")), [2]);
    let mut header = pull_header("T", 0, 0);
    header.subscription = Some("C".to_owned());
    let response = client.call(pull_request(&header));
    assert_eq!(response.code, 20);
    assert_eq!(pull_answer(&response).0.next_begin_offset, 4);
}

#[test]
fn a_waiting_pull_is_woken_by_a_message_for_it_and_not_by_others() {
    // Without sweeps only a message can wake it.
    let cluster = Cluster::builder()
        .long_poll_sweep(Duration::from_secs(3600))
        .start()
        .unwrap();
    cluster.create_topic("T", 2).unwrap();
    let mut puller = RawClient::to_broker(&cluster, "broker-a");
    let mut producer = RawClient::to_broker(&cluster, "broker-a");
    let mut header = pull_header("T", 0, 0);
    header.sys_flag = WAITING;
    header.subscription = Some("A".to_owned());
    header.suspend_timeout_millis = 3_600_000;
    let opaque = puller.send(pull_request(&header));
    // The answer to a later request tells that the pull was seen, and that it does not block.
    assert!(puller.consumer_list("g").is_empty());
    produce_tags(&mut producer, &["B", "B"]);
    producer.produce(1, &Message::new("T", b"x".as_slice()).with_tags("A"));
    assert_eq!(puller.next(Duration::from_millis(300)), None);
    produce_tags(&mut producer, &["A"]);
    let (answer, messages) = pull_answer(&puller.answer_to(opaque));
    assert_eq!((messages.len(), messages[0].queue_offset()), (1, 2));
    assert_eq!(answer.next_begin_offset, 3);
}

#[test]
fn a_waiting_pull_is_answered_by_the_sweep_after_its_time() {
    let cluster = Cluster::builder()
        .long_poll_sweep(Duration::from_millis(50))
        .start()
        .unwrap();
    cluster.create_topic("T", 1).unwrap();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    let mut header = pull_header("T", 0, 0);
    header.sys_flag = WAITING;
    header.suspend_timeout_millis = 200;
    let started = std::time::Instant::now();
    let response = client.call(pull_request(&header));
    assert!(started.elapsed() >= Duration::from_millis(200));
    assert_eq!(response.code, 19);
    // A message that is not for it is passed over by the sweep.
    header.suspend_timeout_millis = 3_600_000;
    header.subscription = Some("A".to_owned());
    let opaque = client.send(pull_request(&header));
    produce_tags(&mut client, &["B"]);
    let response = client.answer_to(opaque);
    assert_eq!(response.code, 20);
    assert_eq!(pull_answer(&response).0.next_begin_offset, 1);
}

#[test]
fn only_not_found_waits() {
    let (_cluster, mut client) = cluster_with(1);
    let mut header = pull_header("T", 0, 7);
    header.sys_flag = WAITING;
    header.suspend_timeout_millis = 3_600_000;
    assert_eq!(client.call(pull_request(&header)).code, 21);
}

#[test]
fn a_pull_commits_the_groups_offset_when_it_says_so() {
    let (cluster, mut client) = cluster_with(3);
    let queue = MessageQueue::new("T", "broker-a", 0);
    let mut header = pull_header("T", 0, 3);
    header.commit_offset = 2;
    client.call(pull_request(&header));
    assert_eq!(cluster.committed_offset("g", &queue), None);
    header.sys_flag |= sys_flag::PULL_COMMIT_OFFSET | sys_flag::PULL_SUSPEND;
    header.suspend_timeout_millis = 3_600_000;
    let opaque = client.send(pull_request(&header));
    // Committed although the pull waits, and once: a later commit is not undone by the answer.
    assert!(client.consumer_list("g").is_empty());
    assert_eq!(cluster.committed_offset("g", &queue), Some(2));
    let mut later = header;
    later.commit_offset = 3;
    later.sys_flag &= !sys_flag::PULL_SUSPEND;
    client.call(pull_request(&later));
    client.produce(0, &Message::new("T", b"x".as_slice()));
    assert_eq!(client.answer_to(opaque).code, 0);
    assert_eq!(cluster.committed_offset("g", &queue), Some(3));
}
