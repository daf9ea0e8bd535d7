//! Frames and both forms of their headers.

use std::fmt::Write as _;

use bytes::{Bytes, BytesMut};
use rocketmq_protocol::body::{GetConsumerListByGroupResponseBody, JsonBody};
use rocketmq_protocol::{
    CodecError, FrameDecoder, LanguageCode, MAX_FRAME_LENGTH, RemotingCommand, SerializeType,
};

use crate::{alone, command, ends, frame, frugal, length_error};

#[test]
fn a_frame_length_out_of_range_is_an_error_at_once() {
    /// What the length field of the longest frame says: it does not count itself.
    const LONGEST: i32 = MAX_FRAME_LENGTH as i32 - 4;
    let _alone = alone();
    for length in [-1, i32::MIN, i32::MAX, LONGEST + 1, 0, 3] {
        let mut decoder = FrameDecoder::default();
        decoder.extend(&length.to_be_bytes());
        let result = frugal(4, || decoder.next_command());
        assert_eq!(result, Err(length_error("frame", length.into())));
    }
    let mut decoder = FrameDecoder::default();
    decoder.extend(&LONGEST.to_be_bytes());
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
fn a_version_that_does_not_fit_the_binary_header_is_not_written() {
    let _alone = alone();
    let mut command = command(SerializeType::RocketMq);
    command.version = 40_000;
    let mut out = BytesMut::from(&b"before"[..]);
    assert!(matches!(
        command.encode(&mut out),
        Err(CodecError::Unencodable { .. })
    ));
    assert_eq!(out, b"before"[..]);
}
