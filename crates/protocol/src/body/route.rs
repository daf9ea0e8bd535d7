use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{JsonBody, OrderTopicConf};
use crate::{MessageQueue, compare_utf16};

/// The broker id of a master.
pub const MASTER_ID: i64 = 0;

/// Permission bits of a topic's queues (Java `PermName`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Permission(pub i32);

impl Permission {
    /// Bits 4 and 2: read and write.
    pub const READ_WRITE: Self = Self(6);

    /// Whether consumers may read.
    pub const fn is_readable(self) -> bool {
        self.0 & 4 != 0
    }

    /// Whether producers may write.
    pub const fn is_writeable(self) -> bool {
        self.0 & 2 != 0
    }

    /// Whether a topic that is created on the fly takes its settings from this one.
    pub const fn is_inherited(self) -> bool {
        self.0 & 1 != 0
    }
}

/// Where a topic's queues are (answer to GET_ROUTEINFO_BY_TOPIC, 105).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopicRouteData {
    /// The brokers that hold queues.
    pub broker_datas: Vec<BrokerData>,
    /// Filter servers by broker address; long out of use, but always written by Java.
    pub filter_server_table: BTreeMap<String, Vec<String>>,
    /// `broker:n` pairs joined by `;` for an ordered topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order_topic_conf: Option<String>,
    /// How many queues each broker holds.
    pub queue_datas: Vec<QueueData>,
    /// The queues of a static topic by broker name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic_queue_mapping_by_broker: Option<BTreeMap<String, TopicQueueMappingInfo>>,
}

impl JsonBody for TopicRouteData {
    const NAME: &'static str = "TopicRouteData";
}

/// One broker of a route: a master and its replicas.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BrokerData {
    /// Broker id → `host:port`; id 0 is the master.
    pub broker_addrs: BTreeMap<i64, String>,
    /// The broker's name.
    pub broker_name: String,
    /// The cluster it belongs to.
    pub cluster: String,
    /// Whether a replica may act for a lost master.
    pub enable_acting_master: bool,
    /// The zone it stands in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone_name: Option<String>,
}

/// Which queues of a static topic one broker holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopicQueueMappingInfo {
    /// The broker's name.
    #[serde(rename = "bname")]
    pub broker_name: String,
    /// The topic's queue id → the broker's own.
    pub curr_id_map: BTreeMap<i32, i32>,
    /// Whether the mapping is about to change.
    pub dirty: bool,
    /// Counts changes of the mapping.
    pub epoch: i64,
    /// Part of the name under which the queues appear.
    pub scope: String,
    /// The topic.
    pub topic: String,
    /// The queues of the topic on all brokers.
    pub total_queues: i32,
}

/// How many queues of a topic one broker holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct QueueData {
    /// The broker's name.
    pub broker_name: String,
    /// Permission bits, see [`Permission`].
    pub perm: i32,
    /// Queues that can be read.
    pub read_queue_nums: i32,
    /// Flags of the topic.
    pub topic_sys_flag: i32,
    /// Queues that can be written.
    pub write_queue_nums: i32,
}

/// The most queues of one broker that a route is believed; a count is only a number on the wire.
const MAX_QUEUES_PER_BROKER: i32 = 65_536;

/// The most queues of one topic that a route is believed, for the same reason.
const MAX_QUEUES: usize = 1 << 20;

impl TopicRouteData {
    /// The same route in the order in which two routes are compared (Java sorts copies of both).
    #[must_use]
    pub fn sorted(mut self) -> Self {
        self.queue_datas
            .sort_by(|a, b| compare_utf16(&a.broker_name, &b.broker_name));
        self.broker_datas
            .sort_by(|a, b| compare_utf16(&a.broker_name, &b.broker_name));
        self
    }

    /// One line for people: each broker's queues, permission and addresses.
    pub fn summary(&self) -> String {
        if self.queue_datas.is_empty() {
            return "no queues".to_owned();
        }
        let brokers = self.queue_datas.iter().map(|queues| {
            let named = |broker: &&BrokerData| broker.broker_name == queues.broker_name;
            let addrs: Vec<String> = (self.broker_datas.iter().find(named))
                .into_iter()
                .flat_map(|broker| &broker.broker_addrs)
                .map(|(id, addr)| match id {
                    0 => addr.clone(),
                    _ => format!("replica {id} {addr}"),
                })
                .collect();
            let addrs = match addrs.is_empty() {
                true => "no address".to_owned(),
                false => addrs.join(", "),
            };
            format!(
                "{} ({addrs}) reads {} and writes {} queues, permission {}",
                queues.broker_name, queues.read_queue_nums, queues.write_queue_nums, queues.perm
            )
        });
        brokers.collect::<Vec<_>>().join("; ")
    }

    /// The order configuration, if there is one.
    pub fn order(&self) -> Option<OrderTopicConf<'_>> {
        let conf = self.order_topic_conf.as_deref()?;
        (!conf.is_empty()).then(|| OrderTopicConf::parse(conf))
    }

    /// The queues a producer may choose from, in the order it goes round them, and whether the
    /// topic has an order configuration (Java `MQClientInstance#topicRouteData2TopicPublishInfo`).
    ///
    /// Without such a configuration these are the writeable queues of brokers that have a master,
    /// sorted by broker name.
    pub fn publish_queues(&self, topic: &str) -> (Vec<MessageQueue>, bool) {
        let topic: Arc<str> = topic.into();
        if let Some(conf) = self.order() {
            let brokers = conf.brokers.into_iter();
            let queues = brokers
                .flat_map(|(broker, count)| queues_of(&topic, broker, count))
                .take(MAX_QUEUES)
                .collect();
            return (queues, true);
        }
        let mut datas: Vec<&QueueData> = self.queue_datas.iter().collect();
        datas.sort_by(|a, b| compare_utf16(&a.broker_name, &b.broker_name));
        let mut has_master: HashMap<&str, bool> = HashMap::new();
        for data in &self.broker_datas {
            has_master
                .entry(&data.broker_name)
                .or_insert_with(|| data.broker_addrs.contains_key(&MASTER_ID));
        }
        let queues = datas
            .into_iter()
            .filter(|data| {
                let has_master = has_master.get(data.broker_name.as_str());
                Permission(data.perm).is_writeable() && has_master == Some(&true)
            })
            .flat_map(|data| queues_of(&topic, &data.broker_name, data.write_queue_nums))
            .take(MAX_QUEUES)
            .collect();
        (queues, false)
    }

    /// The queues a consumer may read, sorted
    /// (Java `MQClientInstance#topicRouteData2TopicSubscribeInfo`). No master is needed.
    pub fn subscribe_queues(&self, topic: &str) -> Vec<MessageQueue> {
        let topic: Arc<str> = topic.into();
        let mut queues: Vec<MessageQueue> = self
            .queue_datas
            .iter()
            .filter(|data| Permission(data.perm).is_readable())
            .flat_map(|data| queues_of(&topic, &data.broker_name, data.read_queue_nums))
            .take(MAX_QUEUES)
            .collect();
        MessageQueue::sort(&mut queues);
        queues.dedup();
        queues
    }
}

fn queues_of(
    topic: &Arc<str>,
    broker: &str,
    count: i32,
) -> impl Iterator<Item = MessageQueue> + use<> {
    let topic = Arc::clone(topic);
    let broker: Arc<str> = broker.into();
    (0..count.min(MAX_QUEUES_PER_BROKER))
        .map(move |id| MessageQueue::new(Arc::clone(&topic), Arc::clone(&broker), id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_tells_where_the_queues_are() {
        let broker = |name: &str, addrs: &[(i64, &str)]| BrokerData {
            broker_name: name.to_owned(),
            broker_addrs: addrs
                .iter()
                .map(|(id, at)| (*id, (*at).to_owned()))
                .collect(),
            ..BrokerData::default()
        };
        let queues = |name: &str, perm| QueueData {
            broker_name: name.to_owned(),
            perm,
            read_queue_nums: 8,
            write_queue_nums: 4,
            ..QueueData::default()
        };
        let route = TopicRouteData {
            broker_datas: vec![broker("a", &[(0, "h:1"), (1, "h:2")])],
            queue_datas: vec![queues("a", 6), queues("b", 4)],
            ..TopicRouteData::default()
        };
        assert_eq!(
            route.summary(),
            "a (h:1, replica 1 h:2) reads 8 and writes 4 queues, permission 6; \
             b (no address) reads 8 and writes 4 queues, permission 4"
        );
        assert_eq!(TopicRouteData::default().summary(), "no queues");
    }
}
