//! Compression of message bodies (Java `CompressorFactory`).

use std::io::{self, Read, Write};
use std::ops::RangeInclusive;

use bytes::{Buf, Bytes};

use crate::{CodecError, sys_flag};

/// The most a body may expand to, in bytes. A broker stores messages of at most 4 MiB by default;
/// this leaves room for larger settings and still bounds what a few hostile bytes can claim.
pub const MAX_DECOMPRESSED_LENGTH: usize = 64 * 1024 * 1024;

/// How bodies are compressed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CompressionType {
    /// LZ4 frames.
    Lz4,
    /// Zstandard frames.
    Zstd,
    /// Zlib streams. The default, as in Java (`rocketmq.message.compressType`).
    #[default]
    Zlib,
}

impl CompressionType {
    /// The bits that say so in a message's flags.
    pub const fn flag(self) -> i32 {
        match self {
            Self::Lz4 => sys_flag::COMPRESSION_LZ4,
            Self::Zstd => sys_flag::COMPRESSION_ZSTD,
            Self::Zlib => sys_flag::COMPRESSION_ZLIB,
        }
    }

    /// The type that a message's flags name; empty bits are zlib, as old clients send it.
    ///
    /// # Errors
    /// [`CodecError::Compression`] for bits that name nothing.
    pub fn from_flag(flags: i32) -> Result<Self, CodecError> {
        match flags & sys_flag::COMPRESSION_MASK {
            sys_flag::COMPRESSION_LZ4 => Ok(Self::Lz4),
            sys_flag::COMPRESSION_ZSTD => Ok(Self::Zstd),
            sys_flag::COMPRESSION_ZLIB | 0 => Ok(Self::Zlib),
            other => Err(CodecError::Compression {
                algorithm: "unknown",
                detail: format!("type bits {other:#x}"),
            }),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Lz4 => "LZ4",
            Self::Zstd => "ZSTD",
            Self::Zlib => "ZLIB",
        }
    }

    /// The levels there are, from the quickest to the smallest; LZ4 has none.
    pub const fn levels(self) -> Option<RangeInclusive<i32>> {
        match self {
            Self::Lz4 => None,
            Self::Zstd => Some(1..=22),
            Self::Zlib => Some(0..=9),
        }
    }

    /// Compresses a body. A level outside of [`levels`](Self::levels) is taken for the nearest one;
    /// Java's default is 5 (`rocketmq.message.compressLevel`).
    ///
    /// # Errors
    /// [`CodecError::Compression`] when the encoder fails.
    pub fn compress(self, body: &[u8], level: i32) -> Result<Bytes, CodecError> {
        let level = match self.levels() {
            Some(levels) => level.clamp(*levels.start(), *levels.end()),
            None => level,
        };
        let result = match self {
            Self::Zlib => {
                let level = flate2::Compression::new(level.unsigned_abs());
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
                encoder.write_all(body).and_then(|()| encoder.finish())
            }
            Self::Lz4 => {
                let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
                encoder
                    .write_all(body)
                    .and_then(|()| encoder.finish().map_err(io::Error::other))
            }
            Self::Zstd => zstd::stream::encode_all(body, level),
        };
        result.map(Bytes::from).map_err(|error| self.failed(&error))
    }

    /// Expands a body, to at most [`MAX_DECOMPRESSED_LENGTH`].
    ///
    /// # Errors
    /// [`CodecError::Compression`] for bytes that are not of this form, are cut, or expand to more.
    /// Bytes behind a zlib stream are passed over, as Java does.
    pub fn decompress(self, body: &[u8]) -> Result<Bytes, CodecError> {
        let result = match self {
            Self::Zlib => read_bounded(flate2::bufread::ZlibDecoder::new(body)),
            Self::Lz4 => check_lz4_frame(body)
                .and_then(|()| read_bounded(lz4_flex::frame::FrameDecoder::new(body))),
            Self::Zstd => zstd_decoder(body).and_then(read_bounded),
        };
        result.map(Bytes::from).map_err(|error| self.failed(&error))
    }

    fn failed(self, error: &io::Error) -> CodecError {
        CodecError::Compression {
            algorithm: self.name(),
            detail: error.to_string(),
        }
    }
}

fn read_bounded(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let limit = MAX_DECOMPRESSED_LENGTH as u64;
    reader.take(limit.saturating_add(1)).read_to_end(&mut out)?;
    if out.len() > MAX_DECOMPRESSED_LENGTH {
        return Err(io::Error::other(format!("more than {limit} bytes")));
    }
    Ok(out)
}

/// A decoder that keeps no more of its past output than a body may have. The size is the sender's
/// claim and is allocated at once.
fn zstd_decoder(body: &[u8]) -> io::Result<zstd::stream::read::Decoder<'_, &[u8]>> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(body)?;
    decoder.window_log_max(MAX_DECOMPRESSED_LENGTH.ilog2())?;
    Ok(decoder)
}

/// Checks that the bytes are one whole LZ4 frame, which the library's reader does not: it takes
/// input that ends between two blocks for finished, and is not made for a second frame whose
/// settings differ.
fn check_lz4_frame(mut frame: &[u8]) -> io::Result<()> {
    const MAGIC: u32 = 0x184D_2204;
    const WITH_DICTIONARY_ID: u8 = 0x01;
    const WITH_CONTENT_CHECKSUM: u8 = 0x04;
    const WITH_CONTENT_SIZE: u8 = 0x08;
    const WITH_BLOCK_CHECKSUMS: u8 = 0x10;
    const BLOCK_LENGTH: u32 = 0x7FFF_FFFF;

    let input = &mut frame;
    if input.try_get_u32_le()? != MAGIC {
        return Err(io::Error::other("wrong magic number"));
    }
    let flags = input.try_get_u8()?;
    let checksum_if = |flag: u8| if flags & flag == 0 { 0 } else { 4 };
    let content_size = if flags & WITH_CONTENT_SIZE == 0 { 0 } else { 8 };
    let block_settings_and_header_checksum = 2;
    skip(input, block_settings_and_header_checksum)?;
    skip(input, content_size)?;
    skip(input, checksum_if(WITH_DICTIONARY_ID))?;
    loop {
        let length = input.try_get_u32_le()? & BLOCK_LENGTH;
        if length == 0 {
            break;
        }
        skip(input, length)?;
        skip(input, checksum_if(WITH_BLOCK_CHECKSUMS))?;
    }
    skip(input, checksum_if(WITH_CONTENT_CHECKSUM))?;
    if input.is_empty() {
        Ok(())
    } else {
        Err(io::Error::other("bytes behind the frame"))
    }
}

fn skip(input: &mut &[u8], length: u32) -> io::Result<()> {
    let rest = usize::try_from(length)
        .ok()
        .and_then(|length| input.get(length..));
    *input = rest.ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(())
}
