//! Which member of a group consumes which queues.
//!
//! Every member computes the whole answer for itself from the same inputs; nobody is asked. So the
//! results here equal those of the Java client to the last queue, for both may share one group.

mod allocate;
mod allocate_message_queue_strategy;
mod rebalance_impl;
mod rebalance_plan;

pub use allocate::{
    AllocateMachineRoomNearby, AllocateMessageQueueAveragely,
    AllocateMessageQueueAveragelyByCircle, AllocateMessageQueueByConfig,
    AllocateMessageQueueByMachineRoom, AllocateMessageQueueConsistentHash, HashFunction,
    MachineRoomResolver,
};
pub use allocate_message_queue_strategy::{AllocateError, AllocateMessageQueueStrategy};
pub(crate) use rebalance_impl::{RebalanceHooks, RebalanceImpl, WorkingQueue, sort_client_ids};
pub(crate) use rebalance_plan::{WorkingState, rebalance_plan};
