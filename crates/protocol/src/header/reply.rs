use super::header;

header! {
    /// PUSH_REPLY_MESSAGE_TO_CLIENT (326), from a broker: the answer to a request message, whose
    /// body is the command's. Must be answered with 0 soon: the replier waits for it.
    pub struct ReplyMessageRequestHeader {
        /// The group that sent the reply.
        producer_group: String => "producerGroup",
        /// The reply's topic.
        topic: String => "topic",
        /// As in the reply's send.
        default_topic: String => "defaultTopic",
        /// As in the reply's send.
        default_topic_queue_nums: i32 => "defaultTopicQueueNums",
        /// The queue.
        queue_id: i32 => "queueId",
        /// See [`crate::sys_flag`]: the body may be compressed.
        sys_flag: i32 => "sysFlag",
        /// When the reply was made, in milliseconds since 1970.
        born_timestamp: i64 => "bornTimestamp",
        /// The user's flag.
        flag: i32 => "flag",
        /// The encoded properties, the correlation id among them.
        properties: Option<String> => "properties",
        /// How often the reply was consumed in vain.
        reconsume_times: Option<i32> => "reconsumeTimes",
        /// Whether the replier runs in unit mode.
        unit_mode: Option<bool> => "unitMode",
        /// The replier's address, `ip:port`.
        born_host: String => "bornHost",
        /// The broker's address, `ip:port`.
        store_host: String => "storeHost",
        /// When the broker took it, in milliseconds since 1970.
        store_timestamp: i64 => "storeTimestamp",
    }
}
