//! What the programs have in common that are driven by words and write one JSON object a line.
#![allow(dead_code, reason = "each program takes what it needs")]

use std::collections::HashMap;
use std::str::FromStr;
use std::time::Duration;

use serde_json::Value;

/// The `key=value` words.
#[derive(Debug, Default)]
pub(crate) struct Options(HashMap<String, String>);

impl Options {
    pub(crate) fn parse<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> Result<Self, String> {
        let words = words.into_iter().map(|word| {
            let word = word.as_ref();
            match word.split_once('=') {
                Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
                None => Err(format!("{word:?} is not key=value")),
            }
        });
        Ok(Self(words.collect::<Result<_, _>>()?))
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    pub(crate) fn text<'a>(&'a self, key: &str, default: &'a str) -> &'a str {
        self.get(key).unwrap_or(default)
    }

    pub(crate) fn number<T: FromStr>(&self, key: &str, default: T) -> Result<T, String> {
        match self.get(key) {
            Some(text) => text
                .parse()
                .map_err(|_| format!("{key}={text:?} is not a number in range")),
            None => Ok(default),
        }
    }

    pub(crate) fn millis(&self, key: &str, default: u64) -> Result<Duration, String> {
        Ok(Duration::from_millis(self.number(key, default)?))
    }

    pub(crate) fn flag(&self, key: &str) -> bool {
        self.text(key, "false") == "true"
    }
}

pub(crate) fn say(line: &Value) {
    println!("{line}");
}
