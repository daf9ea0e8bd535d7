use bytes::BytesMut;

use super::plain_bytes::{padded, plain_bytes};
use crate::RemotingCommand;

/// What a header takes beside its fields and its remark, and each field beside its texts.
const AROUND_FIELDS: usize = 192;
const AROUND_A_FIELD: usize = 6;

/// Room for a header, so that one allocation does for the frame as a rule: the separators inside of
/// properties are written with six bytes each.
pub(crate) fn expected_length(command: &RemotingCommand) -> usize {
    let fields = &command.ext_fields;
    let text = fields.text_length();
    let around = fields.len().saturating_mul(AROUND_A_FIELD);
    let remark = command.remark.as_ref().map_or(0, String::len);
    AROUND_FIELDS
        .saturating_add(text)
        .saturating_add(text / 2)
        .saturating_add(around)
        .saturating_add(remark)
}

/// Writes what a JSON library would write of the fields in this order; written by hand, since it is
/// most of the work of a small request.
pub(crate) fn encode(command: &RemotingCommand, out: &mut BytesMut) {
    write_into(out, expected_length(command), |room| header(room, command));
}

/// What is there to be written to. Written is by words of a fixed size, which need no call each; each
/// function gives back what is left, or `None` when that did not do.
type Room<'a> = &'a mut [u8];

/// Makes the buffer longer by some room, and then as long as what was written there; with ever more
/// room until it does.
fn write_into(out: &mut BytesMut, mut room: usize, write: impl Fn(Room<'_>) -> Option<Room<'_>>) {
    let start = out.len();
    loop {
        out.resize(start.saturating_add(room), 0);
        let left = write(out.get_mut(start..).unwrap_or_default()).map(|left| left.len());
        if let Some(left) = left {
            let end = out.len().saturating_sub(left);
            return out.truncate(end);
        }
        room = room.saturating_mul(2).max(64);
    }
}

fn header<'a>(mut room: Room<'a>, command: &RemotingCommand) -> Option<Room<'a>> {
    room = put_all(room, br#"{"code":"#)?;
    room = put_number(room, command.code)?;
    let mut fields = command.ext_fields.iter_bytes();
    if let Some((name, value)) = fields.next() {
        room = put_all(room, br#","extFields":{""#)?;
        room = put_field(room, name, value)?;
        for (name, value) in fields {
            room = put_all(room, br#"",""#)?;
            room = put_field(room, name, value)?;
        }
        room = put_all(room, br#""}"#)?;
    }
    room = put_all(room, br#","flag":"#)?;
    room = put_number(room, command.flag)?;
    room = put_all(room, br#","language":""#)?;
    room = put_text(room, command.language.name().as_bytes())?;
    room = put_all(room, br#"","opaque":"#)?;
    room = put_number(room, command.opaque)?;
    if let Some(remark) = &command.remark {
        room = put_all(room, br#","remark":""#)?;
        room = put_text(room, remark.as_bytes())?;
        room = put_all(room, br#"""#)?;
    }
    room = put_all(room, br#","serializeTypeCurrentRPC":"JSON","version":"#)?;
    room = put_number(room, command.version)?;
    put_all(room, b"}")
}

/// A field without its outer quotes.
#[inline]
fn put_field<'a>(room: Room<'a>, name: &[u8], value: &[u8]) -> Option<Room<'a>> {
    let room = put_text(room, name)?;
    let room = put_all(room, br#"":""#)?;
    put_text(room, value)
}

/// Writes the first `length` of some bytes. The others may be written too, and count as room.
#[inline]
fn put<const N: usize>(room: Room<'_>, bytes: [u8; N], length: usize) -> Option<Room<'_>> {
    *room.first_chunk_mut()? = bytes;
    room.get_mut(length..)
}

#[inline]
fn put_all<'a, const N: usize>(room: Room<'a>, bytes: &[u8; N]) -> Option<Room<'a>> {
    put(room, *bytes, N)
}

fn put_number(room: Room<'_>, number: i32) -> Option<Room<'_>> {
    if let Ok(digit @ 0..=9) = u8::try_from(number) {
        return put_all(room, &[b'0'.wrapping_add(digit)]);
    }
    put_text(room, itoa::Buffer::new().format(number).as_bytes())
}

/// The inside of a string.
#[inline]
fn put_text<'a>(room: Room<'a>, text: &[u8]) -> Option<Room<'a>> {
    // As many names and values are.
    if let [byte @ (b'a'..=b'z' | b'0'..=b'9')] = text {
        return put_all(room, &[*byte]);
    }
    put_longer_text(room, text)
}

fn put_longer_text<'a>(mut room: Room<'a>, mut rest: &[u8]) -> Option<Room<'a>> {
    loop {
        let (word, length) = match rest.first_chunk() {
            Some(bytes) => (u64::from_le_bytes(*bytes), 8),
            None => (padded(rest), rest.len()),
        };
        let plain = plain_bytes(word).min(length);
        room = put(room, word.to_le_bytes(), plain)?;
        let Some((special, after)) = rest.get(plain..)?.split_first() else {
            return Some(room);
        };
        if plain == 8 {
            rest = rest.get(8..)?;
        } else {
            room = put_escape(room, *special)?;
            rest = after;
        }
    }
}

/// A byte that has to be written as an escape.
fn put_escape(room: Room<'_>, special: u8) -> Option<Room<'_>> {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| HEX.get(usize::from(value)).copied().unwrap_or(b'0');
    let letter = match special {
        b'"' | b'\\' => special,
        0x08 => b'b',
        0x09 => b't',
        0x0A => b'n',
        0x0C => b'f',
        0x0D => b'r',
        control => {
            let (high, low) = (digit(control >> 4), digit(control & 0xF));
            return put(room, [b'\\', b'u', b'0', b'0', high, low, 0, 0], 6);
        }
    };
    put_all(room, &[b'\\', letter])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the length, the place of what is special, and the room there was at first.
    #[test]
    fn texts_are_written_as_a_json_library_writes_them() {
        let controls: String = (0..0x21).map(char::from).collect();
        for text in [
            "",
            "p",
            "plain",
            "\"",
            "\\",
            "a\"b\\c/d",
            "\u{1}a\u{2}\u{2}",
            "\u{7F}\u{80}é漢\u{1F600}\u{2028}",
            controls.as_str(),
        ] {
            for before in 0..18 {
                for after in [0, 1, 6, 7, 8, 9, 17] {
                    let text = format!("{}{text}{}", "é".repeat(before), "z".repeat(after));
                    for room in [0, 1, 1000] {
                        let mut out = BytesMut::from(&b"\""[..]);
                        write_into(&mut out, room, |room| {
                            put_all(put_text(room, text.as_bytes())?, b"\"")
                        });
                        let expected = serde_json::to_string(&text).unwrap();
                        assert_eq!(std::str::from_utf8(&out).unwrap(), expected);
                    }
                }
            }
        }
    }
}
