//! Request codes (Java `RequestCode`).

use crate::codes::codes;

codes! {
    /// Send a message, header with long names.
    SEND_MESSAGE = 10;
    /// Pull messages of a queue.
    PULL_MESSAGE = 11;
    /// Find messages by key.
    QUERY_MESSAGE = 12;
    /// A constant only: 5.5.0 brokers do not know it.
    QUERY_BROKER_OFFSET = 13;
    /// Read a group's offset.
    QUERY_CONSUMER_OFFSET = 14;
    /// Store a group's offset.
    UPDATE_CONSUMER_OFFSET = 15;
    /// Create or change a topic on a broker.
    UPDATE_AND_CREATE_TOPIC = 17;
    /// Create or change several topics on a broker.
    UPDATE_AND_CREATE_TOPIC_LIST = 18;
    /// The settings of all topics of a broker.
    GET_ALL_TOPIC_CONFIG = 21;
    /// The settings of some topics.
    GET_TOPIC_CONFIG_LIST = 22;
    /// The names of a broker's topics.
    GET_TOPIC_NAME_LIST = 23;
    /// Change a broker's settings.
    UPDATE_BROKER_CONFIG = 25;
    /// A broker's settings.
    GET_BROKER_CONFIG = 26;
    /// Have a broker delete expired files.
    TRIGGER_DELETE_FILES = 27;
    /// How a broker does.
    GET_BROKER_RUNTIME_INFO = 28;
    /// The offset of the first message stored at or after a time.
    SEARCH_OFFSET_BY_TIMESTAMP = 29;
    /// The offset after a queue's last message.
    GET_MAX_OFFSET = 30;
    /// A queue's smallest offset.
    GET_MIN_OFFSET = 31;
    /// When the first message of a queue was stored.
    GET_EARLIEST_MSG_STORETIME = 32;
    /// The message at a commit-log offset.
    VIEW_MESSAGE_BY_ID = 33;
    /// Tell a broker who this client is.
    HEART_BEAT = 34;
    /// Leave a group.
    UNREGISTER_CLIENT = 35;
    /// Give a message back for a later try.
    CONSUMER_SEND_MSG_BACK = 36;
    /// Commit or roll back a half message.
    END_TRANSACTION = 37;
    /// The members of a group.
    GET_CONSUMER_LIST_BY_GROUP = 38;
    /// From a broker: what became of this transaction?
    CHECK_TRANSACTION_STATE = 39;
    /// From a broker: the members of a group changed.
    NOTIFY_CONSUMER_IDS_CHANGED = 40;
    /// Lock queues for a client.
    LOCK_BATCH_MQ = 41;
    /// Unlock queues.
    UNLOCK_BATCH_MQ = 42;
    /// The offsets of all groups of a broker.
    GET_ALL_CONSUMER_OFFSET = 43;
    /// How far a broker's delay levels are.
    GET_ALL_DELAY_OFFSET = 45;
    /// Ask a broker whether it can serve a subscription.
    CHECK_CLIENT_CONFIG = 46;
    /// The settings of a client.
    GET_CLIENT_CONFIG = 47;
    /// How far a broker's timers are.
    GET_TIMER_CHECK_POINT = 60;
    /// The counts of a broker's timers.
    GET_TIMER_METRICS = 61;
    /// Store a value with the name server.
    PUT_KV_CONFIG = 100;
    /// Read a value of the name server.
    GET_KV_CONFIG = 101;
    /// Delete a value of the name server.
    DELETE_KV_CONFIG = 102;
    /// Register a broker with a name server.
    REGISTER_BROKER = 103;
    /// Take a broker off a name server.
    UNREGISTER_BROKER = 104;
    /// The route of a topic.
    GET_ROUTEINFO_BY_TOPIC = 105;
    /// The brokers of a cluster.
    GET_BROKER_CLUSTER_INFO = 106;
    /// Create or change a group on a broker.
    UPDATE_AND_CREATE_SUBSCRIPTIONGROUP = 200;
    /// The settings of all groups of a broker.
    GET_ALL_SUBSCRIPTIONGROUP_CONFIG = 201;
    /// The offsets of a topic's queues.
    GET_TOPIC_STATS_INFO = 202;
    /// The connections of a consumer group.
    GET_CONSUMER_CONNECTION_LIST = 203;
    /// The connections of a producer group.
    GET_PRODUCER_CONNECTION_LIST = 204;
    /// Take the write permission off a broker's topics.
    WIPE_WRITE_PERM_OF_BROKER = 205;
    /// The names of all topics.
    GET_ALL_TOPIC_LIST_FROM_NAMESERVER = 206;
    /// Delete a group on a broker.
    DELETE_SUBSCRIPTIONGROUP = 207;
    /// How far a group is behind.
    GET_CONSUME_STATS = 208;
    /// Suspend a consumer.
    SUSPEND_CONSUMER = 209;
    /// Resume a consumer.
    RESUME_CONSUMER = 210;
    /// Reset the offsets in a consumer, long out of use.
    RESET_CONSUMER_OFFSET_IN_CONSUMER = 211;
    /// Reset the offsets at a broker, long out of use.
    RESET_CONSUMER_OFFSET_IN_BROKER = 212;
    /// Change the threads of a consumer, long out of use.
    ADJUST_CONSUMER_THREAD_POOL = 213;
    /// Who consumed a message.
    WHO_CONSUME_THE_MESSAGE = 214;
    /// Delete a topic on a broker.
    DELETE_TOPIC_IN_BROKER = 215;
    /// Delete a topic on a name server.
    DELETE_TOPIC_IN_NAMESRV = 216;
    /// Register a topic with a name server.
    REGISTER_TOPIC_IN_NAMESRV = 217;
    /// All values of a namespace of the name server.
    GET_KVLIST_BY_NAMESPACE = 219;
    /// From a broker: go on at these offsets.
    RESET_CONSUMER_CLIENT_OFFSET = 220;
    /// From a broker: how far is this client?
    GET_CONSUMER_STATUS_FROM_CLIENT = 221;
    /// Have a broker reset a group's offsets.
    INVOKE_BROKER_TO_RESET_OFFSET = 222;
    /// Have a broker ask its clients how far they are.
    INVOKE_BROKER_TO_GET_CONSUMER_STATUS = 223;
    /// The names of a cluster's topics.
    GET_TOPICS_BY_CLUSTER = 224;
    /// Create or change several groups on a broker.
    UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST = 225;
    /// The groups that consume a topic.
    QUERY_TOPIC_CONSUME_BY_WHO = 300;
    /// Register a filter server, long out of use.
    REGISTER_FILTER_SERVER = 301;
    /// Register a filter class, long out of use.
    REGISTER_MESSAGE_FILTER_CLASS = 302;
    /// The times between which a group's messages lie.
    QUERY_CONSUME_TIME_SPAN = 303;
    /// The names of system topics, from a name server.
    GET_SYSTEM_TOPIC_LIST_FROM_NS = 304;
    /// The names of system topics, from a broker.
    GET_SYSTEM_TOPIC_LIST_FROM_BROKER = 305;
    /// Have a broker delete expired consume queues.
    CLEAN_EXPIRED_CONSUMEQUEUE = 306;
    /// From a broker: how does this consumer do?
    GET_CONSUMER_RUNNING_INFO = 307;
    /// Offsets that correct a group's.
    QUERY_CORRECTION_OFFSET = 308;
    /// From a broker: consume this message now.
    CONSUME_MESSAGE_DIRECTLY = 309;
    /// Send a message, header with short names.
    SEND_MESSAGE_V2 = 310;
    /// The names of unit topics.
    GET_UNIT_TOPIC_LIST = 311;
    /// The names of topics with unit subscriptions.
    GET_HAS_UNIT_SUB_TOPIC_LIST = 312;
    /// The names of topics outside units with unit subscriptions.
    GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST = 313;
    /// Copy the offsets of one group to another.
    CLONE_GROUP_OFFSET = 314;
    /// The counts of a broker.
    VIEW_BROKER_STATS_DATA = 315;
    /// Have a broker delete unused topics.
    CLEAN_UNUSED_TOPIC = 316;
    /// How far the groups of a broker are behind.
    GET_BROKER_CONSUME_STATS = 317;
    /// Change a name server's settings.
    UPDATE_NAMESRV_CONFIG = 318;
    /// A name server's settings.
    GET_NAMESRV_CONFIG = 319;
    /// Send several messages as one.
    SEND_BATCH_MESSAGE = 320;
    /// The entries of a consume queue.
    QUERY_CONSUME_QUEUE = 321;
    /// Whether a broker's registration is up to date.
    QUERY_DATA_VERSION = 322;
    /// Have a half message checked again.
    RESUME_CHECK_HALF_MESSAGE = 323;
    /// Answer a request message, header with long names.
    SEND_REPLY_MESSAGE = 324;
    /// Answer a request message, header with short names.
    SEND_REPLY_MESSAGE_V2 = 325;
    /// From a broker: the answer to a request message.
    PUSH_REPLY_MESSAGE_TO_CLIENT = 326;
    /// Give a broker's topics the write permission back.
    ADD_WRITE_PERM_OF_BROKER = 327;
    /// The connections of all producer groups.
    GET_ALL_PRODUCER_INFO = 328;
    /// Have a broker delete expired commit logs.
    DELETE_EXPIRED_COMMITLOG = 329;
    /// The topics a group consumes.
    QUERY_TOPICS_BY_CONSUMER = 343;
    /// A group's subscription of a topic.
    QUERY_SUBSCRIPTION_BY_CONSUMER = 345;
    /// The settings of a topic.
    GET_TOPIC_CONFIG = 351;
    /// The settings of a group.
    GET_SUBSCRIPTIONGROUP_CONFIG = 352;
    /// Forbid a group a topic, or ask whether it is.
    UPDATE_AND_GET_GROUP_FORBIDDEN = 353;
    /// How far the RocksDB consume queues are.
    CHECK_ROCKSDB_CQ_WRITE_PROGRESS = 354;
    /// Have a broker write its RocksDB settings as JSON.
    EXPORT_ROCKSDB_CONFIG_TO_JSON = 355;
    /// Pull messages of a queue, for consumers that assign queues themselves.
    LITE_PULL_MESSAGE = 361;
    /// Take back a timer message before its time.
    RECALL_MESSAGE = 370;
    /// The queues a broker assigns to a client.
    QUERY_ASSIGNMENT = 400;
    /// Choose between pull and pop for a group and a topic.
    SET_MESSAGE_REQUEST_MODE = 401;
    /// The choices between pull and pop of a broker.
    GET_ALL_MESSAGE_REQUEST_MODE = 402;
    /// Create or change a static topic.
    UPDATE_AND_CREATE_STATIC_TOPIC = 513;
    /// The members of a broker's replica group.
    GET_BROKER_MEMBER_GROUP = 901;
    /// Add a broker to a container.
    ADD_BROKER = 902;
    /// Take a broker out of a container.
    REMOVE_BROKER = 903;
    /// From a broker to a name server: still here.
    BROKER_HEARTBEAT = 904;
    /// From a name server: the smallest broker id changed.
    NOTIFY_MIN_BROKER_ID_CHANGE = 905;
    /// Exchange replication addresses.
    EXCHANGE_BROKER_HA_INFO = 906;
    /// How a broker's replication does.
    GET_BROKER_HA_STATUS = 907;
    /// Tell a replica how far its master is on disk.
    RESET_MASTER_FLUSH_OFFSET = 908;
    /// Controller: change the replicas in step.
    CONTROLLER_ALTER_SYNC_STATE_SET = 1001;
    /// Controller: elect a master.
    CONTROLLER_ELECT_MASTER = 1002;
    /// Controller: register a broker.
    CONTROLLER_REGISTER_BROKER = 1003;
    /// Controller: a broker's replicas.
    CONTROLLER_GET_REPLICA_INFO = 1004;
    /// Controller: who leads.
    CONTROLLER_GET_METADATA_INFO = 1005;
    /// Controller: the replicas in step.
    CONTROLLER_GET_SYNC_STATE_DATA = 1006;
    /// The epochs of a broker's log.
    GET_BROKER_EPOCH_CACHE = 1007;
    /// From a controller: a broker's role changed.
    NOTIFY_BROKER_ROLE_CHANGED = 1008;
    /// Change a controller's settings.
    UPDATE_CONTROLLER_CONFIG = 1009;
    /// A controller's settings.
    GET_CONTROLLER_CONFIG = 1010;
    /// Controller: forget a broker.
    CLEAN_BROKER_DATA = 1011;
    /// Controller: the next free broker id.
    CONTROLLER_GET_NEXT_BROKER_ID = 1012;
    /// Controller: take a broker id.
    CONTROLLER_APPLY_BROKER_ID = 1013;
    /// Limit a group's reads of cold data.
    UPDATE_COLD_DATA_FLOW_CTR_CONFIG = 2001;
    /// Lift a group's limit of cold data.
    REMOVE_COLD_DATA_FLOW_CTR_CONFIG = 2002;
    /// The limits of cold data.
    GET_COLD_DATA_FLOW_CTR_INFO = 2003;
    /// How a broker reads its commit log.
    SET_COMMITLOG_READ_MODE = 2004;
    /// Create a user.
    AUTH_CREATE_USER = 3001;
    /// Change a user.
    AUTH_UPDATE_USER = 3002;
    /// Delete a user.
    AUTH_DELETE_USER = 3003;
    /// One user.
    AUTH_GET_USER = 3004;
    /// All users.
    AUTH_LIST_USER = 3005;
    /// Create an access rule.
    AUTH_CREATE_ACL = 3006;
    /// Change an access rule.
    AUTH_UPDATE_ACL = 3007;
    /// Delete an access rule.
    AUTH_DELETE_ACL = 3008;
    /// One access rule.
    AUTH_GET_ACL = 3009;
    /// All access rules.
    AUTH_LIST_ACL = 3010;
    /// Change how a broker keeps timers.
    SWITCH_TIMER_ENGINE = 5001;
    /// Receive messages that stay invisible to others for a while.
    POP_MESSAGE = 200_050;
    /// A popped message is consumed.
    ACK_MESSAGE = 200_051;
    /// Look at the next messages without receiving them.
    PEEK_MESSAGE = 200_052;
    /// Change how long a popped message stays invisible.
    CHANGE_MESSAGE_INVISIBLETIME = 200_053;
    /// Wait until there is a message to pop.
    NOTIFICATION = 200_054;
    /// How many pops wait at a queue.
    POLLING_INFO = 200_055;
    /// Give popped messages back.
    POP_ROLLBACK = 200_056;
    /// Pop messages of lite topics.
    POP_LITE_MESSAGE = 200_070;
    /// Subscribe lite topics, or cease to.
    LITE_SUBSCRIPTION_CTL = 200_071;
    /// A popped message of a lite topic is consumed.
    ACK_LITE_MESSAGE = 200_072;
    /// From a broker: a lite topic is no longer subscribed.
    NOTIFY_UNSUBSCRIBE_LITE = 200_073;
    /// The lite topics of a broker.
    GET_BROKER_LITE_INFO = 200_074;
    /// The lite topics of a topic.
    GET_PARENT_TOPIC_INFO = 200_075;
    /// One lite topic.
    GET_LITE_TOPIC_INFO = 200_076;
    /// The lite topics of a client.
    GET_LITE_CLIENT_INFO = 200_077;
    /// The lite topics of a group.
    GET_LITE_GROUP_INFO = 200_078;
    /// Have a broker dispatch lite topics now.
    TRIGGER_LITE_DISPATCH = 200_079;
    /// Several popped messages are consumed.
    BATCH_ACK_MESSAGE = 200_151;
}
