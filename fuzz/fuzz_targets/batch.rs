//! The body of a batch: what was read is written so that it reads the same.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use rocketmq_protocol::{BatchElement, BatchElements, Message, encode_batch};

fuzz_target!(|bytes: &[u8]| {
    let elements: Vec<BatchElement> = BatchElements::new(Bytes::copy_from_slice(bytes))
        .flatten()
        .collect();
    let messages: Vec<Message> = elements
        .iter()
        .cloned()
        .map(|element| Message::from_parts("T", element.flag, element.properties, element.body))
        .collect();
    // Java's own separator at the end may make properties of full length one byte too long.
    if let Ok(again) = encode_batch(&messages) {
        let again: Result<Vec<BatchElement>, _> = BatchElements::new(again).collect();
        assert_eq!(again, Ok(elements));
    }
});
