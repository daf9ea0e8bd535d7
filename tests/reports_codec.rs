//! Public reports of bytes and names that were written or read wrongly, by clients in any language.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test is outside of what loom models"
)]

use std::collections::BTreeMap;
use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use rocketmq_blocking::{DefaultMQProducer, Error, MQClientManager, Message, MessageQueue};
use rocketmq_embedded::Cluster;
use rocketmq_protocol::acl::signature;
use rocketmq_protocol::body::{JsonBody, ResetOffsetBody, TopicRouteData};
use rocketmq_protocol::{
    CodecError, ExtFields, FrameDecoder, OffsetMessageId, Properties, RemotingCommand,
    SerializeType, StoredMessages, SubscriptionData, decode_properties, encode_properties,
    validators,
};

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

fn names(queues: &[MessageQueue]) -> Vec<String> {
    queues
        .iter()
        .map(|mq| format!("{}{}", mq.broker_name(), mq.queue_id()))
        .collect()
}

fn route(text: &str) -> TopicRouteData {
    TopicRouteData::from_json(text.as_bytes()).unwrap()
}

/// apache/rocketmq-client-go#795 (PR#1077): one sharding key went to different brokers from two
/// producers, since queues were listed as the route happened to list them. They are sorted.
#[test]
fn b12_publish_queues_are_sorted_whatever_the_route_says() {
    let data = |broker: &str| {
        format!(r#"{{"brokerName":"{broker}","perm":6,"readQueueNums":2,"writeQueueNums":2}}"#)
    };
    let brokers = r#"[{"brokerName":"b","brokerAddrs":{"0":"h:2"}},{"brokerName":"a","brokerAddrs":{"0":"h:1"}}]"#;
    let text = |first: &str, second: &str| {
        format!(
            r#"{{"brokerDatas":{brokers},"queueDatas":[{},{}]}}"#,
            data(first),
            data(second)
        )
    };
    for route in [route(&text("b", "a")), route(&text("a", "b"))] {
        assert_eq!(
            names(&route.publish_queues("T").0),
            ["a0", "a1", "b0", "b1"]
        );
    }
}

/// apache/rocketmq-client-go#759 (PR#765), apache/rocketmq#1506, #3389: a body with objects as keys,
/// as Java writes it, ended the process. Both shapes are read, and bad ones are errors.
#[test]
fn b40_a_table_with_objects_as_keys_is_read() {
    let read = |text: &str| ResetOffsetBody::from_json(text.as_bytes());
    let queue = MessageQueue::new("T", "broker-a", 1);
    let objects = r#"{"offsetTable":{{"brokerName":"broker-a","queueId":1,"topic":"T"}:42}}"#;
    let list = r#"{"offsetTable":[{"brokerName":"broker-a","queueId":1,"topic":"T","offset":42}]}"#;
    for text in [objects, list] {
        let table = read(text).unwrap().offset_table;
        assert_eq!(table.get(&queue), Some(&42), "{text}");
        assert_eq!(table.len(), 1);
    }
    assert!(
        read(r#"{"offsetTable":{}}"#)
            .unwrap()
            .offset_table
            .is_empty()
    );
    for bad in [
        r#"{"offsetTable":{{"brokerName":"x""#,
        r#"{"offsetTable":7}"#,
        "",
        "{{{{",
    ] {
        assert!(read(bad).is_err(), "{bad}");
    }
}

/// apache/rocketmq#8868 (PR#8871): codes beyond two bytes came out of the binary header as others.
/// They are written as JSON.
#[test]
fn b59_codes_that_do_not_fit_the_binary_header_go_as_json() {
    for code in [
        200_050, 200_051, 200_052, 200_053, 200_054, 200_055, 200_151,
    ] {
        let mut request = RemotingCommand::request_without_header(code);
        request.serialize_type = SerializeType::RocketMq;
        let mut frame = BytesMut::new();
        request.encode(&mut frame).unwrap();
        let mut decoder = FrameDecoder::default();
        decoder.extend(&frame);
        let read = decoder.next_command().unwrap().unwrap();
        assert_eq!(
            (read.code, read.serialize_type),
            (code, SerializeType::Json)
        );
    }
}

/// apache/rocketmq#3474 (PR#3475), #10832: frames that contradict themselves crashed the decoder.
/// Each is an error, and nothing beyond the frame is read.
#[test]
fn b64_contents_that_contradict_themselves_are_errors() {
    let json = br#"{"code":0,"flag":1,"language":"JAVA","opaque":7,"serializeTypeCurrentRPC":"JSON","version":0}"#;
    let content = |mark: u32, header: &[u8], body: &[u8]| {
        let mut content = mark.to_be_bytes().to_vec();
        content.extend_from_slice(header);
        content.extend_from_slice(body);
        RemotingCommand::decode(content.into())
    };
    let length = json.len() as u32;
    assert_eq!(length, 0x5D);
    assert!(RemotingCommand::decode(Bytes::new()).is_err());
    assert!(RemotingCommand::decode(Bytes::from_static(&[0, 0, 1])).is_err());
    assert!(content(length + 1, json, b"").is_err());
    assert!(content(0x00FF_FFFF, json, b"").is_err());
    assert!(content(2 << 24 | length, json, b"").is_err());
    assert!(content(0xFF << 24 | length, json, b"").is_err());
    assert!(content(0, b"", b"body").is_err());
    assert!(content(3, b"{{{", b"").is_err());
    assert!(content(2, b"[]", b"").is_err());
    let good = content(length, json, b"hi").unwrap();
    assert_eq!((good.opaque, good.body_bytes()), (7, &b"hi"[..]));
    assert_eq!(content(10, br#"{"code":3}"#, b"").unwrap().code, 3);
}

/// apache/rocketmq#1445, #4471, rocketmq-client-go#845: parsers knew one form of a broker's
/// addresses, numbers as keys or strings. Both are read.
#[test]
fn b78_addresses_with_numbers_as_keys_are_read() {
    let text = |zero: &str, one: &str| {
        format!(
            r#"{{"brokerDatas":[{{"brokerAddrs":{{{zero}:"127.0.0.1:10911",{one}: "127.0.0.1:10921"}},"brokerName":"a","cluster":"C"}}],"filterServerTable":{{}},"queueDatas":[{{"brokerName":"a","perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":2}}]}}"#
        )
    };
    for text in [text("0", "1"), text("\"0\"", "\"1\"")] {
        let route = route(&text);
        let addresses = &route.broker_datas[0].broker_addrs;
        let expected = [(0, "127.0.0.1:10911"), (1, "127.0.0.1:10921")];
        assert_eq!(
            *addresses,
            expected.map(|(id, addr)| (id, addr.to_owned())).into()
        );
        assert_eq!(names(&route.publish_queues("T").0), ["a0", "a1"]);
        assert_eq!(
            names(&route.subscribe_queues("T")),
            ["a0", "a1", "a2", "a3"]
        );
    }
    for empty in ["{}", r#"{"brokerDatas":null,"queueDatas":null}"#] {
        assert_eq!(route(empty), TopicRouteData::default(), "{empty}");
    }
}

const PLAIN: &str = "00000089daa320a70d3d51e3000000030000000000000000000000070000000000000400000000000000018bcfe568000a0000050000c3500000018bcfe568017f00000100002a9f0000000000000000000000000000001768656c6c6f2068656c6c6f2068656c6c6f2068656c6c6f09546f70696354657374000e7501760254414753015461674102";
const LZ4: &str = "00000090daa320a70d3d51e3000000030000000000000000000000070000000000000400000001010000018bcfe568000a0000050000c3500000018bcfe568017f00000100002a9f0000000000000000000000000000001e04224d186070730f0000006868656c6c6f2006005068656c6c6f0000000009546f70696354657374000e7501760254414753015461674102";
const ZSTD: &str = "0000008adaa320a70d3d51e3000000030000000000000000000000070000000000000400000002010000018bcfe568000a0000050000c3500000018bcfe568017f00000100002a9f0000000000000000000000000000001828b52ffd00586400003068656c6c6f200100994b1101000009546f70696354657374000e7501760254414753015461674102";
const ZLIB: &str = "00000082daa320a70d3d51e3000000030000000000000000000000070000000000000400000003010000018bcfe568000a0000050000c3500000018bcfe568017f00000100002a9f00000000000000000000000000000010785ecb48cdc9c957c8402701680308b109546f70696354657374000e7501760254414753015461674102";

/// apache/rocketmq PR#4213, NewLifeX/NewLife.RocketMQ#115, rocketmq-clients#959: compressed bodies
/// could not be read, since the wrong bits were taken for the algorithm. All four forms are read,
/// and a wrong checksum changes nothing, as in Java.
#[test]
fn b90_bodies_of_every_compression_are_read() {
    let old_zlib = ZLIB.replace("00000301", "00000001");
    let wrong_checksum = PLAIN.replace("0d3d51e3", "0c3d51e3");
    let forms = [
        (PLAIN, 0),
        (LZ4, 256),
        (ZSTD, 512),
        (ZLIB, 768),
        (old_zlib.as_str(), 0),
        (wrong_checksum.as_str(), 0),
    ];
    for (form, flags) in forms {
        let message = StoredMessages::new(bytes_of(form).into())
            .next()
            .unwrap()
            .unwrap();
        assert_eq!(message.body(), "hello hello hello hello");
        assert_eq!(message.sys_flag(), flags);
        assert_eq!(message.topic(), "TopicTest");
        assert_eq!(message.tags(), Some("TagA"));
        assert_eq!(message.property("u"), Some("v"));
        assert_eq!((message.queue_id(), message.queue_offset()), (3, 7));
        assert_eq!(message.commit_log_offset(), 1024);
        assert_eq!(message.born_host(), "10.0.0.5:50000".parse().unwrap());
        assert_eq!(message.store_host(), "127.0.0.1:10911".parse().unwrap());
        assert_eq!(message.offset_msg_id(), "7F00000100002A9F0000000000000400");
    }
}

/// apache/rocketmq#3476 (PR#3479), #7530, skywalking-java#54: without the last separator, what
/// brokers append merged with the last value. It is always written, and read with or without.
#[test]
fn b93_properties_end_with_their_separator() {
    let expected: Properties = [("KEYS", "k1"), ("TAGS", "TagA")]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .into();
    for text in [
        "TAGS\u{1}TagA\u{2}KEYS\u{1}k1",
        "TAGS\u{1}TagA\u{2}KEYS\u{1}k1\u{2}",
    ] {
        assert_eq!(decode_properties(text), expected, "{text:?}");
    }
    let tag = BTreeMap::from([("TAGS".to_owned(), "TagA".to_owned())]);
    assert_eq!(encode_properties(&tag), "TAGS\u{1}TagA\u{2}");
}

fn producer(cluster: &Cluster) -> DefaultMQProducer {
    let producer = DefaultMQProducer::builder("p")
        .client_manager(&MQClientManager::new())
        .namesrv_addr(&cluster.namesrv_addr())
        .build()
        .unwrap();
    producer.start().unwrap();
    producer
}

/// apache/rocketmq#3786 (PR#3788), #6579: properties beyond 32,767 bytes wrapped their length. They
/// are refused before anything is sent; bytes count, not characters.
#[test]
fn b95_properties_that_are_too_long_are_refused_here() {
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("T", 1).unwrap();
    let producer = producer(&cluster);
    let message = |letter: &str, length: usize| {
        let mut message = Message::new("T", "m");
        message.put_property("UNIQ_KEY", "k");
        let others = encode_properties(message.properties()).len();
        let value = letter.repeat((length - others - 3) / letter.len());
        message.put_property("u", value);
        message
    };
    for (letter, length) in [("x", 32_768), ("é", 32_769)] {
        let refused = producer.send(&message(letter, length)).unwrap_err();
        assert!(matches!(refused, Error::InvalidMessage { .. }), "{refused}");
    }
    assert_eq!(cluster.stored_count("T"), 0);
    // What fits the field is sent; the broker adds properties of its own and then has no room.
    let full = producer.send(&message("x", 32_767)).unwrap_err();
    assert_eq!(full.broker_code(), Some(13), "{full}");
    producer.send(&message("x", 32_000)).unwrap();
}

/// apache/rocketmq-client-go#211 (PR#210), rocketmq-client-cpp#81 (PR#92): offset ids were taken
/// apart wrongly. Both directions, and what is no id is none.
#[test]
fn b96_offset_ids_tell_address_and_offset() {
    let ids = [
        ("127.0.0.1:10091", 1024, "7F0000010000276B0000000000000400"),
        (
            "10.175.8.149:30911",
            637_770,
            "0AAF0895000078BF000000000009BB4A",
        ),
        (
            "[2001:db8::1]:10911",
            1,
            "20010DB800000000000000000000000100002A9F0000000000000001",
        ),
    ];
    for (addr, commit_log_offset, text) in ids {
        let store_host: SocketAddr = addr.parse().unwrap();
        let id = OffsetMessageId {
            store_host,
            commit_log_offset,
        };
        assert_eq!(id.to_string(), text);
        assert_eq!(OffsetMessageId::parse(text), Some(id));
    }
    let odd = "7F0000010000276B000000000000040";
    for bad in [
        "",
        "7F0000010000276B",
        odd,
        "ZZ0000010000276B0000000000000400",
    ] {
        assert_eq!(OffsetMessageId::parse(bad), None, "{bad}");
    }
}

/// apache/rocketmq-client-go PR#1001, apache/rocketmq#4329: expressions with blanks or odd bars
/// matched nothing. They are split, trimmed, and empty parts dropped, as in Java; a star among
/// blanks is the tag `*` there and here.
#[test]
fn b98_tag_expressions_are_taken_apart_as_java_does() {
    let parts = |expression: &str| {
        let data = SubscriptionData::build("T", expression, 0).unwrap();
        let tags: Vec<String> = data.tags_set.into_iter().collect();
        let codes: Vec<i32> = data.code_set.into_iter().collect();
        (tags.join(","), codes, data.sub_string)
    };
    assert_eq!(
        parts("a || b"),
        ("a,b".into(), vec![97, 98], "a || b".into())
    );
    assert_eq!(parts("TagA||TagB || ").0, "TagA,TagB");
    for all in ["", "*"] {
        assert_eq!(parts(all), (String::new(), vec![], "*".into()));
    }
    assert_eq!(parts(" * "), ("*".into(), vec![42], " * ".into()));
    assert_eq!(
        parts("Aa||BB"),
        ("Aa,BB".into(), vec![2112], "Aa||BB".into())
    );
    let refused = SubscriptionData::build("T", "||", 0).unwrap_err();
    assert!(matches!(refused, CodecError::BadExpression { .. }));
}

/// apache/rocketmq-client-go#1030, #1011 (PR#1031), rocketmq-spring#729: keys were joined with
/// brackets or a blank at the end. They are joined by single blanks.
#[test]
fn b100_keys_are_joined_by_single_blanks() {
    let keys = |keys: &[&str]| {
        let message = Message::new("T", "m").with_key_list(keys);
        message.keys().map(str::to_owned)
    };
    assert_eq!(keys(&["k1", "k2"]).as_deref(), Some("k1 k2"));
    assert_eq!(keys(&["k1"]).as_deref(), Some("k1"));
    assert_eq!(keys(&["a b", "c"]).as_deref(), Some("a b c"));
    assert_eq!(keys(&[]), None);
}

/// apache/rocketmq#2282, #1110, #9563: limits were told late or wrongly. They are checked here, with
/// Java's numbers, and the broker's own refusal comes after one attempt.
#[test]
fn b101_limits_are_checked_before_anything_is_sent() {
    let cluster = Cluster::builder().brokers(2).start().unwrap();
    cluster.create_topic("T", 1).unwrap();
    let producer = producer(&cluster);
    let refused = |topic: &str, body: usize| {
        let sent = producer.send(&Message::new(topic, vec![b'x'; body]));
        matches!(sent, Err(Error::InvalidMessage { .. }))
    };
    assert!(refused("T", 0));
    assert!(refused("T", 4_194_305));
    assert!(!refused("T", 4_194_304));
    assert_eq!(cluster.stored_count("T"), 1);
    let longest = "t".repeat(127);
    for good in ["a-b_C%|1", "%RETRY%g", "TBW102", longest.as_str()] {
        assert_eq!(validators::check_topic(good), Ok(()), "{good}");
    }
    let too_long = "t".repeat(128);
    for bad in ["a b", "a.b", "", "主题", too_long.as_str()] {
        assert!(validators::check_topic(bad).is_err(), "{bad}");
        assert!(refused(bad, 1), "{bad}");
    }
    for system in ["SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC"] {
        assert!(refused(system, 1), "{system}");
    }
    let group = |length: usize| {
        let built = DefaultMQProducer::builder("g".repeat(length))
            .namesrv_addr("h:1")
            .build();
        built.is_ok()
    };
    assert!(group(120) && !group(121));

    // The broker's own limit, which is 4 MiB here too, is met with a larger one of the producer's.
    let generous = DefaultMQProducer::builder("q")
        .client_manager(&MQClientManager::new())
        .namesrv_addr(&cluster.namesrv_addr())
        .max_message_size(5 * 1024 * 1024)
        .compress_msg_body_over_howmuch(usize::MAX)
        .build()
        .unwrap();
    generous.start().unwrap();
    let error = generous
        .send(&Message::new("T", vec![b'x'; 4_194_305]))
        .unwrap_err();
    assert_eq!(error.broker_code(), Some(13), "{error}");
    assert!(error.to_string().contains("after 1 attempts"), "{error}");
}

/// NewLifeX/NewLife.RocketMQ#89 (PR#91): fields were signed in an order that depended on the
/// machine's language. Their names' code units decide.
#[test]
fn b102_fields_are_signed_in_the_order_of_their_code_units() {
    let fields: ExtFields = [
        ("topic", "TopicTest"),
        ("a", "1"),
        ("_", ""),
        ("Z", "2"),
        ("AccessKey", "RocketMQ"),
    ]
    .into_iter()
    .collect();
    assert_eq!(
        signature(&fields, b"body", "12345678"),
        "0PXr2zf9ZYXeRZCSTd5SmWzhI7A="
    );
    let mut again = fields;
    again.set("Signature", "0PXr2zf9ZYXeRZCSTd5SmWzhI7A=");
    assert_eq!(
        signature(&again, b"body", "12345678"),
        "0PXr2zf9ZYXeRZCSTd5SmWzhI7A="
    );
    let only: ExtFields = [("AccessKey", "RocketMQ")].into_iter().collect();
    assert_eq!(
        signature(&only, b"{}", "12345678"),
        "pq0tPL2lAz7bhIfEGHu4hhut1Yw="
    );
}

/// apache/rocketmq#10838 (PR#11127, #11115): one segment of an order configuration that was typed
/// wrong made the route fail, and with it those of all other topics. The good segments count.
#[test]
fn b80_bad_segments_of_an_order_configuration_are_passed_over() {
    let queues = |conf: &str| {
        let route = TopicRouteData {
            order_topic_conf: Some(conf.to_owned()),
            ..TopicRouteData::default()
        };
        let (queues, ordered) = route.publish_queues("T");
        assert!(ordered);
        let queues = queues.iter();
        let names: Vec<_> = queues
            .map(|mq| format!("{}{}", mq.broker_name(), mq.queue_id()))
            .collect();
        names.join(" ")
    };
    assert_eq!(queues("a:4;b:2"), "a0 a1 a2 a3 b0 b1");
    for conf in [
        "a:4;",
        "a:4;b",
        "a:4;b:x",
        "a:4;:3",
        "a:4;b:-1",
        ";a:4",
        "b:99999999999;a:4",
        "a:4;b:2147483647",
    ] {
        assert_eq!(queues(conf), "a0 a1 a2 a3", "{conf}");
    }
}

/// The same report: a number of queues that nobody has takes no memory to speak of.
#[test]
fn b80_a_number_of_queues_without_measure_is_cut() {
    let route = TopicRouteData {
        order_topic_conf: Some("a:65536;".repeat(1000)),
        ..TopicRouteData::default()
    };
    assert!(route.publish_queues("T").0.len() <= 1 << 20);
}
