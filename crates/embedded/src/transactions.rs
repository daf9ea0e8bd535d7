use std::collections::BTreeSet;
use std::time::Duration;

use bytes::BytesMut;
use parking_lot::Mutex;
use rocketmq_protocol::body::Permission;
use rocketmq_protocol::header::CheckTransactionStateRequestHeader;
use rocketmq_protocol::{
    CodecError, Properties, RemotingCommand, StoredMessage, decode_properties, encode_properties,
    property, request_code, sys_flag,
};

use crate::broker::Broker;
use crate::put_message::PutError;
use crate::store::{Placed, now_millis};
use crate::topic_config::TopicConfig;

/// Which half messages are decided, and how far the checks have come (Java
/// `TransactionalMessageServiceImpl`). The messages lie in the store like others, in
/// [`HALF_TOPIC`]; a real broker keeps this in a topic of its own.
#[derive(Debug, Default)]
pub(crate) struct Transactions(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The first offset of the half topic that no check has passed.
    next: i64,
    /// The offsets there of what was committed or rolled back.
    decided: BTreeSet<i64>,
}

/// Where half messages wait.
pub(crate) const HALF_TOPIC: &str = "RMQ_SYS_TRANS_HALF_TOPIC";
/// Java `fileReservedTime`, 72 hours: an older half message is not asked for.
const FILE_RESERVED_MILLIS: i64 = 72 * 3600 * 1000;
/// Where those go that were asked for too often.
const CHECK_MAX_TIME_TOPIC: &str = "TRANS_CHECK_MAX_TIME_TOPIC";

impl Transactions {
    /// Notes that the half message at an offset is committed or rolled back.
    pub(crate) fn decide(&self, half_offset: i64) {
        self.0.lock().decided.insert(half_offset);
    }

    fn is_decided(&self, half_offset: i64) -> bool {
        self.0.lock().decided.contains(&half_offset)
    }
}

/// What a check does with one half message.
enum Step {
    Next,
    Stop,
}

impl Broker {
    /// Keeps a half message where no consumer looks (Java
    /// `TransactionalMessageBridge#parseHalfMessageInner`).
    pub(crate) fn put_half(&self, mut message: StoredMessage) -> Result<Placed, PutError> {
        let mut properties = decode_properties(&message.properties);
        if let Some(key) = properties.get(property::UNIQ_KEY).cloned() {
            properties.insert(property::TRANSACTION_ID.to_owned(), key);
        }
        for (name, value) in [
            (property::REAL_TOPIC, std::mem::take(&mut message.topic)),
            (property::REAL_QUEUE_ID, message.queue_id.to_string()),
        ] {
            properties.insert(name.to_owned(), value);
        }
        message.properties = encode_properties(&properties);
        message.sys_flag &= !sys_flag::TRANSACTION_MASK;
        HALF_TOPIC.clone_into(&mut message.topic);
        message.queue_id = 0;
        self.system_topic(HALF_TOPIC);
        self.put(message)
    }

    /// Looks for half messages without a decision and asks their producers, one round (Java
    /// `TransactionalMessageServiceImpl#check`).
    pub(crate) fn check_transactions(&self) {
        let (min, max) = self.store.ends(HALF_TOPIC, 0);
        let started = now_millis();
        let mut offset = self.transactions.0.lock().next.max(min);
        while offset < max {
            match self.check_half(offset, started) {
                Ok(Step::Next) => offset += 1,
                Ok(Step::Stop) => break,
                Err(error) => {
                    log::error!("{}: half message {offset} is lost: {error}", self.name);
                    offset += 1;
                }
            }
        }
        self.transactions.0.lock().next = offset;
    }

    fn check_half(&self, offset: i64, started: i64) -> Result<Step, PutError> {
        if self.transactions.is_decided(offset) {
            return Ok(Step::Next);
        }
        let Some(bytes) = self.store.message_in(HALF_TOPIC, 0, offset) else {
            return Ok(Step::Next);
        };
        let config = self.config();
        let mut half = StoredMessage::decode(bytes)?;
        let mut properties = decode_properties(&half.properties);
        let number = |properties: &Properties, name| {
            let text: Option<&String> = properties.get(name);
            text.and_then(|text| text.parse::<i64>().ok())
        };
        let checks = number(&properties, property::TRANSACTION_CHECK_TIMES).unwrap_or(0);
        let age = now_millis() - half.born_timestamp;
        let too_often = checks > 0 && checks >= i64::from(config.transaction_check_max);
        if too_often || age > FILE_RESERVED_MILLIS {
            log::info!(
                "{}: half message {offset} was asked for too often, or is too old",
                self.name
            );
            self.system_topic(CHECK_MAX_TIME_TOPIC);
            CHECK_MAX_TIME_TOPIC.clone_into(&mut half.topic);
            self.put(half)?;
            return Ok(Step::Next);
        }
        if half.store_timestamp >= started {
            return Ok(Step::Stop);
        }
        let times = (checks + 1).to_string();
        properties.insert(property::TRANSACTION_CHECK_TIMES.to_owned(), times);
        if properties.contains_key(property::CHECK_IMMUNITY_TIME_IN_SECONDS) {
            let immunity = number(&properties, property::CHECK_IMMUNITY_TIME_IN_SECONDS)
                .filter(|seconds| *seconds != -1)
                .map_or_else(
                    || millis(config.transaction_time_out),
                    |seconds| seconds.saturating_mul(1000),
                );
            let original = number(&properties, property::TRANSACTION_PREPARED_QUEUE_OFFSET);
            if original.is_some_and(|original| self.transactions.is_decided(original)) {
                return Ok(Step::Next);
            }
            if age <= immunity {
                // It is put behind the others, so that those are not held up.
                properties.insert(
                    property::TRANSACTION_PREPARED_QUEUE_OFFSET.to_owned(),
                    original.unwrap_or(offset).to_string(),
                );
                half.properties = encode_properties(&properties);
                self.put(renewed(half))?;
                return Ok(Step::Next);
            }
        } else if (0..=millis(config.transaction_time_out)).contains(&age) {
            return Ok(Step::Stop);
        }
        half.properties = encode_properties(&properties);
        half = renewed(half);
        let placed = self.put(half.clone())?;
        half.queue_offset = placed.queue_offset;
        half.commit_log_offset = placed.commit_log_offset;
        // What is shown is not waited for; what is stored says what its sender said.
        properties.insert(property::WAIT_STORE_MSG_OK.to_owned(), "false".to_owned());
        half.properties = encode_properties(&properties);
        self.ask_producer(half, &properties, placed.offset_msg_id)?;
        Ok(Step::Next)
    }

    /// Asks some member of the group; a failure is left for the next round (Java
    /// `AbstractTransactionalMessageCheckListener#sendCheckMessage`).
    fn ask_producer(
        &self,
        mut half: StoredMessage,
        properties: &Properties,
        offset_msg_id: String,
    ) -> Result<(), CodecError> {
        let group = properties.get(property::PRODUCER_GROUP);
        let group = group.map_or("", String::as_str);
        let Some(connection) = self.producers.available(group) else {
            log::warn!("{}: no producer of group {group} to ask", self.name);
            return Ok(());
        };
        let Some((topic, queue_id)) = real_place(properties) else {
            return Ok(());
        };
        half.topic = topic;
        half.queue_id = queue_id;
        let key = properties.get(property::UNIQ_KEY).cloned();
        let header = CheckTransactionStateRequestHeader {
            topic: Some(HALF_TOPIC.to_owned()),
            tran_state_table_offset: half.queue_offset,
            commit_log_offset: half.commit_log_offset,
            msg_id: key.clone(),
            transaction_id: key,
            offset_msg_id: Some(offset_msg_id),
            broker_name: Some(self.name.to_string()),
        };
        let mut body = BytesMut::new();
        half.encode(&mut body)?;
        let request = RemotingCommand::request(request_code::CHECK_TRANSACTION_STATE, &header);
        self.tell_client(&connection, request.with_body(body.freeze()));
        Ok(())
    }

    fn system_topic(&self, topic: &str) {
        let config = TopicConfig::new(1, Permission::READ_WRITE);
        self.store.topic_or_create(topic, config);
    }
}

/// The topic and the queue that a message is meant for which waits elsewhere.
pub(crate) fn real_place(properties: &Properties) -> Option<(String, i32)> {
    let topic = properties.get(property::REAL_TOPIC)?.clone();
    let queue_id = properties.get(property::REAL_QUEUE_ID)?.parse().ok()?;
    Some((topic, queue_id))
}

/// What is stored once more for a check: like the first, but for the flag, which is lost (Java
/// `TransactionalMessageBridge#renewHalfMessageInner`).
fn renewed(half: StoredMessage) -> StoredMessage {
    StoredMessage { flag: 0, ..half }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
