//! Pulls that are under way.

use std::collections::HashMap;
use std::fmt;

use rocketmq_protocol::MessageQueue;

use super::pull_request::PullRequest;
use crate::sync::{Arc, Mutex};

/// Keeps the token of each pull that is under way, which its outcome takes out; or somebody who wants
/// the queue to be pulled anew, and then the outcome finds nothing and is dropped. So there is still
/// one token for a queue, and one step at a time.
pub(super) struct HeldPulls {
    pulls: Mutex<HashMap<MessageQueue, HeldPull>>,
}

/// One pull's token, as long as nobody has taken it.
#[derive(Clone)]
pub(super) struct HeldPull(Arc<Mutex<Option<Box<PullRequest>>>>);

impl HeldPulls {
    pub(super) fn new() -> Self {
        Self {
            pulls: Mutex::new(HashMap::new()),
        }
    }

    pub(super) fn hold(&self, request: Box<PullRequest>) -> HeldPull {
        let mq = request.mq.clone();
        let pull = HeldPull(Arc::new(Mutex::new(Some(request))));
        // A pull of the same queue that is there belongs to a `ProcessQueue` that was dropped.
        self.pulls.lock().insert(mq, pull.clone());
        pull
    }

    /// For the outcome of a pull: its token, unless it was taken before.
    pub(super) fn take(&self, mq: &MessageQueue, pull: &HeldPull) -> Option<Box<PullRequest>> {
        let mut pulls = self.pulls.lock();
        let is_last = pulls
            .get(mq)
            .is_some_and(|last| Arc::ptr_eq(&last.0, &pull.0));
        if is_last {
            pulls.remove(mq);
        }
        drop(pulls);
        pull.0.lock().take()
    }

    /// The tokens of all pulls of a topic, whose outcomes are wanted no more.
    pub(super) fn take_all_of(&self, topic: &str) -> Vec<PullRequest> {
        let mut taken = Vec::new();
        self.pulls.lock().retain(|mq, pull| {
            if mq.topic() == topic {
                taken.push(pull.clone());
            }
            mq.topic() != topic
        });
        let tokens = taken.into_iter().filter_map(|pull| pull.0.lock().take());
        tokens.map(|token| *token).collect()
    }
}

impl fmt::Debug for HeldPulls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldPulls")
            .field("pulls", &self.pulls.lock().len())
            .finish()
    }
}
