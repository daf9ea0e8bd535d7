//! JSON as Java servers write it.
//!
//! Java's JSON library writes map keys that are not text as they are: `{0:"a"}` for an integer key,
//! `{{"queueId":0}:5}` for an object key. [`from_slice`] reads strict JSON first, which is the usual
//! case, and rewrites only what a strict parser refused: such keys become text, an object key the
//! text of its JSON, and an entry of value null is left out, since Java takes null for absent.
//!
//! [`to_vec`] writes strict JSON, except for maps that go through [`serialize_object_keys`].

use std::io::{self, Write};

use serde::de::DeserializeOwned;
use serde::ser::{Error, Serialize, Serializer};
use serde_json::ser::Formatter;

use crate::CodecError;

const MAX_DEPTH: usize = 64;

/// What an object used as a key counts for in depth. Each such level escapes the quotes of the
/// levels inside it once more, so the text would grow exponentially without a tight limit.
const OBJECT_KEY_DEPTH: usize = 24;

/// Reads a value from strict JSON or from the dialect of Java servers.
///
/// # Errors
/// [`CodecError::BadJson`] with the parser's words.
pub fn from_slice<T: DeserializeOwned>(what: &'static str, text: &[u8]) -> Result<T, CodecError> {
    let strict_error = match serde_json::from_slice(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let refused = || CodecError::BadJson {
        what,
        detail: strict_error.to_string(),
    };
    let text = std::str::from_utf8(text).map_err(|_| refused())?;
    let strict = Rewriter {
        input: text,
        at: 0,
        out: String::with_capacity(text.len()),
    }
    .rewrite()
    .ok_or_else(refused)?;
    serde_json::from_str(&strict).map_err(|error| CodecError::BadJson {
        what,
        detail: error.to_string(),
    })
}

/// Writes a value as strict JSON, but tables of queues in Java's form.
///
/// # Errors
/// [`CodecError::Unencodable`] for a value that JSON has no form for.
pub fn to_vec<T: Serialize>(what: &'static str, value: &T) -> Result<Vec<u8>, CodecError> {
    write(value).map_err(|error| CodecError::Unencodable {
        what,
        detail: error.to_string(),
    })
}

fn write<T: Serialize>(value: &T) -> serde_json::Result<Vec<u8>> {
    let mut text = Vec::new();
    value.serialize(&mut serde_json::Serializer::with_formatter(
        &mut text,
        BytesAreJson,
    ))?;
    Ok(text)
}

/// Serializes a map whose keys are objects, for [`to_vec`] only: the text is handed through as
/// bytes, which no other value of this crate is serialized as.
pub(crate) fn serialize_object_keys<'a, K, V, S>(
    entries: impl Iterator<Item = (&'a K, &'a V)>,
    serializer: S,
) -> Result<S::Ok, S::Error>
where
    K: Serialize + 'a,
    V: Serialize + 'a,
    S: Serializer,
{
    let mut text = vec![b'{'];
    for (key, value) in entries {
        if text.len() > 1 {
            text.push(b',');
        }
        text.extend(write(key).map_err(S::Error::custom)?);
        text.push(b':');
        text.extend(write(value).map_err(S::Error::custom)?);
    }
    text.push(b'}');
    serializer.serialize_bytes(&text)
}

/// Compact JSON in which bytes are text that is JSON already.
struct BytesAreJson;

impl Formatter for BytesAreJson {
    fn write_byte_array<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        text: &[u8],
    ) -> io::Result<()> {
        writer.write_all(text)
    }
}

struct Rewriter<'a> {
    input: &'a str,
    at: usize,
    out: String,
}

impl<'a> Rewriter<'a> {
    fn rewrite(mut self) -> Option<String> {
        self.value(0)?;
        self.skip_space();
        (self.at == self.input.len()).then_some(self.out)
    }

    fn peek(&self) -> Option<u8> {
        self.input.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at = self.at.saturating_add(1);
        }
    }

    /// Passes over a structural character and the space before it.
    fn take(&mut self, byte: u8) -> Option<()> {
        self.skip_space();
        if self.peek() != Some(byte) {
            return None;
        }
        self.at = self.at.saturating_add(1);
        Some(())
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.skip_space();
        match self.peek()? {
            b'{' => self.sequence(b'{', b'}', |this| this.entry(depth)),
            b'[' => self.sequence(b'[', b']', |this| {
                this.value(depth.saturating_add(1)).map(|()| true)
            }),
            b'"' => self.string(),
            _ => {
                let word = self.word()?;
                self.out.push_str(word);
                Some(())
            }
        }
    }

    fn sequence(
        &mut self,
        open: u8,
        close: u8,
        mut element: impl FnMut(&mut Self) -> Option<bool>,
    ) -> Option<()> {
        self.take(open)?;
        self.out.push(char::from(open));
        let mut first = true;
        if self.take(close).is_none() {
            loop {
                let before = self.out.len();
                if !first {
                    self.out.push(',');
                }
                if element(self)? {
                    first = false;
                } else {
                    self.out.truncate(before);
                }
                if self.take(close).is_some() {
                    break;
                }
                self.take(b',')?;
            }
        }
        self.out.push(char::from(close));
        Some(())
    }

    /// One entry of an object; whether it is to be kept.
    fn entry(&mut self, depth: usize) -> Option<bool> {
        self.skip_space();
        match self.peek()? {
            b'"' => self.string()?,
            b'{' => {
                let start = self.out.len();
                self.value(depth.saturating_add(OBJECT_KEY_DEPTH))?;
                let key = self.out.split_off(start);
                self.out.push_str(&serde_json::to_string(&key).ok()?);
            }
            _ => {
                let word = self.word()?;
                self.out.push('"');
                self.out.push_str(word);
                self.out.push('"');
            }
        }
        self.take(b':')?;
        self.out.push(':');
        let start = self.out.len();
        self.value(depth.saturating_add(1))?;
        Some(self.out.get(start..) != Some("null"))
    }

    fn string(&mut self) -> Option<()> {
        let start = self.at;
        let mut end = start.checked_add(1)?;
        loop {
            match self.input.as_bytes().get(end)? {
                b'"' => break,
                b'\\' => end = end.checked_add(2)?,
                _ => end = end.checked_add(1)?,
            }
        }
        end = end.checked_add(1)?;
        self.out.push_str(self.input.get(start..end)?);
        self.at = end;
        Some(())
    }

    /// A number or a literal: what stands between two structural characters.
    fn word(&mut self) -> Option<&'a str> {
        let rest = self.input.get(self.at..)?;
        let length = rest
            .bytes()
            .position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')))
            .unwrap_or(rest.len());
        let word = rest.get(..length).filter(|word| !word.is_empty())?;
        self.at = self.at.checked_add(length)?;
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn integer_keys_without_quotes_are_read() {
        let map: BTreeMap<i64, String> =
            from_slice("map", br#"{0:"10.0.0.1:10911", 1 : "b\"}:{"}"#).unwrap();
        assert_eq!(map[&0], "10.0.0.1:10911");
        assert_eq!(map[&1], "b\"}:{");
    }

    #[test]
    fn object_keys_become_their_text() {
        let map: BTreeMap<String, BTreeMap<String, i64>> = from_slice(
            "map",
            br#"{"t":{{"brokerName":"b","queueId":0}:5,{"q":{1:2}}:6}}"#,
        )
        .unwrap();
        assert_eq!(map["t"][r#"{"brokerName":"b","queueId":0}"#], 5);
        assert_eq!(map["t"][r#"{"q":{"1":2}}"#], 6);
    }

    #[test]
    fn null_is_absent_where_a_strict_parser_refuses_it() {
        for text in [
            r#"{"a":null}"#,
            r#"{"a":[1],"b":null , "c":null}"#,
            r#"{"a":null,"a":[1],"b":null}"#,
            r#"{0: null, "a":[1]}"#,
        ] {
            let map: BTreeMap<String, Vec<i32>> = from_slice("map", text.as_bytes()).unwrap();
            assert!(map.get("a").is_none_or(|a| a == &[1]), "{text}: {map:?}");
            assert!(map.len() < 2, "{text}: {map:?}");
        }
    }

    #[test]
    fn object_keys_inside_object_keys_do_not_swell() {
        let nested = |levels: usize| {
            let mut text = "1".to_owned();
            for _ in 0..levels {
                text = format!("{{{{{text}:1}}:1}}");
            }
            text
        };
        assert!(from_slice::<serde_json::Value>("x", nested(1).as_bytes()).is_ok());
        assert!(from_slice::<serde_json::Value>("x", nested(3).as_bytes()).is_err());
    }

    #[test]
    fn cut_and_endless_nesting_are_errors() {
        for text in ["{0:", "{0", "{", "{{{", "{\"a", "{0:\"\\", ""] {
            assert!(
                from_slice::<serde_json::Value>("x", text.as_bytes()).is_err(),
                "{text}"
            );
        }
        let deep = "{0:".repeat(100_000);
        assert!(from_slice::<serde_json::Value>("x", deep.as_bytes()).is_err());
    }
}
