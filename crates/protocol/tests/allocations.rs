//! How many allocations messages and small commands cost. The figures are exact: a change that adds
//! one to each message is seen here, not in a profile some day.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::alloc::System;
use std::sync::{Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use rocketmq_protocol::header::{
    PullMessageResponseHeader, SendMessageRequestHeader, SendMessageResponseHeader,
};
use rocketmq_protocol::{
    MessageExt, RemotingCommand, SerializeType, StoredMessage, StoredMessages, SubscriptionData,
    property, request_code,
};
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
    let detached = allocations(|| {
        read_all(&reply, |message| {
            message.detach_into(|body, properties| [body, properties].concat().into())
        })
    });
    assert_eq!(
        detached,
        OF_A_REPLY + 2 * COUNT,
        "one copy of body and properties, and the count of its users"
    );
}

/// The fields' text and their places.
const OF_FIELDS: usize = 2;

#[test]
fn a_request_to_send_takes_its_fields_and_its_frame() {
    let header = SendMessageRequestHeader {
        producer_group: "group".to_owned(),
        topic: "Topic".to_owned(),
        default_topic: "TBW102".to_owned(),
        default_topic_queue_nums: 4,
        born_timestamp: 1_790_000_000_000,
        properties: Some(format!(
            "TAGS\u{1}TagA\u{2}UNIQ_KEY\u{1}{:032X}\u{2}WAIT\u{1}true\u{2}",
            7
        )),
        reconsume_times: Some(0),
        unit_mode: Some(false),
        batch: Some(false),
        ..SendMessageRequestHeader::default()
    };
    let body = Bytes::from_static(&[7; 1024]);
    for form in [SerializeType::Json, SerializeType::RocketMq] {
        let count = allocations(|| {
            let mut request =
                RemotingCommand::request_without_header(request_code::SEND_MESSAGE_V2)
                    .with_body(body.clone());
            request.serialize_type = form;
            header.encode_v2_for(3, "broker-a", &mut request.ext_fields);
            let mut frame = BytesMut::new();
            request.encode(&mut frame).unwrap();
            assert!(frame.len() > 1024);
        });
        assert_eq!(count, OF_FIELDS + 1, "{form:?}");
    }
}

fn content(header: &str) -> Bytes {
    let mut content = (header.len() as u32).to_be_bytes().to_vec();
    content.extend_from_slice(header.as_bytes());
    let content = Bytes::from(content);
    drop(content.clone());
    content
}

#[test]
fn a_reply_takes_its_fields_and_what_is_made_of_them() {
    let sent = content(
        r#"{"code":0,"extFields":{"queueId":"3","TRACE_ON":"true","MSG_REGION":"DefaultRegion",
        "msgId":"7F00000100002A9F0000000000000400","queueOffset":"1234567"},"flag":1,
        "language":"JAVA","opaque":9,"serializeTypeCurrentRPC":"JSON","version":513}"#,
    );
    let count = allocations(|| {
        let reply = RemotingCommand::decode(sent.clone()).unwrap();
        let header: SendMessageResponseHeader = reply.decode_header().unwrap();
        assert_eq!(header.msg_id.len(), 32);
    });
    assert_eq!(count, OF_FIELDS + 1, "the id is a text of its own");
    let pulled = content(
        r#"{"code":0,"extFields":{"suggestWhichBrokerId":"0","nextBeginOffset":"32","minOffset":"0",
        "topicSysFlag":"0","groupSysFlag":"0","maxOffset":"123456"},"flag":1,"language":"JAVA",
        "opaque":9,"remark":"FOUND","serializeTypeCurrentRPC":"JSON","version":513}"#,
    );
    let count = allocations(|| {
        let reply = RemotingCommand::decode(pulled.clone()).unwrap();
        let header: PullMessageResponseHeader = reply.decode_header().unwrap();
        assert_eq!(header.next_begin_offset, 32);
    });
    assert_eq!(count, OF_FIELDS + 1, "the remark is a text of its own");
}
