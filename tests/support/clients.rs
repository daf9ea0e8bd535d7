use std::any::Any;

use rocketmq_blocking::{
    DefaultMQProducer, DefaultMQProducerBuilder, LocalTransactionState, MQClientManager, Message,
    MessageExt, TransactionListener,
};
use rocketmq_embedded::Cluster;

/// A cluster of so many brokers. The topic `T` has so many queues at each of them.
pub(crate) fn cluster_of(brokers: usize, queues: u16) -> Cluster {
    let cluster = Cluster::builder().brokers(brokers).start().unwrap();
    cluster.create_topic("T", queues).unwrap();
    cluster
}

/// Sets up a producer of the group `p` that shares its instance with nobody.
pub(crate) fn producer_at(namesrv: &str) -> DefaultMQProducerBuilder {
    producer_in("p", namesrv)
}

/// The same in a group of one's own, as on a cluster that others use too.
pub(crate) fn producer_in(group: &str, namesrv: &str) -> DefaultMQProducerBuilder {
    DefaultMQProducer::builder(group)
        .client_manager(&MQClientManager::new())
        .namesrv_addr(namesrv)
}

/// The same at a cluster.
pub(crate) fn producer_of(cluster: &Cluster) -> DefaultMQProducerBuilder {
    producer_at(&cluster.namesrv_addr())
}

/// The producer that was set up, running.
pub(crate) fn started(builder: DefaultMQProducerBuilder) -> DefaultMQProducer {
    let producer = builder.build().unwrap();
    producer.start().unwrap();
    producer
}

/// Commits at once, or rolls back what has the tag `later` when it is asked.
pub(crate) struct Commits;

impl TransactionListener for Commits {
    fn execute_local_transaction(&self, message: &Message, _: &dyn Any) -> LocalTransactionState {
        match message.tags() {
            Some("later") => LocalTransactionState::Unknown,
            _ => LocalTransactionState::CommitMessage,
        }
    }

    fn check_local_transaction(&self, _: &MessageExt) -> LocalTransactionState {
        LocalTransactionState::RollbackMessage
    }
}
