use std::fmt;

/// Why bytes could not be decoded, or a value could not be encoded.
///
/// Comparable, so that a test can name the exact fault it expects.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CodecError {
    /// The bytes end before the element that they announce.
    Truncated {
        /// What was being read.
        what: &'static str,
    },
    /// A length field is negative, or larger than what surrounds it or than the protocol allows.
    BadLength {
        /// What the length belongs to.
        what: &'static str,
        /// The value on the wire.
        length: i64,
    },
    /// A stored message starts with none of the known magic numbers.
    BadMagic {
        /// The value on the wire.
        magic: i32,
    },
    /// The frame names a header form that does not exist.
    BadSerializeType {
        /// The value on the wire.
        code: u8,
    },
    /// Text is not UTF-8.
    BadUtf8 {
        /// What was being read.
        what: &'static str,
    },
    /// Text is not JSON of the expected form, in none of the dialects Java servers write.
    BadJson {
        /// What was being read.
        what: &'static str,
        /// What the JSON parser objected to.
        detail: String,
    },
    /// A header lacks a field that it must have.
    MissingField {
        /// The header's Java name.
        header: &'static str,
        /// The field's wire name.
        field: &'static str,
    },
    /// A header field has a value of the wrong form.
    BadField {
        /// The header's Java name.
        header: &'static str,
        /// The field's wire name.
        field: &'static str,
        /// The value on the wire.
        value: String,
    },
    /// A compressed body cannot be expanded, or would exceed the limit.
    Compression {
        /// The algorithm's name.
        algorithm: &'static str,
        /// What the decoder objected to.
        detail: String,
    },
    /// A value has no place in the wire form: it is too long or out of range.
    Unencodable {
        /// What was being written.
        what: &'static str,
        /// Why it does not fit.
        detail: String,
    },
    /// A text that a broker hands out to be given back, such as a receipt, has another form.
    BadReceipt {
        /// What was being read.
        what: &'static str,
        /// The text.
        text: String,
    },
    /// A subscription expression that names nothing, such as separators only.
    BadExpression {
        /// The expression as given.
        expression: String,
    },
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { what } => write!(f, "the bytes end inside {what}"),
            Self::BadLength { what, length } => {
                write!(f, "length {length} of {what} is out of range")
            }
            Self::BadMagic { magic } => write!(f, "unknown message magic {magic:#x}"),
            Self::BadSerializeType { code } => write!(f, "unknown header serialize type {code}"),
            Self::BadUtf8 { what } => write!(f, "{what} is not UTF-8"),
            Self::BadJson { what, detail } => write!(f, "{what} is not valid JSON: {detail}"),
            Self::MissingField { header, field } => write!(f, "{header} lacks the field {field}"),
            Self::BadField {
                header,
                field,
                value,
            } => {
                write!(f, "{header} has the bad value {value:?} in field {field}")
            }
            Self::Compression { algorithm, detail } => {
                write!(f, "{algorithm} body cannot be expanded: {detail}")
            }
            Self::Unencodable { what, detail } => write!(f, "{what} cannot be encoded: {detail}"),
            Self::BadReceipt { what, text } => write!(f, "{what} {text:?} has another form"),
            Self::BadExpression { expression } => {
                write!(f, "subscription expression {expression:?} names nothing")
            }
        }
    }
}

impl std::error::Error for CodecError {}
