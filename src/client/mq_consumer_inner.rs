use std::collections::BTreeMap;

use rocketmq_protocol::body::{ConsumeMessageDirectlyResult, ConsumerData, ConsumerRunningInfo};
use rocketmq_protocol::{MessageExt, MessageQueue};

use crate::sync::Arc;

/// The members of a group as a broker names them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Members<'a> {
    /// One entry a connection, in no order; not empty. All topics that share a question share it.
    pub(crate) cid_all: &'a Arc<[String]>,
    /// Whether a second broker says the same, or there is none to ask.
    pub(crate) confirmed: bool,
}

/// What a look at one topic has led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TopicBalance {
    /// The queues that are worked on are those that should be.
    Balanced,
    /// They are now, and were not before.
    Changed,
    /// They are not yet: another look is due soon.
    Unbalanced,
    /// Nothing was changed: a second broker is to be asked for the members first.
    Unconfirmed,
}

/// What the client core asks of a consumer.
pub(crate) trait MQConsumerInner: Send + Sync {
    /// The group and its subscriptions, as a heartbeat tells them.
    fn consumer_data(&self) -> ConsumerData;

    /// The topics it subscribes, the retry topic among them.
    fn subscribed_topics(&self) -> Vec<String>;

    /// Whether it subscribes a topic and has not been told the topic's queues.
    fn is_subscribe_topic_need_update(&self, topic: &str) -> bool;

    /// Brings the queues of a topic, sorted. Nothing happens for a topic it does not subscribe.
    fn update_topic_subscribe_info(&self, topic: &str, queues: &Arc<[MessageQueue]>);

    /// Whether it may be rebalanced yet; while it starts, requests wait for the start's end.
    fn is_ready(&self) -> bool;

    /// Begins a look at its queues: does what needs no list of members, and returns the topics that
    /// need one. This, [`rebalance_by_topic`](Self::rebalance_by_topic) and
    /// [`end_rebalance`](Self::end_rebalance) are called by one thread.
    fn begin_rebalance(self: Arc<Self>) -> Vec<String>;

    /// Makes the queues of a topic that it works on those that are its own among these members.
    fn rebalance_by_topic(self: Arc<Self>, topic: &str, members: Members<'_>) -> TopicBalance;

    /// Ends a look, or a part of one: tells the brokers if its queues have changed in it.
    fn end_rebalance(&self);

    /// How it does, for an administrator.
    fn consumer_running_info(&self) -> ConsumerRunningInfo;

    /// Has the listener consume one message now, for an administrator, and waits for its result a
    /// limited time.
    fn consume_message_directly(
        self: Arc<Self>,
        message: MessageExt,
    ) -> ConsumeMessageDirectlyResult;

    /// Goes on at other offsets in those of the queues that are its own, without waiting.
    fn reset_offset(self: Arc<Self>, offsets: &BTreeMap<MessageQueue, i64>);

    /// The offsets of its queues of a topic.
    fn consumer_status(&self, topic: &str) -> BTreeMap<MessageQueue, i64>;

    /// Sends the progress on its queues to their brokers, without waiting for answers.
    fn persist_consumer_offset(&self);
}
