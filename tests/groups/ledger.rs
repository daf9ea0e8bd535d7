//! What was sent, delivered and committed, and what of that must not be.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Mutex;

use rocketmq_blocking::{MessageExt, MessageQueue};

/// A member's name; its client id holds it.
pub(crate) type Name = String;

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    sent: BTreeSet<u64>,
    done: HashSet<u64>,
    deliveries: u64,
    work: HashMap<(Name, MessageQueue), Work>,
    /// Where a failed message lies in its broker's log → what it is; it is unfinished until the broker
    /// has it back.
    failed: HashMap<(Name, String, i64), (MessageQueue, i64)>,
    violations: Vec<String>,
}

/// One ownership of one queue.
///
/// A call of the listener is counted when the listener begins, and a call of an earlier ownership may
/// begin that late that its queue has been given up and taken again: its result counts for nothing,
/// and the message is delivered once more. So an offset is in hands once, whoever has it, and no
/// longer when a call has finished it. Another member may have finished it meanwhile: what lies before
/// the offset that this ownership pulls from first is not its own.
#[derive(Debug, Default)]
struct Work {
    /// The offset of its first pull.
    start: Option<i64>,
    in_hands: BTreeSet<i64>,
    finished: BTreeSet<i64>,
    committed: i64,
}

impl Work {
    fn take(&mut self, offset: i64) {
        let is_own = self.start.is_none_or(|start| offset >= start);
        if is_own && !self.finished.contains(&offset) {
            self.in_hands.insert(offset);
        }
    }

    fn put_back(&mut self, offset: i64) {
        self.in_hands.remove(&offset);
        self.finished.insert(offset);
    }
}

impl State {
    /// What is known of a member's ownership of a queue ends with it.
    fn forget(&mut self, member: &str, mq: &MessageQueue) {
        self.work.remove(&(member.to_owned(), mq.clone()));
        self.failed
            .retain(|(name, _, _), (of, _)| name != member || of != mq);
    }
}

/// Whether a request was this member's, as far as is known.
fn may_be(member: Option<&str>, name: &str) -> bool {
    member.is_none_or(|member| member == name)
}

impl Ledger {
    pub(crate) fn sent(&self, id: u64) {
        self.state.lock().unwrap().sent.insert(id);
    }

    pub(crate) fn done(&self, id: u64) {
        let mut state = self.state.lock().unwrap();
        state.deliveries += 1;
        state.done.insert(id);
    }

    pub(crate) fn missing(&self) -> Vec<u64> {
        let state = self.state.lock().unwrap();
        state
            .sent
            .iter()
            .filter(|id| !state.done.contains(id))
            .copied()
            .collect()
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.state.lock().unwrap().violations.clone()
    }

    pub(crate) fn summary(&self) -> String {
        let state = self.state.lock().unwrap();
        format!(
            "{} messages, {} deliveries",
            state.sent.len(),
            state.deliveries
        )
    }

    /// A listener was given messages.
    pub(crate) fn begin(&self, member: &str, mq: &MessageQueue, messages: &[MessageExt]) {
        let mut state = self.state.lock().unwrap();
        let work = state
            .work
            .entry((member.to_owned(), mq.clone()))
            .or_default();
        for message in messages {
            work.take(message.queue_offset());
        }
    }

    /// It is done with them.
    pub(crate) fn succeed(&self, member: &str, mq: &MessageQueue, messages: &[MessageExt]) {
        let mut state = self.state.lock().unwrap();
        if let Some(work) = state.work.get_mut(&(member.to_owned(), mq.clone())) {
            for message in messages {
                work.put_back(message.queue_offset());
            }
        }
    }

    /// It failed: they stay unfinished until the broker has them back.
    pub(crate) fn fail(&self, member: &str, mq: &MessageQueue, messages: &[MessageExt]) {
        let mut state = self.state.lock().unwrap();
        for message in messages {
            let place = (
                member.to_owned(),
                mq.broker_name().to_owned(),
                message.commit_log_offset(),
            );
            let offset = message.queue_offset();
            if state.failed.insert(place, (mq.clone(), offset)).is_some() {
                // Tried again here, since it could not be given back.
                if let Some(work) = state.work.get_mut(&(member.to_owned(), mq.clone())) {
                    work.put_back(offset);
                }
            }
        }
    }

    /// A broker was given a message back, by this member or by one that it does not know yet.
    pub(crate) fn given_back(&self, member: Option<&str>, broker: &str, commit_log_offset: i64) {
        self.are_given_back(|(name, of, offset)| {
            may_be(member, name) && of == broker && *offset == commit_log_offset
        });
    }

    /// A member published a message to the retry topic itself: which one is not looked into, so all
    /// that it failed on count as given back.
    pub(crate) fn published_a_retry(&self, member: Option<&str>) {
        self.are_given_back(|(name, _, _)| may_be(member, name));
    }

    fn are_given_back(&self, of: impl Fn(&(Name, String, i64)) -> bool) {
        let mut state = self.state.lock().unwrap();
        let places: Vec<_> = state.failed.keys().filter(|key| of(key)).cloned().collect();
        for place in places {
            if let Some((mq, offset)) = state.failed.remove(&place) {
                if let Some(work) = state.work.get_mut(&(place.0, mq)) {
                    work.put_back(offset);
                }
            }
        }
    }

    /// A broker heard a member's offset of a queue.
    pub(crate) fn commit(&self, member: &str, mq: &MessageQueue, offset: i64) {
        let mut state = self.state.lock().unwrap();
        let Some(work) = state.work.get_mut(&(member.to_owned(), mq.clone())) else {
            return;
        };
        let before = work.committed;
        let unfinished = work.in_hands.first().copied();
        work.committed = before.max(offset);
        if offset < before {
            state.violations.push(format!(
                "{member} committed {offset} of {mq} after {before}"
            ));
        }
        if let Some(unfinished) = unfinished.filter(|unfinished| *unfinished < offset) {
            state.violations.push(format!(
                "{member} committed {offset} of {mq} while it had {unfinished} in hands"
            ));
        }
    }

    /// A member pulls a queue; the first time, from where its ownership starts.
    pub(crate) fn pulls(&self, member: &str, mq: &MessageQueue, offset: i64) {
        let mut state = self.state.lock().unwrap();
        let work = state
            .work
            .entry((member.to_owned(), mq.clone()))
            .or_default();
        if work.start.is_none() {
            work.start = Some(offset);
            work.in_hands.retain(|in_hands| *in_hands >= offset);
        }
    }

    /// A member asks where to start with a queue: a new ownership, whether it was told of the change or,
    /// since changes that follow each other soon are told of once, was not.
    pub(crate) fn begins_anew(&self, member: Option<&str>, mq: &MessageQueue) {
        let mut state = self.state.lock().unwrap();
        let names: Vec<Name> = state
            .work
            .keys()
            .filter(|(name, of)| may_be(member, name) && of == mq)
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            state.forget(&name, mq);
        }
    }

    /// A member's queues of a topic are now these: what is known of those that it has lost ends. (Those
    /// that it has won it asks about.)
    pub(crate) fn assigned(
        &self,
        member: &str,
        topic: &str,
        before: &BTreeSet<MessageQueue>,
        now: &BTreeSet<MessageQueue>,
    ) {
        let mut state = self.state.lock().unwrap();
        for mq in before.difference(now) {
            debug_assert_eq!(mq.topic(), topic);
            state.forget(member, mq);
        }
    }
}
