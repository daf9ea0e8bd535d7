use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rocketmq_protocol::body::Permission;

use crate::broker::{Broker, Disk, Surroundings};
use crate::broker_config::{BrokerConfig, Shared};
use crate::offset_table::OffsetTable;
use crate::schedule::Schedule;
use crate::server::{Server, Watch};
use crate::store::Store;
use crate::subscription_group_manager::SubscriptionGroupManager;
use crate::timer::Timer;
use crate::topic_config::TopicConfig;

/// A broker's name, address and memory, and the broker while it is up.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) name: Arc<str>,
    pub(crate) addr: SocketAddr,
    around: Surroundings,
    delay_levels: Vec<Duration>,
    disk: Mutex<Disk>,
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    broker: Arc<Broker>,
    server: Server,
}

/// Where clients write what happened to messages.
pub(crate) const TRACE_TOPIC: &str = "RMQ_SYS_TRACE_TOPIC";
/// Where replies are stored, one for the cluster.
const REPLY_TOPIC: &str = "DefaultCluster_REPLY_TOPIC";

/// How long a restarted server waits for its port: another process may have it for a moment, or
/// the old listener is still being closed.
const REBIND_LIMIT: Duration = Duration::from_secs(5);
const REBIND_PAUSE: Duration = Duration::from_millis(10);

impl Node {
    pub(crate) fn new(
        name: Arc<str>,
        addr: SocketAddr,
        config: BrokerConfig,
        delay_levels: Vec<Duration>,
        around: impl FnOnce(Arc<Shared<BrokerConfig>>, Arc<AtomicBool>) -> Surroundings,
    ) -> Self {
        let config = Arc::new(Shared::new(config));
        let around = around(config, Arc::new(AtomicBool::new(true)));
        let disk = new_disk(&name, addr, &around, &delay_levels);
        Self {
            name,
            addr,
            around,
            delay_levels,
            disk: Mutex::new(disk),
            running: Mutex::new(None),
        }
    }

    pub(crate) fn disk(&self) -> Disk {
        self.disk.lock().clone()
    }

    pub(crate) fn broker(&self) -> Option<Arc<Broker>> {
        let running = self.running.lock();
        running.as_ref().map(|running| Arc::clone(&running.broker))
    }

    pub(crate) fn config(&self) -> BrokerConfig {
        BrokerConfig::clone(&self.around.config.get())
    }

    /// Other settings from now on.
    pub(crate) fn set_config(&self, config: BrokerConfig) {
        let permission = self.around.config.get().broker_permission;
        let changed = permission != config.broker_permission;
        self.around.config.set(config);
        if let Some(broker) = self.broker().filter(|_| changed) {
            broker.register_anew();
        }
    }

    /// Whether the broker registers with the name server.
    pub(crate) fn set_registers(&self, registers: bool) {
        self.around.registers.store(registers, Ordering::SeqCst);
        if !registers {
            self.around.registry.silence(&self.name);
        } else if let Some(broker) = self.broker() {
            broker.register();
        }
    }

    /// Starts the broker on its port, unless it is up.
    pub(crate) fn start(
        &self,
        listener: Option<TcpListener>,
        watch: &Watch,
        write_timeout: Duration,
    ) -> io::Result<()> {
        let mut running = self.running.lock();
        if running.is_some() {
            return Ok(());
        }
        let listener = match listener {
            Some(listener) => listener,
            None => rebind(&self.name, self.addr.port())?,
        };
        let timer = Timer::new();
        let broker = Broker::new(
            Arc::clone(&self.name),
            self.addr,
            self.disk(),
            self.around.clone(),
            Arc::clone(&timer),
        );
        let service = Arc::clone(&broker);
        let server = Server::start(listener, service, watch.clone(), timer, write_timeout)?;
        broker.register();
        *running = Some(Running { broker, server });
        Ok(())
    }

    /// Ends the broker. Without a good-bye the name server has to find out.
    pub(crate) fn stop(&self, good_bye: bool) {
        // Taken out under the lock, joined without it, so that others can look meanwhile.
        let running = {
            let mut running = self.running.lock();
            if good_bye {
                self.around.registry.unregister(&self.name);
            } else {
                self.around.registry.silence(&self.name);
            }
            running.take()
        };
        drop(running);
    }

    /// Loses all that lies on disk; only of a broker that is down.
    pub(crate) fn wipe(&self) -> io::Result<()> {
        let running = self.running.lock();
        if running.is_some() {
            let text = format!(
                "{} is up; its store can only be lost while it is down",
                self.name
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        *self.disk.lock() = new_disk(&self.name, self.addr, &self.around, &self.delay_levels);
        drop(running);
        Ok(())
    }

    pub(crate) fn connections(&self) -> Vec<Arc<crate::connection::Connection>> {
        let running = self.running.lock();
        let running = running.as_ref();
        running.map_or_else(Vec::new, |running| running.server.connections())
    }
}

fn new_disk(
    name: &Arc<str>,
    addr: SocketAddr,
    around: &Surroundings,
    delay_levels: &[Duration],
) -> Disk {
    let config = around.config.get();
    let template = config.auto_create_topic;
    let template = template.then_some(config.default_topic_queue_nums);
    let registry = Arc::downgrade(&around.registry);
    let store = Store::new(Arc::clone(name), addr, template, registry);
    store.set_topic(REPLY_TOPIC, TopicConfig::new(1, Permission::READ_WRITE));
    if config.trace_topic_enable {
        store.set_topic(TRACE_TOPIC, TopicConfig::new(1, Permission::READ_WRITE));
    }
    Disk {
        store: Arc::new(store),
        offsets: Arc::new(OffsetTable::default()),
        groups: Arc::new(SubscriptionGroupManager::default()),
        schedule: Arc::new(Schedule::new(delay_levels.to_vec())),
        timers: Arc::default(),
        transactions: Arc::default(),
    }
}

/// Listens on a port.
pub(crate) fn bind(name: &str, port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| {
        let text = format!("{name} cannot listen on port {port}: {error}");
        io::Error::new(error.kind(), text)
    })
}

/// Listens on a port that was in use until now.
pub(crate) fn rebind(name: &str, port: u16) -> io::Result<TcpListener> {
    let deadline = Instant::now() + REBIND_LIMIT;
    loop {
        match bind(name, port) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && Instant::now() < deadline => {
                thread::sleep(REBIND_PAUSE);
            }
            other => return other,
        }
    }
}
