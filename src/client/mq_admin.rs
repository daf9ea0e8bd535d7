//! Questions about topics and queues (Java `MQAdminImpl`).

use std::time::Duration;

use rocketmq_protocol::MessageQueue;
use rocketmq_protocol::body::{MASTER_ID, Permission};
use rocketmq_protocol::header::CreateTopicRequestHeader;

use super::static_topic::publish_queues;
use super::{MQClientInstance, OnlyThisBroker, QueueAt, RouteOf};
use crate::error::{Error, Result, client_error_code};
use crate::sync::{Arc, Deadline};

/// Java `MQAdminImpl#timeoutMillis`.
const TIMEOUT: Duration = Duration::from_secs(6);
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
