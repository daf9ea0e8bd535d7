//! A header in the binary form: what was read is written so that it reads the same.
#![no_main]

use bytes::{BufMut, BytesMut};
use libfuzzer_sys::fuzz_target;
use rocketmq_protocol::header::{PullMessageRequestHeader, SendMessageRequestHeaderV2};
use rocketmq_protocol::{RemotingCommand, SerializeType};

const FORM: SerializeType = SerializeType::RocketMq;

fuzz_target!(|header: &[u8]| {
    let mut content = BytesMut::new();
    content.put_u32(u32::from(FORM.code()) << 24 | header.len() as u32);
    content.put_slice(header);
    let Ok(command) = RemotingCommand::decode(content.freeze()) else {
        return;
    };
    assert_eq!(command.serialize_type, FORM);
    let _ = command.decode_header::<PullMessageRequestHeader>();
    let _ = command.decode_header::<SendMessageRequestHeaderV2>();
    let mut frame = BytesMut::new();
    if command.encode(&mut frame).is_ok() {
        assert_eq!(RemotingCommand::decode(frame.freeze().slice(4..)), Ok(command));
    }
});
