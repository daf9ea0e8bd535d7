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
        TABLE
            .iter()
            .find(|row| row.0 == self)
            .map_or("OTHER", |row| row.2)
    }

    /// The byte in binary headers.
    pub fn code(self) -> u8 {
        TABLE
            .iter()
            .find(|row| row.0 == self)
            .map_or(7, |row| row.1)
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
            .iter()
            .find(|row| row.1 == code)
            .map_or(Self::Other, |row| row.0)
    }
}
