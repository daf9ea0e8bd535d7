//! A blocking socket to the broker, frames put together by hand, replies that are cut but hardly read.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::Range;

use crate::measure::{Failure, Options};

const READ_BYTES: usize = 256 << 10;

pub(crate) struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
    /// What of `received` has been handed out.
    used: usize,
}

/// A reply's header and body as places in the connection's buffer, valid until the next one is asked for.
pub(crate) struct Reply {
    header: Range<usize>,
    body: Range<usize>,
}

impl Connection {
    pub(crate) fn open(options: &Options) -> Result<Self, Failure> {
        let stream = TcpStream::connect(options.text("broker", "127.0.0.1:10911"))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            received: Vec::new(),
            used: 0,
        })
    }

    pub(crate) fn write(&mut self, frames: &[u8]) -> Result<(), Failure> {
        Ok(self.stream.write_all(frames)?)
    }

    pub(crate) fn reply(&mut self) -> Result<Reply, Failure> {
        loop {
            if let Some(reply) = cut(&self.received, &mut self.used) {
                return Ok(reply);
            }
            self.received.drain(..self.used);
            self.used = 0;
            let had = self.received.len();
            self.received.resize(had + READ_BYTES, 0);
            let count = self.stream.read(&mut self.received[had..])?;
            self.received.truncate(had + count);
            if count == 0 {
                return Err("the broker has closed the connection".into());
            }
        }
    }

    pub(crate) fn header(&self, reply: &Reply) -> &[u8] {
        &self.received[reply.header.clone()]
    }

    pub(crate) fn body(&self, reply: &Reply) -> &[u8] {
        &self.received[reply.body.clone()]
    }

    pub(crate) fn is_ok(&self, reply: &Reply) -> bool {
        position(self.header(reply), b"\"code\":0,").is_some()
    }

    pub(crate) fn refusal(&self, reply: &Reply) -> Failure {
        String::from_utf8_lossy(self.header(reply)).into()
    }
}

fn cut(received: &[u8], used: &mut usize) -> Option<Reply> {
    let from = *used;
    let rest = received.get(from..)?;
    let length = size_at(rest, 0)?;
    // The high byte of the second word names the header's form.
    let header = size_at(rest, 4)? & 0x00ff_ffff;
    let end = from + 4 + length;
    if end > received.len() || 4 + header > length {
        return None;
    }
    *used = end;
    Some(Reply {
        header: from + 8..from + 8 + header,
        body: from + 8 + header..end,
    })
}

pub(crate) fn size_at(bytes: &[u8], at: usize) -> Option<usize> {
    let word = bytes.get(at..at + 4)?.try_into().ok()?;
    usize::try_from(u32::from_be_bytes(word)).ok()
}

pub(crate) fn position(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// Puts a request behind what `frames` has: lengths, header in JSON, body.
pub(crate) fn put_frame(
    frames: &mut Vec<u8>,
    code: u32,
    opaque: usize,
    fields: &str,
    body: &[u8],
) -> Result<(), Failure> {
    let mut header = String::with_capacity(fields.len() + 128);
    write!(
        header,
        "{{\"code\":{code},\"extFields\":{{{fields}}},\"flag\":0,\"language\":\"OTHER\",\"opaque\":{opaque},\
         \"serializeTypeCurrentRPC\":\"JSON\",\"version\":500}}"
    )?;
    let length = u32::try_from(4 + header.len() + body.len())?;
    frames.extend(length.to_be_bytes());
    frames.extend(u32::try_from(header.len())?.to_be_bytes());
    frames.extend(header.as_bytes());
    frames.extend(body);
    Ok(())
}
