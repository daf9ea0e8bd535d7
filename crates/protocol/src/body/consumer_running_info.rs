use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{JsonBody, QueueMap};
use crate::SubscriptionData;

/// How a consumer does (answer to GET_CONSUMER_RUNNING_INFO, 307).
///
/// The admin tool prints nothing of a consumer that leaves out
/// [`PROP_CONSUME_TYPE`](Self::PROP_CONSUME_TYPE) or
/// [`PROP_CONSUMER_START_TIMESTAMP`](Self::PROP_CONSUMER_START_TIMESTAMP).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConsumerRunningInfo {
    /// The stacks of its threads, when they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jstack: Option<String>,
    /// Queues that it pops.
    pub mq_pop_table: QueueMap<PopProcessQueueInfo>,
    /// Queues that it pulls.
    pub mq_table: QueueMap<ProcessQueueInfo>,
    /// Its settings as text, and the properties named here.
    pub properties: BTreeMap<String, String>,
    /// Rates by topic.
    pub status_table: BTreeMap<String, ConsumeStatus>,
    /// What it subscribes.
    pub subscription_set: Vec<SubscriptionData>,
    /// Whatever the user adds.
    pub user_consumer_info: BTreeMap<String, String>,
}

impl ConsumerRunningInfo {
    /// Property: the name servers, each followed by a semicolon.
    pub const PROP_NAMESERVER_ADDR: &'static str = "PROP_NAMESERVER_ADDR";
    /// Property: the number of consuming threads.
    pub const PROP_THREADPOOL_CORE_SIZE: &'static str = "PROP_THREADPOOL_CORE_SIZE";
    /// Property: whether a queue's messages are consumed one after the other. The name has no
    /// second underscore.
    pub const PROP_CONSUME_ORDERLY: &'static str = "PROP_CONSUMEORDERLY";
    /// Property: the Java name of the consume type. Mandatory.
    pub const PROP_CONSUME_TYPE: &'static str = "PROP_CONSUME_TYPE";
    /// Property: the Java name of the client's version.
    pub const PROP_CLIENT_VERSION: &'static str = "PROP_CLIENT_VERSION";
    /// Property: when it was started, in milliseconds since 1970. Mandatory.
    pub const PROP_CONSUMER_START_TIMESTAMP: &'static str = "PROP_CONSUMER_START_TIMESTAMP";
}

impl JsonBody for ConsumerRunningInfo {
    const NAME: &'static str = "ConsumerRunningInfo";
}

/// A queue that is pulled. Times are in milliseconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProcessQueueInfo {
    /// Messages at hand.
    pub cached_msg_count: i32,
    /// The largest offset at hand.
    pub cached_msg_max_offset: i64,
    /// The smallest offset at hand.
    pub cached_msg_min_offset: i64,
    /// Bytes at hand, in MiB.
    #[serde(rename = "cachedMsgSizeInMiB")]
    pub cached_msg_size_in_mib: i32,
    /// The next offset to consume.
    pub commit_offset: i64,
    /// Whether the queue was given up (the wire name is Java's misspelling).
    #[serde(rename = "droped")]
    pub dropped: bool,
    /// When it was last consumed from.
    pub last_consume_timestamp: i64,
    /// When it was last locked.
    pub last_lock_timestamp: i64,
    /// When it was last pulled.
    pub last_pull_timestamp: i64,
    /// Whether it is locked.
    pub locked: bool,
    /// Messages taken by an orderly consumer and not yet committed.
    pub transaction_msg_count: i32,
    /// The largest offset of those.
    pub transaction_msg_max_offset: i64,
    /// The smallest offset of those.
    pub transaction_msg_min_offset: i64,
    /// How often giving it up was put off.
    pub try_unlock_times: i64,
}

/// A queue that is popped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PopProcessQueueInfo {
    /// Whether the queue was given up (the wire name is Java's misspelling).
    #[serde(rename = "droped")]
    pub dropped: bool,
    /// When it was last popped, in milliseconds since 1970.
    pub last_pop_timestamp: i64,
    /// Messages not yet acknowledged.
    pub wait_ack_count: i32,
}

/// The rates of a consumer on one topic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConsumeStatus {
    /// Messages that failed, within the last hour.
    pub consume_failed_msgs: i64,
    /// Messages a second that failed.
    #[serde(rename = "consumeFailedTPS")]
    pub consume_failed_tps: f64,
    /// Messages a second that were consumed.
    #[serde(rename = "consumeOKTPS")]
    pub consume_ok_tps: f64,
    /// Milliseconds a batch takes to consume.
    #[serde(rename = "consumeRT")]
    pub consume_rt: f64,
    /// Milliseconds a pull takes.
    #[serde(rename = "pullRT")]
    pub pull_rt: f64,
    /// Messages a second that were pulled.
    #[serde(rename = "pullTPS")]
    pub pull_tps: f64,
}

/// What became of one message (answer to CONSUME_MESSAGE_DIRECTLY, 309).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConsumeMessageDirectlyResult {
    /// Whether an orderly listener's results are committed by themselves.
    pub auto_commit: bool,
    /// What the listener answered.
    pub consume_result: CMResult,
    /// Whether the listener is an orderly one.
    pub order: bool,
    /// The failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
    /// How long it took, in milliseconds.
    pub spent_time_mills: i64,
}

impl Default for ConsumeMessageDirectlyResult {
    fn default() -> Self {
        Self {
            auto_commit: true,
            consume_result: CMResult::default(),
            order: false,
            remark: None,
            spent_time_mills: 0,
        }
    }
}

impl JsonBody for ConsumeMessageDirectlyResult {
    const NAME: &'static str = "ConsumeMessageDirectlyResult";
}

/// What a listener answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum CMResult {
    /// Consumed.
    #[default]
    #[serde(rename = "CR_SUCCESS")]
    Success,
    /// To be tried later.
    #[serde(rename = "CR_LATER")]
    Later,
    /// Orderly: to be tried again.
    #[serde(rename = "CR_ROLLBACK")]
    Rollback,
    /// Orderly: committed.
    #[serde(rename = "CR_COMMIT")]
    Commit,
    /// It failed.
    #[serde(rename = "CR_THROW_EXCEPTION")]
    ThrowException,
    /// It answered nothing.
    #[serde(rename = "CR_RETURN_NULL")]
    ReturnNull,
    /// A name that this crate does not know.
    #[serde(other)]
    Unknown,
}
