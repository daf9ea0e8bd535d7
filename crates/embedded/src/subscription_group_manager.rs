use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rocketmq_protocol::body::{DataVersion, JsonBody, SubscriptionGroupConfig};
use rocketmq_protocol::validators::check_group;

use crate::store::now_millis;

/// The consumer groups that a broker knows and their settings (Java `SubscriptionGroupManager`).
/// Kept while the broker is down.
#[derive(Debug, Default)]
pub(crate) struct SubscriptionGroupManager {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    groups: BTreeMap<String, Arc<SubscriptionGroupConfig>>,
    version: DataVersion,
}

/// What Java's settings say of a group that says nothing of it.
const DEFAULT_RETRY_POLICY: &[u8] = br#"{"groupRetryPolicy":{"type":"CUSTOMIZED"}}"#;

impl State {
    fn put(&mut self, mut config: SubscriptionGroupConfig) -> Arc<SubscriptionGroupConfig> {
        if config.group_retry_policy.is_none() {
            let default = SubscriptionGroupConfig::from_json(DEFAULT_RETRY_POLICY).ok();
            config.group_retry_policy = default.and_then(|config| config.group_retry_policy);
        }
        let config = Arc::new(config);
        self.groups
            .insert(config.group_name.clone(), Arc::clone(&config));
        self.next_version();
        config
    }

    fn next_version(&mut self) {
        self.version.counter += 1;
        self.version.timestamp = now_millis();
    }
}

impl SubscriptionGroupManager {
    /// Finds a group, or creates it with Java's settings if that is allowed and its name may be
    /// one (Java `findSubscriptionGroupConfig`).
    pub(crate) fn find(
        &self,
        group: &str,
        auto_create: bool,
    ) -> Option<Arc<SubscriptionGroupConfig>> {
        let mut state = self.state.lock();
        if let Some(config) = state.groups.get(group) {
            return Some(Arc::clone(config));
        }
        if !auto_create || check_group(group).is_err() {
            return None;
        }
        Some(state.put(SubscriptionGroupConfig::new(group)))
    }

    /// Whether a group was seen or created before.
    pub(crate) fn contains(&self, group: &str) -> bool {
        self.state.lock().groups.contains_key(group)
    }

    /// Creates a group or replaces its settings.
    pub(crate) fn update(&self, config: SubscriptionGroupConfig) {
        self.state.lock().put(config);
    }

    pub(crate) fn delete(&self, group: &str) {
        let mut state = self.state.lock();
        if state.groups.remove(group).is_some() {
            state.next_version();
        }
    }

    /// All groups and the version of the table.
    pub(crate) fn all(&self) -> (BTreeMap<String, SubscriptionGroupConfig>, DataVersion) {
        let state = self.state.lock();
        let groups = state.groups.iter();
        let groups = groups
            .map(|(group, config)| (group.clone(), SubscriptionGroupConfig::clone(config)))
            .collect();
        (groups, state.version)
    }
}
