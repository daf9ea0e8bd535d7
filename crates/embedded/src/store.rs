use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use rocketmq_protocol::body::Permission;
use rocketmq_protocol::{
    CodecError, MessageExt, OffsetMessageId, StoredMessage, SubscriptionData, decode_properties,
    java_string_hash, mix_all, property,
};

use crate::topic_config::TopicConfig;

/// A broker's topics and messages. It outlives the broker, as a disk does.
#[derive(Debug)]
pub(crate) struct Store {
    broker_name: Arc<str>,
    host: SocketAddr,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    topics: BTreeMap<Arc<str>, Topic>,
    /// Where each message lies, in the order of their offsets in the log.
    log: Vec<LogEntry>,
    log_end: i64,
}

#[derive(Debug)]
struct Topic {
    config: TopicConfig,
    queues: BTreeMap<i32, Vec<QueueEntry>>,
}

#[derive(Debug)]
struct LogEntry {
    commit_log_offset: i64,
    topic: Arc<str>,
    queue_id: i32,
    queue_index: usize,
}

#[derive(Debug)]
struct QueueEntry {
    bytes: Bytes,
    tags_code: i32,
    store_timestamp: i64,
}

/// Where a message was put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) queue_offset: i64,
    pub(crate) commit_log_offset: i64,
    pub(crate) offset_msg_id: String,
    pub(crate) tags_code: i32,
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
/// What a broker without disk says its queues begin at.
const MIN_OFFSET: i64 = 0;

impl Store {
    pub(crate) fn new(broker_name: Arc<str>, host: SocketAddr, auto_create_topic: bool) -> Self {
        let store = Self {
            broker_name,
            host,
            state: Mutex::default(),
        };
        if auto_create_topic {
            let queues = TopicConfig::new(8, Permission(7));
            store.set_topic(mix_all::AUTO_CREATE_TOPIC_KEY_TOPIC, queues);
        }
        store
    }

    pub(crate) fn topic(&self, topic: &str) -> Option<TopicConfig> {
        let state = self.state.lock();
        state.topics.get(topic).map(|topic| topic.config.clone())
    }

    /// Creates a topic or changes its settings; its messages stay.
    pub(crate) fn set_topic(&self, topic: &str, config: TopicConfig) {
        let mut state = self.state.lock();
        match state.topics.get_mut(topic) {
            Some(known) => known.config = config,
            None => {
                let queues = BTreeMap::new();
                state.topics.insert(topic.into(), Topic { config, queues });
            }
        }
    }

    /// The topic's settings, which are the given ones if it is new.
    pub(crate) fn topic_or_create(&self, topic: &str, config: TopicConfig) -> TopicConfig {
        let mut state = self.state.lock();
        if let Some(known) = state.topics.get(topic) {
            return known.config.clone();
        }
        let new = Topic {
            config: config.clone(),
            queues: BTreeMap::new(),
        };
        state.topics.insert(topic.into(), new);
        config
    }

    /// Appends a message to the queue it names. Both offsets, store time and store host are filled
    /// in here.
    pub(crate) fn put(&self, mut message: StoredMessage) -> Result<Placed, CodecError> {
        let tags_code = tags_code(&message.properties);
        let mut bytes = BytesMut::with_capacity(message.body.len() + 512);
        let mut state = self.state.lock();
        let state = &mut *state;
        let unknown = || CodecError::Unencodable {
            what: "message",
            detail: format!("topic {} does not exist", message.topic),
        };
        let topic = Arc::clone(
            state
                .topics
                .get_key_value(message.topic.as_str())
                .ok_or_else(unknown)?
                .0,
        );
        let entries = state
            .topics
            .get_mut(&topic)
            .ok_or_else(unknown)?
            .queues
            .entry(message.queue_id)
            .or_default();
        message.queue_offset = entries.len() as i64;
        message.commit_log_offset = state.log_end;
        message.store_host = self.host;
        message.store_timestamp = now_millis();
        message.encode(&mut bytes)?;
        state.log.push(LogEntry {
            commit_log_offset: message.commit_log_offset,
            topic,
            queue_id: message.queue_id,
            queue_index: entries.len(),
        });
        state.log_end += bytes.len() as i64;
        entries.push(QueueEntry {
            bytes: bytes.freeze(),
            tags_code,
            store_timestamp: message.store_timestamp,
        });
        let id = OffsetMessageId {
            store_host: self.host,
            commit_log_offset: message.commit_log_offset,
        };
        Ok(Placed {
            queue_offset: message.queue_offset,
            commit_log_offset: message.commit_log_offset,
            offset_msg_id: id.to_string(),
            tags_code,
        })
    }

    /// Looks into a queue (Java `DefaultMessageStore#getMessage`).
    pub(crate) fn get(
        &self,
        topic: &str,
        queue_id: i32,
        offset: i64,
        max_messages: i32,
        subscription: &SubscriptionData,
    ) -> GetResult {
        let state = self.state.lock();
        let entries = state.queue(topic, queue_id);
        let max_offset = entries.len() as i64;
        let mut result = GetResult {
            status: GetStatus::NoMessageInQueue,
            messages: Vec::new(),
            next_begin_offset: 0,
            min_offset: MIN_OFFSET,
            max_offset,
        };
        if max_offset == 0 {
            return result;
        }
        (result.status, result.next_begin_offset) = if offset < MIN_OFFSET {
            (GetStatus::OffsetTooSmall, MIN_OFFSET)
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
        let scanned = entries.iter().skip(offset as usize);
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

    /// The offset after the last message; 0 for what does not exist.
    pub(crate) fn max_offset(&self, topic: &str, queue_id: i32) -> i64 {
        self.state.lock().queue(topic, queue_id).len() as i64
    }

    /// A queue's smallest offset: nothing is ever deleted.
    pub(crate) const fn min_offset(&self) -> i64 {
        MIN_OFFSET
    }

    pub(crate) fn search_offset(
        &self,
        topic: &str,
        queue_id: i32,
        timestamp: i64,
        boundary: Boundary,
    ) -> i64 {
        let state = self.state.lock();
        let entries = state.queue(topic, queue_id);
        let index = match boundary {
            Boundary::Lower => entries.partition_point(|e| e.store_timestamp < timestamp),
            Boundary::Upper => entries
                .partition_point(|e| e.store_timestamp <= timestamp)
                .saturating_sub(1),
        };
        index as i64
    }

    /// When a queue's first message was stored.
    pub(crate) fn earliest_store_time(&self, topic: &str, queue_id: i32) -> Option<i64> {
        let state = self.state.lock();
        let first = state.queue(topic, queue_id).first();
        first.map(|entry| entry.store_timestamp)
    }

    /// The message that starts at an offset of the log.
    pub(crate) fn message_at(&self, commit_log_offset: i64) -> Option<Bytes> {
        let state = self.state.lock();
        let place = state
            .log
            .binary_search_by_key(&commit_log_offset, |entry| entry.commit_log_offset)
            .ok()?;
        let place = state.log.get(place)?;
        let entry = state
            .queue(&place.topic, place.queue_id)
            .get(place.queue_index)?;
        Some(entry.bytes.clone())
    }

    /// All messages of a topic, queue by queue.
    pub(crate) fn messages(&self, topic: &str) -> Vec<MessageExt> {
        let entries: Vec<(i32, Bytes)> = {
            let state = self.state.lock();
            let queues = state.topics.get(topic).into_iter();
            queues
                .flat_map(|topic| &topic.queues)
                .flat_map(|(id, entries)| entries.iter().map(|entry| (*id, entry.bytes.clone())))
                .collect()
        };
        let decoded = entries.into_iter().filter_map(|(queue_id, bytes)| {
            let size = bytes.len();
            let message = StoredMessage::decode(bytes).and_then(|m| m.into_message_ext(size));
            match message {
                Ok(mut message) => {
                    message.set_queue(Arc::clone(&self.broker_name), queue_id);
                    Some(message)
                }
                Err(error) => {
                    // A sender may name a compression that its body does not have.
                    log::warn!("{topic}#{queue_id} holds a message that cannot be read: {error}");
                    None
                }
            }
        });
        decoded.collect()
    }

    pub(crate) fn message_count(&self, topic: &str) -> usize {
        let state = self.state.lock();
        let queues = state.topics.get(topic).into_iter();
        queues
            .flat_map(|topic| topic.queues.values())
            .map(Vec::len)
            .sum()
    }
}

impl State {
    fn queue(&self, topic: &str, queue_id: i32) -> &[QueueEntry] {
        let queue = self.topics.get(topic).and_then(|t| t.queues.get(&queue_id));
        queue.map_or(&[], Vec::as_slice)
    }
}

/// Whether a message with this tag code passes (Java `ExpressionMessageFilter`).
pub(crate) fn matches_tags_code(subscription: &SubscriptionData, tags_code: i32) -> bool {
    subscription.class_filter_mode
        || subscription.sub_string == "*"
        || subscription.code_set.contains(&tags_code)
}

/// The hash code of the message's tag, 0 without one.
fn tags_code(properties: &str) -> i32 {
    decode_properties(properties)
        .get(property::TAGS)
        .map_or(0, |tag| java_string_hash(tag))
}

pub(crate) fn now_millis() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as i64)
}
