//! Batches, the batches inside stored messages, and which memory a pull reply's bodies lie in.
#![allow(clippy::panic, clippy::unwrap_used)]

use bytes::{BufMut, Bytes, BytesMut};
use rocketmq_protocol::compression::CompressionType;
use rocketmq_protocol::{
    BatchElement, BatchElements, CodecError, Message, MessageExt, Properties, StoredMessage,
    StoredMessages, encode_batch, sys_flag,
};

fn properties(pairs: &[(&str, &str)]) -> Properties {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_batch_is_java_s_but_for_the_order_of_properties() {
    let all = [
        ("KEYS", "k1"),
        ("x", "y"),
        ("WAIT", "true"),
        ("TAGS", "TagA"),
    ];
    let messages = [
        Message::from_parts("T", 0, properties(&all), "hello"),
        Message::from_parts("T", 3, properties(&[("WAIT", "true")]), "w"),
    ];
    let first = "0000003b0000000000000000000000000000000568656c6c6f0020";
    let second = "000000210000000000000000000000030000000177000a57414954017472756502";
    let (keys, x) = ("4b455953016b3102", "78017902");
    let (wait, tags) = ("57414954017472756502", "54414753015461674102");
    let java = format!("{first}{keys}{x}{wait}{tags}{second}");
    let ours = encode_batch(&messages).unwrap();
    assert_eq!(hex(&ours), format!("{first}{keys}{tags}{wait}{x}{second}"));

    let bytes: Bytes = (0..java.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&java[at..at + 2], 16).unwrap())
        .collect();
    let read: Vec<BatchElement> = BatchElements::new(bytes).map(Result::unwrap).collect();
    let written: Vec<BatchElement> = BatchElements::new(ours).map(Result::unwrap).collect();
    assert_eq!(read, written);
    assert_eq!(read[0].properties, properties(&all));
    assert_eq!((read[1].flag, read[1].body.as_ref()), (3, b"w".as_slice()));
}

fn element(size: i32, body_length: i32, body: &[u8], properties_length: i16) -> BytesMut {
    let mut bytes = BytesMut::new();
    bytes.put_i32(size);
    bytes.put_u64(0);
    bytes.put_i32(9);
    bytes.put_i32(body_length);
    bytes.put_slice(body);
    bytes.put_i16(properties_length);
    bytes
}

#[test]
fn an_element_that_does_not_fit_ends_the_batch_with_an_error() {
    let good = element(23, 1, b"b", 0);
    for (what, bad) in [
        ("size below its own field", element(3, 1, b"b", 0)),
        ("negative size", element(-1, 1, b"b", 0)),
        ("size beyond the end", element(24, 1, b"b", 0)),
        ("size too small", element(22, 1, b"b", 0)),
        ("body beyond the element", element(23, 4, b"b", 0)),
        ("negative body", element(23, -1, b"b", 0)),
        ("properties beyond the element", element(23, 1, b"b", 1)),
        ("negative properties", element(23, 1, b"b", -1)),
        ("bytes behind the properties", element(24, 1, b"b\0", 0)),
        ("cut", BytesMut::from(&b"\0\0"[..])),
    ] {
        let mut batch = good.clone();
        batch.put_slice(&bad);
        let all: Vec<_> = BatchElements::new(batch.freeze()).collect();
        assert_eq!(all.len(), 2, "{what}");
        assert_eq!(all[0].as_ref().unwrap().body.as_ref(), b"b", "{what}");
        assert!(
            matches!(
                all[1],
                Err(CodecError::BadLength { .. } | CodecError::Truncated { .. })
            ),
            "{what}: {:?}",
            all[1]
        );
    }
}

#[test]
fn properties_that_do_not_fit_are_refused() {
    let long = "v".repeat(32_767);
    let message = Message::from_parts("T", 0, properties(&[("n", &long)]), "b");
    assert!(matches!(
        encode_batch(&[message]),
        Err(CodecError::Unencodable { .. })
    ));
    assert_eq!(encode_batch(&[]).unwrap(), Bytes::new());
}

fn stored(queue_offset: i64, sys_flag: i32, body: Bytes) -> StoredMessage {
    StoredMessage {
        queue_id: 1,
        flag: 2,
        queue_offset,
        commit_log_offset: 4,
        sys_flag,
        born_timestamp: 5,
        born_host: "10.0.0.1:1234".parse().unwrap(),
        store_timestamp: 6,
        store_host: "10.0.0.2:10911".parse().unwrap(),
        reconsume_times: 7,
        prepared_transaction_offset: 8,
        body,
        topic: "T".into(),
        properties: "outer\u{1}1\u{2}".into(),
    }
}

fn reply(messages: &[StoredMessage]) -> Bytes {
    let mut out = BytesMut::new();
    for message in messages {
        message.encode(&mut out).unwrap();
    }
    out.freeze()
}

const INNER: i32 = sys_flag::INNER_BATCH | sys_flag::NEED_UNWRAP;

fn batch() -> Bytes {
    encode_batch(&[
        Message::from_parts("ignored", 11, properties(&[("a", "1")]), "first"),
        Message::from_parts("ignored", 12, properties(&[("UNIQ_KEY", "k")]), "second"),
    ])
    .unwrap()
}

#[test]
fn a_batch_inside_a_stored_message_is_taken_apart() {
    let compressed = CompressionType::Zlib.compress(&batch(), 5).unwrap();
    let flags = INNER | sys_flag::COMPRESSED | sys_flag::COMPRESSION_ZLIB;
    let reply = reply(&[
        stored(99, 0, "before".into()),
        stored(100, INNER, batch()),
        stored(102, flags, compressed),
        stored(104, 0, "after".into()),
    ]);
    let messages: Vec<MessageExt> = StoredMessages::new(reply).map(Result::unwrap).collect();
    let seen: Vec<_> = messages
        .iter()
        .map(|message| {
            (
                message.queue_offset(),
                message.flag(),
                message.body().as_ref(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (99, 2, b"before".as_slice()),
            (100, 11, b"first"),
            (101, 12, b"second"),
            (102, 11, b"first"),
            (103, 12, b"second"),
            (104, 2, b"after"),
        ]
    );
    let first = &messages[1];
    assert_eq!((first.topic(), first.queue_id()), ("T", 1));
    assert_eq!((first.commit_log_offset(), first.reconsume_times()), (4, 7));
    assert_eq!(first.born_host(), "10.0.0.1:1234".parse().unwrap());
    assert_eq!(first.properties(), &properties(&[("a", "1")]));
    assert_eq!(first.msg_id(), first.offset_msg_id());
    assert_eq!(messages[2].msg_id(), "k");
}

#[test]
fn one_flag_alone_does_not_make_an_inner_batch() {
    for flag in [sys_flag::INNER_BATCH, sys_flag::NEED_UNWRAP] {
        let reply = reply(&[stored(100, flag, batch())]);
        let messages: Vec<_> = StoredMessages::new(reply).map(Result::unwrap).collect();
        assert_eq!((messages.len(), messages[0].body()), (1, &batch()));
    }
}

#[test]
fn a_broken_inner_batch_is_an_error_and_the_next_message_is_read() {
    let mut broken = batch().to_vec();
    broken.truncate(broken.len() - 1);
    let reply = reply(&[
        stored(100, INNER, broken.into()),
        stored(102, INNER, Bytes::new()),
        stored(103, 0, "after".into()),
    ]);
    let all: Vec<_> = StoredMessages::new(reply).collect();
    assert_eq!(all.len(), 3, "the batch that is empty has no messages");
    assert_eq!(all[0].as_ref().unwrap().body().as_ref(), b"first");
    assert!(matches!(all[1], Err(CodecError::BadLength { .. })));
    assert_eq!(all[2].as_ref().unwrap().body().as_ref(), b"after");
}

#[test]
fn bodies_lie_in_the_reply_until_they_are_detached() {
    let reply = reply(&[
        stored(0, 0, "one".into()),
        stored(1, 0, "two".into()),
        stored(2, INNER, batch()),
    ]);
    let inside = reply.as_ptr_range();
    let messages: Vec<MessageExt> = StoredMessages::new(reply.clone())
        .map(Result::unwrap)
        .collect();
    assert_eq!(messages.len(), 4);
    for message in &messages {
        let body = message.body().as_ptr_range();
        assert!(
            inside.start < body.start && body.end <= inside.end,
            "{} was copied",
            message.queue_offset()
        );
    }
    for message in messages {
        let before = message.clone();
        let detached = message.detach();
        assert_eq!(detached, before);
        assert!(!inside.contains(&detached.body().as_ptr()));
    }
    assert!(reply.is_unique(), "somebody keeps the reply alive");
}
