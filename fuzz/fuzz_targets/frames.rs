//! A byte stream cut into commands: what comes out does not depend on how the bytes arrive.
#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use rocketmq_protocol::{CodecError, FrameDecoder, RemotingCommand};

fn commands(pieces: &[&[u8]]) -> (Vec<RemotingCommand>, Option<CodecError>) {
    let mut decoder = FrameDecoder::new(1 << 20);
    let mut commands = Vec::new();
    for piece in pieces {
        decoder.extend(piece);
        loop {
            match decoder.next_command() {
                Ok(Some(command)) => commands.push(command),
                Ok(None) => break,
                Err(error) => return (commands, Some(error)),
            }
        }
    }
    (commands, None)
}

fuzz_target!(|data: (u16, &[u8])| {
    let (at, bytes) = data;
    let (head, tail) = bytes.split_at(usize::from(at).min(bytes.len()));
    let whole = commands(&[bytes]);
    assert_eq!(commands(&[head, tail]), whole);
    for command in whole.0 {
        let mut frame = BytesMut::new();
        if command.encode(&mut frame).is_ok() {
            assert_eq!(RemotingCommand::decode(frame.freeze().slice(4..)), Ok(command));
        }
    }
});
