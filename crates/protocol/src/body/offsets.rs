use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{JsonBody, QueueMap};
use crate::MessageQueue;

/// Offsets by queue: where to go on (RESET_CONSUMER_CLIENT_OFFSET, 220, and the answer to
/// INVOKE_BROKER_TO_RESET_OFFSET, 222).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResetOffsetBody {
    /// The offsets.
    pub offset_table: QueueMap<i64>,
}

impl JsonBody for ResetOffsetBody {
    const NAME: &'static str = "ResetOffsetBody";
}

/// Offsets by queue as a broadcasting consumer keeps them in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OffsetSerializeWrapper {
    /// The offsets.
    pub offset_table: QueueMap<i64>,
}

impl JsonBody for OffsetSerializeWrapper {
    const NAME: &'static str = "OffsetSerializeWrapper";
}

/// How far clients are (answers to GET_CONSUMER_STATUS_FROM_CLIENT, 221, and
/// INVOKE_BROKER_TO_GET_CONSUMER_STATUS, 223).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GetConsumerStatusBody {
    /// A broker's answer: client id → its offsets.
    pub consumer_table: BTreeMap<String, QueueMap<i64>>,
    /// A client's answer: its offsets.
    pub message_queue_table: QueueMap<i64>,
}

impl JsonBody for GetConsumerStatusBody {
    const NAME: &'static str = "GetConsumerStatusBody";
}

/// The offsets of a topic (answer to GET_TOPIC_STATS_INFO, 202).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopicStatsTable {
    /// The queues of the broker.
    pub offset_table: QueueMap<TopicOffset>,
    /// Messages a second that are sent to it.
    pub topic_put_tps: f64,
}

impl JsonBody for TopicStatsTable {
    const NAME: &'static str = "TopicStatsTable";
}

/// The ends of a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopicOffset {
    /// When its last message was stored, in milliseconds since 1970; 0 when it has none.
    pub last_update_timestamp: i64,
    /// The offset after the last message.
    pub max_offset: i64,
    /// The smallest offset.
    pub min_offset: i64,
}

/// How far a group is (answer to GET_CONSUME_STATS, 208).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConsumeStats {
    /// Messages a second that it consumes.
    pub consume_tps: f64,
    /// The queues of the broker.
    pub offset_table: QueueMap<OffsetWrapper>,
}

impl JsonBody for ConsumeStats {
    const NAME: &'static str = "ConsumeStats";
}

/// How far a group is in a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OffsetWrapper {
    /// The offset after the queue's last message.
    pub broker_offset: i64,
    /// The next offset to consume.
    pub consumer_offset: i64,
    /// When the last consumed message was stored, in milliseconds since 1970.
    pub last_timestamp: i64,
    /// The next offset to pull.
    pub pull_offset: i64,
}

/// The times between which the messages of a group lie (answer to QUERY_CONSUME_TIME_SPAN, 303).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct QueryConsumeTimeSpanBody {
    /// One entry a queue.
    pub consume_time_span_set: Vec<QueueTimeSpan>,
}

impl JsonBody for QueryConsumeTimeSpanBody {
    const NAME: &'static str = "QueryConsumeTimeSpanBody";
}

/// The times of one queue, in milliseconds since 1970. Java servers write each once more as text,
/// which is not read here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueTimeSpan {
    /// When the next message to consume was stored.
    #[serde(default)]
    pub consume_time_stamp: i64,
    /// How long it has been waiting, in milliseconds.
    #[serde(default)]
    pub delay_time: i64,
    /// When the last message was stored.
    #[serde(default)]
    pub max_time_stamp: i64,
    /// The queue.
    pub message_queue: MessageQueue,
    /// When the first message was stored.
    #[serde(default)]
    pub min_time_stamp: i64,
}
