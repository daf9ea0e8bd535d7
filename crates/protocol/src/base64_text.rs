//! The two Base64 alphabets that Java's `Base64` class names basic and URL-safe, both with padding.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

pub(crate) fn encode_url_safe(bytes: &[u8]) -> String {
    URL_SAFE.encode(bytes)
}

pub(crate) fn decode_url_safe(text: &str) -> Option<Vec<u8>> {
    URL_SAFE.decode(text).ok()
}
