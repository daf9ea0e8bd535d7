//! Questions about topics and queues (Java `MQAdminImpl`).

use std::time::Duration;

use rocketmq_protocol::body::{MASTER_ID, Permission};
use rocketmq_protocol::header::{CreateTopicRequestHeader, QueryMessageRequestHeader};
use rocketmq_protocol::{MessageExt, MessageQueue, OffsetMessageId, response_code};

use super::static_topic::publish_queues;
use super::{MQClientInstance, OnlyThisBroker, QueueAt, RouteOf, SearchFor};
use crate::error::{Error, Result, client_error_code};
use crate::sync::{Arc, Deadline, channel};

/// Messages that have a key (Java `QueryResult`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueryResult {
    /// The messages, broker by broker; those of a broker in the order of their storing.
    pub messages: Vec<MessageExt>,
    /// Until when the brokers' index reaches, in milliseconds since 1970; 0 when none told.
    pub index_last_update_timestamp: i64,
}

/// Java `MQAdminImpl#timeoutMillis`.
const TIMEOUT: Duration = Duration::from_secs(6);
/// Three times as long, as in Java, for a look into indexes on disk.
const QUERY_TIMEOUT: Duration = Duration::from_secs(18);
/// How often a broker is asked to create a topic before it is given up (Java tries as often).
const CREATE_TOPIC_ATTEMPTS: usize = 5;

impl MQClientInstance {
    /// Creates a topic on every broker that has the topic `key`; one that accepts is enough.
    pub(crate) fn create_topic(&self, key: &str, topic: &str, queue_num: i32) -> Result<()> {
        let deadline = Deadline::after(TIMEOUT);
        let route = self
            .api()
            .topic_route_info(key, deadline)?
            .ok_or_else(|| no_route(key))?;
        let header = CreateTopicRequestHeader {
            topic: topic.to_owned(),
            default_topic: key.to_owned(),
            read_queue_nums: queue_num,
            write_queue_nums: queue_num,
            perm: Permission::READ_WRITE.0,
            topic_filter_type: Some("SINGLE_TAG".to_owned()),
            topic_sys_flag: Some(0),
            order: Some(false),
            attributes: None,
            force: None,
        };
        let mut created = false;
        let mut failure = no_route(key);
        for addr in route
            .broker_datas
            .iter()
            .filter_map(|b| b.broker_addrs.get(&MASTER_ID))
        {
            for _ in 0..CREATE_TOPIC_ATTEMPTS {
                match self.api().create_topic(addr, &header, deadline) {
                    Ok(()) => {
                        created = true;
                        break;
                    }
                    Err(error) => failure = error,
                }
            }
        }
        if created {
            return Ok(());
        }
        Err(Error::MQClient {
            code: None,
            reason: format!("no broker has created topic {topic}"),
            source: Some(failure.into()),
        })
    }

    /// The queues of a topic that can be written, in the order a producer goes round them.
    pub(crate) fn fetch_publish_message_queues(&self, topic: &str) -> Result<Vec<MessageQueue>> {
        let route = self
            .api()
            .topic_route_info(topic, Deadline::after(TIMEOUT))?;
        let queues = route
            .map(|route| publish_queues(topic, &route).0)
            .unwrap_or_default();
        if queues.is_empty() {
            Err(no_route(topic))
        } else {
            Ok(queues)
        }
    }

    /// The offset after the queue's last message.
    pub(crate) fn max_offset(&self, mq: &MessageQueue) -> Result<i64> {
        let deadline = Deadline::after(TIMEOUT);
        let addr = self.master_of(mq, deadline)?;
        self.api().max_offset(QueueAt { addr: &addr, mq }, deadline)
    }

    /// The queue's smallest offset.
    pub(crate) fn min_offset(&self, mq: &MessageQueue) -> Result<i64> {
        let deadline = Deadline::after(TIMEOUT);
        let addr = self.master_of(mq, deadline)?;
        self.api().min_offset(QueueAt { addr: &addr, mq }, deadline)
    }

    /// When the queue's first message was stored, in milliseconds since 1970; -1 without a message.
    pub(crate) fn earliest_msg_store_time(&self, mq: &MessageQueue) -> Result<i64> {
        let deadline = Deadline::after(TIMEOUT);
        let addr = self.master_of(mq, deadline)?;
        self.api()
            .earliest_msg_store_time(QueueAt { addr: &addr, mq }, deadline)
    }

    pub(crate) fn search_offset(&self, mq: &MessageQueue, search: SearchFor) -> Result<i64> {
        let deadline = Deadline::after(TIMEOUT);
        let addr = self.master_of(mq, deadline)?;
        self.api()
            .search_offset(QueueAt { addr: &addr, mq }, search, deadline)
    }

    /// Asks all brokers of a topic side by side for what has a key (Java `MQAdminImpl#queryMessage`).
    /// One that does not answer is passed over, as long as another one has something.
    pub(crate) fn query_message(
        &self,
        header: &QueryMessageRequestHeader,
        unique: bool,
    ) -> Result<QueryResult> {
        let topic = header.topic.as_str();
        let addrs = self.addresses_of(topic, Deadline::after(TIMEOUT))?;
        let deadline = Deadline::after(QUERY_TIMEOUT);
        let (sender, answers) = channel::unbounded();
        for addr in &addrs {
            let sender = sender.clone();
            self.api()
                .query_message_async(addr, header, unique, deadline, move |answer| {
                    // Nobody listens any more once the time is up.
                    let _ = sender.send(answer);
                });
        }
        drop(sender);
        let mut result = QueryResult::default();
        let mut failure = None;
        while let Ok(answer) = answers.recv_deadline(deadline.instant()) {
            match answer {
                Ok(Some(found)) => {
                    let until = &mut result.index_last_update_timestamp;
                    *until = found.index_last_update_timestamp.max(*until);
                    result.messages.extend(found.messages);
                }
                Ok(None) => {}
                Err(error) => {
                    log::warn!("asking for key {:?} of {topic}: {error}", header.key);
                    failure = Some(error);
                }
            }
        }
        // Brokers find keys by their hash codes, so another key may be among them.
        result.messages.retain(|message| {
            if unique {
                message.msg_id() == header.key
            } else {
                let keys = message.keys().unwrap_or_default();
                keys.split(' ').any(|key| key == header.key)
            }
        });
        result
            .messages
            .dedup_by(|a, b| a.offset_msg_id() == b.offset_msg_id());
        if result.messages.is_empty() {
            return Err(Error::MQClient {
                code: Some(response_code::NO_MESSAGE),
                reason: format!("no message of topic {topic} has the key {:?}", header.key),
                source: failure.map(Box::new),
            });
        }
        Ok(result)
    }

    /// The message at a place in a broker's log, if the broker is one that is known.
    pub(crate) fn view_message(
        &self,
        topic: &str,
        id: OffsetMessageId,
    ) -> Option<Result<MessageExt>> {
        let addr = id.store_host.to_string();
        if !self.brokers().contains_address(&addr) {
            return None;
        }
        let deadline = Deadline::after(TIMEOUT);
        Some(
            self.api()
                .view_message(&addr, topic, id.commit_log_offset, deadline),
        )
    }

    /// One address for each broker of a topic: its master, or any other.
    fn addresses_of(&self, topic: &str, deadline: Deadline) -> Result<Vec<String>> {
        let known = self.routes().route(topic);
        if known.is_none() {
            self.update_topic_route_info(topic, RouteOf::Topic, deadline)?;
        }
        let route = self.routes().route(topic).ok_or_else(|| no_route(topic))?;
        let brokers = route.broker_datas.iter();
        let addrs = brokers.filter_map(|broker| {
            let addrs = &broker.broker_addrs;
            let addr = addrs.get(&MASTER_ID).or_else(|| addrs.values().next());
            addr.cloned()
        });
        Ok(addrs.collect())
    }

    fn master_of(&self, mq: &MessageQueue, deadline: Deadline) -> Result<Arc<str>> {
        let find = || {
            let brokers = self.brokers();
            brokers.find_broker_address_in_subscribe(
                &self.routes().broker_name(mq),
                MASTER_ID,
                OnlyThisBroker::Yes,
            )
        };
        if let Some(found) = find() {
            return Ok(found.broker_addr);
        }
        self.update_topic_route_info(mq.topic(), RouteOf::Topic, deadline)?;
        find().map(|found| found.broker_addr).ok_or_else(|| {
            Error::client(
                client_error_code::BROKER_NOT_EXIST_EXCEPTION,
                format!(
                    "broker {} of {mq} has no master in the route",
                    mq.broker_name()
                ),
            )
        })
    }
}

fn no_route(topic: &str) -> Error {
    Error::client(
        client_error_code::NOT_FOUND_TOPIC_EXCEPTION,
        format!("no queue of topic {topic} is known to the name server"),
    )
}
