//! What the benches of this repository measure beside the public API. No part of it: it may change with
//! every version.

use rocketmq_protocol::{MessageExt, MessageQueue};

use crate::client::TopicPublishInfo;
use crate::consumer::ProcessQueue;
use crate::rebalance::{WorkingState, rebalance_plan};
use crate::sync::Clock;

/// Goes round the queues of a topic, as a producer does.
#[derive(Debug)]
pub struct SelectQueue(TopicPublishInfo);

impl SelectQueue {
    /// Goes round these.
    pub fn new(queues: impl IntoIterator<Item = MessageQueue>) -> Self {
        Self(TopicPublishInfo::new(
            queues.into_iter().collect::<Vec<_>>(),
        ))
    }

    /// The next queue of this thread.
    #[inline]
    pub fn next(&self) -> Option<MessageQueue> {
        self.0.select_one_message_queue(None)
    }

    /// The next queue of this thread, not cloned.
    #[inline]
    pub fn next_borrowed(&self) -> Option<&MessageQueue> {
        self.0.next_message_queue()
    }
}

/// Sorts the members of a group as strategies want them.
pub fn sort_client_ids(ids: &mut [String]) {
    crate::rebalance::sort_client_ids(ids);
}

/// The queues of a topic that a consumer works on.
#[derive(Debug)]
pub struct WorkedOn(Vec<(MessageQueue, WorkingState)>);

impl WorkedOn {
    /// Works on these, and nothing is wrong with them.
    pub fn new(queues: &[MessageQueue]) -> Self {
        let active = |mq: &MessageQueue| (mq.clone(), WorkingState::Active);
        Self(queues.iter().map(active).collect())
    }

    /// How many queues it drops and adds to work on these instead.
    pub fn changes_to(&self, allocated: &[MessageQueue]) -> usize {
        let plan = rebalance_plan(&self.0, allocated);
        plan.drop.len() + plan.add.len()
    }
}

/// The account of what a consumer has in work of one queue.
#[derive(Debug)]
pub struct QueueInWork(ProcessQueue);

impl QueueInWork {
    /// Nothing is in work.
    #[expect(
        clippy::new_without_default,
        reason = "there is no need of a second way"
    )]
    pub fn new() -> Self {
        Self(ProcessQueue::new(Clock::Real))
    }

    /// Takes pulled messages into account.
    pub fn put(&self, messages: &[MessageExt]) {
        let _ = self.0.put_messages(messages);
    }

    /// Notes a call of the listener with these messages and its end; the offset to commit.
    pub fn consume(&self, messages: &[MessageExt]) -> Option<i64> {
        self.0.consume_started(messages).ok()?;
        let next = self
            .0
            .remove_messages(messages.iter().map(MessageExt::queue_offset));
        self.0.consume_ended();
        next
    }
}
