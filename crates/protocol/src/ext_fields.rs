use std::borrow::Cow;

/// The custom header of a command: text fields in the order they were added.
///
/// Headers have a dozen fields, so a scan of a small vector beats a map, and the order of the first
/// encoding is kept. Equal only when that order is equal too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtFields(Vec<(Cow<'static, str>, String)>);

impl ExtFields {
    /// No fields.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// The value of a field, or `None` when it is absent.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// Sets a field, replacing an earlier value.
    pub fn set(&mut self, name: impl Into<Cow<'static, str>>, value: impl Into<String>) {
        let name = name.into();
        let value = value.into();
        match self.0.iter_mut().find(|(key, _)| *key == name) {
            Some(entry) => entry.1 = value,
            None => self.0.push((name, value)),
        }
    }

    /// All fields, in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_ref(), value.as_str()))
    }

    /// The number of fields.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The most fields of one header that are compared each with each. No real header has as many, but
/// a hostile one of some megabytes would keep its reader busy for hours.
const SCANNED: usize = 64;

/// Of two fields of one name the later one counts. More than 64 fields end up in the order of their
/// names.
impl<N: Into<Cow<'static, str>>, V: Into<String>> FromIterator<(N, V)> for ExtFields {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(fields: I) -> Self {
        let mut all: Vec<(Cow<'static, str>, String)> = fields
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        if all.len() <= SCANNED {
            let mut few = Self::new();
            for (name, value) in all {
                few.set(name, value);
            }
            return few;
        }
        all.reverse();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all.dedup_by(|later, kept| later.0 == kept.0);
        Self(all)
    }
}
