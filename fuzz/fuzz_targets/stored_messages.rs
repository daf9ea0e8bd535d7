//! The body of a pull reply, and one stored message: what was read is written so that it reads the
//! same. Checksums rarely fit by chance, so a copy has them cleared, which means not computed.
#![no_main]

use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;
use rocketmq_protocol::{StoredMessage, StoredMessages};

fn walk(bytes: &[u8]) {
    for message in StoredMessages::new(Bytes::copy_from_slice(bytes)).flatten() {
        let _ = message.msg_id();
    }
}

fn one(bytes: &[u8]) {
    let Ok(message) = StoredMessage::decode(Bytes::copy_from_slice(bytes)) else {
        return;
    };
    let mut again = BytesMut::new();
    message.encode(&mut again).expect("what was read fits");
    assert_eq!(StoredMessage::decode(again.freeze()), Ok(message));
}

fuzz_target!(|bytes: &[u8]| {
    walk(bytes);
    one(bytes);
    let mut unchecked = bytes.to_vec();
    let size = (unchecked.len() as u32).to_be_bytes();
    if let Some(start) = unchecked.get_mut(..12) {
        start[..4].copy_from_slice(&size);
        start[8..].fill(0);
        walk(&unchecked);
        one(&unchecked);
    }
});
