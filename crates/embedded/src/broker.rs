use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use rocketmq_protocol::RemotingCommand;
use rocketmq_protocol::body::{Permission, SubscriptionGroupConfig};

use crate::broker_config::{BrokerConfig, Shared};
use crate::connection::{Call, CallEnd, Connection};
use crate::consumer_manager::{Change, ConsumerManager};
use crate::control_action::ServerName;
use crate::handler;
use crate::heartbeat_fingerprints::HeartbeatFingerprints;
use crate::long_polling::{LongPolling, ParkedPull};
use crate::member_views::MemberViews;
use crate::notes::Notes;
use crate::offset_table::OffsetTable;
use crate::producer_manager::ProducerManager;
use crate::rebalance_lock_manager::RebalanceLockManager;
use crate::registry::{Registration, Registry};
use crate::reply::Reply;
use crate::schedule::Schedule;
use crate::server::Service;
use crate::store::Store;
use crate::subscription_group_manager::SubscriptionGroupManager;
use crate::timer::Timer;
use crate::timer_message_store::TimerMessageStore;
use crate::topic_config::TopicConfig;
use crate::transactions::Transactions;

/// The one cluster that all brokers belong to.
pub(crate) const CLUSTER_NAME: &str = "DefaultCluster";

/// What remains of a broker while it is down.
#[derive(Debug, Clone)]
pub(crate) struct Disk {
    pub(crate) store: Arc<Store>,
    pub(crate) offsets: Arc<OffsetTable>,
    pub(crate) groups: Arc<SubscriptionGroupManager>,
    pub(crate) schedule: Arc<Schedule>,
    pub(crate) timers: Arc<TimerMessageStore>,
    pub(crate) transactions: Arc<Transactions>,
}

/// What a broker is given by its cluster.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    pub(crate) config: Arc<Shared<BrokerConfig>>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) notes: Arc<Notes>,
    pub(crate) views: Arc<MemberViews>,
    /// Whether the broker registers with the name server.
    pub(crate) registers: Arc<AtomicBool>,
}

/// One running broker. Handlers are in [`handler`]; this is the state they share.
#[derive(Debug)]
pub(crate) struct Broker {
    pub(crate) name: Arc<str>,
    pub(crate) addr: SocketAddr,
    pub(crate) store: Arc<Store>,
    pub(crate) offsets: Arc<OffsetTable>,
    pub(crate) consumers: ConsumerManager,
    pub(crate) producers: ProducerManager,
    pub(crate) locks: RebalanceLockManager,
    pub(crate) heartbeat_fingerprints: HeartbeatFingerprints,
    pub(crate) groups: Arc<SubscriptionGroupManager>,
    pub(crate) timers: Arc<TimerMessageStore>,
    pub(crate) transactions: Arc<Transactions>,
    around: Surroundings,
    pub(crate) schedule: Arc<Schedule>,
    polls: LongPolling,
    /// Changes that are not told at once, the last one of each group.
    untold: Mutex<HashMap<String, Change>>,
    timer: Arc<Timer>,
    stopping: AtomicBool,
    next_queue: AtomicU32,
    this: Weak<Self>,
}

impl Broker {
    pub(crate) fn new(
        name: Arc<str>,
        addr: SocketAddr,
        disk: Disk,
        around: Surroundings,
        timer: Arc<Timer>,
    ) -> Arc<Self> {
        let broker = Arc::new_cyclic(|this| Self {
            name,
            addr,
            store: disk.store,
            offsets: disk.offsets,
            groups: disk.groups,
            schedule: disk.schedule,
            timers: disk.timers,
            transactions: disk.transactions,
            consumers: ConsumerManager::default(),
            producers: ProducerManager::default(),
            locks: RebalanceLockManager::default(),
            heartbeat_fingerprints: HeartbeatFingerprints::default(),
            around,
            polls: LongPolling::default(),
            untold: Mutex::default(),
            timer,
            stopping: AtomicBool::new(false),
            next_queue: AtomicU32::new(0),
            this: Weak::clone(this),
        });
        broker.repeat(BrokerConfig::sweep, Self::sweep_polls);
        broker.repeat(|config| config.member_scan, Self::expire_members);
        broker.repeat(|config| config.notify_period, Self::tell_untold);
        broker.repeat(|config| config.register_period, Self::register);
        broker.repeat(
            |config| config.transaction_check_interval,
            Self::check_transactions,
        );
        for delay in broker.timers.delays() {
            broker.later(delay, Self::deliver_timers);
        }
        for delay in broker.schedule.delays() {
            broker.later(delay, Self::deliver_due);
        }
        broker
    }

    pub(crate) fn config(&self) -> Arc<BrokerConfig> {
        self.around.config.get()
    }

    pub(crate) fn views(&self) -> &MemberViews {
        &self.around.views
    }

    /// Finds a group's settings, or creates the group if that is allowed.
    pub(crate) fn find_group(&self, group: &str) -> Option<Arc<SubscriptionGroupConfig>> {
        let auto_create = self.config().auto_create_subscription_group;
        self.groups.find(group, auto_create)
    }

    /// Creates a topic for messages that are given back or given up, if it is new.
    pub(crate) fn send_back_topic(&self, topic: &str, queues: i32, order: bool) -> TopicConfig {
        let config = TopicConfig {
            order,
            ..TopicConfig::new(queues, Permission::READ_WRITE)
        };
        let known = self.store.topic_or_create(topic, config);
        self.store.set_order(topic, order);
        known
    }

    /// Deletes a topic, its messages and all offsets on it.
    pub(crate) fn delete_topic(&self, topic: &str) {
        self.store.delete_topic(topic);
        self.offsets.forget_topic(topic);
    }

    /// Registers with the name server, and hears which topics are ordered.
    pub(crate) fn register(&self) {
        if self.around.registers.load(Ordering::SeqCst) {
            for topic in self.around.registry.ordered_topics() {
                self.store.set_order(&topic, true);
            }
            self.around.registry.register(&self.registration());
        }
    }

    /// Registers all topics anew, for a permission that changed.
    pub(crate) fn register_anew(&self) {
        if self.around.registers.load(Ordering::SeqCst) {
            self.around.registry.register_anew(&self.registration());
        }
    }

    fn registration(&self) -> Registration {
        Registration {
            name: Arc::clone(&self.name),
            addr: self.addr.to_string(),
            store: Arc::clone(&self.store),
            config: Arc::clone(&self.around.config),
        }
    }

    /// Sends a request to a client that does not answer it.
    pub(crate) fn tell_client(&self, connection: &Connection, mut request: RemotingCommand) {
        request.opaque = self.around.notes.next_opaque();
        request.mark_oneway();
        connection.send(request);
    }

    /// For what comes later on some other thread.
    pub(crate) fn weak(&self) -> Weak<Self> {
        Weak::clone(&self.this)
    }

    /// Sends a request to a client. `end` is called once, on some thread of this broker.
    pub(crate) fn call_client(
        &self,
        connection: &Arc<Connection>,
        mut request: RemotingCommand,
        end: Call,
    ) {
        let opaque = self.around.notes.next_opaque();
        request.opaque = opaque;
        connection.call(request, end);
        let connection = Arc::clone(connection);
        self.later(self.config().call_client_timeout, move |_| {
            connection.end_call(opaque, CallEnd::Timeout);
        });
    }

    /// The queue that a send asks for, or some queue of the topic if it leaves the choice to the broker.
    pub(crate) fn queue_for(&self, asked: i32, config: &TopicConfig) -> i32 {
        if asked < 0 {
            self.any_queue(config.write_queue_nums)
        } else {
            asked
        }
    }

    /// Some queue of so many, for requests that leave the choice to the broker.
    pub(crate) fn any_queue(&self, queues: i32) -> i32 {
        let number = self.next_queue.fetch_add(1, Ordering::Relaxed);
        u32::try_from(queues)
            .ok()
            .and_then(|queues| number.checked_rem(queues))
            .map_or(0, |queue| queue as i32)
    }

    /// Tells the members of groups that changed, unless the broker is going down: a broker that
    /// dies says nothing.
    pub(crate) fn notify(&self, changes: impl IntoIterator<Item = Change>) {
        let config = self.config();
        for change in changes {
            if self.stopping.load(Ordering::SeqCst) || !config.notify_consumer_ids_changed {
                return;
            }
            if config.real_time_notify {
                self.tell(&change);
            } else {
                let mut untold = self.untold.lock();
                untold.insert(change.group.clone(), change);
            }
        }
    }

    fn tell(&self, change: &Change) {
        self.around.notes.send(&self.name, &self.timer, change);
    }

    fn tell_untold(&self) {
        let untold = std::mem::take(&mut *self.untold.lock());
        for change in untold.values() {
            self.tell(change);
        }
    }

    /// Keeps a pull until a message comes for it or its time is over.
    pub(crate) fn park(&self, topic: &str, queue_id: i32, pull: ParkedPull) {
        let from_offset = pull.from_offset;
        let connection = Arc::clone(pull.reply.connection());
        self.polls.park(topic, queue_id, pull);
        if connection.is_closed() {
            self.polls.forget(&connection);
        }
        // A message that was stored between the look into the queue and the parking woke nobody.
        if self.store.max_offset(topic, queue_id) > from_offset {
            self.wake(topic, queue_id, None);
        }
    }

    /// Has pulls answered that wait for what a queue has got.
    pub(crate) fn wake(&self, topic: &str, queue_id: i32, tags_code: Option<i32>) {
        let end = self.store.max_offset(topic, queue_id);
        let pulls = self.polls.take_arrived(topic, queue_id, end, tags_code);
        if !pulls.is_empty() {
            // The sender must not wait for pullers' sockets.
            self.later(Duration::ZERO, move |broker| broker.answer_pulls(pulls));
        }
    }

    fn sweep_polls(&self) {
        let due = self
            .polls
            .take_due(|topic, queue_id| self.store.max_offset(topic, queue_id));
        self.answer_pulls(due);
    }

    fn answer_pulls(&self, pulls: Vec<ParkedPull>) {
        for pull in pulls {
            let response = handler::resume_pull(self, &pull.request);
            pull.reply.send(response);
        }
    }

    /// The members' end is told to nobody: they are gone when their connections close.
    fn expire_members(&self) {
        let config = self.config();
        let mut expired = self.consumers.remove_expired(config.member_expiry);
        expired.append(&mut self.producers.remove_expired(config.producer_expiry));
        for connection in expired {
            log::debug!("{}: {connection:?} sent no heartbeat in time", self.name);
            connection.close();
        }
    }

    /// Does something later, unless the broker is gone by then.
    pub(crate) fn later(&self, after: Duration, task: impl FnOnce(&Self) + Send + 'static) {
        let this = Weak::clone(&self.this);
        self.timer.schedule(after, move || {
            if let Some(broker) = this.upgrade() {
                task(&broker);
            }
        });
    }

    fn repeat(
        &self,
        period: impl Fn(&BrokerConfig) -> Duration + Send + 'static,
        task: impl Fn(&Self) + Send + 'static,
    ) {
        let this = Weak::clone(&self.this);
        self.timer
            .repeat(this, move |broker| period(&broker.config()), task);
    }
}

impl Service for Broker {
    fn name(&self) -> ServerName<'_> {
        ServerName::Broker(&self.name)
    }

    fn process(&self, request: RemotingCommand, reply: Reply) {
        handler::process(self, request, reply);
    }

    fn idle_limit(&self) -> Duration {
        self.config().server_idle
    }

    fn connection_closed(&self, connection: &Connection) {
        self.polls.forget(connection);
        self.producers.connection_closed(connection);
        self.notify(self.consumers.connection_closed(connection));
    }

    fn stopping(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }
}
