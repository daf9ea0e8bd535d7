/// The language a peer says it is written in (Java `LanguageCode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum LanguageCode {
    /// Java, and what every server answers.
    Java,
    /// C++.
    Cpp,
    /// .NET.
    Dotnet,
    /// Python.
    Python,
    /// Delphi.
    Delphi,
    /// Erlang.
    Erlang,
    /// Ruby.
    Ruby,
    /// Anything that has no name of its own, also a name or byte this crate does not know.
    #[default]
    Other,
    /// HTTP proxies.
    Http,
    /// Go.
    Go,
    /// PHP.
    Php,
    /// Open messaging.
    Oms,
    /// Rust, what this library sends.
    Rust,
    /// Node.js.
    NodeJs,
}

/// In the order of the codes, which are the numbers of the variants too.
const TABLE: [(LanguageCode, u8, &str); 14] = [
    (LanguageCode::Java, 0, "JAVA"),
    (LanguageCode::Cpp, 1, "CPP"),
    (LanguageCode::Dotnet, 2, "DOTNET"),
    (LanguageCode::Python, 3, "PYTHON"),
    (LanguageCode::Delphi, 4, "DELPHI"),
    (LanguageCode::Erlang, 5, "ERLANG"),
    (LanguageCode::Ruby, 6, "RUBY"),
    (LanguageCode::Other, 7, "OTHER"),
    (LanguageCode::Http, 8, "HTTP"),
    (LanguageCode::Go, 9, "GO"),
    (LanguageCode::Php, 10, "PHP"),
    (LanguageCode::Oms, 11, "OMS"),
    (LanguageCode::Rust, 12, "RUST"),
    (LanguageCode::NodeJs, 13, "NODE_JS"),
];

impl LanguageCode {
    /// The name in JSON headers.
    pub fn name(self) -> &'static str {
        TABLE.get(self as usize).map_or("OTHER", |row| row.2)
    }

    /// The byte in binary headers.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The language of a JSON header's name; an unknown one is [`LanguageCode::Other`].
    pub fn from_name(name: &str) -> Self {
        TABLE
            .iter()
            .find(|row| row.2 == name)
            .map_or(Self::Other, |row| row.0)
    }

    /// The language of a binary header's byte; an unknown one is [`LanguageCode::Other`].
    pub fn from_code(code: u8) -> Self {
        TABLE
            .get(usize::from(code))
            .map_or(Self::Other, |row| row.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_lies_at_its_code() {
        for (at, (language, code, name)) in (0..).zip(TABLE) {
            assert_eq!((language as u8, code), (at, at), "{name}");
            assert_eq!((language.code(), language.name()), (code, name));
            assert_eq!(LanguageCode::from_code(code), language);
            assert_eq!(LanguageCode::from_name(name), language);
        }
        assert_eq!(LanguageCode::from_code(14), LanguageCode::Other);
        assert_eq!(LanguageCode::from_name("COBOL"), LanguageCode::Other);
    }
}
