//! The push consumer a user holds.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use rocketmq_protocol::body::ConsumeFromWhere;
use rocketmq_protocol::{MessageQueue, SubscriptionData, validators};

use super::default_mq_push_consumer_impl::{DefaultMQPushConsumerImpl, PushConsumerConfig};
use super::listener::{MessageListenerConcurrently, MessageQueueListener};
use crate::client::{MQClientManager, ShutdownReport};
use crate::client_config::{self, ClientConfig, Namespace, client_config_setters};
use crate::error::{Error, Result};
use crate::rebalance::{AllocateMessageQueueAveragely, AllocateMessageQueueStrategy};
use crate::service::ServiceState;
use crate::sync::{Arc, Deadline, system_time_millis};

/// Calls a listener with the messages of its share of a topic's queues.
///
/// The members of a group divide the queues of a topic among themselves, each by the same rule from
/// the same lists, and divide anew when a member joins, leaves or dies. Each message is delivered at
/// least once to the group: again after a failure, and possibly again when its queue changes hands.
///
/// Clones are the same consumer. When the last one is dropped without a shutdown, the consumer shuts
/// down within a second.
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
///     ConsumeConcurrentlyStatus, ConsumeFromWhere, DefaultMQProducer, DefaultMQPushConsumer, Message,
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
///     .message_listener(move |messages: &[_], _context: &mut _| {
///         for message in messages {
///             let message: &rocketmq_blocking::MessageExt = message;
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
    guard: Arc<Guard>,
}

/// Counts handles: the last one ends the consumer.
#[derive(Debug)]
struct Guard {
    inner: Arc<DefaultMQPushConsumerImpl>,
}

const SHUTDOWN_ON_DROP: Duration = Duration::from_secs(1);

impl Drop for Guard {
    fn drop(&mut self) {
        self.shutdown(SHUTDOWN_ON_DROP);
    }
}

impl Guard {
    fn shutdown(&self, timeout: Duration) -> ShutdownReport {
        let inner = Arc::clone(&self.inner);
        self.inner.termination.shut_down(
            timeout,
            || self.inner.begin_end(),
            move |before, deadline| inner.end(before, deadline),
        )
    }
}

impl DefaultMQPushConsumer {
    /// Begins to set up a member of a group.
    pub fn builder(consumer_group: impl Into<String>) -> DefaultMQPushConsumerBuilder {
        DefaultMQPushConsumerBuilder::new(consumer_group.into())
    }

    /// Starts the consumer: it fetches the routes of its topics, tells all brokers of itself, and
    /// has its group divided. Messages arrive from then on, on threads of the consumer.
    ///
    /// Servers that cannot be reached are logged and tried again; they do not fail the start.
    ///
    /// # Blocking
    /// At most `mq_client_api_timeout` (3 s) for each topic, for the heartbeats all together, and
    /// for the route of the retry topic.
    ///
    /// # Errors
    /// [`ServiceState`](crate::Error::ServiceState) when it was started or shut down before;
    /// [`MQClient`](crate::Error::MQClient) when the group is in the named instance already, or
    /// threads cannot be started.
    pub fn start(&self) -> Result<()> {
        self.guard.inner.start()
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
        self.guard.shutdown(timeout)
    }

    /// Waits for the end of a shutdown, whoever began it.
    ///
    /// # Blocking
    /// At most `timeout`; returns `None` if the consumer has not ended by then, and at once on a
    /// thread of this library.
    pub fn await_termination(&self, timeout: Duration) -> Option<ShutdownReport> {
        self.guard
            .inner
            .termination
            .wait_for_end(Deadline::after(timeout))
    }

    /// Changes how many threads call the listener, also while it runs: more start when there is
    /// work for them, and those too many end after the call they are in. Java `updateCorePoolSize`.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::Error::InvalidConfig) outside of 1..=1000.
    pub fn update_core_pool_size(&self, threads: usize) -> Result<()> {
        let mut problems = Vec::new();
        check_range(("consume_threads", threads as u64, 1, 1000), &mut problems);
        client_config::reject(problems)?;
        self.guard.inner.consume_service().set_threads(threads);
        Ok(())
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
        self.guard.inner.update_name_server_address_list(list)
    }

    /// Where the consumer is in its life.
    pub fn service_state(&self) -> ServiceState {
        self.guard.inner.state()
    }

    /// The id by which brokers and other members know this client; `None` before the start and
    /// after the end.
    pub fn client_id(&self) -> Option<String> {
        self.guard.inner.client_id()
    }

    /// The queues that are this member's own at the moment, sorted; the retry topic's too.
    pub fn owned_queues(&self) -> Vec<MessageQueue> {
        let namespace = &self.guard.inner.config.namespace;
        let queues = self.guard.inner.owned_queues();
        queues.iter().map(|mq| namespace.unwrap_queue(mq)).collect()
    }
}

/// Sets up a [`DefaultMQPushConsumer`]. Every setting has Java's default.
#[must_use = "a builder does nothing until `build`"]
pub struct DefaultMQPushConsumerBuilder {
    client_config: ClientConfig,
    manager: MQClientManager,
    config: PushConsumerConfig,
    listener: Option<Arc<dyn MessageListenerConcurrently>>,
    message_queue_listener: Option<Arc<dyn MessageQueueListener>>,
    problems: Vec<String>,
}

const HALF_AN_HOUR_MILLIS: i64 = 30 * 60 * 1000;

impl DefaultMQPushConsumerBuilder {
    fn new(consumer_group: String) -> Self {
        Self {
            client_config: ClientConfig::default(),
            manager: MQClientManager::global().clone(),
            config: PushConsumerConfig {
                consumer_group,
                namespace: Namespace::default(),
                unit_mode: false,
                consume_from_where: ConsumeFromWhere::ConsumeFromLastOffset,
                consume_timestamp: system_time_millis() - HALF_AN_HOUR_MILLIS,
                strategy: Arc::new(AllocateMessageQueueAveragely),
                subscriptions: BTreeMap::new(),
                consume_threads: 20,
                consume_message_batch_max_size: 1,
                consume_concurrently_max_span: 2000,
                pull_threshold_for_queue: 1000,
                pull_threshold_size_for_queue: 100,
                pull_interval: Duration::ZERO,
                pull_batch_size: 32,
                pull_batch_size_in_bytes: 256 * 1024,
                pull_time_delay_when_exception: Duration::from_secs(1),
                max_reconsume_times: None,
                hand_over_grace: Duration::from_millis(100),
                consume_timeout: Duration::from_secs(15 * 60),
            },
            listener: None,
            message_queue_listener: None,
            problems: Vec::new(),
        }
    }

    client_config_setters!();

    /// The manager whose instances and threads the client uses. Default:
    /// [`MQClientManager::global`].
    pub fn client_manager(mut self, manager: &MQClientManager) -> Self {
        self.manager = manager.clone();
        self
    }

    /// Subscribes a topic. `sub_expression` is tags joined by `||`; `*` means all messages. A topic
    /// subscribed twice has the later expression. Java `subscribe`.
    pub fn subscribe(mut self, topic: &str, sub_expression: &str) -> Self {
        if let Err(error) = validators::check_topic(topic) {
            self.problems.push(format!("topic {topic:?}: {error}"));
        }
        match SubscriptionData::build(topic, sub_expression, system_time_millis()) {
            Ok(subscription) => {
                self.config
                    .subscriptions
                    .insert(topic.to_owned(), subscription);
            }
            Err(error) => self.problems.push(format!("topic {topic:?}: {error}")),
        }
        self
    }

    /// What is called with messages. Java `registerMessageListener`.
    pub fn message_listener(
        mut self,
        listener: impl MessageListenerConcurrently + 'static,
    ) -> Self {
        self.listener = Some(Arc::new(listener));
        self
    }

    /// What is called when the own queues of a topic change. Default: nothing; Java
    /// `setMessageQueueListener`.
    pub fn message_queue_listener(mut self, listener: impl MessageQueueListener + 'static) -> Self {
        self.message_queue_listener = Some(Arc::new(listener));
        self
    }

    /// How the queues are divided; all members of a group must say the same. Default
    /// [`AllocateMessageQueueAveragely`]; Java `allocateMessageQueueStrategy`.
    pub fn allocate_message_queue_strategy(
        mut self,
        strategy: impl AllocateMessageQueueStrategy + 'static,
    ) -> Self {
        self.config.strategy = Arc::new(strategy);
        self
    }

    /// Where the group starts on a queue for which the broker has no offset of it. Default: at the
    /// end; Java `consumeFromWhere`.
    pub fn consume_from_where(mut self, from: ConsumeFromWhere) -> Self {
        self.config.consume_from_where = from;
        self
    }

    /// The time from which on messages count for
    /// [`ConsumeFromTimestamp`](ConsumeFromWhere::ConsumeFromTimestamp), in milliseconds since 1970.
    /// Default: half an hour before the builder was made; Java `consumeTimestamp`, a text in local
    /// time to the second.
    pub fn consume_timestamp(mut self, millis: i64) -> Self {
        self.config.consume_timestamp = millis;
        self
    }

    /// How many threads call the listener; they start when there is work. Default 20, range
    /// 1..=1000; Java `consumeThreadMin` and `consumeThreadMax`.
    pub fn consume_threads(mut self, threads: usize) -> Self {
        self.config.consume_threads = threads;
        self
    }

    /// The most messages in one call of the listener. Default 1, range 1..=1024; Java
    /// `consumeMessageBatchMaxSize`.
    pub fn consume_message_batch_max_size(mut self, messages: usize) -> Self {
        self.config.consume_message_batch_max_size = messages;
        self
    }

    /// The largest distance between the first unfinished message of a queue and the last that was
    /// pulled; beyond it the queue is not pulled. Default 2000, range 1..=65535; Java
    /// `consumeConcurrentlyMaxSpan`.
    pub fn consume_concurrently_max_span(mut self, span: u64) -> Self {
        self.config.consume_concurrently_max_span = span;
        self
    }

    /// How many unfinished messages of a queue are kept before it is not pulled. Default 1000, range
    /// 1..=65535; Java `pullThresholdForQueue`.
    pub fn pull_threshold_for_queue(mut self, messages: u64) -> Self {
        self.config.pull_threshold_for_queue = messages;
        self
    }

    /// How many MiB of unfinished messages of a queue are kept before it is not pulled. Default 100,
    /// range 1..=1024; Java `pullThresholdSizeForQueue`.
    pub fn pull_threshold_size_for_queue(mut self, mebibytes: u64) -> Self {
        self.config.pull_threshold_size_for_queue = mebibytes;
        self
    }

    /// A pause after each pull that brought messages. Default 0, range up to 65,535 ms; Java
    /// `pullInterval`.
    pub fn pull_interval(mut self, interval: Duration) -> Self {
        self.config.pull_interval = interval;
        self
    }

    /// The most messages in one pull. Default 32, range 1..=1024; brokers have limits of their own.
    /// Java `pullBatchSize`.
    pub fn pull_batch_size(mut self, messages: i32) -> Self {
        self.config.pull_batch_size = messages;
        self
    }

    /// How long a queue rests after a failed pull. Default 1 s; Java
    /// `pullTimeDelayMillsWhenException`.
    pub fn pull_time_delay_when_exception(mut self, delay: Duration) -> Self {
        self.config.pull_time_delay_when_exception = delay;
        self
    }

    /// How often a message is tried before it goes to the group's dead-letter queue. Default 16;
    /// Java `maxReconsumeTimes`.
    pub fn max_reconsume_times(mut self, times: i32) -> Self {
        self.config.max_reconsume_times = Some(times);
        self
    }

    /// How long the listener may have a message before it is given back to its broker, and delivered
    /// again, as if it had failed; this is looked at as often. The listener is not interrupted, and
    /// its result does not count for that message any more. Default 15 min, at least 1 ms; Java
    /// `consumeTimeout`, in minutes.
    pub fn consume_timeout(mut self, timeout: Duration) -> Self {
        self.config.consume_timeout = timeout;
        self
    }

    /// How long a queue that another member may have had is left alone before its offset is asked
    /// for, so that the member can save it. Default 100 ms. In Java a queue's first pull is delayed
    /// by 500 ms instead.
    pub fn hand_over_grace(mut self, grace: Duration) -> Self {
        self.config.hand_over_grace = grace;
        self
    }

    /// Checks all settings and makes the consumer, which is then to be started.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::Error::InvalidConfig) with every setting that is wrong.
    pub fn build(mut self) -> Result<DefaultMQPushConsumer> {
        let mut problems = std::mem::take(&mut self.problems);
        self.client_config.validate(&mut problems);
        self.config.unit_mode = self.client_config.unit_mode;
        self.config.move_into(self.client_config.namespace.clone());
        self.config.validate(&mut problems);
        let Some(listener) = self.listener else {
            problems.push("no message_listener is set".to_owned());
            return Err(Error::InvalidConfig { problems });
        };
        client_config::reject(problems)?;
        let inner = DefaultMQPushConsumerImpl::new(
            self.config,
            self.client_config,
            self.manager,
            listener,
            self.message_queue_listener,
        );
        Ok(DefaultMQPushConsumer {
            guard: Arc::new(Guard {
                inner: Arc::new(inner),
            }),
        })
    }
}

impl PushConsumerConfig {
    /// Gives group and topics the names by which brokers know them.
    fn move_into(&mut self, namespace: Namespace) {
        self.consumer_group = namespace.wrap(&self.consumer_group).into_owned();
        for (topic, mut subscription) in std::mem::take(&mut self.subscriptions) {
            let topic = namespace.wrap(&topic).into_owned();
            subscription.topic.clone_from(&topic);
            self.subscriptions.insert(topic, subscription);
        }
        self.namespace = namespace;
    }

    fn validate(&self, problems: &mut Vec<String>) {
        if let Err(error) = validators::check_group(&self.consumer_group) {
            problems.push(format!("consumer group {:?}: {error}", self.consumer_group));
        }
        if self.consumer_group == "DEFAULT_CONSUMER" {
            problems.push("consumer group DEFAULT_CONSUMER is reserved".to_owned());
        }
        if self.subscriptions.is_empty() {
            problems.push("no topic is subscribed".to_owned());
        }
        if self.consume_timeout < Duration::from_millis(1) {
            problems.push(format!(
                "consume_timeout is {:?}, the least is 1 ms",
                self.consume_timeout
            ));
        }
        let ranges: [(&str, u64, u64, u64); 7] = [
            ("consume_threads", self.consume_threads as u64, 1, 1000),
            (
                "consume_message_batch_max_size",
                self.consume_message_batch_max_size as u64,
                1,
                1024,
            ),
            (
                "consume_concurrently_max_span",
                self.consume_concurrently_max_span,
                1,
                65_535,
            ),
            (
                "pull_threshold_for_queue",
                self.pull_threshold_for_queue,
                1,
                65_535,
            ),
            (
                "pull_threshold_size_for_queue",
                self.pull_threshold_size_for_queue,
                1,
                1024,
            ),
            (
                "pull_batch_size",
                u64::try_from(self.pull_batch_size).unwrap_or(0),
                1,
                1024,
            ),
            (
                "pull_interval",
                u64::try_from(self.pull_interval.as_millis()).unwrap_or(u64::MAX),
                0,
                65_535,
            ),
        ];
        for range in ranges {
            check_range(range, problems);
        }
    }
}

fn check_range((name, value, least, most): (&str, u64, u64, u64), problems: &mut Vec<String>) {
    if !(least..=most).contains(&value) {
        problems.push(format!("{name} is {value}, the range is {least}..={most}"));
    }
}

impl fmt::Debug for DefaultMQPushConsumerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DefaultMQPushConsumerBuilder")
            .field("consumer_group", &self.config.consumer_group)
            .field("subscriptions", &self.config.subscriptions)
            .finish_non_exhaustive()
    }
}
