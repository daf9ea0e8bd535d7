//! The binary form of a command's header (Java `RocketMQSerializable`).

use bytes::{Buf, BufMut, BytesMut};

use crate::ext_fields::ReceivedFields;
use crate::{CodecError, LanguageCode, RemotingCommand};

/// Whether a code fits the two bytes that the form has for it.
pub(crate) const fn holds(code: i32) -> bool {
    code >= i16::MIN as i32 && code <= i16::MAX as i32
}

pub(crate) fn encode(command: &RemotingCommand, out: &mut BytesMut) -> Result<(), CodecError> {
    out.put_i16(narrow("code", command.code)?);
    out.put_u8(command.language.code());
    out.put_i16(narrow("version", command.version)?);
    out.put_i32(command.opaque);
    out.put_i32(command.flag);
    put_long_text(out, command.remark.as_deref().unwrap_or_default())?;
    let length_at = out.len();
    out.put_i32(0);
    for (name, value) in command.ext_fields.iter() {
        // With ACL a server signs the word "null" for an empty value, so it is left out.
        if name.is_empty() || value.is_empty() {
            continue;
        }
        let length = i16::try_from(name.len()).map_err(|_| CodecError::Unencodable {
            what: "header field name",
            detail: format!("{} bytes", name.len()),
        })?;
        out.put_i16(length);
        out.put_slice(name.as_bytes());
        put_long_text(out, value)?;
    }
    let block = out.len().saturating_sub(length_at).saturating_sub(4);
    let block = i32::try_from(block).map_err(|_| CodecError::Unencodable {
        what: "header fields",
        detail: format!("{block} bytes"),
    })?;
    if let Some(mut place) = out.get_mut(length_at..) {
        place.put_i32(block);
    }
    Ok(())
}

fn narrow(what: &'static str, value: i32) -> Result<i16, CodecError> {
    i16::try_from(value).map_err(|_| CodecError::Unencodable {
        what,
        detail: format!("{value} does not fit two bytes"),
    })
}

fn put_long_text(out: &mut BytesMut, text: &str) -> Result<(), CodecError> {
    let length = i32::try_from(text.len()).map_err(|_| CodecError::Unencodable {
        what: "header text",
        detail: format!("{} bytes", text.len()),
    })?;
    out.put_i32(length);
    out.put_slice(text.as_bytes());
    Ok(())
}

pub(crate) fn decode(mut header: &[u8]) -> Result<RemotingCommand, CodecError> {
    const CUT: CodecError = CodecError::Truncated {
        what: "binary header",
    };
    let input = &mut header;
    let code = input.try_get_i16().map_err(|_| CUT)?;
    let mut command = RemotingCommand::request_without_header(i32::from(code));
    command.language = LanguageCode::from_code(input.try_get_u8().map_err(|_| CUT)?);
    command.version = i32::from(input.try_get_i16().map_err(|_| CUT)?);
    command.opaque = input.try_get_i32().map_err(|_| CUT)?;
    command.flag = input.try_get_i32().map_err(|_| CUT)?;
    command.remark = take_long_text(input, "remark")?.map(str::to_owned);
    let length = input.try_get_i32().map_err(|_| CUT)?;
    let mut block = take(input, length, "header fields")?;
    let mut fields = ReceivedFields::default();
    while !block.is_empty() {
        let length = block.try_get_i16().map_err(|_| CUT)?;
        let name = text(
            take(&mut block, i32::from(length), "field name")?,
            "field name",
        )?;
        let value = take_long_text(&mut block, "field value")?;
        if let (false, Some(value)) = (name.is_empty(), value) {
            fields.push(name, value);
        }
    }
    command.ext_fields = fields.finish();
    Ok(command)
}

fn take<'a>(input: &mut &'a [u8], length: i32, what: &'static str) -> Result<&'a [u8], CodecError> {
    let bad = CodecError::BadLength {
        what,
        length: i64::from(length),
    };
    let Ok(length) = usize::try_from(length) else {
        return Err(bad);
    };
    let Some((taken, rest)) = input.split_at_checked(length) else {
        return Err(bad);
    };
    *input = rest;
    Ok(taken)
}

/// Java reads a text of no length as null.
fn take_long_text<'a>(
    input: &mut &'a [u8],
    what: &'static str,
) -> Result<Option<&'a str>, CodecError> {
    let length = input
        .try_get_i32()
        .map_err(|_| CodecError::Truncated { what })?;
    let bytes = take(input, length, what)?;
    if bytes.is_empty() {
        Ok(None)
    } else {
        text(bytes, what).map(Some)
    }
}

fn text<'a>(bytes: &'a [u8], what: &'static str) -> Result<&'a str, CodecError> {
    std::str::from_utf8(bytes).map_err(|_| CodecError::BadUtf8 { what })
}
