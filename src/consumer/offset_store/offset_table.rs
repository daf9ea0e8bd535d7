use std::collections::{HashMap, HashSet};

use rocketmq_protocol::MessageQueue;

use crate::consumer::process_queue::ProcessQueue;
use crate::sync::Mutex;

/// The offsets to go on from, queue by queue, as they are in memory.
///
/// An offset is that of the next message to consume. Everything happens under one lock, which is
/// the last to be taken of a consumer's locks and is never held across a request.
///
/// Invariant: once [`take_for_drop`](Self::take_for_drop) has returned, no
/// [`update_if_owned`](Self::update_if_owned) with the same [`ProcessQueue`] changes anything. So
/// the value that was taken is the last word of this member about the queue.
///
/// # Java
/// `RemoteBrokerOffsetStore#offsetTable` with `ControllableOffset`. There, asking whether a queue
/// is dropped and updating its offset are two steps, and a drop in between is overwritten.
#[derive(Debug, Default)]
pub(crate) struct OffsetTable {
    entries: Mutex<HashMap<MessageQueue, ControllableOffset>>,
}

/// Whether an update may set an offset back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Update {
    /// The larger of the old and the new offset counts.
    IncreaseOnly,
    /// The new offset counts.
    Set,
}

#[derive(Debug)]
struct ControllableOffset {
    value: i64,
    frozen: bool,
}

impl OffsetTable {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Updates the offset of a queue, unless it is frozen.
    pub(crate) fn update(&self, mq: &MessageQueue, offset: i64, update: Update) {
        apply(&mut self.entries.lock(), mq, offset, update);
    }

    /// Updates the offset of a queue, unless it is frozen or `process_queue` was dropped. Returns
    /// `false` if it was dropped.
    pub(crate) fn update_if_owned(
        &self,
        mq: &MessageQueue,
        offset: i64,
        process_queue: &ProcessQueue,
        update: Update,
    ) -> bool {
        let mut entries = self.entries.lock();
        if process_queue.is_dropped() {
            return false;
        }
        apply(&mut entries, mq, offset, update);
        true
    }

    /// Marks `process_queue` as dropped and takes the queue's offset out, for the caller to save.
    pub(crate) fn take_for_drop(
        &self,
        mq: &MessageQueue,
        process_queue: &ProcessQueue,
    ) -> Option<i64> {
        let mut entries = self.entries.lock();
        process_queue.set_dropped();
        entries.remove(mq).map(|entry| entry.value)
    }

    /// Sets the offset and lets no later update change it, until the entry is forgotten; for a
    /// position that a broker dictates while messages from before are still being consumed.
    pub(crate) fn update_and_freeze(&self, mq: &MessageQueue, offset: i64) {
        let entry = ControllableOffset {
            value: offset,
            frozen: true,
        };
        self.entries.lock().insert(mq.clone(), entry);
    }

    /// The offset of a queue, if there is one in memory.
    pub(crate) fn read(&self, mq: &MessageQueue) -> Option<i64> {
        self.entries.lock().get(mq).map(|entry| entry.value)
    }

    /// Forgets a queue, frozen or not.
    pub(crate) fn remove(&self, mq: &MessageQueue) {
        self.entries.lock().remove(mq);
    }

    /// The offsets to save, in the order of `owned`. All other queues are forgotten, as by Java's
    /// `persistAll`.
    pub(crate) fn snapshot(&self, owned: &[MessageQueue]) -> Vec<(MessageQueue, i64)> {
        let mut entries = self.entries.lock();
        let kept: HashSet<&MessageQueue> = owned.iter().collect();
        entries.retain(|mq, _| kept.contains(mq));
        owned
            .iter()
            .filter_map(|mq| Some((mq.clone(), entries.get(mq)?.value)))
            .collect()
    }
}

fn apply(
    entries: &mut HashMap<MessageQueue, ControllableOffset>,
    mq: &MessageQueue,
    offset: i64,
    update: Update,
) {
    let Some(entry) = entries.get_mut(mq) else {
        let entry = ControllableOffset {
            value: offset,
            frozen: false,
        };
        entries.insert(mq.clone(), entry);
        return;
    };
    if entry.frozen {
        return;
    }
    entry.value = match update {
        Update::IncreaseOnly => entry.value.max(offset),
        Update::Set => offset,
    };
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sync::Clock;

    fn mq(id: i32) -> MessageQueue {
        MessageQueue::new("t", "b", id)
    }

    #[test]
    fn an_increase_only_update_never_goes_back() {
        let table = OffsetTable::new();
        assert_eq!(table.read(&mq(0)), None);
        table.update(&mq(0), 5, Update::IncreaseOnly);
        table.update(&mq(0), 3, Update::IncreaseOnly);
        assert_eq!(table.read(&mq(0)), Some(5));
        table.update(&mq(0), 9, Update::IncreaseOnly);
        assert_eq!(table.read(&mq(0)), Some(9));
        table.update(&mq(0), 3, Update::Set);
        assert_eq!(table.read(&mq(0)), Some(3));
    }

    #[test]
    fn a_frozen_offset_stays_until_it_is_forgotten() {
        let table = OffsetTable::new();
        let pq = ProcessQueue::new(Clock::manual());
        table.update(&mq(0), 50, Update::Set);
        table.update_and_freeze(&mq(0), 7);
        table.update(&mq(0), 51, Update::IncreaseOnly);
        table.update(&mq(0), 52, Update::Set);
        assert!(table.update_if_owned(&mq(0), 53, &pq, Update::Set));
        assert_eq!(table.read(&mq(0)), Some(7));
        table.update_and_freeze(&mq(0), 8);
        assert_eq!(table.snapshot(&[mq(0)]), [(mq(0), 8)]);

        table.remove(&mq(0));
        table.update(&mq(0), 54, Update::IncreaseOnly);
        assert_eq!(table.read(&mq(0)), Some(54));
    }

    #[test]
    fn a_dropped_queue_commits_nothing_but_its_successor_does() {
        let table = OffsetTable::new();
        let old = ProcessQueue::new(Clock::manual());
        assert!(table.update_if_owned(&mq(0), 5, &old, Update::IncreaseOnly));
        assert_eq!(table.take_for_drop(&mq(0), &old), Some(5));
        assert!(old.is_dropped());
        assert!(!table.update_if_owned(&mq(0), 6, &old, Update::IncreaseOnly));
        assert_eq!(table.read(&mq(0)), None);

        let new = ProcessQueue::new(Clock::manual());
        assert!(table.update_if_owned(&mq(0), 8, &new, Update::IncreaseOnly));
        assert!(!table.update_if_owned(&mq(0), 9, &old, Update::IncreaseOnly));
        assert_eq!(table.read(&mq(0)), Some(8));
    }

    #[test]
    fn a_queue_without_an_offset_is_dropped_all_the_same() {
        let table = OffsetTable::new();
        let pq = ProcessQueue::new(Clock::manual());
        assert_eq!(table.take_for_drop(&mq(0), &pq), None);
        assert!(pq.is_dropped());
    }

    #[test]
    fn a_snapshot_forgets_the_queues_of_others() {
        let table = OffsetTable::new();
        for id in 0..4 {
            table.update(&mq(id), i64::from(id) * 10, Update::Set);
        }
        let saved = table.snapshot(&[mq(3), mq(9), mq(1)]);
        assert_eq!(saved, [(mq(3), 30), (mq(1), 10)]);
        assert_eq!(table.read(&mq(0)), None);
        assert_eq!(table.read(&mq(1)), Some(10));
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::sync::{Arc, Clock};

    /// Two commits race a drop. Whatever the order: the value that the drop took is the largest
    /// that was committed, and nothing is left behind.
    fn commits_race_a_drop(
        commit: impl Fn(&OffsetTable, &MessageQueue, i64, &ProcessQueue) -> bool
        + Copy
        + Send
        + Sync
        + 'static,
    ) {
        loom::model(move || {
            let mq = MessageQueue::new("t", "b", 0);
            let table = Arc::new(OffsetTable::new());
            let pq = Arc::new(ProcessQueue::new(Clock::Real));
            let committers = [5, 6].map(|offset| {
                let (table, pq, mq) = (Arc::clone(&table), Arc::clone(&pq), mq.clone());
                loom::thread::spawn(move || commit(&table, &mq, offset, &pq).then_some(offset))
            });
            let taken = table.take_for_drop(&mq, &pq);
            let committed = committers.map(|thread| thread.join().unwrap());
            assert_eq!(table.read(&mq), None, "an offset after the drop");
            assert_eq!(taken, committed.into_iter().flatten().max());
        });
    }

    #[test]
    fn loom_no_offset_after_a_drop() {
        commits_race_a_drop(|table, mq, offset, pq| {
            table.update_if_owned(mq, offset, pq, Update::IncreaseOnly)
        });
    }

    #[test]
    #[should_panic(expected = "after the drop")]
    fn loom_asking_and_updating_in_two_steps_loses_to_a_drop() {
        commits_race_a_drop(|table, mq, offset, pq| {
            if pq.is_dropped() {
                return false;
            }
            table.update(mq, offset, Update::IncreaseOnly);
            true
        });
    }
}
