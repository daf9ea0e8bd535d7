//! Looking messages up, offsets by time, and taking messages back.

use rocketmq_protocol::header::{QueryMessageRequestHeader, RecallMessageRequestHeader};
use rocketmq_protocol::mix_all::{DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX};
use rocketmq_protocol::{
    CodecError, Message, MessageExt, MessageQueue, OffsetMessageId, RecallHandle, validators,
};

use super::default_mq_producer::DefaultMQProducer;
use super::trace_hooks::tell_of_recall;
use crate::client::{QueryResult, SearchFor};
use crate::error::{Error, Result, client_error_code};
use crate::sync::Deadline;

/// The most messages with one unique key that are asked for (Java `queryMessageByUniqKey`).
const UNIQ_KEY_MAX: i32 = 32;

impl DefaultMQProducer {
    /// The messages of a topic that have a key, at most `max_num` from each broker, the newest; their
    /// store time lies in `begin..=end`, in milliseconds since 1970. A broker gives no more than 64.
    ///
    /// Brokers write their index a moment after a message.
    ///
    /// # Blocking
    /// At most 18 s for the brokers, which are asked side by side, and 6 s for a route that is not
    /// known.
    ///
    /// # Errors
    /// [`MQClient`](crate::Error::MQClient) with code 208 when there is none; its source says why a
    /// broker could not be asked, if that is so.
    ///
    /// # Java
    /// `MQAdmin#queryMessage`
    pub fn query_message(
        &self,
        topic: &str,
        key: &str,
        max_num: i32,
        begin: i64,
        end: i64,
    ) -> Result<QueryResult> {
        self.query(topic, key, max_num, (begin, end), false)
    }

    /// The message of a topic with this unique key; the first one found if a retry stored it twice.
    ///
    /// # Blocking
    /// As [`query_message`](Self::query_message).
    ///
    /// # Errors
    /// As [`query_message`](Self::query_message).
    ///
    /// # Java
    /// `MQAdminImpl#queryMessageByUniqKey`, which derives the earliest time from the key; here all
    /// times count, so that keys of another making are found.
    pub fn query_message_by_uniq_key(&self, topic: &str, uniq_key: &str) -> Result<MessageExt> {
        let found = self.query(topic, uniq_key, UNIQ_KEY_MAX, (0, i64::MAX), true)?;
        let mut messages = found.messages.into_iter();
        messages.next().ok_or_else(|| {
            let reason = format!("no message of topic {topic} has the unique key {uniq_key}");
            Error::client(rocketmq_protocol::response_code::NO_MESSAGE, reason)
        })
    }

    /// A message by its id: an offset id, which tells broker and place, or a unique key.
    ///
    /// # Blocking
    /// At most 6 s for an offset id, and then as [`query_message`](Self::query_message).
    ///
    /// # Errors
    /// As [`query_message`](Self::query_message).
    ///
    /// # Java
    /// `MQAdmin#viewMessage(String, String)`. A unique key has the form of an offset id and may name
    /// any address; only brokers that are known are asked.
    pub fn view_message(&self, topic: &str, msg_id: &str) -> Result<MessageExt> {
        let instance = self.inner().instance()?;
        let wrapped = self.namespace().wrap(topic);
        let id = OffsetMessageId::parse(msg_id);
        let view = || id.and_then(|id| instance.view_message(&wrapped, id));
        let first = view();
        if let Some(Ok(message)) = first {
            return Ok(self.unwrapped(message));
        }
        match self.query_message_by_uniq_key(topic, msg_id) {
            Ok(message) => Ok(message),
            // The route that was fetched for the query may have told of the broker.
            Err(error) => match first.map_or_else(view, |_| None) {
                Some(Ok(message)) => Ok(self.unwrapped(message)),
                _ => Err(error),
            },
        }
    }

    /// When a queue's first message was stored, in milliseconds since 1970; -1 for a queue without a
    /// message.
    ///
    /// # Blocking
    /// At most 6 s.
    ///
    /// # Errors
    /// The queue's broker is in no route, or does not answer.
    ///
    /// # Java
    /// `MQAdmin#earliestMsgStoreTime`
    pub fn earliest_msg_store_time(&self, mq: &MessageQueue) -> Result<i64> {
        let mq = self.namespace().wrap_queue(mq);
        self.inner().instance()?.earliest_msg_store_time(&mq)
    }

    /// The offset of the first message that was stored at a time or later, in milliseconds since
    /// 1970; the queue's end if there is none.
    ///
    /// # Blocking
    /// At most 6 s.
    ///
    /// # Errors
    /// The queue's broker is in no route, or does not answer.
    ///
    /// # Java
    /// `MQAdmin#searchOffset`
    pub fn search_offset(&self, mq: &MessageQueue, timestamp: i64) -> Result<i64> {
        self.search(mq, timestamp, "LOWER")
    }

    /// The offset of the last message that was stored at a time or earlier; the queue's beginning if
    /// there is none.
    ///
    /// # Blocking
    /// At most 6 s.
    ///
    /// # Errors
    /// The queue's broker is in no route, or does not answer.
    ///
    /// # Java
    /// `MQAdminImpl#searchOffset` with `BoundaryType.UPPER`
    pub fn search_upper_offset(&self, mq: &MessageQueue, timestamp: i64) -> Result<i64> {
        self.search(mq, timestamp, "UPPER")
    }

    /// Takes back a message that waits for a time of its own, and tells its unique key. `handle` is
    /// the [`recall_handle`](crate::SendResult::recall_handle) of its send.
    ///
    /// # Blocking
    /// At most `send_msg_timeout` (3 s).
    ///
    /// # Errors
    /// [`InvalidMessage`](crate::Error::InvalidMessage) for a topic or a handle that is none;
    /// [`MQBroker`](crate::Error::MQBroker) with code 16 where brokers are not set to allow it
    /// (`recallMessageEnable`, which is off by default), 604 when the time is over or topic and
    /// handle do not fit.
    ///
    /// # Java
    /// `DefaultMQProducer#recallMessage`
    pub fn recall_message(&self, topic: &str, handle: &str) -> Result<String> {
        let inner = self.inner();
        let deadline = Deadline::after(inner.config.send_msg_timeout);
        let instance = inner.instance()?;
        let topic = self.namespace().wrap(topic);
        let refused = |reason: String| Error::InvalidMessage {
            topic: topic.to_string(),
            reason,
        };
        validators::check_topic(&topic).map_err(|error| refused(format!("topic: {error}")))?;
        if [RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX]
            .iter()
            .any(|prefix| topic.starts_with(prefix))
        {
            return Err(refused(
                "messages of this topic cannot be taken back".to_owned(),
            ));
        }
        let read = RecallHandle::parse(handle)
            .map_err(|error: CodecError| refused(format!("recall handle: {error}")))?;
        let find = || {
            instance
                .brokers()
                .find_broker_address_in_publish(&read.broker_name)
        };
        let addr = match find() {
            Some(addr) => addr,
            None => {
                inner.try_to_find_topic_publish_info(&instance, &topic, deadline)?;
                find().ok_or_else(|| {
                    let reason = format!("broker {} has no master", read.broker_name);
                    Error::client(client_error_code::BROKER_NOT_EXIST_EXCEPTION, reason)
                })?
            }
        };
        let header = RecallMessageRequestHeader {
            producer_group: Some(inner.config.send.producer_group.clone()),
            topic: topic.into_owned(),
            recall_handle: handle.to_owned(),
            broker_name: Some(read.broker_name),
        };
        let reply = instance.api().recall_message(&addr, &header, deadline)?;
        if let Some(trace) = inner.recall_trace() {
            tell_of_recall(trace, &header, self.namespace(), &read.uniq_key, &reply);
        }
        reply.outcome
    }

    fn query(
        &self,
        topic: &str,
        key: &str,
        max_num: i32,
        (begin, end): (i64, i64),
        unique: bool,
    ) -> Result<QueryResult> {
        let header = QueryMessageRequestHeader {
            topic: self.namespace().wrap(topic).into_owned(),
            key: key.to_owned(),
            max_num,
            begin_timestamp: begin,
            end_timestamp: end,
            ..QueryMessageRequestHeader::default()
        };
        let mut found = self.inner().instance()?.query_message(&header, unique)?;
        let messages = found.messages.into_iter();
        found.messages = messages.map(|message| self.unwrapped(message)).collect();
        Ok(found)
    }

    fn search(&self, mq: &MessageQueue, timestamp: i64, boundary: &'static str) -> Result<i64> {
        let mq = self.namespace().wrap_queue(mq);
        let search = SearchFor {
            timestamp,
            boundary,
        };
        self.inner().instance()?.search_offset(&mq, search)
    }

    fn unwrapped(&self, mut message: MessageExt) -> MessageExt {
        let topic = self.namespace().unwrap(message.topic()).into_owned();
        let inner: &mut Message = message.message_mut();
        inner.set_topic(topic);
        message
    }
}
