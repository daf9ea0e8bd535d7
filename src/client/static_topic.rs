//! Static topics: queues that keep their number while they move from broker to broker.
//!
//! Such a queue has a made-up broker name. Which broker holds it at the moment is in the route, and
//! brokers translate numbers and offsets.

use std::collections::BTreeMap;

use rocketmq_protocol::MessageQueue;
use rocketmq_protocol::body::{TopicQueueMappingInfo, TopicRouteData};

use crate::sync::Arc;

/// Starts the broker name of every queue of a static topic (Java
/// `MixAll#LOGICAL_QUEUE_MOCK_BROKER_PREFIX`).
pub(crate) const MOCK_BROKER_PREFIX: &str = "__syslo__";
/// Stands for the broker of a queue that nobody holds; no route names it (Java
/// `MixAll#LOGICAL_QUEUE_MOCK_BROKER_NAME_NOT_EXIST`).
pub(crate) const NO_BROKER: &str = "__syslo__none__";
/// Java `MixAll#METADATA_SCOPE_GLOBAL`; its first two characters are left out of the broker name.
const GLOBAL_SCOPE: &str = "__global__";
/// The most queues that a route is believed; a count is only a number on the wire.
const MAX_QUEUES: usize = 1 << 16;

/// Queue → the name of the broker that holds it.
pub(crate) type Endpoints = BTreeMap<MessageQueue, Arc<str>>;

/// The queues of a static topic, or `None` for any other (Java
/// `MQClientInstance#topicRouteData2EndpointsForStaticTopic`). Of two brokers that claim a queue the
/// one with the later mapping has it.
pub(crate) fn endpoints(topic: &str, route: &TopicRouteData) -> Option<Endpoints> {
    let mappings = route
        .topic_queue_mapping_by_broker
        .as_ref()
        .filter(|mappings| !mappings.is_empty())?;
    let mut by_scope: BTreeMap<&str, Vec<&TopicQueueMappingInfo>> = BTreeMap::new();
    for info in mappings.values().filter(|info| !info.scope.is_empty()) {
        by_scope.entry(&info.scope).or_default().push(info);
    }
    let mut endpoints = Endpoints::new();
    for (scope, infos) in by_scope {
        let mut holders: BTreeMap<i32, &TopicQueueMappingInfo> = BTreeMap::new();
        for info in &infos {
            for id in info.curr_id_map.keys() {
                let holder = holders.entry(*id).or_insert(info);
                if holder.epoch <= info.epoch {
                    *holder = info;
                }
            }
        }
        let topic: Arc<str> = topic.into();
        let mock_broker: Arc<str> = mock_broker_name(scope).into();
        let none: Arc<str> = NO_BROKER.into();
        let total = infos.iter().map(|info| info.total_queues).max();
        let room = MAX_QUEUES.saturating_sub(endpoints.len());
        for id in (0..total.unwrap_or(0)).take(room) {
            let holder = holders.get(&id).map_or_else(
                || Arc::clone(&none),
                |info| info.broker_name.as_str().into(),
            );
            let mq = MessageQueue::new(Arc::clone(&topic), Arc::clone(&mock_broker), id);
            endpoints.insert(mq, holder);
        }
    }
    Some(endpoints)
}

/// [`TopicRouteData::publish_queues`], static topics included.
pub(crate) fn publish_queues(topic: &str, route: &TopicRouteData) -> (Vec<MessageQueue>, bool) {
    let endpoints = endpoints(topic, route).filter(|_| route.order_topic_conf.is_none());
    match endpoints {
        Some(endpoints) => {
            let mut queues: Vec<_> = endpoints.into_keys().collect();
            queues.sort_by_key(MessageQueue::queue_id);
            (queues, false)
        }
        None => route.publish_queues(topic),
    }
}

/// [`TopicRouteData::subscribe_queues`], static topics included; sorted.
pub(crate) fn subscribe_queues(topic: &str, route: &TopicRouteData) -> Vec<MessageQueue> {
    match endpoints(topic, route) {
        Some(endpoints) => endpoints.into_keys().collect(),
        None => route.subscribe_queues(topic),
    }
}

/// Java `TopicQueueMappingUtils#getMockBrokerName`.
fn mock_broker_name(scope: &str) -> String {
    let named = match scope {
        GLOBAL_SCOPE => scope.trim_start_matches('_'),
        scope => scope,
    };
    format!("{MOCK_BROKER_PREFIX}{named}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(
        broker: &str,
        scope: &str,
        epoch: i64,
        total: i32,
        ids: &[i32],
    ) -> TopicQueueMappingInfo {
        TopicQueueMappingInfo {
            broker_name: broker.into(),
            scope: scope.into(),
            epoch,
            total_queues: total,
            curr_id_map: ids.iter().map(|id| (*id, 0)).collect(),
            ..TopicQueueMappingInfo::default()
        }
    }

    fn route(mappings: &[TopicQueueMappingInfo]) -> TopicRouteData {
        let by_broker = mappings
            .iter()
            .enumerate()
            .map(|(at, info)| (format!("{at}{}", info.broker_name), info.clone()));
        TopicRouteData {
            topic_queue_mapping_by_broker: Some(by_broker.collect()),
            ..TopicRouteData::default()
        }
    }

    fn shown(endpoints: &Endpoints) -> Vec<String> {
        endpoints
            .iter()
            .map(|(mq, at)| format!("{}/{}@{at}", mq.broker_name(), mq.queue_id()))
            .collect()
    }

    #[test]
    fn queues_are_where_the_latest_mapping_has_them() {
        let route = route(&[
            mapping("a", "__global__", 1, 3, &[0, 1]),
            mapping("b", "__global__", 2, 4, &[1, 9]),
        ]);
        let endpoints = endpoints("t", &route).unwrap();
        assert_eq!(
            shown(&endpoints),
            [
                "__syslo__global__/0@a",
                "__syslo__global__/1@b",
                "__syslo__global__/2@__syslo__none__",
                "__syslo__global__/3@__syslo__none__",
            ]
        );
        let (publish, ordered) = publish_queues("t", &route);
        assert_eq!(publish, subscribe_queues("t", &route));
        assert_eq!((publish.len(), ordered), (4, false));
    }

    #[test]
    fn scopes_are_apart_and_publishing_goes_by_number() {
        let route = route(&[
            mapping("a", "two", 1, 2, &[0, 1]),
            mapping("b", "one", 1, 2, &[0, 1]),
            mapping("c", "", 1, 9, &[0]),
        ]);
        let names = |queues: &[MessageQueue]| -> Vec<String> {
            queues
                .iter()
                .map(|mq| format!("{}{}", mq.broker_name(), mq.queue_id()))
                .collect()
        };
        assert_eq!(
            names(&publish_queues("t", &route).0),
            [
                "__syslo__one0",
                "__syslo__two0",
                "__syslo__one1",
                "__syslo__two1"
            ]
        );
        assert_eq!(
            names(&subscribe_queues("t", &route)),
            [
                "__syslo__one0",
                "__syslo__one1",
                "__syslo__two0",
                "__syslo__two1"
            ]
        );
    }

    #[test]
    fn other_topics_are_none_and_an_order_configuration_comes_first() {
        assert_eq!(endpoints("t", &TopicRouteData::default()), None);
        assert_eq!(endpoints("t", &route(&[])), None);
        let ordered = TopicRouteData {
            order_topic_conf: Some("b:2".into()),
            ..route(&[mapping("a", "s", 1, 4, &[0])])
        };
        assert_eq!(publish_queues("t", &ordered).0.len(), 2);
        assert_eq!(subscribe_queues("t", &ordered).len(), 4);
    }

    #[test]
    fn a_count_is_not_believed_without_end() {
        let huge = route(&[
            mapping("a", "s", 1, i32::MAX, &[0]),
            mapping("b", "r", 1, -1, &[0]),
        ]);
        assert_eq!(endpoints("t", &huge).unwrap().len(), MAX_QUEUES);
    }
}
