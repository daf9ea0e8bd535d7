use std::fmt;
use std::ops::Range;

/// The custom header of a command: text fields in the order they were added.
///
/// Headers have a dozen fields, so a scan of a small vector beats a map, and the order of the first
/// encoding is kept. Names and values lie in one text, since a text of its own for each would be
/// most of the cost of a small command. Equal only when that order is equal too.
#[derive(Clone, Default)]
pub struct ExtFields {
    text: String,
    fields: Vec<Field>,
    /// A bit for each name there may be; without its bit a name is not looked for.
    names: u64,
}

/// Where a field lies in the text.
#[derive(Debug, Clone)]
struct Field {
    name: Range<usize>,
    value: Range<usize>,
}

/// What a header of a dozen fields has room in.
const TEXT_CAPACITY: usize = 256;
const FIELDS_CAPACITY: usize = 16;

impl ExtFields {
    /// No fields.
    pub const fn new() -> Self {
        Self {
            text: String::new(),
            fields: Vec::new(),
            names: 0,
        }
    }

    /// The value of a field, or `None` when it is absent.
    pub fn get(&self, name: &str) -> Option<&str> {
        let field = self.fields.get(self.position(name)?)?;
        self.text.get(field.value.clone())
    }

    /// Sets a field, replacing an earlier value.
    pub fn set(&mut self, name: impl AsRef<str>, value: impl AsRef<str>) {
        let (name, value) = (name.as_ref(), value.as_ref());
        match self.position(name) {
            Some(at) => self.replace(at, value),
            None => {
                if self.fields.is_empty() {
                    self.fields.reserve(FIELDS_CAPACITY);
                    self.text.reserve(TEXT_CAPACITY);
                }
                self.push(name, value);
            }
        }
    }

    /// Sets all fields that have a value. The names are different ones, so where there are no fields
    /// yet, none is looked for.
    pub(crate) fn set_all<const N: usize>(
        &mut self,
        names: &FieldNames<N>,
        values: &[Option<&str>; N],
    ) {
        if !self.is_empty() {
            for (name, value) in names.all().into_iter().zip(values) {
                if let Some(value) = value {
                    self.set(name, value);
                }
            }
            return;
        }
        let length = values
            .iter()
            .flatten()
            .fold(names.text.len(), |sum, value| {
                sum.saturating_add(value.len())
            });
        self.text = String::with_capacity(length.max(TEXT_CAPACITY));
        self.fields = Vec::with_capacity(N.max(FIELDS_CAPACITY));
        self.names = names.bits;
        self.text.push_str(names.text);
        for ((start, end), value) in names.places.iter().zip(values) {
            if let Some(value) = value {
                let middle = self.text.len();
                self.text.push_str(value);
                self.fields.push(Field {
                    name: *start..*end,
                    value: middle..self.text.len(),
                });
            }
        }
    }

    /// Adds a field whose name is known to be new.
    #[inline]
    fn push(&mut self, name: &str, value: &str) {
        let start = self.text.len();
        self.text.push_str(name);
        let middle = self.text.len();
        self.text.push_str(value);
        self.names |= bit_of(name.as_bytes());
        self.fields.push(Field {
            name: start..middle,
            value: middle..self.text.len(),
        });
    }

    /// The new value goes to the end of the text. The old one's place is lost, unless it is the end:
    /// a field is set anew once or twice, by hooks.
    fn replace(&mut self, at: usize, value: &str) {
        let Some(field) = self.fields.get_mut(at) else {
            return;
        };
        if field.value.end == self.text.len() {
            self.text.truncate(field.value.start);
        }
        let start = self.text.len();
        self.text.push_str(value);
        field.value = start..self.text.len();
    }

    #[inline]
    fn position(&self, name: &str) -> Option<usize> {
        if self.names & bit_of(name.as_bytes()) == 0 {
            return None;
        }
        self.position_among(name.as_bytes())
    }

    fn position_among(&self, name: &[u8]) -> Option<usize> {
        let text = self.text.as_bytes();
        let is_it = |field: &Field| {
            field.name.len() == name.len() && text.get(field.name.clone()) == Some(name)
        };
        self.fields.iter().position(is_it)
    }

    /// All fields, in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let text = |range: &Range<usize>| self.text.get(range.clone()).unwrap_or_default();
        self.fields
            .iter()
            .map(move |field| (text(&field.name), text(&field.value)))
    }

    /// The same as bytes.
    #[inline]
    pub(crate) fn iter_bytes(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let text = self.text.as_bytes();
        let bytes = move |range: &Range<usize>| text.get(range.clone()).unwrap_or_default();
        self.fields
            .iter()
            .map(move |field| (bytes(&field.name), bytes(&field.value)))
    }

    /// The number of fields.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The bytes of all names and values, or somewhat more.
    pub(crate) fn text_length(&self) -> usize {
        self.text.len()
    }
}

/// Names of different bits are different.
#[inline]
pub(crate) const fn bit_of(bytes: &[u8]) -> u64 {
    let (first, last) = match bytes {
        [] => (0, 0),
        [only] => (*only as u32, *only as u32),
        [first, .., last] => (*first as u32, *last as u32),
    };
    let mixed = first
        .wrapping_add(last.wrapping_mul(5))
        .wrapping_add((bytes.len() as u32).wrapping_mul(11));
    1_u64.wrapping_shl(mixed)
}

/// The names of a header's fields, gathered at build time so that one copy does for all.
#[derive(Debug)]
pub(crate) struct FieldNames<const N: usize> {
    text: &'static str,
    /// Where each begins and ends.
    places: [(usize, usize); N],
    bits: u64,
}

impl<const N: usize> FieldNames<N> {
    /// `N` names with a blank between each two.
    #[expect(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "runs at build time, where a mistake is seen"
    )]
    pub(crate) const fn new(text: &'static str) -> Self {
        let bytes = text.as_bytes();
        let mut places = [(0, 0); N];
        let mut bits = 0;
        let mut number = 0;
        let mut at = 0;
        while number < N {
            let start = at;
            while at < bytes.len() && bytes[at] != b' ' {
                at += 1;
            }
            places[number] = (start, at);
            bits |= bit_of(bytes.split_at(at).0.split_at(start).1);
            number += 1;
            at += 1;
        }
        assert!(
            at == bytes.len() + 1,
            "there are as many names as were said"
        );
        Self { text, places, bits }
    }

    pub(crate) fn all(&self) -> [&'static str; N] {
        self.places
            .map(|(start, end)| self.text.get(start..end).unwrap_or_default())
    }
}

impl PartialEq for ExtFields {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for ExtFields {}

impl fmt::Debug for ExtFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// The most fields of one header that are compared each with each. No real header has as many, but
/// a hostile one of some megabytes would keep its reader busy for hours.
const SCANNED: usize = 64;

/// Gathers the fields of a header that is being read; of two of one name the later one counts.
#[derive(Debug, Default)]
pub(crate) struct ReceivedFields {
    fields: ExtFields,
    /// Where the name of a field begins whose value has not come yet.
    begun: usize,
}

impl ReceivedFields {
    pub(crate) fn push(&mut self, name: &str, value: &str) {
        self.begin(name);
        self.end(|text| text.push_str(value));
    }

    /// Takes down the name of a field.
    pub(crate) fn begin(&mut self, name: &str) {
        let text = &mut self.fields.text;
        if text.is_empty() {
            self.fields.fields.reserve(FIELDS_CAPACITY);
            text.reserve(TEXT_CAPACITY);
        }
        self.begun = text.len();
        text.push_str(name);
    }

    /// Takes down its value, which `write` appends to the text.
    pub(crate) fn end(&mut self, write: impl FnOnce(&mut String)) {
        let ExtFields {
            text,
            fields,
            names,
        } = &mut self.fields;
        let name = self.begun..text.len();
        write(text);
        let value = name.end..text.len();
        let name_of = |field: &Field| text.get(field.name.clone()).unwrap_or_default();
        let field = Field { name, value };
        let bit = bit_of(name_of(&field).as_bytes());
        let earlier = if fields.len() < SCANNED && *names & bit != 0 {
            fields
                .iter_mut()
                .find(|known| name_of(known) == name_of(&field))
        } else {
            None
        };
        *names |= bit;
        match earlier {
            Some(known) => *known = field,
            None => fields.push(field),
        }
    }

    /// The field that was begun has no value.
    pub(crate) fn leave_out(&mut self) {
        self.fields.text.truncate(self.begun);
    }

    pub(crate) fn finish(self) -> ExtFields {
        let mut all = self.fields;
        if all.len() > SCANNED {
            let ExtFields { text, fields, .. } = &mut all;
            let name_of = |field: &Field| text.get(field.name.clone()).unwrap_or_default();
            fields.reverse();
            fields.sort_by(|a, b| name_of(a).cmp(name_of(b)));
            fields.dedup_by(|earlier, kept| name_of(earlier) == name_of(kept));
        }
        all
    }
}

/// A name or a value: where it lies in the fields' text.
pub(crate) type Part = Range<usize>;

/// Gathers fields that lie in one text already, as those of a JSON header do: the text is taken as
/// it is, with all that stands between them.
#[derive(Debug)]
pub(crate) struct FieldsInText(ExtFields);

impl FieldsInText {
    /// The fields of a text, of which there are none yet.
    pub(crate) fn new(text: &str) -> Self {
        Self(ExtFields {
            text: text.to_owned(),
            fields: Vec::with_capacity(FIELDS_CAPACITY),
            names: 0,
        })
    }

    /// A part that does not stand in the text as it is, for which `write` appends it; `None` when
    /// `write` says so.
    pub(crate) fn append(&mut self, write: impl FnOnce(&mut String) -> Option<()>) -> Option<Part> {
        let text = &mut self.0.text;
        let start = text.len();
        write(text)?;
        Some(start..text.len())
    }

    /// Adds a field. `None` when there is one of that name, or there are very many: then
    /// [`ReceivedFields`] has to decide.
    #[inline]
    pub(crate) fn push(&mut self, name: Part, value: Part) -> Option<()> {
        let Self(fields) = self;
        let text = fields.text.as_bytes().get(name.clone())?;
        let bit = bit_of(text);
        let is_known = fields.names & bit != 0 && fields.position_among(text).is_some();
        if is_known || fields.len() == SCANNED {
            return None;
        }
        fields.names |= bit;
        fields.fields.push(Field { name, value });
        Some(())
    }

    pub(crate) fn finish(self) -> ExtFields {
        self.0
    }
}

/// Of two fields of one name the later one counts. More than 64 fields end up in the order of their
/// names.
impl<N: AsRef<str>, V: AsRef<str>> FromIterator<(N, V)> for ExtFields {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(fields: I) -> Self {
        let mut received = ReceivedFields::default();
        for (name, value) in fields {
            received.push(name.as_ref(), value.as_ref());
        }
        received.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: FieldNames<4> = FieldNames::new("a second b x");

    #[test]
    fn fields_set_all_at_once_are_those_set_one_by_one() {
        assert_eq!(NAMES.all(), ["a", "second", "b", "x"]);
        let values = [Some("1"), None, Some(""), Some("x")];
        for earlier in [None, Some("b"), Some("second"), Some("other")] {
            let mut fields = ExtFields::new();
            let mut expected = ExtFields::new();
            if let Some(name) = earlier {
                fields.set(name, "earlier");
                expected.set(name, "earlier");
            }
            fields.set_all(&NAMES, &values);
            for (name, value) in NAMES.all().into_iter().zip(values) {
                if let Some(value) = value {
                    expected.set(name, value);
                }
            }
            assert_eq!(fields, expected);
            for name in NAMES.all() {
                assert_eq!(fields.get(name), expected.get(name), "{name}");
            }
            fields.set("x", "later");
            assert_eq!(
                (fields.get("x"), fields.len()),
                (Some("later"), expected.len())
            );
        }
    }
}
