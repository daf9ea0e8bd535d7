use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::JsonBody;
use crate::{CodecError, SubscriptionData, java_string_hash};

/// What a client tells every broker of itself (HEART_BEAT, 34).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HeartbeatData {
    /// The client.
    #[serde(rename = "clientID")]
    pub client_id: String,
    /// The groups it consumes for.
    pub consumer_data_set: Vec<ConsumerData>,
    /// 0 for the first form of heartbeats.
    pub heartbeat_fingerprint: i32,
    /// The groups it produces for.
    pub producer_data_set: Vec<ProducerData>,
    /// Whether subscriptions are left out, which only the second form of heartbeats does.
    pub without_sub: bool,
}

impl JsonBody for HeartbeatData {
    const NAME: &'static str = "HeartbeatData";
}

/// A producer group.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProducerData {
    /// The group.
    pub group_name: String,
}

/// A consumer group and what the client subscribes in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConsumerData {
    /// Where a new group starts.
    pub consume_from_where: ConsumeFromWhere,
    /// Whether messages are pushed to a listener.
    pub consume_type: ConsumeType,
    /// The group.
    pub group_name: String,
    /// Whether members share the queues.
    pub message_model: MessageModel,
    /// One entry a topic.
    pub subscription_data_set: Vec<SubscriptionData>,
    /// Whether the client runs in unit mode.
    pub unit_mode: bool,
}

/// How a consumer gets its messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum ConsumeType {
    /// The user pulls.
    ConsumeActively,
    /// A listener is called.
    #[default]
    ConsumePassively,
    /// The broker hands out messages one by one.
    ConsumePop,
    /// A name that this crate does not know.
    #[serde(other)]
    Unknown,
}

/// Whether the members of a group share the queues or each gets all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum MessageModel {
    /// Every member gets every message.
    Broadcasting,
    /// Each message goes to one member. The default.
    #[default]
    Clustering,
    /// Each message of a lite topic goes to one of the members that subscribe it.
    LiteSelective,
    /// A name that this crate does not know.
    #[serde(other)]
    Unknown,
}

/// Where a group starts on a queue for which the broker has no offset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum ConsumeFromWhere {
    /// At the end: only messages from now on. The default. A broker whose queue is so young that
    /// its first message is still in memory starts at 0 all the same.
    #[default]
    ConsumeFromLastOffset,
    /// At the first message that is still there.
    ConsumeFromFirstOffset,
    /// At the first message stored at or after a time.
    ConsumeFromTimestamp,
    /// A deprecated or unknown name; treated as the end, as Java does with the deprecated ones.
    #[serde(other)]
    Other,
}

/// The members of a group (answer to GET_CONSUMER_LIST_BY_GROUP, 38).
///
/// One entry a *connection*, in no order: a client that is connected twice is listed twice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GetConsumerListByGroupResponseBody {
    /// Client ids.
    pub consumer_id_list: Vec<String>,
}

impl JsonBody for GetConsumerListByGroupResponseBody {
    const NAME: &'static str = "GetConsumerListByGroupResponseBody";
}

impl HeartbeatData {
    /// The number that tells whether subscriptions changed (Java
    /// `HeartbeatData#computeHeartbeatFingerprint`): a hash of this heartbeat's text without the
    /// client's id and the versions of its subscriptions, so that all members that subscribe alike
    /// have the same. Java writes sets in the order of its hash tables; a heartbeat with several
    /// tags or groups may therefore differ from a Java member's, which costs full heartbeats only.
    ///
    /// # Errors
    /// None in practice: the data always has a JSON form.
    pub fn fingerprint(&self) -> Result<i32, CodecError> {
        let mut plain = Self {
            client_id: String::new(),
            heartbeat_fingerprint: 0,
            without_sub: false,
            ..self.clone()
        };
        for subscription in plain
            .consumer_data_set
            .iter_mut()
            .flat_map(|data| &mut data.subscription_data_set)
        {
            subscription.sub_version = 0;
        }
        let text = plain.to_json()?;
        Ok(java_string_hash(&String::from_utf8_lossy(&text)))
    }

    /// The same heartbeat without subscriptions, for a broker that has them under this fingerprint.
    #[must_use]
    pub fn without_subscriptions(mut self) -> Self {
        self.without_sub = true;
        for data in &mut self.consumer_data_set {
            data.subscription_data_set.clear();
        }
        self
    }

    /// The topics that a group of this heartbeat subscribes.
    pub fn topics_of(&self, group: &str) -> BTreeSet<&str> {
        self.consumer_data_set
            .iter()
            .filter(|data| data.group_name == group)
            .flat_map(|data| {
                data.subscription_data_set
                    .iter()
                    .map(|sub| sub.topic.as_str())
            })
            .collect()
    }
}
