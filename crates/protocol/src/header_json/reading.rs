//! The short way for a header as servers write it: an object whose keys are known and come once,
//! with integers, strings, and fields that are strings and come once.
//!
//! [`read`] says `None` to all else, to what is no JSON and to what merely has another form, and so
//! decides nothing by itself: what it takes, the JSON library takes too, and reads the same of it.

use std::ops::Range;

use super::plain_bytes::{bytes_before_quote, padded, plain_bytes};
use crate::ext_fields::{FieldsInText, Part};
use crate::{ExtFields, LanguageCode, RemotingCommand};

pub(super) fn read(header: &[u8]) -> Option<RemotingCommand> {
    let mut reader = Reader {
        text: std::str::from_utf8(header).ok()?,
        rest: header,
        is_plain: !has_escape_or_control(header),
    };
    let mut entries = Entries::default();
    reader.take(b'{')?;
    if reader.in_order(&mut entries)? {
        while reader.entry(&mut entries)? {}
    }
    reader.skip_space();
    if !reader.rest.is_empty() {
        return None;
    }
    let mut command = RemotingCommand::request_without_header(entries.code?);
    command.language = entries.language.unwrap_or_default();
    command.version = entries.version.unwrap_or(0);
    command.opaque = entries.opaque.unwrap_or(0);
    command.flag = entries.flag.unwrap_or(0);
    command.remark = entries.remark;
    command.ext_fields = entries.ext_fields.unwrap_or_default();
    Some(command)
}

#[derive(Default)]
struct Entries {
    code: Option<i32>,
    ext_fields: Option<ExtFields>,
    flag: Option<i32>,
    language: Option<LanguageCode>,
    opaque: Option<i32>,
    remark: Option<String>,
    form: Option<()>,
    version: Option<i32>,
}

fn once<T>(place: &mut Option<T>, value: T) -> Option<()> {
    if place.is_some() {
        return None;
    }
    *place = Some(value);
    Some(())
}

/// One look at all bytes, some at a time, saves a look at each for strings that need none.
fn has_escape_or_control(header: &[u8]) -> bool {
    let is_either = |byte: u8| byte < 0x20 || byte == b'\\';
    header
        .iter()
        .fold(false, |found, byte| found | is_either(*byte))
}

struct Reader<'a> {
    text: &'a str,
    /// What of the text was not read yet.
    rest: &'a [u8],
    /// There are no escapes and no control characters.
    is_plain: bool,
}

/// What stands between two quotes.
struct Quoted {
    range: Range<usize>,
    has_escapes: bool,
}

impl<'a> Reader<'a> {
    /// Reads the entries that come in the order of Java, each of which may be missing. Whether there
    /// are more.
    fn in_order(&mut self, entries: &mut Entries) -> Option<bool> {
        if self.passes(br#""code":"#) {
            entries.code = Some(self.integer()?);
            if !self.goes_on()? {
                return Some(false);
            }
        }
        if self.passes(br#""extFields":"#) {
            entries.ext_fields = Some(self.fields()?);
            if !self.goes_on()? {
                return Some(false);
            }
        }
        if self.passes(br#""flag":"#) {
            entries.flag = Some(self.integer()?);
            if !self.goes_on()? {
                return Some(false);
            }
        }
        if self.passes(br#""language":"#) {
            entries.language = Some(self.language()?);
            if !self.goes_on()? {
                return Some(false);
            }
        }
        if self.passes(br#""opaque":"#) {
            entries.opaque = Some(self.integer()?);
            if !self.goes_on()? {
                return Some(false);
            }
        }
        if self.passes(br#""remark":"#) {
            entries.remark = Some(self.owned_string()?);
            if !self.goes_on()? {
                return Some(false);
            }
        }
        if self.passes(br#""serializeTypeCurrentRPC":"#) {
            entries.form = Some(self.form()?);
            if !self.goes_on()? {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Reads any one entry. Whether there are more.
    fn entry(&mut self, entries: &mut Entries) -> Option<bool> {
        let key = self.plain_string()?;
        self.take(b':')?;
        match key {
            "code" => once(&mut entries.code, self.integer()?)?,
            "extFields" => once(&mut entries.ext_fields, self.fields()?)?,
            "flag" => once(&mut entries.flag, self.integer()?)?,
            "language" => once(&mut entries.language, self.language()?)?,
            "opaque" => once(&mut entries.opaque, self.integer()?)?,
            "remark" => once(&mut entries.remark, self.owned_string()?)?,
            "serializeTypeCurrentRPC" => once(&mut entries.form, self.form()?)?,
            "version" => once(&mut entries.version, self.integer()?)?,
            _ => return None,
        }
        self.goes_on()
    }

    fn language(&mut self) -> Option<LanguageCode> {
        if self.passes(br#""JAVA""#) {
            return Some(LanguageCode::Java);
        }
        self.plain_string().map(LanguageCode::from_name)
    }

    /// What form the header has is said by the frame; here it counts for nothing.
    fn form(&mut self) -> Option<()> {
        if self.passes(br#""JSON""#) {
            return Some(());
        }
        self.plain_string().map(drop)
    }

    /// Passes over a text that is likely to come, if it does.
    #[inline]
    fn passes<const N: usize>(&mut self, text: &[u8; N]) -> bool {
        match self.rest.split_first_chunk() {
            Some((first, rest)) if first == text => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn skip_space(&mut self) {
        while let [b' ' | b'\t' | b'\r' | b'\n', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    /// Servers write no space, so it is looked for only where something else is missed.
    #[cold]
    fn take_after_space(&mut self, byte: u8) -> Option<()> {
        self.skip_space();
        self.rest = self.rest.strip_prefix(&[byte])?;
        Some(())
    }

    #[inline]
    fn take(&mut self, byte: u8) -> Option<()> {
        if let Some(rest) = self.rest.strip_prefix(&[byte]) {
            self.rest = rest;
            return Some(());
        }
        self.take_after_space(byte)
    }

    /// Passes over what follows an entry of an object: whether it is a comma, not the end.
    #[inline]
    fn goes_on(&mut self) -> Option<bool> {
        if let [b',', rest @ ..] = self.rest {
            self.rest = rest;
            return Some(true);
        }
        if self.take(b'}').is_some() {
            return Some(false);
        }
        self.take(b',').map(|()| true)
    }

    /// An integer without fraction or exponent, which would be missed as the end of the entry.
    fn integer(&mut self) -> Option<i32> {
        /// Those of the longest.
        const MOST_DIGITS: usize = 10;
        if let [b' ', ..] = self.rest {
            self.skip_space();
        }
        let is_negative = self.passes(b"-");
        // The library takes -0 for a fraction, and more digits after a 0 for a mistake.
        if let [b'0', rest @ ..] = self.rest {
            self.rest = rest;
            let is_more = matches!(rest, [b'0'..=b'9', ..]);
            return (!is_negative && !is_more).then_some(0);
        }
        let mut digits = 0_usize;
        let mut number: i64 = 0;
        while let [digit @ b'0'..=b'9', rest @ ..] = self.rest {
            self.rest = rest;
            digits = digits.wrapping_add(1);
            if digits > MOST_DIGITS {
                return None;
            }
            let digit = i64::from(digit.wrapping_sub(b'0'));
            number = number.wrapping_mul(10).wrapping_add(digit);
        }
        if digits == 0 {
            return None;
        }
        let number = if is_negative {
            number.wrapping_neg()
        } else {
            number
        };
        number.try_into().ok()
    }

    /// A string, whose escapes are passed over. A control character has to be an escape.
    #[inline]
    fn string(&mut self) -> Option<Quoted> {
        self.take(b'"')?;
        let mut rest = self.rest;
        let start = self.text.len().checked_sub(rest.len())?;
        let mut has_escapes = false;
        let after = loop {
            let word = match rest.first_chunk() {
                Some(word) => u64::from_le_bytes(*word),
                None => padded(rest),
            };
            let plain = if self.is_plain {
                bytes_before_quote(word)
            } else {
                plain_bytes(word)
            };
            rest = rest.get(plain..)?;
            match rest {
                [b'"', after @ ..] => break after,
                _ if plain == 8 => {}
                [b'\\', _, after @ ..] => {
                    has_escapes = true;
                    rest = after;
                }
                _ => return None,
            }
        };
        self.rest = after;
        let end = self.text.len().checked_sub(rest.len())?;
        Some(Quoted {
            range: start..end,
            has_escapes,
        })
    }

    /// A string without escapes.
    fn plain_string(&mut self) -> Option<&'a str> {
        let quoted = self.string()?;
        if quoted.has_escapes {
            return None;
        }
        self.text.get(quoted.range)
    }

    fn owned_string(&mut self) -> Option<String> {
        let Quoted { range, has_escapes } = self.string()?;
        let quoted = self.text.get(range)?;
        if !has_escapes {
            return Some(quoted.to_owned());
        }
        let mut text = String::with_capacity(quoted.len());
        unescape(quoted, &mut text)?;
        Some(text)
    }

    fn fields(&mut self) -> Option<ExtFields> {
        self.take(b'{')?;
        if self.passes(b"}") {
            return Some(ExtFields::new());
        }
        let start = self.text.len().checked_sub(self.rest.len())?;
        let text = self.text.get(start..)?;
        if self.is_plain {
            let mut fields = FieldsInText::new(text);
            if let Some(rest) = plain_fields(self.rest, &mut fields) {
                self.rest = rest;
                return Some(fields.finish());
            }
        }
        let mut fields = FieldsInText::new(text);
        loop {
            let name = self.part(start, &mut fields)?;
            self.take(b':')?;
            let value = self.part(start, &mut fields)?;
            fields.push(name, value)?;
            if !self.goes_on()? {
                return Some(fields.finish());
            }
        }
    }

    /// A name or a value of a field. The fields' text begins at `start` of the header.
    #[inline]
    fn part(&mut self, start: usize, fields: &mut FieldsInText) -> Option<Part> {
        let Quoted { range, has_escapes } = self.string()?;
        if has_escapes {
            return fields.append(|text| unescape(self.text.get(range)?, text));
        }
        Some(range.start.wrapping_sub(start)..range.end.wrapping_sub(start))
    }
}

/// Reads fields without escapes and spaces: that of most of a header's bytes. What follows them is
/// given back.
fn plain_fields<'a>(text: &'a [u8], fields: &mut FieldsInText) -> Option<&'a [u8]> {
    let mut at: usize = 0;
    loop {
        if text.get(at) != Some(&b'"') {
            return None;
        }
        let name_start = at.wrapping_add(1);
        let name_end = next_quote(text, name_start)?;
        if text.get(name_end..)?.first_chunk() != Some(br#"":""#) {
            return None;
        }
        let value_start = name_end.wrapping_add(3);
        let value_end = next_quote(text, value_start)?;
        fields.push(name_start..name_end, value_start..value_end)?;
        at = value_end.wrapping_add(2);
        match text.get(value_end.wrapping_add(1))? {
            b',' => {}
            b'}' => return text.get(at..),
            _ => return None,
        }
    }
}

/// The end of a plain string; there have to be some bytes behind it, as there are in a header.
#[inline]
fn next_quote(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let word = text.get(at..)?.first_chunk()?;
        let before = bytes_before_quote(u64::from_le_bytes(*word));
        at = at.wrapping_add(before);
        if before < 8 {
            return Some(at);
        }
    }
}

/// Appends what a string with escapes means. Halves of characters beyond two bytes are left to the
/// JSON library.
fn unescape(quoted: &str, out: &mut String) -> Option<()> {
    let mut rest = quoted;
    while let Some((plain, escape)) = rest.split_once('\\') {
        out.push_str(plain);
        let mut after = escape.chars();
        out.push(match after.next()? {
            same @ ('"' | '\\' | '/') => same,
            'b' => '\u{8}',
            'f' => '\u{C}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let mut code = 0_u32;
                for _ in 0..4 {
                    code = code << 4 | after.next()?.to_digit(16)?;
                }
                char::from_u32(code)?
            }
            _ => return None,
        });
        rest = after.as_str();
    }
    out.push_str(rest);
    Some(())
}

#[cfg(test)]
mod tests;
