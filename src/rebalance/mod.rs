//! Which member of a group consumes which queues.
//!
//! Every member computes the whole answer for itself from the same inputs; nobody is asked. So the
//! results here equal those of the Java client to the last queue, for both may share one group.

mod allocate;
mod allocate_message_queue_strategy;
#[allow(dead_code, reason = "carried out by the consumer's rebalance")]
mod rebalance_plan;

pub use allocate::{
    AllocateMachineRoomNearby, AllocateMessageQueueAveragely,
    AllocateMessageQueueAveragelyByCircle, AllocateMessageQueueByConfig,
    AllocateMessageQueueByMachineRoom, AllocateMessageQueueConsistentHash, HashFunction,
    MachineRoomResolver,
};
pub use allocate_message_queue_strategy::{AllocateError, AllocateMessageQueueStrategy};
#[allow(unused_imports, reason = "carried out by the consumer's rebalance")]
pub(crate) use rebalance_plan::{DropReason, RebalancePlan, WorkingState, rebalance_plan};
