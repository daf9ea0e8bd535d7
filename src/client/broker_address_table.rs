use std::collections::{BTreeMap, BTreeSet};

use rocketmq_protocol::body::{BrokerData, MASTER_ID};

use crate::sync::{Arc, RwLock};

type AddressById = BTreeMap<i64, Arc<str>>;

/// Where brokers are: broker name → id → address.
///
/// An id of 0 is the master, others are replicas. A broker that leaves the routes stays until
/// [`clean_offline_broker`](Self::clean_offline_broker).
///
/// # Java
/// `MQClientInstance#brokerAddrTable`
#[derive(Debug, Default)]
pub(crate) struct BrokerAddressTable {
    brokers: RwLock<BTreeMap<Arc<str>, AddressById>>,
}

/// A broker process to talk to (Java `FindBrokerResult`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FindBrokerResult {
    pub(crate) broker_addr: Arc<str>,
    pub(crate) slave: bool,
}

/// One address of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BrokerAddress {
    pub(crate) broker_name: Arc<str>,
    pub(crate) broker_id: i64,
    pub(crate) broker_addr: Arc<str>,
}

/// Whether another process of the same broker may stand in for the one asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnlyThisBroker {
    Yes,
    No,
}

impl BrokerAddressTable {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Takes the brokers of a route over. Each replaces all that was known of its name; brokers
    /// that the route does not name stay.
    pub(crate) fn update(&self, broker_datas: &[BrokerData]) {
        let mut brokers = self.brokers.write();
        for data in broker_datas {
            let addresses = data
                .broker_addrs
                .iter()
                .map(|(id, address)| (*id, address.as_str().into()))
                .collect();
            brokers.insert(data.broker_name.as_str().into(), addresses);
        }
    }

    /// The master's address.
    pub(crate) fn find_broker_address_in_publish(&self, broker_name: &str) -> Option<Arc<str>> {
        self.brokers
            .read()
            .get(broker_name)?
            .get(&MASTER_ID)
            .cloned()
    }

    /// The address to pull from: that of `broker_id`; else, for a replica, that of the next id;
    /// else, unless only this broker will do, any, the smallest id first.
    ///
    /// # Java
    /// `MQClientInstance#findBrokerAddressInSubscribe`, which takes the first of its hash map last.
    pub(crate) fn find_broker_address_in_subscribe(
        &self,
        broker_name: &str,
        broker_id: i64,
        only_this_broker: OnlyThisBroker,
    ) -> Option<FindBrokerResult> {
        let brokers = self.brokers.read();
        let addresses = brokers.get(broker_name)?;
        let wanted_slave = broker_id != MASTER_ID;
        let next = || {
            let next_id = broker_id.checked_add(1).filter(|_| wanted_slave)?;
            addresses.get(&next_id)
        };
        if let Some(address) = addresses.get(&broker_id).or_else(next) {
            return Some(FindBrokerResult {
                broker_addr: Arc::clone(address),
                slave: wanted_slave,
            });
        }
        if only_this_broker == OnlyThisBroker::Yes {
            return None;
        }
        let (id, address) = addresses.first_key_value()?;
        Some(FindBrokerResult {
            broker_addr: Arc::clone(address),
            slave: *id != MASTER_ID,
        })
    }

    /// All addresses, sorted by broker name and id.
    pub(crate) fn all_addresses(&self) -> Vec<BrokerAddress> {
        let brokers = self.brokers.read();
        brokers
            .iter()
            .flat_map(|(name, addresses)| {
                addresses.iter().map(|(id, address)| BrokerAddress {
                    broker_name: Arc::clone(name),
                    broker_id: *id,
                    broker_addr: Arc::clone(address),
                })
            })
            .collect()
    }

    /// Whether a broker has this address.
    pub(crate) fn contains_address(&self, addr: &str) -> bool {
        let brokers = self.brokers.read();
        brokers
            .values()
            .flat_map(|addresses| addresses.values())
            .any(|address| **address == *addr)
    }

    /// The addresses that heartbeats go to: all masters, and replicas too if there are consumers,
    /// which may pull from them.
    pub(crate) fn heartbeat_targets(&self, have_consumers: bool) -> Vec<Arc<str>> {
        self.all_addresses()
            .into_iter()
            .filter(|address| have_consumers || address.broker_id == MASTER_ID)
            .map(|address| address.broker_addr)
            .collect()
    }

    /// Removes all addresses but `live`, and brokers without any left, and returns what was
    /// removed.
    ///
    /// # Java
    /// `MQClientInstance#cleanOfflineBroker`, where the live ones are those of the cached routes.
    pub(crate) fn clean_offline_broker(&self, live: &BTreeSet<&str>) -> Vec<BrokerAddress> {
        let mut removed = Vec::new();
        self.brokers.write().retain(|name, addresses| {
            addresses.retain(|id, address| {
                let is_live = live.contains(&**address);
                if !is_live {
                    removed.push(BrokerAddress {
                        broker_name: Arc::clone(name),
                        broker_id: *id,
                        broker_addr: Arc::clone(address),
                    });
                }
                is_live
            });
            !addresses.is_empty()
        });
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broker(name: &str, addresses: &[(i64, &str)]) -> BrokerData {
        BrokerData {
            broker_name: name.to_owned(),
            broker_addrs: addresses
                .iter()
                .map(|(id, address)| (*id, (*address).to_owned()))
                .collect(),
            ..BrokerData::default()
        }
    }

    fn table() -> BrokerAddressTable {
        let table = BrokerAddressTable::new();
        table.update(&[
            broker("a", &[(0, "a0"), (1, "a1"), (3, "a3")]),
            broker("b", &[(2, "b2")]),
        ]);
        table
    }

    fn addresses(found: &[BrokerAddress]) -> Vec<&str> {
        found.iter().map(|found| &*found.broker_addr).collect()
    }

    #[test]
    fn producers_get_the_master_only() {
        let table = table();
        assert_eq!(
            table.find_broker_address_in_publish("a").as_deref(),
            Some("a0")
        );
        assert_eq!(table.find_broker_address_in_publish("b"), None);
        assert_eq!(table.find_broker_address_in_publish("c"), None);
    }

    #[test]
    fn consumers_get_the_wanted_one_the_next_or_any() {
        let table = table();
        let find = |name, id, only| {
            table
                .find_broker_address_in_subscribe(name, id, only)
                .map(|found| (found.broker_addr.to_string(), found.slave))
        };
        let found = |address: &str, slave| Some((address.to_owned(), slave));
        assert_eq!(find("a", 0, OnlyThisBroker::Yes), found("a0", false));
        assert_eq!(find("a", 1, OnlyThisBroker::Yes), found("a1", true));
        assert_eq!(find("a", 2, OnlyThisBroker::Yes), found("a3", true));
        assert_eq!(find("a", 4, OnlyThisBroker::Yes), None);
        assert_eq!(find("a", 4, OnlyThisBroker::No), found("a0", false));
        assert_eq!(find("a", i64::MAX, OnlyThisBroker::No), found("a0", false));
        assert_eq!(find("b", 1, OnlyThisBroker::Yes), found("b2", true));
        assert_eq!(find("b", 0, OnlyThisBroker::Yes), None);
        assert_eq!(find("b", 0, OnlyThisBroker::No), found("b2", true));
        assert_eq!(find("c", 0, OnlyThisBroker::No), None);
    }

    #[test]
    fn a_lost_master_is_not_replaced_by_the_replica_with_id_1_if_only_it_will_do() {
        let table = BrokerAddressTable::new();
        table.update(&[broker("a", &[(1, "a1")])]);
        let only = table.find_broker_address_in_subscribe("a", 0, OnlyThisBroker::Yes);
        assert_eq!(only, None);
    }

    #[test]
    fn a_route_replaces_its_brokers_and_leaves_others() {
        let table = table();
        table.update(&[broker("a", &[(0, "new")])]);
        assert_eq!(addresses(&table.all_addresses()), ["new", "b2"]);
    }

    #[test]
    fn all_addresses_are_sorted_by_name_and_id() {
        let all = table().all_addresses();
        assert_eq!(addresses(&all), ["a0", "a1", "a3", "b2"]);
        assert_eq!((&*all[3].broker_name, all[3].broker_id), ("b", 2));
        assert!(table().contains_address("a3"));
        assert!(!table().contains_address("a4"));
    }

    #[test]
    fn replicas_get_heartbeats_only_from_clients_with_consumers() {
        let targets = |have_consumers| -> Vec<String> {
            let targets = table().heartbeat_targets(have_consumers).into_iter();
            targets.map(|addr| addr.to_string()).collect()
        };
        assert_eq!(targets(false), ["a0"]);
        assert_eq!(targets(true), ["a0", "a1", "a3", "b2"]);
    }

    #[test]
    fn offline_addresses_go_and_so_do_brokers_without_any() {
        let table = table();
        let live = ["a0", "a3", "elsewhere"].into();
        let removed = table.clean_offline_broker(&live);
        assert_eq!(addresses(&removed), ["a1", "b2"]);
        assert_eq!(addresses(&table.all_addresses()), ["a0", "a3"]);
        assert!(table.brokers.read().get("b").is_none());
    }

    /// apache/rocketmq-client-cpp#88 (PR#105), apache/rocketmq#2165 (PR#2167): with the master down, clients did not read from a replica.
    #[test]
    fn b121_a_replica_stands_in_where_any_will_do() {
        let find = |addresses: &[(i64, &str)], id, only| {
            let table = BrokerAddressTable::new();
            table.update(&[broker("b", addresses)]);
            table
                .find_broker_address_in_subscribe("b", id, only)
                .map(|found| (found.broker_addr.to_string(), found.slave))
        };
        use OnlyThisBroker::{No, Yes};
        let replica = |addr: &str| Some((addr.to_owned(), true));
        assert_eq!(find(&[(1, "s1")], 0, No), replica("s1"));
        assert_eq!(find(&[(1, "s1")], 0, Yes), None);
        assert_eq!(find(&[(1, "s1")], 1, Yes), replica("s1"));
        let both = [(0, "m"), (2, "s2")];
        assert_eq!(find(&both, 1, Yes), replica("s2"), "the next one");
        assert_eq!(find(&both, 3, No), Some(("m".to_owned(), false)));
        assert_eq!(find(&both, 3, Yes), None);
        let table = BrokerAddressTable::new();
        table.update(&[broker("b", &[(1, "s1")])]);
        assert_eq!(
            table.find_broker_address_in_publish("b"),
            None,
            "sends and locks go to masters only"
        );
    }
}
