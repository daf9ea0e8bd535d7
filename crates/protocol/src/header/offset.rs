use super::header;

header! {
    /// QUERY_CONSUMER_OFFSET (14).
    pub struct QueryConsumerOffsetRequestHeader {
        /// The group whose progress is asked for.
        consumer_group: String => "consumerGroup",
        /// The queue's topic.
        topic: String => "topic",
        /// The queue's id.
        queue_id: i32 => "queueId",
        /// Whether a broker may answer 0 for a queue whose first message is still at hand.
        set_zero_if_not_found: Option<bool> => "setZeroIfNotFound",
        /// The broker that the client believes it is talking to.
        broker_name: Option<String> => "bname",
    }

    /// UPDATE_CONSUMER_OFFSET (15), normally one-way.
    pub struct UpdateConsumerOffsetRequestHeader {
        /// The group whose progress is stored.
        consumer_group: String => "consumerGroup",
        /// The queue's topic.
        topic: String => "topic",
        /// The queue's id.
        queue_id: i32 => "queueId",
        /// The next offset to consume.
        commit_offset: i64 => "commitOffset",
        /// The broker that the client believes it is talking to.
        broker_name: Option<String> => "bname",
    }

    /// GET_MAX_OFFSET (30).
    pub struct GetMaxOffsetRequestHeader {
        /// The queue's topic.
        topic: String => "topic",
        /// The queue's id.
        queue_id: i32 => "queueId",
        /// Whether only what is committed counts; a broker takes an absent value as true.
        committed: Option<bool> => "committed",
        /// The broker that the client believes it is talking to.
        broker_name: Option<String> => "bname",
    }

    /// GET_MIN_OFFSET (31).
    pub struct GetMinOffsetRequestHeader {
        /// The queue's topic.
        topic: String => "topic",
        /// The queue's id.
        queue_id: i32 => "queueId",
        /// The broker that the client believes it is talking to.
        broker_name: Option<String> => "bname",
    }

    /// SEARCH_OFFSET_BY_TIMESTAMP (29).
    pub struct SearchOffsetRequestHeader {
        /// The queue's topic.
        topic: String => "topic",
        /// The queue's id.
        queue_id: i32 => "queueId",
        /// Store time in milliseconds since 1970.
        timestamp: i64 => "timestamp",
        /// `LOWER` or `UPPER`; anything else counts as lower.
        boundary_type: Option<String> => "boundaryType",
        /// The lite topic.
        lite_topic: Option<String> => "liteTopic",
        /// The broker that the client believes it is talking to.
        broker_name: Option<String> => "bname",
    }

    /// The answer to 14, 29, 30 and 31.
    pub struct OffsetResponseHeader {
        /// The offset.
        offset: i64 => "offset",
    }

    /// GET_EARLIEST_MSG_STORETIME (32).
    pub struct GetEarliestMsgStoretimeRequestHeader {
        /// The queue's topic.
        topic: String => "topic",
        /// The queue's id.
        queue_id: i32 => "queueId",
        /// The broker that the client believes it is talking to.
        broker_name: Option<String> => "bname",
    }

    /// The answer to GET_EARLIEST_MSG_STORETIME.
    pub struct GetEarliestMsgStoretimeResponseHeader {
        /// When the queue's first message was stored, in milliseconds since 1970; -1 when it has
        /// none.
        timestamp: i64 => "timestamp",
    }
}
