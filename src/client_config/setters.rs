//! What producers and consumers can be told alike, documented for users.

/// Setters of [`ClientConfig`](super::ClientConfig) for a builder with a field `client_config`.
macro_rules! client_config_setters {
    () => {
        /// Name servers, `host:port` joined by `;`, an IPv6 host in brackets. Default: the environment
        /// variable `NAMESRV_ADDR`, else what [`namesrv_domain`](Self::namesrv_domain) answers; with
        /// neither `build` fails. Java `namesrvAddr`.
        ///
        /// Of an endpoint `http://MQ_INST_<a>_<b>.<domain>:<port>` the part before the first dot is
        /// also the [`namespace`](Self::namespace), unless one is set.
        pub fn namesrv_addr(mut self, list: &str) -> Self {
            self.client_config.set_namesrv_addr(list);
            self
        }

        /// The host, or `host:port`, that is asked over HTTP where the name servers are, when no
        /// addresses are given: `GET http://<domain>:8080/rocketmq/<subgroup>`, with a unit name
        /// `…/<subgroup>-<unit>?nofix=1`. The first line of its answer is a list like that of
        /// [`namesrv_addr`](Self::namesrv_addr). It is asked at the start, after 10 s, and then
        /// every 120 s, with a time limit of 3 s.
        ///
        /// Default: none; Java system property `rocketmq.namesrv.domain`. Java asks
        /// `jmenv.tbsite.net` when nothing is set. That name means something in one company's
        /// network only; elsewhere whoever answers to it would be given all messages, and a
        /// forgotten setting would show as a hanging start. So nobody is asked unless named here.
        /// Redirections are not followed.
        pub fn namesrv_domain(mut self, domain: impl Into<String>) -> Self {
            self.client_config.namesrv_domain = Some(domain.into());
            self
        }

        /// The last part of the path under which [`namesrv_domain`](Self::namesrv_domain) is asked.
        /// Default `nsaddr`; Java system property `rocketmq.namesrv.domain.subgroup`.
        pub fn namesrv_domain_subgroup(mut self, subgroup: impl Into<String>) -> Self {
            self.client_config.namesrv_domain_subgroup = subgroup.into();
            self
        }

        /// A namespace of the first kind: topics and groups are called `<namespace>%<name>` on the
        /// servers, and by their plain names in this program. Names of the system belong to none.
        /// Default: none, or the instance that an endpoint in
        /// [`namesrv_addr`](Self::namesrv_addr) names; Java `namespace`.
        pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
            self.client_config.namespace = $crate::client_config::Namespace::new(namespace);
            self
        }

        /// A namespace of the second kind: nothing is renamed, every request says the namespace.
        /// Default: none; Java `namespaceV2`.
        pub fn namespace_v2(mut self, namespace: impl Into<String>) -> Self {
            self.client_config.namespace_v2 = $crate::client_config::filled(Some(namespace.into()));
            self
        }

        /// What sees every request before it is sent and every answer. Default: nothing; Java's
        /// constructors with an `RPCHook`. Clients share an instance only if they have the same
        /// hook, that is, clones of one `Arc`.
        pub fn rpc_hook(
            mut self,
            hook: $crate::sync::Arc<dyn $crate::remoting::rpc_hook::RPCHook>,
        ) -> Self {
            self.client_config.rpc_hook = Some($crate::remoting::rpc_hook::RpcHookRef::new(hook));
            self
        }

        /// Whether every request says that it is one of a stream (field `ReqT`), for proxies that
        /// treat those apart; the client id then ends with `@STREAM`. Default no; Java
        /// `enableStreamRequestType`.
        pub fn enable_stream_request_type(mut self, enable: bool) -> Self {
            self.client_config.enable_stream_request_type = enable;
            self
        }

        /// The zone this program runs in, told in every request (`__ZONE_NAME`). Default: the
        /// environment variable `ROCKETMQ_ZONE`, else none; Java system property `rocketmq.zone`.
        ///
        /// The zone is added after [`rpc_hook`](Self::rpc_hook) has run. A signature made there
        /// does not cover it, but a server's check does: zones and signed requests do not go
        /// together, here as in Java.
        pub fn zone_name(mut self, zone: impl Into<String>) -> Self {
            self.client_config.zone_name = $crate::client_config::filled(Some(zone.into()));
            self
        }

        /// `true` has name servers leave the brokers of other zones out of routes
        /// (`__ZONE_MODE`). Default: the environment variable `ROCKETMQ_ZONE_MODE`, else not said;
        /// Java system property `rocketmq.zone.mode`.
        pub fn zone_mode(mut self, mode: impl Into<String>) -> Self {
            self.client_config.zone_mode = $crate::client_config::filled(Some(mode.into()));
            self
        }

        /// Whether sends, offsets and administration go to a broker's second port, two below its
        /// first, so that pulls do not delay them; pulls, heartbeats and leaving a group never do.
        /// A broker whose port has no such neighbour above 0 is reached on its first. Default no;
        /// Java `vipChannelEnabled`, system property `com.rocketmq.sendMessageWithVIPChannel`.
        pub fn vip_channel_enabled(mut self, enable: bool) -> Self {
            self.client_config.vip_channel_enabled = enable;
            self
        }

        /// SOCKS5 proxies by the range of the server's address, as JSON:
        /// `{"10.0.0.0/8": {"addr": "host:port", "username": "…", "password": "…"}}`. Of several
        /// ranges the narrowest counts; `0.0.0.0/0` is every server, and one given by name is then
        /// looked up by the proxy. Name and password may be left out. Reaching the proxy and its
        /// answer are part of [`connect_timeout`](Self::connect_timeout). Default: none; Java
        /// `socksProxyConfig`, system property `com.rocketmq.socks.proxy.config`.
        pub fn socks_proxy_config(mut self, json: &str) -> Self {
            self.client_config.socks_proxy_config =
                $crate::client_config::SocksProxies::parse(json);
            self
        }

        /// Whether this client belongs to a unit of a deployment in units; told with messages and
        /// heartbeats. Default no; Java `unitMode`.
        pub fn unit_mode(mut self, unit_mode: bool) -> Self {
            self.client_config.unit_mode = unit_mode;
            self
        }

        /// The form of the headers of requests; servers answer in their own. Request codes beyond
        /// 32,767 have no place in the binary form and are written as JSON. Default: the
        /// environment variable `ROCKETMQ_SERIALIZE_TYPE`, else JSON; Java system property
        /// `rocketmq.serialize.type`.
        pub fn serialize_type(mut self, form: rocketmq_protocol::SerializeType) -> Self {
            self.client_config.serialize_type = Ok(form);
            self
        }

        /// The language that requests say the client is written in. Default
        /// [`Rust`](rocketmq_protocol::LanguageCode::Rust); Java `language`, which Java tells in
        /// heartbeats only. The version that goes with it is always that of 5.5.0 (513): servers
        /// choose the forms of their answers by it.
        pub fn language(mut self, language: rocketmq_protocol::LanguageCode) -> Self {
            self.client_config.language = language;
            self
        }

        /// A name that makes this client use an instance, and so connections and a client id, of
        /// its own; clients that give the same name share it. Default: none, and all clients of
        /// the process with the same settings share one instance. At most 255 bytes, neither blank
        /// nor with control characters. Java `instanceName`, which may be anything.
        ///
        /// Whoever chooses a name sees to it that no other process of the same
        /// [`client_ip`](Self::client_ip) has it: two members of a group with one client id count
        /// as one member on two connections. Both then consume the same share of the queues, so
        /// messages come twice, and the share of the second one is left lying until one of them
        /// ends. Both log a warning at each look at the group. Java does the same and says nothing.
        pub fn instance_name(mut self, name: impl Into<String>) -> Self {
            self.client_config.instance_name = Some(name.into())
                .filter(|name| name != $crate::client_config::DEFAULT_INSTANCE_NAME);
            self
        }

        /// The address in the client id. Default: the one by which this machine reaches others, an
        /// IPv4 one if it has both; Java `clientIP`, by default the first address of an interface
        /// that is neither 127.0 nor 192.168, which on a machine with several networks may be
        /// another one.
        pub fn client_ip(mut self, ip: std::net::IpAddr) -> Self {
            self.client_config.client_ip = Some(ip);
            self
        }

        /// A unit name, part of the client id and of the URL of
        /// [`namesrv_domain`](Self::namesrv_domain). Default: none. At most 255 bytes without control
        /// characters. Java `unitName`.
        pub fn unit_name(mut self, name: impl Into<String>) -> Self {
            self.client_config.unit_name = Some(name.into());
            self
        }

        /// How often routes are fetched again. Default 30 s, at least 1 ms; Java
        /// `pollNameServerInterval`.
        pub fn poll_name_server_interval(mut self, interval: std::time::Duration) -> Self {
            self.client_config.poll_name_server_interval = interval;
            self
        }

        /// How often brokers hear of this client. Default 30 s, at least 1 ms; Java
        /// `heartbeatBrokerInterval`. Brokers forget a client after 120 s of silence.
        pub fn heartbeat_broker_interval(mut self, interval: std::time::Duration) -> Self {
            self.client_config.heartbeat_broker_interval = interval;
            self
        }

        /// How often consumer offsets are saved. Default 5 s, at least 1 ms; Java
        /// `persistConsumerOffsetInterval`.
        pub fn persist_consumer_offset_interval(mut self, interval: std::time::Duration) -> Self {
            self.client_config.persist_consumer_offset_interval = interval;
            self
        }

        /// How often a balanced group is looked at again without being asked to. Default 20 s,
        /// at least 1 ms; Java system property `rocketmq.client.rebalance.waitInterval`.
        pub fn rebalance_wait_interval(mut self, interval: std::time::Duration) -> Self {
            self.client_config.rebalance_wait_interval = interval;
            self
        }

        /// How soon a group that could not be balanced is tried again, and how fast the tokens
        /// come back by which wake-ups are paced. Default 1 s, at least 1 ms; Java system property
        /// `rocketmq.client.rebalance.minInterval`.
        pub fn rebalance_min_interval(mut self, interval: std::time::Duration) -> Self {
            self.client_config.rebalance_min_interval = interval;
            self
        }

        /// How long a request to a name server, and a heartbeat, may take. Default 3 s, at
        /// least 1 ms; Java `mqClientApiTimeout`.
        pub fn mq_client_api_timeout(mut self, timeout: std::time::Duration) -> Self {
            self.client_config.mq_client_api_timeout = timeout;
            self
        }

        /// How long connecting to one server may take. Default 3 s, at least 1 ms; Java
        /// system property
        /// `com.rocketmq.remoting.client.connect.timeout`.
        pub fn connect_timeout(mut self, timeout: std::time::Duration) -> Self {
            self.client_config.connect_timeout = timeout;
            self
        }

        /// How long a connection may be without traffic before it is closed. Default 120 s, at
        /// least 1 ms; Java
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

        /// The most threads that serve requests of brokers, and replies that are not worked off where
        /// they are read: those of a pull that are large or compressed, for instance. Default: the number of
        /// processors, at least 1; Java `clientCallbackExecutorThreads`.
        pub fn client_callback_executor_threads(mut self, threads: usize) -> Self {
            self.client_config.client_callback_executor_threads = threads;
            self
        }
    };
}
pub(crate) use client_config_setters;
