//! What a broken or hostile peer sends: every answer is a value or an error, soon, and nothing is
//! allocated because a length field says so.
#![allow(clippy::panic)]

use std::alloc::System;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use rocketmq_protocol::body::{
    BrokerData, GetConsumerListByGroupResponseBody, HeartbeatData, JsonBody, QueueData,
    TopicRouteData,
};
use rocketmq_protocol::compression::{CompressionType, MAX_DECOMPRESSED_LENGTH};
use rocketmq_protocol::header::{
    PullMessageRequestHeader, PullMessageResponseHeader, SendMessageRequestHeader,
    SendMessageRequestHeaderV2, SendMessageResponseHeader,
};
use rocketmq_protocol::{
    CodecError, FrameDecoder, LanguageCode, MAX_FRAME_LENGTH, OffsetMessageId, RemotingCommand,
    SerializeType, StoredMessage, StoredMessages, SubscriptionData, decode_properties,
    encode_properties, java_string_hash, json, sys_flag, validators,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Allocations are counted for the whole process, so one test runs at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Far above what any of this takes, far below what work that grows with the square of the input
/// would take.
const NEVER: Duration = Duration::from_secs(120);

/// Runs `work` on a thread of its own and fails when it does not end; `work` may note how far it
/// is, which is then told.
fn ends(work: impl FnOnce(&AtomicU64) + Send + 'static) {
    let _alone = alone();
    let at = Arc::new(AtomicU64::new(0));
    let (done, waiting) = mpsc::channel();
    let worker = {
        let at = Arc::clone(&at);
        thread::Builder::new()
            .name("robustness".into())
            .spawn(move || {
                work(&at);
                let _ = done.send(());
            })
            .unwrap()
    };
    if waiting.recv_timeout(NEVER) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("no end in sight at case {}", at.load(Ordering::Relaxed));
    }
    if let Err(panic) = worker.join() {
        resume_unwind(panic);
    }
}

/// Runs `decode` on the bytes and fails when it allocates out of proportion to them.
fn frugal<T>(input_length: usize, decode: impl FnOnce() -> T) -> T {
    let region = Region::new(ALLOCATOR);
    let result = decode();
    let change = region.change();
    let most = 64 * 1024 + 256 * input_length;
    let allocated = change.bytes_allocated;
    assert!(
        allocated <= most,
        "{allocated} bytes allocated for {input_length} bytes of input"
    );
    result
}

/// SplitMix64: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        const ODD_NUMBERS: [i32; 9] = [
            -1,
            0,
            1,
            7,
            0x7F,
            0x7FFF,
            i32::MAX,
            i32::MIN,
            MAX_FRAME_LENGTH as i32,
        ];
        const ODD_TEXTS: [&[u8]; 14] = [
            b"\"",
            b"\\",
            b"{",
            b"}",
            b"[",
            b"]",
            b":",
            b",",
            b"null",
            b"{{",
            b"\x01",
            b"\x02",
            b"99999999999",
            b"\xF0\x9F",
        ];
        let at = self.below(bytes.len());
        let length = self.below(bytes.len() - at).min(64);
        match self.below(8) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << self.below(8),
            1 if !bytes.is_empty() => bytes[at] = self.next() as u8,
            2 if bytes.len() >= at + 4 => {
                let number = ODD_NUMBERS[self.below(ODD_NUMBERS.len())];
                bytes[at..at + 4].copy_from_slice(&number.to_be_bytes());
            }
            3 => bytes.truncate(at),
            4 => drop(bytes.drain(at..at + length)),
            5 => {
                let again = bytes[at..at + length].to_vec();
                let place = self.below(bytes.len());
                bytes.splice(place..place, again);
            }
            6 => {
                let text = ODD_TEXTS[self.below(ODD_TEXTS.len())];
                bytes.splice(at..at, text.iter().copied());
            }
            _ => bytes.extend((0..length).map(|_| self.next() as u8)),
        }
    }
}

/// Feeds mutants of valid inputs, several mutations on top of each other, to `consume`.
fn mutate_all(valid: Vec<Vec<u8>>, mutants: u64, consume: fn(&[u8], &mut Random)) {
    ends(move |at| {
        for seed in 0..mutants {
            at.store(seed, Ordering::Relaxed);
            let mut random = Random(seed);
            let mut bytes = valid[random.below(valid.len())].clone();
            for _ in 0..=random.below(4) {
                random.mutate(&mut bytes);
            }
            let run = AssertUnwindSafe(|| consume(&bytes, &mut random));
            if let Err(panic) = catch_unwind(run) {
                eprintln!("mutant {seed}: {}", bytes.escape_ascii());
                resume_unwind(panic);
            }
        }
    });
}

fn command(serialize_type: SerializeType) -> RemotingCommand {
    let header = SendMessageRequestHeader {
        producer_group: "pg".into(),
        topic: "T\u{6F22}".into(),
        default_topic: "TBW102".into(),
        queue_id: 3,
        properties: Some("WAIT\u{1}true\u{2}".into()),
        batch: Some(false),
        ..SendMessageRequestHeader::default()
    };
    let mut command =
        RemotingCommand::request(310, &SendMessageRequestHeaderV2(header)).with_body("hello");
    command.serialize_type = serialize_type;
    command.remark = Some("r\u{1F600}\"\\\n".into());
    command.opaque = 77;
    command
}

fn frame(command: &RemotingCommand) -> Vec<u8> {
    let mut out = BytesMut::new();
    command.encode(&mut out).unwrap();
    out.to_vec()
}

fn stored(body: &'static [u8]) -> StoredMessage {
    StoredMessage {
        queue_id: 1,
        flag: 2,
        queue_offset: 3,
        commit_log_offset: 4,
        sys_flag: 0,
        born_timestamp: 5,
        born_host: "10.0.0.1:1234".parse().unwrap(),
        store_timestamp: 6,
        store_host: "[2001:db8::1]:10911".parse().unwrap(),
        reconsume_times: 7,
        prepared_transaction_offset: 8,
        body: Bytes::from_static(body),
        topic: "T\u{6F22}".into(),
        properties: "TAGS\u{1}a\u{2}UNIQ_KEY\u{1}7F0000010001\u{2}".into(),
    }
}

fn wire(message: &StoredMessage) -> Vec<u8> {
    let mut out = BytesMut::new();
    message.encode(&mut out).unwrap();
    out.to_vec()
}

fn compressed(kind: CompressionType) -> StoredMessage {
    let body = b"compressible ".repeat(40);
    StoredMessage {
        sys_flag: sys_flag::COMPRESSED | kind.flag(),
        body: kind.compress(&body, 5).unwrap(),
        ..stored(b"")
    }
}

const KINDS: [CompressionType; 3] = [
    CompressionType::Lz4,
    CompressionType::Zstd,
    CompressionType::Zlib,
];

fn route() -> TopicRouteData {
    TopicRouteData {
        broker_datas: vec![BrokerData {
            broker_addrs: [(0, "10.0.0.1:10911".to_owned())].into(),
            broker_name: "broker-a".into(),
            cluster: "c".into(),
            ..BrokerData::default()
        }],
        queue_datas: vec![QueueData {
            broker_name: "broker-a".into(),
            perm: 6,
            read_queue_nums: 4,
            write_queue_nums: 4,
            topic_sys_flag: 0,
        }],
        ..TopicRouteData::default()
    }
}

#[test]
fn mutated_frames_are_read_or_refused() {
    let one = |form| frame(&command(form));
    let valid = vec![
        one(SerializeType::Json),
        one(SerializeType::RocketMq),
        [one(SerializeType::RocketMq), one(SerializeType::Json)].concat(),
    ];
    mutate_all(valid, 20_000, |bytes, random| {
        frugal(bytes.len(), || {
            let mut decoder = FrameDecoder::default();
            let mut rest = bytes;
            let mut commands = 0;
            while !rest.is_empty() {
                let (now, later) = rest.split_at(1 + random.below(rest.len()));
                decoder.extend(now);
                rest = later;
                loop {
                    match decoder.next_command() {
                        Ok(Some(command)) => {
                            commands += 1;
                            read_headers(&command);
                        }
                        Ok(None) => break,
                        Err(_) => return,
                    }
                }
            }
            assert!(commands <= bytes.len() / 8);
            assert!(decoder.pending() <= bytes.len());
        });
    });
}

fn read_headers(command: &RemotingCommand) {
    let _ = command.decode_header::<SendMessageRequestHeader>();
    let _ = command.decode_header::<SendMessageResponseHeader>();
    let _ = command.decode_header::<PullMessageRequestHeader>();
    let _ = command.decode_header::<PullMessageResponseHeader>();
    if let Ok(SendMessageRequestHeaderV2(header)) = command.decode_header() {
        decode_properties(header.properties.as_deref().unwrap_or_default());
        let _ = validators::check_topic(&header.topic);
        let _ = SubscriptionData::build(&header.topic, &header.producer_group, 0);
    }
    let mut again = BytesMut::new();
    command.encode(&mut again).unwrap();
}

#[test]
fn mutated_stored_messages_are_read_or_refused() {
    let plain = wire(&stored(b"hello"));
    let long_topic = wire(&StoredMessage {
        topic: "t".repeat(200),
        ..stored(b"")
    });
    let valid = vec![plain.clone(), long_topic, plain.repeat(3)];
    mutate_all(valid, 20_000, |bytes, _| {
        let bytes = Bytes::copy_from_slice(bytes);
        frugal(bytes.len(), || {
            let _ = StoredMessage::decode(bytes.clone());
        });
        assert!(StoredMessages::new(bytes.clone()).count() <= 1 + bytes.len() / 8);
    });
}

#[test]
fn mutated_compressed_messages_are_read_or_refused() {
    let valid = KINDS.map(|kind| wire(&compressed(kind))).to_vec();
    mutate_all(valid, 4_000, |bytes, _| {
        // A checksum of 0 is not compared, so that what is mutated reaches the decoder.
        let mut bytes = bytes.to_vec();
        if let Some(checksum) = bytes.get_mut(8..12) {
            checksum.fill(0);
        }
        let length = bytes.len();
        assert!(StoredMessages::new(bytes.into()).count() <= 1 + length / 8);
    });
}

#[test]
fn mutated_compressed_bodies_are_expanded_or_refused() {
    let valid = KINDS.map(|kind| compressed(kind).body.to_vec()).to_vec();
    mutate_all(valid, 4_000, |bytes, _| {
        for kind in KINDS {
            if let Ok(body) = kind.decompress(bytes) {
                assert!(body.len() <= MAX_DECOMPRESSED_LENGTH);
            }
        }
    });
}

#[test]
fn mutated_json_bodies_are_read_or_refused() {
    let heartbeat = br#"{"clientID":"c","consumerDataSet":[{"groupName":"g","subscriptionDataSet":[{"codeSet":[1],"tagsSet":["a"],"topic":"t"}]}]}"#;
    let valid = vec![
        route().to_json().unwrap(),
        br#"{"brokerDatas":[{"brokerAddrs":{0:"a",1:"b"},"brokerName":"n"}],"orderTopicConf":"b:3;c:4","queueDatas":[{"brokerName":"n","perm":6,"writeQueueNums":4}]}"#.to_vec(),
        br#"{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"t"}:5,{"brokerName":"b","queueId":1,"topic":"t"}:6}}"#.to_vec(),
        heartbeat.to_vec(),
        br#"{"consumerIdList":["a","b"]}"#.to_vec(),
    ];
    mutate_all(valid, 20_000, |bytes, _| {
        let route = frugal(bytes.len(), || {
            let _ = json::from_slice::<serde_json::Value>("x", bytes);
            let _ = HeartbeatData::from_json(bytes);
            let _ = GetConsumerListByGroupResponseBody::from_json(bytes);
            TopicRouteData::from_json(bytes)
        });
        if let Ok(route) = route {
            assert!(route.publish_queues("t").0.len() <= 1 << 20);
            assert!(route.subscribe_queues("t").len() <= 1 << 20);
        }
    });
}

#[test]
fn mutated_texts_are_read() {
    let valid = vec![
        b"KEYS\x01k1\x02x\x01y\x02WAIT\x01true\x02".to_vec(),
        b"0A00000200002A9F0000000000000004".to_vec(),
        b"TagA || TagB||\xE6\xBC\xA2".to_vec(),
    ];
    mutate_all(valid, 20_000, |bytes, _| {
        let text = String::from_utf8_lossy(bytes);
        let properties = frugal(bytes.len(), || decode_properties(&text));
        assert_eq!(
            decode_properties(&encode_properties(&properties)),
            properties
        );
        if let Some(id) = OffsetMessageId::parse(&text) {
            assert_eq!(id.to_string(), text.to_ascii_uppercase());
        }
        if let Ok(data) = SubscriptionData::build("t", &text, 0) {
            assert!(data.tags_set.iter().all(|tag| data.matches_tag(Some(tag))));
            assert!(
                data.tags_set
                    .iter()
                    .all(|tag| data.code_set.contains(&java_string_hash(tag)))
            );
        }
        let _ = validators::check_group(&text);
    });
}

fn length_error(what: &'static str, length: i64) -> CodecError {
    CodecError::BadLength { what, length }
}

#[test]
fn a_frame_length_out_of_range_is_an_error_at_once() {
    let _alone = alone();
    for length in [-1, i32::MIN, i32::MAX, MAX_FRAME_LENGTH as i32 + 1, 0, 3] {
        let mut decoder = FrameDecoder::default();
        decoder.extend(&length.to_be_bytes());
        let result = frugal(4, || decoder.next_command());
        assert_eq!(result, Err(length_error("frame", length.into())));
    }
    let mut decoder = FrameDecoder::default();
    decoder.extend(&(MAX_FRAME_LENGTH as i32).to_be_bytes());
    assert_eq!(
        frugal(4, || decoder.next_command()),
        Ok(None),
        "the longest frame may come"
    );
}

#[test]
fn a_header_beyond_its_frame_is_an_error() {
    let _alone = alone();
    for form in [0, 1] {
        for length in [3_u32, 0x7FFF, 0x00FF_FFFF] {
            let mut content = (form << 24 | length).to_be_bytes().to_vec();
            content.extend_from_slice(b"{}");
            let result = frugal(content.len(), || {
                RemotingCommand::decode(content.clone().into())
            });
            assert_eq!(result, Err(length_error("header", length.into())));
        }
    }
    let result = RemotingCommand::decode(Bytes::from_static(&[2, 0, 0, 0]));
    assert_eq!(result, Err(CodecError::BadSerializeType { code: 2 }));
    let result = RemotingCommand::decode(Bytes::from_static(&[0, 0, 0]));
    assert_eq!(result, Err(CodecError::Truncated { what: "frame" }));
}

/// Where the length fields of a binary frame are that has a remark of one byte and one field `k=v`.
#[test]
fn lengths_in_a_binary_header_are_compared_with_what_is_there() {
    let _alone = alone();
    let mut command = RemotingCommand::request_without_header(34);
    command.remark = Some("r".into());
    command.ext_fields.set("k", "v");
    command.serialize_type = SerializeType::RocketMq;
    let valid = frame(&command).split_off(4);
    assert!(RemotingCommand::decode(valid.clone().into()).is_ok());
    let (remark, fields, value) = (4 + 13, 4 + 13 + 5, 4 + 13 + 5 + 4 + 3);
    for (at, what) in [
        (remark, "remark"),
        (fields, "header fields"),
        (value, "field value"),
    ] {
        for length in [-1, i32::MIN, i32::MAX, 1000] {
            let mut bytes = valid.clone();
            bytes[at..at + 4].copy_from_slice(&length.to_be_bytes());
            let result = frugal(bytes.len(), || {
                RemotingCommand::decode(bytes.clone().into())
            });
            assert_eq!(result, Err(length_error(what, length.into())));
        }
    }
    let name = fields + 4;
    for length in [-1, i16::MIN, i16::MAX, 100] {
        let mut bytes = valid.clone();
        bytes[name..name + 2].copy_from_slice(&length.to_be_bytes());
        let result = RemotingCommand::decode(bytes.into());
        assert_eq!(result, Err(length_error("field name", length.into())));
    }
    for end in 4..valid.len() {
        let mut cut = valid[..end].to_vec();
        cut[..4].copy_from_slice(&(1 << 24 | (end as u32 - 4)).to_be_bytes());
        assert!(RemotingCommand::decode(cut.into()).is_err(), "cut at {end}");
    }
}

fn json_command(header: &str) -> Result<RemotingCommand, CodecError> {
    let mut content = (header.len() as u32).to_be_bytes().to_vec();
    content.extend_from_slice(header.as_bytes());
    RemotingCommand::decode(content.into())
}

#[test]
fn absent_fields_come_in_three_forms() {
    let _alone = alone();
    for header in [
        r#"{"code":1}"#,
        r#"{"code":1,"extFields":null}"#,
        r#"{"code":1,"extFields":{}}"#,
        r#"{"code":1,"extFields":{"a":null}}"#,
    ] {
        let command = json_command(header).unwrap();
        assert!(command.ext_fields.is_empty(), "{header}");
        assert_eq!(
            (command.code, command.opaque, command.flag, command.version),
            (1, 0, 0, 0)
        );
        assert_eq!((command.remark, command.body), (None, None));
    }
}

#[test]
fn field_values_that_are_no_text_become_their_text() {
    let _alone = alone();
    let header = r#"{"code":1,"extFields":{"i":-7,"u":18446744073709551615,"f":0.0,"b":true,
        "s":"a\"\u6f22"},"later":{"x":[1]}}"#;
    let fields = json_command(header).unwrap().ext_fields;
    let all: Vec<_> = fields.iter().collect();
    let expected = [
        ("i", "-7"),
        ("u", "18446744073709551615"),
        ("f", "0.0"),
        ("b", "true"),
        ("s", "a\"\u{6F22}"),
    ];
    assert_eq!(all, expected);
    for value in ["[1]", r#"{"a":"b"}"#] {
        let header = format!(r#"{{"code":1,"extFields":{{"a":{value}}}}}"#);
        assert!(
            matches!(json_command(&header), Err(CodecError::BadJson { .. })),
            "{header}"
        );
    }
}

#[test]
fn a_field_that_comes_twice_has_its_last_value() {
    let _alone = alone();
    let twice = json_command(r#"{"code":1,"extFields":{"a":"1","b":"2","a":"3"}}"#).unwrap();
    assert_eq!(twice.ext_fields.len(), 2);
    assert_eq!(twice.ext_fields.get("a"), Some("3"));
    let many: String = (0..200).fold(String::new(), |mut text, number| {
        let _ = write!(text, "\"k{}\":\"{number}\",", number % 100);
        text
    });
    let header = format!(r#"{{"code":1,"extFields":{{{many}"end":""}}}}"#);
    let many = json_command(&header).unwrap().ext_fields;
    assert_eq!(many.len(), 101);
    assert_eq!(
        (many.get("k7"), many.get("k99")),
        (Some("107"), Some("199"))
    );
    for header in [
        r#"{"code":1,"code":2}"#,
        r#"{"code":1,"extFields":{},"extFields":{}}"#,
    ] {
        assert!(
            matches!(json_command(header), Err(CodecError::BadJson { .. })),
            "{header}"
        );
    }
    let body = br#"{"consumerIdList":["a"],"consumerIdList":["b"]}"#;
    assert!(GetConsumerListByGroupResponseBody::from_json(body).is_err());
}

#[test]
fn an_unknown_language_is_another_one() {
    let _alone = alone();
    for language in [r#""KLINGON""#, "null", r#""""#] {
        let command = json_command(&format!(r#"{{"code":1,"language":{language}}}"#)).unwrap();
        assert_eq!(command.language, LanguageCode::Other, "{language}");
    }
    let mut bytes = frame(&command(SerializeType::RocketMq)).split_off(4);
    bytes[6] = 200;
    assert_eq!(
        RemotingCommand::decode(bytes.into()).unwrap().language,
        LanguageCode::Other
    );
}

#[test]
fn headers_that_are_no_object_with_a_code_are_errors() {
    let _alone = alone();
    let deep = format!(r#"{{"code":1,"x":{}"#, "[".repeat(100_000));
    for header in [
        "",
        "{}",
        "[]",
        "7",
        "null",
        "{\"code\":\"x\"}",
        "{\"code\":2147483648}",
        &deep,
    ] {
        assert!(
            matches!(json_command(header), Err(CodecError::BadJson { .. })),
            "{header:.20}"
        );
    }
}

/// Two hundred thousand fields compared each with each would take minutes.
#[test]
fn a_header_of_very_many_fields_is_read_in_one_go() {
    const MANY: usize = 200_000;
    ends(|_| {
        let mut command = RemotingCommand::request_without_header(1);
        command.ext_fields = (0..MANY)
            .map(|number| (format!("k{number}"), "v"))
            .collect();
        for form in [SerializeType::Json, SerializeType::RocketMq] {
            command.serialize_type = form;
            let content = frame(&command).split_off(4);
            let read = RemotingCommand::decode(content.into()).unwrap();
            assert_eq!(read.serialize_type, form);
            assert_eq!(read.ext_fields.len(), MANY);
            assert_eq!(read.ext_fields.get("k77777"), Some("v"));
        }
    });
}

#[test]
fn a_route_is_believed_a_bounded_number_of_queues() {
    ends(|_| {
        let mut conf = route();
        conf.order_topic_conf = Some("b:2147483647;".repeat(1000));
        assert_eq!(conf.publish_queues("t").0.len(), 1 << 20);
        let mut many = route();
        for number in 0..50_000 {
            let name = format!("broker-{number}");
            many.broker_datas.push(BrokerData {
                broker_name: name.clone(),
                broker_addrs: [(0, String::new())].into(),
                ..BrokerData::default()
            });
            many.queue_datas.push(QueueData {
                broker_name: name,
                perm: 6,
                read_queue_nums: if number < 20 { i32::MAX } else { -1 },
                write_queue_nums: if number < 20 { i32::MAX } else { 1 },
                ..QueueData::default()
            });
        }
        assert_eq!(many.publish_queues("t").0.len(), 1 << 20);
        assert_eq!(many.subscribe_queues("t").len(), 1 << 20);
    });
}

#[test]
fn object_keys_swell_a_text_by_a_bounded_factor() {
    let _alone = alone();
    let quotes = "\"\":1,".repeat(5_000);
    for levels in 0..6 {
        let mut text = format!("{{{quotes}\"a\":1}}");
        for _ in 0..levels {
            text = format!("{{{text}:1}}");
        }
        frugal(text.len(), || {
            let _ = json::from_slice::<serde_json::Value>("x", text.as_bytes());
        });
    }
}

#[test]
fn lengths_in_a_stored_message_are_compared_with_what_is_there() {
    let _alone = alone();
    let message = StoredMessage {
        store_host: "10.0.0.2:1".parse().unwrap(),
        ..stored(b"hello")
    };
    let valid = wire(&message);
    assert_eq!(
        StoredMessage::decode(valid.clone().into()),
        Ok(message.clone())
    );
    let (body, topic) = (84, 84 + 4 + 5);
    let properties = topic + 1 + message.topic.len();
    for (at, what) in [(0, "stored message"), (body, "body")] {
        for length in [-1, i32::MIN, i32::MAX, valid.len() as i32 + 1] {
            let mut bytes = valid.clone();
            bytes[at..at + 4].copy_from_slice(&length.to_be_bytes());
            let bytes = Bytes::from(bytes);
            let expected = Err(length_error(what, length.into()));
            assert_eq!(
                frugal(bytes.len(), || StoredMessage::decode(bytes.clone())),
                expected
            );
            let walked: Vec<_> = StoredMessages::new(bytes).collect();
            assert_eq!(walked, [Err(length_error(what, length.into()))]);
        }
    }
    let mut bytes = valid.clone();
    bytes[topic] = 0xFF;
    assert_eq!(
        StoredMessage::decode(bytes.into()),
        Err(length_error("topic", 255))
    );
    for length in [-1, i16::MIN, i16::MAX] {
        let mut bytes = valid.clone();
        bytes[properties..properties + 2].copy_from_slice(&length.to_be_bytes());
        let expected = Err(length_error("properties", length.into()));
        assert_eq!(StoredMessage::decode(bytes.into()), expected);
    }
    for port in [-1, 65_536] {
        let mut bytes = valid.clone();
        bytes[52..56].copy_from_slice(&i32::to_be_bytes(port));
        assert_eq!(
            StoredMessage::decode(bytes.into()),
            Err(length_error("port", port.into()))
        );
    }
    for end in 8..valid.len() {
        let mut cut = valid[..end].to_vec();
        cut[..4].copy_from_slice(&(end as i32).to_be_bytes());
        assert!(StoredMessage::decode(cut.into()).is_err(), "cut at {end}");
    }
}

#[test]
fn one_bad_message_does_not_hide_those_behind_it() {
    let _alone = alone();
    let good = wire(&stored(b"hello"));
    let size = good.len() as i64;
    let mut magic = good.clone();
    magic[4] = 0;
    let mut checksum = good.clone();
    checksum[11] ^= 1;
    let mut body = good.clone();
    body[96..100].copy_from_slice(&i32::MAX.to_be_bytes());
    let mut topic = good.clone();
    topic[100 + 5 + 1 + 1] = 0xFF;
    let mut longer = good.clone();
    longer.extend_from_slice(b"xyz");
    longer[..4].copy_from_slice(&(size as i32 + 3).to_be_bytes());
    let zlib = sys_flag::COMPRESSED | sys_flag::COMPRESSION_ZLIB;
    let unknown = sys_flag::COMPRESSED | sys_flag::COMPRESSION_MASK;
    let no_zlib = wire(&StoredMessage {
        sys_flag: zlib,
        ..stored(b"hello")
    });
    let no_type = wire(&StoredMessage {
        sys_flag: unknown,
        ..stored(b"hello")
    });

    type Fault = fn(&CodecError) -> bool;
    let bad: [(Vec<u8>, Fault); 6] = [
        (magic, |error| matches!(error, CodecError::BadMagic { .. })),
        (checksum, |error| {
            matches!(error, CodecError::BadChecksum { .. })
        }),
        (body, |error| {
            *error == length_error("body", i64::from(i32::MAX))
        }),
        (topic, |error| {
            matches!(error, CodecError::BadUtf8 { what: "topic" })
        }),
        (no_zlib, |error| {
            matches!(
                error,
                CodecError::Compression {
                    algorithm: "ZLIB",
                    ..
                }
            )
        }),
        (no_type, |error| {
            matches!(
                error,
                CodecError::Compression {
                    algorithm: "unknown",
                    ..
                }
            )
        }),
    ];
    for (bad, fault) in bad {
        let reply = Bytes::from([good.clone(), bad, good.clone()].concat());
        let walked: Vec<_> = StoredMessages::new(reply).collect();
        let [Ok(first), Err(error), Ok(last)] = walked.as_slice() else {
            panic!("{walked:?}");
        };
        assert!(fault(error), "{error:?}");
        assert_eq!(first, last);
        assert_eq!(
            (first.body().as_ref(), first.msg_id()),
            (&b"hello"[..], "7F0000010001")
        );
        assert_eq!(first.store_size() as i64, size);
    }
}

#[test]
fn garbage_behind_the_messages_is_one_error() {
    let _alone = alone();
    let good = wire(&stored(b"hello"));
    let cut = Err(CodecError::Truncated {
        what: "stored message",
    });
    for (garbage, expected) in [
        (&b"\0\0\0"[..], cut),
        (&[0; 64], Err(length_error("stored message", 0))),
        (
            &[0, 0, 0, 7, 0, 0, 0, 0],
            Err(length_error("stored message", 7)),
        ),
        (&[0xFF; 16], Err(length_error("stored message", -1))),
        (
            &good[..good.len() - 1],
            Err(length_error("stored message", good.len() as i64)),
        ),
    ] {
        let reply = Bytes::from([&good, garbage].concat());
        let mut walk = StoredMessages::new(reply);
        assert!(walk.next().unwrap().is_ok());
        assert_eq!(walk.next(), Some(expected));
        assert_eq!(walk.next(), None);
    }
    assert_eq!(StoredMessages::new(Bytes::new()).next(), None);
}

#[test]
fn a_long_topic_has_the_second_form_of_messages() {
    let _alone = alone();
    const SECOND: [u8; 4] = 0xDAA3_20AB_u32.to_be_bytes();
    for length in [0, 127, 128, 255, 300, i16::MAX as usize] {
        let message = StoredMessage {
            topic: "t".repeat(length),
            ..stored(b"hello")
        };
        let bytes = wire(&message);
        assert_eq!(bytes[4..8] == SECOND, length > 127, "{length}");
        let read = StoredMessage::decode(bytes.into()).unwrap();
        assert_eq!(
            (read.topic, read.properties),
            (message.topic, message.properties)
        );
    }
    let short = wire(&stored(b""));
    let mut second = short.clone();
    second[4..8].copy_from_slice(&SECOND);
    second.insert(100, 0);
    second[3] += 1;
    let read = StoredMessage::decode(second.into());
    assert_eq!(
        read,
        StoredMessage::decode(short.into()),
        "a short topic may have it too"
    );
}

#[test]
fn what_does_not_fit_its_length_field_is_not_written() {
    let _alone = alone();
    let out = |message: &StoredMessage| {
        let mut out = BytesMut::from(&b"before"[..]);
        let result = message.encode(&mut out);
        assert_eq!(
            result.is_err(),
            out == b"before"[..],
            "nothing is left of what failed"
        );
        result
    };
    let topic = StoredMessage {
        topic: "t".repeat(32_768),
        ..stored(b"")
    };
    assert!(matches!(
        out(&topic),
        Err(CodecError::Unencodable { what: "topic", .. })
    ));
    let properties = StoredMessage {
        properties: "p".repeat(32_768),
        ..stored(b"")
    };
    let what = "message properties";
    assert!(matches!(out(&properties), Err(CodecError::Unencodable { what: w, .. }) if w == what));
    let properties = StoredMessage {
        properties: "p".repeat(32_767),
        ..stored(b"")
    };
    assert_eq!(out(&properties), Ok(()));

    let mut command = command(SerializeType::RocketMq);
    command.version = 40_000;
    let mut out = BytesMut::from(&b"before"[..]);
    assert!(matches!(
        command.encode(&mut out),
        Err(CodecError::Unencodable { .. })
    ));
    assert_eq!(out, b"before"[..]);
}

const CHUNK: usize = 4 * 1024 * 1024;

/// A stream of `chunks` times four million zeros, made of one compressed chunk that is repeated. The
/// zlib stream has no end, which nobody gets to see.
fn bomb(kind: CompressionType, chunks: usize) -> Vec<u8> {
    let zeros = vec![0; CHUNK];
    let once = kind.compress(&zeros, 1).unwrap();
    match kind {
        CompressionType::Zstd => once.repeat(chunks),
        CompressionType::Lz4 => {
            let (header, blocks) = once.split_at(lz4_frame(0).len() - 4);
            let (blocks, end) = blocks.split_at(blocks.len() - 4);
            [header, &blocks.repeat(chunks), end].concat()
        }
        _ => {
            let mut encoder = flate2::Compress::new(flate2::Compression::fast(), true);
            let [first, second] = [(); 2].map(|()| {
                let mut out = Vec::with_capacity(CHUNK);
                encoder
                    .compress_vec(&zeros, &mut out, flate2::FlushCompress::Full)
                    .unwrap();
                out
            });
            [first, second.repeat(chunks - 1)].concat()
        }
    }
}

#[test]
fn bodies_expand_to_the_limit_and_not_beyond() {
    ends(|_| {
        let most = MAX_DECOMPRESSED_LENGTH / CHUNK;
        for kind in KINDS {
            let bomb = bomb(kind, most + 1);
            assert!(bomb.len() < MAX_DECOMPRESSED_LENGTH / 100, "{kind:?}");
            let CodecError::Compression { detail, .. } = kind.decompress(&bomb).unwrap_err() else {
                panic!("{kind:?}: another error");
            };
            assert!(detail.contains("67108864"), "{kind:?}: {detail}");
        }
        let body = CompressionType::Zstd.decompress(&bomb(CompressionType::Zstd, most));
        assert_eq!(body.map(|body| body.len()), Ok(MAX_DECOMPRESSED_LENGTH));
    });
}

#[test]
fn a_cut_body_is_an_error_wherever_it_is_cut() {
    let _alone = alone();
    let body: Vec<u8> = (0..100_000_u32)
        .flat_map(|n| (n / 7).wrapping_mul(n).to_le_bytes())
        .collect();
    for kind in KINDS {
        let small = kind.compress(&body[..3_000], 5).unwrap();
        for end in 0..small.len() {
            assert!(
                kind.decompress(&small[..end]).is_err(),
                "{kind:?} cut at {end}"
            );
        }
        let large = kind.compress(&body, 5).unwrap();
        assert_eq!(kind.decompress(&large).unwrap(), body);
        for part in 1..8 {
            let end = large.len() * part / 8;
            assert!(
                kind.decompress(&large[..end]).is_err(),
                "{kind:?} cut at {end}"
            );
        }
    }
}

/// An LZ4 frame by hand: blocks of four plain bytes, no checksums.
fn lz4_frame(blocks: usize) -> Vec<u8> {
    let empty = CompressionType::Lz4.compress(b"", 0).unwrap();
    let mut frame = empty[..empty.len() - 4].to_vec();
    for _ in 0..blocks {
        frame.extend_from_slice(&0x8000_0004_u32.to_le_bytes());
        frame.extend_from_slice(b"data");
    }
    frame.extend_from_slice(&[0; 4]);
    frame
}

#[test]
fn an_lz4_body_is_one_whole_frame() {
    let _alone = alone();
    let expand = |bytes: &[u8]| CompressionType::Lz4.decompress(bytes);
    let frame = lz4_frame(3);
    assert_eq!(expand(&frame).unwrap(), b"datadatadata"[..]);
    for blocks in 0..3 {
        let end = frame.len() - 4 - 8 * blocks;
        assert!(expand(&frame[..end]).is_err(), "ended between two blocks");
    }
    assert!(
        expand(&[frame.clone(), lz4_frame(1)].concat()).is_err(),
        "a second frame"
    );
    assert!(expand(&[&frame[..], b"x"].concat()).is_err());
    assert!(expand(b"").is_err());
}

#[test]
fn a_zstd_window_beyond_the_limit_is_refused() {
    let _alone = alone();
    let claim = |window_log: u8| {
        let frame = [0x28, 0xB5, 0x2F, 0xFD, 0, (window_log - 10) << 3, 1, 0, 0];
        frugal(frame.len(), || CompressionType::Zstd.decompress(&frame))
    };
    assert_eq!(claim(26), Ok(Bytes::new()), "an empty last block");
    for window_log in [27, 31, 41] {
        let Err(CodecError::Compression { detail, .. }) = claim(window_log) else {
            panic!("a window of 2^{window_log} bytes was taken");
        };
        assert!(detail.contains("memory"), "{detail}");
    }
}
