use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use byteorder::{BigEndian, ByteOrder};
use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::compression::CompressionType;
use crate::message_properties::MessageProperties;
use crate::{
    BatchElements, CodecError, Message, MessageExt, OffsetMessageId, properties, sys_flag,
};

const MAGIC_V1: u32 = 0xDAA3_20A7;
const MAGIC_V2: u32 = 0xDAA3_20AB;
const V1_TOPIC_MAX: usize = 127;

/// The most that surrounds a body: the fixed fields, a topic and properties.
const ALL_BUT_BODY_MAX: i32 = 256 + 2 * i16::MAX as i32;

/// One message in the form in which brokers store and hand it out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMessage {
    /// The queue.
    pub queue_id: i32,
    /// The user's flag.
    pub flag: i32,
    /// The offset in the queue.
    pub queue_offset: i64,
    /// The offset in the commit log.
    pub commit_log_offset: i64,
    /// See [`crate::sys_flag`]. The two address bits follow from the hosts when encoding.
    pub sys_flag: i32,
    /// When it was made, in milliseconds since 1970.
    pub born_timestamp: i64,
    /// Who sent it.
    pub born_host: SocketAddr,
    /// When it was stored, in milliseconds since 1970.
    pub store_timestamp: i64,
    /// Who stored it.
    pub store_host: SocketAddr,
    /// How often it was consumed in vain.
    pub reconsume_times: i32,
    /// The commit-log offset of its half message.
    pub prepared_transaction_offset: i64,
    /// The body as stored, perhaps compressed.
    pub body: Bytes,
    /// The topic.
    pub topic: String,
    /// The encoded properties.
    pub properties: String,
}

impl StoredMessage {
    /// Appends the stored form.
    ///
    /// # Errors
    /// [`CodecError::Unencodable`] when topic, properties, body or the whole exceed their length
    /// fields; `out` is then as it was.
    pub fn encode(&self, out: &mut BytesMut) -> Result<(), CodecError> {
        properties::check_length(&self.properties)?;
        let too_long = |what: &'static str, length: usize| CodecError::Unencodable {
            what,
            detail: format!("{length} bytes"),
        };
        let topic_length =
            i16::try_from(self.topic.len()).map_err(|_| too_long("topic", self.topic.len()))?;
        let body_length = i32::try_from(self.body.len())
            .ok()
            .filter(|length| *length <= i32::MAX - ALL_BUT_BODY_MAX)
            .ok_or_else(|| too_long("body", self.body.len()))?;
        let start = out.len();
        let wide_topic = self.topic.len() > V1_TOPIC_MAX;
        out.put_u32(0);
        out.put_u32(if wide_topic { MAGIC_V2 } else { MAGIC_V1 });
        out.put_u32(body_checksum(&self.body));
        out.put_i32(self.queue_id);
        out.put_i32(self.flag);
        out.put_i64(self.queue_offset);
        out.put_i64(self.commit_log_offset);
        let mut flags = self.sys_flag & !(sys_flag::BORN_HOST_V6 | sys_flag::STORE_HOST_V6);
        if self.born_host.is_ipv6() {
            flags |= sys_flag::BORN_HOST_V6;
        }
        if self.store_host.is_ipv6() {
            flags |= sys_flag::STORE_HOST_V6;
        }
        out.put_i32(flags);
        out.put_i64(self.born_timestamp);
        put_host(out, self.born_host);
        out.put_i64(self.store_timestamp);
        put_host(out, self.store_host);
        out.put_i32(self.reconsume_times);
        out.put_i64(self.prepared_transaction_offset);
        out.put_i32(body_length);
        out.put_slice(&self.body);
        if wide_topic {
            out.put_i16(topic_length);
        } else {
            out.put_u8(topic_length as u8);
        }
        out.put_slice(self.topic.as_bytes());
        out.put_u16(self.properties.len() as u16);
        out.put_slice(self.properties.as_bytes());
        let size = out.len().saturating_sub(start);
        if let Some(mut place) = out.get_mut(start..) {
            place.put_u32(size as u32);
        }
        Ok(())
    }

    /// Reads one message, which must fill `bytes` exactly. The body is a slice of `bytes`.
    ///
    /// The checksum is not compared, as in Java's clients: brokers check what they store, and the
    /// connection what it carries.
    ///
    /// # Errors
    /// A wrong magic, a length that does not fit, or text that is not UTF-8.
    pub fn decode(bytes: Bytes) -> Result<Self, CodecError> {
        let Parts { mut message, texts } = Parts::read(bytes)?;
        texts.topic()?.clone_into(&mut message.topic);
        let properties = texts.into_properties();
        std::str::from_utf8(&properties)
            .map_err(|_| CodecError::BadUtf8 { what: "properties" })?
            .clone_into(&mut message.properties);
        Ok(message)
    }

    /// The message as a user sees it: body expanded, properties read. `store_size` is the size of
    /// the stored form.
    ///
    /// # Errors
    /// [`CodecError::Compression`].
    pub fn into_message_ext(mut self, store_size: usize) -> Result<MessageExt, CodecError> {
        let topic = self.topic.as_str().into();
        let properties = std::mem::take(&mut self.properties).into_bytes();
        let properties = MessageProperties::received(properties.into())?;
        self.expand(topic, properties, store_size)
    }

    fn expand(
        self,
        topic: Arc<str>,
        properties: MessageProperties,
        store_size: usize,
    ) -> Result<MessageExt, CodecError> {
        let mut sys_flag = self.sys_flag;
        let mut body = self.body;
        if sys_flag & sys_flag::COMPRESSED != 0 {
            body = CompressionType::from_flag(sys_flag)?.decompress(&body)?;
            sys_flag &= !sys_flag::COMPRESSED;
        }
        let stored_at = OffsetMessageId {
            store_host: self.store_host,
            commit_log_offset: self.commit_log_offset,
        };
        Ok(MessageExt {
            message: Message::received(topic, self.flag, properties, body),
            broker_name: Arc::default(),
            queue_id: self.queue_id,
            store_size,
            queue_offset: self.queue_offset,
            sys_flag,
            born_timestamp: self.born_timestamp,
            born_host: self.born_host,
            store_timestamp: self.store_timestamp,
            stored_at: stored_at.into(),
            reconsume_times: self.reconsume_times,
            prepared_transaction_offset: self.prepared_transaction_offset,
        })
    }
}

/// A stored message whose texts are bytes still, so that who needs them in another form copies them
/// once only, or not at all.
struct Parts {
    message: StoredMessage,
    texts: Texts,
}

impl Parts {
    /// Cuts one message, which must fill `bytes`, into its parts. Lengths are checked, texts are not.
    fn read(mut bytes: Bytes) -> Result<Self, CodecError> {
        const CUT: CodecError = CodecError::Truncated {
            what: "stored message",
        };
        let whole = bytes.len();
        let mut fixed: &[u8] = &bytes;
        let input = &mut fixed;
        let size = input.try_get_i32().map_err(|_| CUT)?;
        if usize::try_from(size) != Ok(whole) {
            return Err(CodecError::BadLength {
                what: "stored message",
                length: size.into(),
            });
        }
        let magic = input.try_get_u32().map_err(|_| CUT)?;
        let wide_topic = match magic {
            MAGIC_V1 => false,
            MAGIC_V2 => true,
            _ => {
                return Err(CodecError::BadMagic {
                    magic: magic as i32,
                });
            }
        };
        // The body's checksum, which Java's clients do not compare either.
        input.try_get_u32().map_err(|_| CUT)?;
        let queue_id = input.try_get_i32().map_err(|_| CUT)?;
        let flag = input.try_get_i32().map_err(|_| CUT)?;
        let queue_offset = input.try_get_i64().map_err(|_| CUT)?;
        let commit_log_offset = input.try_get_i64().map_err(|_| CUT)?;
        let sys_flag = input.try_get_i32().map_err(|_| CUT)?;
        let born_timestamp = input.try_get_i64().map_err(|_| CUT)?;
        let born_host = take_host(input, sys_flag & sys_flag::BORN_HOST_V6 != 0)?;
        let store_timestamp = input.try_get_i64().map_err(|_| CUT)?;
        let store_host = take_host(input, sys_flag & sys_flag::STORE_HOST_V6 != 0)?;
        let reconsume_times = input.try_get_i32().map_err(|_| CUT)?;
        let prepared_transaction_offset = input.try_get_i64().map_err(|_| CUT)?;
        let body_length = input.try_get_i32().map_err(|_| CUT)?;
        let fixed_length = whole.saturating_sub(input.len());
        bytes.advance(fixed_length);
        let body = take(&mut bytes, body_length, "body")?;
        let texts = Texts::read(bytes, wide_topic)?;
        let message = StoredMessage {
            queue_id,
            flag,
            queue_offset,
            commit_log_offset,
            sys_flag,
            born_timestamp,
            born_host,
            store_timestamp,
            store_host,
            reconsume_times,
            prepared_transaction_offset,
            body,
            topic: String::new(),
            properties: String::new(),
        };
        Ok(Self { message, texts })
    }
}

/// Cuts the body of a pull reply into its messages.
///
/// A message that cannot be decoded is yielded as an error and the next one goes on behind it; only
/// a length that cannot be true ends the walk, since then nobody knows where the next one starts.
///
/// A message that is an inner batch is taken apart: its elements come with ascending offsets and
/// everything else from the message that held them (Java `PullAPIWrapper#processPullResult`).
///
/// Bodies are slices of the reply unless they were compressed. Each expanded body may have
/// [`MAX_DECOMPRESSED_LENGTH`](crate::compression::MAX_DECOMPRESSED_LENGTH) bytes; how many messages
/// are expanded is up to who walks.
#[derive(Debug)]
pub struct StoredMessages {
    rest: Bytes,
    topic: Arc<str>,
    /// The name of each message's broker, which is told of later.
    no_broker: Arc<str>,
    inner: Option<InnerBatch>,
}

impl StoredMessages {
    /// How many bytes a message has at least: without topic, body and properties, and with addresses
    /// of IPv4.
    pub const SMALLEST: usize = at::BODY + 3;

    /// The messages in `bytes`, one after the other.
    pub fn new(bytes: Bytes) -> Self {
        Self {
            rest: bytes,
            topic: Arc::default(),
            no_broker: Arc::default(),
            inner: None,
        }
    }

    /// Whether a message there has a compressed body, which takes its time to expand; seen without
    /// decoding any. Also `true` when a message is cut or has a length that cannot be.
    pub fn may_have_compressed(mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let size = bytes.get(..4).map(BigEndian::read_i32);
            let size = size.and_then(|size| usize::try_from(size).ok());
            let whole = size.and_then(|size| bytes.split_at_checked(size));
            let flag = whole.and_then(|(message, _)| message.get(at::SYS_FLAG..at::BORN_TIMESTAMP));
            let (Some((_, rest)), Some(flag)) = (whole, flag) else {
                return true;
            };
            if BigEndian::read_i32(flag) & sys_flag::COMPRESSED != 0 {
                return true;
            }
            bytes = rest;
        }
        false
    }

    fn read(&mut self, message: Bytes) -> Result<MessageExt, CodecError> {
        let size = message.len();
        let Parts { message, texts } = Parts::read(message)?;
        if self.topic.as_bytes() != texts.topic_bytes() {
            self.topic = texts.topic()?.into();
        }
        let properties = MessageProperties::received(texts.into_properties())?;
        message.expand(Arc::clone(&self.topic), properties, size)
    }
}

/// Where the fields of a message lie whose two addresses are of IPv4: the length, the magic and the
/// checksum come first.
mod at {
    pub(super) const MAGIC: usize = 4;
    pub(super) const QUEUE_ID: usize = 12;
    pub(super) const FLAG: usize = 16;
    pub(super) const QUEUE_OFFSET: usize = 20;
    pub(super) const COMMIT_LOG_OFFSET: usize = 28;
    pub(super) const SYS_FLAG: usize = 36;
    pub(super) const BORN_TIMESTAMP: usize = 40;
    pub(super) const BORN_HOST: usize = 48;
    pub(super) const STORE_TIMESTAMP: usize = 56;
    pub(super) const STORE_HOST: usize = 64;
    pub(super) const RECONSUME_TIMES: usize = 72;
    pub(super) const PREPARED_TRANSACTION_OFFSET: usize = 76;
    pub(super) const BODY_LENGTH: usize = 84;
    pub(super) const BODY: usize = 88;
}

/// What is done otherwise: expanding, and addresses of IPv6.
const NOT_PLAIN: i32 = sys_flag::COMPRESSED | sys_flag::BORN_HOST_V6 | sys_flag::STORE_HOST_V6;

impl StoredMessages {
    /// Reads a message as most are: nothing compressed, addresses of IPv4, and nothing wrong
    /// with it. `None` for all others, which [`Parts`] reads: field by field, with an error for what is
    /// wrong. What it takes is left in place, for a slice of `rest` that is made and dropped would be
    /// counted twice.
    fn read_plain(&mut self, size: usize) -> Option<MessageExt> {
        let message = self.rest.get(..size)?;
        let fixed: &[u8; at::BODY] = message.first_chunk()?;
        let int = |at: usize| Some(BigEndian::read_i32(fixed.get(at..at.checked_add(4)?)?));
        let long = |at: usize| Some(BigEndian::read_i64(fixed.get(at..at.checked_add(8)?)?));
        let host = |at: usize| {
            let ip = Ipv4Addr::from(int(at)? as u32);
            let port = u16::try_from(int(at.checked_add(4)?)?).ok()?;
            Some(SocketAddr::new(ip.into(), port))
        };
        let sys_flag = int(at::SYS_FLAG)?;
        if int(at::MAGIC)? as u32 != MAGIC_V1 || sys_flag & NOT_PLAIN != 0 {
            return None;
        }
        let body_end = usize::try_from(int(at::BODY_LENGTH)?)
            .ok()?
            .checked_add(at::BODY)?;
        let (topic_length, after) = message.get(body_end..)?.split_first()?;
        let (topic, after) = after.split_at_checked(usize::from(*topic_length))?;
        let (length, properties) = after.split_first_chunk()?;
        let length = usize::try_from(i16::from_be_bytes(*length)).ok()?;
        let properties = properties.get(..length)?;
        std::str::from_utf8(properties).ok()?;
        // The messages of a reply are of one topic, so they share its text.
        if topic != self.topic.as_bytes() {
            self.topic = std::str::from_utf8(topic).ok()?.into();
        }
        let properties = MessageProperties::of_text(self.rest.slice_ref(properties));
        let stored_at = OffsetMessageId {
            store_host: host(at::STORE_HOST)?,
            commit_log_offset: long(at::COMMIT_LOG_OFFSET)?,
        };
        Some(MessageExt {
            message: Message::received(
                Arc::clone(&self.topic),
                int(at::FLAG)?,
                properties,
                self.rest.slice(at::BODY..body_end),
            ),
            broker_name: Arc::clone(&self.no_broker),
            queue_id: int(at::QUEUE_ID)?,
            store_size: size,
            queue_offset: long(at::QUEUE_OFFSET)?,
            sys_flag,
            born_timestamp: long(at::BORN_TIMESTAMP)?,
            born_host: host(at::BORN_HOST)?,
            store_timestamp: long(at::STORE_TIMESTAMP)?,
            stored_at: stored_at.into(),
            reconsume_times: int(at::RECONSUME_TIMES)?,
            prepared_transaction_offset: long(at::PREPARED_TRANSACTION_OFFSET)?,
        })
    }
}

impl Iterator for StoredMessages {
    type Item = Result<MessageExt, CodecError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(element) = self.inner.as_mut().and_then(InnerBatch::next) {
                return Some(element);
            }
            self.inner = None;
            match self.next_stored()? {
                Ok(message) if message.sys_flag & UNWRAPPED == UNWRAPPED => {
                    self.inner = Some(InnerBatch::new(message));
                }
                other => return Some(other),
            }
        }
    }
}

/// The flags of a message that is to be taken apart.
const UNWRAPPED: i32 = sys_flag::INNER_BATCH | sys_flag::NEED_UNWRAP;

/// A message whose body is a batch, and the elements that have not been taken out yet.
#[derive(Debug)]
struct InnerBatch {
    outer: MessageExt,
    elements: BatchElements,
}

impl InnerBatch {
    fn new(mut outer: MessageExt) -> Self {
        let batch = std::mem::take(&mut outer.message.body);
        Self {
            outer,
            elements: BatchElements::new(batch),
        }
    }

    fn next(&mut self) -> Option<Result<MessageExt, CodecError>> {
        let element = match self.elements.next_received()? {
            Ok(element) => element,
            Err(error) => return Some(Err(error)),
        };
        let mut message = self.outer.clone();
        self.outer.queue_offset = self.outer.queue_offset.saturating_add(1);
        message.message.flag = element.flag;
        message.message.properties = element.properties;
        message.message.body = element.body;
        Some(Ok(message))
    }
}

impl StoredMessages {
    fn next_stored(&mut self) -> Option<Result<MessageExt, CodecError>> {
        const LENGTH_AND_MAGIC: usize = 8;
        if self.rest.is_empty() {
            return None;
        }
        let Some(size) = self.rest.get(..4).map(BigEndian::read_i32) else {
            self.rest.clear();
            return Some(Err(CodecError::Truncated {
                what: "stored message",
            }));
        };
        match usize::try_from(size) {
            Ok(length) if length >= LENGTH_AND_MAGIC && length <= self.rest.len() => {
                if let Some(read) = self.read_plain(length) {
                    self.rest.advance(length);
                    return Some(Ok(read));
                }
                let message = self.rest.split_to(length);
                Some(self.read(message))
            }
            _ => {
                self.rest.clear();
                Some(Err(CodecError::BadLength {
                    what: "stored message",
                    length: size.into(),
                }))
            }
        }
    }
}

/// The end of a message: its topic, then its properties, each behind its length.
struct Texts {
    /// From the topic's first byte to the last one of the properties.
    bytes: Bytes,
    topic_length: usize,
    /// Where the properties begin, behind their length.
    properties_at: usize,
}

impl Texts {
    fn read(mut bytes: Bytes, wide_topic: bool) -> Result<Self, CodecError> {
        const CUT: CodecError = CodecError::Truncated {
            what: "stored message",
        };
        let topic_length = if wide_topic {
            i32::from(bytes.try_get_i16().map_err(|_| CUT)?)
        } else {
            i32::from(bytes.try_get_u8().map_err(|_| CUT)?)
        };
        let (topic_length, mut rest) = split(&bytes, topic_length, "topic")?;
        let properties_length = i32::from(rest.try_get_i16().map_err(|_| CUT)?);
        let properties_at = bytes.len().saturating_sub(rest.len());
        let (properties_length, _) = split(rest, properties_length, "properties")?;
        bytes.truncate(properties_at.saturating_add(properties_length));
        Ok(Self {
            bytes,
            topic_length,
            properties_at,
        })
    }

    fn topic_bytes(&self) -> &[u8] {
        self.bytes.get(..self.topic_length).unwrap_or_default()
    }

    fn topic(&self) -> Result<&str, CodecError> {
        std::str::from_utf8(self.topic_bytes()).map_err(|_| CodecError::BadUtf8 { what: "topic" })
    }

    fn into_properties(mut self) -> Bytes {
        self.bytes.advance(self.properties_at);
        self.bytes
    }
}

/// A length that was claimed, if so many bytes are there, and what follows them.
fn split<'a>(
    input: &'a [u8],
    length: i32,
    what: &'static str,
) -> Result<(usize, &'a [u8]), CodecError> {
    let wanted = usize::try_from(length).ok();
    wanted
        .and_then(|wanted| Some((wanted, input.get(wanted..)?)))
        .ok_or_else(|| CodecError::BadLength {
            what,
            length: length.into(),
        })
}

fn body_checksum(body: &[u8]) -> u32 {
    crc32fast::hash(body) & 0x7FFF_FFFF
}

fn put_host(out: &mut BytesMut, host: SocketAddr) {
    match host.ip() {
        IpAddr::V4(ip) => out.put_slice(&ip.octets()),
        IpAddr::V6(ip) => out.put_slice(&ip.octets()),
    }
    out.put_u32(u32::from(host.port()));
}

fn take_host(input: &mut &[u8], v6: bool) -> Result<SocketAddr, CodecError> {
    const CUT: CodecError = CodecError::Truncated {
        what: "host address",
    };
    let ip: IpAddr = if v6 {
        Ipv6Addr::from(input.try_get_u128().map_err(|_| CUT)?).into()
    } else {
        Ipv4Addr::from(input.try_get_u32().map_err(|_| CUT)?).into()
    };
    let port = input.try_get_i32().map_err(|_| CUT)?;
    let port = u16::try_from(port).map_err(|_| CodecError::BadLength {
        what: "port",
        length: port.into(),
    })?;
    Ok(SocketAddr::new(ip, port))
}

pub(crate) fn take(
    input: &mut Bytes,
    length: i32,
    what: &'static str,
) -> Result<Bytes, CodecError> {
    match usize::try_from(length) {
        Ok(wanted) if wanted <= input.len() => Ok(input.split_to(wanted)),
        _ => Err(CodecError::BadLength {
            what,
            length: length.into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(sys_flag: i32) -> StoredMessage {
        StoredMessage {
            queue_id: 1,
            flag: -1,
            queue_offset: -1,
            commit_log_offset: -1,
            sys_flag,
            born_timestamp: -1,
            born_host: ([127, 0, 0, 1], 1).into(),
            store_timestamp: -1,
            store_host: ([127, 0, 0, 1], 1).into(),
            reconsume_times: -1,
            prepared_transaction_offset: -1,
            body: Bytes::from_static(b"body"),
            topic: "t".to_owned(),
            properties: String::new(),
        }
    }

    #[test]
    fn compressed_bodies_are_seen_without_decoding() {
        let encoded = |flags: &[i32]| {
            let mut out = BytesMut::new();
            for flag in flags {
                stored(*flag).encode(&mut out).unwrap();
            }
            out
        };
        let others = !sys_flag::COMPRESSED;
        for (flags, expected) in [
            (&[][..], false),
            (&[0, others, 0], false),
            (&[0, sys_flag::COMPRESSED], true),
            (&[sys_flag::COMPRESSED | others, 0], true),
        ] {
            let bytes = encoded(flags);
            assert_eq!(
                StoredMessages::may_have_compressed(&bytes),
                expected,
                "{flags:?}"
            );
        }
        let whole = encoded(&[0, 0]);
        let half = whole.len() / 2;
        for length in 1..whole.len() {
            let cut = whole.get(..length).unwrap();
            assert_eq!(
                StoredMessages::may_have_compressed(cut),
                length != half,
                "{length}"
            );
        }
        for size in [0, -1, i32::MAX, 36] {
            let mut bytes = whole.clone();
            bytes.get_mut(..4).unwrap().put_i32(size);
            assert!(StoredMessages::may_have_compressed(&bytes), "{size}");
        }
    }

    /// Whatever is changed of a message, the short way reads it as the long one does, or not at all.
    #[test]
    fn the_short_way_reads_what_the_long_one_reads() {
        let mut message = stored(sys_flag::TRANSACTION_PREPARED);
        message.topic = "topic".to_owned();
        message.properties = "KEYS\u{1}ключ\u{2}WAIT\u{1}true\u{2}".to_owned();
        let mut whole = BytesMut::new();
        message.encode(&mut whole).unwrap();
        let length = whole.len();
        let mut random = 7_u64;
        let mut next = |bound: usize| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) as usize % bound
        };
        let mut read = 0;
        for round in 0..20_000 {
            let mut bytes = whole.clone();
            for _ in 0..round % 4 {
                let at = 4 + next(length - 4);
                *bytes.get_mut(at).unwrap() = next(256) as u8;
            }
            if round % 5 == 0 {
                bytes.put_slice(b"more");
            }
            if round % 7 == 0 {
                bytes.truncate(length - next(length / 2));
            }
            let size = bytes.len() as u32;
            bytes.get_mut(..4).unwrap().put_u32(size);
            let bytes = bytes.freeze();
            let mut messages = StoredMessages::new(bytes.clone());
            let Some(plain) = messages.read_plain(bytes.len()) else {
                continue;
            };
            read += 1;
            let Parts { message, texts } = Parts::read(bytes).unwrap();
            let topic = texts.topic().unwrap().into();
            let properties = MessageProperties::received(texts.into_properties()).unwrap();
            let long = message.expand(topic, properties, size as usize);
            assert_eq!(Ok(plain), long);
        }
        assert!(read > 5_000, "{read}");
    }
}
