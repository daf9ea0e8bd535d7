//! The JSON form of a command's header.

use std::fmt::{self, Write as _};

use bytes::{BufMut, BytesMut};
use serde::de::{DeserializeSeed, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::ext_fields::ReceivedFields;
use crate::{CodecError, ExtFields, LanguageCode, RemotingCommand, json};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeaderIn {
    code: i32,
    #[serde(default)]
    ext_fields: Option<ExtFields>,
    #[serde(default)]
    flag: i32,
    #[serde(default)]
    language: Option<LanguageName>,
    #[serde(default)]
    opaque: i32,
    #[serde(default)]
    remark: Option<String>,
    #[serde(default)]
    version: i32,
}

/// What a header takes beside its fields and its remark, and each field beside its texts.
const AROUND_FIELDS: usize = 192;
const AROUND_A_FIELD: usize = 6;

/// Room for a header, so that one allocation does for the frame as a rule: the separators inside of
/// properties are written with six bytes each.
pub(crate) fn expected_length(command: &RemotingCommand) -> usize {
    let fields = &command.ext_fields;
    let text = fields.text_length();
    let around = fields.len().saturating_mul(AROUND_A_FIELD);
    let remark = command.remark.as_ref().map_or(0, String::len);
    AROUND_FIELDS
        .saturating_add(text)
        .saturating_add(text / 2)
        .saturating_add(around)
        .saturating_add(remark)
}

/// Writes what a JSON library would write of the fields in this order; written by hand, since it is
/// most of the work of a small request.
pub(crate) fn encode(command: &RemotingCommand, out: &mut BytesMut) -> Result<(), CodecError> {
    write(command, out).map_err(|_| CodecError::Unencodable {
        what: "header",
        detail: "there is no room for it".to_owned(),
    })
}

fn write(command: &RemotingCommand, out: &mut BytesMut) -> fmt::Result {
    write!(out, r#"{{"code":{}"#, command.code)?;
    if !command.ext_fields.is_empty() {
        out.put_slice(br#","extFields":{"#);
        for (number, (name, value)) in command.ext_fields.iter().enumerate() {
            if number > 0 {
                out.put_u8(b',');
            }
            put_text(out, name);
            out.put_u8(b':');
            put_text(out, value);
        }
        out.put_u8(b'}');
    }
    write!(
        out,
        r#","flag":{},"language":"{}","opaque":{}"#,
        command.flag,
        command.language.name(),
        command.opaque
    )?;
    if let Some(remark) = &command.remark {
        out.put_slice(br#","remark":"#);
        put_text(out, remark);
    }
    write!(
        out,
        r#","serializeTypeCurrentRPC":"JSON","version":{}}}"#,
        command.version
    )
}

/// Writes a text between quotes. What needs no escape is copied in runs as long as they are.
fn put_text(out: &mut BytesMut, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| HEX.get(usize::from(value)).copied().unwrap_or(b'0');
    let mut rest = text.as_bytes();
    out.put_u8(b'"');
    let is_special = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
    while let Some(length) = rest.iter().position(is_special) {
        let Some((run, [special, after @ ..])) = rest.split_at_checked(length) else {
            break;
        };
        out.put_slice(run);
        match special {
            b'"' => out.put_slice(br#"\""#),
            b'\\' => out.put_slice(br"\\"),
            0x08 => out.put_slice(br"\b"),
            0x09 => out.put_slice(br"\t"),
            0x0A => out.put_slice(br"\n"),
            0x0C => out.put_slice(br"\f"),
            0x0D => out.put_slice(br"\r"),
            control => {
                let escape = [
                    b'\\',
                    b'u',
                    b'0',
                    b'0',
                    digit(control >> 4),
                    digit(control & 0xF),
                ];
                out.put_slice(&escape);
            }
        }
        rest = after;
    }
    out.put_slice(rest);
    out.put_u8(b'"');
}

pub(crate) fn decode(header: &[u8]) -> Result<RemotingCommand, CodecError> {
    let header: HeaderIn = json::from_slice("header", header)?;
    let mut command = RemotingCommand::request_without_header(header.code);
    command.language = header
        .language
        .map_or(LanguageCode::Other, |LanguageName(language)| language);
    command.version = header.version;
    command.opaque = header.opaque;
    command.flag = header.flag;
    command.remark = header.remark;
    command.ext_fields = header.ext_fields.unwrap_or_default();
    Ok(command)
}

struct LanguageName(LanguageCode);

impl<'de> Deserialize<'de> for LanguageName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;
        impl Visitor<'_> for NameVisitor {
            type Value = LanguageName;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a language")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<LanguageName, E> {
                Ok(LanguageName(LanguageCode::from_name(name)))
            }
        }
        deserializer.deserialize_str(NameVisitor)
    }
}

impl<'de> Deserialize<'de> for ExtFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = ExtFields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of text fields")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ExtFields, A::Error> {
                let mut fields = ReceivedFields::default();
                while map.next_key_seed(FieldName(&mut fields))?.is_some() {
                    map.next_value_seed(FieldText(&mut fields))?;
                }
                Ok(fields.finish())
            }
        }
        deserializer.deserialize_map(FieldsVisitor)
    }
}

/// Begins a field with its name.
struct FieldName<'a>(&'a mut ReceivedFields);

impl<'de> DeserializeSeed<'de> for FieldName<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for FieldName<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<(), E> {
        self.0.begin(name);
        Ok(())
    }
}

/// Ends a field with its text. Java always writes strings; numbers and booleans of other peers are
/// taken as their text, and a null is an absent field.
struct FieldText<'a>(&'a mut ReceivedFields);

impl FieldText<'_> {
    fn end<E>(self, value: impl fmt::Display) -> Result<(), E> {
        self.0.end(|text| {
            // Writing to a text does not fail.
            let _ = write!(text, "{value}");
        });
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for FieldText<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for FieldText<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text, a number, a boolean or null")
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.0.end(|text| text.push_str(value));
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.end(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.end(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.end(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.end(format_args!("{value:?}"))
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.0.leave_out();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_written_as_a_json_library_writes_them() {
        let controls: String = (0..0x21).map(char::from).collect();
        for text in [
            "",
            "plain",
            "\"",
            "\\",
            "a\"b\\c/d",
            "\u{1}a\u{2}\u{2}",
            "\u{7F}\u{80}é漢\u{1F600}\u{2028}",
            controls.as_str(),
        ] {
            let mut out = BytesMut::new();
            put_text(&mut out, text);
            let expected = serde_json::to_string(text).unwrap();
            assert_eq!(std::str::from_utf8(&out).unwrap(), expected);
        }
    }
}
