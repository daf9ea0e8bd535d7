use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use rocketmq_protocol::body::Permission;
use rocketmq_protocol::{
    CodecError, RemotingCommand, StoredMessage, decode_properties, encode_properties, property,
};

use crate::connection::Connection;
use crate::consumer_manager::{Change, ConsumerManager};
use crate::control::ServerName;
use crate::handler;
use crate::long_polling::{LongPolling, ParkedPull};
use crate::notes::Notes;
use crate::offset_table::OffsetTable;
use crate::schedule::{SCHEDULE_TOPIC, Schedule};
use crate::server::Service;
use crate::store::{Placed, Store};
use crate::timer::Timer;
use crate::topic_config::TopicConfig;

/// The one cluster that all brokers belong to.
pub(crate) const CLUSTER_NAME: &str = "DefaultCluster";

/// The periods of a broker's own work.
#[derive(Debug, Clone)]
pub(crate) struct Periods {
    /// How often parked pulls are looked at.
    pub(crate) long_poll_sweep: Duration,
    /// How long a member lives without a heartbeat.
    pub(crate) member_expiry: Duration,
    /// How often members are looked at.
    pub(crate) member_scan: Duration,
}

/// What remains of a broker while it is down.
#[derive(Debug, Clone)]
pub(crate) struct Disk {
    pub(crate) store: Arc<Store>,
    pub(crate) offsets: Arc<OffsetTable>,
    pub(crate) schedule: Arc<Schedule>,
}

/// One running broker. Handlers are in [`handler`]; this is the state they share.
#[derive(Debug)]
pub(crate) struct Broker {
    pub(crate) name: Arc<str>,
    pub(crate) addr: SocketAddr,
    pub(crate) store: Arc<Store>,
    pub(crate) offsets: Arc<OffsetTable>,
    pub(crate) consumers: ConsumerManager,
    pub(crate) heartbeat_fingerprints: handler::Fingerprints,
    schedule: Arc<Schedule>,
    polls: LongPolling,
    notes: Arc<Notes>,
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
        notes: Arc<Notes>,
        timer: Arc<Timer>,
        periods: &Periods,
    ) -> Arc<Self> {
        let broker = Arc::new_cyclic(|this| Self {
            name,
            addr,
            store: disk.store,
            offsets: disk.offsets,
            schedule: disk.schedule,
            consumers: ConsumerManager::default(),
            heartbeat_fingerprints: handler::Fingerprints::default(),
            polls: LongPolling::default(),
            notes,
            timer,
            stopping: AtomicBool::new(false),
            next_queue: AtomicU32::new(0),
            this: Weak::clone(this),
        });
        broker.repeat(periods.long_poll_sweep, Self::sweep_polls);
        let expiry = periods.member_expiry;
        broker.repeat(periods.member_scan, move |broker| {
            broker.expire_members(expiry);
        });
        for delay in broker.schedule.delays() {
            broker.later(delay, Self::deliver_due);
        }
        broker
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
        for change in changes {
            if self.stopping.load(Ordering::SeqCst) {
                return;
            }
            self.notes.send(&change);
        }
    }

    /// Keeps a pull until a message comes for it or its time is over.
    pub(crate) fn park(&self, topic: &str, queue_id: i32, pull: ParkedPull) {
        let from_offset = pull.from_offset;
        let connection = Arc::clone(&pull.connection);
        self.polls.park(topic, queue_id, pull);
        if connection.is_closed() {
            self.polls.forget(&connection);
        }
        // A message that was stored between the look into the queue and the parking woke nobody.
        if self.store.max_offset(topic, queue_id) > from_offset {
            self.wake(topic, queue_id, None);
        }
    }

    /// Stores a message, for its topic or, with a delay level, for the time when it is due (Java
    /// `HookUtils#handleScheduleMessage`).
    pub(crate) fn put(&self, mut message: StoredMessage) -> Result<Placed, CodecError> {
        let mut properties = decode_properties(&message.properties);
        let level = properties
            .get(property::DELAY_TIME_LEVEL)
            .and_then(|level| self.schedule.level(level));
        let Some(level) = level else {
            return self.put_now(message);
        };
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
            if !pull.request.is_oneway() {
                pull.connection.send(response);
            }
        }
    }

    fn expire_members(&self, expiry: Duration) {
        let (changes, expired) = self.consumers.remove_expired(expiry);
        for connection in expired {
            log::debug!("{}: {connection:?} sent no heartbeat in time", self.name);
            connection.close();
        }
        self.notify(changes);
    }

    fn later(&self, after: Duration, task: impl FnOnce(&Self) + Send + 'static) {
        let this = Weak::clone(&self.this);
        self.timer.schedule(after, move || {
            if let Some(broker) = this.upgrade() {
                task(&broker);
            }
        });
    }

    fn repeat(&self, period: Duration, task: impl Fn(&Self) + Send + 'static) {
        self.later(period, move |broker| {
            task(broker);
            broker.repeat(period, task);
        });
    }
}

impl Service for Broker {
    fn name(&self) -> ServerName<'_> {
        ServerName::Broker(&self.name)
    }

    fn process(
        &self,
        connection: &Arc<Connection>,
        request: RemotingCommand,
    ) -> Option<RemotingCommand> {
        handler::process(self, connection, request)
    }

    fn connection_closed(&self, connection: &Connection) {
        self.polls.forget(connection);
        self.notify(self.consumers.connection_closed(connection));
    }

    fn stopping(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }
}
