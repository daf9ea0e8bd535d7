//! Settings that producers and consumers have in common (Java `ClientConfig`).

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::sync::thread;

/// The instance name that stands for "none chosen".
pub(crate) const DEFAULT_INSTANCE_NAME: &str = "DEFAULT";

/// The settings of a client that decide which instance it uses. Two clients share an instance only
/// if all of them agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientConfig {
    pub(crate) namesrv_addr: Vec<String>,
    pub(crate) client_ip: Option<IpAddr>,
    pub(crate) instance_name: Option<String>,
    pub(crate) unit_name: Option<String>,
    pub(crate) poll_name_server_interval: Duration,
    pub(crate) heartbeat_broker_interval: Duration,
    pub(crate) persist_consumer_offset_interval: Duration,
    pub(crate) rebalance_wait_interval: Duration,
    pub(crate) rebalance_min_interval: Duration,
    pub(crate) mq_client_api_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) channel_max_idle_time: Duration,
    pub(crate) close_socket_if_timeout: bool,
    pub(crate) client_callback_executor_threads: usize,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            namesrv_addr: std::env::var("NAMESRV_ADDR")
                .map_or_else(|_| Vec::new(), |list| split(&list)),
            client_ip: None,
            instance_name: None,
            unit_name: None,
            poll_name_server_interval: Duration::from_secs(30),
            heartbeat_broker_interval: Duration::from_secs(30),
            persist_consumer_offset_interval: Duration::from_secs(5),
            rebalance_wait_interval: Duration::from_secs(20),
            rebalance_min_interval: Duration::from_secs(1),
            mq_client_api_timeout: Duration::from_secs(3),
            connect_timeout: Duration::from_secs(3),
            channel_max_idle_time: Duration::from_secs(120),
            close_socket_if_timeout: true,
            client_callback_executor_threads: thread::processors(),
        }
    }
}

impl ClientConfig {
    pub(crate) fn set_namesrv_addr(&mut self, list: &str) {
        self.namesrv_addr = split(list);
    }

    /// Adds what is wrong to `problems`.
    pub(crate) fn validate(&self, problems: &mut Vec<String>) {
        if self.namesrv_addr.is_empty() {
            problems.push(
                "no name server: set namesrv_addr (\"host:port;host:port\") or the environment \
                 variable NAMESRV_ADDR"
                    .to_owned(),
            );
        }
        for addr in &self.namesrv_addr {
            let port = addr.rsplit_once(':').filter(|(host, _)| !host.is_empty());
            if port
                .and_then(|(_, port)| port.parse::<u16>().ok())
                .is_none()
            {
                problems.push(format!("namesrv_addr {addr:?} is not host:port"));
            }
        }
        if self
            .instance_name
            .as_deref()
            .is_some_and(|name| name.trim().is_empty())
        {
            problems.push("instance_name is blank".to_owned());
        }
        let intervals = [
            ("poll_name_server_interval", self.poll_name_server_interval),
            ("heartbeat_broker_interval", self.heartbeat_broker_interval),
            (
                "persist_consumer_offset_interval",
                self.persist_consumer_offset_interval,
            ),
            ("rebalance_wait_interval", self.rebalance_wait_interval),
            ("rebalance_min_interval", self.rebalance_min_interval),
            ("mq_client_api_timeout", self.mq_client_api_timeout),
            ("connect_timeout", self.connect_timeout),
            ("channel_max_idle_time", self.channel_max_idle_time),
        ];
        for (name, interval) in intervals {
            if interval < Duration::from_millis(1) {
                problems.push(format!("{name} is {interval:?}, the least is 1 ms"));
            }
        }
        if self.client_callback_executor_threads == 0 {
            problems.push("client_callback_executor_threads is 0, the least is 1".to_owned());
        }
    }

    /// Two clients of one instance name have one client id; on one cluster they would be taken for
    /// one member.
    pub(crate) fn shares_name_server_with(&self, other: &Self) -> bool {
        self.namesrv_addr
            .iter()
            .any(|addr| other.namesrv_addr.contains(addr))
    }

    /// `<ip>@<instance name>[@<unit name>]` (Java `ClientConfig#buildMQClientId`).
    pub(crate) fn client_id(&self, instance_name: &str) -> String {
        let ip = self.client_ip.unwrap_or_else(local_address);
        match self
            .unit_name
            .as_deref()
            .filter(|name| !name.trim().is_empty())
        {
            Some(unit) => format!("{ip}@{instance_name}@{unit}"),
            None => format!("{ip}@{instance_name}"),
        }
    }
}

/// Turns collected problems into the error that lists them all.
pub(crate) fn reject(problems: Vec<String>) -> Result<()> {
    if problems.is_empty() {
        Ok(())
    } else {
        Err(Error::InvalidConfig { problems })
    }
}

/// Name servers of a `;` list in one order, so that two spellings of the same set are equal. A
/// `http://` in front is dropped, as Java drops everything up to the last slash.
fn split(list: &str) -> Vec<String> {
    let mut addrs: Vec<String> = list
        .split(';')
        .map(|addr| {
            addr.rsplit('/')
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned()
        })
        .filter(|addr| !addr.is_empty())
        .collect();
    addrs.sort();
    addrs.dedup();
    addrs
}

/// The address by which this machine reaches others. No packet is sent: connecting a datagram
/// socket only asks the routing table.
pub(crate) fn local_address() -> IpAddr {
    let routed = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))
        .and_then(|socket| {
            socket
                .connect((Ipv4Addr::new(192, 0, 2, 1), 9))
                .map(|()| socket)
        })
        .and_then(|socket| socket.local_addr());
    match routed {
        Ok(addr) if !addr.ip().is_unspecified() => addr.ip(),
        _ => Ipv4Addr::LOCALHOST.into(),
    }
}

/// Setters of [`ClientConfig`] for a builder with a field `client_config`.
macro_rules! client_config_setters {
    () => {
        /// Name servers, `host:port` joined by `;`. Default: the environment variable
        /// `NAMESRV_ADDR`; without either `build` fails. Java `namesrvAddr`.
        pub fn namesrv_addr(mut self, list: &str) -> Self {
            self.client_config.set_namesrv_addr(list);
            self
        }

        /// A name that makes this client use an instance, and so connections and a client id, of
        /// its own; clients that give the same name share it. Default: none, and all clients of
        /// the process with the same settings share one instance. Java `instanceName`.
        pub fn instance_name(mut self, name: impl Into<String>) -> Self {
            self.client_config.instance_name = Some(name.into())
                .filter(|name| name != $crate::client_config::DEFAULT_INSTANCE_NAME);
            self
        }

        /// The address in the client id. Default: the one by which this machine reaches others.
        /// Java `clientIP`.
        pub fn client_ip(mut self, ip: std::net::IpAddr) -> Self {
            self.client_config.client_ip = Some(ip);
            self
        }

        /// A unit name, part of the client id. Default: none. Java `unitName`.
        pub fn unit_name(mut self, name: impl Into<String>) -> Self {
            self.client_config.unit_name = Some(name.into());
            self
        }

        /// How often routes are fetched again. Default 30 s; Java `pollNameServerInterval`.
        pub fn poll_name_server_interval(mut self, interval: std::time::Duration) -> Self {
            self.client_config.poll_name_server_interval = interval;
            self
        }

        /// How often brokers hear of this client. Default 30 s; Java `heartbeatBrokerInterval`.
        /// Brokers forget a client after 120 s of silence.
        pub fn heartbeat_broker_interval(mut self, interval: std::time::Duration) -> Self {
            self.client_config.heartbeat_broker_interval = interval;
            self
        }

        /// How often consumer offsets are saved. Default 5 s; Java
        /// `persistConsumerOffsetInterval`.
        pub fn persist_consumer_offset_interval(mut self, interval: std::time::Duration) -> Self {
            self.client_config.persist_consumer_offset_interval = interval;
            self
        }

        /// How often a balanced group is looked at again without being asked to. Default 20 s;
        /// Java system property `rocketmq.client.rebalance.waitInterval`.
        pub fn rebalance_wait_interval(mut self, interval: std::time::Duration) -> Self {
            self.client_config.rebalance_wait_interval = interval;
            self
        }

        /// How soon a group that could not be balanced is tried again, and how fast the tokens
        /// come back by which wake-ups are paced. Default 1 s; Java system property
        /// `rocketmq.client.rebalance.minInterval`.
        pub fn rebalance_min_interval(mut self, interval: std::time::Duration) -> Self {
            self.client_config.rebalance_min_interval = interval;
            self
        }

        /// How long a request to a name server, and a heartbeat, may take. Default 3 s; Java
        /// `mqClientApiTimeout`.
        pub fn mq_client_api_timeout(mut self, timeout: std::time::Duration) -> Self {
            self.client_config.mq_client_api_timeout = timeout;
            self
        }

        /// How long connecting to one server may take. Default 3 s; Java system property
        /// `com.rocketmq.remoting.client.connect.timeout`.
        pub fn connect_timeout(mut self, timeout: std::time::Duration) -> Self {
            self.client_config.connect_timeout = timeout;
            self
        }

        /// How long a connection may be without traffic before it is closed. Default 120 s; Java
        /// system property `com.rocketmq.remoting.client.channel.maxIdleTimeSeconds`.
        pub fn channel_max_idle_time(mut self, time: std::time::Duration) -> Self {
            self.client_config.channel_max_idle_time = time;
            self
        }

        /// Whether a connection is closed when a server has not answered a synchronous call in time,
        /// so that the next one does not meet the same silence. Default yes; Java system property
        /// `com.rocketmq.remoting.client.closeSocketIfTimeout`.
        pub fn close_socket_if_timeout(mut self, close: bool) -> Self {
            self.client_config.close_socket_if_timeout = close;
            self
        }

        /// The most threads that serve replies and requests of brokers. Default: the number of
        /// processors; Java `clientCallbackExecutorThreads`.
        pub fn client_callback_executor_threads(mut self, threads: usize) -> Self {
            self.client_config.client_callback_executor_threads = threads;
            self
        }
    };
}
pub(crate) use client_config_setters;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_list_are_equal() {
        let mut a = ClientConfig::default();
        let mut b = a.clone();
        a.set_namesrv_addr(" 10.0.0.2:9876;http://10.0.0.1:9876;");
        b.set_namesrv_addr("10.0.0.1:9876;10.0.0.2:9876;10.0.0.1:9876");
        assert_eq!(a, b);
    }

    #[test]
    fn every_wrong_setting_is_listed() {
        let mut config = ClientConfig::default();
        config.set_namesrv_addr("nowhere;:9876;h:99999");
        config.heartbeat_broker_interval = Duration::ZERO;
        config.client_callback_executor_threads = 0;
        let mut problems = Vec::new();
        config.validate(&mut problems);
        assert_eq!(problems.len(), 5, "{problems:?}");
    }

    #[test]
    fn the_client_id_has_javas_form() {
        let config = ClientConfig {
            client_ip: Some(Ipv4Addr::new(10, 0, 0, 1).into()),
            unit_name: Some("u".into()),
            ..ClientConfig::default()
        };
        assert_eq!(config.client_id("123#456"), "10.0.0.1@123#456@u");
    }
}
