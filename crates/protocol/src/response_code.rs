//! Response codes (Java `ResponseCode`, `RemotingSysResponseCode`).

/// Done.
pub const SUCCESS: i32 = 0;
/// The broker failed.
pub const SYSTEM_ERROR: i32 = 1;
/// The broker has too much to do.
pub const SYSTEM_BUSY: i32 = 2;
/// The request code is unknown.
pub const REQUEST_CODE_NOT_SUPPORTED: i32 = 3;
/// Stored, but not on disk in time.
pub const FLUSH_DISK_TIMEOUT: i32 = 10;
/// Stored, but no replica is there.
pub const SLAVE_NOT_AVAILABLE: i32 = 11;
/// Stored, but not on a replica in time.
pub const FLUSH_SLAVE_TIMEOUT: i32 = 12;
/// Body, properties or topic break a rule.
pub const MESSAGE_ILLEGAL: i32 = 13;
/// The disk is full, or the broker shuts down.
pub const SERVICE_NOT_AVAILABLE: i32 = 14;
/// Broker, topic or group may not be used so.
pub const NO_PERMISSION: i32 = 16;
/// The topic is unknown.
pub const TOPIC_NOT_EXIST: i32 = 17;
/// Pull: nothing there.
pub const PULL_NOT_FOUND: i32 = 19;
/// Pull: nothing that matches, go on at once.
pub const PULL_RETRY_IMMEDIATELY: i32 = 20;
/// Pull: the offset is out of range, or was reset.
pub const PULL_OFFSET_MOVED: i32 = 21;
/// Nothing found.
pub const QUERY_NOT_FOUND: i32 = 22;
/// A filter expression cannot be read.
pub const SUBSCRIPTION_PARSE_FAILED: i32 = 23;
/// The group or the topic's subscription is not in the heartbeats.
pub const SUBSCRIPTION_NOT_EXIST: i32 = 24;
/// The subscription is newer than the last heartbeat.
pub const SUBSCRIPTION_NOT_LATEST: i32 = 25;
/// The group is unknown and may not be created.
pub const SUBSCRIPTION_GROUP_NOT_EXIST: i32 = 26;
/// A parameter is out of range.
pub const INVALID_PARAMETER: i32 = 29;
/// Retry code of old transactions, kept in the producer's retry set.
pub const NO_BUYER_ID: i32 = 204;
/// The unit is another one.
pub const NOT_IN_CURRENT_UNIT: i32 = 205;
/// The consumer asks too fast.
pub const FLOW_CONTROL: i32 = 215;
/// The server shuts down: connect again and resend.
pub const GO_AWAY: i32 = 1500;

/// The Java name of a response code, or `UNKNOWN`.
pub const fn name(code: i32) -> &'static str {
    match code {
        SUCCESS => "SUCCESS",
        SYSTEM_ERROR => "SYSTEM_ERROR",
        SYSTEM_BUSY => "SYSTEM_BUSY",
        REQUEST_CODE_NOT_SUPPORTED => "REQUEST_CODE_NOT_SUPPORTED",
        FLUSH_DISK_TIMEOUT => "FLUSH_DISK_TIMEOUT",
        SLAVE_NOT_AVAILABLE => "SLAVE_NOT_AVAILABLE",
        FLUSH_SLAVE_TIMEOUT => "FLUSH_SLAVE_TIMEOUT",
        MESSAGE_ILLEGAL => "MESSAGE_ILLEGAL",
        SERVICE_NOT_AVAILABLE => "SERVICE_NOT_AVAILABLE",
        NO_PERMISSION => "NO_PERMISSION",
        TOPIC_NOT_EXIST => "TOPIC_NOT_EXIST",
        PULL_NOT_FOUND => "PULL_NOT_FOUND",
        PULL_RETRY_IMMEDIATELY => "PULL_RETRY_IMMEDIATELY",
        PULL_OFFSET_MOVED => "PULL_OFFSET_MOVED",
        QUERY_NOT_FOUND => "QUERY_NOT_FOUND",
        SUBSCRIPTION_PARSE_FAILED => "SUBSCRIPTION_PARSE_FAILED",
        SUBSCRIPTION_NOT_EXIST => "SUBSCRIPTION_NOT_EXIST",
        SUBSCRIPTION_NOT_LATEST => "SUBSCRIPTION_NOT_LATEST",
        SUBSCRIPTION_GROUP_NOT_EXIST => "SUBSCRIPTION_GROUP_NOT_EXIST",
        INVALID_PARAMETER => "INVALID_PARAMETER",
        NO_BUYER_ID => "NO_BUYER_ID",
        NOT_IN_CURRENT_UNIT => "NOT_IN_CURRENT_UNIT",
        FLOW_CONTROL => "FLOW_CONTROL",
        GO_AWAY => "GO_AWAY",
        _ => "UNKNOWN",
    }
}
