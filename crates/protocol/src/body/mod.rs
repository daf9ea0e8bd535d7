//! JSON bodies. Keys are written in Java's order, the alphabet's.

mod check_client;
mod cluster_info;
mod heartbeat;
mod route;

pub use check_client::CheckClientRequestBody;
pub use cluster_info::ClusterInfo;
pub use heartbeat::{
    ConsumeFromWhere, ConsumeType, ConsumerData, GetConsumerListByGroupResponseBody, HeartbeatData,
    MessageModel, ProducerData,
};
pub use route::{
    BrokerData, MASTER_ID, Permission, QueueData, TopicQueueMappingInfo, TopicRouteData,
};

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
