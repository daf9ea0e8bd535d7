use std::io;
use std::time::Duration;

use crate::broker_config::{BrokerConfig, NamesrvConfig};
use crate::cluster::Cluster;
use crate::schedule::Schedule;

/// Settings of a [`Cluster`]; made by [`Cluster::builder`].
#[derive(Debug, Clone)]
pub struct ClusterBuilder {
    pub(crate) brokers: usize,
    pub(crate) namesrv_port: u16,
    pub(crate) broker_port: u16,
    pub(crate) broker: BrokerConfig,
    pub(crate) name_server: NamesrvConfig,
    pub(crate) delay_levels: Vec<Duration>,
    pub(crate) write_timeout: Duration,
}

/// Brokers are named by one letter or two each.
pub(crate) const MAX_BROKERS: usize = 26 + 26 * 26;

const MAX_DELAY_LEVELS: usize = 1000;

/// How far the ports of two brokers are apart.
pub(crate) const PORT_STEP: u16 = 10;

impl Default for ClusterBuilder {
    fn default() -> Self {
        Self {
            brokers: 1,
            namesrv_port: 0,
            broker_port: 0,
            broker: BrokerConfig::default(),
            name_server: NamesrvConfig::default(),
            delay_levels: Schedule::default_levels(),
            write_timeout: Duration::from_secs(3),
        }
    }
}

impl ClusterBuilder {
    /// How many brokers; they are called `broker-a`, `broker-b` and so on, after `broker-z`
    /// `broker-aa`. Default 1, at most 702.
    #[must_use]
    pub const fn brokers(mut self, count: usize) -> Self {
        self.brokers = count;
        self
    }

    /// The name server's port. Default 0: any free one.
    #[must_use]
    pub const fn namesrv_port(mut self, port: u16) -> Self {
        self.namesrv_port = port;
        self
    }

    /// The first broker's port; the next brokers' ports follow 10 apart. Default 0: any free ones.
    #[must_use]
    pub const fn broker_port(mut self, port: u16) -> Self {
        self.broker_port = port;
        self
    }

    /// Whether a send to an unknown topic creates it, and whether TBW102 exists. Default true; Java
    /// `autoCreateTopicEnable`.
    #[must_use]
    pub const fn auto_create_topic(mut self, enabled: bool) -> Self {
        self.broker.auto_create_topic = enabled;
        self
    }

    /// Whether members of a group are told when it changes. Default true; Java
    /// `notifyConsumerIdsChangedEnable`. See [`Cluster::set_notify_consumer_ids_changed`].
    #[must_use]
    pub const fn notify_consumer_ids_changed(mut self, enabled: bool) -> Self {
        self.broker.notify_consumer_ids_changed = enabled;
        self
    }

    /// Changes the brokers' settings, periods among them; all defaults are those of a real broker.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use rocketmq_embedded::Cluster;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// // A silent member is gone after a second, a lock can be taken over after two.
    /// let cluster = Cluster::builder()
    ///     .configure(|config| {
    ///         config.member_expiry = Duration::from_secs(1);
    ///         config.member_scan = Duration::from_millis(100);
    ///         config.lock_max_live_time = Duration::from_secs(2);
    ///     })
    ///     .start()?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn configure(mut self, change: impl FnOnce(&mut BrokerConfig)) -> Self {
        change(&mut self.broker);
        self
    }

    /// Changes the name server's settings.
    #[must_use]
    pub fn configure_name_server(mut self, change: impl FnOnce(&mut NamesrvConfig)) -> Self {
        change(&mut self.name_server);
        self
    }

    /// How often waiting pulls are looked at; a pull may overrun its time by so much. Default 5 s,
    /// fixed in Java's `PullRequestHoldService`.
    #[must_use]
    pub const fn long_poll_sweep(mut self, period: Duration) -> Self {
        self.broker.long_poll_sweep = period;
        self
    }

    /// After how long without a heartbeat a member is taken out of its groups and its connection
    /// closed. Default 120 s; Java `channelExpiredTimeout`.
    #[must_use]
    pub const fn member_expiry(mut self, time: Duration) -> Self {
        self.broker.member_expiry = time;
        self
    }

    /// How often members are looked at for expiry. Default 10 s, fixed in Java's
    /// `ClientHousekeepingService`.
    #[must_use]
    pub const fn member_scan(mut self, period: Duration) -> Self {
        self.broker.member_scan = period;
        self
    }

    /// How long a message of each delay level waits, level 1 first; a message given back to a broker
    /// waits level 3 the first time. Default 1 s to 2 h in 18 levels; Java `messageDelayLevel`.
    #[must_use]
    pub fn delay_levels(mut self, levels: impl Into<Vec<Duration>>) -> Self {
        self.delay_levels = levels.into();
        self
    }

    /// The same in the form of Java's setting: `1s 5s 10s 30s 1m`. Text that cannot be read counts as
    /// no level, which [`ClusterBuilder::start`] refuses.
    #[must_use]
    pub fn message_delay_level(mut self, levels: &str) -> Self {
        self.delay_levels = Schedule::parse_levels(levels).unwrap_or_default();
        self
    }

    /// How long a client may keep a server from writing to it before its connection is closed.
    /// Default 3 s. Real brokers queue what a client does not read.
    #[must_use]
    pub const fn write_timeout(mut self, timeout: Duration) -> Self {
        self.write_timeout = timeout;
        self
    }

    /// Starts the name server and all brokers; clients can connect when this returns. Keep the
    /// [`Cluster`]: it ends when it is dropped.
    ///
    /// # Blocking
    /// For moments, while sockets and threads are made; it waits for nobody.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for settings that cannot be: no broker, more than 702, a
    /// period or timeout of zero, no delay level, ports beyond 65,535. Otherwise what the system says to a socket
    /// or a thread, such as [`io::ErrorKind::AddrInUse`], with the server's name in the text.
    pub fn start(self) -> io::Result<Cluster> {
        self.check()?;
        Cluster::start(self)
    }

    fn check(&self) -> io::Result<()> {
        let invalid = |text: String| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        if !(1..=MAX_BROKERS).contains(&self.brokers) {
            return invalid(format!(
                "{} brokers: there must be 1 to {MAX_BROKERS}",
                self.brokers
            ));
        }
        if !(1..=MAX_DELAY_LEVELS).contains(&self.delay_levels.len()) {
            return invalid(format!(
                "{} delay levels: there must be 1 to {MAX_DELAY_LEVELS}",
                self.delay_levels.len()
            ));
        }
        check_config(&self.broker)?;
        for (name, time) in [
            ("broker_scan", self.name_server.broker_scan),
            ("write_timeout", self.write_timeout),
        ] {
            if time.is_zero() {
                return invalid(format!("{name} must not be zero"));
            }
        }
        let last = usize::from(self.broker_port) + (self.brokers - 1) * usize::from(PORT_STEP);
        if self.broker_port != 0 && last > usize::from(u16::MAX) {
            return invalid(format!(
                "broker port {}: the last broker would need port {last}",
                self.broker_port
            ));
        }
        Ok(())
    }
}

/// Refuses settings that cannot be.
pub(crate) fn check_config(config: &BrokerConfig) -> io::Result<()> {
    match config.periods().iter().find(|(_, time)| time.is_zero()) {
        Some((name, _)) => {
            let text = format!("{name} must not be zero");
            Err(io::Error::new(io::ErrorKind::InvalidInput, text))
        }
        None => Ok(()),
    }
}
