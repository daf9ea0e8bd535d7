use std::collections::{BTreeSet, HashMap};

use parking_lot::Mutex;

/// How far the groups of a broker are (Java `ConsumerOffsetManager`). Kept while the broker is
/// down.
#[derive(Debug, Default)]
pub(crate) struct OffsetTable {
    groups: Mutex<HashMap<String, Queues>>,
}

/// By topic and queue.
type Queues = HashMap<(String, i32), Progress>;

/// One group on one queue.
#[derive(Debug, Default, Clone, Copy)]
struct Progress {
    committed: Option<i64>,
    /// Where its next pull goes on.
    pulled: Option<i64>,
    /// Where its next pull is sent to; until then nothing is committed.
    reset: Option<i64>,
}

impl OffsetTable {
    /// Stores an offset; neither order nor range is checked, as at a real broker.
    pub(crate) fn commit(&self, group: &str, topic: &str, queue_id: i32, offset: i64) {
        self.change(group, topic, queue_id, |progress| {
            progress.committed = Some(offset);
        });
    }

    /// Stores an offset unless the group has yet to hear of a reset; false if so.
    pub(crate) fn commit_unless_reset(
        &self,
        group: &str,
        topic: &str,
        queue_id: i32,
        offset: i64,
    ) -> bool {
        self.change(group, topic, queue_id, |progress| {
            let free = progress.reset.is_none();
            if free {
                progress.committed = Some(offset);
            }
            free
        })
    }

    /// The target of a reset that is under way, or the stored offset; a negative one counts as
    /// none.
    pub(crate) fn query(&self, group: &str, topic: &str, queue_id: i32) -> Option<i64> {
        let progress = self.progress(group, topic, queue_id);
        let offset = progress.reset.or(progress.committed);
        offset.filter(|offset| *offset >= 0)
    }

    /// Notes where a group's pulls go on.
    pub(crate) fn pulled(&self, group: &str, topic: &str, queue_id: i32, offset: i64) {
        self.change(group, topic, queue_id, |progress| {
            progress.pulled = Some(offset);
        });
    }

    /// Where a group's next pull goes on.
    pub(crate) fn query_pulled(&self, group: &str, topic: &str, queue_id: i32) -> Option<i64> {
        let pulled = self.progress(group, topic, queue_id).pulled;
        pulled.or_else(|| self.query(group, topic, queue_id))
    }

    /// Sends the group's next pull of the queue elsewhere, and commits that offset.
    pub(crate) fn assign_reset(&self, group: &str, topic: &str, queue_id: i32, offset: i64) {
        self.change(group, topic, queue_id, |progress| {
            progress.reset = Some(offset);
            progress.committed = Some(offset);
        });
    }

    /// Ends a reset, for the pull that hears of it.
    pub(crate) fn take_reset(&self, group: &str, topic: &str, queue_id: i32) -> Option<i64> {
        let mut groups = self.groups.lock();
        let queues = groups.get_mut(group)?;
        queues.get_mut(&(topic.to_owned(), queue_id))?.reset.take()
    }

    /// The topics on which a group has stored something.
    pub(crate) fn topics_of(&self, group: &str) -> BTreeSet<String> {
        let groups = self.groups.lock();
        let queues = groups.get(group).into_iter().flatten();
        queues
            .filter(|(_, progress)| progress.committed.is_some())
            .map(|((topic, _), _)| topic.clone())
            .collect()
    }

    pub(crate) fn forget_topic(&self, topic: &str) {
        for queues in self.groups.lock().values_mut() {
            queues.retain(|(of, _), _| of != topic);
        }
    }

    pub(crate) fn forget_group(&self, group: &str) {
        self.groups.lock().remove(group);
    }

    fn progress(&self, group: &str, topic: &str, queue_id: i32) -> Progress {
        let groups = self.groups.lock();
        groups
            .get(group)
            .and_then(|queues| queues.get(&(topic.to_owned(), queue_id)))
            .copied()
            .unwrap_or_default()
    }

    fn change<T>(
        &self,
        group: &str,
        topic: &str,
        queue_id: i32,
        change: impl FnOnce(&mut Progress) -> T,
    ) -> T {
        let mut groups = self.groups.lock();
        let queues = match groups.get_mut(group) {
            Some(queues) => queues,
            None => groups.entry(group.to_owned()).or_default(),
        };
        change(queues.entry((topic.to_owned(), queue_id)).or_default())
    }
}
