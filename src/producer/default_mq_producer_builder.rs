use std::time::Duration;

use rocketmq_protocol::compression::CompressionType;

use super::check_forbidden_hook::CheckForbiddenHook;
use super::default_mq_producer::DefaultMQProducer;
use super::default_mq_producer_impl::DefaultMQProducerImpl;
use super::end_transaction_hook::EndTransactionHook;
use super::producer_config::ProducerConfig;
use super::producer_hooks::ProducerHooks;
use super::send_message_hook::SendMessageHook;
use super::send_outcome::RetryPolicy;
use super::trace_hooks::{EndTransactionTraceHookImpl, SendMessageTraceHookImpl};
use super::trace_producer::{TraceOf, trace_dispatcher};
use crate::client::MQClientManager;
use crate::client_config::{self, ClientConfig, client_config_setters};
use crate::error::{Error, Result};
use crate::latency::MQFaultStrategy;
use crate::sync::{Arc, Clock};
use crate::trace::{AsyncTraceDispatcher, trace_setters};

/// Sets up a [`DefaultMQProducer`]. Every setting has Java's default.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct DefaultMQProducerBuilder {
    client_config: ClientConfig,
    manager: MQClientManager,
    config: ProducerConfig,
}

impl DefaultMQProducerBuilder {
    pub(super) fn new(producer_group: String) -> Self {
        Self {
            client_config: ClientConfig::default(),
            manager: MQClientManager::global().clone(),
            config: ProducerConfig::of(producer_group),
        }
    }

    client_config_setters!();
    trace_setters!();

    /// Whether traces, if they are enabled, tell of messages that were taken back too. Default no; Java
    /// system property `com.rocketmq.recall.default.trace.enable`.
    pub fn enable_recall_trace(mut self, enable: bool) -> Self {
        self.config.trace.enable_recall_trace = enable;
        self
    }

    /// Of a client that needs one for itself.
    pub(super) fn with_client(mut self, config: ClientConfig, manager: &MQClientManager) -> Self {
        self.client_config = config;
        self.client_manager(manager)
    }

    fn hooks(&mut self) -> &mut ProducerHooks {
        Arc::make_mut(&mut self.config.hooks)
    }

    fn retry_policy(&mut self) -> &mut RetryPolicy {
        Arc::make_mut(&mut self.config.retry_policy)
    }

    /// The manager whose instances and threads the client uses. Default:
    /// [`MQClientManager::global`].
    pub fn client_manager(mut self, manager: &MQClientManager) -> Self {
        self.manager = manager.clone();
        self
    }

    /// Topics whose routes are fetched by the start, which takes up to
    /// [`send_msg_timeout`](Self::send_msg_timeout) for them: the first sends to them ask no name
    /// server, and their brokers know the producer before it has sent anything, and may ask it what
    /// became of transactions. A topic that is not found is a warning. Default none; Java `topics`.
    pub fn topics<T: Into<String>>(mut self, topics: impl IntoIterator<Item = T>) -> Self {
        self.config.topics = topics.into_iter().map(Into::into).collect();
        self
    }

    /// The time limit of a send, all attempts together. Default 3 s, at least 1 ms; Java
    /// `sendMsgTimeout`.
    pub fn send_msg_timeout(mut self, timeout: Duration) -> Self {
        self.config.send_msg_timeout = timeout;
        self
    }

    /// The time limit of one attempt, as long as another one is possible, so that a silent broker
    /// does not use up the whole time. Default: none, at least 1 ms; Java
    /// `sendMsgMaxTimeoutPerRequest`, where a negative number is none.
    pub fn send_msg_max_timeout_per_request(mut self, timeout: Duration) -> Self {
        self.retry_policy().send_msg_max_timeout_per_request = Some(timeout);
        self
    }

    /// How often a failed synchronous send is tried again on another broker, while there is time.
    /// Default 2, so three attempts in all; any number is right, and 0 is one attempt; Java
    /// `retryTimesWhenSendFailed`.
    pub fn retry_times_when_send_failed(mut self, times: u32) -> Self {
        self.config.retry_times_when_send_failed = times;
        self
    }

    /// How often a failed asynchronous send is tried again on another broker, while there is time.
    /// Default 2, so three attempts in all; any number is right, and 0 is one attempt; Java
    /// `retryTimesWhenSendAsyncFailed`.
    ///
    /// Here a broker's error is followed by another attempt as in a synchronous send; in Java it is
    /// not.
    pub fn retry_times_when_send_async_failed(mut self, times: u32) -> Self {
        self.config.retry_times_when_send_async_failed = times;
        self
    }

    /// Whether an asynchronous send waits for room when too many messages or bytes are under way,
    /// until its own timeout. Default no; Java `enableBackpressureForAsyncMode`. It can be switched at
    /// any time:
    /// [`set_enable_backpressure_for_async_mode`](DefaultMQProducer::set_enable_backpressure_for_async_mode).
    ///
    /// The room is free again once the outcome is there. A callback that waits for a thread, because
    /// all are in callbacks that take long, takes none; in Java it does, and callbacks that send may
    /// wait for each other there.
    pub fn enable_backpressure_for_async_mode(mut self, enable: bool) -> Self {
        self.config.enable_backpressure_for_async_mode = enable;
        self
    }

    /// The most asynchronous sends under way, if they wait for room. Default 1024, at least 10; Java
    /// `backPressureForAsyncSendNum`. It can be changed at any time:
    /// [`set_back_pressure_for_async_send_num`](DefaultMQProducer::set_back_pressure_for_async_send_num).
    pub fn back_pressure_for_async_send_num(mut self, count: usize) -> Self {
        self.config.back_pressure_for_async_send_num = count;
        self
    }

    /// The most bytes of bodies under way in asynchronous sends, if they wait for room; a larger
    /// message goes alone. Default 100 MiB, at least 1 MiB; Java `backPressureForAsyncSendSize`. It
    /// can be changed at any time:
    /// [`set_back_pressure_for_async_send_size`](DefaultMQProducer::set_back_pressure_for_async_send_size).
    pub fn back_pressure_for_async_send_size(mut self, bytes: usize) -> Self {
        self.config.back_pressure_for_async_send_size = bytes;
        self
    }

    /// Whether messages that are sent at about the same time, to one topic with one tag, are gathered
    /// into batches, by [`send`](DefaultMQProducer::send),
    /// [`send_to_queue`](DefaultMQProducer::send_to_queue),
    /// [`send_async`](DefaultMQProducer::send_async) and
    /// [`send_async_to_queue`](DefaultMQProducer::send_async_to_queue). Default no; Java `autoBatch`.
    ///
    /// Each of them then takes up to [`batch_max_delay`](Self::batch_max_delay) longer, and each
    /// message has a result of its own. A delayed message, one of a retry topic and one that is
    /// larger than a batch goes by itself; the forms with a timeout, a selector or several messages
    /// gather nothing. Gathered messages are not compressed, and tried again together.
    pub fn auto_batch(mut self, enable: bool) -> Self {
        self.config.auto_batch.auto_batch = enable;
        self
    }

    /// How long a batch waits for further messages after its first one. Default 10 ms, 1 ms to 30 s;
    /// Java `batchMaxDelayMs`.
    pub fn batch_max_delay(mut self, delay: Duration) -> Self {
        self.config.auto_batch.batch_max_delay = delay;
        self
    }

    /// The largest batch that is gathered, encoded. Default 32 KiB, 1 byte to 2 MiB; Java
    /// `batchMaxBytes`, which counts bodies and is exceeded by the last one.
    pub fn batch_max_bytes(mut self, bytes: usize) -> Self {
        self.config.auto_batch.batch_max_bytes = bytes;
        self
    }

    /// How many bytes may be gathered and under way in batches before messages go by themselves.
    /// Default 32 MiB, at least 1 byte; Java `totalBatchMaxBytes`.
    pub fn total_batch_max_bytes(mut self, bytes: usize) -> Self {
        self.config.auto_batch.total_batch_max_bytes = bytes;
        self
    }

    /// Whether brokers are avoided for a while after a slow or a failed send. Default no; Java
    /// `sendLatencyFaultEnable`. It can be switched at any time:
    /// [`set_send_latency_fault_enable`](DefaultMQProducer::set_send_latency_fault_enable).
    ///
    /// A failed send counts as one of 10 s. With it on or off, a send that is tried again goes to a
    /// broker that was not tried for it yet, while there is one.
    pub fn send_latency_fault_enable(mut self, enable: bool) -> Self {
        self.config.latency.send_latency_fault_enable = enable;
        self
    }

    /// From which latencies on a broker is avoided, at least one, ascending; the other column of the table is
    /// [`not_available_duration`](Self::not_available_duration), of the same length. Default 50, 100,
    /// 550, 1800, 3000, 5000 and 15000 ms; Java `latencyMax`.
    pub fn latency_max(mut self, latencies: impl Into<Vec<Duration>>) -> Self {
        self.config.latency.latency_max = latencies.into();
        self
    }

    /// For how long a broker is avoided after each of the latencies, at most a day. Default 0, 0,
    /// 2000, 5000, 6000, 10000 and 30000 ms; Java `notAvailableDuration`.
    pub fn not_available_duration(mut self, durations: impl Into<Vec<Duration>>) -> Self {
        self.config.latency.not_available_duration = durations.into();
        self
    }

    /// Whether brokers of which something is remembered are probed every 3 s, by a thread of its own.
    /// When all brokers are to be left alone for a while, those that a send did not reach, and no
    /// probe since, then come last; without the detector all count as reachable. Default no; Java
    /// `startDetectorEnable`. It can be switched at any time:
    /// [`set_start_detector_enable`](DefaultMQProducer::set_start_detector_enable).
    pub fn start_detector_enable(mut self, enable: bool) -> Self {
        self.config.latency.start_detector_enable = enable;
        self
    }

    /// The least time between two probes of a broker. Default 2 s, 1 ms to 1 h; Java
    /// `detectInterval`.
    pub fn detect_interval(mut self, interval: Duration) -> Self {
        self.config.latency.detect_interval = interval;
        self
    }

    /// How long a probe waits for the answer. Default 200 ms, 1 ms to 1 h; Java `detectTimeout`.
    pub fn detect_timeout(mut self, timeout: Duration) -> Self {
        self.config.latency.detect_timeout = timeout;
        self
    }

    /// Whether a message that is stored, but not as safely as configured, is sent to another broker
    /// as well. Default no; Java `retryAnotherBrokerWhenNotStoreOK`.
    pub fn retry_another_broker_when_not_store_ok(mut self, retry: bool) -> Self {
        self.retry_policy().retry_another_broker_when_not_store_ok = retry;
        self
    }

    /// The response codes after which another broker is tried. Default 1, 2, 14, 16, 17, 204, 205
    /// and 1500; none at all is right; Java `retryResponseCodes`.
    pub fn retry_response_codes(mut self, codes: impl IntoIterator<Item = i32>) -> Self {
        self.retry_policy().retry_response_codes = codes.into_iter().collect();
        self
    }

    /// Bodies of at least so many bytes are compressed, unless they go in a batch. Default 4096
    /// bytes, any number is right: 0 compresses all, [`usize::MAX`] none; Java
    /// `compressMsgBodyOverHowmuch`.
    pub fn compress_msg_body_over_howmuch(mut self, bytes: usize) -> Self {
        self.config.send.compress_msg_body_over_howmuch = bytes;
        self
    }

    /// How bodies are compressed. Consumers of this library and of Java 4.9.4 and later read all kinds;
    /// older ones read zlib only. Default [`Zlib`](CompressionType::Zlib); Java `compressType`, set
    /// for a whole process by the property `rocketmq.message.compressType`.
    pub fn compress_type(mut self, kind: CompressionType) -> Self {
        self.config.send.compress_type = kind;
        self
    }

    /// How hard bodies are compressed: more is smaller and slower. Default 5; 0 to 9 for zlib, 1 to
    /// 22 for Zstandard, and without a meaning for LZ4, as in Java; Java `compressLevel`, set for a
    /// whole process by the property `rocketmq.message.compressLevel`.
    pub fn compress_level(mut self, level: i32) -> Self {
        self.config.send.compress_level = level;
        self
    }

    /// The largest body, in bytes, before compression. Default 4 MiB, at least 1 byte; brokers have a
    /// limit of their own, 4 MiB unless set otherwise; Java `maxMessageSize`.
    pub fn max_message_size(mut self, bytes: usize) -> Self {
        self.config.send.max_message_size = bytes;
        self
    }

    /// The most queues per broker that a topic gets when it is created by the first send to it.
    /// Default 4, at least 1; Java `defaultTopicQueueNums`.
    pub fn default_topic_queue_nums(mut self, queues: i32) -> Self {
        self.config.send.default_topic_queue_nums = queues;
        self
    }

    /// The topic whose settings a topic takes that is created by the first send to it. Default
    /// TBW102, any name of a topic; Java `createTopicKey`.
    pub fn create_topic_key(mut self, topic: impl Into<String>) -> Self {
        self.config.send.create_topic_key = topic.into();
        self
    }

    /// Adds what is called around each send, after those that were given before. Default: nothing;
    /// Java `DefaultMQProducerImpl#registerSendMessageHook`.
    pub fn send_message_hook(mut self, hook: impl SendMessageHook) -> Self {
        self.hooks().send_message.push(Arc::new(hook));
        self
    }

    /// Adds what is asked whether a message may be sent, after those that were given before.
    /// Default: nothing; Java `DefaultMQProducerImpl#registerCheckForbiddenHook`.
    pub fn check_forbidden_hook(mut self, hook: impl CheckForbiddenHook) -> Self {
        self.hooks().check_forbidden.push(Arc::new(hook));
        self
    }

    /// Adds what is called when a transaction ends, after those that were given before; only a
    /// [producer of transactions](Self::transaction_listener) calls it. Default: nothing; Java
    /// `DefaultMQProducerImpl#registerEndTransactionHook`.
    pub fn end_transaction_hook(mut self, hook: impl EndTransactionHook) -> Self {
        self.hooks().end_transaction.push(Arc::new(hook));
        self
    }

    /// Checks all settings and makes the producer, which is then to be started.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::Error::InvalidConfig) with every setting that is wrong.
    pub fn build(self) -> Result<DefaultMQProducer> {
        self.build_impl().map(DefaultMQProducer::of)
    }

    pub(super) fn build_impl(mut self) -> Result<DefaultMQProducerImpl> {
        let mut problems = Vec::new();
        self.client_config.validate(&mut problems);
        self.config.send.unit_mode = self.client_config.unit_mode;
        self.config
            .send
            .move_into(self.client_config.namespace.clone());
        self.config.validate(&mut problems);
        let strategy = MQFaultStrategy::new(&self.config.latency, Clock::Real);
        if let Err(wrong) = &strategy {
            problems.extend_from_slice(wrong);
        }
        client_config::reject(problems)?;
        let strategy = strategy.map_err(|problems| Error::InvalidConfig { problems })?;
        let trace = self.trace_dispatcher()?;
        Ok(DefaultMQProducerImpl::new(
            self.config,
            self.client_config,
            self.manager,
            strategy,
            trace,
        ))
    }

    /// Adds the hooks that tell of messages, behind those of the user, if that is wanted.
    fn trace_dispatcher(&mut self) -> Result<Option<Arc<AsyncTraceDispatcher>>> {
        if !self.config.trace.enable_trace {
            return Ok(None);
        }
        let trace = trace_dispatcher(
            TraceOf::Produce,
            &self.config.send.producer_group,
            &self.config.trace,
            &self.client_config,
            &self.manager,
        )?;
        let hooks = self.hooks();
        let sends = SendMessageTraceHookImpl(Arc::clone(&trace));
        hooks.send_message.push(Arc::new(sends));
        let ends = EndTransactionTraceHookImpl(Arc::clone(&trace));
        hooks.end_transaction.push(Arc::new(ends));
        Ok(Some(trace))
    }
}
