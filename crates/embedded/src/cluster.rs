use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use crate::broker::Surroundings;
use crate::broker_config::BrokerConfig;
use crate::cluster_builder::{ClusterBuilder, MAX_BROKERS, PORT_STEP, check_config};
use crate::member_views::MemberViews;
use crate::name_server::NameServer;
use crate::node::{Node, bind, rebind};
use crate::notes::Notes;
use crate::registry::Registry;
use crate::server::{Server, Watch};
use crate::timer::Timer;

/// A name server and its brokers, all masters of the cluster `DefaultCluster`.
///
/// All methods may be called from any thread. Dropping it is [`Cluster::shutdown`].
#[derive(Debug)]
pub struct Cluster {
    name_server_addr: SocketAddr,
    pub(crate) name_server: Mutex<Option<Server>>,
    nodes: RwLock<Vec<Arc<Node>>>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) watch: Watch,
    pub(crate) notes: Arc<Notes>,
    pub(crate) views: Arc<MemberViews>,
    settings: ClusterBuilder,
}

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

    pub(crate) fn start(settings: ClusterBuilder) -> io::Result<Self> {
        let listener = bind("name server", settings.namesrv_port)?;
        let watch = Watch::default();
        let cluster = Self {
            name_server_addr: listener.local_addr()?,
            name_server: Mutex::new(None),
            nodes: RwLock::default(),
            registry: Arc::new(Registry::new(settings.name_server.clone())),
            notes: Arc::new(Notes::new(watch.clone())),
            watch,
            views: Arc::default(),
            settings,
        };
        *cluster.name_server.lock() = Some(cluster.serve_names(listener)?);
        for _ in 0..cluster.settings.brokers {
            cluster.add_broker()?;
        }
        Ok(cluster)
    }

    fn serve_names(&self, listener: TcpListener) -> io::Result<Server> {
        let timer = Timer::new();
        let service = NameServer::new(Arc::clone(&self.registry), &timer);
        let write_timeout = self.settings.write_timeout;
        Server::start(listener, service, self.watch.clone(), timer, write_timeout)
    }

    /// Adds a broker with the settings of the builder and tells its name. It has no topics; clients
    /// see it in the routes of those that are created there.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] when there are 702 already; otherwise what the system says to
    /// a socket or a thread.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let cluster = rocketmq_embedded::Cluster::builder().start()?;
    /// let name = cluster.add_broker()?;
    /// assert_eq!(name, "broker-b");
    /// cluster.create_topic_on(&name, "Orders", 4)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn add_broker(&self) -> io::Result<String> {
        let mut nodes = self.nodes.write();
        let index = nodes.len();
        let letters = letters(index).ok_or_else(|| {
            let text = format!("there are {MAX_BROKERS} brokers already");
            io::Error::new(io::ErrorKind::InvalidInput, text)
        })?;
        let name: Arc<str> = format!("broker-{letters}").into();
        let port = match self.settings.broker_port {
            0 => 0,
            first => first.saturating_add(PORT_STEP.saturating_mul(index as u16)),
        };
        let listener = bind(&name, port)?;
        let node = Node::new(
            Arc::clone(&name),
            listener.local_addr()?,
            self.settings.broker.clone(),
            self.settings.delay_levels.clone(),
            |config, registers| Surroundings {
                config,
                registry: Arc::clone(&self.registry),
                notes: Arc::clone(&self.notes),
                views: Arc::clone(&self.views),
                registers,
            },
        );
        node.start(Some(listener), &self.watch, self.settings.write_timeout)?;
        nodes.push(Arc::new(node));
        Ok(name.to_string())
    }

    /// What a client is given as its name server address, `127.0.0.1:port`. It stays the same while
    /// the name server is down.
    pub fn namesrv_addr(&self) -> String {
        self.name_server_addr.to_string()
    }

    /// The names of all brokers, up or not: `broker-a`, `broker-b` and so on.
    pub fn broker_names(&self) -> Vec<String> {
        let nodes = self.nodes.read();
        nodes.iter().map(|node| node.name.to_string()).collect()
    }

    /// A broker's address, `127.0.0.1:port`; `None` for a name that no broker has. It stays the
    /// same while the broker is down.
    pub fn broker_addr(&self, name: &str) -> Option<String> {
        self.node(name).ok().map(|node| node.addr.to_string())
    }

    /// Changes the settings of all brokers while they run.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a period of zero; nothing is changed then.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let cluster = rocketmq_embedded::Cluster::builder().brokers(2).start()?;
    /// cluster.configure(|config| config.auto_create_subscription_group = false)?;
    /// // A broker that no longer takes part in sending: its topics become readable only.
    /// cluster.configure_on("broker-b", |config| config.broker_permission = 4)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn configure(&self, change: impl Fn(&mut BrokerConfig)) -> io::Result<()> {
        let nodes = self.nodes();
        let changed = nodes.into_iter().map(|node| {
            let mut config = node.config();
            change(&mut config);
            check_config(&config)?;
            Ok((node, config))
        });
        for (node, config) in changed.collect::<io::Result<Vec<_>>>()? {
            node.set_config(config);
        }
        Ok(())
    }

    /// The same for one broker.
    ///
    /// # Errors
    /// As [`Cluster::configure`]; [`io::ErrorKind::NotFound`] when no broker has this name.
    pub fn configure_on(
        &self,
        broker: &str,
        change: impl FnOnce(&mut BrokerConfig),
    ) -> io::Result<()> {
        let node = self.node(broker)?;
        let mut config = node.config();
        change(&mut config);
        check_config(&config)?;
        node.set_config(config);
        Ok(())
    }

    /// Whether brokers tell the members of a group that it changed (NOTIFY_CONSUMER_IDS_CHANGED).
    /// Without it members find out at their next periodic rebalance.
    pub fn set_notify_consumer_ids_changed(&self, enabled: bool) {
        for node in self.nodes() {
            let mut config = node.config();
            config.notify_consumer_ids_changed = enabled;
            node.set_config(config);
        }
    }

    /// Stops a broker in order: it takes leave of the name server, which forgets it at once, and
    /// its connections end. Its messages, offsets and groups stay; members and queue locks do not.
    /// Nothing happens if it is not up.
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
        self.node(name)?.stop(true);
        Ok(())
    }

    /// Kills a broker, as the end of its machine does: its connections are cut, and nobody takes
    /// leave. The name server goes on naming it until it has not registered for
    /// [`broker_expiry`](crate::NamesrvConfig::broker_expiry).
    ///
    /// # Blocking
    /// As [`Cluster::stop_broker`].
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] when no broker has this name.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let cluster = rocketmq_embedded::Cluster::builder().brokers(2).start()?;
    /// cluster.kill_broker("broker-b")?;
    /// // It comes back with an empty disk.
    /// cluster.wipe_broker("broker-b")?;
    /// cluster.start_broker("broker-b")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn kill_broker(&self, name: &str) -> io::Result<()> {
        self.node(name)?.stop(false);
        Ok(())
    }

    /// Loses the disk of a broker that is down: topics, messages, offsets and groups.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] when no broker has this name, [`io::ErrorKind::InvalidInput`]
    /// when it is up.
    pub fn wipe_broker(&self, name: &str) -> io::Result<()> {
        self.node(name)?.wipe()
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
        node.start(None, &self.watch, self.settings.write_timeout)
    }

    /// Lets a broker register with the name server or not, as if the network between them were cut.
    /// The name server forgets one that does not after
    /// [`broker_expiry`](crate::NamesrvConfig::broker_expiry); one that may again does so at once.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] when no broker has this name.
    pub fn set_registers(&self, broker: &str, registers: bool) -> io::Result<()> {
        self.node(broker)?.set_registers(registers);
        Ok(())
    }

    /// Kills the name server: its connections are cut, and what brokers registered is forgotten.
    /// Stored values ([`Cluster::put_kv_config`]) stay. Nothing happens if it is not up.
    ///
    /// # Blocking
    /// Until its threads have ended, each at most the write timeout.
    pub fn stop_name_server(&self) {
        let server = self.name_server.lock().take();
        drop(server);
        self.registry.stop();
    }

    /// Starts the name server again, on the same port. Brokers are known as soon as they register
    /// again, within [`register_period`](BrokerConfig::register_period). Nothing happens if it is
    /// up.
    ///
    /// # Blocking
    /// Up to 5 s while something else has the port.
    ///
    /// # Errors
    /// What the system says to a socket or a thread.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let cluster = rocketmq_embedded::Cluster::builder().start()?;
    /// cluster.stop_name_server();
    /// cluster.start_name_server()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn start_name_server(&self) -> io::Result<()> {
        let mut running = self.name_server.lock();
        if running.is_none() {
            let listener = rebind("name server", self.name_server_addr.port())?;
            *running = Some(self.serve_names(listener)?);
        }
        Ok(())
    }

    /// Stops all brokers and the name server: closes all sockets and joins all threads. Messages
    /// and offsets can still be looked at. A second call does nothing.
    ///
    /// # Blocking
    /// Until requests in process have ended, each at most the write timeout.
    pub fn shutdown(&self) {
        for node in self.nodes() {
            node.stop(true);
        }
        self.stop_name_server();
        self.watch.controls.forget_held();
    }

    pub(crate) fn nodes(&self) -> Vec<Arc<Node>> {
        self.nodes.read().clone()
    }

    pub(crate) fn node(&self, name: &str) -> io::Result<Arc<Node>> {
        let nodes = self.nodes.read();
        let found = nodes.iter().find(|node| &*node.name == name);
        found.map(Arc::clone).ok_or_else(|| {
            let text = format!("there is no broker called {name:?}");
            io::Error::new(io::ErrorKind::NotFound, text)
        })
    }
}

/// What the broker with this number is called: `a` to `z`, then `aa` to `zz`.
fn letters(index: usize) -> Option<String> {
    let letter = |place: usize| ('a'..='z').nth(place);
    let count = 26;
    match index.checked_sub(count) {
        None => letter(index).map(String::from),
        Some(rest) => Some(
            [letter(rest / count)?, letter(rest % count)?]
                .iter()
                .collect(),
        ),
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.shutdown();
    }
}
