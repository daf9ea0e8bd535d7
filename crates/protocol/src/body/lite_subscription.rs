use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::JsonBody;

/// Subscribes lite topics, or ceases to (LITE_SUBSCRIPTION_CTL, 200071).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LiteSubscriptionCtlRequestBody {
    /// The changes.
    pub subscription_set: Vec<LiteSubscriptionDTO>,
}

impl JsonBody for LiteSubscriptionCtlRequestBody {
    const NAME: &'static str = "LiteSubscriptionCtlRequestBody";
}

/// One change of a client's lite topics.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LiteSubscriptionDTO {
    /// What to do.
    pub action: LiteSubscriptionAction,
    /// The client.
    pub client_id: String,
    /// Its group.
    pub group: String,
    /// The lite topics.
    pub lite_topic_set: BTreeSet<String>,
    /// Where to start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset_option: Option<OffsetOption>,
    /// The topic above the lite topics.
    pub topic: String,
    /// Tells newer changes from older ones.
    pub version: i64,
}

/// What to do with lite topics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum LiteSubscriptionAction {
    /// Subscribe these too.
    #[default]
    PartialAdd,
    /// Cease to subscribe these.
    PartialRemove,
    /// Subscribe these and no others.
    CompleteAdd,
    /// Cease to subscribe any.
    CompleteRemove,
    /// A name that this crate does not know.
    #[serde(other)]
    Unknown,
}

/// Where a client starts on a lite topic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OffsetOption {
    /// What the value means.
    #[serde(rename = "type")]
    pub kind: OffsetOptionType,
    /// The value.
    pub value: i64,
}

/// What the value of an [`OffsetOption`] means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum OffsetOptionType {
    /// A rule by number.
    #[default]
    Policy,
    /// An offset.
    Offset,
    /// So many messages before the end.
    TailN,
    /// A store time in milliseconds since 1970.
    Timestamp,
    /// A name that this crate does not know.
    #[serde(other)]
    Unknown,
}
