use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::JsonBody;

/// Names of topics (answer to GET_ALL_TOPIC_LIST_FROM_NAMESERVER, 206, and its relatives).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopicList {
    /// A broker of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broker_addr: Option<String>,
    /// The names.
    pub topic_list: Vec<String>,
}

impl JsonBody for TopicList {
    const NAME: &'static str = "TopicList";
}

/// The values of a namespace (answer to GET_KVLIST_BY_NAMESPACE, 219).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KVTable {
    /// Values by key.
    pub table: BTreeMap<String, String>,
}

impl JsonBody for KVTable {
    const NAME: &'static str = "KVTable";
}
