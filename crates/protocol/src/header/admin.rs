use super::header;

header! {
    /// UPDATE_AND_CREATE_TOPIC (17), to a broker.
    pub struct CreateTopicRequestHeader {
        /// The topic to create or change.
        topic: String => "topic",
        /// The topic whose route named the brokers, usually TBW102.
        default_topic: String => "defaultTopic",
        /// Queues that can be read.
        read_queue_nums: i32 => "readQueueNums",
        /// Queues that can be written.
        write_queue_nums: i32 => "writeQueueNums",
        /// Permission bits: 4 read, 2 write, 1 inherit.
        perm: i32 => "perm",
        /// `SINGLE_TAG` or `MULTI_TAG`.
        topic_filter_type: Option<String> => "topicFilterType",
        /// Flags of the topic.
        topic_sys_flag: Option<i32> => "topicSysFlag",
        /// Whether the topic is an ordered one.
        order: Option<bool> => "order",
        /// Changes to attributes, `+key=value` joined by commas.
        attributes: Option<String> => "attributes",
        /// Whether checks that protect an existing topic are passed over.
        force: Option<bool> => "force",
    }

    /// DELETE_TOPIC_IN_BROKER (215).
    pub struct DeleteTopicRequestHeader {
        /// The topic.
        topic: String => "topic",
    }

    /// DELETE_TOPIC_IN_NAMESRV (216).
    pub struct DeleteTopicFromNamesrvRequestHeader {
        /// The topic.
        topic: String => "topic",
        /// The cluster whose queues of it are forgotten; all when absent.
        cluster_name: Option<String> => "clusterName",
    }

    /// DELETE_SUBSCRIPTIONGROUP (207).
    pub struct DeleteSubscriptionGroupRequestHeader {
        /// The group.
        group_name: String => "groupName",
        /// Whether its offsets are deleted too.
        clean_offset: Option<bool> => "cleanOffset",
    }

    /// GET_TOPIC_STATS_INFO (202).
    pub struct GetTopicStatsInfoRequestHeader {
        /// The topic.
        topic: String => "topic",
    }

    /// GET_TOPIC_CONFIG (351).
    pub struct GetTopicConfigRequestHeader {
        /// The topic.
        topic: String => "topic",
    }

    /// GET_SUBSCRIPTIONGROUP_CONFIG (352).
    pub struct GetSubscriptionGroupConfigRequestHeader {
        /// The group.
        group: String => "group",
    }
}
