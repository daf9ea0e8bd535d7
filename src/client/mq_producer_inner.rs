use crate::client::TopicPublishInfo;
use crate::sync::Arc;

/// What the client core asks of a producer.
pub(crate) trait MQProducerInner: Send + Sync {
    /// The topics it has sent to.
    fn publish_topic_list(&self) -> Vec<String>;

    /// Whether it waits for the queues of a topic.
    fn is_publish_topic_need_update(&self, topic: &str) -> bool;

    /// Brings the queues of a topic, as a new snapshot.
    fn update_topic_publish_info(&self, topic: &str, info: &Arc<TopicPublishInfo>);
}
