//! Several messages in one body (Java `MessageDecoder#encodeMessages`).

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::message_codec::take;
use crate::message_properties::MessageProperties;
use crate::{CodecError, Message, Properties, properties};

/// What surrounds the body and the properties of an element.
const SURROUNDINGS: usize = 22;

/// Encodes messages as the body of a SEND_BATCH_MESSAGE (320). Topics do not travel with it.
///
/// # Errors
/// [`CodecError::Unencodable`] when a body, the properties of a message or the whole exceed their
/// length fields.
pub fn encode_batch(messages: &[Message]) -> Result<Bytes, CodecError> {
    let mut batch = BatchEncoder::default();
    for message in messages {
        batch.push(message, &[])?;
    }
    Ok(batch.finish())
}

/// [`encode_batch`] one message after the other.
#[derive(Debug, Default)]
pub struct BatchEncoder {
    out: BytesMut,
    /// The properties of one message, in one place for all.
    properties: String,
}

impl BatchEncoder {
    /// With room for so many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self {
            out: BytesMut::with_capacity(bytes),
            properties: String::new(),
        }
    }

    /// Adds a message, some of its properties changed: see
    /// [`encode_properties_with`](Message::encode_properties_with).
    ///
    /// # Errors
    /// As [`encode_batch`]; the batch is then as it was.
    pub fn push(&mut self, message: &Message, changes: &[(&str, &str)]) -> Result<(), CodecError> {
        let Self { out, properties } = self;
        properties.clear();
        message.properties.write_with(changes, properties);
        properties::check_length(properties)?;
        let size = SURROUNDINGS
            .checked_add(message.body().len())
            .and_then(|size| size.checked_add(properties.len()));
        let size = size
            .and_then(|size| i32::try_from(size).ok())
            .filter(|_| out.len() <= i32::MAX as usize)
            .ok_or_else(|| CodecError::Unencodable {
                what: "batch",
                detail: format!("a body of {} bytes", message.body().len()),
            })?;
        const NEITHER_MAGIC_NOR_CHECKSUM: u64 = 0;
        out.reserve(size as usize);
        out.put_i32(size);
        out.put_u64(NEITHER_MAGIC_NOR_CHECKSUM);
        out.put_i32(message.flag());
        out.put_u32(message.body().len() as u32);
        out.put_slice(message.body());
        out.put_u16(properties.len() as u16);
        out.put_slice(properties.as_bytes());
        Ok(())
    }

    /// The batch's body.
    pub fn finish(self) -> Bytes {
        self.out.freeze()
    }
}

/// One message of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchElement {
    /// The user's flag.
    pub flag: i32,
    /// The body, a slice of the batch.
    pub body: Bytes,
    /// The properties.
    pub properties: Properties,
}

/// Takes a batch apart.
///
/// Ends after the first element that cannot be read: nobody knows where the next one starts.
#[derive(Debug)]
pub struct BatchElements {
    rest: Bytes,
}

impl BatchElements {
    /// The elements of a batch's body.
    pub const fn new(batch: Bytes) -> Self {
        Self { rest: batch }
    }

    fn read(&mut self) -> Result<ReceivedElement, CodecError> {
        const CUT: CodecError = CodecError::Truncated {
            what: "batch element",
        };
        let size = self.rest.try_get_i32().map_err(|_| CUT)?;
        let bad_size = || CodecError::BadLength {
            what: "batch element",
            length: size.into(),
        };
        let mut element = take(&mut self.rest, size.saturating_sub(4), "batch element")?;
        let input = &mut element;
        let _magic = input.try_get_i32().map_err(|_| CUT)?;
        let _checksum = input.try_get_i32().map_err(|_| CUT)?;
        let flag = input.try_get_i32().map_err(|_| CUT)?;
        let body_length = input.try_get_i32().map_err(|_| CUT)?;
        let body = take(input, body_length, "body")?;
        let properties_length = input.try_get_i16().map_err(|_| CUT)?;
        let properties = take(input, properties_length.into(), "properties")?;
        if !input.is_empty() {
            return Err(bad_size());
        }
        Ok(ReceivedElement {
            flag,
            body,
            properties: MessageProperties::received(properties)?,
        })
    }

    /// The next element, whose properties are not a map yet.
    pub(crate) fn next_received(&mut self) -> Option<Result<ReceivedElement, CodecError>> {
        if self.rest.is_empty() {
            return None;
        }
        let element = self.read();
        if element.is_err() {
            self.rest.clear();
        }
        Some(element)
    }
}

/// [`BatchElement`] as it was received.
pub(crate) struct ReceivedElement {
    pub(crate) flag: i32,
    pub(crate) body: Bytes,
    pub(crate) properties: MessageProperties,
}

impl From<ReceivedElement> for BatchElement {
    fn from(element: ReceivedElement) -> Self {
        Self {
            flag: element.flag,
            body: element.body,
            properties: element.properties.into_map(),
        }
    }
}

impl Iterator for BatchElements {
    type Item = Result<BatchElement, CodecError>;

    fn next(&mut self) -> Option<Self::Item> {
        let element = self.next_received()?;
        Some(element.map(Into::into))
    }
}
