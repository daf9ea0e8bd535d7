//! How far a group has come in each queue.

mod offset_table;

#[allow(unused_imports, reason = "used by the offset stores")]
pub(crate) use offset_table::{OffsetTable, Update};
