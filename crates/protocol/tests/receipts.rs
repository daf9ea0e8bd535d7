//! Receipts, handles, ids and signatures against values of the published Java classes.
#![allow(clippy::panic, clippy::unwrap_used)]

use std::collections::BTreeMap;

use bytes::BytesMut;
use rocketmq_protocol::acl::{self, SessionCredentials};
use rocketmq_protocol::header::{ChangeInvisibleTimeResponseHeader, PopMessageResponseHeader};
use rocketmq_protocol::pop::{
    ExtraInfo, OrderCountInfo, QueueKey, RetryMarker, attach_receipts, build_msg_offset_info,
    build_start_offset_info, parse_lite_order_count_info, parse_msg_offset_info,
    parse_start_offset_info,
};
use rocketmq_protocol::{
    CodecError, MessageExt, RecallHandle, RemotingCommand, StoredMessage, StoredMessages,
    UniqKeyParts, property,
};

const NORMAL: RetryMarker = RetryMarker::Normal;
const V1: RetryMarker = RetryMarker::RetryV1;
const V2: RetryMarker = RetryMarker::RetryV2;

#[test]
fn a_receipt_is_java_s() {
    let mut receipt = ExtraInfo {
        ck_queue_offset: 10,
        pop_time: 1_700_000_000_000,
        invisible_time: 60_000,
        revive_qid: 3,
        retry: RetryMarker::of_topic("T1"),
        broker_name: "broker-a".into(),
        queue_id: 1,
        queue_offset: Some(12),
    };
    let text = "10 1700000000000 60000 3 0 broker-a 1 12";
    assert_eq!(receipt.to_string(), text);
    assert_eq!(ExtraInfo::parse(text).as_ref(), Ok(&receipt));
    assert_eq!(receipt.real_topic("T1", "g1"), "T1");
    for (topic, retry) in [("%RETRY%g1_T1", "1"), ("%RETRY%g1+T1", "2")] {
        receipt.retry = RetryMarker::of_topic(topic);
        let text = format!("10 1700000000000 60000 3 {retry} broker-a 1 12");
        assert_eq!(receipt.to_string(), text);
        assert_eq!(ExtraInfo::parse(&text).as_ref(), Ok(&receipt));
        assert_eq!(receipt.real_topic("T1", "g1"), topic);
    }
    receipt.queue_offset = None;
    let text = "10 1700000000000 60000 3 2 broker-a 1";
    assert_eq!(receipt.to_string(), text);
    assert_eq!(ExtraInfo::parse(text), Ok(receipt));
}

#[test]
fn a_topic_s_marker_is_java_s() {
    for (topic, marker) in [
        ("T", NORMAL),
        ("T+x", NORMAL),
        ("%DLQ%g", NORMAL),
        ("%RETRY%g", V1),
        ("%RETRY%g_T", V1),
        ("%RETRY%g+T", V2),
    ] {
        assert_eq!(RetryMarker::of_topic(topic), marker, "{topic}");
    }
}

#[test]
fn a_receipt_of_another_form_is_an_error() {
    for text in [
        "",
        "10 20 30 4 0 b",
        "10 20 30 4 3 b 1 12",
        "10 20 30 4 0 b x 12",
        "10 20 30 4 0 b 1 x",
        "10  20 30 4 0 b 1 12",
        "99999999999999999999 20 30 4 0 b 1 12",
    ] {
        let bad = CodecError::BadReceipt {
            what: "pop receipt",
            text: text.to_owned(),
        };
        assert_eq!(ExtraInfo::parse(text), Err(bad), "{text}");
    }
}

#[test]
fn a_changed_invisible_time_makes_a_new_receipt() {
    let old = ExtraInfo::parse("10 20 30 4 1 b 5 12").unwrap();
    let answer = ChangeInvisibleTimeResponseHeader {
        pop_time: 21,
        invisible_time: 31,
        revive_qid: 6,
    };
    let new = old.renewed(&answer).unwrap().to_string();
    assert_eq!(new, "12 21 31 6 1 b 5 12");
    let whole = ExtraInfo::parse("10 20 30 4 1 b 5").unwrap();
    assert_eq!(whole.renewed(&answer), None);
    assert!(!old.is_order());
    assert!(
        ExtraInfo::parse("10 20 30 999 1 b 5 12")
            .unwrap()
            .is_order()
    );
}

fn key(retry: RetryMarker, queue_id: i32) -> QueueKey {
    QueueKey { retry, queue_id }
}

#[test]
fn the_texts_of_a_pop_s_answer_are_java_s() {
    let starts = BTreeMap::from([(key(NORMAL, 3), 77), (key(V1, 3), 8), (key(V2, 3), 9)]);
    let text = "0 3 77;1 3 8;2 3 9";
    assert_eq!(parse_start_offset_info(text).as_ref(), Ok(&starts));
    assert_eq!(build_start_offset_info(&starts), text);

    let offsets = BTreeMap::from([(key(NORMAL, 3), vec![77, 78]), (key(V1, 3), vec![8])]);
    let text = "0 3 77,78;1 3 8";
    assert_eq!(parse_msg_offset_info(text).as_ref(), Ok(&offsets));
    assert_eq!(build_msg_offset_info(&offsets), text);

    let counts = OrderCountInfo {
        by_queue: BTreeMap::from([(key(NORMAL, 3), 2), (key(V1, 3), 0)]),
        by_offset: BTreeMap::from([((key(NORMAL, 3), 90), 5)]),
    };
    let java = "0 3 2;0 qo3%90 5;1 3 0";
    assert_eq!(OrderCountInfo::parse(java).as_ref(), Ok(&counts));
    assert_eq!(OrderCountInfo::parse(&counts.build()).as_ref(), Ok(&counts));
    assert_eq!(counts.count(key(NORMAL, 3), 90), Some(5));
    assert_eq!(counts.count(key(NORMAL, 3), 91), Some(2));
    assert_eq!(counts.count(key(V2, 3), 90), None);

    assert_eq!(parse_lite_order_count_info("0;1;2", 3), Some(vec![0, 1, 2]));
    assert_eq!(parse_lite_order_count_info("0;1;2", 2), None);
    assert_eq!(parse_lite_order_count_info("0;x", 2), None);
}

#[test]
fn texts_of_another_form_are_errors() {
    assert_eq!(parse_start_offset_info(""), Ok(BTreeMap::new()));
    assert_eq!(parse_start_offset_info("0 3 77;").unwrap().len(), 1);
    for text in [
        "0 3",
        "0 3 77 8",
        "0 3 77;0 3 78",
        "0 3 77;;1 3 8",
        "3 3 77",
        "0 x 77",
        "0 3 x",
    ] {
        assert!(parse_start_offset_info(text).is_err(), "{text}");
        assert!(parse_msg_offset_info(text).is_err(), "{text}");
        assert!(OrderCountInfo::parse(text).is_err(), "{text}");
    }
    for text in ["0 qo3 5", "0 qo%9 5", "0 qo3%9 5;0 qo3%9 6", "0 3%9 5"] {
        assert!(OrderCountInfo::parse(text).is_err(), "{text}");
    }
    assert!(parse_msg_offset_info("0 3 77,").is_err());
}

fn message(topic: &str, queue_id: i32, queue_offset: i64, properties: &str) -> MessageExt {
    let stored = StoredMessage {
        queue_id,
        flag: 0,
        queue_offset,
        commit_log_offset: 0,
        sys_flag: 0,
        born_timestamp: 0,
        born_host: "10.0.0.1:1".parse().unwrap(),
        store_timestamp: 0,
        store_host: "10.0.0.2:2".parse().unwrap(),
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        body: "b".into(),
        topic: topic.to_owned(),
        properties: properties.to_owned(),
    };
    let mut bytes = BytesMut::new();
    stored.encode(&mut bytes).unwrap();
    StoredMessages::new(bytes.freeze()).next().unwrap().unwrap()
}

fn answer(starts: Option<&str>, offsets: &str, counts: Option<&str>) -> PopMessageResponseHeader {
    PopMessageResponseHeader {
        pop_time: 20,
        invisible_time: 30,
        revive_qid: 4,
        start_offset_info: starts.map(str::to_owned),
        msg_offset_info: Some(offsets.to_owned()),
        order_count_info: counts.map(str::to_owned),
        ..PopMessageResponseHeader::default()
    }
}

fn receipts(messages: &[MessageExt]) -> Vec<&str> {
    messages
        .iter()
        .map(|message| message.property(property::POP_CK).unwrap())
        .collect()
}

#[test]
fn each_popped_message_gets_its_receipt() {
    let mut messages = [
        message("T", 1, 8, ""),
        message("T", 0, 3, "1ST_POP_TIME\u{1}5\u{2}"),
        message("T", 1, 7, ""),
        message("%RETRY%g_T", 0, 40, ""),
        message("T", 0, 9, "POP_CK\u{1}1 2 3 4 1 b 0 5\u{2}"),
    ];
    let answer = answer(Some("0 0 3;0 1 7;1 0 40"), "0 0 3;0 1 7,8;1 0 40", None);
    attach_receipts("T", "b", false, &answer, &mut messages).unwrap();
    assert_eq!(
        receipts(&messages),
        [
            "7 20 30 4 0 b 1 8",
            "3 20 30 4 0 b 0 3",
            "7 20 30 4 0 b 1 7",
            "40 20 30 4 1 b 0 40",
            "1 2 3 4 1 b 0 5",
        ],
        "and one that the broker wrote is kept"
    );
    let first: Vec<_> = messages
        .iter()
        .map(|message| message.property(property::FIRST_POP_TIME))
        .collect();
    assert_eq!(
        first,
        [Some("20"), Some("5"), Some("20"), Some("20"), Some("20")]
    );
    assert!(messages.iter().all(|message| message.broker_name() == "b"));
    assert_eq!(messages[0].queue_id(), 1);
}

#[test]
fn counts_of_an_ordered_pop_become_reconsume_times() {
    let answer = answer(Some("0 0 3"), "0 0 3,4", Some("0 0 2;0 qo0%4 5"));
    for (order, times) in [(true, [2, 5]), (false, [0, 0])] {
        let mut messages = [message("T", 0, 3, ""), message("T", 0, 4, "")];
        attach_receipts("T", "b", order, &answer, &mut messages).unwrap();
        assert_eq!(messages.map(|message| message.reconsume_times()), times);
    }
}

#[test]
fn a_light_queue_s_message_is_found_by_its_properties() {
    let dispatch =
        "INNER_MULTI_DISPATCH\u{1}%LMQ%a,%LMQ%b\u{2}INNER_MULTI_QUEUE_OFFSET\u{1}5,6\u{2}";
    let other = dispatch.replace("5,6", "5,5");
    let mut messages = [message("T", 3, 100, dispatch), message("T", 4, 9, &other)];
    let answer = answer(Some("0 0 4"), "0 0 5,6", None);
    attach_receipts("%LMQ%b", "b", false, &answer, &mut messages).unwrap();
    assert_eq!(
        receipts(&messages),
        ["4 20 30 4 0 b 0 6", "4 20 30 4 0 b 0 5"]
    );
}

#[test]
fn an_answer_without_ranges_makes_a_receipt_of_the_messages() {
    let mut messages = [message("T", 1, 8, ""), message("T", 1, 7, "")];
    attach_receipts("T", "b", false, &answer(None, "", None), &mut messages).unwrap();
    assert_eq!(
        receipts(&messages),
        ["7 20 30 4 0 b 1 8", "7 20 30 4 0 b 1 7"]
    );
}

#[test]
fn a_message_that_the_answer_does_not_tell_of_is_an_error() {
    for (starts, offsets) in [
        ("0 0 3", "0 0 3"),
        ("0 1 7", "0 0 3"),
        ("0 1 7", "0 1 7"),
        ("0 1", "0 1 7,8"),
        ("0 1 7", "x"),
    ] {
        let mut messages = [message("T", 1, 8, ""), message("T", 1, 7, "")];
        let result = attach_receipts(
            "T",
            "b",
            false,
            &answer(Some(starts), offsets, None),
            &mut messages,
        );
        assert!(
            matches!(result, Err(CodecError::BadReceipt { .. })),
            "{starts}, {offsets}: {result:?}"
        );
    }
}

#[test]
fn a_recall_handle_is_java_s() {
    let handle = RecallHandle {
        topic: "T1".into(),
        broker_name: "broker-a".into(),
        deliver_millis: 1_700_000_000_000,
        uniq_key: "7F00000100010002".into(),
    };
    let java = "djEgVDEgYnJva2VyLWEgMTcwMDAwMDAwMDAwMCA3RjAwMDAwMTAwMDEwMDAy";
    assert_eq!(handle.to_string(), java);
    assert_eq!(RecallHandle::parse(java), Ok(handle));
    // "v1 T>? b 5 k" has characters of which the URL-safe alphabet writes others, and padding.
    let odd = RecallHandle {
        topic: "T>?".into(),
        broker_name: "b~\u{ff}".into(),
        deliver_millis: -5,
        uniq_key: "k".into(),
    };
    let text = odd.to_string();
    assert!(text.contains('_') && text.ends_with('='), "{text}");
    assert_eq!(RecallHandle::parse(&text), Ok(odd));
    let wrong = [
        "",
        "!",
        "djIgVDEgYiA1IGs=",
        "djEgVDEgYiA1",
        "djEgVDEgYiB4IGs=",
    ];
    for text in wrong {
        assert!(RecallHandle::parse(text).is_err(), "{text}");
    }
}

const PULL_FIELDS: [(&str, &str); 13] = [
    ("queueId", "2"),
    ("maxMsgBytes", "262144"),
    ("maxMsgNums", "32"),
    ("sysFlag", "3"),
    ("commitOffset", "5"),
    ("subscription", "*"),
    ("suspendTimeoutMillis", "15000"),
    ("bname", "broker-a"),
    ("topic", "T1"),
    ("queueOffset", "7"),
    ("expressionType", "TAG"),
    ("subVersion", "0"),
    ("consumerGroup", "g1"),
];

#[test]
fn a_signature_is_java_s() {
    let mut request = RemotingCommand::request_without_header(11).with_body("body");
    request.ext_fields = PULL_FIELDS.into_iter().collect();
    let user = SessionCredentials {
        security_token: Some("tok".into()),
        ..SessionCredentials::new("ak", "sk")
    };
    user.sign(&mut request);
    let signature = Some("e20AxwbxCbkg/uGp+JFY3PVi5vU=");
    assert_eq!(request.ext_fields.get(acl::SIGNATURE), signature);
    assert_eq!(request.ext_fields.get("AccessKey"), Some("ak"));
    assert_eq!(request.ext_fields.get("SecurityToken"), Some("tok"));
    user.sign(&mut request);
    assert_eq!(
        request.ext_fields.get(acl::SIGNATURE),
        signature,
        "signed once more"
    );
    request.ext_fields.set("ns", "n");
    user.sign(&mut request);
    assert_ne!(request.ext_fields.get(acl::SIGNATURE), signature);
    assert!(!format!("{user:?}").contains("sk"));
}

#[test]
fn a_unique_key_is_taken_apart() {
    for ip in ["10.0.0.255", "2001:db8::1"] {
        let parts = UniqKeyParts {
            ip: ip.parse().unwrap(),
            process_id: 0x1234,
            process_hash: 0x89AB_CDEF,
            elapsed_millis: 0xA,
            counter: 0xFFFF,
        };
        assert_eq!(UniqKeyParts::parse(&parts.to_string()), Some(parts));
    }
    for text in [
        "",
        "0A",
        "G".repeat(32).as_str(),
        "\u{e9}".repeat(16).as_str(),
    ] {
        assert_eq!(UniqKeyParts::parse(text), None, "{text}");
    }
}
