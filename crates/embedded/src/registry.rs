use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rocketmq_protocol::body::{BrokerData, ClusterInfo, MASTER_ID, QueueData, TopicRouteData};

use crate::broker::CLUSTER_NAME;
use crate::broker_config::{BrokerConfig, NamesrvConfig, Shared};
use crate::store::Store;

/// What a name server knows (Java `RouteInfoManager`, `KVConfigManager`).
///
/// Brokers register here by calls, not by requests; a topic that is created is known at once, as
/// with real ones whose registration is quick. What was registered stays until it is registered
/// anew, deleted, or its broker is gone, even if it is no longer true.
#[derive(Debug)]
pub(crate) struct Registry {
    config: NamesrvConfig,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether the name server is up. A name server that is down forgets all but the values.
    up: bool,
    brokers: BTreeMap<String, Registered>,
    topics: BTreeMap<String, BTreeMap<String, QueueData>>,
    /// Values by namespace and key; they lie on the name server's disk.
    values: BTreeMap<String, BTreeMap<String, String>>,
}

/// A broker as it registers itself.
#[derive(Debug, Clone)]
pub(crate) struct Registration {
    pub(crate) name: Arc<str>,
    pub(crate) addr: String,
    pub(crate) store: Arc<Store>,
    pub(crate) config: Arc<Shared<BrokerConfig>>,
}

#[derive(Debug)]
struct Registered {
    registration: Registration,
    last_update: Instant,
    /// Of its topics' table when it was last taken over.
    version: i64,
    /// Cut off: what changes there is not heard of.
    silent: bool,
}

/// The namespace of the configurations of ordered topics.
const ORDER_TOPIC_CONFIG: &str = "ORDER_TOPIC_CONFIG";

impl Registry {
    pub(crate) fn new(config: NamesrvConfig) -> Self {
        Self {
            config,
            state: Mutex::default(),
        }
    }

    pub(crate) const fn scan_period(&self) -> Duration {
        self.config.broker_scan
    }

    pub(crate) fn start(&self) {
        self.state.lock().up = true;
    }

    /// The name server is gone, and what it had in memory.
    pub(crate) fn stop(&self) {
        let mut state = self.state.lock();
        let gone = State {
            values: std::mem::take(&mut state.values),
            ..State::default()
        };
        let gone = std::mem::replace(&mut *state, gone);
        drop(state);
        drop(gone);
    }

    /// A broker registers with all its topics, which are taken over if they changed since.
    pub(crate) fn register(&self, registration: &Registration) {
        let mut state = self.state.lock();
        if !state.up {
            return;
        }
        let (topics, version) = registration.store.topics();
        let name = &*registration.name;
        let known = state.brokers.get(name);
        let known = known
            .filter(|known| Arc::ptr_eq(&known.registration.store, &registration.store))
            .map(|known| known.version);
        let broker = Registered {
            registration: registration.clone(),
            last_update: Instant::now(),
            version: version.counter,
            silent: false,
        };
        state.brokers.insert(name.to_owned(), broker);
        if known != Some(version.counter) {
            let permission = registration.config.get().broker_permission;
            for (topic, config) in topics {
                state.put_queues(&topic, config.queue_data(name, permission));
            }
        }
    }

    /// A broker registers a topic that is new or changed.
    pub(crate) fn register_topic(&self, broker_name: &str, topic: &str) {
        let mut state = self.state.lock();
        let broker = state.brokers.get_mut(broker_name);
        let Some(broker) = broker.filter(|broker| !broker.silent) else {
            return;
        };
        // Read under this lock, so that of two changes the later one is registered last.
        let Some(config) = broker.registration.store.topic(topic) else {
            return;
        };
        broker.version = broker.registration.store.topics().1.counter;
        let permission = broker.registration.config.get().broker_permission;
        state.put_queues(topic, config.queue_data(broker_name, permission));
    }

    /// All of a broker's topics are registered anew.
    pub(crate) fn register_anew(&self, registration: &Registration) {
        {
            let mut state = self.state.lock();
            let Some(broker) = state.brokers.get_mut(&*registration.name) else {
                return;
            };
            broker.version = -1;
        }
        self.register(registration);
    }

    /// Nothing more is heard of a broker until it registers again.
    pub(crate) fn silence(&self, name: &str) {
        if let Some(broker) = self.state.lock().brokers.get_mut(name) {
            broker.silent = true;
        }
    }

    pub(crate) fn unregister(&self, name: &str) {
        self.state.lock().forget(|broker, _| broker == name);
    }

    /// Forgets the brokers that did not register for too long.
    pub(crate) fn expire(&self) {
        let now = Instant::now();
        let expiry = self.config.broker_expiry;
        self.state.lock().forget(|name, broker| {
            let gone = now.saturating_duration_since(broker.last_update) > expiry;
            if gone {
                log::debug!("{name} did not register in time");
            }
            gone
        });
    }

    /// Java `pickupTopicRouteData`.
    pub(crate) fn route(&self, topic: &str) -> Option<TopicRouteData> {
        let state = self.state.lock();
        let queues = state.topics.get(topic)?;
        let mut route = TopicRouteData::default();
        for (name, data) in queues {
            route.queue_datas.push(data.clone());
            let broker = state.brokers.get(name);
            route.broker_datas.extend(broker.map(Registered::data));
        }
        if self.config.order_message_enable {
            let configs = state.values.get(ORDER_TOPIC_CONFIG);
            route.order_topic_conf = configs.and_then(|configs| configs.get(topic)).cloned();
        }
        Some(route)
    }

    pub(crate) fn cluster_info(&self) -> ClusterInfo {
        let state = self.state.lock();
        let brokers = state.brokers.iter();
        ClusterInfo {
            broker_addr_table: brokers
                .map(|(name, broker)| (name.clone(), broker.data()))
                .collect(),
            cluster_addr_table: BTreeMap::from([(
                CLUSTER_NAME.to_owned(),
                state.brokers.keys().cloned().collect(),
            )]),
        }
    }

    /// The names of all topics that brokers have queues of.
    pub(crate) fn topics(&self) -> Vec<String> {
        self.state.lock().topics.keys().cloned().collect()
    }

    /// Forgets a topic's queues; a broker that still has it registers it with its next change.
    pub(crate) fn delete_topic(&self, topic: &str) {
        self.state.lock().topics.remove(topic);
    }

    /// Takes or gives all topics of a broker the permission to write, until the broker registers
    /// them anew, and counts them (Java `operateWritePermOfBroker`).
    pub(crate) fn set_write_permission(&self, broker_name: &str, writeable: bool) -> i32 {
        let mut state = self.state.lock();
        let queues = state.topics.values_mut();
        let mut count = 0;
        for data in queues.filter_map(|queues| queues.get_mut(broker_name)) {
            data.perm = if writeable { 6 } else { data.perm & !2 };
            count += 1;
        }
        count
    }

    pub(crate) fn put_value(&self, namespace: String, key: String, value: String) {
        let mut state = self.state.lock();
        state
            .values
            .entry(namespace)
            .or_default()
            .insert(key, value);
    }

    pub(crate) fn value(&self, namespace: &str, key: &str) -> Option<String> {
        let state = self.state.lock();
        state.values.get(namespace)?.get(key).cloned()
    }

    pub(crate) fn delete_value(&self, namespace: &str, key: &str) {
        if let Some(values) = self.state.lock().values.get_mut(namespace) {
            values.remove(key);
        }
    }

    /// All values of a namespace, `None` for one that never had any.
    pub(crate) fn values(&self, namespace: &str) -> Option<BTreeMap<String, String>> {
        self.state.lock().values.get(namespace).cloned()
    }

    /// The topics that have an order configuration, which brokers hear of when they register.
    pub(crate) fn ordered_topics(&self) -> Vec<String> {
        let state = self.state.lock();
        if !state.up {
            return Vec::new();
        }
        let configs = state.values.get(ORDER_TOPIC_CONFIG).into_iter().flatten();
        configs.map(|(topic, _)| topic.clone()).collect()
    }
}

impl State {
    fn put_queues(&mut self, topic: &str, data: QueueData) {
        let queues = match self.topics.get_mut(topic) {
            Some(queues) => queues,
            None => self.topics.entry(topic.to_owned()).or_default(),
        };
        queues.insert(data.broker_name.clone(), data);
    }

    fn forget(&mut self, mut gone: impl FnMut(&str, &Registered) -> bool) {
        let brokers = &mut self.brokers;
        brokers.retain(|name, broker| !gone(name, broker));
        self.topics.retain(|_, queues| {
            queues.retain(|name, _| brokers.contains_key(name));
            !queues.is_empty()
        });
    }
}

impl Registered {
    fn data(&self) -> BrokerData {
        BrokerData {
            broker_addrs: BTreeMap::from([(MASTER_ID, self.registration.addr.clone())]),
            broker_name: self.registration.name.to_string(),
            cluster: CLUSTER_NAME.to_owned(),
            ..BrokerData::default()
        }
    }
}
