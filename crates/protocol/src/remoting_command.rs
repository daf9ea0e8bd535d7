use byteorder::{BigEndian, ByteOrder};
use bytes::{BufMut, Bytes, BytesMut};

use crate::header::CommandCustomHeader;
use crate::{CodecError, ExtFields, LanguageCode, header_json, header_rocketmq};

/// The version number that a 5.5.0 client sends (Java `MQVersion.Version.V5_5_0`).
///
/// Servers decide by it which JSON dialect a route is written in and whether newer request fields
/// are honoured.
pub const VERSION_5_5_0: i32 = 513;

const RESPONSE_BIT: i32 = 1;
const ONEWAY_BIT: i32 = 2;

/// The form of a command's header. The receiver looks at each frame: peers may mix them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SerializeType {
    /// JSON text, the default of Java clients and servers.
    #[default]
    Json,
    /// The compact binary form, Java `ROCKETMQ`; holds codes up to 32,767 only.
    RocketMq,
}

impl SerializeType {
    /// The byte in the frame.
    pub const fn code(self) -> u8 {
        match self {
            Self::Json => 0,
            Self::RocketMq => 1,
        }
    }

    /// The form of a frame's type byte.
    ///
    /// # Errors
    /// [`CodecError::BadSerializeType`] for any byte but 0 and 1.
    pub const fn from_code(code: u8) -> Result<Self, CodecError> {
        match code {
            0 => Ok(Self::Json),
            1 => Ok(Self::RocketMq),
            _ => Err(CodecError::BadSerializeType { code }),
        }
    }
}

/// One request or response (Java `RemotingCommand`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemotingCommand {
    /// Request code or response code.
    pub code: i32,
    /// The sender's language.
    pub language: LanguageCode,
    /// The sender's version ordinal.
    pub version: i32,
    /// Correlates a response with its request; chosen by the requester.
    pub opaque: i32,
    /// Bit 0: response. Bit 1: one-way, no answer wanted.
    pub flag: i32,
    /// Error text or free text. With code 0 it carries no meaning.
    pub remark: Option<String>,
    /// The custom header.
    pub ext_fields: ExtFields,
    /// The body, `None` when there are no bytes.
    pub body: Option<Bytes>,
    /// The header form in which the command arrived, or shall be written.
    pub serialize_type: SerializeType,
}

impl RemotingCommand {
    /// A request with a custom header. The opaque is set by whoever sends it.
    pub fn request(code: i32, header: &impl CommandCustomHeader) -> Self {
        let mut command = Self::request_without_header(code);
        header.encode(&mut command.ext_fields);
        command
    }

    /// A request without header fields.
    pub const fn request_without_header(code: i32) -> Self {
        Self {
            code,
            language: LanguageCode::Rust,
            version: VERSION_5_5_0,
            opaque: 0,
            flag: 0,
            remark: None,
            ext_fields: ExtFields::new(),
            body: None,
            serialize_type: SerializeType::Json,
        }
    }

    /// A response to a request: same opaque, response bit set, no fields and no body. It has the
    /// JSON form and this crate's language; Java servers say `JAVA` and use their own form.
    pub fn response(request: &Self, code: i32, remark: Option<String>) -> Self {
        Self {
            opaque: request.opaque,
            flag: RESPONSE_BIT,
            remark,
            ..Self::request_without_header(code)
        }
    }

    /// The same command with a body; an empty one is no body.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        self.body = if body.is_empty() { None } else { Some(body) };
        self
    }

    /// The same command with the fields of a header added.
    #[must_use]
    pub fn with_header(mut self, header: &impl CommandCustomHeader) -> Self {
        header.encode(&mut self.ext_fields);
        self
    }

    /// Whether this is a response.
    pub const fn is_response(&self) -> bool {
        self.flag & RESPONSE_BIT != 0
    }

    /// Whether the sender wants no answer.
    pub const fn is_oneway(&self) -> bool {
        self.flag & ONEWAY_BIT != 0
    }

    /// Marks the command as one that wants no answer.
    pub const fn mark_oneway(&mut self) {
        self.flag |= ONEWAY_BIT;
    }

    /// Reads the custom header.
    ///
    /// # Errors
    /// A required field that is missing, or a value of the wrong form.
    pub fn decode_header<H: CommandCustomHeader>(&self) -> Result<H, CodecError> {
        H::decode(&self.ext_fields)
    }

    /// The body's bytes; empty when there is no body.
    pub fn body_bytes(&self) -> &[u8] {
        self.body.as_deref().unwrap_or_default()
    }

    /// Appends the command as one frame.
    ///
    /// A code that does not fit the binary header is written as JSON.
    ///
    /// # Errors
    /// [`CodecError::Unencodable`] when header or frame exceed what their length fields can hold;
    /// `out` is then as it was.
    pub fn encode(&self, out: &mut BytesMut) -> Result<(), CodecError> {
        let start = out.len();
        let result = self.encode_at(start, out);
        if result.is_err() {
            out.truncate(start);
        }
        result
    }

    fn encode_at(&self, start: usize, out: &mut BytesMut) -> Result<(), CodecError> {
        let expected = header_json::expected_length(self).saturating_add(self.body_bytes().len());
        out.reserve(expected.saturating_add(8));
        out.put_u64(0);
        let serialize_type = if header_rocketmq::holds(self.code) {
            self.serialize_type
        } else {
            SerializeType::Json
        };
        let header_start = out.len();
        match serialize_type {
            SerializeType::Json => header_json::encode(self, out),
            SerializeType::RocketMq => header_rocketmq::encode(self, out)?,
        }
        let header_length = out.len().saturating_sub(header_start);
        let body = self.body_bytes();
        let total = header_length.saturating_add(body.len()).saturating_add(4);
        if header_length > 0x00FF_FFFF || total > i32::MAX as usize {
            return Err(CodecError::Unencodable {
                what: "frame",
                detail: format!("header of {header_length} bytes, {total} bytes in all"),
            });
        }
        out.put_slice(body);
        let mark = u32::from(serialize_type.code()) << 24 | header_length as u32;
        if let Some(prefix) = out.get_mut(start..start.saturating_add(8)) {
            let (length, header) = prefix.split_at_mut(4);
            BigEndian::write_u32(length, total as u32);
            BigEndian::write_u32(header, mark);
        }
        Ok(())
    }

    /// Decodes the content of one frame: what follows the length field.
    ///
    /// # Errors
    /// A header longer than the frame, or a header that cannot be read.
    pub fn decode(mut content: Bytes) -> Result<Self, CodecError> {
        let Some(mark) = content.get(..4).map(BigEndian::read_u32) else {
            return Err(CodecError::Truncated { what: "frame" });
        };
        let serialize_type = SerializeType::from_code((mark >> 24) as u8)?;
        let header_length = (mark & 0x00FF_FFFF) as usize;
        let body_start = header_length.saturating_add(4);
        if body_start > content.len() {
            return Err(CodecError::BadLength {
                what: "header",
                length: header_length as i64,
            });
        }
        let body = content.split_off(body_start);
        let header = content.get(4..).unwrap_or_default();
        let mut command = match serialize_type {
            SerializeType::Json => header_json::decode(header)?,
            SerializeType::RocketMq => header_rocketmq::decode(header)?,
        };
        command.serialize_type = serialize_type;
        command.body = if body.is_empty() { None } else { Some(body) };
        Ok(command)
    }
}
