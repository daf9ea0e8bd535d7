use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{JsonBody, MessageModel};
use crate::MessageQueue;

/// A client's question for its queues (QUERY_ASSIGNMENT, 400).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct QueryAssignmentRequestBody {
    /// The client.
    pub client_id: String,
    /// Its group.
    pub consumer_group: String,
    /// Whether members share the queues.
    pub message_model: MessageModel,
    /// The name of the allocation strategy.
    pub strategy_name: String,
    /// The topic.
    pub topic: String,
}

impl JsonBody for QueryAssignmentRequestBody {
    const NAME: &'static str = "QueryAssignmentRequestBody";
}

/// The answer to QUERY_ASSIGNMENT.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct QueryAssignmentResponseBody {
    /// The queues of the client. `None` means that the broker has no answer, for a group or a
    /// strategy it does not know: keep what you have. An empty list means: you have nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_queue_assignments: Option<Vec<MessageQueueAssignment>>,
}

impl JsonBody for QueryAssignmentResponseBody {
    const NAME: &'static str = "QueryAssignmentResponseBody";
}

/// A queue and how to consume it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageQueueAssignment {
    /// Further settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachments: Option<BTreeMap<String, String>>,
    /// The queue; id -1 stands for all queues of the broker.
    pub message_queue: MessageQueue,
    /// Pull or pop.
    #[serde(default)]
    pub mode: MessageRequestMode,
}

/// How a group receives the messages of a topic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[non_exhaustive]
pub enum MessageRequestMode {
    /// Each queue belongs to one member. The default.
    #[default]
    Pull,
    /// The broker hands out messages one by one.
    Pop,
    /// A name that this crate does not know.
    #[serde(other)]
    Unknown,
}

/// Chooses between pull and pop (SET_MESSAGE_REQUEST_MODE, 401).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SetMessageRequestModeRequestBody {
    /// The group.
    pub consumer_group: String,
    /// The choice.
    pub mode: MessageRequestMode,
    /// How many other members' queues each member pops too; 0 for all queues.
    pub pop_share_queue_num: i32,
    /// The topic.
    pub topic: String,
}

impl JsonBody for SetMessageRequestModeRequestBody {
    const NAME: &'static str = "SetMessageRequestModeRequestBody";
}

/// The choices of a broker (answer to GET_ALL_MESSAGE_REQUEST_MODE, 402).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MessageRequestModeSerializeWrapper {
    /// Topic → group → choice.
    pub message_request_mode_map:
        BTreeMap<String, BTreeMap<String, SetMessageRequestModeRequestBody>>,
}

impl JsonBody for MessageRequestModeSerializeWrapper {
    const NAME: &'static str = "MessageRequestModeSerializeWrapper";
}
