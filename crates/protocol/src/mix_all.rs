//! Names that clients and servers agree on (Java `MixAll`, `TopicValidator`).

/// The topic whose route and settings serve for topics that do not exist yet.
pub const AUTO_CREATE_TOPIC_KEY_TOPIC: &str = "TBW102";
/// The producer group of a client's own sends.
pub const CLIENT_INNER_PRODUCER_GROUP: &str = "CLIENT_INNER_PRODUCER";
/// Starts the name of a group's retry topic.
pub const RETRY_GROUP_TOPIC_PREFIX: &str = "%RETRY%";
/// Starts the name of a group's dead-letter topic.
pub const DLQ_GROUP_TOPIC_PREFIX: &str = "%DLQ%";

/// The topic in which messages of a group wait for their next try.
pub fn retry_topic(group: &str) -> String {
    format!("{RETRY_GROUP_TOPIC_PREFIX}{group}")
}
/// Starts the name of a light queue, which shares the messages of others.
pub const LMQ_PREFIX: &str = "%LMQ%";

/// The topic in which popped messages of a topic and a group wait for their next try
/// (Java `KeyBuilder#buildPopRetryTopicV1`).
pub fn pop_retry_topic_v1(topic: &str, group: &str) -> String {
    format!("{RETRY_GROUP_TOPIC_PREFIX}{group}_{topic}")
}

/// The same in the form that newer brokers can be told to use
/// (Java `KeyBuilder#buildPopRetryTopicV2`).
pub fn pop_retry_topic_v2(topic: &str, group: &str) -> String {
    format!("{RETRY_GROUP_TOPIC_PREFIX}{group}+{topic}")
}
