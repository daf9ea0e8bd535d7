//! What administrators ask of a consumer, through its brokers.

use std::collections::BTreeMap;
use std::time::Duration;

use rocketmq_protocol::body::{
    CMResult, ConsumeMessageDirectlyResult, ConsumerRunningInfo, QueueMap,
};
use rocketmq_protocol::{MessageExt, MessageQueue};

use super::default_mq_push_consumer_impl::DefaultMQPushConsumerImpl;
use crate::sync::Arc;

/// How long a broker waits for what became of a message that it has had consumed.
const DIRECTLY_TIMEOUT: Duration = Duration::from_secs(10);

impl DefaultMQPushConsumerImpl {
    /// Java `DefaultMQPushConsumerImpl#consumerRunningInfo`. Settings have Java's names; rates are not
    /// kept, so there are none.
    pub(super) fn running_info(&self) -> ConsumerRunningInfo {
        let config = &self.config;
        let threads = self.consume_service.threads();
        let millis = |time: Duration| time.as_millis().to_string();
        let per_topic = |threshold: Option<u64>| {
            threshold.map_or_else(|| "-1".to_owned(), |threshold| threshold.to_string())
        };
        let name_servers = self.member.name_servers().iter();
        let properties = [
            ("consumerGroup", self.group().to_owned()),
            ("messageModel", "CLUSTERING".to_owned()),
            ("consumeTimestamp", config.consume_timestamp.to_string()),
            ("consumeThreadMin", threads.to_string()),
            ("consumeThreadMax", threads.to_string()),
            (
                "consumeMessageBatchMaxSize",
                config.consume_message_batch_max_size.to_string(),
            ),
            (
                "consumeConcurrentlyMaxSpan",
                config.consume_concurrently_max_span.to_string(),
            ),
            (
                "pullThresholdForQueue",
                config.pull_threshold_for_queue.to_string(),
            ),
            (
                "pullThresholdSizeForQueue",
                config.pull_threshold_size_for_queue.to_string(),
            ),
            (
                "pullThresholdForTopic",
                per_topic(config.pull_threshold_for_topic),
            ),
            (
                "pullThresholdSizeForTopic",
                per_topic(config.pull_threshold_size_for_topic),
            ),
            ("pullInterval", millis(config.pull_interval)),
            ("pullBatchSize", config.pull_batch_size.to_string()),
            (
                "pullBatchSizeInBytes",
                config.pull_batch_size_in_bytes.to_string(),
            ),
            (
                "pullTimeDelayMillsWhenException",
                millis(config.pull_time_delay_when_exception),
            ),
            (
                "maxReconsumeTimes",
                config.max_reconsume_times.unwrap_or(-1).to_string(),
            ),
            (
                "consumeTimeout",
                (config.consume_timeout.as_secs() / 60).to_string(),
            ),
            ("pause", self.is_suspended().to_string()),
            (
                ConsumerRunningInfo::PROP_NAMESERVER_ADDR,
                name_servers.map(|addr| format!("{addr};")).collect(),
            ),
            (
                ConsumerRunningInfo::PROP_THREADPOOL_CORE_SIZE,
                threads.to_string(),
            ),
            (
                ConsumerRunningInfo::PROP_CONSUME_ORDERLY,
                "false".to_owned(),
            ),
            (
                ConsumerRunningInfo::PROP_CONSUME_TYPE,
                "CONSUME_PASSIVELY".to_owned(),
            ),
            (
                ConsumerRunningInfo::PROP_CLIENT_VERSION,
                "V5_5_0".to_owned(),
            ),
            (
                ConsumerRunningInfo::PROP_CONSUMER_START_TIMESTAMP,
                self.started_at().to_string(),
            ),
        ];
        let queues = self.rebalance.process_queues().into_iter();
        let mq_table: QueueMap<_> = queues
            .map(|(mq, queue)| {
                let mut info = queue.info();
                info.commit_offset = self.offsets.read(&mq).unwrap_or(-1);
                (mq, info)
            })
            .collect();
        ConsumerRunningInfo {
            mq_table,
            properties: properties
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            subscription_set: self.subscriptions.told(),
            ..ConsumerRunningInfo::default()
        }
    }

    /// Java `ConsumeMessageConcurrentlyService#consumeMessageDirectly`. The listener is called on a
    /// thread of the consumer, and is not waited for longer than the broker waits.
    pub(super) fn consume_directly(
        self: &Arc<Self>,
        message: MessageExt,
    ) -> ConsumeMessageDirectlyResult {
        let (result, spent) =
            self.consume_service
                .consume_directly(self, message, DIRECTLY_TIMEOUT);
        let (consume_result, remark) = match result {
            Ok(result) => (result, None),
            Err(reason) => (CMResult::ThrowException, Some(reason)),
        };
        ConsumeMessageDirectlyResult {
            consume_result,
            remark,
            spent_time_mills: i64::try_from(spent.as_millis()).unwrap_or(i64::MAX),
            ..ConsumeMessageDirectlyResult::default()
        }
    }

    /// Java `MQClientInstance#resetOffset`. There the consumer is suspended for 10 s, so that the
    /// offsets of messages that the listener has do not overwrite the new ones; here a queue that is
    /// dropped saves none.
    pub(super) fn reset_offsets(self: &Arc<Self>, offsets: &BTreeMap<MessageQueue, i64>) {
        for (mq, queue) in self.rebalance.process_queues() {
            if let Some(offset) = offsets.get(&mq) {
                self.begin_anew(&mq, &queue, *offset);
            }
        }
    }

    /// How far the own queues of a topic are done.
    pub(super) fn status(&self, topic: &str) -> BTreeMap<MessageQueue, i64> {
        let offsets = self.offsets.snapshot().into_iter();
        offsets.filter(|(mq, _)| mq.topic() == topic).collect()
    }
}
