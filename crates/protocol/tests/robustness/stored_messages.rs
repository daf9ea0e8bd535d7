//! Stored messages.

use bytes::{Bytes, BytesMut};
use rocketmq_protocol::{CodecError, StoredMessage, StoredMessages, sys_flag};

use crate::{alone, frugal, length_error, stored, wire};

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
    let bad: [(Vec<u8>, Fault); 5] = [
        (magic, |error| matches!(error, CodecError::BadMagic { .. })),
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
}

#[test]
fn messages_of_several_topics_keep_their_own() {
    let _alone = alone();
    let topics = ["a", "a", "b", "", "a"];
    let reply: Vec<u8> = topics
        .iter()
        .flat_map(|topic| {
            wire(&StoredMessage {
                topic: (*topic).into(),
                ..stored(b"")
            })
        })
        .collect();
    let walked: Result<Vec<_>, _> = StoredMessages::new(reply.into()).collect();
    let walked: Vec<_> = walked.unwrap();
    assert_eq!(
        walked
            .iter()
            .map(|message| message.topic())
            .collect::<Vec<_>>(),
        topics
    );
}
