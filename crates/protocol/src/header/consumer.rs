use super::header;

header! {
    /// INVOKE_BROKER_TO_RESET_OFFSET (222), and RESET_CONSUMER_CLIENT_OFFSET (220) from a broker.
    pub struct ResetOffsetRequestHeader {
        /// The topic.
        topic: String => "topic",
        /// The group.
        group: String => "group",
        /// The store time to go on at, in milliseconds since 1970; -1 for the end.
        timestamp: i64 => "timestamp",
        /// Whether to reset even where that would skip nothing.
        is_force: bool => "isForce",
        /// The queue; -1 or absent for all.
        queue_id: Option<i32> => "queueId",
        /// The offset to go on at, in place of a time.
        offset: Option<i64> => "offset",
        /// The broker that the client believes it is talking to.
        broker_name: Option<String> => "bname",
    }

    /// INVOKE_BROKER_TO_GET_CONSUMER_STATUS (223), and GET_CONSUMER_STATUS_FROM_CLIENT (221) from a
    /// broker.
    pub struct GetConsumerStatusRequestHeader {
        /// The topic.
        topic: String => "topic",
        /// The group.
        group: String => "group",
        /// The one client that is meant; all when absent.
        client_addr: Option<String> => "clientAddr",
        /// The broker that the client believes it is talking to.
        broker_name: Option<String> => "bname",
    }

    /// GET_CONSUMER_RUNNING_INFO (307), to and from a broker: how does a consumer do?
    pub struct GetConsumerRunningInfoRequestHeader {
        /// The group.
        consumer_group: String => "consumerGroup",
        /// The client.
        client_id: String => "clientId",
        /// Whether the stacks of its threads are wanted.
        jstack_enable: Option<bool> => "jstackEnable",
    }

    /// CONSUME_MESSAGE_DIRECTLY (309), to and from a broker: consume the message of the body now.
    pub struct ConsumeMessageDirectlyResultRequestHeader {
        /// The group.
        consumer_group: String => "consumerGroup",
        /// The client.
        client_id: Option<String> => "clientId",
        /// The message's id.
        msg_id: Option<String> => "msgId",
        /// The broker that has the message.
        broker_name: Option<String> => "brokerName",
        /// The message's topic.
        topic: Option<String> => "topic",
        /// Flags of the topic.
        topic_sys_flag: Option<i32> => "topicSysFlag",
        /// Flags of the group.
        group_sys_flag: Option<i32> => "groupSysFlag",
    }

    /// GET_CONSUMER_CONNECTION_LIST (203).
    pub struct GetConsumerConnectionListRequestHeader {
        /// The group.
        consumer_group: String => "consumerGroup",
    }

    /// GET_PRODUCER_CONNECTION_LIST (204).
    pub struct GetProducerConnectionListRequestHeader {
        /// The group.
        producer_group: String => "producerGroup",
    }

    /// GET_CONSUME_STATS (208).
    pub struct GetConsumeStatsRequestHeader {
        /// The group.
        consumer_group: String => "consumerGroup",
        /// The topic; all when absent.
        topic: Option<String> => "topic",
        /// Several topics, joined by semicolons.
        topic_list: Option<String> => "topicList",
    }

    /// QUERY_CONSUME_TIME_SPAN (303).
    pub struct QueryConsumeTimeSpanRequestHeader {
        /// The topic.
        topic: String => "topic",
        /// The group.
        group: String => "group",
    }
}
