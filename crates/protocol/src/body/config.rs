use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::JsonBody;
use super::route::TopicQueueMappingInfo;

/// The settings of a topic (answer to GET_TOPIC_CONFIG, 351, and part of a registration).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopicConfig {
    /// Attributes by name.
    pub attributes: BTreeMap<String, String>,
    /// Whether the topic is an ordered one.
    pub order: bool,
    /// Permission bits, see [`Permission`](super::Permission).
    pub perm: i32,
    /// Queues that can be read.
    pub read_queue_nums: i32,
    /// `SINGLE_TAG` or `MULTI_TAG`.
    pub topic_filter_type: String,
    /// The topic.
    pub topic_name: String,
    /// Flags of the topic.
    pub topic_sys_flag: i32,
    /// Queues that can be written.
    pub write_queue_nums: i32,
}

impl Default for TopicConfig {
    fn default() -> Self {
        Self {
            attributes: BTreeMap::new(),
            order: false,
            perm: 6,
            read_queue_nums: 16,
            topic_filter_type: "SINGLE_TAG".to_owned(),
            topic_name: String::new(),
            topic_sys_flag: 0,
            write_queue_nums: 16,
        }
    }
}

impl JsonBody for TopicConfig {
    const NAME: &'static str = "TopicConfig";
}

/// The settings of a consumer group (UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, 200).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubscriptionGroupConfig {
    /// Attributes by name.
    pub attributes: BTreeMap<String, String>,
    /// The broker that consumers pull from.
    pub broker_id: i64,
    /// Whether the group may broadcast.
    pub consume_broadcast_enable: bool,
    /// Whether the group may consume at all.
    pub consume_enable: bool,
    /// Whether it may start at the first message.
    pub consume_from_min_enable: bool,
    /// Whether the broker keeps it to the order of messages.
    pub consume_message_orderly: bool,
    /// How long a message may be consumed, in minutes.
    pub consume_timeout_minute: i32,
    /// The group.
    pub group_name: String,
    /// The delays between tries, as Java's JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_retry_policy: Option<serde_json::Value>,
    /// Flags of the group.
    pub group_sys_flag: i32,
    /// Whether members are told when others come and go.
    pub notify_consumer_ids_changed_enable: bool,
    /// How often a message is tried before it goes to the dead-letter queue.
    pub retry_max_times: i32,
    /// The queues of the retry topic.
    pub retry_queue_nums: i32,
    /// The only subscriptions that are allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscription_data_set: Option<Vec<SimpleSubscriptionData>>,
    /// The broker that a slow consumer is sent to.
    pub which_broker_when_consume_slowly: i64,
}

impl SubscriptionGroupConfig {
    /// A group with Java's settings.
    pub fn new(group_name: impl Into<String>) -> Self {
        Self {
            group_name: group_name.into(),
            ..Self::default()
        }
    }
}

impl Default for SubscriptionGroupConfig {
    fn default() -> Self {
        Self {
            attributes: BTreeMap::new(),
            broker_id: 0,
            consume_broadcast_enable: true,
            consume_enable: true,
            consume_from_min_enable: true,
            consume_message_orderly: false,
            consume_timeout_minute: 15,
            group_name: String::new(),
            group_retry_policy: None,
            group_sys_flag: 0,
            notify_consumer_ids_changed_enable: true,
            retry_max_times: 16,
            retry_queue_nums: 1,
            subscription_data_set: None,
            which_broker_when_consume_slowly: 1,
        }
    }
}

impl JsonBody for SubscriptionGroupConfig {
    const NAME: &'static str = "SubscriptionGroupConfig";
}

/// A subscription that a group's settings allow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SimpleSubscriptionData {
    /// The expression.
    pub expression: String,
    /// `TAG` or `SQL92`.
    pub expression_type: String,
    /// The topic.
    pub topic: String,
    /// When it was made, in milliseconds since 1970.
    pub version: i64,
}

/// The groups of a broker (answer to GET_ALL_SUBSCRIPTIONGROUP_CONFIG, 201).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubscriptionGroupWrapper {
    /// The version of the settings.
    pub data_version: DataVersion,
    /// Group → topic → what is forbidden.
    pub forbidden_table: BTreeMap<String, BTreeMap<String, i32>>,
    /// Settings by group.
    pub subscription_group_table: BTreeMap<String, SubscriptionGroupConfig>,
}

impl JsonBody for SubscriptionGroupWrapper {
    const NAME: &'static str = "SubscriptionGroupWrapper";
}

/// The settings of several groups (UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, 225).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubscriptionGroupList {
    /// The settings.
    pub group_config_list: Vec<SubscriptionGroupConfig>,
}

impl JsonBody for SubscriptionGroupList {
    const NAME: &'static str = "SubscriptionGroupList";
}

/// The topics of a broker (answer to GET_ALL_TOPIC_CONFIG, 21, and part of a registration).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopicConfigSerializeWrapper {
    /// The version of the settings.
    pub data_version: DataVersion,
    /// The version of the static topics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mapping_data_version: Option<DataVersion>,
    /// Settings by topic.
    pub topic_config_table: BTreeMap<String, TopicConfig>,
    /// Static topics in full, as Java's JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic_queue_mapping_detail_map: Option<BTreeMap<String, serde_json::Value>>,
    /// Static topics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic_queue_mapping_info_map: Option<BTreeMap<String, TopicQueueMappingInfo>>,
}

impl JsonBody for TopicConfigSerializeWrapper {
    const NAME: &'static str = "TopicConfigSerializeWrapper";
}

/// What a broker registers (REGISTER_BROKER, 103), when the header does not say that it is
/// compressed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RegisterBrokerBody {
    /// Filter servers; long out of use.
    pub filter_server_list: Vec<String>,
    /// The broker's topics.
    pub topic_config_serialize_wrapper: TopicConfigSerializeWrapper,
}

impl JsonBody for RegisterBrokerBody {
    const NAME: &'static str = "RegisterBrokerBody";
}

/// The version of settings, to tell newer ones from older ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DataVersion {
    /// Counts changes.
    pub counter: i64,
    /// Counts masters.
    pub state_version: i64,
    /// The time of the last change, in milliseconds since 1970.
    pub timestamp: i64,
}

impl JsonBody for DataVersion {
    const NAME: &'static str = "DataVersion";
}
