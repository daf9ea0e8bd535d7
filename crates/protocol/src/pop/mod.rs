//! Receipts of popped messages: how brokers write them, and how a client makes one for each message
//! of an answer (Java `ExtraInfoUtil`).

mod extra_info;
mod offset_info;
mod receipts;

pub use extra_info::{ExtraInfo, ORDERED_REVIVE_QID, RetryMarker};
pub use offset_info::{
    OrderCountInfo, QueueKey, build_msg_offset_info, build_start_offset_info,
    parse_lite_order_count_info, parse_msg_offset_info, parse_start_offset_info,
};
pub use receipts::attach_receipts;
