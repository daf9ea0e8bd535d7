use super::header;

header! {
    /// PULL_MESSAGE (11), and LITE_PULL_MESSAGE (361) for consumers that assign queues themselves.
    pub struct PullMessageRequestHeader {
        /// The consuming group.
        consumer_group: String => "consumerGroup",
        /// The queue's topic.
        topic: String => "topic",
        /// The lite topic.
        lite_topic: Option<String> => "liteTopic",
        /// The queue's id.
        queue_id: i32 => "queueId",
        /// The first offset wanted.
        queue_offset: i64 => "queueOffset",
        /// The most messages wanted; a broker has limits of its own.
        max_msg_nums: i32 => "maxMsgNums",
        /// See [`crate::sys_flag`], pull flags.
        sys_flag: i32 => "sysFlag",
        /// The group's progress, stored when the commit flag is set.
        commit_offset: i64 => "commitOffset",
        /// How long the broker may hold the request when nothing is there, in milliseconds.
        suspend_timeout_millis: i64 => "suspendTimeoutMillis",
        /// The filter expression, looked at only with the subscription flag.
        subscription: Option<String> => "subscription",
        /// The creation time of the subscription in milliseconds.
        sub_version: i64 => "subVersion",
        /// `TAG` or `SQL92`.
        expression_type: Option<String> => "expressionType",
        /// The most bytes wanted.
        max_msg_bytes: Option<i32> => "maxMsgBytes",
        /// Who asks, -1 for a client; other values are those of proxies.
        request_source: Option<i32> => "requestSource",
        /// The client that a proxy asks for (the wire name is Java's misspelling).
        proxy_forward_client_id: Option<String> => "proxyFrowardClientId",
        /// The broker that the client believes it is talking to.
        broker_name: Option<String> => "bname",
    }

    /// The answer to a pull, on the codes 0, 19, 20 and 21 only.
    pub struct PullMessageResponseHeader {
        /// The broker id to ask next time.
        suggest_which_broker_id: i64 => "suggestWhichBrokerId",
        /// The offset to go on with.
        next_begin_offset: i64 => "nextBeginOffset",
        /// The queue's smallest offset.
        min_offset: i64 => "minOffset",
        /// The offset after the queue's last message.
        max_offset: i64 => "maxOffset",
        /// What to add to offsets of a static topic.
        offset_delta: Option<i64> => "offsetDelta",
        /// Flags of the topic.
        topic_sys_flag: Option<i32> => "topicSysFlag",
        /// Flags of the group.
        group_sys_flag: Option<i32> => "groupSysFlag",
        /// What is forbidden. Java sets it on code 16, whose answers lack the required fields: look
        /// it up in the command's fields there.
        forbidden_type: Option<i32> => "forbiddenType",
    }
}
