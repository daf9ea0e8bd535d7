use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::{Arc, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use rocketmq_protocol::body::{DataVersion, Permission};
use rocketmq_protocol::{
    CodecError, MessageExt, OffsetMessageId, Properties, StoredMessage, SubscriptionData,
    decode_properties, java_string_hash, mix_all, property, sys_flag,
};

use crate::queue::{Boundary, GetResult, Queue};
use crate::registry::Registry;
use crate::topic_config::TopicConfig;

/// A broker's topics and messages. It outlives the broker, as a disk does.
#[derive(Debug)]
pub(crate) struct Store {
    broker_name: Arc<str>,
    host: SocketAddr,
    /// Hears of topics that are new or changed.
    registry: Weak<Registry>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    topics: BTreeMap<Arc<str>, Topic>,
    /// Counts changes of topics.
    version: DataVersion,
    /// Every message, in the order of their offsets in the log. A deleted topic's stay.
    log: Vec<LogEntry>,
    log_end: i64,
    /// Key and topic → what has it, in the order of the log.
    index: HashMap<String, Vec<Indexed>>,
    /// Store time and offset in the log of the last message that is in the index.
    indexed_to: (i64, i64),
}

#[derive(Debug, Clone, Copy)]
struct Indexed {
    commit_log_offset: i64,
    store_timestamp: i64,
}

/// What a look for a key gave.
#[derive(Debug)]
pub(crate) struct FoundByKey {
    pub(crate) messages: Vec<Bytes>,
    /// Until when, and until which offset in the log, the index reaches.
    pub(crate) reached: (i64, i64),
}

#[derive(Debug)]
struct Topic {
    config: TopicConfig,
    queues: BTreeMap<i32, Queue>,
}

#[derive(Debug)]
struct LogEntry {
    commit_log_offset: i64,
    bytes: Bytes,
}

/// Where a message was put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) queue_offset: i64,
    pub(crate) commit_log_offset: i64,
    pub(crate) offset_msg_id: String,
    pub(crate) tags_code: i32,
    /// Of a timer message: the time that it is kept for, in milliseconds since 1970.
    pub(crate) timer_out_millis: Option<i64>,
}

impl Store {
    /// A store without messages. With a number of queues there is a template topic from which sends
    /// create others.
    pub(crate) fn new(
        broker_name: Arc<str>,
        host: SocketAddr,
        template_queues: Option<i32>,
        registry: Weak<Registry>,
    ) -> Self {
        let store = Self {
            broker_name,
            host,
            registry,
            state: Mutex::default(),
        };
        if let Some(queues) = template_queues {
            let config = TopicConfig::new(queues, Permission(7));
            store.set_topic(mix_all::AUTO_CREATE_TOPIC_KEY_TOPIC, config);
        }
        store
    }

    pub(crate) fn topic(&self, topic: &str) -> Option<TopicConfig> {
        let state = self.state.lock();
        state.topics.get(topic).map(|topic| topic.config.clone())
    }

    /// All topics and the version of the table.
    pub(crate) fn topics(&self) -> (Vec<(Arc<str>, TopicConfig)>, DataVersion) {
        let state = self.state.lock();
        let topics = state.topics.iter();
        let topics = topics
            .map(|(name, topic)| (Arc::clone(name), topic.config.clone()))
            .collect();
        (topics, state.version)
    }

    /// Creates a topic or changes its settings; its messages stay.
    pub(crate) fn set_topic(&self, topic: &str, config: TopicConfig) {
        let mut state = self.state.lock();
        match state.topics.get_mut(topic) {
            Some(known) if known.config == config => return,
            Some(known) => known.config = config,
            None => {
                let queues = BTreeMap::new();
                state.topics.insert(topic.into(), Topic { config, queues });
            }
        }
        state.next_version();
        drop(state);
        self.register(topic);
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
        state.next_version();
        drop(state);
        self.register(topic);
        config
    }

    /// Makes a topic that exists an ordered one, or none.
    pub(crate) fn set_order(&self, topic: &str, order: bool) {
        if let Some(config) = self.topic(topic).filter(|config| config.order != order) {
            self.set_topic(topic, TopicConfig { order, ..config });
        }
    }

    /// Deletes a topic and its queues. The name server goes on naming it until it is told, as with
    /// a real broker.
    pub(crate) fn delete_topic(&self, topic: &str) {
        let mut state = self.state.lock();
        if state.topics.remove(topic).is_some() {
            state.next_version();
        }
    }

    fn register(&self, topic: &str) {
        if let Some(registry) = self.registry.upgrade() {
            registry.register_topic(&self.broker_name, topic);
        }
    }

    /// Appends a message to the queue it names. Both offsets, store time and store host are filled
    /// in here.
    pub(crate) fn put(&self, message: StoredMessage) -> Result<Placed, CodecError> {
        let mut state = self.state.lock();
        state.append(message, self.host)
    }

    /// Appends messages one after the other, with no other in between; none if one cannot be.
    pub(crate) fn put_all(&self, messages: Vec<StoredMessage>) -> Result<Vec<Placed>, CodecError> {
        let mut scratch = BytesMut::new();
        for message in &messages {
            scratch.clear();
            message.encode(&mut scratch)?;
        }
        let mut state = self.state.lock();
        messages
            .into_iter()
            .map(|message| state.append(message, self.host))
            .collect()
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
        match state.queue(topic, queue_id) {
            Some(queue) => queue.get(offset, max_messages, subscription),
            None => Queue::default().get(offset, max_messages, subscription),
        }
    }

    /// A queue's smallest offset and the one after its last message; zeros for what does not exist.
    pub(crate) fn ends(&self, topic: &str, queue_id: i32) -> (i64, i64) {
        let state = self.state.lock();
        state.queue(topic, queue_id).map_or((0, 0), Queue::ends)
    }

    /// The offset after the last message; 0 for what does not exist.
    pub(crate) fn max_offset(&self, topic: &str, queue_id: i32) -> i64 {
        self.ends(topic, queue_id).1
    }

    /// Deletes the messages before an offset, as a broker does with old ones.
    pub(crate) fn delete_before(&self, topic: &str, queue_id: i32, offset: i64) {
        let mut state = self.state.lock();
        let queues = state.topics.get_mut(topic).map(|topic| &mut topic.queues);
        if let Some(queue) = queues.and_then(|queues| queues.get_mut(&queue_id)) {
            queue.delete_before(offset);
        }
    }

    pub(crate) fn search_offset(
        &self,
        topic: &str,
        queue_id: i32,
        timestamp: i64,
        boundary: Boundary,
    ) -> i64 {
        let state = self.state.lock();
        let queue = state.queue(topic, queue_id);
        queue.map_or(0, |queue| queue.search(timestamp, boundary))
    }

    /// When a queue's first message was stored.
    pub(crate) fn earliest_store_time(&self, topic: &str, queue_id: i32) -> Option<i64> {
        let min = self.ends(topic, queue_id).0;
        self.store_time(topic, queue_id, min)
    }

    /// When the message at an offset was stored.
    pub(crate) fn store_time(&self, topic: &str, queue_id: i32, offset: i64) -> Option<i64> {
        let state = self.state.lock();
        state.queue(topic, queue_id)?.store_time(offset)
    }

    /// The message at an offset of a queue.
    pub(crate) fn message_in(&self, topic: &str, queue_id: i32, offset: i64) -> Option<Bytes> {
        let state = self.state.lock();
        state.queue(topic, queue_id)?.message(offset)
    }

    /// The newest messages of a topic that have a key, the oldest of them first (Java
    /// `IndexService#queryOffset`). Deleting a topic leaves them there, as in a real broker.
    pub(crate) fn find_by_key(
        &self,
        topic: &str,
        key: &str,
        times: RangeInclusive<i64>,
        most: i32,
    ) -> FoundByKey {
        let state = self.state.lock();
        let indexed = state.index.get(&index_key(topic, key));
        let mut offsets: Vec<i64> = indexed
            .into_iter()
            .flatten()
            .rev()
            .filter(|entry| times.contains(&entry.store_timestamp))
            .map(|entry| entry.commit_log_offset)
            .take(usize::try_from(most).unwrap_or(0))
            .collect();
        offsets.sort_unstable();
        FoundByKey {
            messages: offsets
                .into_iter()
                .filter_map(|offset| state.message_at(offset))
                .collect(),
            reached: state.indexed_to,
        }
    }

    /// The message that starts at an offset of the log.
    pub(crate) fn message_at(&self, commit_log_offset: i64) -> Option<Bytes> {
        self.state.lock().message_at(commit_log_offset)
    }

    /// All messages of a topic, queue by queue.
    pub(crate) fn messages(&self, topic: &str) -> Vec<MessageExt> {
        let entries: Vec<(i32, Bytes)> = {
            let state = self.state.lock();
            let queues = state.topics.get(topic).into_iter();
            queues
                .flat_map(|topic| &topic.queues)
                .flat_map(|(id, queue)| {
                    let messages = queue.messages();
                    messages.map(|bytes| (*id, bytes.clone()))
                })
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
            .map(Queue::len)
            .sum()
    }
}

impl State {
    fn queue(&self, topic: &str, queue_id: i32) -> Option<&Queue> {
        self.topics.get(topic)?.queues.get(&queue_id)
    }

    fn message_at(&self, commit_log_offset: i64) -> Option<Bytes> {
        let place = self
            .log
            .binary_search_by_key(&commit_log_offset, |entry| entry.commit_log_offset)
            .ok()?;
        self.log.get(place).map(|entry| entry.bytes.clone())
    }

    fn next_version(&mut self) {
        self.version.counter += 1;
        self.version.timestamp = now_millis();
    }

    fn append(
        &mut self,
        mut message: StoredMessage,
        host: SocketAddr,
    ) -> Result<Placed, CodecError> {
        let properties = decode_properties(&message.properties);
        let tags_code = tags_code(&properties);
        // What was prepared elsewhere or rolled back is in the log, and in no queue.
        let transaction = message.sys_flag & sys_flag::TRANSACTION_MASK;
        let queued = ![
            sys_flag::TRANSACTION_PREPARED,
            sys_flag::TRANSACTION_ROLLBACK,
        ]
        .contains(&transaction);
        let topic = self.topics.get_mut(message.topic.as_str());
        let topic = topic.ok_or_else(|| CodecError::Unencodable {
            what: "message",
            detail: format!("topic {} does not exist", message.topic),
        })?;
        let queue = topic.queues.entry(message.queue_id).or_default();
        message.queue_offset = if queued { queue.ends().1 } else { 0 };
        message.commit_log_offset = self.log_end;
        message.store_host = host;
        message.store_timestamp = now_millis();
        let mut bytes = BytesMut::with_capacity(message.body.len() + 512);
        message.encode(&mut bytes)?;
        let bytes = bytes.freeze();
        self.log_end += bytes.len() as i64;
        self.log.push(LogEntry {
            commit_log_offset: message.commit_log_offset,
            bytes: bytes.clone(),
        });
        if queued {
            queue.push(bytes, tags_code, message.store_timestamp);
        }
        if transaction != sys_flag::TRANSACTION_ROLLBACK {
            self.add_to_index(&message, &properties);
        }
        let id = OffsetMessageId {
            store_host: host,
            commit_log_offset: message.commit_log_offset,
        };
        Ok(Placed {
            queue_offset: message.queue_offset,
            commit_log_offset: message.commit_log_offset,
            offset_msg_id: id.to_string(),
            tags_code,
            timer_out_millis: None,
        })
    }

    /// Java `IndexService#buildIndex`.
    fn add_to_index(&mut self, message: &StoredMessage, properties: &Properties) {
        let indexed = Indexed {
            commit_log_offset: message.commit_log_offset,
            store_timestamp: message.store_timestamp,
        };
        let keys = properties.get(property::KEYS);
        let keys = keys.into_iter().flat_map(|keys| keys.split(' '));
        let uniq_key = properties.get(property::UNIQ_KEY).map(String::as_str);
        for key in uniq_key
            .into_iter()
            .chain(keys.filter(|key| !key.is_empty()))
        {
            let entries = self.index.entry(index_key(&message.topic, key));
            entries.or_default().push(indexed);
            self.indexed_to = (indexed.store_timestamp, indexed.commit_log_offset);
        }
    }
}

fn index_key(topic: &str, key: &str) -> String {
    format!("{topic}#{key}")
}

/// The hash code of the message's tag, 0 without one.
fn tags_code(properties: &Properties) -> i32 {
    properties
        .get(property::TAGS)
        .map_or(0, |tag| java_string_hash(tag))
}

pub(crate) fn now_millis() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as i64)
}
