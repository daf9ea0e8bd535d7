use byteorder::{BigEndian, ByteOrder};
use bytes::{Buf, BytesMut};

use crate::{CodecError, RemotingCommand};

/// The longest frame a peer accepts, in bytes (Java `com.rocketmq.remoting.frameMaxLength`).
pub const MAX_FRAME_LENGTH: usize = 16_777_216;

/// Cuts a byte stream into commands.
///
/// Feed it with [`FrameDecoder::extend`], then call [`FrameDecoder::next_command`] until it says
/// `None`. It holds at most what was fed and not yet cut: a frame's length field alone allocates
/// nothing. After an error the stream has no known position any more and must be closed.
#[derive(Debug)]
pub struct FrameDecoder {
    buffer: BytesMut,
    max_frame_length: usize,
}

impl FrameDecoder {
    /// A decoder that refuses frames of more than `max_frame_length` bytes, the four of the length
    /// field counted, as Java counts them.
    pub fn new(max_frame_length: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            max_frame_length,
        }
    }

    /// Adds bytes that arrived.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Bytes that were fed and are not part of a command yet.
    pub fn pending(&self) -> usize {
        self.buffer.len()
    }

    /// The next whole command, or `None` when more bytes are needed.
    ///
    /// # Errors
    /// A length out of range, or a content that is no command.
    pub fn next_command(&mut self) -> Result<Option<RemotingCommand>, CodecError> {
        let Some(length) = self.buffer.get(..4).map(BigEndian::read_i32) else {
            return Ok(None);
        };
        let bad = CodecError::BadLength {
            what: "frame",
            length: length.into(),
        };
        let length = match usize::try_from(length) {
            Ok(length) if length >= 4 && length <= self.max_frame_length.saturating_sub(4) => {
                length
            }
            _ => return Err(bad),
        };
        if self.buffer.len() < length.saturating_add(4) {
            return Ok(None);
        }
        self.buffer.advance(4);
        let content = self.buffer.split_to(length).freeze();
        RemotingCommand::decode(content).map(Some)
    }
}

impl Default for FrameDecoder {
    fn default() -> Self {
        Self::new(MAX_FRAME_LENGTH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SerializeType;

    fn frame(serialize_type: SerializeType, code: i32) -> BytesMut {
        let mut command = RemotingCommand::request_without_header(code).with_body(&b"\x01\x02"[..]);
        command.ext_fields.set("k", "v");
        command.remark = Some("r".into());
        command.opaque = 1;
        command.version = 475;
        command.serialize_type = serialize_type;
        let mut out = BytesMut::new();
        command.encode(&mut out).unwrap();
        out
    }

    #[test]
    fn a_frame_fed_byte_by_byte_is_cut_once_it_is_whole() {
        let bytes = frame(SerializeType::Json, 34);
        let mut decoder = FrameDecoder::default();
        for (at, byte) in bytes.iter().enumerate() {
            decoder.extend(&[*byte]);
            let command = decoder.next_command().unwrap();
            assert_eq!(command.is_some(), at == bytes.len() - 1, "at byte {at}");
        }
        assert_eq!(decoder.pending(), 0);
    }

    #[test]
    fn the_binary_frame_has_the_bytes_java_writes() {
        let expected = "000000240100001e00220c01db000000010000000000000001720000000800016b0000000176\
                        0102";
        let hex: String = frame(SerializeType::RocketMq, 34)
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        assert_eq!(hex, expected);
    }

    #[test]
    fn a_code_beyond_two_bytes_is_written_as_json() {
        let mut decoder = FrameDecoder::default();
        decoder.extend(&frame(SerializeType::RocketMq, 200_050));
        let command = decoder.next_command().unwrap().unwrap();
        assert_eq!(
            (command.code, command.serialize_type),
            (200_050, SerializeType::Json)
        );
    }

    #[test]
    fn a_claimed_length_beyond_the_limit_is_refused_before_anything_is_kept() {
        let mut decoder = FrameDecoder::new(1000);
        decoder.extend(&996_u32.to_be_bytes());
        assert_eq!(decoder.next_command(), Ok(None));
        let mut decoder = FrameDecoder::new(1000);
        decoder.extend(&997_u32.to_be_bytes());
        assert_eq!(
            decoder.next_command(),
            Err(CodecError::BadLength {
                what: "frame",
                length: 997
            })
        );
    }

    #[test]
    fn a_header_longer_than_its_frame_is_refused() {
        let mut decoder = FrameDecoder::default();
        decoder.extend(&[0, 0, 0, 6, 0, 0, 0, 3, b'{', b'}']);
        assert_eq!(
            decoder.next_command(),
            Err(CodecError::BadLength {
                what: "header",
                length: 3
            })
        );
    }
}
