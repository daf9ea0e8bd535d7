//! The settings of a producer.

use std::time::Duration;

use rocketmq_protocol::{response_code, validators};

use super::back_pressure_settings;
use super::produce_accumulator::AutoBatchConfig;
use super::producer_hooks::ProducerHooks;
use super::send_kernel::SendSettings;
use super::send_outcome::RetryPolicy;
use crate::latency::LatencyConfig;
use crate::sync::Arc;
use crate::trace::TraceConfig;

/// Settings of a producer; never written after `build`.
#[derive(Debug, Clone)]
pub(super) struct ProducerConfig {
    pub(super) send: SendSettings,
    /// As the user knows them, namespace not included.
    pub(super) topics: Vec<String>,
    pub(super) send_msg_timeout: Duration,
    pub(super) retry_times_when_send_failed: u32,
    pub(super) retry_times_when_send_async_failed: u32,
    pub(super) retry_policy: Arc<RetryPolicy>,
    pub(super) enable_backpressure_for_async_mode: bool,
    pub(super) back_pressure_for_async_send_num: usize,
    pub(super) back_pressure_for_async_send_size: usize,
    pub(super) auto_batch: AutoBatchConfig,
    pub(super) latency: LatencyConfig,
    pub(super) hooks: Arc<ProducerHooks>,
    pub(super) trace: TraceConfig,
}

/// Java `DefaultMQProducer#retryResponseCodes`.
const DEFAULT_RETRY_RESPONSE_CODES: [i32; 8] = [
    response_code::TOPIC_NOT_EXIST,
    response_code::SERVICE_NOT_AVAILABLE,
    response_code::SYSTEM_ERROR,
    response_code::SYSTEM_BUSY,
    response_code::NO_PERMISSION,
    response_code::NO_BUYER_ID,
    response_code::NOT_IN_CURRENT_UNIT,
    response_code::GO_AWAY,
];

impl ProducerConfig {
    pub(super) fn of(producer_group: String) -> Self {
        Self {
            send: SendSettings::of(producer_group),
            topics: Vec::new(),
            send_msg_timeout: Duration::from_secs(3),
            retry_times_when_send_failed: 2,
            retry_times_when_send_async_failed: 2,
            retry_policy: Arc::new(RetryPolicy {
                send_msg_max_timeout_per_request: None,
                retry_another_broker_when_not_store_ok: false,
                retry_response_codes: DEFAULT_RETRY_RESPONSE_CODES.into(),
            }),
            enable_backpressure_for_async_mode: false,
            back_pressure_for_async_send_num: 1024,
            back_pressure_for_async_send_size: 100 * 1024 * 1024,
            auto_batch: AutoBatchConfig::default(),
            latency: LatencyConfig::default(),
            hooks: Arc::default(),
            trace: TraceConfig::default(),
        }
    }

    /// Adds what is wrong to `problems`; what the latency settings allow is said by
    /// [`MQFaultStrategy::new`](crate::latency::MQFaultStrategy::new).
    pub(super) fn validate(&self, problems: &mut Vec<String>) {
        let send = &self.send;
        if let Err(error) = validators::check_group(&send.producer_group) {
            problems.push(format!("producer group {:?}: {error}", send.producer_group));
        }
        if send.producer_group == "DEFAULT_PRODUCER" {
            problems.push("producer group DEFAULT_PRODUCER is reserved".to_owned());
        }
        if let Err(error) = validators::check_topic(&send.create_topic_key) {
            problems.push(format!(
                "create_topic_key {:?}: {error}",
                send.create_topic_key
            ));
        }
        for topic in &self.topics {
            if let Err(error) = validators::check_topic(&send.namespace.wrap(topic)) {
                problems.push(format!("topics: {topic:?}: {error}"));
            }
        }
        for (name, timeout) in [
            ("send_msg_timeout", Some(self.send_msg_timeout)),
            (
                "send_msg_max_timeout_per_request",
                self.retry_policy.send_msg_max_timeout_per_request,
            ),
        ] {
            if let Some(timeout) = timeout.filter(|timeout| *timeout < Duration::from_millis(1)) {
                problems.push(format!("{name} is {timeout:?}, the least is 1 ms"));
            }
        }
        if send.default_topic_queue_nums < 1 {
            problems.push(format!(
                "default_topic_queue_nums is {}, the least is 1",
                send.default_topic_queue_nums
            ));
        }
        let (kind, level) = (send.compress_type, send.compress_level);
        if let Some(levels) = kind.levels().filter(|levels| !levels.contains(&level)) {
            problems.push(format!(
                "compress_level is {level}, the range is {levels:?} for {kind:?}"
            ));
        }
        if send.max_message_size == 0 {
            problems.push("max_message_size is 0, the least is 1".to_owned());
        }
        problems.extend(back_pressure_settings::problems(
            self.back_pressure_for_async_send_num,
            self.back_pressure_for_async_send_size,
        ));
        problems.extend(self.auto_batch.problems(send.max_message_size));
        self.trace.validate(problems);
    }
}
