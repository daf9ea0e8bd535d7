//! Consumers: where they are in their queues, and what they hold of them.

#[allow(dead_code, reason = "used by the consumers' implementations")]
pub(crate) mod offset_store;
#[allow(dead_code, reason = "used by the consumers' implementations")]
pub(crate) mod process_queue;
