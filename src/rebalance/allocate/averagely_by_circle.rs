use rocketmq_protocol::MessageQueue;

use crate::rebalance::allocate_message_queue_strategy::{
    AllocateError, AllocateMessageQueueStrategy, member_index,
};

/// Deals the queues out one by one, as cards are dealt.
///
/// The shares differ by at most one queue. Neighbouring queues, which usually are on one broker, go
/// to different members, so that a lost broker takes something from each of them.
///
/// # Java
/// `AllocateMessageQueueAveragelyByCircle`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AllocateMessageQueueAveragelyByCircle;

impl AllocateMessageQueueStrategy for AllocateMessageQueueAveragelyByCircle {
    fn name(&self) -> &str {
        "AVG_BY_CIRCLE"
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
        let dealt = mq_all.iter().skip(index).step_by(cid_all.len());
        Ok(dealt.cloned().collect())
    }
}
