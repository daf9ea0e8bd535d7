//! Calls the user's listener of queue changes.

use std::collections::BTreeMap;
use std::fmt;

use rocketmq_protocol::MessageQueue;

use super::listener::MessageQueueListener;
use crate::service::ThreadPool;
use crate::sync::{Arc, Deadline, Mutex};

/// Calls the listener on a thread of its own, one call after the other, so that one that blocks
/// holds up no rebalance.
pub(super) struct QueueChangeCaller {
    pool: ThreadPool,
    shared: Arc<Shared>,
}

struct Shared {
    /// Taken out at the end, so that what the listener holds, the consumer's own handle perhaps, is
    /// let go of.
    listener: Mutex<Option<Arc<dyn MessageQueueListener>>>,
    /// Topic → its last change that the listener has not been told of, so that what waits for a
    /// listener that blocks has a bound.
    untold: Mutex<BTreeMap<String, Change>>,
}

struct Change {
    mq_all: Vec<MessageQueue>,
    mq_divided: Vec<MessageQueue>,
}

impl QueueChangeCaller {
    pub(super) fn new(group: &str, listener: Option<Arc<dyn MessageQueueListener>>) -> Self {
        Self {
            pool: ThreadPool::new(format!("MessageQueueListener_{group}"), 1),
            shared: Arc::new(Shared {
                listener: Mutex::new(listener),
                untold: Mutex::new(BTreeMap::new()),
            }),
        }
    }

    pub(super) fn has_listener(&self) -> bool {
        self.shared.listener.lock().is_some()
    }

    /// Has the listener told, without waiting.
    pub(super) fn changed(
        &self,
        topic: &str,
        mq_all: Vec<MessageQueue>,
        mq_divided: Vec<MessageQueue>,
    ) {
        let change = Change { mq_all, mq_divided };
        let replaced = self.shared.untold.lock().insert(topic.to_owned(), change);
        if replaced.is_some() {
            // The call that waits for its turn tells this instead.
            return;
        }
        let shared = Arc::clone(&self.shared);
        let of = topic.to_owned();
        if let Err(rejected) = self.pool.execute(move || shared.tell(&of)) {
            self.shared.untold.lock().remove(topic);
            log::warn!(
                "topic {topic}: the listener is not told of changed queues: {}",
                rejected.reason
            );
        }
    }

    /// Waits for the call under way until the deadline, and lets go of the listener. Returns whether
    /// its thread has ended.
    pub(super) fn shutdown(&self, deadline: Deadline) -> bool {
        let report = self.pool.shutdown(deadline);
        let listener = self.shared.listener.lock().take();
        drop(listener);
        report.left == 0
    }
}

impl Shared {
    fn tell(&self, topic: &str) {
        let change = self.untold.lock().remove(topic);
        let listener = self.listener.lock().clone();
        if let (Some(change), Some(listener)) = (change, listener) {
            listener.message_queue_changed(topic, &change.mq_all, &change.mq_divided);
        }
    }
}

impl fmt::Debug for QueueChangeCaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueChangeCaller")
            .field("untold", &self.shared.untold.lock().len())
            .finish_non_exhaustive()
    }
}
