use std::collections::BTreeMap;

use memchr::{memchr, memrchr};

use crate::CodecError;

/// The properties of a message, by name. Java keeps them in a hash map, so their order on the wire
/// carries no meaning; here it is the alphabet's.
pub type Properties = BTreeMap<String, String>;

const NAME_VALUE_SEPARATOR: char = '\u{1}';
const PROPERTY_SEPARATOR: char = '\u{2}';

/// The longest encoded properties, in bytes: what their length field on the wire can hold.
pub(crate) const MAX_ENCODED_LENGTH: usize = i16::MAX as usize;

/// The text form: `name 0x01 value 0x02` for each property
/// (Java `MessageDecoder#messageProperties2String`).
pub fn encode_properties(properties: &Properties) -> String {
    let mut text = String::with_capacity(encoded_length(properties));
    for (name, value) in properties {
        put_property(&mut text, name, value);
    }
    text
}

/// The length of the text form.
pub(crate) fn encoded_length(properties: &Properties) -> usize {
    sum_of_lengths(properties.iter().map(|(n, v)| (n.as_str(), v.as_str())))
}

/// The length of the text form of such properties.
pub(crate) fn sum_of_lengths<'a>(properties: impl Iterator<Item = (&'a str, &'a str)>) -> usize {
    properties.fold(0, |sum: usize, (name, value)| {
        sum.saturating_add(name.len())
            .saturating_add(value.len())
            .saturating_add(2)
    })
}

/// Reads the text form (Java `MessageDecoder#string2messageProperties`). What Java drops is dropped:
/// entries without a separator, without a name or without a value.
pub fn decode_properties(text: &str) -> Properties {
    property_entries(text)
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// The names and values of a text form, in its order; of two of one name the later one counts.
pub(crate) fn property_entries(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let end = memchr(PROPERTY_SEPARATOR as u8, rest.as_bytes()).unwrap_or(rest.len());
            let entry = rest.get(..end).unwrap_or_default();
            rest = rest.get(end.saturating_add(1)..).unwrap_or_default();
            let both = memchr(NAME_VALUE_SEPARATOR as u8, entry.as_bytes()).and_then(|middle| {
                entry
                    .get(..middle)
                    .zip(entry.get(middle.saturating_add(1)..))
            });
            if let Some((name, value)) = both {
                if !name.is_empty() && !value.is_empty() {
                    return Some((name, value));
                }
            }
        }
        None
    })
}

/// The value of one property of a text form, from its end: of two of one name the later one counts.
/// Of bytes, since each message is asked for a few.
pub(crate) fn find_property<'a>(text: &'a [u8], name: &str) -> Option<&'a [u8]> {
    if !is_plain(name) {
        return None;
    }
    let mut rest = text;
    while !rest.is_empty() {
        let start = memrchr(PROPERTY_SEPARATOR as u8, rest)
            .map_or(0, |separator| separator.saturating_add(1));
        let entry = rest.get(start..).unwrap_or_default();
        if let Some([separator, value @ ..]) = entry.strip_prefix(name.as_bytes()) {
            if *separator == NAME_VALUE_SEPARATOR as u8 && !value.is_empty() {
                return Some(value);
            }
        }
        rest = rest.get(..start.saturating_sub(1)).unwrap_or_default();
    }
    None
}

/// Whether a name or a value is the same to whoever reads the text form: not empty, no separators.
pub(crate) fn is_plain(text: &str) -> bool {
    let separates =
        |byte: u8| byte == NAME_VALUE_SEPARATOR as u8 || byte == PROPERTY_SEPARATOR as u8;
    !text.is_empty() && !text.bytes().any(separates)
}

/// Appends a property in its text form.
pub(crate) fn put_property(text: &mut String, name: &str, value: &str) {
    text.push_str(name);
    text.push(NAME_VALUE_SEPARATOR);
    text.push_str(value);
    text.push(PROPERTY_SEPARATOR);
}

/// Checks that the text form fits its length field.
///
/// # Errors
/// [`CodecError::Unencodable`] with the length.
pub(crate) fn check_length(encoded: &str) -> Result<(), CodecError> {
    if encoded.len() > MAX_ENCODED_LENGTH {
        return Err(CodecError::Unencodable {
            what: "message properties",
            detail: format!("{} bytes, the most is {MAX_ENCODED_LENGTH}", encoded.len()),
        });
    }
    Ok(())
}
