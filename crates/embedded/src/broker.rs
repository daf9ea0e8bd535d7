use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use rocketmq_protocol::body::{Permission, SubscriptionGroupConfig};
use rocketmq_protocol::{
    CodecError, Properties, RemotingCommand, StoredMessage, decode_properties, encode_properties,
    property, response_code, sys_flag,
};

use crate::broker_config::{BrokerConfig, Shared};
use crate::connection::{Call, CallEnd, Connection};
use crate::consumer_manager::{Change, ConsumerManager};
use crate::control_action::ServerName;
use crate::handler;
use crate::long_polling::{LongPolling, ParkedPull};
use crate::member_views::MemberViews;
use crate::notes::Notes;
use crate::offset_table::OffsetTable;
use crate::producer_manager::ProducerManager;
use crate::rebalance_lock_manager::RebalanceLockManager;
use crate::registry::{Registration, Registry};
use crate::reply::Reply;
use crate::schedule::{SCHEDULE_TOPIC, Schedule};
use crate::server::Service;
use crate::store::{Placed, Store};
use crate::subscription_group_manager::SubscriptionGroupManager;
use crate::timer::Timer;
use crate::timer_message_store::{
    TIMER_PROPERTIES, TIMER_TOPIC, TimerMessageStore, is_timer_message, timer_out_millis,
};
use crate::topic_config::TopicConfig;
use crate::transactions::{HALF_TOPIC, Transactions};

/// The one cluster that all brokers belong to.
pub(crate) const CLUSTER_NAME: &str = "DefaultCluster";

/// Why a message is not stored.
#[derive(Debug)]
pub(crate) enum PutError {
    Codec(CodecError),
    /// It asks for a time that is none, or too far away.
    TimerIllegal {
        max_delay: Duration,
    },
    /// It asks for a time, which is switched off.
    TimerOff,
}

impl From<CodecError> for PutError {
    fn from(error: CodecError) -> Self {
        Self::Codec(error)
    }
}

impl fmt::Display for PutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Codec(error) => error.fmt(f),
            Self::TimerIllegal { max_delay } => write!(
                f,
                "timer message illegal, the delay time should not be bigger than the max delay \
                 {}ms; or if set del msg, the delay time should be bigger than the current time",
                max_delay.as_millis()
            ),
            Self::TimerOff => {
                f.write_str("accurate timer message is not enabled, timerWheelEnable is false")
            }
        }
    }
}

impl PutError {
    /// The code and the words with which a sender is refused.
    pub(crate) fn refusal(&self) -> (i32, String) {
        let code = match self {
            Self::Codec(_) | Self::TimerIllegal { .. } => response_code::MESSAGE_ILLEGAL,
            Self::TimerOff => response_code::SYSTEM_ERROR,
        };
        (code, self.to_string())
    }
}

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
    pub(crate) heartbeat_fingerprints: handler::Fingerprints,
    pub(crate) groups: Arc<SubscriptionGroupManager>,
    pub(crate) timers: Arc<TimerMessageStore>,
    pub(crate) transactions: Arc<Transactions>,
    around: Surroundings,
    schedule: Arc<Schedule>,
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
            heartbeat_fingerprints: handler::Fingerprints::default(),
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

    /// Stores a message, for its topic or, with a delay level or a time, for when it is due (Java
    /// `HookUtils#handleScheduleMessage`).
    pub(crate) fn put(&self, message: StoredMessage) -> Result<Placed, PutError> {
        let state = message.sys_flag & sys_flag::TRANSACTION_MASK;
        if state != 0 && state != sys_flag::TRANSACTION_COMMIT {
            return Ok(self.put_now(message)?);
        }
        let properties = decode_properties(&message.properties);
        let level = properties
            .get(property::DELAY_TIME_LEVEL)
            .and_then(|level| self.schedule.level(level));
        if let Some(level) = level {
            return Ok(self.put_delayed(message, properties, level)?);
        }
        if is_timer_message(&properties) {
            let config = self.config();
            if let Some(out_millis) = timer_out_millis(&properties, &config)? {
                return Ok(self.put_timer(message, properties, out_millis, &config)?);
            }
        }
        Ok(self.put_now(message)?)
    }

    fn put_timer(
        &self,
        mut message: StoredMessage,
        mut properties: Properties,
        out_millis: i64,
        config: &BrokerConfig,
    ) -> Result<Placed, CodecError> {
        let topic = std::mem::take(&mut message.topic);
        let uniq_key = properties.get(property::UNIQ_KEY).cloned();
        for (name, value) in [
            (property::TIMER_OUT_MS, out_millis.to_string()),
            (property::REAL_TOPIC, topic.clone()),
            (property::REAL_QUEUE_ID, message.queue_id.to_string()),
        ] {
            properties.insert(name.to_owned(), value);
        }
        message.properties = encode_properties(&properties);
        TIMER_TOPIC.clone_into(&mut message.topic);
        message.queue_id = 0;
        let topic_config = TopicConfig::new(1, Permission::READ_WRITE);
        self.store.topic_or_create(TIMER_TOPIC, topic_config);
        let placed = self.put_now(message)?;
        let key = (topic, uniq_key.unwrap_or_default());
        let offset = placed.commit_log_offset;
        let delay = self.timers.add(out_millis, config, offset, key);
        self.later(delay, Self::deliver_timers);
        Ok(Placed {
            timer_out_millis: Some(out_millis),
            ..placed
        })
    }

    fn deliver_timers(&self) {
        for timer in self.timers.take_due() {
            let stored = self.store.message_at(timer.commit_log_offset);
            let Some(message) = stored.and_then(|bytes| timer.due_form(bytes)) else {
                log::error!(
                    "{}: no timer message at {}",
                    self.name,
                    timer.commit_log_offset
                );
                continue;
            };
            if let Err(error) = self.put_now(message) {
                log::error!("{}: timer message is lost: {error}", self.name);
            }
        }
    }

    fn put_delayed(
        &self,
        mut message: StoredMessage,
        mut properties: Properties,
        level: i32,
    ) -> Result<Placed, CodecError> {
        for name in TIMER_PROPERTIES {
            properties.remove(name);
        }
        for (name, value) in [
            (property::REAL_TOPIC, std::mem::take(&mut message.topic)),
            (property::REAL_QUEUE_ID, message.queue_id.to_string()),
        ] {
            properties.insert(name.to_owned(), value);
        }
        message.properties = encode_properties(&properties);
        SCHEDULE_TOPIC.clone_into(&mut message.topic);
        message.queue_id = level - 1;
        let config = TopicConfig::new(self.schedule.levels(), Permission::READ_WRITE);
        self.store.topic_or_create(SCHEDULE_TOPIC, config);
        let placed = self.put_now(message)?;
        let delay = self.schedule.add(level, placed.commit_log_offset);
        self.later(delay, Self::deliver_due);
        Ok(placed)
    }

    /// Stores messages of one queue one after the other, with no other in between.
    pub(crate) fn put_all(&self, messages: Vec<StoredMessage>) -> Result<Vec<Placed>, CodecError> {
        let place = messages
            .first()
            .map(|message| (message.topic.clone(), message.queue_id));
        let placed = self.store.put_all(messages)?;
        if let Some((topic, queue_id)) = place {
            for message in &placed {
                self.wake(&topic, queue_id, Some(message.tags_code));
            }
        }
        Ok(placed)
    }

    fn put_now(&self, message: StoredMessage) -> Result<Placed, CodecError> {
        let topic = message.topic.clone();
        let queue_id = message.queue_id;
        let placed = self.store.put(message)?;
        self.wake(&topic, queue_id, Some(placed.tags_code));
        Ok(placed)
    }

    fn deliver_due(&self) {
        for commit_log_offset in self.schedule.take_due() {
            let delayed = self.store.message_at(commit_log_offset);
            let Some(message) = delayed.and_then(handler::due_message) else {
                log::error!("{}: no delayed message at {commit_log_offset}", self.name);
                continue;
            };
            if message.topic == HALF_TOPIC {
                // A half message that was delayed; a real broker loses it here, too.
                log::error!("{}: a delayed half message is given up", self.name);
                continue;
            }
            if let Err(error) = self.put_now(message) {
                log::error!("{}: delayed message is lost: {error}", self.name);
            }
        }
    }

    fn wake(&self, topic: &str, queue_id: i32, tags_code: Option<i32>) {
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

    fn later(&self, after: Duration, task: impl FnOnce(&Self) + Send + 'static) {
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
