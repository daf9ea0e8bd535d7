use std::collections::BTreeMap;

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
    let length = properties.iter().fold(0_usize, |sum, (name, value)| {
        sum.saturating_add(name.len())
            .saturating_add(value.len())
            .saturating_add(2)
    });
    let mut text = String::with_capacity(length);
    for (name, value) in properties {
        text.push_str(name);
        text.push(NAME_VALUE_SEPARATOR);
        text.push_str(value);
        text.push(PROPERTY_SEPARATOR);
    }
    text
}

/// Reads the text form (Java `MessageDecoder#string2messageProperties`). What Java drops is dropped:
/// entries without a separator, without a name or without a value.
pub fn decode_properties(text: &str) -> Properties {
    property_entries(text)
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// The names and values of a text form, in its order; of two of one name the later one counts.
pub(crate) fn property_entries(text: &str) -> impl DoubleEndedIterator<Item = (&str, &str)> {
    text.split(PROPERTY_SEPARATOR)
        .filter_map(|entry| entry.split_once(NAME_VALUE_SEPARATOR))
        .filter(|(name, value)| !name.is_empty() && !value.is_empty())
}

/// The value of one property of a text form.
pub(crate) fn find_property<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    property_entries(text)
        .rfind(|(known, _)| *known == name)
        .map(|(_, value)| value)
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
