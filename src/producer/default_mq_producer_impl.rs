//! Behind the producer's handle: what it has, its beginning and its end, and the sends it makes.

use std::time::Duration;

use rocketmq_protocol::{Message, MessageQueue};

use super::async_send::{AsyncSend, Callback, Destination, End, RunOn};
use super::attempts::{Attempts, Budget, no_queue, used_up};
use super::back_pressure::{BackPressure, Permit, Sends};
use super::broker_probe::BrokerProbe;
use super::in_flight::{Flight, InFlight};
use super::produce_accumulator::ProduceAccumulator;
use super::producer_config::ProducerConfig;
use super::send_kernel::{Prepared, SendSettings, check_properties};
use super::send_outcome::judge_oneway;
use super::send_result::SendResult;
use super::transaction_checks::TransactionChecks;
use crate::client::{
    Client, MQClientInstance, MQClientManager, MQProducerInner, Member, Role, RouteOf,
    ShutdownReport, TopicPublishInfo, TransactionCheck,
};
use crate::client_config::{ClientConfig, Namespace};
use crate::error::{Error, Result, client_error_code};
use crate::latency::{FaultDetector, MQFaultStrategy};
use crate::service::{ServiceHandle, ServiceState, SnapshotTable, Task, ThreadPool};
use crate::sync::{Arc, Deadline, Mutex, OnceCell, Weak, thread};
use crate::trace::AsyncTraceDispatcher;

#[derive(Debug)]
pub(super) struct DefaultMQProducerImpl {
    pub(super) config: ProducerConfig,
    member: Member,
    /// Topic → its queues; empty ones are waited for.
    pub(super) topic_publish_info_table: SnapshotTable<TopicPublishInfo>,
    fault_strategy: Arc<MQFaultStrategy>,
    /// There from the first time that the detector is on.
    pub(super) detector: Mutex<Option<ServiceHandle<FaultDetector<BrokerProbe>>>>,
    pub(super) in_flight: Arc<InFlight>,
    pub(super) back_pressure: Arc<BackPressure>,
    pub(super) accumulator: Option<ProduceAccumulator>,
    /// Goes on with asynchronous sends that have to wait for a route.
    pub(super) async_sender_executor: ThreadPool,
    /// Runs the user's callbacks, which may block: nothing else waits for its threads.
    pub(super) callback_executor: ThreadPool,
    /// There if traces are enabled.
    trace: Option<Arc<AsyncTraceDispatcher>>,
    /// There in a producer of transactions.
    pub(super) transaction_checks: OnceCell<TransactionChecks>,
}

impl DefaultMQProducerImpl {
    pub(super) fn new(
        config: ProducerConfig,
        client_config: ClientConfig,
        manager: MQClientManager,
        fault_strategy: MQFaultStrategy,
        trace: Option<Arc<AsyncTraceDispatcher>>,
    ) -> Self {
        let threads = client_config.client_callback_executor_threads;
        let back_pressure = BackPressure::new(
            config.enable_backpressure_for_async_mode,
            Sends {
                count: config.back_pressure_for_async_send_num,
                bytes: config.back_pressure_for_async_send_size,
            },
        );
        let group = config.send.producer_group.clone();
        Self {
            member: Member::new(Role::Producer, group, client_config, manager),
            fault_strategy: Arc::new(fault_strategy),
            detector: Mutex::new(None),
            in_flight: Arc::new(InFlight::default()),
            back_pressure,
            accumulator: (config.auto_batch.auto_batch)
                .then(|| ProduceAccumulator::new(config.auto_batch.clone())),
            async_sender_executor: ThreadPool::new("AsyncSenderExecutor", thread::processors()),
            callback_executor: ThreadPool::new("SendCallbackExecutor", threads),
            trace,
            config,
            topic_publish_info_table: SnapshotTable::new(),
            transaction_checks: OnceCell::new(),
        }
    }

    pub(super) fn start(self: &Arc<Self>) -> Result<()> {
        let weak: Weak<Self> = Arc::downgrade(self);
        let instance = self.member.start(|instance| {
            instance.register_producer(self.member.group(), weak);
        })?;
        self.init_topic_route(&instance);
        instance.heartbeat_soon();
        if self.fault_strategy.is_start_detector_enable() {
            // It sends as well without: the detector shortens a wait, no more.
            if let Err(error) = self.start_detector() {
                log::warn!("{error}");
            }
        }
        if let Some(Err(error)) = self.trace.as_ref().map(|trace| trace.start()) {
            log::warn!("producer {} is not traced: {error}", self.member.group());
        }
        Ok(())
    }

    /// Fetches the routes of the topics that the user has named, so that their brokers hear of this
    /// producer before it sends.
    fn init_topic_route(&self, instance: &MQClientInstance) {
        let deadline = Deadline::after(self.config.send_msg_timeout);
        for topic in &self.config.topics {
            let topic = self.config.send.namespace.wrap(topic);
            if let Err(error) = self.try_to_find_topic_publish_info(instance, &topic, deadline) {
                log::warn!("the route of topic {topic}, named for the start: {error}");
            }
        }
    }

    /// What is told of messages that are taken back, if that is wanted.
    pub(super) fn recall_trace(&self) -> Option<&AsyncTraceDispatcher> {
        let trace = self.trace.as_deref();
        trace.filter(|_| self.config.trace.enable_recall_trace)
    }

    /// How many traces were thrown away.
    pub(super) fn trace_discard_count(&self) -> u64 {
        self.trace.as_ref().map_or(0, |trace| trace.discard_count())
    }

    /// Runs what the producer's own pools do not take any more: this may be the event loop, and users'
    /// callbacks may block.
    pub(super) fn run_after_end(&self, task: Task) {
        match self.running_or_ending_instance("ending a send of") {
            Ok(instance) => instance.execute_callback(task),
            Err(_) => task(),
        }
    }

    pub(super) fn instance(&self) -> Result<Arc<MQClientInstance>> {
        self.member.running_instance("using")
    }

    /// The instance as long as there is one.
    pub(super) fn running_or_ending_instance(
        &self,
        operation: &str,
    ) -> Result<Arc<MQClientInstance>> {
        self.member.running_or_ending_instance(operation)
    }

    pub(super) fn fault_strategy(&self) -> &Arc<MQFaultStrategy> {
        &self.fault_strategy
    }

    /// The attempts of a send that may go to any queue.
    pub(super) fn attempts(
        &self,
        topic: &str,
        info: Arc<TopicPublishInfo>,
        budget: Budget,
    ) -> Attempts {
        let policy = &self.config.retry_policy;
        Attempts::new(topic, info, &self.fault_strategy, policy, budget)
    }

    /// Java `DefaultMQProducerImpl#sendDefaultImpl`, the synchronous form.
    pub(super) fn send(&self, what: &Outgoing<'_>, timeout: Duration) -> Result<SendResult> {
        let budget = Budget::new(self.config.retry_times_when_send_failed, timeout);
        let instance = self.instance()?;
        let prepared = what.prepare(&self.config.send)?;
        let topic = prepared.topic();
        let info = self.try_to_find_topic_publish_info(&instance, topic, budget.deadline)?;
        self.attempts(topic, info, budget)
            .run(|attempt| self.send_kernel(&instance, &prepared, &attempt.mq, attempt.deadline))
    }

    /// Sends to a given queue: once, and nothing is remembered of its broker (as in Java).
    pub(super) fn send_to_queue(
        &self,
        what: &Outgoing<'_>,
        mq: &MessageQueue,
        timeout: Duration,
    ) -> Result<SendResult> {
        let deadline = Deadline::after(timeout);
        let instance = self.instance()?;
        let prepared = what.prepare(&self.config.send)?;
        let mq = self.queue_of(what.topic(), mq)?;
        self.send_kernel(&instance, &prepared, &mq, deadline)
    }

    /// Java `DefaultMQProducerImpl#sendSelectImpl`.
    pub(super) fn send_selected(
        &self,
        message: &Message,
        select: impl FnOnce(&[MessageQueue]) -> Option<MessageQueue>,
        timeout: Duration,
    ) -> Result<SendResult> {
        let deadline = Deadline::after(timeout);
        let instance = self.instance()?;
        let prepared = Outgoing::One(message).prepare(&self.config.send)?;
        let mq = self.selected(&instance, &prepared, message.topic(), select, deadline)?;
        if deadline.has_passed() {
            return Err(used_up(prepared.topic(), timeout));
        }
        self.send_kernel(&instance, &prepared, &mq, deadline)
    }

    fn selected(
        &self,
        instance: &MQClientInstance,
        prepared: &Prepared,
        topic: &str,
        select: impl FnOnce(&[MessageQueue]) -> Option<MessageQueue>,
        deadline: Deadline,
    ) -> Result<MessageQueue> {
        let info = self.try_to_find_topic_publish_info(instance, prepared.topic(), deadline)?;
        let mq = select_of(&info, &self.config.send.namespace, topic, select)?;
        self.queue_of(topic, &mq)
    }

    /// Sends without an answer: `Ok` means that it was handed to the network.
    pub(super) fn send_oneway(&self, message: &Message) -> Result<()> {
        let timeout = self.config.send_msg_timeout;
        let deadline = Deadline::after(timeout);
        let instance = self.instance()?;
        let prepared = Outgoing::One(message).prepare(&self.config.send)?;
        let topic = prepared.topic();
        let info = self.try_to_find_topic_publish_info(&instance, topic, deadline)?;
        let strategy = &self.fault_strategy;
        let mq = strategy
            .select_one_message_queue(&info, None, false)
            .ok_or_else(|| no_queue(topic))?;
        let began = strategy.now();
        let outcome = self.send_kernel_oneway(&instance, &prepared, &mq, deadline);
        let took = strategy.now().saturating_duration_since(began);
        let update = judge_oneway(
            &outcome,
            strategy.is_start_detector_enable(),
            &self.config.retry_policy,
        );
        strategy.update_fault_item(mq.broker_name(), took, update);
        outcome
    }

    pub(super) fn send_oneway_to_queue(&self, message: &Message, mq: &MessageQueue) -> Result<()> {
        let deadline = Deadline::after(self.config.send_msg_timeout);
        let instance = self.instance()?;
        let prepared = Outgoing::One(message).prepare(&self.config.send)?;
        let mq = self.queue_of(message.topic(), mq)?;
        self.send_kernel_oneway(&instance, &prepared, &mq, deadline)
    }

    pub(super) fn send_oneway_selected(
        &self,
        message: &Message,
        select: impl FnOnce(&[MessageQueue]) -> Option<MessageQueue>,
    ) -> Result<()> {
        let deadline = Deadline::after(self.config.send_msg_timeout);
        let instance = self.instance()?;
        let prepared = Outgoing::One(message).prepare(&self.config.send)?;
        let mq = self.selected(&instance, &prepared, message.topic(), select, deadline)?;
        self.send_kernel_oneway(&instance, &prepared, &mq, deadline)
    }

    /// What an asynchronous send needs before it begins: it is then begun with a callback, and held up
    /// by nothing. When it fails here nobody was told of anything.
    pub(super) fn send_async(
        self: &Arc<Self>,
        what: &Outgoing<'_>,
        destination: Destination,
        timeout: Duration,
    ) -> Result<(AsyncSend, Held)> {
        let budget = Budget::new(self.config.retry_times_when_send_async_failed, timeout);
        let flight = self.in_flight.begin();
        // After the count: a shutdown from here on waits for this send.
        let instance = self.instance()?;
        let prepared = Arc::new(what.prepare(&self.config.send)?);
        let destination = match destination {
            Destination::Queue(mq) => Destination::Queue(self.queue_of(what.topic(), &mq)?),
            other => other,
        };
        let permit = self.wait_for_room(what, &budget)?;
        let send = AsyncSend {
            producer: Arc::clone(self),
            instance,
            prepared,
            destination,
            budget,
        };
        Ok((send, Held { permit, flight }))
    }

    pub(super) fn wait_for_room(
        &self,
        what: &Outgoing<'_>,
        budget: &Budget,
    ) -> Result<Option<Permit>> {
        if !self.back_pressure.is_enabled() {
            return Ok(None);
        }
        let room = self
            .back_pressure
            .acquire(what.body_length(), budget.deadline);
        room.map(Some).ok_or_else(|| Error::RemotingTooMuchRequest {
            reason: format!(
                "sending to topic {}: too many messages or bytes were under way for {} ms",
                what.topic(),
                budget.timeout.as_millis()
            ),
        })
    }

    /// A queue as brokers know it, of the topic that a message is for.
    pub(super) fn queue_of(&self, topic: &str, mq: &MessageQueue) -> Result<MessageQueue> {
        if mq.topic() != topic {
            return Err(Error::InvalidMessage {
                topic: topic.to_owned(),
                reason: format!("the queue {mq} is of another topic"),
            });
        }
        Ok(self.config.send.namespace.wrap_queue(mq))
    }

    pub(super) fn try_to_find_topic_publish_info(
        &self,
        instance: &MQClientInstance,
        topic: &str,
        deadline: Deadline,
    ) -> Result<Arc<TopicPublishInfo>> {
        if let Some(info) = self.topic_publish_info(topic) {
            return Ok(info);
        }
        self.topic_publish_info_table
            .ensure(topic, TopicPublishInfo::unknown);
        let default_topic = RouteOf::DefaultTopic {
            queue_nums: self.config.send.default_topic_queue_nums,
        };
        let mut failure = None;
        for which in [RouteOf::Topic, default_topic] {
            match instance.update_topic_route_info(topic, which, deadline) {
                Ok(_) => {}
                Err(error) => failure = Some(error),
            }
            if let Some(info) = self.topic_publish_info(topic) {
                return Ok(info);
            }
            if failure.is_some() {
                break;
            }
        }
        let reason = match failure {
            Some(
                none @ Error::MQClient {
                    code: Some(client_error_code::NO_NAME_SERVER_EXCEPTION),
                    source: None,
                    ..
                },
            ) => {
                // There is no server to ask, and nothing is wrong with the topic (as in Java).
                return Err(none);
            }
            Some(_) => format!("the route of topic {topic} cannot be asked for"),
            None => format!(
                "no route for topic {topic}: create it, or let brokers create topics \
                 (autoCreateTopicEnable)"
            ),
        };
        Err(Error::MQClient {
            code: Some(client_error_code::NOT_FOUND_TOPIC_EXCEPTION),
            reason,
            source: failure.map(Box::new),
        })
    }

    pub(super) fn topic_publish_info(&self, topic: &str) -> Option<Arc<TopicPublishInfo>> {
        self.topic_publish_info_table
            .get(topic)
            .filter(|info| info.ok())
    }
}

/// What an asynchronous send holds until its callback.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) permit: Option<Permit>,
    pub(super) flight: Flight,
}

impl Held {
    /// The end of the send, until which it is held.
    pub(super) fn until(self, producer: &Arc<DefaultMQProducerImpl>, callback: Callback) -> End {
        End::new(
            producer,
            callback,
            RunOn::Pool,
            self.permit,
            Some(self.flight),
        )
    }
}

/// What is sent in one request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Outgoing<'a> {
    One(&'a Message),
    Batch(&'a [Message]),
}

impl Outgoing<'_> {
    fn prepare(&self, settings: &SendSettings) -> Result<Prepared> {
        match self {
            Self::One(message) => {
                check_properties(message)?;
                Prepared::new(message, settings)
            }
            Self::Batch(messages) => {
                for message in *messages {
                    check_properties(message)?;
                }
                Prepared::batch(messages, settings)
            }
        }
    }

    fn topic(&self) -> &str {
        match self {
            Self::One(message) => message.topic(),
            Self::Batch(messages) => messages.first().map_or("", Message::topic),
        }
    }

    fn body_length(&self) -> usize {
        match self {
            Self::One(message) => message.body().len(),
            Self::Batch(messages) => messages.iter().map(|message| message.body().len()).sum(),
        }
    }
}

/// Has a queue chosen of those that the user knows by their plain names.
pub(super) fn select_of(
    info: &TopicPublishInfo,
    namespace: &Namespace,
    topic: &str,
    select: impl FnOnce(&[MessageQueue]) -> Option<MessageQueue>,
) -> Result<MessageQueue> {
    let queues: Vec<MessageQueue> = info
        .queues()
        .iter()
        .map(|mq| namespace.unwrap_queue(mq))
        .collect();
    select(&queues).ok_or_else(|| Error::MQClient {
        code: None,
        reason: format!("the selector has chosen no queue of topic {topic}"),
        source: None,
    })
}

impl Client for DefaultMQProducerImpl {
    fn member(&self) -> &Member {
        &self.member
    }

    /// Sends what is gathered, waits for the asynchronous sends under way, leaves the group, then the
    /// instance. What is under way still ends by its own deadline, with its callback.
    fn end(&self, before: ServiceState, deadline: Deadline) -> ShutdownReport {
        let told = self.in_flight.told();
        for (key, batch) in self.accumulator.iter().flat_map(|a| a.take_all()) {
            if let Some(this) = batch.producer() {
                this.send_gathered(&key, batch);
            }
        }
        let reserve = (deadline.remaining() / 5).min(Duration::from_secs(1));
        let drain_until = Deadline::after(deadline.remaining().saturating_sub(reserve));
        let abandoned = self.in_flight.wait_for_none(drain_until);
        let drained = self.in_flight.told() - told;
        if abandoned > 0 {
            let group = self.member.group();
            log::warn!("{abandoned} asynchronous sends of {group} are under way still");
        }
        let detector = self.detector.lock().take();
        let mut threads_joined =
            detector.is_none_or(|detector| detector.shutdown_until(deadline).is_over());
        if let Some(checks) = self.transaction_checks.get() {
            threads_joined &= checks.shutdown(deadline);
        }
        if let Some(membership) = self.member.take_membership() {
            let instance = membership.instance();
            let group = self.member.group();
            let ended = self
                .member
                .wrong_state("requesting with", ServiceState::ShutdownAlready);
            instance.request_futures().fail_all_of(group, &ended);
            if before == ServiceState::Running {
                instance.unregister_producer(self.member.group(), deadline);
            }
            threads_joined &= membership.leave(deadline);
        }
        threads_joined &= self.async_sender_executor.shutdown(deadline).left == 0;
        threads_joined &= self.callback_executor.shutdown(deadline).left == 0;
        if let Some(trace) = &self.trace {
            threads_joined &= trace.shutdown(deadline);
        }
        self.topic_publish_info_table.clear();
        ShutdownReport {
            drained,
            abandoned,
            threads_joined,
            ..ShutdownReport::default()
        }
    }
}

impl MQProducerInner for DefaultMQProducerImpl {
    fn publish_topic_list(&self) -> Vec<String> {
        self.topic_publish_info_table.names()
    }

    fn is_publish_topic_need_update(&self, topic: &str) -> bool {
        self.topic_publish_info_table
            .get(topic)
            .is_some_and(|info| !info.ok())
    }

    fn update_topic_publish_info(&self, topic: &str, info: &Arc<TopicPublishInfo>) {
        self.topic_publish_info_table.replace(topic, info);
    }

    fn check_transaction_state(&self, check: TransactionCheck) {
        match (self.transaction_checks.get(), self.member.instance()) {
            (Some(checks), Some(instance)) => checks.begin(instance.api(), check),
            _ => log::warn!(
                "{}: check of a transaction of group {}, whose producer has no transactions",
                check.addr,
                self.member.group()
            ),
        }
    }
}
