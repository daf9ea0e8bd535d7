//! JSON bodies. Keys are written in Java's order, the alphabet's.

mod assignment;
mod batch_ack;
mod check_client;
mod cluster_info;
mod config;
mod connections;
mod consumer_running_info;
mod heartbeat;
mod lite_subscription;
mod lock;
mod name_server;
mod offsets;
mod order_topic_conf;
mod queue_map;
mod route;
mod send_result;

pub use assignment::{
    MessageQueueAssignment, MessageRequestMode, MessageRequestModeSerializeWrapper,
    QueryAssignmentRequestBody, QueryAssignmentResponseBody, SetMessageRequestModeRequestBody,
};
pub use batch_ack::{AckBitSet, BatchAck, BatchAckMessageRequestBody};
pub use check_client::CheckClientRequestBody;
pub use cluster_info::ClusterInfo;
pub use config::{
    DataVersion, RegisterBrokerBody, SimpleSubscriptionData, SubscriptionGroupConfig,
    SubscriptionGroupList, SubscriptionGroupWrapper, TopicConfig, TopicConfigSerializeWrapper,
};
pub use connections::{Connection, ConsumerConnection, ProducerConnection};
pub use consumer_running_info::{
    CMResult, ConsumeMessageDirectlyResult, ConsumeStatus, ConsumerRunningInfo,
    PopProcessQueueInfo, ProcessQueueInfo,
};
pub use heartbeat::{
    ConsumeFromWhere, ConsumeType, ConsumerData, GetConsumerListByGroupResponseBody, HeartbeatData,
    MessageModel, ProducerData,
};
pub use lite_subscription::{
    LiteSubscriptionAction, LiteSubscriptionCtlRequestBody, LiteSubscriptionDTO, OffsetOption,
    OffsetOptionType,
};
pub use lock::{LockBatchRequestBody, LockBatchResponseBody, UnlockBatchRequestBody};
pub use name_server::{KVTable, TopicList};
pub use offsets::{
    ConsumeStats, GetConsumerStatusBody, OffsetSerializeWrapper, OffsetWrapper,
    QueryConsumeTimeSpanBody, QueueTimeSpan, ResetOffsetBody, TopicOffset, TopicStatsTable,
};
pub use order_topic_conf::OrderTopicConf;
pub use queue_map::QueueMap;
pub use route::{
    BrokerData, MASTER_ID, Permission, QueueData, TopicQueueMappingInfo, TopicRouteData,
};
pub use send_result::SendResultText;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{CodecError, RemotingCommand, json};

/// A value that travels as the JSON body of a command.
pub trait JsonBody: Serialize + DeserializeOwned {
    /// The Java class name, for errors.
    const NAME: &'static str;

    /// The JSON text.
    ///
    /// # Errors
    /// A value that JSON has no form for.
    fn to_json(&self) -> Result<Vec<u8>, CodecError> {
        json::to_vec(Self::NAME, self)
    }

    /// Reads a body, in strict JSON or in the dialect of Java servers.
    ///
    /// # Errors
    /// [`CodecError::BadJson`].
    fn from_json(text: &[u8]) -> Result<Self, CodecError> {
        json::from_slice(Self::NAME, text)
    }

    /// Reads the body of a command.
    ///
    /// # Errors
    /// [`CodecError::BadJson`], also when there is no body.
    fn from_command(command: &RemotingCommand) -> Result<Self, CodecError> {
        Self::from_json(command.body_bytes())
    }
}
