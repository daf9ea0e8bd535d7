//! Signing requests with a user's key (Java `AclClientRPCHook`, `AclSigner`).

use std::fmt;

use hmac_sha1_compact::HMAC;

use crate::{ExtFields, RemotingCommand, base64_text, compare_utf16};

/// The header field that names the user.
pub const ACCESS_KEY: &str = "AccessKey";
/// The header field of a temporary user's token.
pub const SECURITY_TOKEN: &str = "SecurityToken";
/// The header field of the signature.
pub const SIGNATURE: &str = "Signature";

/// A user and what it signs with (Java `SessionCredentials`).
///
/// Printing it shows the user only.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionCredentials {
    /// The user's name.
    pub access_key: String,
    /// The key, which is never sent.
    pub secret_key: String,
    /// A temporary user's token.
    pub security_token: Option<String>,
}

impl SessionCredentials {
    /// A user with a key.
    pub fn new(access_key: impl Into<String>, secret_key: impl Into<String>) -> Self {
        Self {
            access_key: access_key.into(),
            secret_key: secret_key.into(),
            security_token: None,
        }
    }

    /// Adds user, token and signature to a request.
    ///
    /// The signature covers header fields and body as they are now, so nothing may change them
    /// afterwards. A request that is signed once more, for a second try, gets a new signature.
    pub fn sign(&self, request: &mut RemotingCommand) {
        let fields = &mut request.ext_fields;
        fields.set(ACCESS_KEY, self.access_key.as_str());
        if let Some(token) = &self.security_token {
            fields.set(SECURITY_TOKEN, token.as_str());
        }
        let signature = signature(&request.ext_fields, request.body_bytes(), &self.secret_key);
        request.ext_fields.set(SIGNATURE, signature);
    }
}

impl fmt::Debug for SessionCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionCredentials")
            .field("access_key", &self.access_key)
            .finish_non_exhaustive()
    }
}

/// The signature of header fields and body: HMAC-SHA1 over the fields' values, in the order that
/// Java sorts their names in, and the body, as Base64 text. A field [`SIGNATURE`] is left out.
pub fn signature(fields: &ExtFields, body: &[u8], secret_key: &str) -> String {
    let mut sorted: Vec<(&str, &str)> = fields
        .iter()
        .filter(|(name, _)| *name != SIGNATURE)
        .collect();
    sorted.sort_by(|(a, _), (b, _)| compare_utf16(a, b));
    let mut content = Vec::with_capacity(body.len().saturating_add(256));
    for (_, value) in sorted {
        content.extend_from_slice(value.as_bytes());
    }
    content.extend_from_slice(body);
    base64_text::encode(&HMAC::mac(&content, secret_key.as_bytes()))
}
