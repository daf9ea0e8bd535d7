use rocketmq_protocol::MessageQueue;

use crate::rebalance::allocate_message_queue_strategy::{
    AllocateError, AllocateMessageQueueStrategy, member_index,
};

/// Gives each member one block of neighbouring queues; the default strategy.
///
/// The blocks differ by at most one queue, and the first members have the larger ones. With more
/// members than queues the last members get none.
///
/// # Java
/// `AllocateMessageQueueAveragely`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AllocateMessageQueueAveragely;

impl AllocateMessageQueueStrategy for AllocateMessageQueueAveragely {
    fn name(&self) -> &str {
        "AVG"
    }

    fn allocate(
        &self,
        _consumer_group: &str,
        current_cid: &str,
        mq_all: &[MessageQueue],
        cid_all: &[String],
    ) -> Result<Vec<MessageQueue>, AllocateError> {
        let Some(index) = member_index(current_cid, mq_all, cid_all)? else {
            return Ok(Vec::new());
        };
        let base = mq_all.len() / cid_all.len();
        let larger_blocks = mq_all.len() % cid_all.len();
        let start = index * base + index.min(larger_blocks);
        let size = base + usize::from(index < larger_blocks);
        Ok(mq_all.iter().skip(start).take(size).cloned().collect())
    }
}
