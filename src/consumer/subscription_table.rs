//! What a consumer subscribes, and what its brokers have been told of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use rocketmq_protocol::SubscriptionData;

use crate::client::next_sub_version;
use crate::sync::{Arc, Mutex};

/// Topic → subscription; changes while the consumer runs.
///
/// A broker filters by the newest version it was told in a heartbeat, and refuses pulls that name a
/// newer one. So a changed expression is first told and then used; and its version is larger than
/// any that was told before, whatever the clock does, or brokers would go on with the old one.
pub(super) struct SubscriptionTable {
    state: Mutex<State>,
}

struct State {
    entries: BTreeMap<String, Entry>,
    /// What heartbeats say of when the subscriptions last changed, each version below it included.
    /// Pulls say when their expression was made, which is never later.
    heartbeat_version: i64,
}

struct Entry {
    told: Arc<SubscriptionData>,
    /// What pulls name, and what their messages are filtered by.
    used: Arc<SubscriptionData>,
    /// Subscribed while the consumer runs, and its queues were not brought since: those that are
    /// known from an earlier subscription may be old.
    route_awaited: bool,
}

/// What became of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) version: i64,
    pub(super) is_new_topic: bool,
}

impl SubscriptionTable {
    pub(super) fn new(subscriptions: impl IntoIterator<Item = SubscriptionData>) -> Self {
        let entries: BTreeMap<_, _> = subscriptions
            .into_iter()
            .map(|data| (data.topic.clone(), Entry::new(data, false)))
            .collect();
        let versions = entries.values().map(|entry| entry.told.sub_version);
        Self {
            state: Mutex::new(State {
                heartbeat_version: versions.max().unwrap_or(0),
                entries,
            }),
        }
    }

    /// What to pull and filter a topic by.
    pub(super) fn get(&self, topic: &str) -> Option<Arc<SubscriptionData>> {
        let state = self.state.lock();
        state
            .entries
            .get(topic)
            .map(|entry| Arc::clone(&entry.used))
    }

    pub(super) fn topics(&self) -> BTreeSet<String> {
        self.state.lock().entries.keys().cloned().collect()
    }

    /// What a heartbeat says.
    pub(super) fn told(&self) -> Vec<SubscriptionData> {
        let state = self.state.lock();
        let told = state.entries.values().map(|entry| SubscriptionData {
            sub_version: entry.told.sub_version.max(state.heartbeat_version),
            ..SubscriptionData::clone(&entry.told)
        });
        told.collect()
    }

    /// Takes a subscription in, for heartbeats to tell, with a version of its own. A topic that was
    /// not subscribed is used at once.
    pub(super) fn tell(&self, mut data: SubscriptionData) -> Told {
        let mut state = self.state.lock();
        let version = state.next_version(next_sub_version());
        data.sub_version = version;
        let is_new_topic = match state.entries.get_mut(&data.topic) {
            Some(entry) => {
                entry.told = Arc::new(data);
                false
            }
            None => {
                let topic = data.topic.clone();
                state.entries.insert(topic, Entry::new(data, true));
                true
            }
        };
        Told {
            version,
            is_new_topic,
        }
    }

    /// Lets pulls use what was told, unless something newer is being told.
    pub(super) fn use_told(&self, topic: &str, version: i64) {
        if let Some(entry) = self.state.lock().entries.get_mut(topic) {
            if entry.told.sub_version == version {
                entry.used = Arc::clone(&entry.told);
            }
        }
    }

    /// Forgets a topic; `false` if it was not subscribed.
    pub(super) fn remove(&self, topic: &str) -> bool {
        self.state.lock().entries.remove(topic).is_some()
    }

    /// Notes that the own queues changed, which Java's brokers are told as a change of the
    /// subscription.
    pub(super) fn queues_changed(&self) {
        let mut state = self.state.lock();
        state.heartbeat_version = state.heartbeat_version.max(next_sub_version());
    }

    /// Whether the queues of a topic are waited for; see `route_awaited`.
    pub(super) fn is_route_awaited(&self, topic: &str) -> bool {
        let state = self.state.lock();
        let entry = state.entries.get(topic);
        entry.is_some_and(|entry| entry.route_awaited)
    }

    /// Notes that the queues of a topic were brought; `false` if it is not subscribed.
    pub(super) fn route_came(&self, topic: &str) -> bool {
        let mut state = self.state.lock();
        let entry = state.entries.get_mut(topic);
        entry.map(|entry| entry.route_awaited = false).is_some()
    }
}

impl State {
    fn next_version(&mut self, now: i64) -> i64 {
        self.heartbeat_version = now.max(self.heartbeat_version.saturating_add(1));
        self.heartbeat_version
    }
}

impl Entry {
    fn new(data: SubscriptionData, route_awaited: bool) -> Self {
        let data = Arc::new(data);
        Self {
            told: Arc::clone(&data),
            used: data,
            route_awaited,
        }
    }
}

impl fmt::Debug for SubscriptionTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.topics()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::system_time_millis;

    fn data(topic: &str, expression: &str, version: i64) -> SubscriptionData {
        SubscriptionData::build(topic, expression, version).unwrap()
    }

    #[test]
    fn a_change_is_told_before_it_is_used() {
        let table = SubscriptionTable::new([data("T", "A", 5)]);
        let told = table.tell(data("T", "A || B", 0));
        assert!(!told.is_new_topic);
        assert_eq!(table.get("T").unwrap().sub_string, "A");
        assert_eq!(table.told()[0].sub_string, "A || B");
        let newer = table.tell(data("T", "C", 0));
        table.use_told("T", told.version);
        assert_eq!(table.get("T").unwrap().sub_string, "A", "something newer");
        table.use_told("T", newer.version);
        assert_eq!(table.get("T").unwrap().sub_string, "C");
        assert_eq!(table.get("T").unwrap().sub_version, newer.version);
    }

    #[test]
    fn versions_only_grow_whatever_the_clock_says() {
        let ahead = system_time_millis() + 1_000_000;
        let table = SubscriptionTable::new([data("T", "A", ahead)]);
        assert_eq!(table.tell(data("T", "B", 0)).version, ahead + 1);
        assert!(table.remove("T"));
        let again = table.tell(data("T", "A", 0));
        assert_eq!(
            (again.version, again.is_new_topic),
            (ahead + 2, true),
            "brokers may remember the topic's last version"
        );
        table.queues_changed();
        assert_eq!(table.told()[0].sub_version, ahead + 2);
    }

    #[test]
    fn heartbeats_are_never_behind_pulls() {
        let table = SubscriptionTable::new([data("T", "A", 1), data("U", "*", 2)]);
        table.tell(data("U", "B", 0));
        table.queues_changed();
        for told in table.told() {
            assert!(told.sub_version >= table.get(&told.topic).unwrap().sub_version);
        }
    }

    #[test]
    fn a_topic_that_comes_back_waits_for_its_queues() {
        let table = SubscriptionTable::new([data("T", "A", 1)]);
        assert!(!table.is_route_awaited("T"));
        table.remove("T");
        assert!(!table.route_came("T"), "not subscribed");
        table.tell(data("T", "A", 0));
        assert!(table.is_route_awaited("T"));
        assert!(table.route_came("T"));
        assert!(!table.is_route_awaited("T"));
    }
}
