//! The settings of a push consumer.

use std::collections::BTreeMap;
use std::time::Duration;

use rocketmq_protocol::body::ConsumeFromWhere;
use rocketmq_protocol::{SubscriptionData, mix_all, validators};

use super::consumer_hooks::ConsumerHooks;
use crate::client_config::Namespace;
use crate::rebalance::{AllocateMessageQueueAveragely, AllocateMessageQueueStrategy};
use crate::sync::{Arc, system_time_millis};
use crate::trace::TraceConfig;

const HALF_AN_HOUR_MILLIS: i64 = 30 * 60 * 1000;
/// A queue that is not pulled for 120 s counts as one whose pull loop is lost.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
const LONGEST_PULL_INTERVAL: Duration = Duration::from_millis(65_535);

/// Settings of a push consumer; never written after `build`.
pub(super) struct PushConsumerConfig {
    /// The group, and below the topics, as brokers know them, namespace included.
    pub(super) consumer_group: String,
    pub(super) namespace: Namespace,
    pub(super) unit_mode: bool,
    pub(super) consume_from_where: ConsumeFromWhere,
    /// Milliseconds since 1970.
    pub(super) consume_timestamp: i64,
    pub(super) strategy: Arc<dyn AllocateMessageQueueStrategy>,
    /// Those of the builder; the consumer keeps them in a table of its own.
    pub(super) subscriptions: BTreeMap<String, SubscriptionData>,
    pub(super) consume_threads: usize,
    pub(super) consume_message_batch_max_size: usize,
    pub(super) consume_concurrently_max_span: u64,
    pub(super) pull_threshold_for_queue: u64,
    pub(super) pull_threshold_size_for_queue: u64,
    pub(super) pull_threshold_for_topic: Option<u64>,
    pub(super) pull_threshold_size_for_topic: Option<u64>,
    pub(super) max_retained_bytes: Option<u64>,
    pub(super) pull_interval: Duration,
    pub(super) pull_batch_size: i32,
    pub(super) pull_batch_size_in_bytes: i32,
    pub(super) pull_time_delay_when_exception: Duration,
    pub(super) max_reconsume_times: Option<i32>,
    pub(super) hand_over_grace: Duration,
    pub(super) confirm_shrink: bool,
    pub(super) consume_timeout: Duration,
    pub(super) hooks: ConsumerHooks,
    pub(super) trace: TraceConfig,
}

impl PushConsumerConfig {
    pub(super) fn of(consumer_group: String) -> Self {
        Self {
            consumer_group,
            namespace: Namespace::default(),
            unit_mode: false,
            consume_from_where: ConsumeFromWhere::ConsumeFromLastOffset,
            consume_timestamp: system_time_millis() - HALF_AN_HOUR_MILLIS,
            strategy: Arc::new(AllocateMessageQueueAveragely),
            subscriptions: BTreeMap::new(),
            consume_threads: 20,
            consume_message_batch_max_size: 1,
            consume_concurrently_max_span: 2000,
            pull_threshold_for_queue: 1000,
            pull_threshold_size_for_queue: 100,
            pull_threshold_for_topic: None,
            pull_threshold_size_for_topic: None,
            max_retained_bytes: None,
            pull_interval: Duration::ZERO,
            pull_batch_size: 32,
            pull_batch_size_in_bytes: 256 * 1024,
            pull_time_delay_when_exception: Duration::from_secs(1),
            max_reconsume_times: None,
            hand_over_grace: Duration::from_millis(80),
            confirm_shrink: false,
            consume_timeout: Duration::from_secs(15 * 60),
            hooks: ConsumerHooks::default(),
            trace: TraceConfig::default(),
        }
    }

    /// Gives group and topics the names by which brokers know them.
    pub(super) fn move_into(&mut self, namespace: Namespace) {
        self.consumer_group = namespace.wrap(&self.consumer_group).into_owned();
        for (topic, mut subscription) in std::mem::take(&mut self.subscriptions) {
            let topic = namespace.wrap(&topic).into_owned();
            subscription.topic.clone_from(&topic);
            self.subscriptions.insert(topic, subscription);
        }
        self.namespace = namespace;
    }

    pub(super) fn validate(&self, problems: &mut Vec<String>) {
        self.trace.validate(problems);
        if let Err(error) = validators::check_group(&self.consumer_group) {
            problems.push(format!("consumer group {:?}: {error}", self.consumer_group));
        }
        if self.consumer_group == "DEFAULT_CONSUMER" {
            problems.push("consumer group DEFAULT_CONSUMER is reserved".to_owned());
        }
        if self.subscriptions.is_empty() {
            problems.push("no topic is subscribed".to_owned());
        }
        let retry_topic = mix_all::retry_topic(&self.consumer_group);
        for topic in self.subscriptions.keys() {
            if *topic == retry_topic {
                problems.push(format!(
                    "topic {topic:?}: it is the group's own retry topic"
                ));
            } else if let (Some(namespace), Err(error)) =
                (self.namespace.name(), validators::check_topic(topic))
            {
                problems.push(format!(
                    "topic {topic:?}, in namespace {namespace}: {error}"
                ));
            }
        }
        if self.consume_timeout < Duration::from_millis(1) {
            problems.push(format!(
                "consume_timeout is {:?}, the least is 1 ms",
                self.consume_timeout
            ));
        }
        for (name, time, least, most) in [
            (
                "pull_time_delay_when_exception",
                self.pull_time_delay_when_exception,
                Duration::from_millis(1),
                LONGEST_PAUSE,
            ),
            (
                "hand_over_grace",
                self.hand_over_grace,
                Duration::ZERO,
                LONGEST_PAUSE,
            ),
            (
                "pull_interval",
                self.pull_interval,
                Duration::ZERO,
                LONGEST_PULL_INTERVAL,
            ),
        ] {
            if !(least..=most).contains(&time) {
                problems.push(format!(
                    "{name} is {time:?}, the range is {least:?}..={most:?}"
                ));
            }
        }
        if self.consume_timestamp < 0 {
            problems.push(format!(
                "consume_timestamp is {}, the least is 0",
                self.consume_timestamp
            ));
        }
        if let Some(times) = self.max_reconsume_times.filter(|times| *times < 0) {
            problems.push(format!("max_reconsume_times is {times}, the least is 0"));
        }
        for (name, value, range) in [
            (
                "pull_threshold_for_topic",
                self.pull_threshold_for_topic,
                (1, 6_553_500),
            ),
            (
                "pull_threshold_size_for_topic",
                self.pull_threshold_size_for_topic,
                (1, 102_400),
            ),
            (
                "max_retained_bytes",
                self.max_retained_bytes,
                (1024 * 1024, u64::MAX.into()),
            ),
        ] {
            if let Some(value) = value {
                check_range((name, value.into(), range.0, range.1), problems);
            }
        }
        let ranges: [(&str, i128, i128, i128); 7] = [
            ("consume_threads", self.consume_threads as i128, 1, 1000),
            (
                "consume_message_batch_max_size",
                self.consume_message_batch_max_size as i128,
                1,
                1024,
            ),
            (
                "consume_concurrently_max_span",
                self.consume_concurrently_max_span.into(),
                1,
                65_535,
            ),
            (
                "pull_threshold_for_queue",
                self.pull_threshold_for_queue.into(),
                1,
                65_535,
            ),
            (
                "pull_threshold_size_for_queue",
                self.pull_threshold_size_for_queue.into(),
                1,
                1024,
            ),
            ("pull_batch_size", self.pull_batch_size.into(), 1, 1024),
            (
                "pull_batch_size_in_bytes",
                self.pull_batch_size_in_bytes.into(),
                1,
                8 * 1024 * 1024,
            ),
        ];
        for range in ranges {
            check_range(range, problems);
        }
    }
}

pub(super) fn check_range(
    (name, value, least, most): (&str, i128, i128, i128),
    problems: &mut Vec<String>,
) {
    if !(least..=most).contains(&value) {
        problems.push(format!("{name} is {value}, the range is {least}..={most}"));
    }
}
