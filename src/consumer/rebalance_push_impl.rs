use rocketmq_protocol::MessageQueue;

use super::default_mq_push_consumer_impl::DefaultMQPushConsumerImpl;
use super::process_queue::ProcessQueue;
use crate::rebalance::{RebalanceHooks, WorkingQueue, WorkingState};
use crate::sync::{Arc, Clock};

/// What a push consumer does when its queues change (Java `RebalancePushImpl`): a view that lives
/// for one call.
pub(super) struct RebalancePushImpl<'a>(pub(super) &'a Arc<DefaultMQPushConsumerImpl>);

impl WorkingQueue for ProcessQueue {
    fn working_state(&self) -> WorkingState {
        if self.is_given_up() {
            WorkingState::DropPending
        } else if self.is_pull_expired() {
            WorkingState::PullExpired
        } else {
            WorkingState::Active
        }
    }
}

impl RebalanceHooks for RebalancePushImpl<'_> {
    type Queue = ProcessQueue;

    fn new_process_queue(&self, _mq: &MessageQueue) -> ProcessQueue {
        ProcessQueue::new(Clock::Real)
    }

    fn remove_unnecessary_message_queue(
        &self,
        mq: &MessageQueue,
        queue: &Arc<ProcessQueue>,
    ) -> bool {
        self.0.give_up(mq, queue)
    }

    fn dispatch(&self, added: Vec<(MessageQueue, Arc<ProcessQueue>)>, shared: bool) {
        self.0.begin_to_pull(added, shared);
    }

    fn message_queue_changed(
        &self,
        topic: &str,
        mq_all: &[MessageQueue],
        mq_divided: &[MessageQueue],
    ) {
        self.0.message_queue_changed(topic, mq_all, mq_divided);
    }
}
