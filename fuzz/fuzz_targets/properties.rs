//! The text of properties: what was read is written so that it reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rocketmq_protocol::{decode_properties, encode_properties};

fuzz_target!(|text: &str| {
    let properties = decode_properties(text);
    assert_eq!(decode_properties(&encode_properties(&properties)), properties);
});
