//! The order of Java's strings, which members of a group and signers of requests must share.

use std::cmp::Ordering;

/// Compares text as Java does, by UTF-16 code units.
///
/// Differs from the order of UTF-8 bytes only where a character beyond the basic plane meets one
/// from U+E000 on.
pub fn compare_utf16(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    match first_difference(a, b) {
        Some((a, b)) => rank(a).cmp(&rank(b)),
        None => a.len().cmp(&b.len()),
    }
}

/// Sorts text as [`compare_utf16`] does, faster than by it when there is much.
pub fn sort_utf16<T: AsRef<str>>(texts: &mut [T]) {
    let by_text = |a: &T, b: &T| compare_utf16(a.as_ref(), b.as_ref());
    if texts.len() < WORTH_KEYS || u32::try_from(texts.len()).is_err() {
        return texts.sort_unstable_by(by_text);
    }
    let from = shared_prefix(texts, AsRef::as_ref);
    let mut keys: Vec<u128> = texts
        .iter()
        .map(|text| key::<KEY>(text.as_ref(), from))
        .zip(0_u32..)
        .map(|(key, place)| with_place(key, place))
        .collect();
    keys.sort_unstable();
    for alike in keys.chunk_by_mut(|a, b| a >> u32::BITS == b >> u32::BITS) {
        alike.sort_unstable_by(|a, b| match (texts.get(place(*a)), texts.get(place(*b))) {
            (Some(a), Some(b)) => by_text(a, b),
            _ => Ordering::Equal,
        });
    }
    arrange_by_places(texts, keys);
}

/// How many bytes of a text fit into a number beside its place.
const KEY: usize = size_of::<u128>() - size_of::<u32>();

/// A number that is in order as its key is; equal keys are in the order of their places.
fn with_place(key: [u8; KEY], place: u32) -> u128 {
    let mut bytes = [0; size_of::<u128>()];
    let (head, tail) = bytes.split_at_mut(KEY);
    head.copy_from_slice(&key);
    tail.copy_from_slice(&place.to_be_bytes());
    u128::from_be_bytes(bytes)
}

/// The place that is the lowest part of a number.
fn place(number: u128) -> usize {
    number as u32 as usize
}

/// Puts items into the order of numbers, each of which has the place of its item as its lowest part.
pub(crate) fn arrange_by_places<T>(items: &mut [T], numbers: Vec<u128>) {
    arrange(items, numbers.into_iter().map(place).collect());
}

/// How many bytes are compared at once.
const STEP: usize = size_of::<u64>();

/// From how many on keys are worth their making.
pub(crate) const WORTH_KEYS: usize = 32;

/// How many bytes the texts of all items begin with in common.
///
/// Goes through them once for each eight bytes, which takes less than a comparison of each text.
pub(crate) fn shared_prefix<T>(items: &[T], text: impl Fn(&T) -> &str) -> usize {
    let Some(first) = items.first().map(|item| text(item).as_bytes()) else {
        return 0;
    };
    let shortest = items.iter().map(|item| text(item).len()).min().unwrap_or(0);
    let mut shared = 0_usize;
    for own in first.get(..shortest).unwrap_or_default().chunks(STEP) {
        let range = shared..shared.saturating_add(own.len());
        let own = padded(own);
        let others = items
            .iter()
            .filter_map(|item| text(item).as_bytes().get(range.clone()));
        let differences = others.fold(0, |all, other| all | (padded(other) ^ own));
        if differences != 0 {
            return shared.saturating_add(differences.trailing_zeros() as usize / 8);
        }
        shared = range.end;
    }
    shared
}

/// Eight bytes, or fewer and zeros, as a number; the first one lowest.
fn padded(bytes: &[u8]) -> u64 {
    match bytes.try_into() {
        Ok(bytes) => u64::from_le_bytes(bytes),
        Err(_) => (bytes.iter().rev()).fold(0, |number, byte| number << 8 | u64::from(*byte)),
    }
}

/// The first bytes of a text from `from` on, which compare as [`compare_utf16`] does; equal ones say
/// nothing, for a text that is shorter is filled up with zeros.
pub(crate) fn key<const N: usize>(text: &str, from: usize) -> [u8; N] {
    let bytes = text.as_bytes().get(from..).unwrap_or_default();
    let key = bytes.first_chunk().copied().unwrap_or_else(|| {
        let mut key = [0; N];
        for (to, byte) in key.iter_mut().zip(bytes) {
            *to = *byte;
        }
        key
    });
    if key.is_ascii() { key } else { key.map(rank) }
}

/// Puts the item that is at `order[n]` at `n`, for each `n`; `order` has each place once.
fn arrange<T>(items: &mut [T], mut order: Vec<usize>) {
    for start in 0..order.len() {
        // Each swap of a cycle brings one item to its place, which is marked by its own number.
        let mut at = start;
        while let Some(from) = order.get_mut(at).map(|from| std::mem::replace(from, at)) {
            if from == start {
                break;
            }
            items.swap(at, from);
            at = from;
        }
    }
}

/// Orders bytes of UTF-8 as UTF-16 orders the characters that differ first.
///
/// Characters that differ in a later byte than their first lie in one plane, where both orders are
/// the same. First bytes are in that order, too, but for those of U+E000 to U+FFFF (EE and EF), which
/// come after the surrogates that stand for the characters beyond (from F0 on).
fn rank(byte: u8) -> u8 {
    match byte {
        0xEE | 0xEF => byte | 0x10,
        0xF0.. => byte.wrapping_sub(2),
        _ => byte,
    }
}

fn first_difference(a: &[u8], b: &[u8]) -> Option<(u8, u8)> {
    let mut same = 0;
    for (a, b) in a.chunks_exact(STEP).zip(b.chunks_exact(STEP)) {
        let (a, b) = (padded(a), padded(b));
        if a != b {
            let at = (a ^ b).trailing_zeros() as usize / 8;
            let byte = |word: u64| word.to_le_bytes().get(at).copied();
            return byte(a).zip(byte(b));
        }
        same = STEP.wrapping_add(same);
    }
    let (a, b) = (a.get(same..)?, b.get(same..)?);
    let mut pairs = a.iter().copied().zip(b.iter().copied());
    pairs.find(|(a, b)| a != b)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Letters at the borders of the lengths of UTF-8 and of the surrogates, one of them the zero.
    const LETTERS: [&str; 12] = [
        "\0",
        "a",
        "b",
        "\u{7F}",
        "\u{80}",
        "\u{7FF}",
        "\u{800}",
        "\u{D7FF}",
        "\u{E000}",
        "\u{FFFF}",
        "\u{10000}",
        "\u{10FFFF}",
    ];

    fn by_units(a: &str, b: &str) -> Ordering {
        a.encode_utf16().cmp(b.encode_utf16())
    }

    /// The same numbers in each run.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, limit: usize) -> usize {
            self.0 = (self.0)
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.0 >> 33).unwrap() % limit
        }

        /// Usually with a beginning that many others have.
        fn text(&mut self) -> String {
            let prefix = ["", "a\u{E000}aaaaaaaaaa", "a\u{E000}aaaaaaaaaa\u{10000}"];
            let letters = (0..self.below(20)).map(|_| LETTERS[self.below(LETTERS.len())]);
            let letters: String = letters.collect();
            format!("{}{letters}", prefix[self.below(prefix.len())])
        }
    }

    #[test]
    fn text_is_compared_by_utf16_units() {
        for a in LETTERS {
            for b in LETTERS {
                assert_eq!(compare_utf16(a, b), by_units(a, b), "{a:?} {b:?}");
            }
        }
        let mut numbers = Numbers(1);
        for _ in 0..20_000 {
            let (a, b) = (numbers.text(), numbers.text());
            assert_eq!(compare_utf16(&a, &b), by_units(&a, &b), "{a:?} {b:?}");
            assert_eq!(compare_utf16(&a, &a), Ordering::Equal);
        }
    }

    #[test]
    fn text_is_sorted_by_utf16_units_whether_few_or_many() {
        let mut numbers = Numbers(2);
        for count in [0, 1, 2, WORTH_KEYS - 1, WORTH_KEYS, 100, 1000] {
            for prefix in ["", "10.0.0.", "\u{E000}\u{10000}"] {
                let mut texts: Vec<String> = (0..count)
                    .map(|_| format!("{prefix}{}", numbers.text()))
                    .collect();
                let mut expected = texts.clone();
                expected.sort_by(|a, b| by_units(a, b));
                sort_utf16(&mut texts);
                assert_eq!(texts, expected, "{count} with {prefix:?}");
            }
        }
    }

    #[test]
    fn the_shared_prefix_is_what_all_begin_with() {
        for (texts, expected) in [
            (&[][..], 0),
            (&[""], 0),
            (&["abc"], 3),
            (&["0123456789", "0123456789"], 10),
            (&["0123456789", "012345678", "0123456789abcdef"], 9),
            (&["0123456x", "01234567"], 7),
            (&["01234567x", "01234567y"], 8),
            (&["x", "y", "x"], 0),
            (&["01234567", "", "01234567"], 0),
            (&["0123456789\0", "0123456789"], 10),
        ] {
            assert_eq!(shared_prefix(texts, |text| text), expected, "{texts:?}");
        }
    }

    #[test]
    fn items_are_arranged_along_all_cycles_of_an_order() {
        let mut items = ['a', 'b', 'c', 'd', 'e', 'f'];
        arrange(&mut items, vec![2, 0, 1, 3, 5, 4]);
        assert_eq!(items, ['c', 'a', 'b', 'd', 'f', 'e']);
    }
}
