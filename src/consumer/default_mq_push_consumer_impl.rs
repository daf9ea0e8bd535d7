//! Behind the push consumer's handle: what it has, its beginning and its end.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use rocketmq_protocol::body::{
    ConsumeMessageDirectlyResult, ConsumeType, ConsumerData, ConsumerRunningInfo, MASTER_ID,
    MessageModel,
};
use rocketmq_protocol::{MessageExt, MessageQueue, SubscriptionData, mix_all};

use super::consume_message_concurrently_service::ConsumeMessageConcurrentlyService;
use super::hand_over::HandOver;
use super::held_pulls::HeldPulls;
use super::listener::{MessageListenerConcurrently, MessageQueueListener};
use super::offset_store::RemoteBrokerOffsetStore;
use super::process_queue::ProcessQueue;
use super::pull_request::PullRequest;
use super::push_consumer_config::PushConsumerConfig;
use super::queue_change_caller::QueueChangeCaller;
use super::rebalance_push_impl::RebalancePushImpl;
use super::subscription_table::SubscriptionTable;
use super::unreachable_brokers::UnreachableBrokers;
use crate::client::{
    Client, MQClientInstance, MQClientManager, MQConsumerInner, Member, Members, Role, RouteOf,
    ShutdownReport, TopicBalance, next_sub_version,
};
use crate::client_config::ClientConfig;
use crate::error::Result;
use crate::rebalance::RebalanceImpl;
use crate::service::{ServiceState, TaskHandle};
use crate::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use crate::sync::{Arc, Deadline, Mutex, Weak, system_time_millis};
use crate::trace::AsyncTraceDispatcher;

/// Java's timeout of offset queries.
pub(super) const OFFSET_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) struct DefaultMQPushConsumerImpl {
    pub(super) config: PushConsumerConfig,
    pub(super) member: Member,
    /// Set at the end of the start: one look at the group is enough for all that it learnt.
    ready: AtomicBool,
    suspended: AtomicBool,
    /// Whether a look has changed queues and the brokers are still to be told, once for all topics.
    queues_changed: AtomicBool,
    /// In milliseconds since 1970; 0 before the start.
    started_at: AtomicI64,
    /// Whether pulls wait because of `max_retained_bytes`.
    pub(super) waits_for_memory: AtomicBool,
    pub(super) subscriptions: SubscriptionTable,
    pub(super) rebalance: RebalanceImpl<ProcessQueue>,
    pub(super) hand_over: HandOver,
    pub(super) offsets: RemoteBrokerOffsetStore,
    pub(super) consume_service: ConsumeMessageConcurrentlyService,
    queue_changes: QueueChangeCaller,
    pub(super) held_pulls: HeldPulls,
    /// Queues whose offset was moved, until their broker has it: a rebalance that gave one up and took
    /// it again meanwhile might be told the old one.
    pub(super) being_moved: Mutex<BTreeSet<MessageQueue>>,
    pub(super) unreachable: UnreachableBrokers,
    /// There if traces are enabled.
    trace: Option<Arc<AsyncTraceDispatcher>>,
    /// Looks for messages that the listener does not return.
    expiry_check: Mutex<Option<TaskHandle>>,
}

impl DefaultMQPushConsumerImpl {
    pub(super) fn new(
        mut config: PushConsumerConfig,
        client_config: ClientConfig,
        manager: MQClientManager,
        listener: Arc<dyn MessageListenerConcurrently>,
        message_queue_listener: Option<Arc<dyn MessageQueueListener>>,
        trace: Option<Arc<AsyncTraceDispatcher>>,
    ) -> Self {
        let group = config.consumer_group.clone();
        // Members share the group's retry topic; one that did not read it would leave the retries
        // of its queues lying.
        let retry_topic = mix_all::retry_topic(&group);
        let retries = SubscriptionData {
            sub_string: "*".to_owned(),
            sub_version: next_sub_version(),
            topic: retry_topic.clone(),
            ..SubscriptionData::default()
        };
        config.subscriptions.insert(retry_topic, retries);
        let subscriptions = std::mem::take(&mut config.subscriptions);
        Self {
            subscriptions: SubscriptionTable::new(subscriptions.into_values()),
            queue_changes: QueueChangeCaller::new(&group, message_queue_listener),
            rebalance: RebalanceImpl::new(group.clone(), Arc::clone(&config.strategy))
                .confirm_shrink(config.confirm_shrink),
            hand_over: HandOver::default(),
            offsets: RemoteBrokerOffsetStore::new(group.clone()),
            consume_service: ConsumeMessageConcurrentlyService::new(
                &group,
                config.consume_threads,
                config.consume_message_batch_max_size,
                listener,
            ),
            config,
            member: Member::new(Role::Consumer, group, client_config, manager),
            ready: AtomicBool::new(false),
            suspended: AtomicBool::new(false),
            queues_changed: AtomicBool::new(false),
            started_at: AtomicI64::new(0),
            waits_for_memory: AtomicBool::new(false),
            held_pulls: HeldPulls::new(),
            being_moved: Mutex::new(BTreeSet::new()),
            unreachable: UnreachableBrokers::default(),
            trace,
            expiry_check: Mutex::new(None),
        }
    }

    pub(super) fn group(&self) -> &str {
        self.member.group()
    }

    pub(super) fn is_running(&self) -> bool {
        self.member.is_running()
    }

    /// The instance, from the start until the end.
    pub(super) fn instance(&self) -> Option<Arc<MQClientInstance>> {
        self.member.instance()
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

    /// Runs a task on the timer, unless the consumer has ended.
    pub(super) fn later(&self, delay: Duration, task: impl FnOnce() + Send + 'static) {
        if let Some(instance) = self.instance() {
            instance.timer().schedule_once(delay, task);
        }
    }

    /// Joins an instance, learns the routes, tells the brokers, and has the group looked at (Java
    /// `DefaultMQPushConsumerImpl#start`). Servers that cannot be reached do not fail it.
    pub(super) fn start(self: &Arc<Self>) -> Result<()> {
        let instance = self.member.start(|instance| {
            let weak: Weak<Self> = Arc::downgrade(self);
            let of_timer = Weak::clone(&weak);
            let period = self.config.consume_timeout;
            let timer = instance.timer();
            let check = timer.schedule_at_fixed_rate(period, period, move || {
                if let Some(consumer) = of_timer.upgrade() {
                    consumer.give_expired_back();
                }
            });
            *self.expiry_check.lock() = Some(check);
            self.started_at
                .store(system_time_millis(), Ordering::Release);
            instance.register_consumer(self.group(), weak);
        })?;
        // Before the first message.
        if let Some(Err(error)) = self.trace.as_ref().map(|trace| trace.start()) {
            log::warn!("consumer {} is not traced: {error}", self.group());
        }
        let retry_topic = mix_all::retry_topic(self.group());
        let topics = self.subscriptions.topics();
        for topic in topics.iter().filter(|topic| **topic != retry_topic) {
            self.learn_route(&instance, topic);
        }
        instance.send_heartbeat_to_all_broker(Deadline::after(instance.api_timeout()));
        // A new group's retry topic is made by its first heartbeat.
        self.learn_route(&instance, &retry_topic);
        self.ready.store(true, Ordering::Release);
        instance.rebalance_soon(self.group());
        Ok(())
    }

    pub(super) fn learn_route(&self, instance: &MQClientInstance, topic: &str) {
        let deadline = Deadline::after(instance.api_timeout());
        match instance.update_topic_route_info(topic, RouteOf::Topic, deadline) {
            Ok(true) => {}
            Ok(false) if topic == mix_all::retry_topic(self.group()) => {
                log::info!("group {}: topic {topic} has no route yet", self.group());
            }
            Ok(false) => log::warn!(
                "group {}: the name server does not know topic {topic}, is the name right? It is \
                 asked again every {} s (poll_name_server_interval)",
                self.group(),
                self.member
                    .client_config()
                    .poll_name_server_interval
                    .as_secs_f32()
            ),
            Err(error) => log::warn!("group {}: route of {topic}: {error}", self.group()),
        }
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
                failures: 0,
            };
            instance
                .pull_requests()
                .execute_later(Box::new(request), grace);
        }
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
        self.subscriptions.queues_changed();
        self.queues_changed.store(true, Ordering::Release);
        if self.queue_changes.has_listener() {
            let namespace = &self.config.namespace;
            let unwrapped = |queues: &[MessageQueue]| -> Vec<MessageQueue> {
                queues.iter().map(|mq| namespace.unwrap_queue(mq)).collect()
            };
            self.queue_changes.changed(
                &namespace.unwrap(topic),
                unwrapped(mq_all),
                unwrapped(mq_divided),
            );
        }
    }

    /// How many traces were thrown away.
    pub(super) fn trace_discard_count(&self) -> u64 {
        self.trace.as_ref().map_or(0, |trace| trace.discard_count())
    }

    pub(super) fn started_at(&self) -> i64 {
        self.started_at.load(Ordering::Acquire)
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.suspended.load(Ordering::Acquire)
    }

    pub(super) fn set_suspended(&self, suspended: bool) {
        self.suspended.store(suspended, Ordering::Release);
    }
}

impl Client for DefaultMQPushConsumerImpl {
    fn member(&self) -> &Member {
        &self.member
    }

    fn begin_end(&self) -> ServiceState {
        // What the listener has not begun is for the next owners of the queues.
        for (_, queue) in self.rebalance.process_queues() {
            queue.give_up();
        }
        let before = self.member.begin_end();
        self.consume_service.refuse_messages();
        before
    }

    /// The rest of the end, in this order: the listener finishes, so that offsets are true; they are
    /// saved; the group is left, so that others take the queues from there; the queues are dropped;
    /// the last client of an instance stops its threads.
    fn end(&self, before: ServiceState, deadline: Deadline) -> ShutdownReport {
        let reserve = (deadline.remaining() / 5).min(Duration::from_secs(1));
        let drain_until = Deadline::after(deadline.remaining().saturating_sub(reserve));
        let let_go = self.consume_service.let_go();
        let pool = self.consume_service.shutdown(drain_until);
        let let_go = self.consume_service.let_go() - let_go;
        let membership = self.member.take_membership();
        let mut report = ShutdownReport {
            drained: pool.drained.saturating_sub(let_go),
            abandoned: pool.abandoned,
            threads_joined: pool.left == 0,
            ..ShutdownReport::default()
        };
        if let Some(membership) = membership {
            let instance = membership.instance();
            if let Some(check) = self.expiry_check.lock().take() {
                check.cancel();
            }
            let mut queues = self.rebalance.close();
            queues.extend(self.hand_over.take_all());
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
        report.threads_joined &= self.queue_changes.shutdown(deadline);
        if let Some(trace) = &self.trace {
            report.threads_joined &= trace.shutdown(deadline);
        }
        report
    }
}

impl MQConsumerInner for DefaultMQPushConsumerImpl {
    fn consumer_data(&self) -> ConsumerData {
        ConsumerData {
            consume_from_where: self.config.consume_from_where,
            consume_type: ConsumeType::ConsumePassively,
            group_name: self.group().to_owned(),
            message_model: MessageModel::Clustering,
            subscription_data_set: self.subscriptions.told(),
            unit_mode: self.config.unit_mode,
        }
    }

    fn subscribed_topics(&self) -> Vec<String> {
        self.subscriptions.topics().into_iter().collect()
    }

    fn is_subscribe_topic_need_update(&self, topic: &str) -> bool {
        let is_known = self.rebalance.topic_queues(topic).is_some();
        self.subscriptions.get(topic).is_some()
            && (!is_known || self.subscriptions.is_route_awaited(topic))
    }

    fn update_topic_subscribe_info(&self, topic: &str, queues: &Arc<[MessageQueue]>) {
        if self.subscriptions.route_came(topic) && self.rebalance.set_topic_queues(topic, queues) {
            if let Some(instance) = self.instance() {
                instance.rebalance_soon(self.group());
            }
        }
    }

    fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    fn begin_rebalance(self: Arc<Self>) -> Vec<String> {
        if !self.is_running() {
            return Vec::new();
        }
        let hooks = RebalancePushImpl(&self);
        self.rebalance.begin(&self.subscriptions.topics(), &hooks)
    }

    fn rebalance_by_topic(self: Arc<Self>, topic: &str, members: Members<'_>) -> TopicBalance {
        let (true, true, Some(instance)) = (
            self.is_running(),
            self.subscriptions.get(topic).is_some(),
            self.instance(),
        ) else {
            return TopicBalance::Balanced;
        };
        let hooks = RebalancePushImpl(&self);
        self.rebalance
            .rebalance_by_topic(instance.client_id(), topic, members, &hooks)
    }

    fn end_rebalance(&self) {
        if self.queues_changed.swap(false, Ordering::AcqRel) {
            if let Some(instance) = self.instance() {
                instance.heartbeat_soon();
            }
        }
    }

    fn consumer_running_info(&self) -> ConsumerRunningInfo {
        self.running_info()
    }

    fn consume_message_directly(
        self: Arc<Self>,
        message: MessageExt,
    ) -> ConsumeMessageDirectlyResult {
        self.consume_directly(message)
    }

    fn reset_offset(self: Arc<Self>, offsets: &BTreeMap<MessageQueue, i64>) {
        self.reset_offsets(offsets);
    }

    fn consumer_status(&self, topic: &str) -> BTreeMap<MessageQueue, i64> {
        self.status(topic)
    }

    fn persist_consumer_offset(&self) {
        if let (true, Some(instance)) = (self.is_running(), self.instance()) {
            self.offsets.persist_all(&instance);
        }
    }
}

impl fmt::Debug for DefaultMQPushConsumerImpl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DefaultMQPushConsumerImpl")
            .field("group", &self.config.consumer_group)
            .field("state", &self.member.state())
            .finish_non_exhaustive()
    }
}
