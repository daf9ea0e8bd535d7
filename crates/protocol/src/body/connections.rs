use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{ConsumeFromWhere, ConsumeType, JsonBody, MessageModel};
use crate::SubscriptionData;

/// The connections of a consumer group (answer to GET_CONSUMER_CONNECTION_LIST, 203).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConsumerConnection {
    /// The connections.
    pub connection_set: Vec<Connection>,
    /// Where a new group starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consume_from_where: Option<ConsumeFromWhere>,
    /// Whether messages are pushed to a listener.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consume_type: Option<ConsumeType>,
    /// Whether members share the queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_model: Option<MessageModel>,
    /// Subscriptions by topic.
    pub subscription_table: BTreeMap<String, SubscriptionData>,
}

impl JsonBody for ConsumerConnection {
    const NAME: &'static str = "ConsumerConnection";
}

/// The connections of a producer group (answer to GET_PRODUCER_CONNECTION_LIST, 204).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProducerConnection {
    /// The connections.
    pub connection_set: Vec<Connection>,
}

impl JsonBody for ProducerConnection {
    const NAME: &'static str = "ProducerConnection";
}

/// One connection of a client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Connection {
    /// Its address, `ip:port`.
    pub client_addr: String,
    /// The client.
    pub client_id: String,
    /// The Java name of its language, see [`LanguageCode`](crate::LanguageCode).
    pub language: String,
    /// Its version ordinal.
    pub version: i32,
}
