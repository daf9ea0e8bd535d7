//! How a queue leaves: what the listener has in hands is finished first, for a bounded time.

use std::collections::HashMap;

use rocketmq_protocol::MessageQueue;

use super::default_mq_push_consumer_impl::DefaultMQPushConsumerImpl;
use super::process_queue::ProcessQueue;
use crate::sync::{Arc, Mutex};

/// Queues that are in the table no more while the listener still has messages of them. One may be
/// given up again before it has been given up wholly.
#[derive(Debug, Default)]
pub(super) struct HandOver(Mutex<HashMap<MessageQueue, Vec<Arc<ProcessQueue>>>>);

impl HandOver {
    /// Whether a queue is still being given up. Until it is not, its offset is not known.
    pub(super) fn is_under_way(&self, mq: &MessageQueue) -> bool {
        self.0.lock().contains_key(mq)
    }

    /// Takes all out, at the end: who takes them drops them.
    pub(super) fn take_all(&self) -> Vec<(MessageQueue, Arc<ProcessQueue>)> {
        let leaving = std::mem::take(&mut *self.0.lock());
        let of_queue = |(mq, states): (MessageQueue, Vec<_>)| {
            states.into_iter().map(move |state| (mq.clone(), state))
        };
        leaving.into_iter().flat_map(of_queue).collect()
    }

    fn add(&self, mq: &MessageQueue, queue: &Arc<ProcessQueue>) {
        let mut leaving = self.0.lock();
        leaving
            .entry(mq.clone())
            .or_default()
            .push(Arc::clone(queue));
    }

    fn remove(&self, mq: &MessageQueue, queue: &Arc<ProcessQueue>) {
        let mut leaving = self.0.lock();
        if let Some(of_queue) = leaving.get_mut(mq) {
            of_queue.retain(|other| !Arc::ptr_eq(other, queue));
            if of_queue.is_empty() {
                leaving.remove(mq);
            }
        }
    }
}

impl DefaultMQPushConsumerImpl {
    /// Gives a queue up. From now on it is not pulled, and what waits for the listener is let go of.
    /// What the listener has in hands may be finished within half of `hand_over_grace`; then, or at
    /// once if there is nothing, the queue is dropped and its offset saved, with no commit after
    /// that. A new owner that waits for the whole grace begins behind all of it.
    ///
    /// `false` when the consumer is ending, which saves and drops all that is in the table, or while
    /// the queue's offset is being moved, after which it is taken out.
    ///
    /// # Java
    /// `RebalancePushImpl#removeUnnecessaryMessageQueue` saves the offset at once, so the new owner
    /// receives what is in work once more.
    pub(super) fn give_up(self: &Arc<Self>, mq: &MessageQueue, queue: &Arc<ProcessQueue>) -> bool {
        if self.instance().is_none() {
            return false;
        }
        if self.being_moved.lock().contains(mq) {
            return false;
        }
        let time = self.config.hand_over_grace / 2;
        // Before it is given up: a listener that finishes right then finds it.
        self.hand_over.add(mq, queue);
        if queue.give_up() || time.is_zero() {
            self.finish_hand_over(mq, queue);
            return true;
        }
        let weak = Arc::downgrade(self);
        let (of, leaving) = (mq.clone(), Arc::clone(queue));
        self.later(time, move || {
            if let Some(consumer) = weak.upgrade() {
                consumer.finish_hand_over(&of, &leaving);
            }
        });
        true
    }

    /// Drops a queue that was given up and saves how far it came, in one step. Done by whoever comes
    /// first: the last call of the listener, or the timer.
    pub(super) fn finish_hand_over(&self, mq: &MessageQueue, queue: &Arc<ProcessQueue>) {
        // A consumer that ends has the offsets of all queues saved, and waits for that.
        let (true, Some(instance)) = (self.is_running(), self.instance()) else {
            return;
        };
        self.offsets.drop_and_persist(&instance, mq, queue);
        self.hand_over.remove(mq, queue);
    }
}
