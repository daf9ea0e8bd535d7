//! A header in the JSON form: what was read is written so that it reads the same, and the short way
//! of what servers write reads what the JSON library reads.
#![no_main]

use bytes::{BufMut, BytesMut};
use libfuzzer_sys::fuzz_target;
use rocketmq_protocol::header::{PullMessageRequestHeader, SendMessageRequestHeaderV2};
use rocketmq_protocol::{CodecError, RemotingCommand, SerializeType};

const FORM: SerializeType = SerializeType::Json;

/// An entry that nobody knows, for which a header is left to the JSON library.
const UNKNOWN: &[u8] = br#""":[],"#;

fn decode(pieces: &[&[u8]]) -> Result<RemotingCommand, CodecError> {
    let length: usize = pieces.iter().map(|piece| piece.len()).sum();
    let mut content = BytesMut::new();
    content.put_u32(u32::from(FORM.code()) << 24 | length as u32);
    pieces.iter().for_each(|piece| content.put_slice(piece));
    RemotingCommand::decode(content.freeze())
}

fuzz_target!(|header: &[u8]| {
    let read = decode(&[header]);
    if let Some(entries) = header.strip_prefix(b"{") {
        let by_library = decode(&[b"{", UNKNOWN, entries]);
        assert_eq!(read.as_ref().ok(), by_library.as_ref().ok());
    }
    let Ok(command) = read else {
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
