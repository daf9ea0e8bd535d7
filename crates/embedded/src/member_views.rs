use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

/// A question for the members of a group (GET_CONSUMER_LIST_BY_GROUP, 38), as
/// [`Cluster::set_member_view`](crate::Cluster::set_member_view) hands it out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemberListQuery {
    /// The broker that is asked.
    pub broker: Arc<str>,
    /// The group.
    pub group: String,
    /// The client id of who asks; `None` before its first heartbeat.
    pub asker: Option<Arc<str>>,
    /// The true answer: one id a connection, sorted.
    pub members: Vec<String>,
}

type View = Arc<dyn Fn(&MemberListQuery) -> Vec<String> + Send + Sync>;

/// What brokers answer in place of the true members of groups.
#[derive(Default)]
pub(crate) struct MemberViews {
    by_group: Mutex<HashMap<String, View>>,
}

impl MemberViews {
    pub(crate) fn set(&self, group: &str, view: View) {
        self.by_group.lock().insert(group.to_owned(), view);
    }

    pub(crate) fn clear(&self, group: &str) {
        self.by_group.lock().remove(group);
    }

    /// The members as this asker shall see them. The view is called without a lock.
    pub(crate) fn apply(
        &self,
        query: impl FnOnce() -> MemberListQuery,
        group: &str,
    ) -> Option<Vec<String>> {
        let view = Arc::clone(self.by_group.lock().get(group)?);
        Some(view(&query()))
    }
}

impl fmt::Debug for MemberViews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemberViews")
            .field("groups", &self.by_group.lock().len())
            .finish()
    }
}
