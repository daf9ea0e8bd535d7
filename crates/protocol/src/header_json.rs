//! The JSON form of a command's header.

use std::fmt;

use bytes::{BufMut, BytesMut};
use serde::de::{Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{CodecError, ExtFields, LanguageCode, RemotingCommand, json};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HeaderOut<'a> {
    code: i32,
    #[serde(skip_serializing_if = "ExtFields::is_empty")]
    ext_fields: &'a ExtFields,
    flag: i32,
    language: &'static str,
    opaque: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    remark: Option<&'a str>,
    #[serde(rename = "serializeTypeCurrentRPC")]
    serialize_type: &'static str,
    version: i32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeaderIn {
    code: i32,
    #[serde(default)]
    ext_fields: Option<ExtFields>,
    #[serde(default)]
    flag: i32,
    #[serde(default)]
    language: Option<String>,
    #[serde(default)]
    opaque: i32,
    #[serde(default)]
    remark: Option<String>,
    #[serde(default)]
    version: i32,
}

pub(crate) fn encode(command: &RemotingCommand, out: &mut BytesMut) -> Result<(), CodecError> {
    let header = HeaderOut {
        code: command.code,
        ext_fields: &command.ext_fields,
        flag: command.flag,
        language: command.language.name(),
        opaque: command.opaque,
        remark: command.remark.as_deref(),
        serialize_type: "JSON",
        version: command.version,
    };
    serde_json::to_writer(out.writer(), &header).map_err(|error| CodecError::Unencodable {
        what: "header",
        detail: error.to_string(),
    })
}

pub(crate) fn decode(header: &[u8]) -> Result<RemotingCommand, CodecError> {
    let header: HeaderIn = json::from_slice("header", header)?;
    let mut command = RemotingCommand::request_without_header(header.code);
    command.language = header
        .language
        .as_deref()
        .map_or(LanguageCode::Other, LanguageCode::from_name);
    command.version = header.version;
    command.opaque = header.opaque;
    command.flag = header.flag;
    command.remark = header.remark;
    command.ext_fields = header.ext_fields.unwrap_or_default();
    Ok(command)
}

impl Serialize for ExtFields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        for (name, value) in self.iter() {
            map.serialize_entry(name, value)?;
        }
        map.end()
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
                let mut fields = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, FieldText>()? {
                    if let FieldText(Some(text)) = value {
                        fields.push((name, text));
                    }
                }
                Ok(fields.into_iter().collect())
            }
        }
        deserializer.deserialize_map(FieldsVisitor)
    }
}

/// The text of one field. Java always writes strings; numbers and booleans of other peers are taken
/// as their text, and a null is an absent field.
struct FieldText(Option<String>);

impl<'de> Deserialize<'de> for FieldText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl Visitor<'_> for TextVisitor {
            type Value = FieldText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text, a number, a boolean or null")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<FieldText, E> {
                Ok(FieldText(Some(text.to_owned())))
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<FieldText, E> {
                Ok(FieldText(Some(value.to_string())))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<FieldText, E> {
                Ok(FieldText(Some(value.to_string())))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<FieldText, E> {
                Ok(FieldText(Some(value.to_string())))
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<FieldText, E> {
                Ok(FieldText(Some(format!("{value:?}"))))
            }

            fn visit_unit<E: Error>(self) -> Result<FieldText, E> {
                Ok(FieldText(None))
            }
        }
        deserializer.deserialize_any(TextVisitor)
    }
}
