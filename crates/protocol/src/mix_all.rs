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
