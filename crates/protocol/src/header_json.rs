//! The JSON form of a command's header.

mod plain_bytes;
mod reading;
mod writing;

use std::fmt::{self, Write as _};

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

pub(crate) use writing::{encode, expected_length};

/// Reads a header. What servers write takes the short way, all else the way of the JSON library,
/// whose errors are the ones that are told.
pub(crate) fn decode(header: &[u8]) -> Result<RemotingCommand, CodecError> {
    match reading::read(header) {
        Some(command) => Ok(command),
        None => decode_any(header),
    }
}

fn decode_any(header: &[u8]) -> Result<RemotingCommand, CodecError> {
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
