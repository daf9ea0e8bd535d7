//! Several messages in one send.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod raw_client;

use std::time::Duration;

use raw_client::{RawClient, pull_answer, pull_header, pull_request, send_header};
use rocketmq_embedded::Cluster;
use rocketmq_protocol::header::{SendMessageRequestHeaderV2, SendMessageResponseHeader};
use rocketmq_protocol::{
    Message, OffsetMessageId, RemotingCommand, encode_batch, request_code, sys_flag,
};

fn batch(topic: &str, queue_id: i32, tags: &[&str]) -> RemotingCommand {
    let messages: Vec<_> = tags
        .iter()
        .map(|tag| Message::new(topic, tag.as_bytes().to_vec()).with_tags(*tag))
        .collect();
    let mut header = send_header(queue_id, &Message::new(topic, b"x".as_slice()));
    header.batch = Some(true);
    let header = SendMessageRequestHeaderV2(header);
    RemotingCommand::request(request_code::SEND_BATCH_MESSAGE, &header)
        .with_body(encode_batch(&messages).unwrap())
}

#[test]
fn a_batch_is_stored_as_single_messages_one_after_the_other() {
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("T", 2).unwrap();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    client.produce(1, &Message::new("T", b"first".as_slice()));
    let response = client.call(batch("T", 1, &["A", "B", "C"]));
    assert_eq!(response.code, 0, "{response:?}");
    let header: SendMessageResponseHeader = response.decode_header().unwrap();
    assert_eq!((header.queue_id, header.queue_offset), (1, 1));
    assert_eq!(header.transaction_id, None);
    let stored = cluster.messages("T");
    let ids: Vec<_> = header.msg_id.split(',').collect();
    assert_eq!(ids.len(), 3);
    for (number, (message, tag)) in stored[1..].iter().zip(["A", "B", "C"]).enumerate() {
        assert_eq!(message.offset_msg_id(), ids[number]);
        assert_eq!(message.queue_offset(), number as i64 + 1);
        assert_eq!(
            (message.tags(), &message.body()[..]),
            (Some(tag), tag.as_bytes())
        );
        let id = OffsetMessageId::parse(ids[number]).unwrap();
        assert_eq!(id.commit_log_offset, message.commit_log_offset());
    }
}

#[test]
fn a_batch_may_create_its_topic_and_leave_the_queue_to_the_broker() {
    let cluster = Cluster::builder().start().unwrap();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    let response = client.call(batch("New", -1, &["A", "B"]));
    let header: SendMessageResponseHeader = response.decode_header().unwrap();
    assert_eq!((response.code, header.queue_offset), (0, 0));
    assert_eq!(cluster.stored_count("New"), 2);
    let queues: Vec<_> = cluster
        .messages("New")
        .iter()
        .map(|m| m.queue_id())
        .collect();
    assert_eq!(queues, [header.queue_id; 2]);
}

#[test]
fn a_waiting_pull_gets_all_of_a_batch_that_it_wants() {
    let cluster = Cluster::builder()
        .long_poll_sweep(Duration::from_secs(3600))
        .start()
        .unwrap();
    cluster.create_topic("T", 1).unwrap();
    let mut puller = RawClient::to_broker(&cluster, "broker-a");
    let mut header = pull_header("T", 0, 0);
    header.sys_flag |= sys_flag::PULL_SUSPEND;
    header.suspend_timeout_millis = 3_600_000;
    header.subscription = Some("B || C".to_owned());
    let opaque = puller.send(pull_request(&header));
    assert!(cluster.wait_for(request_code::PULL_MESSAGE, 1, raw_client::LIMIT));
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    assert_eq!(client.call(batch("T", 0, &["A", "B", "C"])).code, 0);
    let (answer, messages) = pull_answer(&puller.answer_to(opaque));
    let offsets: Vec<_> = messages.iter().map(|m| m.queue_offset()).collect();
    assert_eq!((&offsets[..], answer.next_begin_offset), (&[1, 2][..], 3));
}

#[test]
fn a_batch_that_cannot_be_stored_leaves_nothing_behind() {
    let cluster = Cluster::builder()
        .configure(|config| config.max_message_size = 100)
        .start()
        .unwrap();
    cluster.create_topic("T", 1).unwrap();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    let mut cut = batch("T", 0, &["A", "B"]);
    cut.body = cut.body.map(|body| body.slice(..body.len() - 1));
    assert_eq!(client.call(cut).code, 1);
    assert_eq!(client.call(batch("T", 0, &["A"; 9])).code, 13);
    assert_eq!(client.call(batch("%RETRY%g", 0, &["A"])).code, 13);
    assert_eq!(client.call(batch("T", 5, &["A"])).code, 29);
    assert_eq!(cluster.stored_count("T"), 0);
}
