use std::fmt;

use serde::{Deserialize, Serialize};

use crate::CodecError;
use crate::header::ChangeInvisibleTimeResponseHeader;
use crate::mix_all::{RETRY_GROUP_TOPIC_PREFIX, pop_retry_topic_v1, pop_retry_topic_v2};

/// The revive queue of an ordered pop, which has none.
pub const ORDERED_REVIVE_QID: i32 = 999;

/// Which of a topic's three places a popped message lies in.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum RetryMarker {
    /// The topic itself.
    #[default]
    #[serde(rename = "0")]
    Normal,
    /// The group's retry topic of the first form, `%RETRY%group_topic`.
    #[serde(rename = "1")]
    RetryV1,
    /// The group's retry topic of the second form, `%RETRY%group+topic`.
    #[serde(rename = "2")]
    RetryV2,
}

impl RetryMarker {
    /// The marker of a topic's name.
    pub fn of_topic(topic: &str) -> Self {
        if !topic.starts_with(RETRY_GROUP_TOPIC_PREFIX) {
            Self::Normal
        } else if topic.contains('+') {
            Self::RetryV2
        } else {
            Self::RetryV1
        }
    }

    /// The digit on the wire.
    pub const fn digit(self) -> &'static str {
        match self {
            Self::Normal => "0",
            Self::RetryV1 => "1",
            Self::RetryV2 => "2",
        }
    }

    pub(super) fn from_digit(digit: &str) -> Option<Self> {
        match digit {
            "0" => Some(Self::Normal),
            "1" => Some(Self::RetryV1),
            "2" => Some(Self::RetryV2),
            _ => None,
        }
    }
}

/// The receipt of a popped message, with which it is acknowledged (property
/// [`POP_CK`](crate::property::POP_CK)). Printed as the text on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ExtraInfo {
    /// Where the range that was handed out with the message starts.
    pub ck_queue_offset: i64,
    /// When it was handed out, in milliseconds since 1970.
    pub pop_time: i64,
    /// How long it stays invisible, in milliseconds.
    pub invisible_time: i64,
    /// The queue that brings it back.
    pub revive_qid: i32,
    /// Where the message lies.
    pub retry: RetryMarker,
    /// The broker that has it.
    pub broker_name: String,
    /// The queue it lies in.
    pub queue_id: i32,
    /// Its offset there; absent in the receipt of a whole range.
    pub queue_offset: Option<i64>,
}

impl fmt::Display for ExtraInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} {} {} {} {} {}",
            self.ck_queue_offset,
            self.pop_time,
            self.invisible_time,
            self.revive_qid,
            self.retry.digit(),
            self.broker_name,
            self.queue_id
        )?;
        match self.queue_offset {
            Some(offset) => write!(f, " {offset}"),
            None => Ok(()),
        }
    }
}

impl ExtraInfo {
    /// Reads a receipt. Further parts, which later versions may add, are passed over.
    ///
    /// # Errors
    /// [`CodecError::BadReceipt`] for a text that is none.
    pub fn parse(text: &str) -> Result<Self, CodecError> {
        Self::read(text).ok_or_else(|| CodecError::BadReceipt {
            what: "pop receipt",
            text: text.to_owned(),
        })
    }

    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split(' ');
        let read = Self {
            ck_queue_offset: parts.next()?.parse().ok()?,
            pop_time: parts.next()?.parse().ok()?,
            invisible_time: parts.next()?.parse().ok()?,
            revive_qid: parts.next()?.parse().ok()?,
            retry: RetryMarker::from_digit(parts.next()?)?,
            broker_name: parts.next()?.to_owned(),
            queue_id: parts.next()?.parse().ok()?,
            queue_offset: parts.next().map(str::parse).transpose().ok()?,
        };
        Some(read)
    }

    /// The topic that the message lies in, from the topic that was popped.
    pub fn real_topic(&self, topic: &str, consumer_group: &str) -> String {
        match self.retry {
            RetryMarker::Normal => topic.to_owned(),
            RetryMarker::RetryV1 => pop_retry_topic_v1(topic, consumer_group),
            RetryMarker::RetryV2 => pop_retry_topic_v2(topic, consumer_group),
        }
    }

    /// Whether it was popped in order: no queue brings it back, an ack moves its queue on.
    pub const fn is_order(&self) -> bool {
        self.revive_qid == ORDERED_REVIVE_QID
    }

    /// The receipt that takes the place of this one after a change of the invisible time: a range
    /// of this message alone. `None` for the receipt of a whole range.
    pub fn renewed(&self, answer: &ChangeInvisibleTimeResponseHeader) -> Option<Self> {
        let offset = self.queue_offset?;
        Some(Self {
            ck_queue_offset: offset,
            pop_time: answer.pop_time,
            invisible_time: answer.invisible_time,
            revive_qid: answer.revive_qid,
            ..self.clone()
        })
    }
}
