use rocketmq_protocol::MessageQueue;
use rocketmq_protocol::body::ConsumerData;

use crate::sync::Arc;

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

    /// Makes the queues it works on those that are its own now. Returns whether they are.
    fn try_rebalance(self: Arc<Self>) -> bool;

    /// Sends the progress on its queues to their brokers, without waiting for answers.
    fn persist_consumer_offset(&self);
}
