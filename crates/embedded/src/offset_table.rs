use std::collections::{BTreeSet, HashMap};

use parking_lot::Mutex;
use rocketmq_protocol::validators::check_group;

/// The groups a broker knows and how far they are (Java `ConsumerOffsetManager` and the names of
/// `SubscriptionGroupManager`). Kept while the broker is down.
#[derive(Debug, Default)]
pub(crate) struct OffsetTable {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    groups: BTreeSet<String>,
    offsets: HashMap<String, HashMap<(String, i32), i64>>,
}

impl OffsetTable {
    /// Finds or creates a group; false for a name that may not be one (Java
    /// `SubscriptionGroupManager#findSubscriptionGroupConfig`).
    pub(crate) fn find_group(&self, group: &str) -> bool {
        if check_group(group).is_err() {
            return false;
        }
        let mut state = self.state.lock();
        if !state.groups.contains(group) {
            state.groups.insert(group.to_owned());
        }
        true
    }

    /// Whether a group was seen before.
    pub(crate) fn contains_group(&self, group: &str) -> bool {
        self.state.lock().groups.contains(group)
    }

    /// Stores an offset; neither order nor range is checked, as at a real broker.
    pub(crate) fn commit(&self, group: &str, topic: &str, queue_id: i32, offset: i64) {
        let mut state = self.state.lock();
        let queues = match state.offsets.get_mut(group) {
            Some(queues) => queues,
            None => state.offsets.entry(group.to_owned()).or_default(),
        };
        queues.insert((topic.to_owned(), queue_id), offset);
    }

    /// The stored offset; a negative one counts as none.
    pub(crate) fn query(&self, group: &str, topic: &str, queue_id: i32) -> Option<i64> {
        let state = self.state.lock();
        let queues = state.offsets.get(group)?;
        let offset = queues.get(&(topic.to_owned(), queue_id)).copied();
        offset.filter(|offset| *offset >= 0)
    }
}
