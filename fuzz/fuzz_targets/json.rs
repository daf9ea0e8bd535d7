//! JSON in the dialect of Java servers: a body that was read is written so that it reads the same,
//! and strict JSON means what it means to a strict parser.
#![no_main]

use std::fmt::Debug;

use libfuzzer_sys::fuzz_target;
use rocketmq_protocol::body::{
    BatchAckMessageRequestBody, ConsumerRunningInfo, GetConsumerStatusBody, HeartbeatData, JsonBody,
    QueryAssignmentResponseBody, ResetOffsetBody, SubscriptionGroupConfig, TopicRouteData,
};
use rocketmq_protocol::json;
use serde_json::Value;

fn body<B: JsonBody + PartialEq + Debug>(text: &[u8]) {
    if let Ok(read) = B::from_json(text) {
        let written = read.to_json().expect("what was read can be written");
        assert_eq!(B::from_json(&written), Ok(read));
    }
}

fuzz_target!(|text: &[u8]| {
    let lenient = json::from_slice::<Value>("value", text).ok();
    if let Ok(strict) = serde_json::from_slice::<Value>(text) {
        assert_eq!(lenient, Some(strict));
    }
    body::<TopicRouteData>(text);
    body::<HeartbeatData>(text);
    body::<ResetOffsetBody>(text);
    body::<GetConsumerStatusBody>(text);
    body::<ConsumerRunningInfo>(text);
    body::<BatchAckMessageRequestBody>(text);
    body::<QueryAssignmentResponseBody>(text);
    body::<SubscriptionGroupConfig>(text);
});
