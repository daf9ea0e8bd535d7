use rocketmq_protocol::MessageExt;
use rocketmq_protocol::header::CheckTransactionStateRequestHeader;

use crate::client::TopicPublishInfo;
use crate::sync::Arc;

/// A broker's question what became of a half message.
#[derive(Debug)]
pub(crate) struct TransactionCheck {
    /// The broker that asks, and hears the answer.
    pub(crate) addr: String,
    pub(crate) header: CheckTransactionStateRequestHeader,
    pub(crate) message: MessageExt,
}

/// What the client core asks of a producer.
pub(crate) trait MQProducerInner: Send + Sync {
    /// The topics it has sent to.
    fn publish_topic_list(&self) -> Vec<String>;

    /// Whether it waits for the queues of a topic.
    fn is_publish_topic_need_update(&self, topic: &str) -> bool;

    /// Brings the queues of a topic, as a new snapshot.
    fn update_topic_publish_info(&self, topic: &str, info: &Arc<TopicPublishInfo>);

    /// Finds out about a transaction of its group, and answers, without holding up the caller.
    fn check_transaction_state(&self, check: TransactionCheck);
}
