use serde::{Deserialize, Serialize};

use super::JsonBody;
use crate::MessageQueue;

/// What became of a message that was sent, as text that Java programs hand on
/// (`SendResult#encoderSendResultToJson`); it is in no request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SendResultText {
    /// The queue it went to.
    pub message_queue: MessageQueue,
    /// The message's unique key.
    pub msg_id: String,
    /// The id that tells broker address and commit-log offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset_msg_id: Option<String>,
    /// Its offset in the queue.
    #[serde(default)]
    pub queue_offset: i64,
    /// What a message with a time of its own can be taken back with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recall_handle: Option<String>,
    /// The broker's region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region_id: Option<String>,
    /// How safely it is stored: a name of Java's `SendStatus`.
    pub send_status: String,
    /// Whether the broker wants traces; yes when nothing is said.
    #[serde(default = "yes")]
    pub trace_on: bool,
    /// The id of the transaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction_id: Option<String>,
}

const fn yes() -> bool {
    true
}

impl JsonBody for SendResultText {
    const NAME: &'static str = "SendResult";
}
