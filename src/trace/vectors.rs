//! Lines that the published Java client gave; `ROCKETMQ_VECTORS` names another folder.

use std::path::PathBuf;

use serde::de::DeserializeOwned;

/// Checks each line of a file, and returns how many there were.
pub(crate) fn check<L: DeserializeOwned>(file: &str, is_right: impl Fn(L)) -> usize {
    let folder = std::env::var_os("ROCKETMQ_VECTORS").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors")),
        PathBuf::from,
    );
    let text = std::fs::read_to_string(folder.join(file)).unwrap();
    for (number, line) in text.lines().enumerate() {
        let parsed = serde_json::from_str(line);
        let parsed = parsed.unwrap_or_else(|error| panic!("{file}:{}: {error}", number + 1));
        is_right(parsed);
    }
    text.lines().count()
}
