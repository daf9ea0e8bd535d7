/// How many of a word's bytes, from the first on, stand for themselves in a JSON string: eight, or
/// the place of the first quote, backslash or control character. The first byte is the lowest.
///
/// Each test marks the high bit of the bytes that are meant. A borrow may mark bytes above such a
/// one too, but never any below it, and only the lowest mark counts.
pub(super) const fn plain_bytes(word: u64) -> usize {
    let controls = word.wrapping_sub(each(0x20)) & !word;
    let quotes = zero_bytes(word ^ each(b'"'));
    let backslashes = zero_bytes(word ^ each(b'\\'));
    let marks = (controls | quotes | backslashes) & each(0x80);
    (marks.trailing_zeros() / 8) as usize
}

/// How many of a word's bytes come before its first quote; eight if there is none.
pub(super) const fn bytes_before_quote(word: u64) -> usize {
    let marks = zero_bytes(word ^ each(b'"')) & each(0x80);
    (marks.trailing_zeros() / 8) as usize
}

const fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(each(0x01)) & !word
}

const fn each(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// The word of fewer than eight bytes, filled up with blanks.
pub(super) fn padded(bytes: &[u8]) -> u64 {
    let length = bytes.len() as u32;
    let at = |place: u32, word: u64| word.checked_shl(place.wrapping_mul(8)).unwrap_or(0);
    let fours = bytes.first_chunk().zip(bytes.last_chunk());
    let twos = bytes.first_chunk().zip(bytes.last_chunk());
    // First and last half lie over each other, and are equal there.
    let word = if let Some((first, last)) = fours {
        let [first, last] = [first, last].map(|half| u64::from(u32::from_le_bytes(*half)));
        first | at(length.wrapping_sub(4), last)
    } else if let Some((first, last)) = twos {
        let [first, last] = [first, last].map(|half| u64::from(u16::from_le_bytes(*half)));
        first | at(length.wrapping_sub(2), last)
    } else {
        bytes.first().copied().map_or(0, u64::from)
    };
    word | at(length, each(b' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_special_byte_is_found_among_all_others() {
        let is_special = |byte: u8| byte < 0x20 || matches!(byte, b'"' | b'\\');
        for first in 0..=255 {
            for other in [
                0x00, 0x1F, b' ', b'!', b'"', b'#', b'\\', b']', 0x7F, 0x80, 0xFF,
            ] {
                for at in 0..8 {
                    let mut bytes = [other; 8];
                    bytes[at] = first;
                    let expected = bytes.iter().position(|byte| is_special(*byte)).unwrap_or(8);
                    let found = plain_bytes(u64::from_le_bytes(bytes));
                    assert_eq!(found, expected, "{bytes:02x?}");
                    let expected = bytes.iter().position(|byte| *byte == b'"').unwrap_or(8);
                    let found = bytes_before_quote(u64::from_le_bytes(bytes));
                    assert_eq!(found, expected, "{bytes:02x?}");
                }
            }
        }
    }

    #[test]
    fn short_texts_are_filled_up_with_blanks() {
        for length in 0..=8 {
            let bytes = &b"\x00a\xFF\"\\ z\x1F"[..length];
            let mut expected = [b' '; 8];
            expected[..length].copy_from_slice(bytes);
            assert_eq!(padded(bytes).to_le_bytes(), expected, "{length} bytes");
        }
    }
}
