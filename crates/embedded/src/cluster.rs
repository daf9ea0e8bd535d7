use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rocketmq_protocol::body::Permission;
use rocketmq_protocol::{MessageExt, MessageQueue};

use crate::broker::{Broker, Disk, Periods};
use crate::cluster_builder::{ClusterBuilder, PORT_STEP};
use crate::control::{ControlAction, ControlHandle, ControlScope, ControlTimes, Controls};
use crate::name_server::{NameServer, Registry};
use crate::notes::Notes;
use crate::offset_table::OffsetTable;
use crate::schedule::Schedule;
use crate::server::Server;
use crate::store::Store;
use crate::timer::Timer;
use crate::topic_config::{TopicConfig, validate_topic};

/// A name server and its brokers, all masters of the cluster `DefaultCluster`.
///
/// All methods may be called from any thread. Dropping it is [`Cluster::shutdown`].
#[derive(Debug)]
pub struct Cluster {
    name_server_addr: SocketAddr,
    name_server: Mutex<Option<Server>>,
    nodes: Vec<Node>,
    registry: Arc<Registry>,
    controls: Arc<Controls>,
    notes: Arc<Notes>,
    periods: Periods,
    write_timeout: Duration,
}

/// A broker's name, address and memory, and the broker while it is up.
#[derive(Debug)]
struct Node {
    name: Arc<str>,
    addr: SocketAddr,
    disk: Disk,
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    broker: Arc<Broker>,
    server: Server,
}

/// How long a restarted broker waits for its port: another process may have it for a moment, or
/// the old listener is still being closed.
const REBIND_LIMIT: Duration = Duration::from_secs(5);
const REBIND_PAUSE: Duration = Duration::from_millis(10);

impl Cluster {
    /// Settings for a new cluster; one broker on free ports unless told otherwise.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let cluster = rocketmq_embedded::Cluster::builder().brokers(2).start()?;
    /// assert_eq!(cluster.broker_names(), ["broker-a", "broker-b"]);
    /// assert!(cluster.namesrv_addr().starts_with("127.0.0.1:"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder::default()
    }

    pub(crate) fn start(settings: &ClusterBuilder) -> io::Result<Self> {
        let registry = Arc::new(Registry::default());
        let controls = Arc::new(Controls::default());
        let listener = bind("name server", settings.namesrv_port)?;
        let name_server_addr = listener.local_addr()?;
        let service = Arc::new(NameServer {
            registry: Arc::clone(&registry),
        });
        let name_server = Server::start(
            listener,
            service,
            Arc::clone(&controls),
            Timer::new(),
            settings.write_timeout,
        )?;
        let mut cluster = Self {
            name_server_addr,
            name_server: Mutex::new(Some(name_server)),
            nodes: Vec::new(),
            registry,
            controls,
            notes: Arc::new(Notes::new(settings.notify_consumer_ids_changed)),
            periods: settings.periods.clone(),
            write_timeout: settings.write_timeout,
        };
        for (index, letter) in ('a'..='z').take(settings.brokers).enumerate() {
            let name: Arc<str> = format!("broker-{letter}").into();
            let port = match settings.broker_port {
                0 => 0,
                first => first.saturating_add(PORT_STEP.saturating_mul(index as u16)),
            };
            let listener = bind(&name, port)?;
            let addr = listener.local_addr()?;
            let store = Store::new(Arc::clone(&name), addr, settings.auto_create_topic);
            let node = Node {
                name,
                addr,
                disk: Disk {
                    store: Arc::new(store),
                    offsets: Arc::new(OffsetTable::default()),
                    schedule: Arc::new(Schedule::new(settings.delay_levels.clone())),
                },
                running: Mutex::new(None),
            };
            *node.running.lock() = Some(cluster.run(&node, listener)?);
            cluster.nodes.push(node);
        }
        Ok(cluster)
    }

    fn run(&self, node: &Node, listener: TcpListener) -> io::Result<Running> {
        let timer = Timer::new();
        let broker = Broker::new(
            Arc::clone(&node.name),
            node.addr,
            node.disk.clone(),
            Arc::clone(&self.notes),
            Arc::clone(&timer),
            &self.periods,
        );
        let service = Arc::clone(&broker);
        let controls = Arc::clone(&self.controls);
        let server = Server::start(listener, service, controls, timer, self.write_timeout)?;
        let store = Arc::clone(&node.disk.store);
        self.registry
            .register(&node.name, node.addr.to_string(), store);
        Ok(Running { broker, server })
    }

    /// What a client is given as its name server address, `127.0.0.1:port`.
    pub fn namesrv_addr(&self) -> String {
        self.name_server_addr.to_string()
    }

    /// The names of all brokers, up or not: `broker-a`, `broker-b` and so on.
    pub fn broker_names(&self) -> Vec<String> {
        self.nodes
            .iter()
            .map(|node| node.name.to_string())
            .collect()
    }

    /// A broker's address, `127.0.0.1:port`; `None` for a name that no broker has. It stays the
    /// same while the broker is down.
    pub fn broker_addr(&self, name: &str) -> Option<String> {
        self.node(name).ok().map(|node| node.addr.to_string())
    }

    /// Creates a topic on all brokers, for reading and writing (permission 6), or gives an existing
    /// one that many queues. Clients find it at once.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a name that a topic cannot have.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let cluster = rocketmq_embedded::Cluster::builder().start()?;
    /// cluster.create_topic("Orders", 8)?;
    /// assert!(cluster.create_topic("no blanks", 8).is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn create_topic(&self, topic: &str, queues_per_broker: u16) -> io::Result<()> {
        self.nodes
            .iter()
            .try_for_each(|node| node.create_topic(topic, queues_per_broker))
    }

    /// The same on one broker only.
    ///
    /// # Errors
    /// As [`Cluster::create_topic`]; [`io::ErrorKind::NotFound`] when no broker has this name.
    pub fn create_topic_on(&self, broker: &str, topic: &str, queues: u16) -> io::Result<()> {
        self.node(broker)?.create_topic(topic, queues)
    }

    /// Whether brokers tell the members of a group that it changed (NOTIFY_CONSUMER_IDS_CHANGED).
    /// Without it members find out at their next periodic rebalance.
    pub fn set_notify_consumer_ids_changed(&self, enabled: bool) {
        self.notes.set_enabled(enabled);
    }

    /// How many such notes members of a group were sent, by all brokers.
    pub fn notes_sent(&self, group: &str) -> u64 {
        self.notes.sent(group)
    }

    /// Stops a broker: its connections end, and the name server forgets it at once. Its messages
    /// and offsets stay, group members do not. Nothing happens if it is not up.
    ///
    /// # Blocking
    /// Until its threads have ended: requests in process, each at most the write timeout.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] when no broker has this name.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let cluster = rocketmq_embedded::Cluster::builder().brokers(2).start()?;
    /// cluster.stop_broker("broker-b")?;
    /// cluster.start_broker("broker-b")?;
    /// assert!(cluster.stop_broker("broker-x").is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn stop_broker(&self, name: &str) -> io::Result<()> {
        let node = self.node(name)?;
        self.stop(node);
        Ok(())
    }

    /// Starts a stopped broker again, on the same port and with what it had stored. Nothing happens
    /// if it is up.
    ///
    /// # Blocking
    /// Up to 5 s while something else has the port.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] when no broker has this name; otherwise what the system says to
    /// a socket or a thread.
    pub fn start_broker(&self, name: &str) -> io::Result<()> {
        let node = self.node(name)?;
        let mut running = node.running.lock();
        if running.is_some() {
            return Ok(());
        }
        let deadline = Instant::now() + REBIND_LIMIT;
        let listener = loop {
            match bind(&node.name, node.addr.port()) {
                Err(error)
                    if error.kind() == io::ErrorKind::AddrInUse && Instant::now() < deadline =>
                {
                    thread::sleep(REBIND_PAUSE);
                }
                other => break other?,
            }
        };
        *running = Some(self.run(node, listener)?);
        Ok(())
    }

    /// Stops all brokers and the name server: closes all sockets and joins all threads. Messages
    /// and offsets can still be looked at. A second call does nothing.
    ///
    /// # Blocking
    /// Until requests in process have ended, each at most the write timeout.
    pub fn shutdown(&self) {
        for node in &self.nodes {
            self.stop(node);
        }
        let name_server = self.name_server.lock().take();
        drop(name_server);
    }

    fn stop(&self, node: &Node) {
        // Taken out under the lock, joined without it, so that others can look meanwhile.
        let running = {
            let mut running = node.running.lock();
            self.registry.unregister(&node.name);
            running.take()
        };
        drop(running);
    }

    /// Lets the next requests with a code meet something else than a working server, whichever
    /// server of the cluster they go to. Of several controls for a code the one set first acts.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use rocketmq_embedded::{Cluster, ControlAction, ControlTimes};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let cluster = Cluster::builder().start()?;
    /// let busy = ControlAction::Respond(2, Some("[OVERLOAD]".to_owned()));
    /// let control = cluster.control(310, busy, ControlTimes::UntilLifted);
    /// assert_eq!(control.hits(), 0);
    /// control.lift();
    /// # Ok(())
    /// # }
    /// ```
    pub fn control(
        &self,
        request_code: i32,
        action: ControlAction,
        times: ControlTimes,
    ) -> ControlHandle {
        self.control_on(ControlScope::Cluster, request_code, action, times)
    }

    /// The same for requests to some of the servers. A broker's name is not checked; a control for
    /// one that does not exist never acts.
    pub fn control_on(
        &self,
        scope: ControlScope,
        request_code: i32,
        action: ControlAction,
        times: ControlTimes,
    ) -> ControlHandle {
        self.controls.add(scope, request_code, action, times)
    }

    /// All messages of a topic, broker by broker, queue by queue, in the order of their offsets.
    /// Compressed bodies come expanded.
    pub fn messages(&self, topic: &str) -> Vec<MessageExt> {
        self.nodes
            .iter()
            .flat_map(|node| node.disk.store.messages(topic))
            .collect()
    }

    /// How many messages of a topic are stored, on all brokers.
    pub fn stored_count(&self, topic: &str) -> usize {
        self.nodes
            .iter()
            .map(|node| node.disk.store.message_count(topic))
            .sum()
    }

    /// The offset after a queue's last message; 0 for a queue that does not exist.
    pub fn max_offset(&self, mq: &MessageQueue) -> i64 {
        self.node(mq.broker_name()).map_or(0, |node| {
            node.disk.store.max_offset(mq.topic(), mq.queue_id())
        })
    }

    /// What a group has committed on a queue, `None` when nothing.
    pub fn committed_offset(&self, group: &str, mq: &MessageQueue) -> Option<i64> {
        let node = self.node(mq.broker_name()).ok()?;
        node.disk.offsets.query(group, mq.topic(), mq.queue_id())
    }

    /// The client ids that are members of a group at any broker, sorted, each once.
    pub fn consumer_ids(&self, group: &str) -> Vec<String> {
        let nodes = self.nodes.iter();
        let ids: BTreeSet<String> = nodes.flat_map(|node| node.consumer_ids(group)).collect();
        ids.into_iter().collect()
    }

    /// The client ids that are members of a group at one broker, sorted, one a connection: a client
    /// that is connected twice is there twice. Empty for a broker that is down or does not exist.
    pub fn consumer_ids_on(&self, broker: &str, group: &str) -> Vec<String> {
        let node = self.node(broker);
        let mut ids = node.map_or_else(|_| Vec::new(), |node| node.consumer_ids(group));
        ids.sort_unstable();
        ids
    }

    /// How many connections are open, to the name server and to all brokers.
    pub fn connection_count(&self) -> usize {
        let name_server = self.name_server.lock();
        let brokers = self.nodes.iter().map(|node| {
            let running = node.running.lock();
            running
                .as_ref()
                .map_or(0, |running| running.server.connection_count())
        });
        let count = name_server.as_ref().map_or(0, Server::connection_count);
        count + brokers.sum::<usize>()
    }

    fn node(&self, name: &str) -> io::Result<&Node> {
        let found = self.nodes.iter().find(|node| &*node.name == name);
        found.ok_or_else(|| {
            let text = format!("there is no broker called {name:?}");
            io::Error::new(io::ErrorKind::NotFound, text)
        })
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.shutdown();
    }
}

impl Node {
    fn create_topic(&self, topic: &str, queues: u16) -> io::Result<()> {
        validate_topic(topic).map_err(|error| {
            let text = format!("topic {topic:?}: {error}");
            io::Error::new(io::ErrorKind::InvalidInput, text)
        })?;
        let config = TopicConfig::new(queues.into(), Permission::READ_WRITE);
        self.disk.store.set_topic(topic, config);
        Ok(())
    }

    fn consumer_ids(&self, group: &str) -> Vec<String> {
        let running = self.running.lock();
        let ids = running.as_ref();
        ids.map_or_else(Vec::new, |running| {
            running.broker.consumers.client_ids(group)
        })
    }
}

fn bind(name: &str, port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| {
        let text = format!("{name} cannot listen on port {port}: {error}");
        io::Error::new(error.kind(), text)
    })
}
