use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rocketmq_protocol::MessageQueue;

/// Which client of a group has which queue to itself (Java `RebalanceLockManager`). A lock belongs
/// to a client id, not to a connection, and outlives both; only time and its owner end it.
#[derive(Debug, Default)]
pub(crate) struct RebalanceLockManager {
    groups: Mutex<HashMap<String, HashMap<MessageQueue, LockEntry>>>,
}

#[derive(Debug)]
struct LockEntry {
    client_id: String,
    last_update: Instant,
}

impl RebalanceLockManager {
    /// Locks what is free, expired or the client's own, and says what the client has now. Neither
    /// topics nor broker names are looked at.
    pub(crate) fn try_lock_batch(
        &self,
        group: &str,
        queues: BTreeSet<MessageQueue>,
        client_id: &str,
        live_time: Duration,
    ) -> BTreeSet<MessageQueue> {
        let now = Instant::now();
        let mut groups = self.groups.lock();
        let entries = groups.entry(group.to_owned()).or_default();
        queues
            .into_iter()
            .filter(|queue| {
                let free = entries.get(queue).is_none_or(|entry| {
                    entry.client_id == client_id || entry.is_expired(now, live_time)
                });
                if free {
                    let entry = LockEntry {
                        client_id: client_id.to_owned(),
                        last_update: now,
                    };
                    entries.insert(queue.clone(), entry);
                }
                free
            })
            .collect()
    }

    /// Frees the queues that are the client's, expired or not.
    pub(crate) fn unlock_batch(
        &self,
        group: &str,
        queues: &BTreeSet<MessageQueue>,
        client_id: &str,
    ) {
        if let Some(entries) = self.groups.lock().get_mut(group) {
            entries.retain(|queue, entry| entry.client_id != client_id || !queues.contains(queue));
        }
    }

    /// Whether a group has no lock that still counts.
    pub(crate) fn is_lock_all_expired(&self, group: &str, live_time: Duration) -> bool {
        let now = Instant::now();
        self.groups.lock().get(group).is_none_or(|entries| {
            entries
                .values()
                .all(|entry| entry.is_expired(now, live_time))
        })
    }

    /// Who holds what in a group, expired locks left out.
    pub(crate) fn locked(&self, group: &str, live_time: Duration) -> Vec<(MessageQueue, String)> {
        let now = Instant::now();
        let groups = self.groups.lock();
        let entries = groups.get(group).into_iter().flatten();
        entries
            .filter(|(_, entry)| !entry.is_expired(now, live_time))
            .map(|(queue, entry)| (queue.clone(), entry.client_id.clone()))
            .collect()
    }
}

impl LockEntry {
    fn is_expired(&self, now: Instant, live_time: Duration) -> bool {
        now.saturating_duration_since(self.last_update) > live_time
    }
}
