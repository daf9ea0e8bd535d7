//! Compression of message bodies (Java `CompressorFactory`).

use std::io::{self, Read, Write};

use bytes::Bytes;

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

    /// Compresses a body. `level` counts for zlib and zstd.
    ///
    /// # Errors
    /// [`CodecError::Compression`] when the encoder fails.
    pub fn compress(self, body: &[u8], level: u32) -> Result<Bytes, CodecError> {
        let result = match self {
            Self::Zlib => {
                let level = flate2::Compression::new(level.min(9));
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
                encoder.write_all(body).and_then(|()| encoder.finish())
            }
            Self::Lz4 => {
                let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
                encoder
                    .write_all(body)
                    .and_then(|()| encoder.finish().map_err(io::Error::other))
            }
            Self::Zstd => zstd::stream::encode_all(body, i32::try_from(level).unwrap_or(5)),
        };
        result.map(Bytes::from).map_err(|error| self.failed(&error))
    }

    /// Expands a body, to at most [`MAX_DECOMPRESSED_LENGTH`].
    ///
    /// # Errors
    /// [`CodecError::Compression`] for bytes that are not of this form, are cut, or expand to more.
    pub fn decompress(self, body: &[u8]) -> Result<Bytes, CodecError> {
        let result = match self {
            Self::Zlib => read_bounded(flate2::read::ZlibDecoder::new(body)),
            Self::Lz4 => read_bounded(lz4_flex::frame::FrameDecoder::new(body)),
            Self::Zstd => zstd::stream::read::Decoder::new(body).and_then(read_bounded),
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
