//! Settings that producers and consumers have in common (Java `ClientConfig`).

mod address;
mod namespace;
mod setters;
mod socks_proxy;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::time::Duration;

pub(crate) use address::{split_address, vip_address};
pub(crate) use namespace::Namespace;
use rocketmq_protocol::{LanguageCode, SerializeType};
pub(crate) use setters::client_config_setters;
pub(crate) use socks_proxy::{SocksProxies, SocksProxy};

use crate::error::{Error, Result};
use crate::remoting::rpc_hook::RpcHookRef;
use crate::sync::thread;

/// The instance name that stands for "none chosen".
pub(crate) const DEFAULT_INSTANCE_NAME: &str = "DEFAULT";

const CLIENT_ID_PART_MAX_LENGTH: usize = 255;

/// The settings of a client that decide which instance it uses. Two clients share an instance only
/// if all of them agree.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClientConfig {
    pub(crate) namesrv_addr: Vec<String>,
    pub(crate) namesrv_domain: Option<String>,
    pub(crate) namesrv_domain_subgroup: String,
    pub(crate) namespace: Namespace,
    pub(crate) namespace_v2: Option<String>,
    pub(crate) unit_mode: bool,
    pub(crate) language: LanguageCode,
    /// Or what the environment says that is none.
    pub(crate) serialize_type: Result<SerializeType, String>,
    pub(crate) rpc_hook: Option<RpcHookRef>,
    pub(crate) enable_stream_request_type: bool,
    pub(crate) zone_name: Option<String>,
    pub(crate) zone_mode: Option<String>,
    pub(crate) vip_channel_enabled: bool,
    pub(crate) socks_proxy_config: Result<SocksProxies, Vec<String>>,
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
            namesrv_addr: split(&std::env::var("NAMESRV_ADDR").unwrap_or_default()),
            namesrv_domain: None,
            namesrv_domain_subgroup: "nsaddr".to_owned(),
            namespace: Namespace::default(),
            namespace_v2: None,
            unit_mode: false,
            language: LanguageCode::Rust,
            serialize_type: serialize_type_of(std::env::var("ROCKETMQ_SERIALIZE_TYPE").ok()),
            rpc_hook: None,
            enable_stream_request_type: false,
            zone_name: filled(std::env::var("ROCKETMQ_ZONE").ok()),
            zone_mode: filled(std::env::var("ROCKETMQ_ZONE_MODE").ok()),
            vip_channel_enabled: false,
            socks_proxy_config: Ok(SocksProxies::default()),
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

    /// The name servers of a list that a running client is given.
    pub(crate) fn name_servers_of(list: &str) -> Result<Vec<String>> {
        let addrs = split(list);
        let mut problems = address_problems(&addrs);
        if addrs.is_empty() {
            problems.push("the list of name servers is empty".to_owned());
        }
        reject(problems)?;
        Ok(addrs)
    }

    /// Adds what is wrong to `problems`, and settles what follows from other settings.
    pub(crate) fn validate(&mut self, problems: &mut Vec<String>) {
        match (&self.namesrv_domain, self.namesrv_addr.is_empty()) {
            (None, true) => problems.push(
                "no name server: set namesrv_addr (\"host:port;host:port\"), the environment \
                 variable NAMESRV_ADDR, or namesrv_domain"
                    .to_owned(),
            ),
            (Some(domain), true) => problems.extend(self.domain_problem(domain)),
            (_, false) => problems.extend(address_problems(&self.namesrv_addr)),
        }
        self.settle_namespace(problems);
        if let Err(text) = &self.serialize_type {
            problems.push(format!(
                "the environment variable ROCKETMQ_SERIALIZE_TYPE is {text:?}, neither JSON nor \
                 ROCKETMQ"
            ));
        }
        if let Err(wrong) = &self.socks_proxy_config {
            problems.extend(wrong.iter().map(|w| format!("socks_proxy_config: {w}")));
        }
        if self
            .instance_name
            .as_deref()
            .is_some_and(|name| name.trim().is_empty())
        {
            problems.push("instance_name is blank".to_owned());
        }
        for (name, part) in [
            ("instance_name", &self.instance_name),
            ("unit_name", &self.unit_name),
        ] {
            problems.extend(
                part.as_deref()
                    .and_then(|part| client_id_problem(name, part)),
            );
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

    /// A namespace that is not given is the instance of the name servers' endpoint, if they have
    /// one.
    fn settle_namespace(&mut self, problems: &mut Vec<String>) {
        let mut instances: Vec<&str> = self
            .namesrv_addr
            .iter()
            .filter_map(|addr| Namespace::of_endpoint(addr))
            .collect();
        instances.dedup();
        if instances.len() > 1 {
            problems.push(format!(
                "namesrv_addr names more than one instance: {}",
                instances.join(", ")
            ));
        }
        if let (None, Some(instance)) = (self.namespace.name(), instances.first()) {
            self.namespace = Namespace::new(*instance);
        }
        problems.extend(self.namespace.problem());
    }

    fn domain_problem(&self, domain: &str) -> Option<String> {
        let subgroup = &self.namesrv_domain_subgroup;
        if domain.contains(':') {
            if let Err(problem) = split_address(domain) {
                return Some(format!("namesrv_domain {domain:?}: {problem}"));
            }
        } else if domain.is_empty() || !is_url_word(domain) || domain.contains('/') {
            return Some(format!(
                "namesrv_domain {domain:?} is neither host nor host:port"
            ));
        }
        let unit = self.unit_name.as_deref().unwrap_or_default();
        let wrong = [
            ("namesrv_domain_subgroup", subgroup.as_str()),
            ("unit_name", unit),
        ]
        .into_iter()
        .find(|(_, word)| !is_url_word(word));
        wrong.map(|(name, word)| format!("{name} {word:?} cannot be part of a URL"))
    }

    /// Two clients of one instance name have one client id; on one cluster they would be taken for
    /// one member.
    pub(crate) fn shares_name_server_with(&self, other: &Self) -> bool {
        let same_domain = self.namesrv_addr.is_empty() && other.namesrv_addr.is_empty();
        (same_domain && self.namesrv_domain == other.namesrv_domain)
            || self
                .namesrv_addr
                .iter()
                .any(|addr| other.namesrv_addr.contains(addr))
    }

    /// `<ip>@<instance name>[@<unit name>][@STREAM]` (Java `ClientConfig#buildMQClientId`), an IPv6
    /// address in brackets.
    pub(crate) fn client_id(&self, instance_name: &str) -> String {
        let mut id = match self.client_ip.unwrap_or_else(local_address) {
            IpAddr::V4(ip) => format!("{ip}@{instance_name}"),
            IpAddr::V6(ip) => format!("[{ip}]@{instance_name}"),
        };
        let unit = self
            .unit_name
            .as_deref()
            .filter(|name| !name.trim().is_empty());
        let stream = Some("STREAM").filter(|_| self.enable_stream_request_type);
        for part in unit.into_iter().chain(stream) {
            id.push('@');
            id.push_str(part);
        }
        id
    }
}

fn address_problems(addrs: &[String]) -> Vec<String> {
    addrs
        .iter()
        .filter_map(|addr| {
            let problem = split_address(addr).err()?;
            Some(format!("namesrv_addr {addr:?} is not host:port: {problem}"))
        })
        .collect()
}

/// What a part of the client id may not be: servers keep it as it is, and show it to people.
fn client_id_problem(name: &str, part: &str) -> Option<String> {
    if part.len() > CLIENT_ID_PART_MAX_LENGTH {
        let length = part.len();
        Some(format!(
            "{name} has {length} bytes, the most is {CLIENT_ID_PART_MAX_LENGTH}"
        ))
    } else {
        part.contains(char::is_control)
            .then(|| format!("{name} {part:?} contains a control character"))
    }
}

/// What stands for itself in a URL's path and ends no line of a request.
fn is_url_word(word: &str) -> bool {
    word.chars()
        .all(|c| c.is_ascii_graphic() && !"?#%\"<>\\".contains(c))
}

/// The form that a setting names; the text itself if it names none.
fn serialize_type_of(text: Option<String>) -> Result<SerializeType, String> {
    match text.as_deref() {
        None | Some("" | "JSON") => Ok(SerializeType::Json),
        Some("ROCKETMQ") => Ok(SerializeType::RocketMq),
        Some(other) => Err(other.to_owned()),
    }
}

/// The text unless it is blank.
pub(crate) fn filled(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
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

/// The address by which this machine reaches others, an IPv4 one if it has both. No packet is sent:
/// connecting a datagram socket only asks the routing table.
///
/// # Java
/// `NetworkUtil#getLocalAddress` goes through the network interfaces and takes the first IPv4 address
/// that is not 127.0, 192.168 or 0, else the last IPv4, else the first IPv6 one; bridges, virtual and
/// point-to-point interfaces do not count. std lists no interfaces. On a machine with one network the
/// answer is the same; on one with several it is here the one that the default route leaves by.
/// `client_ip` decides where that is not wanted.
pub(crate) fn local_address() -> IpAddr {
    // Addresses set aside for documentation: routed like any other on the internet.
    let documentation = [
        (
            IpAddr::from(Ipv4Addr::UNSPECIFIED),
            IpAddr::from(Ipv4Addr::new(192, 0, 2, 1)),
        ),
        (
            Ipv6Addr::UNSPECIFIED.into(),
            Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
        ),
    ];
    let routed = documentation.into_iter().find_map(|(any, remote)| {
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect((remote, 9)).ok()?;
        let local = socket.local_addr().ok()?.ip();
        Some(local).filter(|ip| !ip.is_unspecified() && !ip.is_loopback())
    });
    routed.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

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

    fn problems_of(mut config: ClientConfig) -> Vec<String> {
        let mut problems = Vec::new();
        config.validate(&mut problems);
        problems
    }

    fn with_list(list: &str) -> ClientConfig {
        let mut config = ClientConfig::default();
        config.set_namesrv_addr(list);
        config
    }

    #[test]
    fn an_address_in_brackets_is_one_and_one_without_a_port_is_none() {
        assert_eq!(problems_of(with_list("[2001:db8::1]:9876;h:1")), [""; 0]);
        for list in ["[2001:db8::1]", "2001:db8::1", "h:70000", "h", "[::1:1"] {
            let problems = problems_of(with_list(list));
            assert_eq!(problems.len(), 1, "{list}: {problems:?}");
            assert!(problems[0].contains("is not host:port"), "{problems:?}");
        }
    }

    #[test]
    fn an_endpoint_brings_its_namespace_unless_one_is_set() {
        let endpoint = "http://MQ_INST_12_ab.mq.example:80";
        let mut config = with_list(endpoint);
        config.validate(&mut Vec::new());
        assert_eq!(config.namespace.name(), Some("MQ_INST_12_ab"));
        assert_eq!(config.namesrv_addr, ["MQ_INST_12_ab.mq.example:80"]);

        config = with_list(endpoint);
        config.namespace = Namespace::new("own");
        config.validate(&mut Vec::new());
        assert_eq!(config.namespace.name(), Some("own"));

        let two = with_list("MQ_INST_1_a.x:1;MQ_INST_1_b.x:1");
        assert_eq!(problems_of(two).len(), 1);
    }

    #[test]
    fn a_domain_stands_in_for_addresses() {
        let asking = |domain: &str, subgroup: &str| ClientConfig {
            namesrv_addr: Vec::new(),
            namesrv_domain: Some(domain.into()),
            namesrv_domain_subgroup: subgroup.into(),
            ..ClientConfig::default()
        };
        assert_eq!(problems_of(asking("ns.example", "nsaddr")), [""; 0]);
        assert_eq!(problems_of(asking("ns.example:80", "a/b")), [""; 0]);
        for (domain, subgroup) in [
            ("", "s"),
            ("a b", "s"),
            ("h/p", "s"),
            ("h:x", "s"),
            ("h", "s\r\nEvil: yes"),
        ] {
            let problems = problems_of(asking(domain, subgroup));
            assert_eq!(problems.len(), 1, "{domain:?} {subgroup:?}: {problems:?}");
        }
        let neither = ClientConfig {
            namesrv_domain: None,
            ..asking("", "s")
        };
        assert!(problems_of(neither)[0].contains("namesrv_domain"));
        assert!(asking("h", "s").shares_name_server_with(&asking("h", "t")));
        assert!(!asking("h", "s").shares_name_server_with(&asking("g", "s")));
    }

    #[test]
    fn the_form_of_headers_is_one_of_two() {
        let of = |text: &str| serialize_type_of(Some(text.to_owned()));
        assert_eq!(serialize_type_of(None), Ok(SerializeType::Json));
        assert_eq!(of(""), Ok(SerializeType::Json));
        assert_eq!(of("JSON"), Ok(SerializeType::Json));
        assert_eq!(of("ROCKETMQ"), Ok(SerializeType::RocketMq));
        let mut config = with_list("h:1");
        config.serialize_type = of("xml");
        assert!(problems_of(config)[0].contains("\"xml\""));
    }

    #[test]
    fn a_list_for_a_running_client_is_checked_too() {
        assert_eq!(
            ClientConfig::name_servers_of("b:1; a:1").unwrap(),
            ["a:1", "b:1"]
        );
        assert!(ClientConfig::name_servers_of(" ; ").is_err());
        assert!(ClientConfig::name_servers_of("a:1;b").is_err());
    }

    #[test]
    fn the_client_id_has_javas_form() {
        let mut config = ClientConfig {
            client_ip: Some(Ipv4Addr::new(10, 0, 0, 1).into()),
            unit_name: Some("u".into()),
            ..ClientConfig::default()
        };
        assert_eq!(config.client_id("123#456"), "10.0.0.1@123#456@u");
        config.enable_stream_request_type = true;
        assert_eq!(config.client_id("123#456"), "10.0.0.1@123#456@u@STREAM");
        config.unit_name = None;
        config.client_ip = Some(Ipv6Addr::LOCALHOST.into());
        assert_eq!(config.client_id("n"), "[::1]@n@STREAM");
    }
}
