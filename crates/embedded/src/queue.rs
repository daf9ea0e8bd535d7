use bytes::Bytes;
use rocketmq_protocol::SubscriptionData;

/// One queue's messages (Java `ConsumeQueue`, with what it points at).
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// The offset of the first entry.
    min_offset: i64,
    entries: Vec<QueueEntry>,
}

#[derive(Debug)]
struct QueueEntry {
    bytes: Bytes,
    tags_code: i32,
    store_timestamp: i64,
}

/// What a look into a queue gave (Java `GetMessageStatus`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GetStatus {
    Found,
    NoMatchedMessage,
    NoMessageInQueue,
    OffsetTooSmall,
    OffsetOverflowOne,
    OffsetOverflowBadly,
    OffsetReset,
}

impl GetStatus {
    /// Java's name, which real brokers put into the remark.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Found => "FOUND",
            Self::NoMatchedMessage => "NO_MATCHED_MESSAGE",
            Self::NoMessageInQueue => "NO_MESSAGE_IN_QUEUE",
            Self::OffsetTooSmall => "OFFSET_TOO_SMALL",
            Self::OffsetOverflowOne => "OFFSET_OVERFLOW_ONE",
            Self::OffsetOverflowBadly => "OFFSET_OVERFLOW_BADLY",
            Self::OffsetReset => "OFFSET_RESET",
        }
    }
}

#[derive(Debug)]
pub(crate) struct GetResult {
    pub(crate) status: GetStatus,
    pub(crate) messages: Vec<Bytes>,
    pub(crate) next_begin_offset: i64,
    pub(crate) min_offset: i64,
    pub(crate) max_offset: i64,
}

/// Which of two messages a search by time wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Boundary {
    /// The first stored at the time or later.
    Lower,
    /// The last stored at the time or earlier.
    Upper,
}

/// Java `maxTransferCountOnMessageInMemory`.
const MAX_MESSAGES: usize = 32;
/// Java `maxTransferBytesOnMessageInMemory`.
const MAX_BYTES: usize = 262_144;
/// Java `maxFilterMessageSize` in entries: how far one pull walks past what its filter refuses.
const MAX_SCANNED: usize = 800;

impl Queue {
    /// The smallest offset and the one after the last message.
    pub(crate) fn ends(&self) -> (i64, i64) {
        (self.min_offset, self.min_offset + self.entries.len() as i64)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn push(&mut self, bytes: Bytes, tags_code: i32, store_timestamp: i64) {
        self.entries.push(QueueEntry {
            bytes,
            tags_code,
            store_timestamp,
        });
    }

    /// The stored messages, in the order of their offsets.
    pub(crate) fn messages(&self) -> impl Iterator<Item = &Bytes> {
        self.entries.iter().map(|entry| &entry.bytes)
    }

    /// The message at an offset.
    pub(crate) fn message(&self, offset: i64) -> Option<Bytes> {
        if offset < self.min_offset {
            return None;
        }
        self.from(offset).first().map(|entry| entry.bytes.clone())
    }

    /// The entries from an offset on.
    fn from(&self, offset: i64) -> &[QueueEntry] {
        let index = usize::try_from(offset.saturating_sub(self.min_offset)).unwrap_or(0);
        self.entries.get(index..).unwrap_or_default()
    }

    /// The messages from an offset on that a subscription wants.
    pub(crate) fn get(
        &self,
        offset: i64,
        max_messages: i32,
        subscription: &SubscriptionData,
    ) -> GetResult {
        let (min_offset, max_offset) = self.ends();
        let mut result = GetResult {
            status: GetStatus::NoMessageInQueue,
            messages: Vec::new(),
            next_begin_offset: 0,
            min_offset,
            max_offset,
        };
        if max_offset == 0 {
            return result;
        }
        (result.status, result.next_begin_offset) = if offset < min_offset {
            (GetStatus::OffsetTooSmall, min_offset)
        } else if offset == max_offset {
            (GetStatus::OffsetOverflowOne, offset)
        } else if offset > max_offset {
            (GetStatus::OffsetOverflowBadly, max_offset)
        } else {
            (GetStatus::NoMatchedMessage, offset)
        };
        if result.status != GetStatus::NoMatchedMessage {
            return result;
        }
        // The first message is given whatever its size and whatever the request's limit.
        let wanted = usize::try_from(max_messages).unwrap_or(0);
        let limit = wanted.clamp(1, MAX_MESSAGES);
        let mut total = 0;
        let scanned = self.from(offset).iter();
        for entry in scanned.take(MAX_SCANNED.max(wanted)) {
            let full = result.messages.len() >= limit || total + entry.bytes.len() > MAX_BYTES;
            if full && !result.messages.is_empty() {
                break;
            }
            result.next_begin_offset += 1;
            if matches_tags_code(subscription, entry.tags_code) {
                total += entry.bytes.len();
                result.messages.push(entry.bytes.clone());
                result.status = GetStatus::Found;
            }
        }
        result
    }

    pub(crate) fn search(&self, timestamp: i64, boundary: Boundary) -> i64 {
        let entries = &self.entries;
        let index = match boundary {
            Boundary::Lower => entries.partition_point(|e| e.store_timestamp < timestamp),
            Boundary::Upper => entries
                .partition_point(|e| e.store_timestamp <= timestamp)
                .saturating_sub(1),
        };
        self.min_offset + index as i64
    }

    /// When the message at an offset was stored.
    pub(crate) fn store_time(&self, offset: i64) -> Option<i64> {
        if offset < self.min_offset {
            return None;
        }
        let first = self.from(offset).first();
        first.map(|entry| entry.store_timestamp)
    }

    pub(crate) fn delete_before(&mut self, offset: i64) {
        let (min, max) = self.ends();
        let offset = offset.clamp(min, max);
        self.entries.drain(..(offset - min) as usize);
        self.min_offset = offset;
    }
}

/// Whether a message with this tag code passes (Java `ExpressionMessageFilter`).
pub(crate) fn matches_tags_code(subscription: &SubscriptionData, tags_code: i32) -> bool {
    subscription.class_filter_mode
        || subscription.sub_string == "*"
        || subscription.code_set.contains(&tags_code)
}
