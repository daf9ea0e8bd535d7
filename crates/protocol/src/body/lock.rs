use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::JsonBody;
use crate::MessageQueue;

/// The queues that a client wants to have to itself (LOCK_BATCH_MQ, 41).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LockBatchRequestBody {
    /// The client.
    pub client_id: String,
    /// Its group.
    pub consumer_group: String,
    /// The queues.
    pub mq_set: BTreeSet<MessageQueue>,
    /// Whether the broker leaves its replicas out.
    pub only_this_broker: bool,
}

impl JsonBody for LockBatchRequestBody {
    const NAME: &'static str = "LockBatchRequestBody";
}

/// The queues that a client gives back (UNLOCK_BATCH_MQ, 42).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UnlockBatchRequestBody {
    /// The client.
    pub client_id: String,
    /// Its group.
    pub consumer_group: String,
    /// The queues.
    pub mq_set: BTreeSet<MessageQueue>,
    /// Whether the broker leaves its replicas out.
    pub only_this_broker: bool,
}

impl JsonBody for UnlockBatchRequestBody {
    const NAME: &'static str = "UnlockBatchRequestBody";
}

/// The queues that the client has now (answer to LOCK_BATCH_MQ).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LockBatchResponseBody {
    /// The queues.
    #[serde(rename = "lockOKMQSet")]
    pub lock_ok_mq_set: BTreeSet<MessageQueue>,
}

impl JsonBody for LockBatchResponseBody {
    const NAME: &'static str = "LockBatchResponseBody";
}
