use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::JsonBody;
use crate::base64_text;
use crate::pop::{ExtraInfo, RetryMarker};

/// Acknowledges many popped messages of one broker (BATCH_ACK_MESSAGE, 200151).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BatchAckMessageRequestBody {
    /// One entry a handed-out range.
    pub acks: Vec<BatchAck>,
    /// The broker.
    pub broker_name: String,
}

impl JsonBody for BatchAckMessageRequestBody {
    const NAME: &'static str = "BatchAckMessageRequestBody";
}

/// The acknowledged messages of one range that was handed out by one pop.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BatchAck {
    /// Which messages: offset `start_offset + i` for each bit `i`.
    #[serde(rename = "b")]
    pub bit_set: AckBitSet,
    /// The group.
    #[serde(rename = "c")]
    pub consumer_group: String,
    /// How long the range stays invisible, in milliseconds.
    #[serde(rename = "it")]
    pub invisible_time: i64,
    /// When it was handed out, in milliseconds since 1970.
    #[serde(rename = "pt")]
    pub pop_time: i64,
    /// The queue.
    #[serde(rename = "q")]
    pub queue_id: i32,
    /// Which topic the range lies in.
    #[serde(rename = "r")]
    pub retry: RetryMarker,
    /// The queue that would bring the messages back.
    #[serde(rename = "rq")]
    pub revive_queue_id: i32,
    /// Where the range starts.
    #[serde(rename = "so")]
    pub start_offset: i64,
    /// The topic that was popped, without any retry prefix.
    #[serde(rename = "t")]
    pub topic: String,
}

impl BatchAckMessageRequestBody {
    /// Gathers the receipts of one broker, one entry for each handed-out range
    /// (Java `AckMessageProcessor` takes them apart again).
    ///
    /// A receipt without an offset, or with one that is not within 65,536 of its range's start, is
    /// given back: it has to be acknowledged on its own.
    pub fn gather<'a>(
        broker_name: &str,
        consumer_group: &str,
        topic: &str,
        receipts: impl IntoIterator<Item = &'a ExtraInfo>,
    ) -> (Self, Vec<&'a ExtraInfo>) {
        let mut ranges: BTreeMap<_, BatchAck> = BTreeMap::new();
        let mut alone = Vec::new();
        for receipt in receipts {
            let bit = receipt
                .queue_offset
                .and_then(|offset| offset.checked_sub(receipt.ck_queue_offset))
                .and_then(|bit| u16::try_from(bit).ok());
            let Some(bit) = bit.filter(|_| receipt.broker_name == broker_name) else {
                alone.push(receipt);
                continue;
            };
            let key = (
                receipt.retry,
                receipt.queue_id,
                receipt.ck_queue_offset,
                receipt.pop_time,
                receipt.revive_qid,
                receipt.invisible_time,
            );
            let range = ranges.entry(key).or_insert_with(|| BatchAck {
                bit_set: AckBitSet::default(),
                consumer_group: consumer_group.to_owned(),
                invisible_time: receipt.invisible_time,
                pop_time: receipt.pop_time,
                queue_id: receipt.queue_id,
                retry: receipt.retry,
                revive_queue_id: receipt.revive_qid,
                start_offset: receipt.ck_queue_offset,
                topic: topic.to_owned(),
            });
            range.bit_set.insert(bit);
        }
        let body = Self {
            acks: ranges.into_values().collect(),
            broker_name: broker_name.to_owned(),
        };
        (body, alone)
    }
}

/// A set of small numbers (Java `BitSet`), on the wire the Base64 text of its bits, the lowest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AckBitSet(Vec<u8>);

impl AckBitSet {
    /// Adds a number.
    pub fn insert(&mut self, bit: u16) {
        let at = usize::from(bit / 8);
        if self.0.len() <= at {
            self.0.resize(at.saturating_add(1), 0);
        }
        if let Some(byte) = self.0.get_mut(at) {
            *byte |= 1 << (bit % 8);
        }
    }

    /// Whether a number is in the set.
    pub fn contains(&self, bit: u16) -> bool {
        let byte = self
            .0
            .get(usize::from(bit / 8))
            .copied()
            .unwrap_or_default();
        byte & (1 << (bit % 8)) != 0
    }

    /// The numbers, in ascending order; those beyond 65,535 are left out.
    pub fn iter(&self) -> impl Iterator<Item = u16> {
        let bits = u32::try_from(self.0.len()).map_or(u32::MAX, |bytes| bytes.saturating_mul(8));
        (0..=u16::MAX)
            .take_while(move |bit| u32::from(*bit) < bits)
            .filter(|bit| self.contains(*bit))
    }
}

impl FromIterator<u16> for AckBitSet {
    fn from_iter<I: IntoIterator<Item = u16>>(bits: I) -> Self {
        let mut set = Self::default();
        for bit in bits {
            set.insert(bit);
        }
        set
    }
}

impl From<AckBitSet> for String {
    fn from(set: AckBitSet) -> Self {
        base64_text::encode(&set.0)
    }
}

impl TryFrom<String> for AckBitSet {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let mut bytes = base64_text::decode(&text).ok_or("not Base64")?;
        while bytes.last() == Some(&0) {
            bytes.pop();
        }
        Ok(Self(bytes))
    }
}
