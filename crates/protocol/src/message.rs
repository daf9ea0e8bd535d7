use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::message_properties::MessageProperties;
use crate::{CodecError, OffsetMessageId, Properties};

/// Names of properties with a meaning (Java `MessageConst`).
pub mod property {
    /// Keys by which a message can be found, joined by spaces.
    pub const KEYS: &str = "KEYS";
    /// The tag by which consumers filter.
    pub const TAGS: &str = "TAGS";
    /// Whether the broker waits until the message is stored safely.
    pub const WAIT_STORE_MSG_OK: &str = "WAIT";
    /// The delay level.
    pub const DELAY_TIME_LEVEL: &str = "DELAY";
    /// The topic of a message that is tried again.
    pub const RETRY_TOPIC: &str = "RETRY_TOPIC";
    /// The topic a delayed message goes to.
    pub const REAL_TOPIC: &str = "REAL_TOPIC";
    /// The queue a delayed message goes to.
    pub const REAL_QUEUE_ID: &str = "REAL_QID";
    /// The key that the sender gives each message.
    pub const UNIQ_KEY: &str = "UNIQ_KEY";
    /// The queue's smallest offset when the message was pulled.
    pub const MIN_OFFSET: &str = "MIN_OFFSET";
    /// The queue's end when the message was pulled.
    pub const MAX_OFFSET: &str = "MAX_OFFSET";
    /// How often the message was tried, while it is on its way to a retry topic.
    pub const RECONSUME_TIME: &str = "RECONSUME_TIME";
    /// How often it may be tried, while it is on its way to a retry topic.
    pub const MAX_RECONSUME_TIMES: &str = "MAX_RECONSUME_TIMES";
    /// The id of the message that a retry is of.
    pub const ORIGIN_MESSAGE_ID: &str = "ORIGIN_MESSAGE_ID";
    /// When the listener was called, in milliseconds since 1970.
    pub const CONSUME_START_TIMESTAMP: &str = "CONSUME_START_TIME";
    /// The region of the broker.
    pub const MSG_REGION: &str = "MSG_REGION";
    /// Whether the broker wants traces.
    pub const TRACE_SWITCH: &str = "TRACE_ON";
    /// The broker's cluster.
    pub const CLUSTER: &str = "CLUSTER";
    /// The group of a message that came back.
    pub const ORIGIN_GROUP: &str = "ORIGIN_GROUP";
    /// `true` for a half message.
    pub const TRANSACTION_PREPARED: &str = "TRAN_MSG";
    /// The group that sent a half message.
    pub const PRODUCER_GROUP: &str = "PGROUP";
    /// Reserved by Java, out of use.
    pub const BUYER_ID: &str = "BUYER_ID";
    /// Reserved by Java, out of use.
    pub const TRANSFER_FLAG: &str = "TRANSFER_FLAG";
    /// Reserved by Java, out of use.
    pub const CORRECTION_FLAG: &str = "CORRECTION_FLAG";
    /// Reserved by Java, out of use.
    pub const MQ2_FLAG: &str = "MQ2_FLAG";
    /// The offset of a half message.
    pub const TRANS_OFFSET: &str = "TRANS_OFFSET";
    /// A further unique key.
    pub const EXTEND_UNIQ_INFO: &str = "EXTEND_UNIQ_INFO";
    /// The priority.
    pub const PRIORITY: &str = "_SYS_MSG_PRIORITY_";
    /// How many messages an inner batch has.
    pub const INNER_NUM: &str = "INNER_NUM";
    /// The offset of the first message of an inner batch.
    pub const INNER_BASE: &str = "INNER_BASE";
    /// Reserved by Java, out of use.
    pub const DUP_INFO: &str = "DUP_INFO";
    /// How old a half message must be before brokers ask for its state, in seconds.
    pub const CHECK_IMMUNITY_TIME_IN_SECONDS: &str = "CHECK_IMMUNITY_TIME_IN_SECONDS";
    /// The queue offset of a half message.
    pub const TRANSACTION_PREPARED_QUEUE_OFFSET: &str = "TRAN_PREPARED_QUEUE_OFFSET";
    /// The transaction's id.
    pub const TRANSACTION_ID: &str = "__transactionId__";
    /// How often brokers asked for the state of a half message.
    pub const TRANSACTION_CHECK_TIMES: &str = "TRANSACTION_CHECK_TIMES";
    /// The instance of a cloud service.
    pub const INSTANCE_ID: &str = "INSTANCE_ID";
    /// Ties a reply to its request message.
    pub const CORRELATION_ID: &str = "CORRELATION_ID";
    /// The client that waits for a reply.
    pub const MESSAGE_REPLY_TO_CLIENT: &str = "REPLY_TO_CLIENT";
    /// How long it waits, in milliseconds.
    pub const MESSAGE_TTL: &str = "TTL";
    /// When the broker took a reply, in milliseconds since 1970.
    pub const REPLY_MESSAGE_ARRIVE_TIME: &str = "ARRIVE_TIME";
    /// When the broker pushed it, in milliseconds since 1970.
    pub const PUSH_REPLY_TIME: &str = "PUSH_REPLY_TIME";
    /// `reply` for a reply.
    pub const MESSAGE_TYPE: &str = "MSG_TYPE";
    /// The receipt of a popped message, see [`crate::pop::ExtraInfo`].
    pub const POP_CK: &str = "POP_CK";
    /// Reserved by Java, out of use.
    pub const POP_CK_OFFSET: &str = "POP_CK_OFFSET";
    /// When the message was first popped, in milliseconds since 1970.
    pub const FIRST_POP_TIME: &str = "1ST_POP_TIME";
    /// What ordered messages are spread by.
    pub const SHARDING_KEY: &str = "__SHARDINGKEY";
    /// The lite topic.
    pub const LITE_TOPIC: &str = "__LITE_TOPIC";
    /// Of bridges between clusters.
    pub const FORWARD_QUEUE_ID: &str = "PROPERTY_FORWARD_QUEUE_ID";
    /// Of bridges between clusters.
    pub const REDIRECT: &str = "REDIRECT";
    /// The light queues that have the message too, joined by commas.
    pub const INNER_MULTI_DISPATCH: &str = "INNER_MULTI_DISPATCH";
    /// Its offsets there, joined by commas.
    pub const INNER_MULTI_QUEUE_OFFSET: &str = "INNER_MULTI_QUEUE_OFFSET";
    /// The context of a trace.
    pub const TRACE_CONTEXT: &str = "TRACE_CONTEXT";
    /// After how many seconds to deliver.
    pub const TIMER_DELAY_SEC: &str = "TIMER_DELAY_SEC";
    /// After how many milliseconds to deliver.
    pub const TIMER_DELAY_MS: &str = "TIMER_DELAY_MS";
    /// When to deliver, in milliseconds since 1970.
    pub const TIMER_DELIVER_MS: &str = "TIMER_DELIVER_MS";
    /// When a timer message was taken, in milliseconds since 1970.
    pub const TIMER_ENQUEUE_MS: &str = "TIMER_ENQUEUE_MS";
    /// When a timer message was due, in milliseconds since 1970.
    pub const TIMER_DEQUEUE_MS: &str = "TIMER_DEQUEUE_MS";
    /// How often a timer message was put off.
    pub const TIMER_ROLL_TIMES: &str = "TIMER_ROLL_TIMES";
    /// When a timer message is due, in milliseconds since 1970.
    pub const TIMER_OUT_MS: &str = "TIMER_OUT_MS";
    /// The unique key of a timer message that is taken back.
    pub const TIMER_DEL_UNIQKEY: &str = "TIMER_DEL_UNIQKEY";
    /// The delay level of a timer message.
    pub const TIMER_DELAY_LEVEL: &str = "TIMER_DELAY_LEVEL";
    /// Marks a timer message that was put off.
    pub const TIMER_ROLL_LABEL: &str = "TIMER_ROLL_LABEL";
    /// The sender's address, set by bridges.
    pub const BORN_HOST: &str = "__BORNHOST";
    /// When the message was made, set by bridges.
    pub const BORN_TIMESTAMP: &str = "BORN_TIMESTAMP";
    /// The checksum of the whole message.
    pub const CRC32: &str = "__CRC32#";
    /// The topic of a message in a dead-letter queue.
    pub const DLQ_ORIGIN_TOPIC: &str = "DLQ_ORIGIN_TOPIC";
    /// The id of a message in a dead-letter queue.
    pub const DLQ_ORIGIN_MESSAGE_ID: &str = "DLQ_ORIGIN_MESSAGE_ID";

    /// Names that [`super::Message::put_user_property`] refuses: they steer clients and brokers.
    pub(super) const RESERVED: &[&str] = &[
        KEYS,
        TAGS,
        WAIT_STORE_MSG_OK,
        DELAY_TIME_LEVEL,
        RETRY_TOPIC,
        REAL_TOPIC,
        REAL_QUEUE_ID,
        UNIQ_KEY,
        MIN_OFFSET,
        MAX_OFFSET,
        RECONSUME_TIME,
        MAX_RECONSUME_TIMES,
        ORIGIN_MESSAGE_ID,
        CONSUME_START_TIMESTAMP,
        MSG_REGION,
        TRACE_SWITCH,
        CLUSTER,
        ORIGIN_GROUP,
        TRANSACTION_PREPARED,
        PRODUCER_GROUP,
        BUYER_ID,
        TRANSFER_FLAG,
        CORRECTION_FLAG,
        MQ2_FLAG,
        TRANS_OFFSET,
        EXTEND_UNIQ_INFO,
        PRIORITY,
        INNER_NUM,
        INNER_BASE,
        DUP_INFO,
        CHECK_IMMUNITY_TIME_IN_SECONDS,
        TRANSACTION_PREPARED_QUEUE_OFFSET,
        TRANSACTION_ID,
        TRANSACTION_CHECK_TIMES,
        INSTANCE_ID,
        CORRELATION_ID,
        MESSAGE_REPLY_TO_CLIENT,
        MESSAGE_TTL,
        REPLY_MESSAGE_ARRIVE_TIME,
        PUSH_REPLY_TIME,
        MESSAGE_TYPE,
        POP_CK,
        POP_CK_OFFSET,
        FIRST_POP_TIME,
        SHARDING_KEY,
        LITE_TOPIC,
        FORWARD_QUEUE_ID,
        REDIRECT,
        INNER_MULTI_DISPATCH,
        INNER_MULTI_QUEUE_OFFSET,
        TRACE_CONTEXT,
        TIMER_DELAY_SEC,
        TIMER_DELAY_MS,
        TIMER_DELIVER_MS,
        TIMER_ENQUEUE_MS,
        TIMER_DEQUEUE_MS,
        TIMER_ROLL_TIMES,
        TIMER_OUT_MS,
        TIMER_DEL_UNIQKEY,
        TIMER_DELAY_LEVEL,
        TIMER_ROLL_LABEL,
        BORN_HOST,
        BORN_TIMESTAMP,
        CRC32,
        DLQ_ORIGIN_TOPIC,
        DLQ_ORIGIN_MESSAGE_ID,
    ];

    /// Starts the names of properties that brokers keep in memory only; refused like the reserved.
    pub(super) const TRANSIENT_PREFIX: &str = "__RMQ.TRANSIENT.";
}

/// A message as a user makes it (Java `Message`).
///
/// Cloning shares the body. Nothing is checked here: a producer refuses a topic name that is blank,
/// longer than 127 bytes or has other characters than `%|-_0-9a-zA-Z`, an empty body, and one of
/// more than `max_message_size` (4 MiB unless set).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    topic: Arc<str>,
    pub(crate) flag: i32,
    pub(crate) properties: MessageProperties,
    pub(crate) body: Bytes,
}

impl Message {
    /// A message without tag and keys. The broker is asked to store it safely before it answers
    /// (property `WAIT`), as Java's constructor does. A topic that is an `Arc<str>` is shared, any other
    /// text of it is copied.
    pub fn new(topic: impl Into<Arc<str>>, body: impl Into<Bytes>) -> Self {
        Self {
            topic: topic.into(),
            flag: 0,
            properties: MessageProperties::of_new_message(),
            body: body.into(),
        }
    }

    /// A message of given parts; nothing is added.
    pub fn from_parts(
        topic: impl Into<Arc<str>>,
        flag: i32,
        properties: Properties,
        body: impl Into<Bytes>,
    ) -> Self {
        Self {
            topic: topic.into(),
            flag,
            properties: properties.into(),
            body: body.into(),
        }
    }

    pub(crate) fn received(
        topic: Arc<str>,
        flag: i32,
        properties: MessageProperties,
        body: Bytes,
    ) -> Self {
        Self {
            topic,
            flag,
            properties,
            body,
        }
    }

    /// The same message with a tag, by which consumers choose; a message has one at most, the last
    /// that was set. Consumers split their expression at `||` and trim its parts, so a tag with `||`
    /// inside or blanks around it is matched by `*` only; an empty one is none.
    #[must_use]
    pub fn with_tags(mut self, tags: impl Into<String>) -> Self {
        self.put_property(property::TAGS, tags);
        self
    }

    /// The same message with keys; several are joined by single spaces.
    #[must_use]
    pub fn with_keys(mut self, keys: impl Into<String>) -> Self {
        self.put_property(property::KEYS, keys);
        self
    }

    /// The same message with several keys (Java `setKeys` of a collection). None at all leaves the
    /// message without keys; a key with a blank inside counts as two to whoever looks it up.
    #[must_use]
    pub fn with_key_list<K: AsRef<str>>(self, keys: impl IntoIterator<Item = K>) -> Self {
        let mut joined = String::new();
        for key in keys {
            if !joined.is_empty() {
                joined.push(' ');
            }
            joined.push_str(key.as_ref());
        }
        if joined.is_empty() {
            self
        } else {
            self.with_keys(joined)
        }
    }

    /// Sets a property of the user's own.
    ///
    /// # Errors
    /// [`CodecError::Unencodable`] for a name that steers clients or brokers, for a blank name or
    /// value, and for the two control characters that separate properties.
    pub fn put_user_property(
        &mut self,
        name: impl Into<String>,
        value: impl Into<String>,
    ) -> Result<(), CodecError> {
        let name = name.into();
        let value = value.into();
        let refused = |detail: String| CodecError::Unencodable {
            what: "user property",
            detail,
        };
        if property::RESERVED.contains(&name.as_str())
            || name.starts_with(property::TRANSIENT_PREFIX)
        {
            return Err(refused(format!("{name} is a reserved name")));
        }
        if name.trim().is_empty() || value.trim().is_empty() {
            return Err(refused(format!(
                "blank name or value: {name:?} = {value:?}"
            )));
        }
        if name.contains(['\u{1}', '\u{2}']) || value.contains(['\u{1}', '\u{2}']) {
            return Err(refused(format!("U+0001 or U+0002 in {name:?} = {value:?}")));
        }
        self.properties.set(&name, value);
        Ok(())
    }

    /// Sets any property, reserved ones too, and checks nothing; for properties of your own
    /// [`put_user_property`](Self::put_user_property) is the safe way. A property with an empty value
    /// is not there for whoever receives the message; a producer refuses to send an empty name, and
    /// U+0001 and U+0002 anywhere.
    pub fn put_property(&mut self, name: &str, value: impl Into<String>) {
        self.properties.set(name, value.into());
    }

    /// Removes a property and gives its value.
    pub fn clear_property(&mut self, name: &str) -> Option<String> {
        self.properties.remove(name)
    }

    /// Moves the message to another topic.
    pub fn set_topic(&mut self, topic: impl Into<Arc<str>>) {
        self.topic = topic.into();
    }

    /// Replaces the body.
    pub fn set_body(&mut self, body: impl Into<Bytes>) {
        self.body = body.into();
    }

    /// Sets the user's flag, which travels with the message and means nothing to brokers.
    pub fn set_flag(&mut self, flag: i32) {
        self.flag = flag;
    }

    /// The topic.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// The topic, shared.
    pub fn shared_topic(&self) -> Arc<str> {
        Arc::clone(&self.topic)
    }

    /// The user's flag; 0 unless set.
    pub fn flag(&self) -> i32 {
        self.flag
    }

    /// The body.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// All properties. Their map is made the first time that it is asked for; to look at one,
    /// [`property`](Self::property) is cheaper.
    pub fn properties(&self) -> &Properties {
        self.properties.map()
    }

    /// One property.
    #[inline]
    pub fn property(&self, name: &str) -> Option<&str> {
        self.properties.get(name)
    }

    /// The properties in the form in which they travel (Java
    /// `MessageDecoder#messageProperties2String`), with `changes` made: each name is there once, sorted by
    /// name, and takes the place of what the message has.
    pub fn encode_properties_with(&self, changes: &[(&str, &str)]) -> String {
        self.properties.text_with(changes)
    }

    /// The length of the properties in that form, in bytes.
    pub fn encoded_properties_length(&self) -> usize {
        self.properties.encoded_length()
    }

    /// Whether it is known, without a look at each, that no property has an empty name or one of the two
    /// characters inside that separate properties. Known of most messages that were made here, of none
    /// that was received.
    pub fn has_plain_properties(&self) -> bool {
        self.properties.are_plain()
    }

    /// The tag.
    pub fn tags(&self) -> Option<&str> {
        self.property(property::TAGS)
    }

    /// The keys, joined by spaces.
    pub fn keys(&self) -> Option<&str> {
        self.property(property::KEYS)
    }
}

/// A message as it was stored and pulled (Java `MessageExt`).
///
/// It derefs to [`Message`]: topic, tag, keys, properties and body are read as there. A message
/// that is tried again has its own topic, not that of the retries.
///
/// Cloning shares the body and the text of the properties, which may be slices of the whole pull
/// reply: [`MessageExt::detach`] gives them memory of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageExt {
    pub(crate) message: Message,
    pub(crate) broker_name: Arc<str>,
    pub(crate) queue_id: i32,
    pub(crate) store_size: usize,
    pub(crate) queue_offset: i64,
    pub(crate) sys_flag: i32,
    pub(crate) born_timestamp: i64,
    pub(crate) born_host: SocketAddr,
    pub(crate) store_timestamp: i64,
    pub(crate) stored_at: StoredAt,
    pub(crate) reconsume_times: i32,
    pub(crate) prepared_transaction_offset: i64,
}

impl MessageExt {
    /// The message's id: the sender's unique key, or the offset id when there is none. It is the
    /// `msg_id` that the send returned, and the same at each try.
    pub fn msg_id(&self) -> &str {
        self.message
            .property(property::UNIQ_KEY)
            .unwrap_or_else(|| self.offset_msg_id())
    }

    /// The bytes of [`msg_id`](Self::msg_id), as a slice of the message's memory if they are there.
    pub fn shared_msg_id(&self) -> Bytes {
        let shared = self.message.properties.shared(property::UNIQ_KEY);
        shared.unwrap_or_else(|| Bytes::copy_from_slice(self.msg_id().as_bytes()))
    }

    /// The id that tells broker address and commit-log offset.
    pub fn offset_msg_id(&self) -> &str {
        let StoredAt { place, id } = &self.stored_at;
        id.get_or_init(|| place.to_string().into())
    }

    /// The name of the broker it was pulled from; empty when unknown.
    pub fn broker_name(&self) -> &str {
        &self.broker_name
    }

    /// The queue it was pulled from.
    pub fn queue_id(&self) -> i32 {
        self.queue_id
    }

    /// Its offset in that queue.
    pub fn queue_offset(&self) -> i64 {
        self.queue_offset
    }

    /// Its size in the store, in bytes.
    pub fn store_size(&self) -> usize {
        self.store_size
    }

    /// Flag bits, see [`crate::sys_flag`]; the compressed bit is cleared once the body is expanded.
    pub fn sys_flag(&self) -> i32 {
        self.sys_flag
    }

    /// When it was made, in milliseconds since 1970, by the sender's clock.
    pub fn born_timestamp(&self) -> i64 {
        self.born_timestamp
    }

    /// The sender's address as the broker saw it.
    pub fn born_host(&self) -> SocketAddr {
        self.born_host
    }

    /// When it was stored, in milliseconds since 1970, by the broker's clock.
    pub fn store_timestamp(&self) -> i64 {
        self.store_timestamp
    }

    /// The address of the broker that stored it.
    pub fn store_host(&self) -> SocketAddr {
        self.stored_at.place.store_host
    }

    /// Its offset in the commit log.
    pub fn commit_log_offset(&self) -> i64 {
        self.stored_at.place.commit_log_offset
    }

    /// How often it was consumed in vain before; 0 the first time.
    pub fn reconsume_times(&self) -> i32 {
        self.reconsume_times
    }

    /// The commit-log offset of the half message that it was committed from, or 0.
    pub fn prepared_transaction_offset(&self) -> i64 {
        self.prepared_transaction_offset
    }

    /// Sets how often it was consumed in vain.
    pub fn set_reconsume_times(&mut self, times: i32) {
        self.reconsume_times = times;
    }

    /// Tells which queue it came from.
    pub fn set_queue(&mut self, broker_name: Arc<str>, queue_id: i32) {
        self.broker_name = broker_name;
        self.queue_id = queue_id;
    }

    /// Sets its offset in the queue; that of a static topic is not the one the broker stored.
    pub fn set_queue_offset(&mut self, offset: i64) {
        self.queue_offset = offset;
    }

    /// Tells the queue's smallest offset and its end, as properties; makes no map of them.
    pub fn set_offset_bounds(&mut self, min: i64, max: i64) {
        self.message.properties.set_offset_bounds(min, max);
    }

    /// Tells when the listener is called, in milliseconds since 1970, as a property; makes no map of
    /// them (Java `MessageAccessor#setConsumeStartTimeStamp`).
    pub fn set_consume_start_timestamp(&mut self, millis: i64) {
        self.message.properties.set_consume_start_timestamp(millis);
    }

    /// The message to change its topic or properties.
    pub fn message_mut(&mut self) -> &mut Message {
        &mut self.message
    }

    /// The same message with body and properties in memory of its own, so that it keeps no pull reply
    /// alive.
    #[must_use]
    pub fn detach(mut self) -> Self {
        self.detach_into(|body, properties| [body, properties].concat().into());
        self
    }

    /// [`detach`](Self::detach) in place, with a say in what owns the copy: `own` gets body and
    /// properties and must give back the bytes of both, in this order.
    pub fn detach_into(&mut self, own: impl FnOnce(&[u8], &[u8]) -> Bytes) {
        let (body, properties) = (&self.message.body, self.message.properties.encoded());
        let length = body.len();
        let mut owned = own(body, properties);
        let properties = owned.split_off(length.min(owned.len()));
        self.message.body = owned;
        self.message.properties.move_to(properties);
    }

    /// [`detach`](Self::detach) for a message whose body lies elsewhere already.
    pub fn detach_properties(&mut self) {
        let copy = Bytes::copy_from_slice(self.message.properties.encoded());
        self.message.properties.move_to(copy);
    }
}

/// Where a message is stored, and the id of that place once somebody has asked for it.
#[derive(Clone)]
pub(crate) struct StoredAt {
    place: OffsetMessageId,
    id: OnceLock<Box<str>>,
}

impl From<OffsetMessageId> for StoredAt {
    fn from(place: OffsetMessageId) -> Self {
        Self {
            place,
            id: OnceLock::new(),
        }
    }
}

impl PartialEq for StoredAt {
    fn eq(&self, other: &Self) -> bool {
        self.place == other.place
    }
}

impl Eq for StoredAt {}

impl fmt::Debug for StoredAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place.fmt(f)
    }
}

impl std::ops::Deref for MessageExt {
    type Target = Message;

    fn deref(&self) -> &Message {
        &self.message
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The names of Java's `MessageConst#STRING_HASH_SET` in 5.5.0.
    const RESERVED_IN_JAVA: &str = "KEYS TAGS WAIT DELAY RETRY_TOPIC ORIGIN_GROUP REAL_TOPIC REAL_QID \
        TRAN_MSG PGROUP MIN_OFFSET MAX_OFFSET BUYER_ID ORIGIN_MESSAGE_ID TRANSFER_FLAG \
        CORRECTION_FLAG MQ2_FLAG RECONSUME_TIME MSG_REGION TRACE_ON UNIQ_KEY TRANS_OFFSET \
        EXTEND_UNIQ_INFO MAX_RECONSUME_TIMES CONSUME_START_TIME _SYS_MSG_PRIORITY_ INNER_NUM \
        INNER_BASE DUP_INFO CHECK_IMMUNITY_TIME_IN_SECONDS TRAN_PREPARED_QUEUE_OFFSET \
        __transactionId__ TRANSACTION_CHECK_TIMES INSTANCE_ID CORRELATION_ID REPLY_TO_CLIENT TTL \
        ARRIVE_TIME PUSH_REPLY_TIME CLUSTER MSG_TYPE POP_CK POP_CK_OFFSET 1ST_POP_TIME \
        __SHARDINGKEY __LITE_TOPIC PROPERTY_FORWARD_QUEUE_ID REDIRECT INNER_MULTI_DISPATCH \
        INNER_MULTI_QUEUE_OFFSET TRACE_CONTEXT TIMER_DELAY_SEC TIMER_DELAY_MS TIMER_DELIVER_MS \
        TIMER_ENQUEUE_MS TIMER_DEQUEUE_MS TIMER_ROLL_TIMES TIMER_OUT_MS TIMER_DEL_UNIQKEY \
        TIMER_DELAY_LEVEL TIMER_ROLL_LABEL __BORNHOST BORN_TIMESTAMP __CRC32# DLQ_ORIGIN_TOPIC \
        DLQ_ORIGIN_MESSAGE_ID";

    #[test]
    fn the_reserved_names_are_java_s_and_all_are_refused() {
        let java: BTreeSet<&str> = RESERVED_IN_JAVA.split_whitespace().collect();
        assert_eq!(
            property::RESERVED.iter().copied().collect::<BTreeSet<_>>(),
            java
        );
        assert_eq!(
            property::RESERVED.len(),
            java.len(),
            "a name is listed twice"
        );
        let mut message = Message::new("T", "b");
        let before = message.clone();
        for name in java
            .into_iter()
            .chain(["__RMQ.TRANSIENT.x", "__RMQ.TRANSIENT."])
        {
            assert!(message.put_user_property(name, "v").is_err(), "{name}");
        }
        assert_eq!(message, before);
    }

    #[test]
    fn names_and_values_that_would_not_arrive_are_refused() {
        let mut message = Message::new("T", "b");
        for (name, value) in [
            ("", "v"),
            (" ", "v"),
            ("n", ""),
            ("n", "\t "),
            ("n\u{1}", "v"),
            ("n", "\u{2}v"),
        ] {
            assert!(
                message.put_user_property(name, value).is_err(),
                "{name:?} {value:?}"
            );
        }
        message.put_user_property("__RMQ.TRANSIEN", " v ").unwrap();
        assert_eq!(message.property("__RMQ.TRANSIEN"), Some(" v "));
    }
}
