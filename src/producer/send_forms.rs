//! The ways to send: waiting, with a callback, or without an answer; to any queue, to a given one, or to
//! one that is chosen.

use std::time::Duration;

use rocketmq_protocol::{Message, MessageQueue};

use super::async_send::Destination;
use super::default_mq_producer::DefaultMQProducer;
use super::default_mq_producer_impl::{Outgoing, select_of};
use super::gathered_send::Gathered;
use super::message_queue_selector::MessageQueueSelector;
use super::send_failure::SendFailure;
use super::send_result::SendResult;
use crate::client::TopicPublishInfo;
use crate::error::Result;

impl DefaultMQProducer {
    fn timeout(&self) -> Duration {
        self.inner().config.send_msg_timeout
    }

    /// Sends a message and waits until a broker has stored it. `Ok` means stored; how safely is in
    /// [`SendResult::send_status`].
    ///
    /// Queues are taken in turn. When a broker cannot be reached, does not answer, or answers with a
    /// code that another one may not answer with, a queue of a broker that was not tried yet is
    /// tried, up to `retry_times_when_send_failed` times. A message whose outcome is in doubt may
    /// then be stored twice, with the same unique key.
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
    /// if a later attempt failed without doubt. Java remembers the last broker only, so its third
    /// attempt may go to the first one's.
    pub fn send(&self, message: &Message) -> Result<SendResult> {
        match self.inner().send_by_accumulator(message, None) {
            Some(outcome) => outcome,
            None => self.send_with_timeout(message, self.timeout()),
        }
    }

    /// [`send`](Self::send) with a time limit of its own.
    ///
    /// # Blocking
    /// At most `timeout`.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_with_timeout(&self, message: &Message, timeout: Duration) -> Result<SendResult> {
        self.inner().send(&Outgoing::One(message), timeout)
    }

    /// Sends a message to a queue and waits until its broker has stored it. There is one attempt.
    ///
    /// # Blocking
    /// At most `send_msg_timeout` (3 s).
    ///
    /// # Errors
    /// [`InvalidMessage`](crate::Error::InvalidMessage) before anything is sent, also when the queue
    /// is of another topic; else what became of the attempt.
    ///
    /// # Java
    /// `DefaultMQProducer#send(Message, MessageQueue)`
    pub fn send_to_queue(&self, message: &Message, mq: &MessageQueue) -> Result<SendResult> {
        match self.inner().send_by_accumulator(message, Some(mq)) {
            Some(outcome) => outcome,
            None => self.send_to_queue_with_timeout(message, mq, self.timeout()),
        }
    }

    /// [`send_to_queue`](Self::send_to_queue) with a time limit of its own.
    ///
    /// # Blocking
    /// At most `timeout`.
    ///
    /// # Errors
    /// As [`send_to_queue`](Self::send_to_queue).
    pub fn send_to_queue_with_timeout(
        &self,
        message: &Message,
        mq: &MessageQueue,
        timeout: Duration,
    ) -> Result<SendResult> {
        let what = Outgoing::One(message);
        self.inner().send_to_queue(&what, mq, timeout)
    }

    /// Sends a message to the queue that a selector chooses, and waits until its broker has stored
    /// it. There is one attempt.
    ///
    /// # Blocking
    /// At most `send_msg_timeout` (3 s) and what the selector takes.
    ///
    /// # Errors
    /// As [`send_to_queue`](Self::send_to_queue), and [`MQClient`](crate::Error::MQClient) when
    /// nothing is chosen or the topic has no route.
    ///
    /// # Java
    /// `DefaultMQProducer#send(Message, MessageQueueSelector, Object)`
    ///
    /// # Examples
    /// ```
    /// use rocketmq_blocking::{DefaultMQProducer, Message, SelectMessageQueueByHash};
    /// use rocketmq_embedded::Cluster;
    ///
    /// let cluster = Cluster::builder().start()?;
    /// cluster.create_topic("Orders", 4)?;
    /// let producer = DefaultMQProducer::builder("shop").namesrv_addr(&cluster.namesrv_addr()).build()?;
    /// producer.start()?;
    /// let order = "order-7";
    /// let paid = Message::new("Orders", "paid");
    /// let first = producer.send_with_selector(&paid, &SelectMessageQueueByHash, order)?;
    /// let second = producer.send_with_selector(&paid, &SelectMessageQueueByHash, order)?;
    /// assert_eq!(first.message_queue, second.message_queue);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn send_with_selector<A: ?Sized>(
        &self,
        message: &Message,
        selector: &impl MessageQueueSelector<A>,
        arg: &A,
    ) -> Result<SendResult> {
        self.send_with_selector_and_timeout(message, selector, arg, self.timeout())
    }

    /// [`send_with_selector`](Self::send_with_selector) with a time limit of its own.
    ///
    /// # Blocking
    /// At most `timeout` and what the selector takes.
    ///
    /// # Errors
    /// As [`send_with_selector`](Self::send_with_selector).
    pub fn send_with_selector_and_timeout<A: ?Sized>(
        &self,
        message: &Message,
        selector: &impl MessageQueueSelector<A>,
        arg: &A,
        timeout: Duration,
    ) -> Result<SendResult> {
        let select = |mqs: &[MessageQueue]| selector.select(mqs, message, arg);
        self.inner().send_selected(message, select, timeout)
    }

    /// Sends a message without waiting for the broker. `callback` runs exactly once if this returns
    /// `Ok`, on a thread named `SendCallbackExecutor_<n>`, and may block there; it does not run if
    /// this returns an error. A failure of either kind brings the message back.
    ///
    /// There are further attempts as in [`send`](Self::send), up to
    /// `retry_times_when_send_async_failed`, as long as there is time. The messages of one thread to
    /// one queue arrive in their order if none of them fails and the topic's route is known.
    ///
    /// # Blocking
    /// Not at all; with
    /// [`enable_backpressure_for_async_mode`](crate::DefaultMQProducerBuilder::enable_backpressure_for_async_mode)
    /// until there is room, at most `send_msg_timeout` (3 s). The callback comes within that time.
    ///
    /// # Errors
    /// [`InvalidMessage`](crate::Error::InvalidMessage), [`ServiceState`](crate::Error::ServiceState),
    /// and [`RemotingTooMuchRequest`](crate::Error::RemotingTooMuchRequest) when there was no room in
    /// time. Everything else is told to the callback.
    ///
    /// # Java
    /// `DefaultMQProducer#send(Message, SendCallback)`, which tells the callback of all errors. A
    /// shutdown there forgets callbacks; here it waits for them, and those that are left when its
    /// time is up come later.
    ///
    /// # Examples
    /// ```
    /// use std::sync::mpsc::channel;
    ///
    /// use rocketmq_blocking::{DefaultMQProducer, Message};
    /// use rocketmq_embedded::Cluster;
    ///
    /// let cluster = Cluster::builder().start()?;
    /// cluster.create_topic("Orders", 4)?;
    /// let producer = DefaultMQProducer::builder("shop").namesrv_addr(&cluster.namesrv_addr()).build()?;
    /// producer.start()?;
    /// let (told, outcome) = channel();
    /// producer.send_async(Message::new("Orders", "one book"), move |outcome| {
    ///     let _ = told.send(outcome);
    /// })?;
    /// assert_eq!(outcome.recv()??.queue_offset, 0);
    ///
    /// let failure = producer.send_async(Message::new("Orders", ""), |_| {}).unwrap_err();
    /// assert_eq!(failure.message().topic(), "Orders");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn send_async(
        &self,
        message: Message,
        callback: impl FnOnce(Result<SendResult, SendFailure>) + Send + 'static,
    ) -> Result<(), SendFailure> {
        self.gather(message, None, callback)
    }

    /// [`send_async`](Self::send_async) with a time limit of its own, for waiting for room and for
    /// all attempts together.
    ///
    /// # Blocking
    /// As [`send_async`](Self::send_async).
    ///
    /// # Errors
    /// As [`send_async`](Self::send_async).
    pub fn send_async_with_timeout(
        &self,
        message: Message,
        timeout: Duration,
        callback: impl FnOnce(Result<SendResult, SendFailure>) + Send + 'static,
    ) -> Result<(), SendFailure> {
        self.begin_one(message, Destination::Any, timeout, callback)
    }

    /// [`send_async`](Self::send_async) to a queue. There is one attempt.
    ///
    /// # Blocking
    /// As [`send_async`](Self::send_async).
    ///
    /// # Errors
    /// As [`send_async`](Self::send_async).
    pub fn send_async_to_queue(
        &self,
        message: Message,
        mq: &MessageQueue,
        callback: impl FnOnce(Result<SendResult, SendFailure>) + Send + 'static,
    ) -> Result<(), SendFailure> {
        self.gather(message, Some(mq), callback)
    }

    /// [`send_async_to_queue`](Self::send_async_to_queue) with a time limit of its own.
    ///
    /// # Blocking
    /// As [`send_async`](Self::send_async).
    ///
    /// # Errors
    /// As [`send_async`](Self::send_async).
    pub fn send_async_to_queue_with_timeout(
        &self,
        message: Message,
        mq: &MessageQueue,
        timeout: Duration,
        callback: impl FnOnce(Result<SendResult, SendFailure>) + Send + 'static,
    ) -> Result<(), SendFailure> {
        let destination = Destination::Queue(mq.clone());
        self.begin_one(message, destination, timeout, callback)
    }

    /// [`send_async`](Self::send_async) to the queue that a selector chooses. There is one attempt.
    /// The selector runs on this thread, or on another one when the topic's route has to be fetched
    /// first.
    ///
    /// # Blocking
    /// As [`send_async`](Self::send_async), and what the selector takes.
    ///
    /// # Errors
    /// As [`send_async`](Self::send_async).
    pub fn send_async_with_selector<A: Send + 'static>(
        &self,
        message: Message,
        selector: impl MessageQueueSelector<A> + Send + 'static,
        arg: A,
        callback: impl FnOnce(Result<SendResult, SendFailure>) + Send + 'static,
    ) -> Result<(), SendFailure> {
        let timeout = self.timeout();
        self.send_async_with_selector_and_timeout(message, selector, arg, timeout, callback)
    }

    /// [`send_async_with_selector`](Self::send_async_with_selector) with a time limit of its own.
    ///
    /// # Blocking
    /// As [`send_async_with_selector`](Self::send_async_with_selector).
    ///
    /// # Errors
    /// As [`send_async`](Self::send_async).
    pub fn send_async_with_selector_and_timeout<A: Send + 'static>(
        &self,
        message: Message,
        selector: impl MessageQueueSelector<A> + Send + 'static,
        arg: A,
        timeout: Duration,
        callback: impl FnOnce(Result<SendResult, SendFailure>) + Send + 'static,
    ) -> Result<(), SendFailure> {
        let inner = self.inner();
        let namespace = inner.config.send.namespace.clone();
        let shown = message.clone();
        let select = move |info: &TopicPublishInfo| {
            let choose = |mqs: &[MessageQueue]| selector.select(mqs, &shown, &arg);
            select_of(info, &namespace, shown.topic(), choose)
        };
        let destination = Destination::Selected(Box::new(select));
        self.begin_one(message, destination, timeout, callback)
    }

    /// Sends a message with others if that is wanted, else by itself.
    fn gather(
        &self,
        message: Message,
        mq: Option<&MessageQueue>,
        callback: impl FnOnce(Result<SendResult, SendFailure>) + Send + 'static,
    ) -> Result<(), SendFailure> {
        let tell = move |outcome: Result<SendResult>, message| {
            callback(outcome.map_err(|error| SendFailure::new(error, message)));
        };
        match self.inner().send_async_by_accumulator(message, mq, tell) {
            Gathered::Yes => Ok(()),
            Gathered::Refused(error, message) => Err(SendFailure::new(error, message)),
            Gathered::Alone(message, tell) => {
                let to = mq.cloned().map_or(Destination::Any, Destination::Queue);
                self.begin(message, to, self.timeout(), tell)
            }
        }
    }

    fn begin_one(
        &self,
        message: Message,
        destination: Destination,
        timeout: Duration,
        callback: impl FnOnce(Result<SendResult, SendFailure>) + Send + 'static,
    ) -> Result<(), SendFailure> {
        let tell = move |outcome: Result<SendResult>, message| {
            callback(outcome.map_err(|error| SendFailure::new(error, message)));
        };
        self.begin(message, destination, timeout, tell)
    }

    fn begin(
        &self,
        message: Message,
        destination: Destination,
        timeout: Duration,
        tell: impl FnOnce(Result<SendResult>, Message) + Send + 'static,
    ) -> Result<(), SendFailure> {
        let inner = self.inner();
        match inner.send_async(&Outgoing::One(&message), destination, timeout) {
            Ok((send, held)) => {
                let callback = Box::new(move |outcome| tell(outcome, message));
                send.begin(held.until(inner, callback));
                Ok(())
            }
            Err(error) => Err(SendFailure::new(error, message)),
        }
    }

    /// Sends a message and asks for no answer. `Ok` means that it was handed to the network: it is
    /// lost without a word if the broker cannot be connected or refuses it.
    ///
    /// # Blocking
    /// Not at all once the topic's route is known; else at most `send_msg_timeout` (3 s).
    ///
    /// # Errors
    /// [`InvalidMessage`](crate::Error::InvalidMessage); the topic has no route; the connection is
    /// known to be broken; 65 535 one-way calls are being written.
    ///
    /// # Java
    /// `DefaultMQProducer#sendOneway(Message)`
    pub fn send_oneway(&self, message: &Message) -> Result<()> {
        self.inner().send_oneway(message)
    }

    /// [`send_oneway`](Self::send_oneway) to a queue.
    ///
    /// # Blocking
    /// As [`send_oneway`](Self::send_oneway).
    ///
    /// # Errors
    /// As [`send_oneway`](Self::send_oneway), and when the queue is of another topic.
    pub fn send_oneway_to_queue(&self, message: &Message, mq: &MessageQueue) -> Result<()> {
        self.inner().send_oneway_to_queue(message, mq)
    }

    /// [`send_oneway`](Self::send_oneway) to the queue that a selector chooses.
    ///
    /// # Blocking
    /// As [`send_oneway`](Self::send_oneway), and what the selector takes.
    ///
    /// # Errors
    /// As [`send_oneway`](Self::send_oneway), and when nothing is chosen.
    pub fn send_oneway_with_selector<A: ?Sized>(
        &self,
        message: &Message,
        selector: &impl MessageQueueSelector<A>,
        arg: &A,
    ) -> Result<()> {
        let select = |mqs: &[MessageQueue]| selector.select(mqs, message, arg);
        self.inner().send_oneway_selected(message, select)
    }

    /// Sends messages of one topic in one request, and waits until a broker has stored them: all or
    /// none, one behind the other in one queue. The result has their unique keys joined by commas,
    /// and the offset of the first.
    ///
    /// The messages have one topic, which is no retry topic, one answer to whether the broker waits
    /// until they are stored safely (`WAIT`), and no delay. They are not compressed. All together,
    /// encoded, they are at most [`max_message_size`](crate::DefaultMQProducerBuilder::max_message_size)
    /// bytes; [`split_batch`](crate::split_batch) divides more. There are further attempts as in
    /// [`send`](Self::send).
    ///
    /// # Blocking
    /// At most `send_msg_timeout` (3 s), all attempts together.
    ///
    /// # Errors
    /// As [`send`](Self::send); [`InvalidMessage`](crate::Error::InvalidMessage) also for messages
    /// that are not a batch, none at all for instance.
    ///
    /// # Java
    /// `DefaultMQProducer#send(Collection)`, where an empty one is a null pointer exception and
    /// delays by time pass.
    ///
    /// # Examples
    /// ```
    /// use rocketmq_blocking::{DefaultMQProducer, Message};
    /// use rocketmq_embedded::Cluster;
    ///
    /// let cluster = Cluster::builder().start()?;
    /// cluster.create_topic("Orders", 4)?;
    /// let producer = DefaultMQProducer::builder("shop").namesrv_addr(&cluster.namesrv_addr()).build()?;
    /// producer.start()?;
    /// let books = ["one", "two", "three"].map(|book| Message::new("Orders", book));
    /// let result = producer.send_batch(&books)?;
    /// assert_eq!(result.msg_id.split(',').count(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn send_batch(&self, messages: &[Message]) -> Result<SendResult> {
        self.send_batch_with_timeout(messages, self.timeout())
    }

    /// [`send_batch`](Self::send_batch) with a time limit of its own.
    ///
    /// # Blocking
    /// At most `timeout`.
    ///
    /// # Errors
    /// As [`send_batch`](Self::send_batch).
    pub fn send_batch_with_timeout(
        &self,
        messages: &[Message],
        timeout: Duration,
    ) -> Result<SendResult> {
        self.inner().send(&Outgoing::Batch(messages), timeout)
    }

    /// [`send_batch`](Self::send_batch) to a queue, in one attempt.
    ///
    /// # Blocking
    /// At most `send_msg_timeout` (3 s).
    ///
    /// # Errors
    /// As [`send_to_queue`](Self::send_to_queue) and [`send_batch`](Self::send_batch).
    pub fn send_batch_to_queue(
        &self,
        messages: &[Message],
        mq: &MessageQueue,
    ) -> Result<SendResult> {
        self.send_batch_to_queue_with_timeout(messages, mq, self.timeout())
    }

    /// [`send_batch_to_queue`](Self::send_batch_to_queue) with a time limit of its own.
    ///
    /// # Blocking
    /// At most `timeout`.
    ///
    /// # Errors
    /// As [`send_batch_to_queue`](Self::send_batch_to_queue).
    pub fn send_batch_to_queue_with_timeout(
        &self,
        messages: &[Message],
        mq: &MessageQueue,
        timeout: Duration,
    ) -> Result<SendResult> {
        let what = Outgoing::Batch(messages);
        self.inner().send_to_queue(&what, mq, timeout)
    }

    /// [`send_batch`](Self::send_batch) without waiting; see [`send_async`](Self::send_async).
    ///
    /// # Blocking
    /// As [`send_async`](Self::send_async).
    ///
    /// # Errors
    /// As [`send_async`](Self::send_async) and [`send_batch`](Self::send_batch); the messages come
    /// back.
    pub fn send_batch_async(
        &self,
        messages: Vec<Message>,
        callback: impl FnOnce(Result<SendResult, SendFailure<Vec<Message>>>) + Send + 'static,
    ) -> Result<(), SendFailure<Vec<Message>>> {
        self.begin_batch(messages, Destination::Any, self.timeout(), callback)
    }

    /// [`send_batch_async`](Self::send_batch_async) with a time limit of its own.
    ///
    /// # Blocking
    /// As [`send_async`](Self::send_async).
    ///
    /// # Errors
    /// As [`send_batch_async`](Self::send_batch_async).
    pub fn send_batch_async_with_timeout(
        &self,
        messages: Vec<Message>,
        timeout: Duration,
        callback: impl FnOnce(Result<SendResult, SendFailure<Vec<Message>>>) + Send + 'static,
    ) -> Result<(), SendFailure<Vec<Message>>> {
        self.begin_batch(messages, Destination::Any, timeout, callback)
    }

    /// [`send_batch_async`](Self::send_batch_async) to a queue, in one attempt.
    ///
    /// # Blocking
    /// As [`send_async`](Self::send_async).
    ///
    /// # Errors
    /// As [`send_batch_async`](Self::send_batch_async).
    pub fn send_batch_async_to_queue(
        &self,
        messages: Vec<Message>,
        mq: &MessageQueue,
        callback: impl FnOnce(Result<SendResult, SendFailure<Vec<Message>>>) + Send + 'static,
    ) -> Result<(), SendFailure<Vec<Message>>> {
        let destination = Destination::Queue(mq.clone());
        self.begin_batch(messages, destination, self.timeout(), callback)
    }

    fn begin_batch(
        &self,
        messages: Vec<Message>,
        destination: Destination,
        timeout: Duration,
        callback: impl FnOnce(Result<SendResult, SendFailure<Vec<Message>>>) + Send + 'static,
    ) -> Result<(), SendFailure<Vec<Message>>> {
        let inner = self.inner();
        match inner.send_async(&Outgoing::Batch(&messages), destination, timeout) {
            Ok((send, held)) => {
                let callback = Box::new(move |outcome: Result<SendResult>| {
                    callback(outcome.map_err(|error| SendFailure::new(error, messages)));
                });
                send.begin(held.until(inner, callback));
                Ok(())
            }
            Err(error) => Err(SendFailure::new(error, messages)),
        }
    }
}
