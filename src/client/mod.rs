//! What producers and consumers share: topics' queues and brokers' addresses.

#[allow(dead_code, reason = "used by the client instance")]
pub(crate) mod broker_address_table;
#[allow(dead_code, reason = "used by the client instance")]
pub(crate) mod topic_publish_info;
