use std::fmt;

use crate::{CodecError, base64_text};

/// What a timer message can be taken back with (Java `RecallMessageHandle.HandleV1`).
///
/// Printed as the text that brokers hand out and take.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RecallHandle {
    /// The message's topic.
    pub topic: String,
    /// The broker that keeps it.
    pub broker_name: String,
    /// When it is to be delivered, in milliseconds since 1970.
    pub deliver_millis: i64,
    /// Its unique key.
    pub uniq_key: String,
}

const VERSION_1: &str = "v1";

impl fmt::Display for RecallHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            topic,
            broker_name,
            deliver_millis,
            uniq_key,
        } = self;
        let text = format!("{VERSION_1} {topic} {broker_name} {deliver_millis} {uniq_key}");
        f.write_str(&base64_text::encode_url_safe(text.as_bytes()))
    }
}

impl RecallHandle {
    /// Reads a handle.
    ///
    /// # Errors
    /// [`CodecError::BadReceipt`] for a text that is no handle, or one of a later form.
    pub fn parse(handle: &str) -> Result<Self, CodecError> {
        Self::read(handle).ok_or_else(|| CodecError::BadReceipt {
            what: "recall handle",
            text: handle.to_owned(),
        })
    }

    fn read(handle: &str) -> Option<Self> {
        let text = String::from_utf8(base64_text::decode_url_safe(handle)?).ok()?;
        let mut parts = text.split(' ');
        let version = parts.next()?;
        let read = Self {
            topic: parts.next()?.to_owned(),
            broker_name: parts.next()?.to_owned(),
            deliver_millis: parts.next()?.parse().ok()?,
            uniq_key: parts.next()?.to_owned(),
        };
        (version == VERSION_1 && parts.next().is_none()).then_some(read)
    }
}
