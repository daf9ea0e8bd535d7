use rocketmq_protocol::MessageQueue;

use super::default_mq_push_consumer_impl::DefaultMQPushConsumerImpl;
use super::process_queue::ProcessQueue;
use crate::client::MessageRequest;
use crate::sync::{Arc, Weak};

/// The token of an owned queue: whoever has it does the next step of its pull loop.
///
/// There is one for each [`ProcessQueue`] and it cannot be cloned, so a queue cannot be pulled twice
/// at once. It holds its consumer weakly: a pull that is under way for 15 s must not keep a dropped
/// consumer alive.
#[derive(Debug)]
pub(super) struct PullRequest {
    pub(super) consumer: Weak<DefaultMQPushConsumerImpl>,
    pub(super) mq: MessageQueue,
    pub(super) process_queue: Arc<ProcessQueue>,
    /// The offset to pull from; `None` until it is found out where to start.
    pub(super) next_offset: Option<i64>,
    /// The broker id that the last answer suggested.
    pub(super) suggested_broker_id: i64,
    /// How many requests for this queue have failed in a row.
    pub(super) failures: u32,
}

impl MessageRequest for PullRequest {
    fn execute(self: Box<Self>) {
        if let Some(consumer) = self.consumer.upgrade() {
            consumer.pull_message(self);
        }
    }
}
