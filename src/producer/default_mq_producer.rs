//! The producer a user holds.

use std::time::Duration;

use rocketmq_protocol::{MessageQueue, validators};

use super::default_mq_producer_builder::DefaultMQProducerBuilder;
use super::default_mq_producer_impl::DefaultMQProducerImpl;
use crate::client::{Client, Handle, ShutdownReport};
use crate::client_config::{self, Namespace};
use crate::error::Result;
use crate::latency::{BackOffTable, FaultItem};
use crate::service::ServiceState;
use crate::sync::Arc;

/// Sends messages to the brokers of their topic, from any number of threads.
///
/// Clones are the same producer. When the last one is dropped without a shutdown, the producer shuts
/// down within a second, and only the log tells of it.
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
    /// Begins to set up a producer of a group: at most 120 characters of `% | - _ 0-9 a-z A-Z`, and not
    /// `DEFAULT_PRODUCER`; Java `producerGroup`.
    pub fn builder(producer_group: impl Into<String>) -> DefaultMQProducerBuilder {
        DefaultMQProducerBuilder::new(producer_group.into())
    }

    pub(super) fn of(inner: DefaultMQProducerImpl) -> Self {
        Self {
            handle: Handle::new(inner),
        }
    }

    pub(super) fn inner(&self) -> &Arc<DefaultMQProducerImpl> {
        self.handle.client()
    }

    /// Starts the producer.
    ///
    /// # Blocking
    /// It starts threads and connects to nobody; brokers are met at the first send, unless
    /// [`topics`](DefaultMQProducerBuilder::topics) are named.
    ///
    /// # Errors
    /// [`ServiceState`](crate::Error::ServiceState) when it was started or shut down before;
    /// [`MQClient`](crate::Error::MQClient) when another producer of the group runs with the same
    /// `instance_name`, or threads cannot be started. A wrong address is no error here, but at the
    /// first send.
    pub fn start(&self) -> Result<()> {
        self.handle.client().start()
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

    pub(super) fn namespace(&self) -> &Namespace {
        &self.inner().config.send.namespace
    }

    /// The queues of a topic that can be written, in the order in which sends go round them: by
    /// broker name and id, or as the topic's order configuration says, which names brokers also when
    /// they are gone.
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

    /// Switches on or off that slow and failing brokers are avoided, from the next send on; see
    /// [`send_latency_fault_enable`](DefaultMQProducerBuilder::send_latency_fault_enable).
    ///
    /// While it is off nothing new is remembered; what was remembered counts again when it is
    /// switched on and is not over by then.
    ///
    /// # Java
    /// `DefaultMQProducer#setSendLatencyFaultEnable`. `ClientConfig#setSendLatencyEnable` is read
    /// once there, when the producer is constructed, and does nothing later.
    pub fn set_send_latency_fault_enable(&self, enable: bool) {
        let strategy = self.inner().fault_strategy();
        strategy.set_send_latency_fault_enable(enable);
    }

    /// Whether slow and failing brokers are avoided.
    pub fn is_send_latency_fault_enable(&self) -> bool {
        self.inner().fault_strategy().is_send_latency_fault_enable()
    }

    /// Replaces the table by which slow brokers are avoided, from the next send on: after a send of
    /// at least `latency_max[i]` a broker is left alone for `not_available_duration[i]`. Waits that
    /// have begun go on.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::Error::InvalidConfig): the columns are of different length or empty,
    /// the first does not ascend, or the second exceeds a day.
    ///
    /// # Java
    /// `DefaultMQProducer#setLatencyMax` and `#setNotAvailableDuration`, in one step because each
    /// needs the other.
    pub fn set_latency_table(
        &self,
        latency_max: &[Duration],
        not_available_duration: &[Duration],
    ) -> Result<()> {
        match BackOffTable::new(latency_max, not_available_duration) {
            Ok(table) => {
                self.inner().fault_strategy().set_table(table);
                Ok(())
            }
            Err(problems) => client_config::reject(problems),
        }
    }

    /// The table by which slow brokers are avoided: latencies, and how long each lasts.
    ///
    /// # Java
    /// `DefaultMQProducer#getLatencyMax`, `#getNotAvailableDuration`
    pub fn latency_table(&self) -> (Vec<Duration>, Vec<Duration>) {
        let table = self.inner().fault_strategy().table();
        let (latency_max, not_available_duration) = table.columns();
        (latency_max.to_vec(), not_available_duration.to_vec())
    }

    /// Switches the detector on or off; see
    /// [`start_detector_enable`](DefaultMQProducerBuilder::start_detector_enable).
    ///
    /// # Errors
    /// [`MQClient`](crate::Error::MQClient) when its thread cannot be started.
    ///
    /// # Java
    /// `DefaultMQProducer#setStartDetectorEnable`
    pub fn set_start_detector_enable(&self, enable: bool) -> Result<()> {
        self.inner().set_start_detector_enable(enable)
    }

    /// Whether the detector is on.
    pub fn is_start_detector_enable(&self) -> bool {
        self.inner().fault_strategy().is_start_detector_enable()
    }

    /// What is remembered of brokers, the best one first: those that are available, then the
    /// quicker, then those that are available sooner. Empty unless
    /// [`send_latency_fault_enable`](DefaultMQProducerBuilder::send_latency_fault_enable) was on.
    ///
    /// # Java
    /// `LatencyFaultToleranceImpl`, the order of `FaultItem#compareTo`; not shown to users there.
    pub fn fault_items(&self) -> Vec<FaultItem> {
        self.inner().fault_strategy().fault_items()
    }

    /// How many traces were thrown away because too many waited, because the time of the shutdown was
    /// over, or because they could not be sent; 0 unless
    /// [`enable_trace`](DefaultMQProducerBuilder::enable_trace) is set.
    pub fn trace_discard_count(&self) -> u64 {
        self.inner().trace_discard_count()
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

    /// Ends the producer for good: what is gathered is sent and asynchronous sends are waited for, then
    /// it leaves its group, and the last client of an instance stops the instance's threads. Calling
    /// it again returns the first call's report.
    ///
    /// The report counts the asynchronous sends whose callbacks returned meanwhile, `drained`, and
    /// those that were not waited for any longer, `abandoned`; their callbacks run as well.
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
