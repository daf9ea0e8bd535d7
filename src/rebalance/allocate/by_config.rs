use rocketmq_protocol::MessageQueue;

use crate::rebalance::allocate_message_queue_strategy::{
    AllocateError, AllocateMessageQueueStrategy,
};

/// Gives the member a fixed list of queues, whoever else is there.
///
/// Nothing is checked: the list is the answer for every topic, and that the lists of all members
/// fit together is the user's concern.
///
/// # Java
/// `AllocateMessageQueueByConfig`
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllocateMessageQueueByConfig {
    message_queues: Vec<MessageQueue>,
}

impl AllocateMessageQueueByConfig {
    /// A strategy that always gives `message_queues` (Java `messageQueueList`).
    pub fn new(message_queues: Vec<MessageQueue>) -> Self {
        Self { message_queues }
    }
}

impl AllocateMessageQueueStrategy for AllocateMessageQueueByConfig {
    fn name(&self) -> &str {
        "CONFIG"
    }

    fn allocate(
        &self,
        _consumer_group: &str,
        _current_cid: &str,
        _mq_all: &[MessageQueue],
        _cid_all: &[String],
    ) -> Result<Vec<MessageQueue>, AllocateError> {
        Ok(self.message_queues.clone())
    }
}
