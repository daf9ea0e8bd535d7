use std::collections::BTreeMap;

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
/// the value that was taken is the last word of this member about the queue, and the table holds
/// only queues that are owned: nothing has to be forgotten when it is saved.
///
/// # Java
/// `RemoteBrokerOffsetStore#offsetTable` with `ControllableOffset`. There, asking whether a queue
/// is dropped and updating its offset are two steps, and a drop in between is overwritten; and
/// `persistAll` forgets whatever is not in a list of queues that was made before.
#[derive(Debug, Default)]
pub(crate) struct OffsetTable {
    entries: Mutex<BTreeMap<MessageQueue, i64>>,
}

impl OffsetTable {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Moves the offset of a queue on, never back, unless `process_queue` was dropped. Returns
    /// `false` if it was dropped.
    pub(crate) fn update_if_owned(
        &self,
        mq: &MessageQueue,
        offset: i64,
        process_queue: &ProcessQueue,
    ) -> bool {
        let mut entries = self.entries.lock();
        if process_queue.is_dropped() {
            return false;
        }
        increase(&mut entries, mq, offset);
        true
    }

    /// Marks `process_queue` as dropped and takes the queue's offset out, for the caller to save.
    /// `None` if there is none, or it was dropped before: the offset may be its successor's then.
    pub(crate) fn take_for_drop(
        &self,
        mq: &MessageQueue,
        process_queue: &ProcessQueue,
    ) -> Option<i64> {
        let mut entries = self.entries.lock();
        if !process_queue.set_dropped() {
            return None;
        }
        entries.remove(mq)
    }

    /// The offset of a queue, if there is one in memory.
    pub(crate) fn read(&self, mq: &MessageQueue) -> Option<i64> {
        self.entries.lock().get(mq).copied()
    }

    /// The offsets to save, sorted by queue.
    pub(crate) fn snapshot(&self) -> Vec<(MessageQueue, i64)> {
        let entries = self.entries.lock();
        entries.iter().map(|(mq, o)| (mq.clone(), *o)).collect()
    }
}

fn increase(entries: &mut BTreeMap<MessageQueue, i64>, mq: &MessageQueue, offset: i64) {
    match entries.get_mut(mq) {
        Some(value) => *value = offset.max(*value),
        None => {
            entries.insert(mq.clone(), offset);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::random::SplitMix64;
    use crate::sync::Clock;

    fn mq(id: i32) -> MessageQueue {
        MessageQueue::new("t", "b", id)
    }

    #[test]
    fn an_update_never_goes_back() {
        let table = OffsetTable::new();
        let pq = ProcessQueue::new(Clock::manual());
        assert_eq!(table.read(&mq(0)), None);
        assert!(table.update_if_owned(&mq(0), 5, &pq));
        assert!(table.update_if_owned(&mq(0), 3, &pq));
        assert_eq!(table.read(&mq(0)), Some(5));
        assert!(table.update_if_owned(&mq(0), 9, &pq));
        assert_eq!(table.read(&mq(0)), Some(9));
    }

    #[test]
    fn a_dropped_queue_commits_nothing_but_its_successor_does() {
        let table = OffsetTable::new();
        let old = ProcessQueue::new(Clock::manual());
        assert!(table.update_if_owned(&mq(0), 5, &old));
        assert_eq!(table.take_for_drop(&mq(0), &old), Some(5));
        assert!(old.is_dropped());
        assert!(!table.update_if_owned(&mq(0), 6, &old));
        assert_eq!(table.read(&mq(0)), None);

        let new = ProcessQueue::new(Clock::manual());
        assert!(table.update_if_owned(&mq(0), 8, &new));
        assert!(!table.update_if_owned(&mq(0), 9, &old));
        assert_eq!(table.take_for_drop(&mq(0), &old), None, "it was dropped");
        assert_eq!(table.read(&mq(0)), Some(8));
    }

    #[test]
    fn a_queue_without_an_offset_is_dropped_all_the_same() {
        let table = OffsetTable::new();
        let pq = ProcessQueue::new(Clock::manual());
        assert_eq!(table.take_for_drop(&mq(0), &pq), None);
        assert!(pq.is_dropped());
    }

    /// Random commits and drops of three queues, each with a dozen owners one after the other, against
    /// a plain account of what must be there.
    #[test]
    fn random_operations_agree_with_a_plain_account() {
        for seed in 0..200 {
            let mut random = SplitMix64::new(seed);
            let mut below = |bound: usize| random.below(bound as u64) as usize;
            let table = OffsetTable::new();
            let queues: Vec<Vec<ProcessQueue>> = (0..3)
                .map(|_| {
                    (0..12)
                        .map(|_| ProcessQueue::new(Clock::manual()))
                        .collect()
                })
                .collect();
            let mut dropped = [0; 3];
            let mut offsets: [Option<i64>; 3] = [None; 3];
            for _ in 0..300 {
                let queue = below(3);
                let id = mq(queue as i32);
                // Now and then a former owner comes, too late.
                let owner = if below(4) == 0 {
                    below(12)
                } else {
                    dropped[queue]
                };
                let Some(pq) = queues[queue].get(owner).filter(|_| owner <= dropped[queue]) else {
                    continue;
                };
                let is_owner = owner == dropped[queue];
                if below(12) == 0 {
                    let expected = if is_owner {
                        offsets[queue].take()
                    } else {
                        None
                    };
                    assert_eq!(table.take_for_drop(&id, pq), expected, "seed {seed}");
                    dropped[queue] += usize::from(is_owner);
                } else {
                    let offset = below(1000) as i64;
                    assert_eq!(
                        table.update_if_owned(&id, offset, pq),
                        is_owner,
                        "seed {seed}"
                    );
                    if is_owner {
                        offsets[queue] = Some(offset.max(offsets[queue].unwrap_or(0)));
                    }
                }
                assert_eq!(table.read(&id), offsets[queue], "seed {seed}");
            }
            let all: Vec<_> = (0..)
                .zip(offsets)
                .filter_map(|(id, offset)| Some((mq(id), offset?)))
                .collect();
            assert_eq!(table.snapshot(), all, "seed {seed}");
        }
    }

    #[test]
    fn a_snapshot_has_all_that_is_owned() {
        let table = OffsetTable::new();
        let queues: Vec<_> = (0..3).map(|_| ProcessQueue::new(Clock::manual())).collect();
        for (id, pq) in (0..).zip(&queues) {
            table.update_if_owned(&mq(id), i64::from(id) * 10, pq);
        }
        table.take_for_drop(&mq(1), &queues[1]);
        assert_eq!(table.snapshot(), [(mq(0), 0), (mq(2), 20)]);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::consumer::process_queue::{CachedMessage, MessageInHands};
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
        commits_race_a_drop(|table, mq, offset, pq| table.update_if_owned(mq, offset, pq));
    }

    #[test]
    #[should_panic(expected = "after the drop")]
    fn loom_asking_and_updating_in_two_steps_loses_to_a_drop() {
        commits_race_a_drop(|table, mq, offset, pq| {
            if pq.is_dropped() {
                return false;
            }
            increase(&mut table.entries.lock(), mq, offset);
            true
        });
    }

    fn queue_of_three() -> Arc<ProcessQueue> {
        let pq = ProcessQueue::new(Clock::Real);
        let messages = [0, 1, 2].map(|queue_offset| CachedMessage {
            queue_offset,
            body_bytes: 1,
        });
        pq.put_messages(messages).unwrap();
        Arc::new(pq)
    }

    /// What a call of the listener for one message does when it has ended; returns what a drop took.
    fn end_call(
        (table, pq, mq): &(Arc<OffsetTable>, Arc<ProcessQueue>, MessageQueue),
        offset: i64,
        ended: impl Fn(&ProcessQueue) -> bool,
    ) -> Option<i64> {
        let next = pq.remove_messages([offset]).unwrap();
        table.update_if_owned(mq, next, pq);
        ended(pq).then(|| table.take_for_drop(mq, pq)).flatten()
    }

    /// Two calls of the listener race a hand-over, and whoever finds nothing in work drops the
    /// queue. Whatever the order, it is dropped, by one of them; what was begun has no gaps; and the
    /// value that the drop took is behind all of it. So the next owner receives nothing twice.
    #[test]
    fn loom_a_hand_over_saves_all_that_was_begun() {
        loom::model(|| {
            let mq = MessageQueue::new("t", "b", 0);
            let all = (Arc::new(OffsetTable::new()), queue_of_three(), mq.clone());
            let callers = [0, 1].map(|offset| {
                let all = all.clone();
                loom::thread::spawn(move || {
                    if all.1.consume_started(&[in_hands(offset)]).is_err() {
                        return (false, None);
                    }
                    (true, end_call(&all, offset, ProcessQueue::consume_ended))
                })
            });
            let (table, pq, _) = &all;
            let at_once = pq.give_up().then(|| table.take_for_drop(&mq, pq));
            let [first, second] = callers.map(|thread| thread.join().unwrap());
            assert!(pq.is_dropped(), "nobody dropped the queue");
            assert!(first.0 || !second.0, "a gap before the last message begun");
            let taken: Vec<i64> = [at_once.flatten(), first.1, second.1]
                .into_iter()
                .flatten()
                .collect();
            let wanted: &[i64] = match i64::from(first.0) + i64::from(second.0) {
                0 => &[],
                begun => &[begun],
            };
            assert_eq!(taken, wanted, "not all that was finished is saved");
            assert_eq!(table.read(&mq), None, "an offset after the drop");
        });
    }

    /// Both calls are under way when the queue is given up.
    fn calls_end_together(ended: impl Fn(&ProcessQueue) -> bool + Copy + Send + Sync + 'static) {
        loom::model(move || {
            let mq = MessageQueue::new("t", "b", 0);
            let all = (Arc::new(OffsetTable::new()), queue_of_three(), mq.clone());
            for offset in [0, 1] {
                all.1.consume_started(&[in_hands(offset)]).unwrap();
            }
            assert!(!all.1.give_up());
            let callers = [0, 1].map(|offset| {
                let all = all.clone();
                loom::thread::spawn(move || end_call(&all, offset, ended))
            });
            let taken = callers.map(|thread| thread.join().unwrap());
            let taken: Vec<i64> = taken.into_iter().flatten().collect();
            assert_eq!(taken, [2], "not all that was finished is saved");
            assert_eq!(all.0.read(&mq), None, "an offset after the drop");
        });
    }

    #[test]
    fn loom_calls_that_end_together_save_the_last_offset() {
        calls_end_together(ProcessQueue::consume_ended);
    }

    /// Where no message is left that was begun, a commit may still be to come.
    #[test]
    #[should_panic(expected = "not all that was finished is saved")]
    fn loom_a_hand_over_that_looks_at_messages_alone_loses_a_commit() {
        calls_end_together(|pq| pq.cached().offsets.is_some_and(|(first, _)| first == 2));
    }

    fn in_hands(queue_offset: i64) -> MessageInHands {
        MessageInHands::at(queue_offset)
    }

    /// Whatever is in work when the time is over: once the queue is dropped nothing is committed.
    #[test]
    fn loom_a_hand_over_whose_time_is_over_commits_nothing_afterwards() {
        loom::model(|| {
            let mq = MessageQueue::new("t", "b", 0);
            let table = Arc::new(OffsetTable::new());
            let pq = queue_of_three();
            pq.consume_started(&[in_hands(0)]).unwrap();
            assert!(!pq.give_up());
            let timer = {
                let (table, pq, mq) = (Arc::clone(&table), Arc::clone(&pq), mq.clone());
                loom::thread::spawn(move || table.take_for_drop(&mq, &pq))
            };
            let next = pq.remove_messages([0]).unwrap();
            let committed = table.update_if_owned(&mq, next, &pq);
            let taken = pq
                .consume_ended()
                .then(|| table.take_for_drop(&mq, &pq))
                .flatten();
            let by_timer = timer.join().unwrap();
            assert_eq!(taken.or(by_timer), committed.then_some(1));
            assert!(taken.is_none() || by_timer.is_none(), "saved twice");
            assert_eq!(table.read(&mq), None, "an offset after the drop");
        });
    }
}
