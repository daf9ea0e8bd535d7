//! How far a group has come in each queue.

mod offset_table;
#[cfg(not(loom))]
mod remote_broker;

pub(crate) use offset_table::OffsetTable;
#[cfg(not(loom))]
pub(crate) use remote_broker::{RemoteBrokerOffsetStore, broker_of};
