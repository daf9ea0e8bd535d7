//! The push consumer a user holds.

use std::time::Duration;

use rocketmq_protocol::MessageQueue;

use super::default_mq_push_consumer_builder::DefaultMQPushConsumerBuilder;
use super::default_mq_push_consumer_impl::DefaultMQPushConsumerImpl;
use super::push_consumer_config::check_range;
use crate::client::{Client, Handle, ShutdownReport};
use crate::client_config;
use crate::error::Result;
use crate::service::ServiceState;
use crate::sync::Arc;

/// Calls a listener with the messages of its share of a topic's queues.
///
/// The members of a group divide the queues of a topic among themselves, each by the same rule from
/// the same lists, and divide anew when a member joins, leaves or dies. Each message is delivered at
/// least once to the group: again after a failure, and possibly again when its queue changes hands.
///
/// Clones are the same consumer. Hold one for as long as messages are wanted: when the last one is
/// dropped without a shutdown, the consumer shuts down within a second, and only the log tells of it.
/// Nothing is delivered before [`start`](Self::start).
///
/// # Java
/// `DefaultMQPushConsumer` with a `MessageListenerConcurrently`, in CLUSTERING.
///
/// # Examples
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
///
/// use rocketmq_blocking::{
///     ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, DefaultMQProducer,
///     DefaultMQPushConsumer, Message, MessageExt,
/// };
/// use rocketmq_embedded::Cluster;
///
/// let cluster = Cluster::builder().start()?;
/// cluster.create_topic("Orders", 4)?;
/// let (sender, received) = mpsc::channel();
/// let consumer = DefaultMQPushConsumer::builder("billing")
///     .namesrv_addr(&cluster.namesrv_addr())
///     .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
///     .subscribe("Orders", "Books || Music")
///     .message_listener(move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
///         for message in messages {
///             let _ = sender.send(message.body().clone());
///         }
///         ConsumeConcurrentlyStatus::ConsumeSuccess
///     })
///     .build()?;
/// consumer.start()?;
///
/// let producer = DefaultMQProducer::builder("shop").namesrv_addr(&cluster.namesrv_addr()).build()?;
/// producer.start()?;
/// producer.send(&Message::new("Orders", "a toy").with_tags("Toys"))?;
/// producer.send(&Message::new("Orders", "a book").with_tags("Books"))?;
///
/// assert_eq!(received.recv_timeout(Duration::from_secs(30))?, "a book");
/// let report = consumer.shutdown(Duration::from_secs(5));
/// assert_eq!(report.abandoned, 0);
/// producer.shutdown(Duration::from_secs(5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct DefaultMQPushConsumer {
    handle: Arc<Handle<DefaultMQPushConsumerImpl>>,
}

impl DefaultMQPushConsumer {
    pub(super) fn new(client: DefaultMQPushConsumerImpl) -> Self {
        Self {
            handle: Handle::new(client),
        }
    }

    /// Begins to set up a member of a group: at most 120 characters of `% | - _ 0-9 a-z A-Z`, and not
    /// `DEFAULT_CONSUMER`; Java `consumerGroup`.
    pub fn builder(consumer_group: impl Into<String>) -> DefaultMQPushConsumerBuilder {
        DefaultMQPushConsumerBuilder::new(consumer_group.into())
    }

    /// Starts the consumer: it fetches the routes of its topics, tells all brokers of itself, and
    /// has its group divided. Messages arrive from then on, on threads of the consumer.
    ///
    /// Servers that cannot be reached are logged and tried again; they do not fail the start. A
    /// topic that the name servers do not know yet is asked for again every
    /// `poll_name_server_interval` (30 s), so its first messages may wait for so long.
    ///
    /// # Blocking
    /// At most `mq_client_api_timeout` (3 s) for each topic, for the heartbeats all together, and
    /// for the route of the retry topic.
    ///
    /// # Errors
    /// [`ServiceState`](crate::Error::ServiceState) when it was started or shut down before;
    /// [`MQClient`](crate::Error::MQClient) when another consumer of the group runs with the same
    /// `instance_name`, or threads cannot be started.
    pub fn start(&self) -> Result<()> {
        self.handle.client().start()
    }

    /// Ends the consumer for good: nothing new is delivered, calls of the listener are finished,
    /// offsets are saved, the group is left, and the last client of an instance stops the
    /// instance's threads. Calling it again returns the first call's report.
    ///
    /// # Blocking
    /// At most about `timeout`, of which a fifth, 1 s at most, is kept for saving offsets and
    /// leaving; not at all on a thread of this library, a listener's for instance, where the work
    /// goes on in the background once the listener has returned and the report says `deferred`.
    ///
    /// # Java
    /// `DefaultMQPushConsumer#shutdown`, which by default does not wait for the listener
    /// (`awaitTerminationMillisWhenShutdown` 0) and tells nothing.
    pub fn shutdown(&self, timeout: Duration) -> ShutdownReport {
        self.handle.shutdown(timeout)
    }

    /// Waits for the end of a shutdown, whoever began it.
    ///
    /// # Blocking
    /// At most `timeout`; returns `None` if the consumer has not ended by then, and at once on a
    /// thread of this library.
    pub fn await_termination(&self, timeout: Duration) -> Option<ShutdownReport> {
        self.handle.await_termination(timeout)
    }

    /// Waits until the consumer has been shut down by another thread, for instance one that waits for a
    /// signal: what `main` does when it has nothing else to do.
    ///
    /// # Blocking
    /// For as long as the consumer lives, also if it was never started. Returns `None` on a thread of
    /// this library, at once.
    pub fn wait(&self) -> Option<ShutdownReport> {
        self.handle.wait()
    }

    /// Changes how many threads call the listener, also while it runs: more start when there is
    /// work for them, and those too many end after the call they are in. Before, they are
    /// [`consume_threads`](DefaultMQPushConsumerBuilder::consume_threads) (20). It does not block.
    /// Java `updateCorePoolSize`.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::Error::InvalidConfig) outside of 1..=1000.
    pub fn update_core_pool_size(&self, threads: usize) -> Result<()> {
        let mut problems = Vec::new();
        check_range(("consume_threads", threads as i128, 1, 1000), &mut problems);
        client_config::reject(problems)?;
        self.handle.client().consume_service().set_threads(threads);
        Ok(())
    }

    /// Subscribes a topic, or gives a subscribed one another expression: tags joined by `||`, or `*`
    /// for all messages, as in [`the builder`](DefaultMQPushConsumerBuilder::subscribe). It may be
    /// called at any time before the end. On a running consumer the
    /// brokers are told before this returns, and the group is looked at soon afterwards.
    ///
    /// Members are listed by group, not by topic: while other members of the group have not
    /// subscribed the topic, the queues that fall to them are consumed by nobody; and brokers keep
    /// one expression for a group and topic, the one told last. So all members should be changed,
    /// one after the other.
    ///
    /// # Blocking
    /// On a running consumer, at most `mq_client_api_timeout` (3 s) for a new topic's route and as
    /// long for the heartbeats all together. Servers that cannot be reached are logged, and told
    /// later.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::Error::InvalidConfig) for a topic or expression that cannot be, and
    /// nothing is changed; [`ServiceState`](crate::Error::ServiceState) after the end.
    ///
    /// # Java
    /// `DefaultMQPushConsumer#subscribe(String, String)`, on a running consumer too.
    pub fn subscribe(&self, topic: &str, sub_expression: &str) -> Result<()> {
        self.handle.client().subscribe(topic, sub_expression)
    }

    /// Ends the subscription of a topic. A running consumer saves how far it came in the topic's
    /// queues and gives them up soon afterwards; what the listener has of them at that moment counts
    /// no more, and is delivered again to whoever consumes the topic next. Nothing happens for a
    /// topic that is not subscribed.
    ///
    /// Brokers list members by group, not by topic: other members still count this one when they
    /// divide the topic's queues, as Java members do, and its share is consumed by nobody until all
    /// members have unsubscribed or this one has left.
    ///
    /// # Blocking
    /// Not at all: saving and giving up go on in the background.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::Error::InvalidConfig) for what is no topic, or the group's retry
    /// topic; [`ServiceState`](crate::Error::ServiceState) after the end.
    ///
    /// # Java
    /// `DefaultMQPushConsumer#unsubscribe`. Offsets are saved first.
    pub fn unsubscribe(&self, topic: &str) -> Result<()> {
        self.handle.client().unsubscribe(topic)
    }

    /// Pulls nothing more until [`resume`](Self::resume): what was pulled before is consumed, then
    /// the listener is left alone. The consumer stays a member of its group and keeps its queues.
    /// It does not block, and may be called at any time.
    ///
    /// # Java
    /// `DefaultMQPushConsumer#suspend`. There no rebalance is made meanwhile, and the messages of
    /// pulls that are under way are delivered.
    pub fn suspend(&self) {
        self.handle.client().set_suspended(true);
    }

    /// Ends [`suspend`](Self::suspend); messages come again within a second. Java
    /// `DefaultMQPushConsumer#resume`.
    pub fn resume(&self) {
        self.handle.client().set_suspended(false);
    }

    /// Whether it is suspended. Java `DefaultMQPushConsumerImpl#isPause`.
    pub fn is_suspended(&self) -> bool {
        self.handle.client().is_suspended()
    }

    /// Replaces the list of name servers, `host:port` joined by `;`. All clients that share the
    /// instance have it from now on. If the server in use is not in it, its connection is closed and
    /// what is being asked there is asked of another one.
    ///
    /// What [`namesrv_domain`](DefaultMQPushConsumerBuilder::namesrv_domain) answers later does not
    /// count any more.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::Error::InvalidConfig) for an empty list or what is not `host:port`;
    /// [`ServiceState`](crate::Error::ServiceState) unless the consumer is running.
    ///
    /// # Java
    /// `MQClientAPIImpl#updateNameServerAddressList`
    pub fn update_name_server_address_list(&self, list: &str) -> Result<()> {
        self.handle
            .client()
            .member()
            .update_name_server_address_list(list)
    }

    /// Where the consumer is in its life.
    pub fn service_state(&self) -> ServiceState {
        self.handle.client().member().state()
    }

    /// The id by which brokers and other members know this client; `None` before the start and
    /// after the end.
    pub fn client_id(&self) -> Option<String> {
        self.handle.client().member().client_id()
    }

    /// How many traces were thrown away because too many waited, because the time of the shutdown was
    /// over, or because they could not be sent; 0 unless
    /// [`enable_trace`](DefaultMQPushConsumerBuilder::enable_trace) is set.
    pub fn trace_discard_count(&self) -> u64 {
        self.handle.client().trace_discard_count()
    }

    /// The queues that are this member's own at the moment, sorted; the retry topic's too.
    pub fn owned_queues(&self) -> Vec<MessageQueue> {
        let namespace = &self.handle.client().config.namespace;
        let queues = self.handle.client().owned_queues();
        queues.iter().map(|mq| namespace.unwrap_queue(mq)).collect()
    }
}
