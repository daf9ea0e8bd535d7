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
}
