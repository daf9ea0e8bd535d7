use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{BrokerData, JsonBody};

/// The brokers of all clusters (answer to GET_BROKER_CLUSTER_INFO, 106).
///
/// Java servers write the broker ids as bare numbers here, whatever the version of the request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterInfo {
    /// Brokers by name.
    pub broker_addr_table: BTreeMap<String, BrokerData>,
    /// Broker names by cluster.
    pub cluster_addr_table: BTreeMap<String, Vec<String>>,
}

impl JsonBody for ClusterInfo {
    const NAME: &'static str = "ClusterInfo";
}
