//! The texts that brokers hand out to be given back: what was read is written so that it reads the
//! same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rocketmq_protocol::pop::{
    ExtraInfo, OrderCountInfo, build_msg_offset_info, build_start_offset_info,
    parse_lite_order_count_info, parse_msg_offset_info, parse_start_offset_info,
};
use rocketmq_protocol::{OffsetMessageId, RecallHandle, SubscriptionData, UniqKeyParts};

fuzz_target!(|text: &str| {
    if let Ok(read) = ExtraInfo::parse(text) {
        assert_eq!(ExtraInfo::parse(&read.to_string()), Ok(read));
    }
    if let Ok(read) = parse_start_offset_info(text) {
        assert_eq!(parse_start_offset_info(&build_start_offset_info(&read)), Ok(read));
    }
    if let Ok(read) = parse_msg_offset_info(text) {
        assert_eq!(parse_msg_offset_info(&build_msg_offset_info(&read)), Ok(read));
    }
    if let Ok(read) = OrderCountInfo::parse(text) {
        assert_eq!(OrderCountInfo::parse(&read.build()), Ok(read));
    }
    let _ = parse_lite_order_count_info(text, 2);
    if let Ok(read) = RecallHandle::parse(text) {
        assert_eq!(RecallHandle::parse(&read.to_string()), Ok(read));
    }
    if let Some(read) = OffsetMessageId::parse(text) {
        assert_eq!(read.to_string(), text.to_ascii_uppercase());
    }
    if let Some(read) = UniqKeyParts::parse(text) {
        assert_eq!(read.to_string(), text.to_ascii_uppercase());
    }
    let _ = SubscriptionData::build("T", text, 0);
});
