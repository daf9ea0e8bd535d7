use super::header;

header! {
    /// POP_MESSAGE (200050): receives messages that stay invisible to others for a while.
    pub struct PopMessageRequestHeader {
        /// The consuming group.
        consumer_group: String => "consumerGroup",
        /// The topic.
        topic: String => "topic",
        /// The queue; -1 for any.
        queue_id: i32 => "queueId",
        /// The most messages wanted, at most 32.
        max_msg_nums: i32 => "maxMsgNums",
        /// How long they stay invisible, in milliseconds.
        invisible_time: i64 => "invisibleTime",
        /// How long the broker may wait for a message, in milliseconds from the time of the request.
        poll_time: i64 => "pollTime",
        /// When the request was made, in milliseconds since 1970. A broker whose clock is ahead by
        /// more than the poll time answers at once.
        born_time: i64 => "bornTime",
        /// Where a new group starts: 0 at the first message, 1 at the end.
        init_mode: i32 => "initMode",
        /// `TAG` or `SQL92`; a tag expression by default.
        exp_type: Option<String> => "expType",
        /// The filter expression; everything by default.
        exp: Option<String> => "exp",
        /// Whether a queue is handed to one client at a time.
        order: Option<bool> => "order",
        /// Tells a repeated request of an ordered pop from a new one.
        attempt_id: Option<String> => "attemptId",
        /// The broker that the client believes it is talking to.
        broker_name: Option<String> => "bname",
    }

    /// The answer to a pop or a peek. The texts are read by [`crate::pop`].
    pub struct PopMessageResponseHeader {
        /// When the broker handed the messages out, in milliseconds since 1970.
        pop_time: i64 => "popTime",
        /// How long they stay invisible, in milliseconds.
        invisible_time: i64 => "invisibleTime",
        /// The queue that brings them back; 999 for an ordered pop.
        revive_qid: i32 => "reviveQid",
        /// How many messages are left.
        rest_num: i64 => "restNum",
        /// Where the handed-out range of each queue starts.
        start_offset_info: Option<String> => "startOffsetInfo",
        /// The offsets handed out of each queue.
        msg_offset_info: Option<String> => "msgOffsetInfo",
        /// How often they were handed out before, on an ordered pop.
        order_count_info: Option<String> => "orderCountInfo",
    }

    /// ACK_MESSAGE (200051): a popped message is consumed.
    pub struct AckMessageRequestHeader {
        /// The consuming group.
        consumer_group: String => "consumerGroup",
        /// The topic that the message lies in, see
        /// [`ExtraInfo::real_topic`](crate::pop::ExtraInfo::real_topic).
        topic: String => "topic",
        /// The queue.
        queue_id: i32 => "queueId",
        /// The message's receipt, see [`crate::pop::ExtraInfo`].
        extra_info: String => "extraInfo",
        /// The message's offset in the queue.
        offset: i64 => "offset",
        /// The lite topic.
        lite_topic: Option<String> => "liteTopic",
        /// The broker that the client believes it is talking to.
        broker_name: Option<String> => "bname",
    }

    /// CHANGE_MESSAGE_INVISIBLETIME (200053): a popped message shall come back at another time.
    pub struct ChangeInvisibleTimeRequestHeader {
        /// The consuming group.
        consumer_group: String => "consumerGroup",
        /// The topic that the message lies in.
        topic: String => "topic",
        /// The queue.
        queue_id: i32 => "queueId",
        /// The message's receipt, which the answer makes void.
        extra_info: String => "extraInfo",
        /// The message's offset in the queue.
        offset: i64 => "offset",
        /// How long it stays invisible from now on, in milliseconds.
        invisible_time: i64 => "invisibleTime",
        /// The lite topic.
        lite_topic: Option<String> => "liteTopic",
        /// Whether the attempt shall not count.
        suspend: Option<bool> => "suspend",
        /// The broker that the client believes it is talking to.
        broker_name: Option<String> => "bname",
    }

    /// The answer to a changed invisible time: the parts of the new receipt, see
    /// [`ExtraInfo::renewed`](crate::pop::ExtraInfo::renewed).
    pub struct ChangeInvisibleTimeResponseHeader {
        /// When it took effect, in milliseconds since 1970.
        pop_time: i64 => "popTime",
        /// How long the message stays invisible, in milliseconds.
        invisible_time: i64 => "invisibleTime",
        /// The queue that brings it back.
        revive_qid: i32 => "reviveQid",
    }

    /// PEEK_MESSAGE (200052): the next messages, without receiving them.
    pub struct PeekMessageRequestHeader {
        /// The topic.
        topic: String => "topic",
        /// The queue; -1 for any.
        queue_id: i32 => "queueId",
        /// The most messages wanted.
        max_msg_nums: i32 => "maxMsgNums",
        /// The group that looks.
        consumer_group: String => "consumerGroup",
        /// The broker that the client believes it is talking to.
        broker_name: Option<String> => "bname",
    }

    /// NOTIFICATION (200054): waits until there is a message to pop.
    pub struct NotificationRequestHeader {
        /// The consuming group.
        consumer_group: String => "consumerGroup",
        /// The topic.
        topic: String => "topic",
        /// The queue; -1 for any.
        queue_id: i32 => "queueId",
        /// How long the broker may wait, in milliseconds from the time of the request.
        poll_time: i64 => "pollTime",
        /// When the request was made, in milliseconds since 1970.
        born_time: i64 => "bornTime",
        /// Whether the pop will be an ordered one.
        order: Option<bool> => "order",
        /// Tells a repeated request of an ordered pop from a new one.
        attempt_id: Option<String> => "attemptId",
        /// `TAG` or `SQL92`.
        exp_type: Option<String> => "expType",
        /// The filter expression.
        exp: Option<String> => "exp",
        /// The broker that the client believes it is talking to.
        broker_name: Option<String> => "bname",
    }

    /// The answer to a notification request.
    pub struct NotificationResponseHeader {
        /// Whether there is a message.
        has_msg: bool => "hasMsg",
        /// Whether too many requests wait already.
        polling_full: Option<bool> => "pollingFull",
    }

    /// POLLING_INFO (200055): how many requests wait at a queue.
    pub struct PollingInfoRequestHeader {
        /// The consuming group.
        consumer_group: String => "consumerGroup",
        /// The topic.
        topic: String => "topic",
        /// The queue.
        queue_id: i32 => "queueId",
        /// The broker that the client believes it is talking to.
        broker_name: Option<String> => "bname",
    }

    /// The answer to a question for waiting requests.
    pub struct PollingInfoResponseHeader {
        /// How many there are.
        polling_num: i32 => "pollingNum",
    }
}
