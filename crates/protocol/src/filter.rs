use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::CodecError;

/// The language of a subscription's expression.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ExpressionType {
    /// Tags joined by `||`.
    #[default]
    #[serde(rename = "TAG")]
    Tag,
    /// A condition on properties, evaluated by the broker.
    #[serde(rename = "SQL92")]
    Sql92,
    /// A name that this crate does not know.
    #[serde(other)]
    Unknown,
}

impl ExpressionType {
    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sql92 => "SQL92",
            Self::Tag | Self::Unknown => "TAG",
        }
    }
}

/// A topic and which of its messages are wanted (Java `SubscriptionData`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubscriptionData {
    /// Whether a filter class decides, which then no client checks again.
    pub class_filter_mode: bool,
    /// Hash codes of the tags: what the broker filters by.
    pub code_set: BTreeSet<i32>,
    /// The language of the expression.
    pub expression_type: ExpressionType,
    /// The expression.
    pub sub_string: String,
    /// When the subscription was made or last changed, in milliseconds since 1970.
    pub sub_version: i64,
    /// The tags; empty means all messages.
    pub tags_set: BTreeSet<String>,
    /// The topic.
    pub topic: String,
}

/// Subscribes everything.
pub(crate) const SUB_ALL: &str = "*";

impl SubscriptionData {
    /// The subscription of a tag expression: tags joined by `||`. An empty expression and `*` mean
    /// all messages (Java `FilterAPI#buildSubscriptionData`).
    ///
    /// # Errors
    /// [`CodecError::BadExpression`] for an expression of separators only.
    pub fn build(topic: &str, expression: &str, sub_version: i64) -> Result<Self, CodecError> {
        let mut data = Self {
            topic: topic.to_owned(),
            sub_string: expression.to_owned(),
            sub_version,
            ..Self::default()
        };
        if expression.is_empty() || expression == SUB_ALL {
            SUB_ALL.clone_into(&mut data.sub_string);
            return Ok(data);
        }
        // Java's split drops empty strings at the end, so separators alone leave no part at all,
        // while parts of blanks do count as parts.
        if expression.split("||").all(str::is_empty) {
            return Err(CodecError::BadExpression {
                expression: expression.to_owned(),
            });
        }
        for tag in expression
            .split("||")
            .map(java_trim)
            .filter(|tag| !tag.is_empty())
        {
            data.code_set.insert(java_string_hash(tag));
            data.tags_set.insert(tag.to_owned());
        }
        Ok(data)
    }

    /// A tag of the list that looks like several that are separated by something else than `||`.
    pub fn odd_tag(&self) -> Option<&str> {
        let odd = |tag: &&String| tag.contains([',', ';', '|', ' ']);
        self.tags_set.iter().find(odd).map(String::as_str)
    }

    /// Whether a message is wanted whatever its tag is.
    pub fn matches_any_tag(&self) -> bool {
        self.tags_set.is_empty() || self.class_filter_mode
    }

    /// Whether a message with this tag is wanted. The broker compares hash codes only, so the
    /// client must look again; a message without tags is wanted by no tag list.
    pub fn matches_tag(&self, tag: Option<&str>) -> bool {
        self.matches_any_tag() || tag.is_some_and(|tag| self.tags_set.contains(tag))
    }
}

/// Java's `String#trim`: everything up to U+0020 at both ends.
fn java_trim(text: &str) -> &str {
    text.trim_matches(|c| c <= ' ')
}

/// Java's `String#hashCode`: over UTF-16 code units, wrapping.
pub fn java_string_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0_i32, |hash, unit| {
        hash.wrapping_mul(31).wrapping_add(i32::from(unit))
    })
}
