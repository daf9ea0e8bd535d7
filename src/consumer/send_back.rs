//! Gives messages that failed back to their brokers.

use std::time::Duration;

use rocketmq_protocol::header::ConsumerSendMsgBackRequestHeader;
use rocketmq_protocol::{Message, MessageExt, MessageQueue, mix_all, property};

use super::default_mq_push_consumer_impl::DefaultMQPushConsumerImpl;
use super::offset_store::broker_of;
use super::process_queue::{HandedOut, MessageInHands};
use crate::client::{MOCK_BROKER_PREFIX, MQClientInstance, RouteOf, TopicPublishInfo};
use crate::error::{Error, Result, client_error_code};
use crate::producer::send_kernel::{Prepared, SendSettings, send_kernel};
use crate::sync::Deadline;

/// Java's timeout of giving a message back.
pub(super) const SEND_BACK_TIMEOUT: Duration = Duration::from_secs(5);
/// How often it is tried to send a message to the retry topic (Java's inner producer has the defaults
/// of all producers).
const RETRY_TOPIC_ATTEMPTS: usize = 3;
/// How often a message is tried before it goes to the dead-letter queue, unless set otherwise.
const DEFAULT_MAX_RECONSUME_TIMES: i32 = 16;

impl DefaultMQPushConsumerImpl {
    /// Gives a message back to its broker for a later try. If the broker does not take it back, it is
    /// sent to the retry topic, at whichever broker takes it, with the delay that the broker would
    /// have chosen (Java `DefaultMQPushConsumerImpl#sendMessageBack`). One that was given back
    /// although the answer was lost is then delivered twice.
    pub(super) fn send_message_back(
        &self,
        message: &MessageExt,
        delay_level: i32,
        mq: &MessageQueue,
    ) -> Result<()> {
        let instance = self
            .member
            .running_or_ending_instance("giving a message back with")?;
        // The place of a static topic's message is one in the log of the broker that stored it,
        // which need not be the one that holds the queue now.
        if is_logical(mq) {
            self.send_message_back_as_normal_message(&instance, message)?;
        } else if let Err(error) = self.give_back(&instance, message, delay_level, mq) {
            log::warn!(
                "{mq}: message {} is sent to the retry topic, its broker does not take it back: \
                 {error}",
                message.msg_id()
            );
            self.send_message_back_as_normal_message(&instance, message)?;
        }
        self.find_retries(&instance);
        Ok(())
    }

    fn give_back(
        &self,
        instance: &MQClientInstance,
        message: &MessageExt,
        delay_level: i32,
        mq: &MessageQueue,
    ) -> Result<()> {
        let header = self.send_back_header(&message.in_hands(), delay_level, mq);
        let addr = broker_of(instance, mq)?;
        let deadline = Deadline::after(SEND_BACK_TIMEOUT);
        instance
            .api()
            .consumer_send_message_back(&addr, &header, deadline)
    }

    pub(super) fn send_back_header(
        &self,
        message: &MessageInHands,
        delay_level: i32,
        mq: &MessageQueue,
    ) -> ConsumerSendMsgBackRequestHeader {
        ConsumerSendMsgBackRequestHeader {
            offset: message.commit_log_offset,
            group: self.group().to_owned(),
            delay_level,
            origin_msg_id: Some(message.msg_id().into_owned()),
            origin_topic: Some(self.config.namespace.wrap(&message.topic).into_owned()),
            unit_mode: Some(false),
            max_reconsume_times: Some(
                self.config
                    .max_reconsume_times
                    .unwrap_or(DEFAULT_MAX_RECONSUME_TIMES),
            ),
            broker_name: Some(mq.broker_name().to_owned()).filter(|_| !is_logical(mq)),
        }
    }

    pub(super) fn find_retries(&self, instance: &MQClientInstance) {
        let retry_topic = mix_all::retry_topic(self.group());
        if self.rebalance.topic_queues(&retry_topic).is_none() {
            // Otherwise a new group would find its retries only with the next route refresh.
            instance.refresh_routes_soon();
        }
    }

    /// Sends a message to the retry topic (Java
    /// `DefaultMQPushConsumerImpl#sendMessageBackAsNormalMessage`).
    fn send_message_back_as_normal_message(
        &self,
        instance: &MQClientInstance,
        message: &MessageExt,
    ) -> Result<()> {
        let deadline = Deadline::after(SEND_BACK_TIMEOUT);
        let retry_topic = mix_all::retry_topic(self.group());
        if instance.routes().publish_queues(&retry_topic).is_empty() {
            instance.update_topic_route_info(&retry_topic, RouteOf::Topic, deadline)?;
        }
        let info = TopicPublishInfo::new(instance.routes().publish_queues(&retry_topic));
        let retry = self.retry_of(message, &retry_topic);
        let settings = SendSettings {
            namespace: self.config.namespace.clone(),
            unit_mode: self.config.unit_mode,
            default_topic_queue_nums: 1,
            max_message_size: usize::MAX,
            ..SendSettings::of(mix_all::CLIENT_INNER_PRODUCER_GROUP.to_owned())
        };
        let prepared = Prepared::new(&retry, &settings)?;
        // The broker that has the message has just failed, or is not the one to ask.
        let mut last_broker = message.broker_name().to_owned();
        let mut failure = Error::client(
            client_error_code::NOT_FOUND_TOPIC_EXCEPTION,
            format!("retry topic {retry_topic} has no queue that can be written"),
        );
        for _ in 0..RETRY_TOPIC_ATTEMPTS {
            let Some(mq) = info.select_one_message_queue(Some(&last_broker)) else {
                break;
            };
            match send_kernel(instance, &prepared, &mq, deadline) {
                Ok(_) => return Ok(()),
                Err(error) => failure = error,
            }
            if deadline.has_passed() {
                break;
            }
            mq.broker_name().clone_into(&mut last_broker);
        }
        Err(failure)
    }

    fn retry_of(&self, message: &MessageExt, retry_topic: &str) -> Message {
        let mut retry = Message::clone(message);
        let times = message.reconsume_times();
        let most = self
            .config
            .max_reconsume_times
            .unwrap_or(DEFAULT_MAX_RECONSUME_TIMES);
        let origin = message
            .property(property::ORIGIN_MESSAGE_ID)
            .unwrap_or_else(|| message.msg_id())
            .to_owned();
        let topic = self.config.namespace.wrap(message.topic()).into_owned();
        retry.set_topic(retry_topic);
        for (name, value) in [
            (property::ORIGIN_MESSAGE_ID, origin),
            (property::RETRY_TOPIC, topic),
            (
                property::RECONSUME_TIME,
                times.saturating_add(1).to_string(),
            ),
            (property::MAX_RECONSUME_TIMES, most.to_string()),
            (
                property::DELAY_TIME_LEVEL,
                times.saturating_add(3).to_string(),
            ),
        ] {
            retry.put_property(name, value);
        }
        retry.clear_property(property::TRANSACTION_PREPARED);
        retry
    }
}

/// Whether a queue is one of a static topic.
pub(super) fn is_logical(mq: &MessageQueue) -> bool {
    mq.broker_name().starts_with(MOCK_BROKER_PREFIX)
}
