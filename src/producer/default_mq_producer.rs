//! The producer a user holds.

use std::time::Duration;

use rocketmq_protocol::mix_all::AUTO_CREATE_TOPIC_KEY_TOPIC;
use rocketmq_protocol::{Message, MessageQueue, validators};

use super::default_mq_producer_impl::{
    DEFAULT_RETRY_RESPONSE_CODES, DefaultMQProducerImpl, ProducerConfig,
};
use super::send_kernel::SendSettings;
use super::send_result::SendResult;
use crate::client::{Client, Handle, MQClientManager, ShutdownReport};
use crate::client_config::{self, ClientConfig, Namespace, client_config_setters};
use crate::error::Result;
use crate::service::ServiceState;
use crate::sync::Arc;

/// Sends messages to the brokers of their topic, from any number of threads.
///
/// Clones are the same producer. When the last one is dropped without a shutdown, the producer shuts
/// down within a second.
///
/// # Java
/// `DefaultMQProducer`.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use rocketmq_blocking::{DefaultMQProducer, Message, SendStatus};
/// use rocketmq_embedded::Cluster;
///
/// let cluster = Cluster::builder().start()?;
/// cluster.create_topic("Orders", 4)?;
/// let producer = DefaultMQProducer::builder("shop").namesrv_addr(&cluster.namesrv_addr()).build()?;
/// producer.start()?;
/// let result = producer.send(&Message::new("Orders", "one book").with_tags("Books"))?;
/// assert_eq!(result.send_status, SendStatus::SendOk);
///
/// let error = producer.send(&Message::new("Orders", "")).unwrap_err();
/// assert_eq!(error.to_string(), "message for topic \"Orders\" refused: the body is empty");
/// producer.shutdown(Duration::from_secs(5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct DefaultMQProducer {
    handle: Arc<Handle<DefaultMQProducerImpl>>,
}

impl DefaultMQProducer {
    /// Begins to set up a producer of a group.
    pub fn builder(producer_group: impl Into<String>) -> DefaultMQProducerBuilder {
        DefaultMQProducerBuilder::new(producer_group.into())
    }

    pub(super) fn inner(&self) -> &Arc<DefaultMQProducerImpl> {
        self.handle.client()
    }

    /// Starts the producer.
    ///
    /// # Blocking
    /// It starts threads and connects to nobody; brokers are met at the first send.
    ///
    /// # Errors
    /// [`ServiceState`](crate::Error::ServiceState) when it was started or shut down before;
    /// [`MQClient`](crate::Error::MQClient) when another producer of the group runs with the same
    /// `instance_name`, or threads cannot be started. A wrong address is no error here, but at the
    /// first send.
    pub fn start(&self) -> Result<()> {
        self.handle.client().start()
    }

    /// Sends a message and waits until a broker has stored it. `Ok` means stored; how safely is in
    /// [`SendResult::send_status`].
    ///
    /// Queues are taken in turn. When a broker cannot be reached, does not answer, or answers with a
    /// code that another one may not answer with, a queue of another broker is tried, up to
    /// `retry_times_when_send_failed` times. A message whose outcome is in doubt may then be stored
    /// twice, with the same unique key.
    ///
    /// A topic that does not exist is created by the first send to it where brokers allow that
    /// (`autoCreateTopicEnable`); a misspelt name is then no error.
    ///
    /// # Blocking
    /// At most `send_msg_timeout` (3 s), all attempts together. The first send to a topic also
    /// fetches its route.
    ///
    /// # Errors
    /// [`ServiceState`](crate::Error::ServiceState) unless the producer is running;
    /// [`InvalidMessage`](crate::Error::InvalidMessage) before anything is sent;
    /// [`MQClient`](crate::Error::MQClient) after the last attempt, with what failed underneath as
    /// its source; see [`Error::may_have_been_stored`](crate::Error::may_have_been_stored).
    ///
    /// # Java
    /// `DefaultMQProducer#send(Message)`. A failure that leaves the outcome in doubt is reported even
    /// if a later attempt failed without doubt.
    pub fn send(&self, message: &Message) -> Result<SendResult> {
        self.send_with_timeout(message, self.handle.client().config.send_msg_timeout)
    }

    /// [`send`](Self::send) with a time limit of its own.
    ///
    /// # Blocking
    /// At most `timeout`.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_with_timeout(&self, message: &Message, timeout: Duration) -> Result<SendResult> {
        self.handle.client().send(message, timeout)
    }

    /// Creates a topic with `queue_num` queues on each broker that has the topic `key`, TBW102 for
    /// all of a cluster. Name servers learn of it within moments.
    ///
    /// # Blocking
    /// At most 6 s.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::Error::InvalidConfig) for a bad name or number;
    /// [`MQClient`](crate::Error::MQClient) when no broker has created it, with the reason of the
    /// last one as its source.
    ///
    /// # Java
    /// `MQAdmin#createTopic`
    pub fn create_topic(&self, key: &str, topic: &str, queue_num: i32) -> Result<()> {
        let mut problems = Vec::new();
        let wrapped = self.namespace().wrap(topic);
        if let Err(error) = validators::check_topic(&wrapped) {
            problems.push(format!("topic {topic:?}: {error}"));
        }
        if queue_num < 1 {
            problems.push(format!("queue_num is {queue_num}, the least is 1"));
        }
        client_config::reject(problems)?;
        self.handle
            .client()
            .instance()?
            .create_topic(key, &wrapped, queue_num)
    }

    fn namespace(&self) -> &Namespace {
        &self.handle.client().config.send.namespace
    }

    /// The queues of a topic that can be written, sorted by broker name and id.
    ///
    /// # Blocking
    /// At most `mq_client_api_timeout` for each name server, 6 s in all.
    ///
    /// # Errors
    /// [`MQClient`](crate::Error::MQClient) when the name server knows no such queue.
    ///
    /// # Java
    /// `MQProducer#fetchPublishMessageQueues`
    pub fn fetch_publish_message_queues(&self, topic: &str) -> Result<Vec<MessageQueue>> {
        let namespace = self.namespace();
        let instance = self.handle.client().instance()?;
        let queues = instance.fetch_publish_message_queues(&namespace.wrap(topic))?;
        Ok(queues.iter().map(|mq| namespace.unwrap_queue(mq)).collect())
    }

    /// The offset after a queue's last message. A queue that does not exist has 0.
    ///
    /// # Blocking
    /// At most 6 s.
    ///
    /// # Errors
    /// [`ServiceState`](crate::Error::ServiceState) unless the producer is running;
    /// [`MQClient`](crate::Error::MQClient) when the queue's broker is in no route; otherwise what
    /// the broker or the network says.
    ///
    /// # Java
    /// `MQAdmin#maxOffset`
    pub fn max_offset(&self, mq: &MessageQueue) -> Result<i64> {
        self.handle
            .client()
            .instance()?
            .max_offset(&self.namespace().wrap_queue(mq))
    }

    /// A queue's smallest offset. A queue that does not exist has 0.
    ///
    /// # Blocking
    /// At most 6 s.
    ///
    /// # Errors
    /// [`ServiceState`](crate::Error::ServiceState) unless the producer is running;
    /// [`MQClient`](crate::Error::MQClient) when the queue's broker is in no route; otherwise what
    /// the broker or the network says.
    ///
    /// # Java
    /// `MQAdmin#minOffset`
    pub fn min_offset(&self, mq: &MessageQueue) -> Result<i64> {
        self.handle
            .client()
            .instance()?
            .min_offset(&self.namespace().wrap_queue(mq))
    }

    /// Replaces the list of name servers, `host:port` joined by `;`. All clients that share the
    /// instance have it from now on. If the server in use is not in it, its connection is closed and
    /// what is being asked there is asked of another one.
    ///
    /// What [`namesrv_domain`](DefaultMQProducerBuilder::namesrv_domain) answers later does not
    /// count any more.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::Error::InvalidConfig) for an empty list or what is not `host:port`;
    /// [`ServiceState`](crate::Error::ServiceState) unless the producer is running.
    ///
    /// # Java
    /// `MQClientAPIImpl#updateNameServerAddressList`
    pub fn update_name_server_address_list(&self, list: &str) -> Result<()> {
        self.handle
            .client()
            .member()
            .update_name_server_address_list(list)
    }

    /// Ends the producer for good: it leaves its group, and the last client of an instance stops the
    /// instance's threads. Calling it again returns the first call's report.
    ///
    /// # Blocking
    /// At most `timeout`; not at all on a thread of this library, where the work goes on in the
    /// background and the report says `deferred`.
    pub fn shutdown(&self, timeout: Duration) -> ShutdownReport {
        self.handle.shutdown(timeout)
    }

    /// Waits for the end of a shutdown, whoever began it.
    ///
    /// # Blocking
    /// At most `timeout`; returns `None` if the producer has not ended by then, and at once on a
    /// thread of this library.
    pub fn await_termination(&self, timeout: Duration) -> Option<ShutdownReport> {
        self.handle.await_termination(timeout)
    }

    /// Waits until the producer has been shut down by another thread, for instance one that waits for a
    /// signal: what `main` does when it has nothing else to do.
    ///
    /// # Blocking
    /// For as long as the producer lives, also if it was never started. Returns `None` on a thread of
    /// this library, at once.
    pub fn wait(&self) -> Option<ShutdownReport> {
        self.handle.wait()
    }

    /// Where the producer is in its life.
    pub fn service_state(&self) -> ServiceState {
        self.handle.client().member().state()
    }

    /// The id by which brokers know this client; `None` before the start and after the end.
    pub fn client_id(&self) -> Option<String> {
        self.handle.client().member().client_id()
    }
}

/// Sets up a [`DefaultMQProducer`]. Every setting has Java's default.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct DefaultMQProducerBuilder {
    client_config: ClientConfig,
    manager: MQClientManager,
    config: ProducerConfig,
}

impl DefaultMQProducerBuilder {
    fn new(producer_group: String) -> Self {
        Self {
            client_config: ClientConfig::default(),
            manager: MQClientManager::global().clone(),
            config: ProducerConfig {
                send: SendSettings {
                    producer_group,
                    namespace: Namespace::default(),
                    unit_mode: false,
                    create_topic_key: AUTO_CREATE_TOPIC_KEY_TOPIC.to_owned(),
                    default_topic_queue_nums: 4,
                    compress_msg_body_over_howmuch: 4096,
                    max_message_size: 4 * 1024 * 1024,
                },
                send_msg_timeout: Duration::from_secs(3),
                send_msg_max_timeout_per_request: None,
                retry_times_when_send_failed: 2,
                retry_another_broker_when_not_store_ok: false,
                retry_response_codes: DEFAULT_RETRY_RESPONSE_CODES.into(),
            },
        }
    }

    client_config_setters!();

    /// The manager whose instances and threads the client uses. Default:
    /// [`MQClientManager::global`].
    pub fn client_manager(mut self, manager: &MQClientManager) -> Self {
        self.manager = manager.clone();
        self
    }

    /// The time limit of a send, all attempts together. Default 3 s, at least 1 ms; Java
    /// `sendMsgTimeout`.
    pub fn send_msg_timeout(mut self, timeout: Duration) -> Self {
        self.config.send_msg_timeout = timeout;
        self
    }

    /// The time limit of one attempt, as long as another one is possible, so that a silent broker
    /// does not use up the whole time. Default: none, at least 1 ms; Java
    /// `sendMsgMaxTimeoutPerRequest`.
    pub fn send_msg_max_timeout_per_request(mut self, timeout: Duration) -> Self {
        self.config.send_msg_max_timeout_per_request = Some(timeout);
        self
    }

    /// How often a failed send is tried again on another broker. Default 2, so three attempts in
    /// all; Java `retryTimesWhenSendFailed`.
    pub fn retry_times_when_send_failed(mut self, times: u32) -> Self {
        self.config.retry_times_when_send_failed = times;
        self
    }

    /// Whether a message that is stored, but not as safely as configured, is sent to another broker
    /// as well. Default no; Java `retryAnotherBrokerWhenNotStoreOK`.
    pub fn retry_another_broker_when_not_store_ok(mut self, retry: bool) -> Self {
        self.config.retry_another_broker_when_not_store_ok = retry;
        self
    }

    /// The response codes after which another broker is tried. Default 1, 2, 14, 16, 17, 204, 205
    /// and 1500; Java `retryResponseCodes`.
    pub fn retry_response_codes(mut self, codes: impl IntoIterator<Item = i32>) -> Self {
        self.config.retry_response_codes = codes.into_iter().collect();
        self
    }

    /// Bodies of at least so many bytes are compressed. Default 4096; Java
    /// `compressMsgBodyOverHowmuch`.
    pub fn compress_msg_body_over_howmuch(mut self, bytes: usize) -> Self {
        self.config.send.compress_msg_body_over_howmuch = bytes;
        self
    }

    /// The largest body, in bytes, before compression. Default 4 MiB, at least 1; Java
    /// `maxMessageSize`.
    pub fn max_message_size(mut self, bytes: usize) -> Self {
        self.config.send.max_message_size = bytes;
        self
    }

    /// The most queues per broker that a topic gets when it is created by the first send to it.
    /// Default 4, at least 1; Java `defaultTopicQueueNums`.
    pub fn default_topic_queue_nums(mut self, queues: i32) -> Self {
        self.config.send.default_topic_queue_nums = queues;
        self
    }

    /// The topic whose settings a topic takes that is created by the first send to it. Default
    /// TBW102; Java `createTopicKey`.
    pub fn create_topic_key(mut self, topic: impl Into<String>) -> Self {
        self.config.send.create_topic_key = topic.into();
        self
    }

    /// Checks all settings and makes the producer, which is then to be started.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::Error::InvalidConfig) with every setting that is wrong.
    pub fn build(mut self) -> Result<DefaultMQProducer> {
        let mut problems = Vec::new();
        self.client_config.validate(&mut problems);
        let send = &mut self.config.send;
        let namespace = self.client_config.namespace.clone();
        send.producer_group = namespace.wrap(&send.producer_group).into_owned();
        send.namespace = namespace;
        send.unit_mode = self.client_config.unit_mode;
        if let Err(error) = validators::check_group(&send.producer_group) {
            problems.push(format!("producer group {:?}: {error}", send.producer_group));
        }
        if send.producer_group == "DEFAULT_PRODUCER" {
            problems.push("producer group DEFAULT_PRODUCER is reserved".to_owned());
        }
        if let Err(error) = validators::check_topic(&send.create_topic_key) {
            problems.push(format!(
                "create_topic_key {:?}: {error}",
                send.create_topic_key
            ));
        }
        for (name, timeout) in [
            ("send_msg_timeout", Some(self.config.send_msg_timeout)),
            (
                "send_msg_max_timeout_per_request",
                self.config.send_msg_max_timeout_per_request,
            ),
        ] {
            if let Some(timeout) = timeout.filter(|timeout| *timeout < Duration::from_millis(1)) {
                problems.push(format!("{name} is {timeout:?}, the least is 1 ms"));
            }
        }
        if send.default_topic_queue_nums < 1 {
            problems.push(format!(
                "default_topic_queue_nums is {}, the least is 1",
                send.default_topic_queue_nums
            ));
        }
        if send.max_message_size == 0 {
            problems.push("max_message_size is 0, the least is 1".to_owned());
        }
        client_config::reject(problems)?;
        let inner = DefaultMQProducerImpl::new(self.config, self.client_config, self.manager);
        Ok(DefaultMQProducer {
            handle: Handle::new(inner),
        })
    }
}
