//! Bytes and texts that the published Java classes give for named values.
#![allow(clippy::panic, clippy::unwrap_used)]

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use rocketmq_protocol::body::{
    ConsumeFromWhere, ConsumeType, ConsumerData, HeartbeatData, JsonBody, MessageModel,
    ProducerData,
};
use rocketmq_protocol::header::{
    CommandCustomHeader, PullMessageRequestHeader, SendMessageRequestHeader,
    SendMessageRequestHeaderV2,
};
use rocketmq_protocol::{
    ExtFields, LanguageCode, OffsetMessageId, RemotingCommand, SerializeType, StoredMessage,
    StoredMessages, SubscriptionData, UniqKeyParts, decode_properties, encode_properties,
    java_string_hash, request_code,
};

fn unhex(text: &str) -> Bytes {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn frame(command: &RemotingCommand) -> BytesMut {
    let mut out = BytesMut::new();
    command.encode(&mut out).unwrap();
    out
}

fn fields(header: &impl CommandCustomHeader) -> BTreeMap<String, String> {
    let mut fields = ExtFields::new();
    header.encode(&mut fields);
    let all: BTreeMap<_, _> = fields
        .iter()
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .collect();
    assert_eq!(all.len(), fields.len());
    all
}

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect()
}

const JAVA_PULL_HEADER: &str = r#"{"code":11,"extFields":{"queueId":"2","maxMsgBytes":"262144","maxMsgNums":"32","sysFlag":"3","commitOffset":"5","subscription":"*","suspendTimeoutMillis":"15000","bname":"broker-a","topic":"T1","queueOffset":"7","expressionType":"TAG","subVersion":"0","consumerGroup":"g1"},"flag":0,"language":"JAVA","opaque":9,"serializeTypeCurrentRPC":"JSON","version":0}"#;

fn pull_header() -> PullMessageRequestHeader {
    PullMessageRequestHeader {
        consumer_group: "g1".into(),
        topic: "T1".into(),
        queue_id: 2,
        queue_offset: 7,
        max_msg_nums: 32,
        sys_flag: 3,
        commit_offset: 5,
        suspend_timeout_millis: 15_000,
        subscription: Some("*".into()),
        sub_version: 0,
        expression_type: Some("TAG".into()),
        max_msg_bytes: Some(262_144),
        broker_name: Some("broker-a".into()),
        ..PullMessageRequestHeader::default()
    }
}

#[test]
fn a_pull_request_has_java_s_header_in_json() {
    let mut command = RemotingCommand::request(request_code::PULL_MESSAGE, &pull_header());
    command.language = LanguageCode::Java;
    command.version = 0;
    command.opaque = 9;
    let ours = frame(&command);
    assert_eq!(hex(&ours[..8]), "0000016900000165");

    let mut content = vec![0, 0, 1, 0x65];
    content.extend_from_slice(JAVA_PULL_HEADER.as_bytes());
    let java = RemotingCommand::decode(content.into()).unwrap();
    let ours: serde_json::Value = serde_json::from_slice(&ours[8..]).unwrap();
    assert_eq!(
        ours,
        serde_json::from_str::<serde_json::Value>(JAVA_PULL_HEADER).unwrap()
    );
    assert_eq!(
        java.decode_header::<PullMessageRequestHeader>(),
        Ok(pull_header())
    );
    assert_eq!(
        (java.code, java.opaque, java.flag, java.version),
        (11, 9, 0, 0)
    );
    assert_eq!(
        (java.language, java.serialize_type),
        (LanguageCode::Java, SerializeType::Json)
    );
    assert_eq!((java.remark, java.body), (None, None));
}

#[test]
fn a_pull_request_without_options_has_the_required_fields_only() {
    let header = PullMessageRequestHeader {
        subscription: None,
        expression_type: None,
        max_msg_bytes: None,
        broker_name: None,
        ..pull_header()
    };
    let required = [
        ("consumerGroup", "g1"),
        ("topic", "T1"),
        ("queueId", "2"),
        ("queueOffset", "7"),
        ("maxMsgNums", "32"),
        ("sysFlag", "3"),
        ("commitOffset", "5"),
        ("suspendTimeoutMillis", "15000"),
        ("subVersion", "0"),
    ];
    assert_eq!(fields(&header), map(&required));
}

#[test]
fn the_binary_frame_is_java_s() {
    let mut command = RemotingCommand::request_without_header(request_code::HEART_BEAT)
        .with_body(&b"\x01\x02"[..]);
    command.version = 475;
    command.opaque = 1;
    command.remark = Some("r".into());
    command.ext_fields.set("k", "v");
    command.serialize_type = SerializeType::RocketMq;
    let java = "000000240100001e00220c01db000000010000000000000001720000000800016b000000017601\
                02";
    assert_eq!(hex(&frame(&command)), java);
    assert_eq!(RemotingCommand::decode(unhex(java).slice(4..)), Ok(command));
}

const JAVA_PROPERTIES: &str = "4b455953016b3102780179025741495401747275650254414753015461674102";

#[test]
fn properties_in_java_s_order_are_read() {
    let text = unhex(JAVA_PROPERTIES);
    let properties = decode_properties(std::str::from_utf8(&text).unwrap());
    let expected = [
        ("KEYS", "k1"),
        ("TAGS", "TagA"),
        ("WAIT", "true"),
        ("x", "y"),
    ];
    assert_eq!(properties, map(&expected));
    let mut entries: Vec<&[u8]> = text.split(|byte| *byte == 2).collect();
    entries.sort_unstable();
    let encoded = encode_properties(&properties);
    let mut ours: Vec<&[u8]> = encoded.as_bytes().split(|byte| *byte == 2).collect();
    ours.sort_unstable();
    assert_eq!(
        ours, entries,
        "the same entries, each ended by its separator"
    );
}

fn stored() -> StoredMessage {
    StoredMessage {
        queue_id: 1,
        flag: 2,
        queue_offset: 3,
        commit_log_offset: 4,
        sys_flag: 0,
        born_timestamp: 1_700_000_000_000,
        born_host: "10.0.0.1:1234".parse().unwrap(),
        store_timestamp: 1_700_000_000_001,
        store_host: "10.0.0.2:10911".parse().unwrap(),
        reconsume_times: 5,
        prepared_transaction_offset: 6,
        body: Bytes::from_static(b"hello"),
        topic: "T1".into(),
        properties: "x\u{1}y\u{2}".into(),
    }
}

fn check_stored(message: &StoredMessage, sys_flag: i32, java: &str, id: &str) {
    let mut ours = BytesMut::new();
    message.encode(&mut ours).unwrap();
    assert_eq!(hex(&ours), java);
    let expected = StoredMessage {
        sys_flag,
        ..message.clone()
    };
    assert_eq!(StoredMessage::decode(unhex(java)), Ok(expected));

    let walked: Vec<_> = StoredMessages::new(unhex(java)).collect();
    let [Ok(message)] = walked.as_slice() else {
        panic!("{walked:?}");
    };
    assert_eq!(message.offset_msg_id(), id);
    assert_eq!(message.msg_id(), id, "without a unique key");
    assert_eq!(message.sys_flag(), sys_flag);
    assert_eq!(message.property("x"), Some("y"));
    let parsed = OffsetMessageId::parse(id).unwrap();
    assert_eq!(parsed.store_host, message.store_host());
    assert_eq!(parsed.commit_log_offset, 4);
}

#[test]
fn a_stored_message_with_ipv4_hosts_is_java_s() {
    let java = "00000066daa320a73610a68600000001000000020000000000000003000000000000000400000000\
                0000018bcfe568000a000001000004d20000018bcfe568010a00000200002a9f0000000500000000\
                000000060000000568656c6c6f025431000478017902";
    check_stored(&stored(), 0, java, "0A00000200002A9F0000000000000004");
}

#[test]
fn a_stored_message_with_ipv6_hosts_is_java_s() {
    let message = StoredMessage {
        born_host: "[::1]:1".parse().unwrap(),
        store_host: "[::1]:10911".parse().unwrap(),
        ..stored()
    };
    let java = "0000007edaa320a73610a68600000001000000020000000000000003000000000000000400000030\
                0000018bcfe5680000000000000000000000000000000001000000010000018bcfe5680100000000\
                00000000000000000000000100002a9f0000000500000000000000060000000568656c6c6f025431\
                000478017902";
    let id = "0000000000000000000000000000000100002A9F0000000000000004";
    check_stored(&message, 0x30, java, id);
}

#[test]
fn the_first_bit_of_a_checksum_is_cleared() {
    let message = StoredMessage {
        body: Bytes::from_static(b"a"),
        ..stored()
    };
    let mut out = BytesMut::new();
    message.encode(&mut out).unwrap();
    assert_eq!(
        hex(&out[8..12]),
        "68b7be43",
        "CRC-32 of the body is e8b7be43"
    );
    assert_eq!(StoredMessage::decode(out.freeze()), Ok(message));
}

const JAVA_HEARTBEAT: &str = r#"{"clientID":"10.0.0.1@123#456","consumerDataSet":[{"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET","consumeType":"CONSUME_PASSIVELY","groupName":"g1","messageModel":"CLUSTERING","subscriptionDataSet":[{"classFilterMode":false,"codeSet":[2598919,2598920],"expressionType":"TAG","subString":"TagA || TagB","subVersion":1700000000000,"tagsSet":["TagA","TagB"],"topic":"T1"}],"unitMode":false}],"heartbeatFingerprint":0,"producerDataSet":[{"groupName":"CLIENT_INNER_PRODUCER"}],"withoutSub":false}"#;

fn heartbeat() -> HeartbeatData {
    HeartbeatData {
        client_id: "10.0.0.1@123#456".into(),
        consumer_data_set: vec![ConsumerData {
            consume_from_where: ConsumeFromWhere::ConsumeFromLastOffset,
            consume_type: ConsumeType::ConsumePassively,
            group_name: "g1".into(),
            message_model: MessageModel::Clustering,
            subscription_data_set: vec![
                SubscriptionData::build("T1", "TagA || TagB", 1_700_000_000_000).unwrap(),
            ],
            unit_mode: false,
        }],
        heartbeat_fingerprint: 0,
        producer_data_set: vec![ProducerData {
            group_name: "CLIENT_INNER_PRODUCER".into(),
        }],
        without_sub: false,
    }
}

#[test]
fn a_heartbeat_is_java_s_text() {
    let ours = String::from_utf8(heartbeat().to_json().unwrap()).unwrap();
    assert_eq!(ours, JAVA_HEARTBEAT);
    assert_eq!(
        HeartbeatData::from_json(JAVA_HEARTBEAT.as_bytes()),
        Ok(heartbeat())
    );
}

#[test]
fn a_heartbeat_has_java_s_fingerprint_whoever_sends_it() {
    assert_eq!(heartbeat().fingerprint(), Ok(612_689_934));
    let mut other = heartbeat();
    other.client_id = "10.0.0.2@7".into();
    other.heartbeat_fingerprint = 5;
    other.without_sub = true;
    other.consumer_data_set[0].subscription_data_set[0].sub_version += 1;
    assert_eq!(other.fingerprint(), Ok(612_689_934));
    other.consumer_data_set[0].subscription_data_set[0].sub_string = "TagA".into();
    assert_ne!(other.fingerprint(), Ok(612_689_934));
}

#[test]
fn a_heartbeat_without_subscriptions_keeps_its_groups() {
    let short = heartbeat().without_subscriptions();
    assert!(short.without_sub);
    assert_eq!(short.consumer_data_set[0].subscription_data_set, []);
    assert_eq!(short.producer_data_set, heartbeat().producer_data_set);
    assert_eq!(short.topics_of("g1").len(), 0);
}

#[test]
fn a_hash_is_java_s_string_hash() {
    assert_eq!(java_string_hash("order-7"), -1_207_111_304);
    assert_eq!(java_string_hash("order-7") % 8, 0);
    assert_eq!(java_string_hash("TagA"), 2_598_919);
    assert_eq!(
        java_string_hash("\u{1F600}"),
        0xD83D * 31 + 0xDE00,
        "two units, not one character"
    );
}

#[test]
fn both_send_headers_have_java_s_names() {
    let header = SendMessageRequestHeader {
        producer_group: "pg".into(),
        topic: "T".into(),
        default_topic: "TBW102".into(),
        default_topic_queue_nums: 4,
        queue_id: -1,
        sys_flag: 0x301,
        born_timestamp: 1_700_000_000_000,
        flag: 7,
        properties: Some("WAIT\u{1}true\u{2}".into()),
        reconsume_times: Some(2),
        unit_mode: Some(false),
        max_reconsume_times: Some(16),
        batch: Some(true),
        broker_name: Some("broker-a".into()),
    };
    let named = [
        ("a", "producerGroup", "pg"),
        ("b", "topic", "T"),
        ("c", "defaultTopic", "TBW102"),
        ("d", "defaultTopicQueueNums", "4"),
        ("e", "queueId", "-1"),
        ("f", "sysFlag", "769"),
        ("g", "bornTimestamp", "1700000000000"),
        ("h", "flag", "7"),
        ("i", "properties", "WAIT\u{1}true\u{2}"),
        ("j", "reconsumeTimes", "2"),
        ("k", "unitMode", "false"),
        ("l", "maxReconsumeTimes", "16"),
        ("m", "batch", "true"),
        ("n", "bname", "broker-a"),
    ];
    let long = map(&named.map(|(_, name, value)| (name, value)));
    let short = map(&named.map(|(name, _, value)| (name, value)));
    let v2 = SendMessageRequestHeaderV2(header.clone());
    assert_eq!(fields(&header), long);
    assert_eq!(fields(&v2), short);
    assert_eq!(
        SendMessageRequestHeader::decode(&long.into_iter().collect()),
        Ok(header)
    );
    assert_eq!(
        SendMessageRequestHeaderV2::decode(&short.into_iter().collect()),
        Ok(v2)
    );

    let least = SendMessageRequestHeaderV2(SendMessageRequestHeader::default());
    let names: String = fields(&least).into_keys().collect();
    assert_eq!(
        names, "abcdefgh",
        "an absent option is not sent, anything else is"
    );
}

#[test]
fn a_unique_key_is_written_part_by_part() {
    let mut parts = UniqKeyParts {
        ip: "10.0.0.255".parse().unwrap(),
        process_id: 0x1234,
        process_hash: 0x89AB_CDEF,
        elapsed_millis: 0x0000_000A,
        counter: 0xFFFF,
    };
    assert_eq!(parts.to_string(), "0A0000FF123489ABCDEF0000000AFFFF");
    parts.ip = "2001:db8::1".parse().unwrap();
    let key = parts.to_string();
    assert_eq!(
        key,
        "20010DB8000000000000000000000001123489ABCDEF0000000AFFFF"
    );
}
