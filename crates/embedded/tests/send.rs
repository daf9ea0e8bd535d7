//! What a broker does with messages that are sent to it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod raw_client;

use raw_client::{RawClient, send_header, send_request};
use rocketmq_embedded::{Cluster, MessageQueue};
use rocketmq_protocol::header::{SendMessageRequestHeaderV2, SendMessageResponseHeader};
use rocketmq_protocol::{Message, OffsetMessageId, RemotingCommand, request_code};

fn cluster() -> Cluster {
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("T", 2).unwrap();
    cluster
}

#[test]
fn a_message_is_stored_with_what_brokers_add() {
    let cluster = cluster();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    let mut message = Message::new("T", b"hello".as_slice())
        .with_tags("A")
        .with_keys("k1");
    message.put_property("UNIQ_KEY", "0123");
    message.put_property("POP_CK", "left over");
    message.set_flag(7);
    client.produce(1, &message);
    let response = client.call(send_request(1, &message));
    assert_eq!(response.code, 0, "{response:?}");
    assert_eq!(response.ext_fields.get("MSG_REGION"), Some("DefaultRegion"));
    assert_eq!(response.ext_fields.get("TRACE_ON"), Some("true"));
    let header: SendMessageResponseHeader = response.decode_header().unwrap();
    assert_eq!((header.queue_id, header.queue_offset), (1, 1));
    assert_eq!(header.transaction_id.as_deref(), Some("0123"));

    let stored = cluster.messages("T");
    assert_eq!(cluster.stored_count("T"), 2);
    let message = &stored[1];
    assert_eq!((message.broker_name(), message.queue_id()), ("broker-a", 1));
    assert_eq!((message.queue_offset(), message.flag()), (1, 7));
    assert_eq!(&message.body()[..], b"hello");
    assert_eq!((message.tags(), message.keys()), (Some("A"), Some("k1")));
    assert_eq!(message.msg_id(), "0123");
    assert_eq!(message.offset_msg_id(), header.msg_id);
    let id = OffsetMessageId::parse(&header.msg_id).unwrap();
    let addr = cluster.broker_addr("broker-a").unwrap();
    assert_eq!(id.store_host.to_string(), addr);
    assert_eq!(id.commit_log_offset, stored[0].store_size() as i64);
    assert_eq!(message.born_host(), client.stream().local_addr().unwrap());
    let property = |name| message.property(name);
    assert_eq!(property("MSG_REGION"), Some("DefaultRegion"));
    assert_eq!(property("TRACE_ON"), Some("true"));
    assert_eq!(property("CLUSTER"), Some("DefaultCluster"));
    assert_eq!(property("POP_CK"), None);
    assert_eq!(
        cluster.max_offset(&MessageQueue::new("T", "broker-a", 1)),
        2
    );
    assert_eq!(
        cluster.max_offset(&MessageQueue::new("T", "broker-x", 1)),
        0
    );
}

#[test]
fn long_and_short_names_mean_the_same_and_a_missing_key_is_made() {
    let cluster = cluster();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    let message = Message::new("T", b"x".as_slice());
    let long = RemotingCommand::request(request_code::SEND_MESSAGE, &send_header(0, &message));
    assert_eq!(client.call(long.with_body(b"x".as_slice())).code, 0);
    client.produce(0, &message);
    let keys: Vec<_> = cluster
        .messages("T")
        .iter()
        .map(|message| message.property("UNIQ_KEY").unwrap().to_owned())
        .collect();
    assert_eq!(keys.len(), 2);
    assert_ne!(keys[0], keys[1]);
    assert_eq!(keys[0].len(), 32);
}

#[test]
fn a_negative_queue_lets_the_broker_choose() {
    let cluster = cluster();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    let message = Message::new("T", b"x".as_slice());
    let mut queues: Vec<_> = (0..2)
        .map(|_| client.produce(-1, &message).queue_id)
        .collect();
    queues.sort_unstable();
    assert_eq!(queues, [0, 1]);
}

#[test]
fn checks_come_in_the_order_of_a_real_broker() {
    let cluster = cluster();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    let mut code = |topic: &str, queue_id, default_topic: &str, body: &[u8]| {
        let message = Message::new(topic, body.to_vec());
        let mut header = send_header(queue_id, &message);
        header.default_topic = default_topic.to_owned();
        let header = SendMessageRequestHeaderV2(header);
        let request = RemotingCommand::request(request_code::SEND_MESSAGE_V2, &header);
        let response = client.call(request.with_body(body.to_vec()));
        assert_eq!(response.ext_fields.get("TRACE_ON"), Some("true"));
        response.code
    };
    assert_eq!(code("a b", 99, "none", b""), 29);
    assert_eq!(code("SCHEDULE_TOPIC_XXXX", 99, "none", b""), 16);
    assert_eq!(code("New", 99, "none", b""), 17);
    assert_eq!(code("T", 2, "none", b""), 29);
    assert_eq!(code("T", 1, "none", b""), 1);
    assert_eq!(code("T", 1, "none", &vec![0; 4_194_305]), 13);
    assert_eq!(code("T", 1, "none", &vec![0; 4_194_304]), 0);
    // A topic whose settings are not for others is no template.
    assert_eq!(code("New", 0, "T", b"x"), 17);
    assert_eq!(code("TBW102", 0, "none", b"x"), 0);
}

#[test]
fn properties_may_be_so_long_with_what_the_broker_adds() {
    let cluster = cluster();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    let mut code = |length: usize| {
        // UNIQ_KEY 1 k 2, x 1 ... 2
        let filler = "y".repeat(length - 11 - 3);
        let properties = format!("UNIQ_KEY\u{1}k\u{2}x\u{1}{filler}\u{2}");
        assert_eq!(properties.len(), length);
        let mut header = send_header(0, &Message::new("T", b"x".as_slice()));
        header.properties = Some(properties);
        let header = SendMessageRequestHeaderV2(header);
        let request = RemotingCommand::request(request_code::SEND_MESSAGE_V2, &header);
        client.call(request.with_body(b"x".as_slice())).code
    };
    assert_eq!(code(32_705), 0);
    assert_eq!(code(32_706), 13);
}

#[test]
fn a_send_creates_its_topic_if_that_is_allowed() {
    let cluster = Cluster::builder().start().unwrap();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    let message = Message::new("New", b"x".as_slice());
    assert_eq!(client.call(send_request(4, &message)).code, 29);
    assert_eq!(client.call(send_request(3, &message)).code, 0);
    let cluster = Cluster::builder().auto_create_topic(false).start().unwrap();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    assert_eq!(client.call(send_request(0, &message)).code, 17);
    assert_eq!(cluster.stored_count("New"), 0);
}

#[test]
fn what_is_sent_to_a_retry_topic_too_often_goes_to_the_dead_letters() {
    let cluster = cluster();
    let mut client = RawClient::to_broker(&cluster, "broker-a");
    let message = Message::new("%RETRY%g", b"x".as_slice());
    let mut send = |times, max| {
        let mut header = send_header(0, &message);
        header.reconsume_times = Some(times);
        header.max_reconsume_times = max;
        let header = SendMessageRequestHeaderV2(header);
        let request = RemotingCommand::request(request_code::SEND_MESSAGE_V2, &header);
        assert_eq!(client.call(request.with_body(b"x".as_slice())).code, 0);
        (
            cluster.stored_count("%RETRY%g"),
            cluster.stored_count("%DLQ%g"),
        )
    };
    assert_eq!(send(16, None), (1, 0));
    assert_eq!(send(17, None), (1, 1));
    assert_eq!(send(3, Some(3)), (2, 1));
    assert_eq!(send(4, Some(3)), (2, 2));
}
