//! What is in a cluster: topics, messages, groups, offsets, members.

use std::collections::BTreeSet;
use std::io;

use rocketmq_protocol::body::{Permission, SubscriptionGroupConfig, TopicConfig};
use rocketmq_protocol::validators::check_group;
use rocketmq_protocol::{
    Message, MessageExt, MessageQueue, StoredMessage, encode_properties, mix_all,
};

use crate::cluster::Cluster;
use crate::node::Node;
use crate::store::now_millis;
use crate::topic_config;

impl Cluster {
    /// Creates a topic on all brokers, for reading and writing (permission 6), or gives an existing
    /// one that many queues. Clients find it at once.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a name that a topic cannot have.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let cluster = rocketmq_embedded::Cluster::builder().start()?;
    /// cluster.create_topic("Orders", 8)?;
    /// assert!(cluster.create_topic("no blanks", 8).is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn create_topic(&self, topic: &str, queues_per_broker: u16) -> io::Result<()> {
        let nodes = self.nodes();
        nodes
            .iter()
            .try_for_each(|node| create_topic(node, topic, queues_per_broker))
    }

    /// The same on one broker only.
    ///
    /// # Errors
    /// As [`Cluster::create_topic`]; [`io::ErrorKind::NotFound`] when no broker has this name.
    pub fn create_topic_on(&self, broker: &str, topic: &str, queues: u16) -> io::Result<()> {
        create_topic(&*self.node(broker)?, topic, queues)
    }

    /// Creates a topic or changes its settings on one broker: permission, order flag, and numbers
    /// of queues that need not be equal. Messages in queues that are no longer there come back with
    /// their queue.
    ///
    /// # Errors
    /// As [`Cluster::create_topic_on`].
    ///
    /// ```
    /// use rocketmq_embedded::{Cluster, TopicConfig};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let cluster = Cluster::builder().start()?;
    /// let config = TopicConfig {
    ///     topic_name: "Orders".to_owned(),
    ///     read_queue_nums: 8,
    ///     write_queue_nums: 4,
    ///     ..TopicConfig::default()
    /// };
    /// cluster.set_topic_on("broker-a", &config)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_topic_on(&self, broker: &str, config: &TopicConfig) -> io::Result<()> {
        let node = self.node(broker)?;
        check_topic(&config.topic_name)?;
        let store = node.disk().store;
        store.set_topic(
            &config.topic_name,
            topic_config::TopicConfig::from_body(config),
        );
        Ok(())
    }

    /// Deletes a topic with its messages and offsets, on all brokers and at the name server.
    /// Nothing happens for one that does not exist.
    pub fn delete_topic(&self, topic: &str) {
        for node in self.nodes() {
            let disk = node.disk();
            disk.store.delete_topic(topic);
            disk.offsets.forget_topic(topic);
        }
        self.registry.delete_topic(topic);
    }

    /// Creates a consumer group or replaces its settings, on all brokers.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a name that a group cannot have.
    ///
    /// ```
    /// use rocketmq_embedded::{Cluster, SubscriptionGroupConfig};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let cluster = Cluster::builder().start()?;
    /// let mut config = SubscriptionGroupConfig::new("billing");
    /// config.retry_max_times = 3;
    /// cluster.set_group(&config)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_group(&self, config: &SubscriptionGroupConfig) -> io::Result<()> {
        let group = &config.group_name;
        check_group(group).map_err(|error| {
            let text = format!("group {group:?}: {error}");
            io::Error::new(io::ErrorKind::InvalidInput, text)
        })?;
        for node in self.nodes() {
            node.disk().groups.update(config.clone());
        }
        Ok(())
    }

    /// Stores a value at the name server (PUT_KV_CONFIG). The configurations of ordered topics are
    /// in the namespace `ORDER_TOPIC_CONFIG`.
    pub fn put_kv_config(&self, namespace: &str, key: &str, value: &str) {
        self.registry
            .put_value(namespace.to_owned(), key.to_owned(), value.to_owned());
    }

    /// Forgets a value at the name server (DELETE_KV_CONFIG).
    pub fn delete_kv_config(&self, namespace: &str, key: &str) {
        self.registry.delete_value(namespace, key);
    }

    /// Stores a message as if a producer had sent it, and tells its offset; waiting pulls get it.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] when the broker is not up, [`io::ErrorKind::InvalidInput`] when
    /// the topic does not exist there or the message cannot be stored.
    ///
    /// ```
    /// use rocketmq_embedded::{Cluster, Message, MessageQueue};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let cluster = Cluster::builder().start()?;
    /// cluster.create_topic("Orders", 1)?;
    /// let queue = MessageQueue::new("Orders", "broker-a", 0);
    /// let message = Message::new("Orders", b"hello".as_slice()).with_tags("A");
    /// assert_eq!(cluster.put_message(&queue, &message)?, 0);
    /// assert_eq!(cluster.stored_count("Orders"), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn put_message(&self, mq: &MessageQueue, message: &Message) -> io::Result<i64> {
        let node = self.node(mq.broker_name())?;
        let broker = node.broker().ok_or_else(|| {
            let text = format!("{} is not up", node.name);
            io::Error::new(io::ErrorKind::NotFound, text)
        })?;
        let stored = StoredMessage {
            queue_id: mq.queue_id(),
            flag: message.flag(),
            queue_offset: 0,
            commit_log_offset: 0,
            sys_flag: 0,
            born_timestamp: now_millis(),
            born_host: node.addr,
            store_timestamp: 0,
            store_host: node.addr,
            reconsume_times: 0,
            prepared_transaction_offset: 0,
            body: message.body().clone(),
            topic: mq.topic().to_owned(),
            properties: encode_properties(message.properties()),
        };
        let placed = broker
            .put(stored)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))?;
        Ok(placed.queue_offset)
    }

    /// Deletes a queue's messages before an offset, as brokers do with old ones: the queue begins
    /// there from now on. Nothing happens for a broker that does not exist.
    pub fn delete_messages_before(&self, mq: &MessageQueue, offset: i64) {
        if let Ok(node) = self.node(mq.broker_name()) {
            let store = node.disk().store;
            store.delete_before(mq.topic(), mq.queue_id(), offset);
        }
    }

    /// All messages of a topic, broker by broker, queue by queue, in the order of their offsets.
    /// Compressed bodies come expanded.
    pub fn messages(&self, topic: &str) -> Vec<MessageExt> {
        let nodes = self.nodes();
        nodes
            .iter()
            .flat_map(|node| node.disk().store.messages(topic))
            .collect()
    }

    /// How many messages of a topic are stored, on all brokers; 0 for one that does not exist.
    pub fn stored_count(&self, topic: &str) -> usize {
        let nodes = self.nodes();
        nodes
            .iter()
            .map(|node| node.disk().store.message_count(topic))
            .sum()
    }

    /// The offset after a queue's last message; 0 for a queue that does not exist.
    pub fn max_offset(&self, mq: &MessageQueue) -> i64 {
        self.node(mq.broker_name()).map_or(0, |node| {
            let store = node.disk().store;
            store.max_offset(mq.topic(), mq.queue_id())
        })
    }

    /// What a group has committed on a queue, `None` when nothing; the target of a reset that it
    /// has not heard of.
    pub fn committed_offset(&self, group: &str, mq: &MessageQueue) -> Option<i64> {
        let disk = self.node(mq.broker_name()).ok()?.disk();
        disk.offsets.query(group, mq.topic(), mq.queue_id())
    }

    /// Commits an offset for a group, which need not exist. Nothing happens for a broker that does
    /// not exist.
    pub fn commit_offset(&self, group: &str, mq: &MessageQueue, offset: i64) {
        if let Ok(node) = self.node(mq.broker_name()) {
            let offsets = node.disk().offsets;
            offsets.commit(group, mq.topic(), mq.queue_id(), offset);
        }
    }

    /// Resets a group's offset as INVOKE_BROKER_TO_RESET_OFFSET does: its next pull is answered
    /// with 21 and this offset, and commits before that are ignored. Nothing happens for a broker
    /// that does not exist.
    pub fn reset_offset(&self, group: &str, mq: &MessageQueue, offset: i64) {
        if let Ok(node) = self.node(mq.broker_name()) {
            let offsets = node.disk().offsets;
            offsets.assign_reset(group, mq.topic(), mq.queue_id(), offset);
        }
    }

    /// The client ids that are members of a group at any broker, sorted, each once.
    pub fn consumer_ids(&self, group: &str) -> Vec<String> {
        let nodes = self.nodes();
        let ids: BTreeSet<String> = nodes
            .iter()
            .flat_map(|node| consumer_ids(node, group))
            .collect();
        ids.into_iter().collect()
    }

    /// The client ids that are members of a group at one broker, sorted, one a connection: a client
    /// that is connected twice is there twice. Empty for a broker that is down or does not exist.
    pub fn consumer_ids_on(&self, broker: &str, group: &str) -> Vec<String> {
        let node = self.node(broker);
        let mut ids = node.map_or_else(|_| Vec::new(), |node| consumer_ids(&node, group));
        ids.sort_unstable();
        ids
    }

    /// The client ids that are members of a producer group at one broker, sorted, one a connection.
    pub fn producer_ids_on(&self, broker: &str, group: &str) -> Vec<String> {
        let broker = self.node(broker).ok().and_then(|node| node.broker());
        let members = broker.and_then(|broker| broker.producers.members(group));
        let mut ids: Vec<String> = members
            .into_iter()
            .flatten()
            .map(|(client, _)| client.client_id)
            .collect();
        ids.sort_unstable();
        ids
    }

    /// Which client of a group has locked which queue, at any broker, in the order of the queues;
    /// expired locks left out.
    pub fn locked_queues(&self, group: &str) -> Vec<(MessageQueue, String)> {
        let mut locked: Vec<_> = self
            .nodes()
            .iter()
            .filter_map(|node| node.broker())
            .flat_map(|broker| {
                let live_time = broker.config().lock_max_live_time;
                broker.locks.locked(group, live_time)
            })
            .collect();
        locked.sort_unstable();
        locked
    }

    /// How many messages wait in a group's dead-letter topic, on all brokers.
    pub fn dead_letter_count(&self, group: &str) -> usize {
        self.stored_count(&format!("{}{group}", mix_all::DLQ_GROUP_TOPIC_PREFIX))
    }
}

fn check_topic(topic: &str) -> io::Result<()> {
    topic_config::validate_topic(topic).map_err(|error| {
        let text = format!("topic {topic:?}: {error}");
        io::Error::new(io::ErrorKind::InvalidInput, text)
    })
}

fn create_topic(node: &Node, topic: &str, queues: u16) -> io::Result<()> {
    check_topic(topic)?;
    let config = topic_config::TopicConfig::new(queues.into(), Permission::READ_WRITE);
    node.disk().store.set_topic(topic, config);
    Ok(())
}

fn consumer_ids(node: &Node, group: &str) -> Vec<String> {
    let broker = node.broker();
    broker.map_or_else(Vec::new, |broker| broker.consumers.client_ids(group))
}
