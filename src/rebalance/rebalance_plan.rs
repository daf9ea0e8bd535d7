use std::borrow::Cow;

use rocketmq_protocol::MessageQueue;

/// In what state a queue is that the consumer works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkingState {
    /// Nothing is wrong with it.
    Active,
    /// Its pull loop has stopped: the last pull is longer ago than a loop ever waits. Only for
    /// consumers that are pushed to; those whose user polls may be slow.
    PullExpired,
    /// An earlier round dropped it but could not finish, because the listener still held it.
    DropPending,
}

/// Why a queue is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DropReason {
    /// It belongs to another member now.
    NotAllocated,
    /// It is still allocated, but its pull loop has stopped.
    PullExpired,
    /// It is allocated again before an earlier drop was finished.
    DropPending,
}

/// What one round changes at the queues of one topic. Each list is sorted and names a queue once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RebalancePlan {
    /// To be dropped, before anything is added.
    pub(crate) drop: Vec<(MessageQueue, DropReason)>,
    /// To be left alone.
    pub(crate) keep: Vec<MessageQueue>,
    /// To be added, unless the queue is still in the table when its turn comes: a queue that is
    /// allocated and dropped all the same is in `drop` and here, so that it starts afresh in the
    /// same round if its drop can be finished, and in a later one otherwise.
    pub(crate) add: Vec<MessageQueue>,
}

/// Compares the queues of a topic that the consumer works on with those that it is allocated.
///
/// Both lists are walked along side by side, each put in order before if it is not.
///
/// # Java
/// `RebalanceImpl#updateProcessQueueTableInRebalance`, the decisions without the effects. One
/// decision differs: Java leaves a half-dropped queue that is allocated again alone until its pull
/// has expired (120 s); here its drop is finished and it is added again.
pub(crate) fn rebalance_plan(
    working: &[(MessageQueue, WorkingState)],
    allocated: &[MessageQueue],
) -> RebalancePlan {
    let working = in_order(working, |(mq, _)| mq);
    let allocated = in_order(allocated, |mq| mq);
    let mut allocated = allocated.iter().peekable();

    let mut plan = RebalancePlan::default();
    for (mq, state) in working.iter() {
        let mut is_allocated = false;
        while let Some(next) = allocated.peek() {
            // Mostly they are the same, which is seen at once, and then nothing has to be compared.
            is_allocated = *next == mq;
            if !is_allocated && *next > mq {
                break;
            }
            if !is_allocated || *state != WorkingState::Active {
                plan.add.push((*next).clone());
            }
            allocated.next();
            if is_allocated {
                break;
            }
        }
        let reason = match state {
            _ if !is_allocated => DropReason::NotAllocated,
            WorkingState::PullExpired => DropReason::PullExpired,
            WorkingState::DropPending => DropReason::DropPending,
            WorkingState::Active => {
                plan.keep.push(mq.clone());
                continue;
            }
        };
        plan.drop.push((mq.clone(), reason));
    }
    plan.add.extend(allocated.cloned());
    plan
}

/// The items in the order of their queues, each queue once; not copied if they are so already.
fn in_order<T: Clone>(items: &[T], queue: impl Fn(&T) -> &MessageQueue) -> Cow<'_, [T]> {
    if items.is_sorted_by(|a, b| queue(a) < queue(b)) {
        return Cow::Borrowed(items);
    }
    let mut items = items.to_vec();
    items.sort_by(|a, b| queue(a).cmp(queue(b)));
    items.dedup_by(|later, kept| queue(later) == queue(kept));
    Cow::Owned(items)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::random::SplitMix64;

    fn mq(id: i32) -> MessageQueue {
        MessageQueue::new("t", "b", id)
    }

    #[test]
    fn queues_of_others_go_own_ones_stay_and_new_ones_come() {
        let working = [
            (mq(2), WorkingState::Active),
            (mq(0), WorkingState::PullExpired),
            (mq(1), WorkingState::Active),
        ];
        let plan = rebalance_plan(&working, &[mq(4), mq(2), mq(3), mq(4)]);
        assert_eq!(
            plan.drop,
            [
                (mq(0), DropReason::NotAllocated),
                (mq(1), DropReason::NotAllocated)
            ]
        );
        assert_eq!(plan.keep, [mq(2)]);
        assert_eq!(plan.add, [mq(3), mq(4)]);
    }

    #[test]
    fn an_allocated_queue_that_cannot_go_on_is_dropped_and_added() {
        let working = [
            (mq(0), WorkingState::PullExpired),
            (mq(1), WorkingState::DropPending),
        ];
        let plan = rebalance_plan(&working, &[mq(0), mq(1)]);
        assert_eq!(
            plan.drop,
            [
                (mq(0), DropReason::PullExpired),
                (mq(1), DropReason::DropPending)
            ]
        );
        assert_eq!(plan.add, [mq(0), mq(1)]);
        assert_eq!(plan.keep, []);
    }

    #[test]
    fn nothing_to_do_is_an_empty_plan() {
        let is_empty = |working: &[_], allocated: &[_]| {
            let plan = rebalance_plan(working, allocated);
            plan.drop.is_empty() && plan.add.is_empty()
        };
        assert!(is_empty(&[(mq(0), WorkingState::Active)], &[mq(0)]));
        assert!(is_empty(&[], &[]));
        assert!(!is_empty(&[(mq(0), WorkingState::Active)], &[]));
        assert!(!is_empty(&[], &[mq(0)]));
    }

    #[test]
    fn carried_out_it_leaves_exactly_the_allocated_queues() {
        for seed in 0..500 {
            let mut random = SplitMix64::new(seed);
            let states = [
                WorkingState::Active,
                WorkingState::PullExpired,
                WorkingState::DropPending,
            ];
            let mut working = Vec::new();
            let mut allocated = Vec::new();
            for id in 0..12 {
                if random.below(2) == 0 {
                    let state = states[usize::try_from(random.below(3)).unwrap()];
                    working.push((mq(id), state));
                }
                if random.below(2) == 0 {
                    allocated.push(mq(id));
                }
            }
            let plan = rebalance_plan(&working, &allocated);
            let mut table: BTreeSet<MessageQueue> =
                working.iter().map(|(mq, _)| mq.clone()).collect();
            for (mq, _) in &plan.drop {
                assert!(table.remove(mq), "seed {seed}: {mq} dropped twice");
            }
            assert!(table.iter().eq(&plan.keep), "seed {seed}");
            for mq in &plan.add {
                assert!(table.insert(mq.clone()), "seed {seed}: {mq} added twice");
            }
            assert!(table.iter().eq(&allocated), "seed {seed}");

            working.reverse();
            allocated.reverse();
            assert_eq!(plan, rebalance_plan(&working, &allocated), "seed {seed}");
        }
    }
}
