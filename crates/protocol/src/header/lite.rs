use super::header;

header! {
    /// POP_LITE_MESSAGE (200070): receives messages of the lite topics that a client subscribes.
    pub struct PopLiteMessageRequestHeader {
        /// The client.
        client_id: String => "clientId",
        /// The consuming group.
        consumer_group: String => "consumerGroup",
        /// The topic above the lite topics.
        topic: String => "topic",
        /// The most messages wanted.
        max_msg_num: i32 => "maxMsgNum",
        /// How long they stay invisible, in milliseconds.
        invisible_time: i64 => "invisibleTime",
        /// How long the broker may wait for a message, in milliseconds from the time of the request.
        poll_time: i64 => "pollTime",
        /// When the request was made, in milliseconds since 1970.
        born_time: i64 => "bornTime",
        /// Tells a repeated request from a new one.
        attempt_id: Option<String> => "attemptId",
        /// The broker that the client believes it is talking to.
        broker_name: Option<String> => "bname",
    }

    /// The answer to a pop of lite topics. The texts are read by [`crate::pop`].
    pub struct PopLiteMessageResponseHeader {
        /// When the broker handed the messages out, in milliseconds since 1970.
        pop_time: i64 => "popTime",
        /// How long they stay invisible, in milliseconds.
        invisible_time: i64 => "invisibleTime",
        /// The queue that brings them back.
        revive_qid: i32 => "reviveQid",
        /// Where the handed-out range of each queue starts.
        start_offset_info: Option<String> => "startOffsetInfo",
        /// The offsets handed out of each queue.
        msg_offset_info: Option<String> => "msgOffsetInfo",
        /// How often each message was handed out before, in the order of the messages.
        order_count_info: Option<String> => "orderCountInfo",
    }

    /// NOTIFY_UNSUBSCRIBE_LITE (200073), from a broker and one-way: a lite topic is no longer
    /// subscribed.
    pub struct NotifyUnsubscribeLiteRequestHeader {
        /// The lite topic.
        lite_topic: String => "liteTopic",
        /// The group.
        consumer_group: String => "consumerGroup",
        /// The client.
        client_id: String => "clientId",
    }
}
