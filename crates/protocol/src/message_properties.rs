//! The properties of one message, read when somebody asks for them.

use std::fmt;
use std::sync::OnceLock;

use bytes::Bytes;

use crate::ext_fields::bit_of;
use crate::properties::{
    encoded_length, find_property, is_plain, property_entries, put_property, sum_of_lengths,
};
use crate::{CodecError, Properties, property};

/// Properties in their text form, as received or as set one by one, or as a map once somebody wants
/// all or has one that the text cannot hold.
///
/// Most consumers read one or two properties of a message, if any, and most producers set two, so
/// that a map of texts of their own for each message would be the dearest part of its way.
#[derive(Clone, Default)]
pub(crate) struct MessageProperties {
    /// The text form, of which is known that it is UTF-8; empty as soon as only the map counts.
    encoded: Bytes,
    /// Whether the text was made here: sorted by name, each once, none empty, all ended by their
    /// separator. Then nothing is added.
    is_own: bool,
    /// Of a text that was made here a bit for each name it may have.
    names: u64,
    added: Added,
    map: OnceLock<Properties>,
}

/// The text of a message that nothing was set of but `WAIT`.
const WAIT_ONLY: &str = "WAIT\u{1}true\u{2}";

/// What a consumer adds to each message. Their values stay outside of the text, so that adding them
/// makes no map; each counts more than what the text says.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Added {
    min_offset: Number,
    max_offset: Number,
    consume_start_timestamp: Number,
}

impl Added {
    fn named(&self) -> impl Iterator<Item = (&'static str, &Number)> {
        [
            (property::MIN_OFFSET, &self.min_offset),
            (property::MAX_OFFSET, &self.max_offset),
            (
                property::CONSUME_START_TIMESTAMP,
                &self.consume_start_timestamp,
            ),
        ]
        .into_iter()
        .filter(|(_, number)| number.length > 0)
    }
}

impl MessageProperties {
    /// Those of a message that is made: the broker is asked to store it safely.
    pub(crate) fn of_new_message() -> Self {
        Self {
            encoded: Bytes::from_static(WAIT_ONLY.as_bytes()),
            is_own: true,
            names: bit_of(property::WAIT_STORE_MSG_OK.as_bytes()),
            ..Self::default()
        }
    }

    /// Those of a text form.
    ///
    /// # Errors
    /// [`CodecError::BadUtf8`].
    pub(crate) fn received(encoded: Bytes) -> Result<Self, CodecError> {
        std::str::from_utf8(&encoded).map_err(|_| CodecError::BadUtf8 { what: "properties" })?;
        Ok(Self::of_text(encoded))
    }

    /// Those of a text form that is UTF-8; another one has no properties.
    pub(crate) fn of_text(encoded: Bytes) -> Self {
        Self {
            encoded,
            ..Self::default()
        }
    }

    /// The value of one, without a map being made.
    #[inline]
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        // What is asked for is mostly not there, and its bit is known when this is compiled.
        if self.lacks(name) {
            return None;
        }
        self.look_up(name)
    }

    /// Whether it is known without a look that there is no such one.
    #[inline]
    const fn lacks(&self, name: &str) -> bool {
        self.is_own && self.names & bit_of(name.as_bytes()) == 0
    }

    fn look_up(&self, name: &str) -> Option<&str> {
        if let Some(map) = self.map.get() {
            return map.get(name).map(String::as_str);
        }
        let mut added = self.added.named();
        match added.find(|(known, _)| *known == name) {
            Some((_, number)) => number.text(),
            None => std::str::from_utf8(find_property(&self.encoded, name)?).ok(),
        }
    }

    /// The value of one as a slice of the text; `None` if it does not lie there.
    pub(crate) fn shared(&self, name: &str) -> Option<Bytes> {
        if self.map.get().is_some() || self.added.named().any(|(known, _)| known == name) {
            return None;
        }
        Some(self.encoded.slice_ref(find_property(&self.encoded, name)?))
    }

    /// All, as a map that is kept.
    pub(crate) fn map(&self) -> &Properties {
        self.map.get_or_init(|| self.read())
    }

    pub(crate) fn into_map(mut self) -> Properties {
        self.map.take().unwrap_or_else(|| self.read())
    }

    /// Sets one. In the text if it is one of this side's and holds it, else in the map.
    pub(crate) fn set(&mut self, name: &str, value: String) {
        if !self.is_own || !is_plain(name) || !is_plain(&value) {
            self.change(|map| map.insert(name.to_owned(), value));
            return;
        }
        self.encoded = self.text_with(&[(name, &value)]).into();
        self.names |= bit_of(name.as_bytes());
        self.map = OnceLock::new();
    }

    /// The text form with changes, as [`write_with`](Self::write_with) writes it.
    pub(crate) fn text_with(&self, changes: &[(&str, &str)]) -> String {
        let more = sum_of_lengths(changes.iter().copied());
        let mut text = String::with_capacity(self.encoded_length().saturating_add(more));
        self.write_with(changes, &mut text);
        text
    }

    /// Writes the text form, sorted by name, with `changes` made: they are sorted, each name is there
    /// once, and each takes the place of what the message has.
    pub(crate) fn write_with(&self, changes: &[(&str, &str)], out: &mut String) {
        let mut changes = changes.iter().peekable();
        let mut put = |name: &str, value: &str| {
            while let Some((changed, to)) = changes.next_if(|(changed, _)| *changed < name) {
                put_property(out, changed, to);
            }
            if changes.peek().is_none_or(|(changed, _)| *changed != name) {
                put_property(out, name, value);
            }
        };
        if self.is_own {
            for (name, value) in property_entries(self.text()) {
                put(name, value);
            }
        } else {
            for (name, value) in self.map() {
                put(name, value);
            }
        }
        for (name, value) in changes {
            put_property(out, name, value);
        }
    }

    /// Whether it is known without a look at each that no separator is inside of a name or a value,
    /// and that no name is empty.
    pub(crate) const fn are_plain(&self) -> bool {
        self.is_own
    }

    /// The length of the text form, when nothing is changed.
    pub(crate) fn encoded_length(&self) -> usize {
        if self.is_own {
            return self.encoded.len();
        }
        encoded_length(self.map())
    }

    /// Changes the map; from then on it alone counts.
    pub(crate) fn change<R>(&mut self, change: impl FnOnce(&mut Properties) -> R) -> R {
        let mut map = self.map.take().unwrap_or_else(|| self.read());
        let result = change(&mut map);
        *self = map.into();
        result
    }

    /// Removes one and gives its value.
    pub(crate) fn remove(&mut self, name: &str) -> Option<String> {
        self.get(name)?;
        self.change(|map| map.remove(name))
    }

    pub(crate) fn set_offset_bounds(&mut self, min: i64, max: i64) {
        self.add(property::MIN_OFFSET, min, |added| &mut added.min_offset);
        self.add(property::MAX_OFFSET, max, |added| &mut added.max_offset);
    }

    pub(crate) fn set_consume_start_timestamp(&mut self, millis: i64) {
        self.add(property::CONSUME_START_TIMESTAMP, millis, |added| {
            &mut added.consume_start_timestamp
        });
    }

    fn add(&mut self, name: &str, value: i64, place: impl FnOnce(&mut Added) -> &mut Number) {
        if self.is_own {
            return self.set(name, value.to_string());
        }
        if let Some(map) = self.map.get_mut() {
            map.insert(name.to_owned(), value.to_string());
        }
        // Beside a map that is made already it is not looked at, but spares a question.
        *place(&mut self.added) = Number::new(value);
    }

    /// The bytes of the text form; none when only the map counts.
    pub(crate) fn encoded(&self) -> &[u8] {
        &self.encoded
    }

    /// Has the text form lie elsewhere. `copy` must have the same bytes, else nothing changes.
    pub(crate) fn move_to(&mut self, copy: Bytes) {
        if copy == self.encoded {
            self.encoded = copy;
        }
    }

    fn read(&self) -> Properties {
        let mut map: Properties = property_entries(self.text())
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        for (name, number) in self.added.named() {
            if let Some(text) = number.text() {
                map.insert(name.to_owned(), text.to_owned());
            }
        }
        map
    }

    fn text(&self) -> &str {
        // Checked when it was received; to check the hundred bytes again takes some nanoseconds.
        std::str::from_utf8(&self.encoded).unwrap_or_default()
    }
}

impl From<Properties> for MessageProperties {
    fn from(map: Properties) -> Self {
        Self {
            map: map.into(),
            ..Self::default()
        }
    }
}

/// Equal when the maps are.
impl PartialEq for MessageProperties {
    fn eq(&self, other: &Self) -> bool {
        let neither_has_a_map = self.map.get().is_none() && other.map.get().is_none();
        if neither_has_a_map && self.encoded == other.encoded && self.added == other.added {
            return true;
        }
        self.map() == other.map()
    }
}

impl Eq for MessageProperties {}

impl fmt::Debug for MessageProperties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.map().fmt(f)
    }
}

/// The decimal digits of a number, kept without an allocation; without digits it is none.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Number {
    length: u8,
    digits: [u8; MAX_DIGITS],
}

/// The digits of `i64::MIN` and its sign.
const MAX_DIGITS: usize = 20;

impl Number {
    fn new(value: i64) -> Self {
        let mut number = Self::default();
        let mut buffer = itoa::Buffer::new();
        let text = buffer.format(value).as_bytes();
        if let Some(place) = number.digits.get_mut(..text.len()) {
            place.copy_from_slice(text);
            number.length = text.len() as u8;
        }
        number
    }

    fn text(&self) -> Option<&str> {
        let digits = self.digits.get(..usize::from(self.length))?;
        std::str::from_utf8(digits).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{decode_properties, encode_properties};

    fn received(text: &str) -> MessageProperties {
        MessageProperties::received(Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    const TEXTS: &[&str] = &[
        "",
        "a\u{1}1\u{2}b\u{1}2\u{2}",
        "a\u{1}1\u{2}a\u{1}2",
        "a\u{1}1\u{2}a\u{1}\u{2}a\u{2}\u{1}x\u{2}ab\u{1}3\u{2}",
        "a\u{1}1\u{1}2\u{2}a\u{1}b\u{1}c\u{2}\u{2}\u{2}",
        "\u{1}\u{1}\u{2}b",
        "ключ\u{1}значение\u{2}MIN_OFFSET\u{1}9\u{2}",
    ];

    #[test]
    fn a_property_is_found_in_the_text_as_in_the_map() {
        let names = [
            "",
            "a",
            "b",
            "ab",
            "a\u{1}b",
            "\u{1}",
            "a\u{2}",
            "ключ",
            "MIN_OFFSET",
        ];
        for text in TEXTS {
            let lazy = received(text);
            let map = decode_properties(text);
            for name in names {
                let expected = map.get(name).map(String::as_str);
                assert_eq!(lazy.get(name), expected, "{name:?} in {text:?}");
            }
            assert!(lazy.map.get().is_none(), "a look made a map of {text:?}");
            assert_eq!(lazy.map(), &map, "{text:?}");
            for name in names {
                assert_eq!(lazy.get(name), map.get(name).map(String::as_str));
            }
        }
    }

    #[test]
    fn added_numbers_count_more_than_the_text_before_and_after_the_map_is_made() {
        for text in TEXTS {
            let mut expected = decode_properties(text);
            for (name, value) in [
                (property::MIN_OFFSET, "-9223372036854775808"),
                (property::MAX_OFFSET, "9223372036854775807"),
                (property::CONSUME_START_TIMESTAMP, "0"),
            ] {
                expected.insert(name.to_owned(), value.to_owned());
            }
            let add = |properties: &mut MessageProperties| {
                properties.set_offset_bounds(i64::MIN, i64::MAX);
                properties.set_consume_start_timestamp(0);
            };
            let mut before = received(text);
            before.set_offset_bounds(1, 2);
            add(&mut before);
            for (name, value) in &expected {
                assert_eq!(before.get(name), Some(value.as_str()));
            }
            assert!(before.map.get().is_none());
            let mut after = received(text);
            after.map();
            add(&mut after);
            let mut owned = MessageProperties::from(decode_properties(text));
            add(&mut owned);
            for properties in [before, after, owned] {
                assert_eq!(properties.map(), &expected, "{text:?}");
            }
        }
    }

    #[test]
    fn a_change_is_made_to_what_was_received_and_added() {
        let mut properties = received("a\u{1}1\u{2}b\u{1}2\u{2}");
        properties.set_consume_start_timestamp(7);
        let removed = properties.change(|map| map.remove(property::CONSUME_START_TIMESTAMP));
        assert_eq!(removed.as_deref(), Some("7"));
        properties.change(|map| map.insert("a".to_owned(), "3".to_owned()));
        assert_eq!(
            encode_properties(properties.map()),
            "a\u{1}3\u{2}b\u{1}2\u{2}"
        );
        assert_eq!(properties.get(property::CONSUME_START_TIMESTAMP), None);
        assert!(properties.encoded().is_empty());
    }

    /// What is set, whether the text holds it or not, is what a map would have.
    #[test]
    fn properties_that_are_set_are_those_of_a_map() {
        let values = ["1", "", "two", "a\u{1}b", "c\u{2}", "ключ"];
        let names = ["WAIT", "A", "ZZ", "", "WAITER", "WAI", "n\u{1}", "ключ"];
        for first in names {
            for second in names {
                for (value, other) in values.iter().zip(values.iter().rev()) {
                    let mut own = MessageProperties::of_new_message();
                    let mut map = decode_properties(WAIT_ONLY);
                    for (name, value) in [(first, *value), (second, *other), (first, *other)] {
                        own.set(name, value.to_owned());
                        map.insert(name.to_owned(), value.to_owned());
                        assert_eq!(own.get(name), Some(value), "{name:?}");
                    }
                    let mut text = String::new();
                    own.write_with(&[], &mut text);
                    assert_eq!(text, encode_properties(&map));
                    assert_eq!(own.encoded_length(), text.len());
                    assert_eq!(own.map(), &map);
                    assert_eq!(own, MessageProperties::from(map.clone()));
                    if own.are_plain() {
                        let plain = |(name, value): (&String, &String)| {
                            is_plain(name) && !value.contains(['\u{1}', '\u{2}'])
                        };
                        assert!(map.iter().all(plain), "{map:?}");
                    }
                    assert_eq!(own.remove(first), map.remove(first));
                    assert_eq!(own.remove(first), None);
                    assert_eq!(own.map(), &map);
                }
            }
        }
    }

    #[test]
    fn changes_take_their_places_in_the_order_of_names() {
        let mut own = MessageProperties::of_new_message();
        own.set("TAGS", "t".to_owned());
        own.set("KEYS", "k".to_owned());
        let of_map = MessageProperties::from(own.map().clone());
        let received = received("WAIT\u{1}true\u{2}TAGS\u{1}t\u{2}KEYS\u{1}k\u{2}");
        for properties in [&own, &of_map, &received] {
            for names in [
                vec!["A", "TAGS", "UNIQ_KEY", "Z"],
                vec!["KEYS"],
                vec!["WAIT"],
                vec!["INSTANCE_ID", "UNIQ_KEY"],
                vec![],
            ] {
                let changes: Vec<_> = names.iter().map(|name| (*name, "new")).collect();
                let mut text = String::new();
                properties.write_with(&changes, &mut text);
                let mut map = properties.map().clone();
                map.extend(
                    changes
                        .iter()
                        .map(|(n, v)| ((*n).to_owned(), (*v).to_owned())),
                );
                assert_eq!(text, encode_properties(&map));
            }
        }
    }

    #[test]
    fn equal_is_what_has_the_same_properties() {
        let text = "a\u{1}1\u{2}b\u{1}2\u{2}";
        let lazy = received(text);
        let other_order = received("b\u{1}2\u{2}a\u{1}0\u{2}a\u{1}1\u{2}");
        let owned = MessageProperties::from(decode_properties(text));
        assert_eq!(lazy, other_order);
        assert_eq!(owned, received(text));
        let mut changed = received(text);
        assert_eq!(changed, lazy);
        changed.set_consume_start_timestamp(7);
        assert_ne!(changed, lazy);
        assert_ne!(changed, received(text));
        assert_ne!(received(text), received("a\u{1}1\u{2}"));
        let shown = format!("{changed:?}");
        assert_eq!(shown, r#"{"CONSUME_START_TIME": "7", "a": "1", "b": "2"}"#);
    }
}
