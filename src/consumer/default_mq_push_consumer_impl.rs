//! Behind the push consumer's handle: the pull loop, the rebalance, the beginning and the end.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use rocketmq_protocol::body::{
    ConsumeFromWhere, ConsumeType, ConsumerData, MASTER_ID, MessageModel,
};
use rocketmq_protocol::header::{ConsumerSendMsgBackRequestHeader, PullMessageRequestHeader};
use rocketmq_protocol::{
    Message, MessageExt, MessageQueue, SubscriptionData, mix_all, property, response_code, sys_flag,
};

use super::consume_message_concurrently_service::ConsumeMessageConcurrentlyService;
use super::listener::{MessageListenerConcurrently, MessageQueueListener};
use super::offset_store::{RemoteBrokerOffsetStore, broker_of};
use super::process_queue::{MessageInHands, ProcessQueue};
use super::pull_api_wrapper::process_pull_result;
use super::pull_request::PullRequest;
use super::rebalance_push_impl::RebalancePushImpl;
use crate::client::{
    FindBrokerResult, MOCK_BROKER_PREFIX, MQClientInstance, MQClientManager, MQConsumerInner,
    Membership, OnlyThisBroker, PullReply, QueueAt, Role, RouteOf, ShutdownReport, Termination,
    TopicPublishInfo,
};
use crate::client_config::{ClientConfig, Namespace};
use crate::error::{Error, Result, client_error_code};
use crate::producer::send_kernel::{Prepared, SendSettings, send_kernel};
use crate::rebalance::{AllocateMessageQueueStrategy, RebalanceImpl};
use crate::service::{AtomicServiceState, ServiceState, TaskHandle};
use crate::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use crate::sync::{Arc, Deadline, Mutex, Weak, system_time_millis};

/// Java `PULL_TIME_DELAY_MILLS_WHEN_CACHE_FLOW_CONTROL`.
const PULL_TIME_DELAY_WHEN_CACHE_FLOW_CONTROL: Duration = Duration::from_millis(50);
/// Java `PULL_TIME_DELAY_MILLS_WHEN_BROKER_FLOW_CONTROL`.
const PULL_TIME_DELAY_WHEN_BROKER_FLOW_CONTROL: Duration = Duration::from_millis(20);
/// Java `BROKER_SUSPEND_MAX_TIME_MILLIS`.
const BROKER_SUSPEND_MAX_TIME: Duration = Duration::from_secs(15);
/// Java `CONSUMER_TIMEOUT_MILLIS_WHEN_SUSPEND`: a broker sweeps the requests it holds only every 5
/// s, so an answer may come that much later than asked for.
const CONSUMER_TIMEOUT_WHEN_SUSPEND: Duration = Duration::from_secs(30);
/// Java's timeout of offset queries.
const OFFSET_TIMEOUT: Duration = Duration::from_secs(5);
/// Java's timeout of giving a message back.
const SEND_BACK_TIMEOUT: Duration = Duration::from_secs(5);
/// The most messages of a queue that are given back at a time because the listener does not return
/// them (as in Java).
const EXPIRED_AT_A_TIME: usize = 16;
/// The delay level of such a message: 10 s (as in Java).
const EXPIRED_DELAY_LEVEL: i32 = 3;
/// How long a start that a shutdown overtook waits for the threads it started.
const UNDO_TIMEOUT: Duration = Duration::from_secs(1);
const MEBIBYTE: u64 = 1024 * 1024;

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
    pub(super) subscriptions: BTreeMap<String, SubscriptionData>,
    pub(super) consume_threads: usize,
    pub(super) consume_message_batch_max_size: usize,
    pub(super) consume_concurrently_max_span: u64,
    pub(super) pull_threshold_for_queue: u64,
    pub(super) pull_threshold_size_for_queue: u64,
    pub(super) pull_interval: Duration,
    pub(super) pull_batch_size: i32,
    pub(super) pull_batch_size_in_bytes: i32,
    pub(super) pull_time_delay_when_exception: Duration,
    pub(super) max_reconsume_times: Option<i32>,
    pub(super) hand_over_grace: Duration,
    pub(super) consume_timeout: Duration,
}

/// How often a message is tried before it goes to the dead-letter queue, unless set otherwise.
const DEFAULT_MAX_RECONSUME_TIMES: i32 = 16;

pub(super) struct DefaultMQPushConsumerImpl {
    pub(super) config: PushConsumerConfig,
    client_config: ClientConfig,
    manager: MQClientManager,
    state: AtomicServiceState,
    membership: Mutex<Option<Arc<Membership>>>,
    /// Set at the end of the start: one look at the group is enough for all that it learnt.
    ready: AtomicBool,
    /// What heartbeats say of when the subscriptions last changed. Pulls say when their expression
    /// was made, which brokers know since before the first pull: a newer number in a pull than in
    /// the last heartbeat would be refused.
    heartbeat_sub_version: AtomicI64,
    rebalance: RebalanceImpl<ProcessQueue>,
    offsets: RemoteBrokerOffsetStore,
    consume_service: ConsumeMessageConcurrentlyService,
    /// Taken out at the end, like the listener of messages.
    message_queue_listener: Mutex<Option<Arc<dyn MessageQueueListener>>>,
    /// Looks for messages that the listener does not return.
    expiry_check: Mutex<Option<TaskHandle>>,
    pub(super) termination: Arc<Termination>,
}

impl DefaultMQPushConsumerImpl {
    pub(super) fn new(
        mut config: PushConsumerConfig,
        client_config: ClientConfig,
        manager: MQClientManager,
        listener: Arc<dyn MessageListenerConcurrently>,
        message_queue_listener: Option<Arc<dyn MessageQueueListener>>,
    ) -> Self {
        let group = config.consumer_group.clone();
        // Members share the group's retry topic; one that did not read it would leave the retries
        // of its queues lying.
        let retry_topic = mix_all::retry_topic(&group);
        let retries = SubscriptionData {
            sub_string: "*".to_owned(),
            sub_version: system_time_millis(),
            topic: retry_topic.clone(),
            ..SubscriptionData::default()
        };
        config.subscriptions.insert(retry_topic, retries);
        Self {
            rebalance: RebalanceImpl::new(group.clone(), Arc::clone(&config.strategy)),
            offsets: RemoteBrokerOffsetStore::new(group.clone()),
            consume_service: ConsumeMessageConcurrentlyService::new(
                &group,
                config.consume_threads,
                config.consume_message_batch_max_size,
                listener,
            ),
            config,
            client_config,
            manager,
            state: AtomicServiceState::new(),
            membership: Mutex::new(None),
            ready: AtomicBool::new(false),
            heartbeat_sub_version: AtomicI64::new(0),
            message_queue_listener: Mutex::new(message_queue_listener),
            expiry_check: Mutex::new(None),
            termination: Termination::new(),
        }
    }

    fn group(&self) -> &str {
        &self.config.consumer_group
    }

    pub(super) fn state(&self) -> ServiceState {
        self.state.get()
    }

    pub(super) fn client_id(&self) -> Option<String> {
        self.instance()
            .map(|instance| instance.client_id().to_owned())
    }

    pub(super) fn owned_queues(&self) -> Vec<MessageQueue> {
        self.rebalance
            .process_queues()
            .into_iter()
            .map(|(mq, _)| mq)
            .collect()
    }

    pub(super) fn consume_service(&self) -> &ConsumeMessageConcurrentlyService {
        &self.consume_service
    }

    fn instance(&self) -> Option<Arc<MQClientInstance>> {
        self.membership
            .lock()
            .as_ref()
            .map(|membership| Arc::clone(membership.instance()))
    }

    pub(super) fn update_name_server_address_list(&self, list: &str) -> Result<()> {
        let addrs = ClientConfig::name_servers_of(list)?;
        let membership = self.membership.lock();
        match membership.as_ref() {
            Some(membership) if self.state.is_running() => {
                membership.update_name_server_address_list(addrs);
                Ok(())
            }
            _ => Err(self.wrong_state("updating the name servers of", self.state.get())),
        }
    }

    /// Runs a task on the timer, unless the consumer has ended.
    pub(super) fn later(&self, delay: Duration, task: impl FnOnce() + Send + 'static) {
        if let Some(instance) = self.instance() {
            instance.timer().schedule_once(delay, task);
        }
    }

    fn wrong_state(&self, operation: &str, state: ServiceState) -> Error {
        Error::ServiceState {
            operation: format!("{operation} consumer {}", self.group()),
            state,
        }
    }

    /// Joins an instance, learns the routes, tells the brokers, and has the group looked at (Java
    /// `DefaultMQPushConsumerImpl#start`). Servers that cannot be reached do not fail it.
    pub(super) fn start(self: &Arc<Self>) -> Result<()> {
        self.state
            .begin_start()
            .map_err(|state| self.wrong_state("starting", state))?;
        let membership = Arc::new(self.manager.join(
            &self.client_config,
            Role::Consumer,
            self.group(),
        )?);
        let instance = Arc::clone(membership.instance());
        let weak: Weak<Self> = Arc::downgrade(self);
        let mut place = self.membership.lock();
        if let Err(state) = self.state.finish_start() {
            drop(place);
            membership.leave(Deadline::after(UNDO_TIMEOUT));
            return Err(self.wrong_state("starting", state));
        }
        // A shutdown that comes from here on waits for the lock, and finds what there is to end.
        let period = self.config.consume_timeout;
        let of_timer = Weak::clone(&weak);
        let check = instance
            .timer()
            .schedule_at_fixed_rate(period, period, move || {
                if let Some(consumer) = of_timer.upgrade() {
                    consumer.give_expired_back();
                }
            });
        *self.expiry_check.lock() = Some(check);
        instance.register_consumer(self.group(), weak);
        *place = Some(membership);
        drop(place);
        let retry_topic = mix_all::retry_topic(self.group());
        let topics = self
            .config
            .subscriptions
            .keys()
            .filter(|topic| **topic != retry_topic);
        for topic in topics {
            self.learn_route(&instance, topic);
        }
        instance.send_heartbeat_to_all_broker(Deadline::after(instance.api_timeout()));
        // A new group's retry topic is made by its first heartbeat.
        self.learn_route(&instance, &retry_topic);
        self.ready.store(true, Ordering::Release);
        instance.rebalance_soon(self.group());
        Ok(())
    }

    fn learn_route(&self, instance: &MQClientInstance, topic: &str) {
        let deadline = Deadline::after(instance.api_timeout());
        match instance.update_topic_route_info(topic, RouteOf::Topic, deadline) {
            Ok(true) => {}
            Ok(false) if topic == mix_all::retry_topic(self.group()) => {
                log::info!("group {}: topic {topic} has no route yet", self.group());
            }
            Ok(false) => log::warn!(
                "group {}: the name server does not know topic {topic}; it is asked again, is the \
                 name right?",
                self.group()
            ),
            Err(error) => log::warn!("group {}: route of {topic}: {error}", self.group()),
        }
    }

    /// Takes no new work, and returns the state before.
    pub(super) fn begin_end(&self) -> ServiceState {
        let before = self.state.begin_shutdown();
        self.consume_service.refuse_messages();
        before
    }

    /// The rest of the end, in this order: the listener finishes, so that offsets are true; they are
    /// saved; the group is left, so that others take the queues from there; the queues are dropped;
    /// the last client of an instance stops its threads.
    pub(super) fn end(&self, before: ServiceState, deadline: Deadline) -> ShutdownReport {
        let reserve = (deadline.remaining() / 5).min(Duration::from_secs(1));
        let drain_until = Deadline::after(deadline.remaining().saturating_sub(reserve));
        let pool = self.consume_service.shutdown(drain_until);
        let membership = self.membership.lock().take();
        let mut report = ShutdownReport {
            drained: pool.drained,
            abandoned: pool.abandoned,
            threads_joined: pool.left == 0,
            ..ShutdownReport::default()
        };
        if let Some(membership) = membership {
            let instance = membership.instance();
            if let Some(check) = self.expiry_check.lock().take() {
                check.cancel();
            }
            let queues = self.rebalance.close();
            report.offsets_saved = self.offsets.persist_all_and_wait(instance, deadline);
            if before == ServiceState::Running {
                instance.unregister_consumer(self.group(), deadline);
            }
            for (mq, queue) in queues {
                self.offsets.drop_queue(&mq, &queue);
                queue.clear();
            }
            report.threads_joined &= membership.leave(deadline);
        }
        self.consume_service.release_listener();
        let listener = self.message_queue_listener.lock().take();
        drop(listener);
        report
    }

    /// Starts the pull loops of new queues. Where another member may have had them, it is given time
    /// to save how far it came: taking a queue fast must not mean to receive its last messages
    /// twice.
    pub(super) fn begin_to_pull(
        self: &Arc<Self>,
        added: Vec<(MessageQueue, Arc<ProcessQueue>)>,
        shared: bool,
    ) {
        let Some(instance) = self.instance() else {
            return;
        };
        let grace = if shared {
            self.config.hand_over_grace
        } else {
            Duration::ZERO
        };
        for (mq, process_queue) in added {
            let request = PullRequest {
                consumer: Arc::downgrade(self),
                mq,
                process_queue,
                next_offset: None,
                suggested_broker_id: MASTER_ID,
            };
            instance
                .pull_requests()
                .execute_later(Box::new(request), grace);
        }
    }

    /// Drops a queue and saves how far it came, in one step and with no commit after it. `false`
    /// when the consumer is ending, which saves and drops all that is in the table.
    pub(super) fn give_up(&self, mq: &MessageQueue, queue: &ProcessQueue) -> bool {
        let Some(instance) = self.instance() else {
            return false;
        };
        self.offsets.drop_and_persist(&instance, mq, queue);
        true
    }

    pub(super) fn commit(&self, mq: &MessageQueue, offset: i64, queue: &ProcessQueue) {
        self.offsets.update_if_owned(mq, offset, queue);
    }

    pub(super) fn message_queue_changed(
        &self,
        topic: &str,
        mq_all: &[MessageQueue],
        mq_divided: &[MessageQueue],
    ) {
        self.heartbeat_sub_version
            .store(system_time_millis(), Ordering::Relaxed);
        if let Some(instance) = self.instance() {
            instance.heartbeat_soon();
        }
        let listener = self.message_queue_listener.lock().clone();
        if let Some(listener) = listener {
            let namespace = &self.config.namespace;
            let unwrapped = |queues: &[MessageQueue]| -> Vec<MessageQueue> {
                queues.iter().map(|mq| namespace.unwrap_queue(mq)).collect()
            };
            listener.message_queue_changed(
                &namespace.unwrap(topic),
                &unwrapped(mq_all),
                &unwrapped(mq_divided),
            );
        }
    }

    fn again(&self, request: Box<PullRequest>, delay: Duration) {
        if let Some(instance) = self.instance() {
            instance.pull_requests().execute_later(request, delay);
        }
    }

    /// One step of a queue's pull loop (Java `DefaultMQPushConsumerImpl#pullMessage`). A token whose
    /// queue is dropped, or whose consumer ends, dies here.
    pub(super) fn pull_message(self: &Arc<Self>, mut request: Box<PullRequest>) {
        let (true, false, Some(instance)) = (
            self.state.is_running(),
            request.process_queue.is_dropped(),
            self.instance(),
        ) else {
            return;
        };
        request.process_queue.pulled();
        if self.has_enough(&request.process_queue) {
            return self.again(request, PULL_TIME_DELAY_WHEN_CACHE_FLOW_CONTROL);
        }
        let Some(offset) = request.next_offset else {
            return self.find_start(&instance, request);
        };
        let Some(subscription) = self.config.subscriptions.get(request.mq.topic()) else {
            return;
        };
        let broker_name = instance.routes().broker_name(&request.mq);
        let Some(broker) = instance.brokers().find_broker_address_in_subscribe(
            &broker_name,
            request.suggested_broker_id,
            OnlyThisBroker::No,
        ) else {
            log::warn!("{}: its broker is in no route", request.mq);
            instance.refresh_routes_soon();
            return self.again(request, self.config.pull_time_delay_when_exception);
        };
        let mq = request.mq.clone();
        let weak = Arc::downgrade(self);
        let on_outcome = move |outcome: Result<PullReply>| {
            let Some(consumer) = weak.upgrade() else {
                return;
            };
            match outcome {
                Ok(reply) => {
                    request.suggested_broker_id = reply.header.suggest_which_broker_id;
                    request.next_offset = Some(reply.header.next_begin_offset);
                    consumer.on_pull_reply(request, offset, reply);
                }
                Err(error) => consumer.on_pull_error(request, &error),
            }
        };
        // The pull tells the broker how far the group has come.
        self.offsets.send_with_offset(&mq, |committed| {
            let header = self.pull_header((&mq, offset), committed, subscription, &broker);
            let deadline = Deadline::after(CONSUMER_TIMEOUT_WHEN_SUSPEND);
            instance
                .api()
                .pull_message_async(&broker.broker_addr, &header, deadline, on_outcome);
        });
    }

    fn pull_header(
        &self,
        (mq, offset): (&MessageQueue, i64),
        committed: Option<i64>,
        subscription: &SubscriptionData,
        broker: &FindBrokerResult,
    ) -> PullMessageRequestHeader {
        let committed = committed.filter(|offset| *offset > 0);
        let mut flags = sys_flag::PULL_SUSPEND;
        if committed.is_some() && !broker.slave {
            flags |= sys_flag::PULL_COMMIT_OFFSET;
        }
        PullMessageRequestHeader {
            consumer_group: self.group().to_owned(),
            topic: mq.topic().to_owned(),
            queue_id: mq.queue_id(),
            queue_offset: offset,
            max_msg_nums: self.config.pull_batch_size,
            sys_flag: flags,
            commit_offset: committed.unwrap_or(0),
            suspend_timeout_millis: BROKER_SUSPEND_MAX_TIME.as_millis() as i64,
            subscription: None,
            sub_version: subscription.sub_version,
            expression_type: Some(subscription.expression_type.name().to_owned()),
            max_msg_bytes: Some(self.config.pull_batch_size_in_bytes),
            broker_name: Some(mq.broker_name().to_owned()),
            ..PullMessageRequestHeader::default()
        }
    }

    /// Flow control: by count, by size, and by the distance that one stuck message may hold back.
    fn has_enough(&self, queue: &ProcessQueue) -> bool {
        let cached = queue.cached();
        cached.count > self.config.pull_threshold_for_queue
            || cached.body_bytes / MEBIBYTE > self.config.pull_threshold_size_for_queue
            || cached.span() > self.config.consume_concurrently_max_span
    }

    fn on_pull_reply(self: &Arc<Self>, request: Box<PullRequest>, offset: i64, reply: PullReply) {
        match reply.code {
            response_code::SUCCESS => self.on_found(request, offset, reply),
            response_code::PULL_OFFSET_MOVED => self.on_offset_illegal(&request),
            _ => {
                // Nothing is there, or nothing that matches: what was passed over is done, unless
                // something before it is still in work.
                if request.process_queue.cached().count == 0 {
                    let passed = reply.header.next_begin_offset;
                    self.commit(&request.mq, passed, &request.process_queue);
                }
                self.again(request, Duration::ZERO);
            }
        }
    }

    fn on_found(self: &Arc<Self>, mut request: Box<PullRequest>, offset: i64, reply: PullReply) {
        let Some(subscription) = self.config.subscriptions.get(request.mq.topic()) else {
            return;
        };
        let pulled = process_pull_result(&request.mq, offset, subscription, reply);
        request.next_offset = Some(pulled.next_offset);
        if pulled.messages.is_empty() {
            return self.again(request, Duration::ZERO);
        }
        let queue = Arc::clone(&request.process_queue);
        if queue
            .put_messages(&pulled.messages, pulled.retained_bytes)
            .is_err()
        {
            return;
        }
        self.consume_service
            .submit(self, &request.mq, &queue, pulled.messages);
        self.again(request, self.config.pull_interval);
    }

    fn on_pull_error(self: &Arc<Self>, request: Box<PullRequest>, error: &Error) {
        let delay = match error.broker_code() {
            Some(response_code::FLOW_CONTROL) => PULL_TIME_DELAY_WHEN_BROKER_FLOW_CONTROL,
            _ => self.config.pull_time_delay_when_exception,
        };
        if self.state.is_running() && !request.process_queue.is_dropped() {
            log::warn!("pulling {}: {error}", request.mq);
        }
        if let (
            Some(response_code::SUBSCRIPTION_NOT_EXIST | response_code::SUBSCRIPTION_NOT_LATEST),
            Some(instance),
        ) = (error.broker_code(), self.instance())
        {
            // The broker has not heard of this member, because it was restarted for instance.
            instance.heartbeat_soon();
        }
        if let (Some(response_code::NOT_LEADER_FOR_QUEUE), Some(instance)) =
            (error.broker_code(), self.instance())
        {
            instance.refresh_routes_soon();
        }
        self.again(request, delay);
    }

    /// The broker says that the offset is none of the queue, and which one to go on from: that is
    /// stored, and the queue begun anew.
    fn on_offset_illegal(self: &Arc<Self>, request: &PullRequest) {
        let Some(instance) = self.instance() else {
            return;
        };
        let (mq, queue) = (&request.mq, &request.process_queue);
        let offset = request.next_offset.unwrap_or(0);
        log::warn!(
            "group {}: the offset of {mq} was moved to {offset}",
            self.group()
        );
        let deadline = Deadline::after(OFFSET_TIMEOUT);
        let weak = Arc::downgrade(self);
        let (of, dropped) = (mq.clone(), Arc::clone(queue));
        let stored = move |outcome: Result<()>| {
            let Some(consumer) = weak.upgrade() else {
                return;
            };
            if let Err(error) = outcome {
                let group = consumer.group();
                log::warn!("group {group}: offset {offset} of {of} is not saved: {error}");
            }
            consumer.rebalance.remove(&of, &dropped);
            if let Some(instance) = consumer.instance() {
                instance.rebalance_soon(consumer.group());
            }
        };
        self.offsets
            .drop_and_reset(&instance, mq, queue, (offset, deadline), stored);
    }

    /// Finds out where to start (Java `RebalancePushImpl#computePullFromWhere`). Until the broker
    /// answers only this queue waits; a failure is tried again like a failed pull.
    fn find_start(self: &Arc<Self>, instance: &Arc<MQClientInstance>, request: Box<PullRequest>) {
        let weak = Arc::downgrade(self);
        let deadline = Deadline::after(OFFSET_TIMEOUT);
        let mq = request.mq.clone();
        self.offsets
            .read_from_store(instance, &mq, deadline, move |outcome| {
                let Some(consumer) = weak.upgrade() else {
                    return;
                };
                match outcome {
                    Ok(offset) if offset >= 0 => {
                        consumer.commit(&request.mq, offset, &request.process_queue);
                        consumer.start_at(request, offset);
                    }
                    Ok(_) | Err(Error::OffsetNotFound { .. }) => {
                        consumer.start_without_offset(request)
                    }
                    Err(error) => consumer.on_pull_error(request, &error),
                }
            });
    }

    fn start_at(&self, mut request: Box<PullRequest>, offset: i64) {
        log::info!(
            "group {}: {} from offset {offset} on",
            self.group(),
            request.mq
        );
        request.next_offset = Some(offset);
        self.again(request, Duration::ZERO);
    }

    fn start_without_offset(self: &Arc<Self>, request: Box<PullRequest>) {
        let Some(instance) = self.instance() else {
            return;
        };
        let is_retry = request.mq.topic() == mix_all::retry_topic(self.group());
        let deadline = Deadline::after(OFFSET_TIMEOUT);
        let addr = match broker_of(&instance, &request.mq) {
            Ok(addr) => addr,
            Err(error) => return self.on_pull_error(request, &error),
        };
        let mq = request.mq.clone();
        let at = QueueAt {
            addr: &addr,
            mq: &mq,
        };
        match self.config.consume_from_where {
            ConsumeFromWhere::ConsumeFromFirstOffset => self.start_at(request, 0),
            ConsumeFromWhere::ConsumeFromTimestamp if !is_retry => {
                let timestamp = self.config.consume_timestamp;
                let found = self.start_where_found(request);
                instance
                    .api()
                    .search_offset_async(at, timestamp, deadline, found);
            }
            ConsumeFromWhere::ConsumeFromTimestamp => {
                let found = self.start_where_found(request);
                instance.api().max_offset_async(at, deadline, found);
            }
            _ if is_retry => self.start_at(request, 0),
            _ => {
                let weak = Arc::downgrade(self);
                instance.api().max_offset_async(at, deadline, move |end| {
                    let Some(consumer) = weak.upgrade() else {
                        return;
                    };
                    match end {
                        Ok(end) if end > 0 => consumer.start_at_the_end(request, end),
                        end => (consumer.start_where_found(request))(end),
                    }
                });
            }
        }
    }

    fn start_where_found(
        self: &Arc<Self>,
        request: Box<PullRequest>,
    ) -> impl FnOnce(Result<i64>) + Send + use<> {
        let weak = Arc::downgrade(self);
        move |outcome| {
            let Some(consumer) = weak.upgrade() else {
                return;
            };
            match outcome {
                Ok(offset) => consumer.start_at(request, offset),
                Err(error) => consumer.on_pull_error(request, &error),
            }
        }
    }

    /// A message may have come between the two questions, for the group's offset and for the end. So
    /// the first one is asked again: of a queue that was empty a moment ago the broker now says 0,
    /// and of an old one again that it knows nothing, and then the end it is. (Java does not ask
    /// again, and passes such a message over.)
    fn start_at_the_end(self: &Arc<Self>, request: Box<PullRequest>, end: i64) {
        let Some(instance) = self.instance() else {
            return;
        };
        let weak = Arc::downgrade(self);
        let mq = request.mq.clone();
        let deadline = Deadline::after(OFFSET_TIMEOUT);
        self.offsets
            .read_from_store(&instance, &mq, deadline, move |outcome| {
                let Some(consumer) = weak.upgrade() else {
                    return;
                };
                match outcome {
                    Ok(offset) if offset >= 0 => consumer.start_at(request, offset),
                    Ok(_) | Err(Error::OffsetNotFound { .. }) => {
                        log::info!("group {}: no offset yet", consumer.group());
                        consumer.start_at(request, end);
                    }
                    Err(error) => consumer.on_pull_error(request, &error),
                }
            });
    }

    /// Gives a message back to its broker for a later try (Java
    /// `DefaultMQPushConsumerImpl#sendMessageBack`).
    pub(super) fn send_message_back(
        &self,
        message: &MessageExt,
        delay_level: i32,
        mq: &MessageQueue,
    ) -> Result<()> {
        let Some(instance) = self.instance() else {
            return Err(self.wrong_state("giving a message back with", self.state.get()));
        };
        if is_logical(mq) {
            self.send_message_back_as_normal_message(&instance, message)?;
            self.find_retries(&instance);
            return Ok(());
        }
        let header = self.send_back_header(&message.into(), delay_level, mq);
        let addr = broker_of(&instance, mq)?;
        instance.api().consumer_send_message_back(
            &addr,
            &header,
            Deadline::after(SEND_BACK_TIMEOUT),
        )?;
        self.find_retries(&instance);
        Ok(())
    }

    fn send_back_header(
        &self,
        message: &MessageInHands,
        delay_level: i32,
        mq: &MessageQueue,
    ) -> ConsumerSendMsgBackRequestHeader {
        ConsumerSendMsgBackRequestHeader {
            offset: message.commit_log_offset,
            group: self.group().to_owned(),
            delay_level,
            origin_msg_id: Some(message.msg_id.clone()),
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

    fn find_retries(&self, instance: &MQClientInstance) {
        let retry_topic = mix_all::retry_topic(self.group());
        if self.rebalance.topic_queues(&retry_topic).is_none() {
            // Otherwise a new group would find its retries only with the next route refresh.
            instance.refresh_routes_soon();
        }
    }

    /// Gives messages back that the listener has had for longer than `consume_timeout`, so that
    /// they do not hold their queue's offset back for ever (Java
    /// `ProcessQueue#cleanExpiredMsg`). Runs on the timer: it waits for nothing.
    fn give_expired_back(self: &Arc<Self>) {
        for (mq, queue) in self.rebalance.process_queues() {
            self.give_first_expired_back(mq, queue, EXPIRED_AT_A_TIME);
        }
    }

    /// One message after the other, each once the broker has the one before.
    fn give_first_expired_back(
        self: &Arc<Self>,
        mq: MessageQueue,
        queue: Arc<ProcessQueue>,
        left: usize,
    ) {
        let (false, false, Some(instance)) = (left == 0, queue.is_dropped(), self.instance())
        else {
            return;
        };
        let Some(message) = queue.first_expired(self.config.consume_timeout) else {
            return;
        };
        let offset = message.queue_offset;
        let addr = if is_logical(&mq) {
            // Its place in the log is one in that broker's log (as in Java), which need not be the
            // one that holds the queue now.
            Ok(message.store_host.to_string().into())
        } else {
            broker_of(&instance, &mq)
        };
        let addr = match addr {
            Ok(addr) => addr,
            Err(error) => return log::warn!("{mq}: the message at {offset} stays: {error}"),
        };
        let header = self.send_back_header(&message, EXPIRED_DELAY_LEVEL, &mq);
        let weak = Arc::downgrade(self);
        let given_back = move |outcome: Result<()>| {
            let Some(consumer) = weak.upgrade() else {
                return;
            };
            if let Err(error) = outcome {
                return log::warn!("{mq}: the message at {offset} stays: {error}");
            }
            log::warn!(
                "{mq}: the listener has had message {} at offset {offset} for more than {:?}; it \
                 was given back",
                message.msg_id,
                consumer.config.consume_timeout
            );
            if let Some(next) = queue.remove_if_first(offset) {
                consumer.commit(&mq, next, &queue);
            }
            if let Some(instance) = consumer.instance() {
                consumer.find_retries(&instance);
            }
            consumer.give_first_expired_back(mq, queue, left - 1);
        };
        let deadline = Deadline::after(SEND_BACK_TIMEOUT);
        instance
            .api()
            .consumer_send_message_back_async(&addr, &header, deadline, given_back);
    }
}

impl DefaultMQPushConsumerImpl {
    /// Sends a message of a static topic to the retry topic: the broker that holds its queue now may
    /// not be the one that stored it (Java
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
        let mq = info.select_one_message_queue(None).ok_or_else(|| {
            Error::client(
                client_error_code::NOT_FOUND_TOPIC_EXCEPTION,
                format!("retry topic {retry_topic} has no queue that can be written"),
            )
        })?;
        let retry = self.retry_of(message, &retry_topic);
        let settings = SendSettings {
            producer_group: mix_all::CLIENT_INNER_PRODUCER_GROUP.to_owned(),
            namespace: self.config.namespace.clone(),
            unit_mode: self.config.unit_mode,
            create_topic_key: mix_all::AUTO_CREATE_TOPIC_KEY_TOPIC.to_owned(),
            default_topic_queue_nums: 1,
            compress_msg_body_over_howmuch: 4096,
            max_message_size: usize::MAX,
        };
        let prepared = Prepared::new(&retry, &settings)?;
        send_kernel(instance, &prepared, &mq, deadline).map(|_| ())
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
fn is_logical(mq: &MessageQueue) -> bool {
    mq.broker_name().starts_with(MOCK_BROKER_PREFIX)
}

impl MQConsumerInner for DefaultMQPushConsumerImpl {
    fn consumer_data(&self) -> ConsumerData {
        let version = self.heartbeat_sub_version.load(Ordering::Relaxed);
        let subscriptions = self
            .config
            .subscriptions
            .values()
            .cloned()
            .map(|mut subscription| {
                subscription.sub_version = subscription.sub_version.max(version);
                subscription
            });
        ConsumerData {
            consume_from_where: self.config.consume_from_where,
            consume_type: ConsumeType::ConsumePassively,
            group_name: self.group().to_owned(),
            message_model: MessageModel::Clustering,
            subscription_data_set: subscriptions.collect(),
            unit_mode: self.config.unit_mode,
        }
    }

    fn subscribed_topics(&self) -> Vec<String> {
        self.config.subscriptions.keys().cloned().collect()
    }

    fn is_subscribe_topic_need_update(&self, topic: &str) -> bool {
        self.config.subscriptions.contains_key(topic)
            && self.rebalance.topic_queues(topic).is_none()
    }

    fn update_topic_subscribe_info(&self, topic: &str, queues: &Arc<[MessageQueue]>) {
        if self.config.subscriptions.contains_key(topic)
            && self.rebalance.set_topic_queues(topic, queues)
        {
            if let Some(instance) = self.instance() {
                instance.rebalance_soon(self.group());
            }
        }
    }

    fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    fn try_rebalance(self: Arc<Self>) -> bool {
        let (true, Some(instance)) = (self.state.is_running(), self.instance()) else {
            return true;
        };
        let topics: BTreeSet<String> = self.config.subscriptions.keys().cloned().collect();
        self.rebalance
            .do_rebalance(&instance, &topics, &RebalancePushImpl(&self))
    }

    fn persist_consumer_offset(&self) {
        if let (true, Some(instance)) = (self.state.is_running(), self.instance()) {
            self.offsets.persist_all(&instance);
        }
    }
}

impl fmt::Debug for DefaultMQPushConsumerImpl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DefaultMQPushConsumerImpl")
            .field("group", &self.config.consumer_group)
            .field("state", &self.state.get())
            .finish_non_exhaustive()
    }
}
