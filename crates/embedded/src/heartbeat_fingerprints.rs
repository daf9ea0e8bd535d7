use std::collections::HashMap;

use parking_lot::Mutex;

/// What the last heartbeat of each group said of its subscriptions (Java
/// `consumerGroupHeartbeatTable`): one number a group, whoever of its members sent it.
#[derive(Debug, Default)]
pub(crate) struct HeartbeatFingerprints {
    by_group: Mutex<HashMap<String, i32>>,
}

impl HeartbeatFingerprints {
    /// Remembers a number and says whether another one was there.
    pub(crate) fn replace(&self, group: &str, fingerprint: i32) -> bool {
        let mut groups = self.by_group.lock();
        let before = groups.insert(group.to_owned(), fingerprint);
        before.is_some_and(|before| before != fingerprint)
    }
}
