//! Request codes (Java `RequestCode`).

/// Send a message, header with long names.
pub const SEND_MESSAGE: i32 = 10;
/// Pull messages of a queue.
pub const PULL_MESSAGE: i32 = 11;
/// Read a group's offset.
pub const QUERY_CONSUMER_OFFSET: i32 = 14;
/// Store a group's offset.
pub const UPDATE_CONSUMER_OFFSET: i32 = 15;
/// Create or change a topic on a broker.
pub const UPDATE_AND_CREATE_TOPIC: i32 = 17;
/// The offset of the first message stored at or after a time.
pub const SEARCH_OFFSET_BY_TIMESTAMP: i32 = 29;
/// The offset after a queue's last message.
pub const GET_MAX_OFFSET: i32 = 30;
/// A queue's smallest offset.
pub const GET_MIN_OFFSET: i32 = 31;
/// When the first message of a queue was stored.
pub const GET_EARLIEST_MSG_STORETIME: i32 = 32;
/// Tell a broker who this client is.
pub const HEART_BEAT: i32 = 34;
/// Leave a group.
pub const UNREGISTER_CLIENT: i32 = 35;
/// Give a message back for a later try.
pub const CONSUMER_SEND_MSG_BACK: i32 = 36;
/// The members of a group.
pub const GET_CONSUMER_LIST_BY_GROUP: i32 = 38;
/// From a broker: the members of a group changed.
pub const NOTIFY_CONSUMER_IDS_CHANGED: i32 = 40;
/// Ask a broker whether it can serve a subscription.
pub const CHECK_CLIENT_CONFIG: i32 = 46;
/// Register a broker with a name server.
pub const REGISTER_BROKER: i32 = 103;
/// The route of a topic.
pub const GET_ROUTEINFO_BY_TOPIC: i32 = 105;
/// The brokers of a cluster.
pub const GET_BROKER_CLUSTER_INFO: i32 = 106;
/// Send a message, header with short names.
pub const SEND_MESSAGE_V2: i32 = 310;
/// Pull messages of a queue, for consumers that assign queues themselves.
pub const LITE_PULL_MESSAGE: i32 = 361;
