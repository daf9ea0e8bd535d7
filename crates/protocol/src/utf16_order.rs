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
    if texts.len() < WORTH_KEYS {
        return texts.sort_unstable_by(by_text);
    }
    let from = shared_prefix(texts, AsRef::as_ref);
    let mut keyed: Vec<(u128, usize)> = texts
        .iter()
        .map(|text| u128::from_be_bytes(key(text.as_ref(), from)))
        .zip(0..)
        .collect();
    keyed.sort_unstable_by(|(key, at), (other_key, other)| {
        key.cmp(other_key)
            .then_with(|| match (texts.get(*at), texts.get(*other)) {
                (Some(a), Some(b)) => by_text(a, b),
                _ => Ordering::Equal,
            })
    });
    arrange(texts, keyed.into_iter().map(|(_, at)| at).collect());
}

/// From how many on keys are worth their making.
pub(crate) const WORTH_KEYS: usize = 32;

/// How many bytes the texts of all items begin with in common.
pub(crate) fn shared_prefix<T>(items: &[T], text: impl Fn(&T) -> &str) -> usize {
    let mut texts = items.iter().map(text);
    let mut shared = texts.next().unwrap_or_default().as_bytes();
    for text in texts {
        // Usually a text has all that those before it share.
        if !text.as_bytes().starts_with(shared) {
            let same = shared.iter().zip(text.as_bytes());
            let count = same.take_while(|(a, b)| a == b).count();
            shared = shared.get(..count).unwrap_or_default();
        }
    }
    shared.len()
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
pub(crate) fn arrange<T>(items: &mut [T], mut order: Vec<usize>) {
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
    const STEP: usize = size_of::<u64>();
    let mut same = 0;
    for (a, b) in a.chunks_exact(STEP).zip(b.chunks_exact(STEP)) {
        let (a, b) = (word(a), word(b));
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

/// Eight bytes, the first one lowest.
fn word(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
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
    fn items_are_arranged_along_all_cycles_of_an_order() {
        let mut items = ['a', 'b', 'c', 'd', 'e', 'f'];
        arrange(&mut items, vec![2, 0, 1, 3, 5, 4]);
        assert_eq!(items, ['c', 'a', 'b', 'd', 'f', 'e']);
    }
}
