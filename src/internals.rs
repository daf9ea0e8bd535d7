//! What the benches of this repository measure beside the public API. No part of it: it may change with
//! every version.

use rocketmq_protocol::MessageQueue;

use crate::client::TopicPublishInfo;

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
    pub fn next(&self) -> Option<MessageQueue> {
        self.0.select_one_message_queue(None)
    }
}

/// Sorts the members of a group as strategies want them.
pub fn sort_client_ids(ids: &mut [String]) {
    crate::rebalance::sort_client_ids(ids);
}
