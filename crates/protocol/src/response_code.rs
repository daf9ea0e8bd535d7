//! Response codes (Java `ResponseCode`, `RemotingSysResponseCode`).

use crate::codes::codes;

codes! {
    /// Done.
    SUCCESS = 0;
    /// The broker failed.
    SYSTEM_ERROR = 1;
    /// The broker has too much to do.
    SYSTEM_BUSY = 2;
    /// The request code is unknown.
    REQUEST_CODE_NOT_SUPPORTED = 3;
    /// The transaction failed.
    TRANSACTION_FAILED = 4;
    /// Stored, but not on disk in time.
    FLUSH_DISK_TIMEOUT = 10;
    /// Stored, but no replica is there.
    SLAVE_NOT_AVAILABLE = 11;
    /// Stored, but not on a replica in time.
    FLUSH_SLAVE_TIMEOUT = 12;
    /// Body, properties or topic break a rule.
    MESSAGE_ILLEGAL = 13;
    /// The disk is full, or the broker shuts down.
    SERVICE_NOT_AVAILABLE = 14;
    /// The version is not served.
    VERSION_NOT_SUPPORTED = 15;
    /// Broker, topic or group may not be used so.
    NO_PERMISSION = 16;
    /// The topic is unknown.
    TOPIC_NOT_EXIST = 17;
    /// The topic is there already.
    TOPIC_EXIST_ALREADY = 18;
    /// Pull: nothing there.
    PULL_NOT_FOUND = 19;
    /// Pull: nothing that matches, go on at once.
    PULL_RETRY_IMMEDIATELY = 20;
    /// Pull: the offset is out of range, or was reset.
    PULL_OFFSET_MOVED = 21;
    /// Nothing found.
    QUERY_NOT_FOUND = 22;
    /// A filter expression cannot be read.
    SUBSCRIPTION_PARSE_FAILED = 23;
    /// The group or the topic's subscription is not in the heartbeats.
    SUBSCRIPTION_NOT_EXIST = 24;
    /// The subscription is newer than the last heartbeat.
    SUBSCRIPTION_NOT_LATEST = 25;
    /// The group is unknown and may not be created.
    SUBSCRIPTION_GROUP_NOT_EXIST = 26;
    /// The broker has no filter for the SQL subscription.
    FILTER_DATA_NOT_EXIST = 27;
    /// The broker's filter is older than the SQL subscription.
    FILTER_DATA_NOT_LATEST = 28;
    /// A parameter is out of range.
    INVALID_PARAMETER = 29;
    /// Of old transactions: commit.
    TRANSACTION_SHOULD_COMMIT = 200;
    /// Of old transactions: roll back.
    TRANSACTION_SHOULD_ROLLBACK = 201;
    /// Of old transactions: not known (sic).
    TRANSACTION_STATE_UNKNOW = 202;
    /// Of old transactions: another group's.
    TRANSACTION_STATE_GROUP_WRONG = 203;
    /// Retry code of old transactions, kept in the producer's retry set.
    NO_BUYER_ID = 204;
    /// The unit is another one.
    NOT_IN_CURRENT_UNIT = 205;
    /// No member of the group is connected.
    CONSUMER_NOT_ONLINE = 206;
    /// The client that the broker asked did not answer.
    CONSUME_MSG_TIMEOUT = 207;
    /// Ack: the offset is outside the queue.
    NO_MESSAGE = 208;
    /// Pop: too many requests wait already.
    POLLING_FULL = 209;
    /// Pop: nothing found.
    POLLING_TIMEOUT = 210;
    /// The broker is unknown.
    BROKER_NOT_EXIST = 211;
    /// The broker has not yet worked off its log.
    BROKER_DISPATCH_NOT_COMPLETE = 212;
    /// The group is a broadcasting one.
    BROADCAST_CONSUMPTION = 213;
    /// The consumer asks too fast.
    FLOW_CONTROL = 215;
    /// The queue of a static topic has moved.
    NOT_LEADER_FOR_QUEUE = 501;
    /// The operation is not allowed: a bad recall handle, for instance.
    ILLEGAL_OPERATION = 604;
    /// The server shuts down: connect again and resend.
    GO_AWAY = 1500;
    /// Controller: the master's epoch is an old one.
    CONTROLLER_FENCED_MASTER_EPOCH = 2000;
    /// Controller: the epoch of the replicas in step is an old one.
    CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH = 2001;
    /// Controller: not the master.
    CONTROLLER_INVALID_MASTER = 2002;
    /// Controller: unknown replicas.
    CONTROLLER_INVALID_REPLICAS = 2003;
    /// Controller: no master can be had.
    CONTROLLER_MASTER_NOT_AVAILABLE = 2004;
    /// Controller: the request makes no sense.
    CONTROLLER_INVALID_REQUEST = 2005;
    /// Controller: the broker does not live.
    CONTROLLER_BROKER_NOT_ALIVE = 2006;
    /// Controller: another controller leads.
    CONTROLLER_NOT_LEADER = 2007;
    /// Controller: nothing is known of the broker.
    CONTROLLER_BROKER_METADATA_NOT_EXIST = 2008;
    /// Controller: the broker cannot be forgotten.
    CONTROLLER_INVALID_CLEAN_BROKER_METADATA = 2009;
    /// Controller: the broker must register first.
    CONTROLLER_BROKER_NEED_TO_BE_REGISTERED = 2010;
    /// Controller: there is a master still.
    CONTROLLER_MASTER_STILL_EXIST = 2011;
    /// Controller: no master could be elected.
    CONTROLLER_ELECT_MASTER_FAILED = 2012;
    /// Controller: the replicas in step could not be changed.
    CONTROLLER_ALTER_SYNC_STATE_SET_FAILED = 2013;
    /// Controller: the broker id is taken.
    CONTROLLER_BROKER_ID_INVALID = 2014;
    /// Controller: its own replication failed.
    CONTROLLER_JRAFT_INTERNAL_ERROR = 2015;
    /// Controller: nothing is known of the broker's life.
    CONTROLLER_BROKER_LIVE_INFO_NOT_EXISTS = 2016;
    /// Too many light queues.
    LMQ_QUOTA_EXCEEDED = 2017;
    /// Too many subscriptions of lite topics.
    LITE_SUBSCRIPTION_QUOTA_EXCEEDED = 2018;
    /// The user is unknown.
    USER_NOT_EXIST = 3001;
    /// The access rule is unknown.
    POLICY_NOT_EXIST = 3002;
    /// Between brokers: the failure has no name.
    RPC_UNKNOWN = -1000;
    /// Between brokers: the address is unknown.
    RPC_ADDR_IS_NULL = -1002;
    /// Between brokers: the request could not be sent.
    RPC_SEND_TO_CHANNEL_FAILED = -1004;
    /// Between brokers: no answer in time.
    RPC_TIME_OUT = -1006;
}
