//! Routes: fetched from name servers, compared, and pushed to those who use the topic.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use rocketmq_protocol::MessageQueue;
use rocketmq_protocol::body::TopicRouteData;
use rocketmq_protocol::mix_all::AUTO_CREATE_TOPIC_KEY_TOPIC;

use super::broker_address_table::BrokerAddressTable;
use super::group_registry::{ConsumerTable, ProducerTable};
use super::static_topic::{
    Endpoints, MOCK_BROKER_PREFIX, NO_BROKER, endpoints, publish_queues, subscribe_queues,
};
use super::{MQClientApi, MQConsumerInner, MQProducerInner, TopicPublishInfo};
use crate::error::{Error, Result};
use crate::service::{ServiceContext, ServiceThread};
use crate::sync::{Arc, Deadline, Mutex, Weak};

/// What is known of the routes of all topics that somebody here uses.
#[derive(Debug)]
pub(crate) struct TopicRoutes {
    api: Arc<MQClientApi>,
    brokers: Arc<BrokerAddressTable>,
    producers: Arc<ProducerTable>,
    consumers: Arc<ConsumerTable>,
    table: Mutex<HashMap<String, KnownRoute>>,
    /// Which brokers hold the queues of static topics.
    endpoints: Mutex<HashMap<String, Arc<Endpoints>>>,
    /// Single flight: guards no data, is taken with a time limit, and spans the round trip.
    name_server: Mutex<()>,
}

/// A route, and the queues that consumers were brought with it: a route that stays as it is brings the
/// same list again, which is then known without a look at it.
#[derive(Debug, Clone)]
struct KnownRoute {
    route: Arc<TopicRouteData>,
    subscribe_queues: Arc<[MessageQueue]>,
}

/// Which route to fetch for a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteOf {
    /// The topic's own.
    Topic,
    /// That of TBW102, for a topic that does not exist yet and is created by the first send with so
    /// many queues at most.
    DefaultTopic { queue_nums: i32 },
}

impl TopicRoutes {
    pub(crate) fn new(
        api: Arc<MQClientApi>,
        brokers: Arc<BrokerAddressTable>,
        producers: Arc<ProducerTable>,
        consumers: Arc<ConsumerTable>,
    ) -> Self {
        Self {
            api,
            brokers,
            producers,
            consumers,
            table: Mutex::new(HashMap::new()),
            endpoints: Mutex::new(HashMap::new()),
            name_server: Mutex::new(()),
        }
    }

    pub(crate) fn route(&self, topic: &str) -> Option<Arc<TopicRouteData>> {
        self.known(topic).map(|known| known.route)
    }

    fn known(&self, topic: &str) -> Option<KnownRoute> {
        self.table.lock().get(topic).cloned()
    }

    /// The queues of a topic that a producer may choose from, if its route is known.
    pub(crate) fn publish_queues(&self, topic: &str) -> Vec<MessageQueue> {
        let route = self.route(topic);
        route.map_or_else(Vec::new, |route| publish_queues(topic, &route).0)
    }

    /// The broker that holds a queue: for all but static topics the one in its name (Java
    /// `MQClientInstance#getBrokerNameFromMessageQueue`).
    pub(crate) fn broker_name<'a>(&self, mq: &'a MessageQueue) -> Cow<'a, str> {
        if !mq.broker_name().starts_with(MOCK_BROKER_PREFIX) {
            return Cow::Borrowed(mq.broker_name());
        }
        let endpoints = self.endpoints.lock().get(mq.topic()).cloned();
        let holder = endpoints.and_then(|endpoints| endpoints.get(mq).cloned());
        Cow::Owned(holder.map_or_else(|| NO_BROKER.to_owned(), |name| name.to_string()))
    }

    /// Fetches the route of a topic and tells everybody who uses it (Java
    /// `MQClientInstance#updateTopicRouteInfoFromNameServer`). Returns whether the topic has a
    /// route; one that the name server has forgotten keeps the old one.
    pub(crate) fn update_topic_route_info(
        &self,
        topic: &str,
        which: RouteOf,
        deadline: Deadline,
    ) -> Result<bool> {
        self.update_for(topic, which, deadline, || self.all_users())
    }

    fn all_users(&self) -> Users {
        let producers = self.producers.snapshot().into_iter();
        let consumers = self.consumers.snapshot().into_iter();
        Users {
            producers: producers.map(|(_, producer)| producer).collect(),
            consumers: consumers.map(|(_, consumer)| consumer).collect(),
        }
    }

    /// The same, and as long as the route stays as it is, only `users` are told, who are asked for once
    /// it is there.
    fn update_for(
        &self,
        topic: &str,
        which: RouteOf,
        deadline: Deadline,
        users: impl FnOnce() -> Users,
    ) -> Result<bool> {
        let Some(_single_flight) = self.name_server.try_lock_until(deadline.instant()) else {
            return Err(Error::RemotingTooMuchRequest {
                reason: format!("route of {topic}: another request to the name server hangs"),
            });
        };
        let fetched = match which {
            RouteOf::Topic => self.api.topic_route_info(topic, deadline)?,
            RouteOf::DefaultTopic { queue_nums } => {
                let mut route = self
                    .api
                    .topic_route_info(AUTO_CREATE_TOPIC_KEY_TOPIC, deadline)?;
                for data in route.iter_mut().flat_map(|route| &mut route.queue_datas) {
                    let count = queue_nums.min(data.read_queue_nums);
                    data.read_queue_nums = count;
                    data.write_queue_nums = count;
                }
                route
            }
        };
        let Some(fetched) = fetched else {
            return Ok(false);
        };
        self.publish(topic, fetched, users);
        Ok(true)
    }

    fn publish(&self, topic: &str, fetched: TopicRouteData, users: impl FnOnce() -> Users) {
        let fetched = fetched.sorted();
        let known = self.known(topic).filter(|known| *known.route == fetched);
        let unchanged = known.is_some();
        // A change is for everybody: a producer that has used the topic since `users` were looked up
        // would be left with the old route, which nothing tells from the new one later.
        let Users {
            producers,
            consumers,
        } = if unchanged { users() } else { self.all_users() };
        let awaited = producers
            .iter()
            .any(|p| p.is_publish_topic_need_update(topic))
            || consumers
                .iter()
                .any(|c| c.is_subscribe_topic_need_update(topic));
        let subscribe_queues = known.map_or_else(
            || subscribe_queues(topic, &fetched).into(),
            |known| known.subscribe_queues,
        );
        if unchanged && !awaited {
            // What counts is what each consumer holds, not what all know: one that an update has
            // missed would be short of queues for ever. (Java compares with the table alone.)
            for consumer in consumers {
                consumer.update_topic_subscribe_info(topic, &subscribe_queues);
            }
            return;
        }
        if !unchanged {
            log::info!("route of {topic}: {}", fetched.summary());
            warn_of_bad_order(topic, &fetched);
        }
        self.brokers.update(&fetched.broker_datas);
        // Before anybody learns of the queues: whoever does may ask where they are.
        if let Some(endpoints) = endpoints(topic, &fetched) {
            self.endpoints
                .lock()
                .insert(topic.to_owned(), Arc::new(endpoints));
        }
        let (publish_queues, _) = publish_queues(topic, &fetched);
        let info = Arc::new(TopicPublishInfo::new(publish_queues));
        for producer in producers {
            producer.update_topic_publish_info(topic, &info);
        }
        for consumer in consumers {
            consumer.update_topic_subscribe_info(topic, &subscribe_queues);
        }
        let known = KnownRoute {
            route: Arc::new(fetched),
            subscribe_queues,
        };
        self.table.lock().insert(topic.to_owned(), known);
    }

    /// Drops brokers that no route names any more (Java `MQClientInstance#cleanOfflineBroker`), and
    /// their connections, which Java leaves to their idle time.
    pub(crate) fn clean_offline_broker(&self) {
        let routes: Vec<_> = self.table.lock().values().cloned().collect();
        let live: BTreeSet<&str> = routes
            .iter()
            .flat_map(|known| &known.route.broker_datas)
            .flat_map(|broker| broker.broker_addrs.values().map(String::as_str))
            .collect();
        for gone in self.brokers.clean_offline_broker(&live) {
            log::info!(
                "no route names {} of {} any more",
                gone.broker_addr,
                gone.broker_name
            );
            self.api.release(&gone.broker_addr);
        }
    }

    /// The topics in use with their users, so that each of many groups is told of its own topics only.
    fn users_by_topic(&self) -> BTreeMap<String, WeakUsers> {
        let mut by_topic: BTreeMap<String, WeakUsers> = BTreeMap::new();
        for (_, consumer) in self.consumers.snapshot() {
            for topic in consumer.subscribed_topics() {
                let users = by_topic.entry(topic).or_default();
                users.consumers.push(Arc::downgrade(&consumer));
            }
        }
        for (_, producer) in self.producers.snapshot() {
            for topic in producer.publish_topic_list() {
                let users = by_topic.entry(topic).or_default();
                users.producers.push(Arc::downgrade(&producer));
            }
        }
        by_topic
    }
}

/// Clients that are told of a route.
struct Users {
    producers: Vec<Arc<dyn MQProducerInner>>,
    consumers: Vec<Arc<dyn MQConsumerInner>>,
}

/// The same while other topics are asked for, which keeps nobody alive.
#[derive(Default)]
struct WeakUsers {
    producers: Vec<Weak<dyn MQProducerInner>>,
    consumers: Vec<Weak<dyn MQConsumerInner>>,
}

impl WeakUsers {
    fn upgrade(&self) -> Users {
        Users {
            producers: self.producers.iter().filter_map(Weak::upgrade).collect(),
            consumers: self.consumers.iter().filter_map(Weak::upgrade).collect(),
        }
    }
}

/// What somebody has typed wrong is told of once for each change of the route.
fn warn_of_bad_order(topic: &str, route: &TopicRouteData) {
    const SHOWN: usize = 5;
    let bad = route
        .order()
        .map_or_else(Vec::new, |conf| conf.bad_segments);
    if bad.is_empty() {
        return;
    }
    let shown = bad.iter().take(SHOWN).map(|segment| format!("{segment:?}"));
    let shown = shown.collect::<Vec<_>>().join(", ");
    log::warn!(
        "order configuration of topic {topic}: {} of its segments are not broker:queues and are \
         passed over: {shown}",
        bad.len()
    );
}

/// Refreshes the routes of all topics in use each interval, and at once when woken.
#[derive(Debug)]
pub(crate) struct TopicRouteService {
    pub(crate) routes: Arc<TopicRoutes>,
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
}

impl ServiceThread for TopicRouteService {
    fn service_name(&self) -> String {
        "TopicRouteService".to_owned()
    }

    fn run(&self, context: &ServiceContext) {
        loop {
            context.wait_for_running(self.interval);
            for (topic, users) in self.routes.users_by_topic() {
                if context.is_stopped() {
                    return;
                }
                let deadline = Deadline::after(self.timeout);
                let users = || users.upgrade();
                match self
                    .routes
                    .update_for(&topic, RouteOf::Topic, deadline, users)
                {
                    Ok(true) => {}
                    Ok(false) => log::debug!("topic {topic} is not known to the name server"),
                    Err(error) => log::warn!("route of {topic}: {error}"),
                }
            }
            if context.is_stopped() {
                return;
            }
            self.routes.clean_offline_broker();
        }
    }
}

#[cfg(test)]
mod tests {
    use rocketmq_protocol::body::{BrokerData, QueueData};

    use super::*;

    /// A route with a broker `a` that reads 4 and writes 2 queues.
    fn route(perm: i32, ids: &[i64], write_queue_nums: i32) -> TopicRouteData {
        let broker = BrokerData {
            broker_name: "a".to_owned(),
            broker_addrs: ids.iter().map(|id| (*id, format!("a{id}:1"))).collect(),
            ..BrokerData::default()
        };
        TopicRouteData {
            queue_datas: vec![QueueData {
                broker_name: "a".to_owned(),
                perm,
                read_queue_nums: 4,
                write_queue_nums,
                ..QueueData::default()
            }],
            broker_datas: vec![broker],
            ..TopicRouteData::default()
        }
    }

    /// alibaba/rocketmq#210, apache/rocketmq-client-go#1007, apache/rocketmq#4109, #286: brokers that
    /// may not be written, or whose master is gone, were chosen for sends.
    #[test]
    fn b81_who_writes_needs_permission_and_a_master_who_reads_needs_permission() {
        let counts = |route: &TopicRouteData| {
            let ids = |queues: Vec<MessageQueue>| -> Vec<i32> {
                queues.iter().map(MessageQueue::queue_id).collect()
            };
            (
                ids(publish_queues("t", route).0),
                ids(subscribe_queues("t", route)),
            )
        };
        let all = vec![0, 1, 2, 3];
        assert_eq!(counts(&route(6, &[0], 2)), (vec![0, 1], all.clone()));
        assert_eq!(counts(&route(6, &[0, 1], 2)), (vec![0, 1], all.clone()));
        assert_eq!(counts(&route(6, &[1], 2)), (vec![], all.clone()));
        assert_eq!(counts(&route(4, &[0], 2)), (vec![], all.clone()));
        assert_eq!(counts(&route(2, &[0], 2)), (vec![0, 1], vec![]));
        assert_eq!(counts(&route(6, &[0], 0)), (vec![], all.clone()));
        let unknown = TopicRouteData {
            broker_datas: Vec::new(),
            ..route(6, &[], 2)
        };
        assert_eq!(counts(&unknown), (vec![], all));
    }
}
