//! Messages that are answered by messages.

use std::time::Duration;

use bytes::Bytes;
use rocketmq_protocol::{Message, MessageExt, MessageQueue, property};

use super::default_mq_producer::DefaultMQProducer;
use super::message_client_id_setter::create_uniq_id;
use super::message_queue_selector::MessageQueueSelector;
use super::send_failure::SendFailure;
use super::send_result::SendResult;
use crate::client::{MQClientInstance, RequestEnd, RequestOf, no_reply};
use crate::error::{Error, Result, client_error_code};
use crate::sync::{Arc, Deadline, channel};

/// The kind of message that a reply is.
const REPLY_MESSAGE_TYPE: &str = "reply";
const REPLY_TOPIC_POSTFIX: &str = "REPLY_TOPIC";
/// How long an outcome that is on its way is waited for.
const HAND_OVER: Duration = Duration::from_secs(1);

/// What runs once a request message is sent, or is not.
type Sent = Box<dyn FnOnce(Result<SendResult, SendFailure>) + Send>;

/// A request message on its way.
struct Request {
    message: Message,
    correlation_id: String,
    instance: Arc<MQClientInstance>,
    deadline: Deadline,
}

impl DefaultMQProducer {
    /// Sends a request message and waits for the reply: a message that some consumer makes with
    /// [`create_reply_message`] and sends.
    ///
    /// # Blocking
    /// At most `timeout`, for the send and the reply together. The first request to a topic fetches
    /// its route and tells its brokers of this client, so that they know where to push the reply.
    ///
    /// # Errors
    /// As [`send`](Self::send) when the request cannot be sent; [`MQClient`](crate::Error::MQClient)
    /// with [`REQUEST_TIMEOUT_EXCEPTION`](client_error_code::REQUEST_TIMEOUT_EXCEPTION) when no reply
    /// comes: the request may have been consumed then.
    ///
    /// # Java
    /// `DefaultMQProducer#request(Message, long)`
    pub fn request(&self, message: &Message, timeout: Duration) -> Result<MessageExt> {
        self.request_by(message, timeout, |message, left| {
            self.send_with_timeout(message, left)
        })
    }

    /// [`request`](Self::request), with the request message sent to a queue, in one attempt.
    ///
    /// # Blocking
    /// As [`request`](Self::request).
    ///
    /// # Errors
    /// As [`request`](Self::request) and [`send_to_queue`](Self::send_to_queue).
    ///
    /// # Java
    /// `DefaultMQProducer#request(Message, MessageQueue, long)`
    pub fn request_to_queue(
        &self,
        message: &Message,
        mq: &MessageQueue,
        timeout: Duration,
    ) -> Result<MessageExt> {
        self.request_by(message, timeout, |message, left| {
            self.send_to_queue_with_timeout(message, mq, left)
        })
    }

    /// [`request`](Self::request), with the request message sent to the queue that a selector
    /// chooses, in one attempt.
    ///
    /// # Blocking
    /// As [`request`](Self::request), and what the selector takes.
    ///
    /// # Errors
    /// As [`request`](Self::request) and [`send_with_selector`](Self::send_with_selector).
    ///
    /// # Java
    /// `DefaultMQProducer#request(Message, MessageQueueSelector, Object, long)`
    pub fn request_with_selector<A: ?Sized>(
        &self,
        message: &Message,
        selector: &impl MessageQueueSelector<A>,
        arg: &A,
        timeout: Duration,
    ) -> Result<MessageExt> {
        self.request_by(message, timeout, |message, left| {
            self.send_with_selector_and_timeout(message, selector, arg, left)
        })
    }

    fn request_by(
        &self,
        message: &Message,
        timeout: Duration,
        send: impl FnOnce(&Message, Duration) -> Result<SendResult>,
    ) -> Result<MessageExt> {
        let request = self.prepare_request(message, timeout)?;
        let (sender, outcome) = channel::bounded(1);
        self.wait_for_reply(&request, timeout, RequestEnd::Caller(sender));
        let Request {
            message,
            correlation_id,
            instance,
            deadline,
        } = request;
        let futures = instance.request_futures();
        if let Err(error) = send(&message, deadline.remaining()) {
            // Unless the reply is there: the answer to the send may be what is missing.
            futures.complete(&correlation_id, Err(error));
        }
        if let Ok(outcome) = outcome.recv_deadline(deadline.instant()) {
            return outcome;
        }
        futures.complete(&correlation_id, Err(no_reply(message.topic(), timeout)));
        outcome
            .recv_timeout(HAND_OVER)
            .unwrap_or_else(|_| Err(no_reply(message.topic(), timeout)))
    }

    /// [`request`](Self::request) without waiting for the reply. `callback` runs exactly once, on a
    /// thread for callbacks: with the reply, with the failure of the send, when `timeout` is over, or
    /// when the producer is shut down. A second reply is passed over.
    ///
    /// # Blocking
    /// At most `timeout`: to find a topic that was not sent to before, and to tell the brokers who
    /// waits. The request itself is sent asynchronously.
    ///
    /// # Errors
    /// [`ServiceState`](crate::Error::ServiceState) unless the producer is running, and failures to
    /// find the topic; the callback does not run then.
    ///
    /// # Java
    /// `DefaultMQProducer#request(Message, RequestCallback, long)`
    pub fn request_async(
        &self,
        message: &Message,
        timeout: Duration,
        callback: impl FnOnce(Result<MessageExt>) + Send + 'static,
    ) -> Result<()> {
        self.request_async_by(message, timeout, callback, |message, left, sent| {
            self.send_async_with_timeout(message, left, sent)
        })
    }

    /// [`request_async`](Self::request_async), with the request message sent to a queue, in one
    /// attempt.
    ///
    /// # Blocking
    /// As [`request_async`](Self::request_async).
    ///
    /// # Errors
    /// As [`request_async`](Self::request_async). A queue of another topic is told to the callback.
    ///
    /// # Java
    /// `DefaultMQProducer#request(Message, MessageQueue, RequestCallback, long)`
    pub fn request_async_to_queue(
        &self,
        message: &Message,
        mq: &MessageQueue,
        timeout: Duration,
        callback: impl FnOnce(Result<MessageExt>) + Send + 'static,
    ) -> Result<()> {
        self.request_async_by(message, timeout, callback, |message, left, sent| {
            self.send_async_to_queue_with_timeout(message, mq, left, sent)
        })
    }

    /// [`request_async`](Self::request_async), with the request message sent to the queue that a
    /// selector chooses, in one attempt.
    ///
    /// # Blocking
    /// As [`request_async`](Self::request_async), and what the selector takes.
    ///
    /// # Errors
    /// As [`request_async`](Self::request_async). That nothing is chosen is told to the callback.
    ///
    /// # Java
    /// `DefaultMQProducer#request(Message, MessageQueueSelector, Object, RequestCallback, long)`
    pub fn request_async_with_selector<A: Send + 'static>(
        &self,
        message: &Message,
        selector: impl MessageQueueSelector<A> + Send + 'static,
        arg: A,
        timeout: Duration,
        callback: impl FnOnce(Result<MessageExt>) + Send + 'static,
    ) -> Result<()> {
        self.request_async_by(message, timeout, callback, |message, left, sent| {
            self.send_async_with_selector_and_timeout(message, selector, arg, left, sent)
        })
    }

    fn request_async_by(
        &self,
        message: &Message,
        timeout: Duration,
        callback: impl FnOnce(Result<MessageExt>) + Send + 'static,
        send: impl FnOnce(Message, Duration, Sent) -> Result<(), SendFailure>,
    ) -> Result<()> {
        let request = self.prepare_request(message, timeout)?;
        let end = RequestEnd::Callback(Box::new(callback));
        self.wait_for_reply(&request, timeout, end);
        let left = request.deadline.remaining();
        let (instance, id) = (Arc::clone(&request.instance), request.correlation_id);
        let fail = move |error| instance.request_futures().complete(&id, Err(error));
        let on_sent = fail.clone();
        let sent = Box::new(move |outcome: Result<SendResult, SendFailure>| {
            if let Err(failure) = outcome {
                on_sent(failure.into());
            }
        });
        if let Err(failure) = send(request.message, left, sent) {
            fail(failure.into());
        }
        Ok(())
    }

    /// Java `DefaultMQProducerImpl#prepareSendRequest`.
    fn prepare_request(&self, message: &Message, timeout: Duration) -> Result<Request> {
        let deadline = Deadline::after(timeout);
        let inner = self.inner();
        let instance = inner.instance()?;
        let correlation_id = create_uniq_id();
        let mut message = message.clone();
        for (name, value) in [
            (property::CORRELATION_ID, correlation_id.clone()),
            (
                property::MESSAGE_REPLY_TO_CLIENT,
                instance.client_id().to_owned(),
            ),
            (property::MESSAGE_TTL, timeout.as_millis().to_string()),
        ] {
            message.put_property(name, value);
        }
        let topic = inner.config.send.namespace.wrap(message.topic());
        if inner.topic_publish_info(&topic).is_none() {
            inner.try_to_find_topic_publish_info(&instance, &topic, deadline)?;
            instance.send_heartbeat_to_all_broker(deadline);
        }
        Ok(Request {
            correlation_id,
            instance,
            deadline,
            message,
        })
    }

    fn wait_for_reply(&self, request: &Request, timeout: Duration, end: RequestEnd) {
        let of = RequestOf {
            correlation_id: &request.correlation_id,
            group: &self.inner().config.send.producer_group,
            topic: request.message.topic(),
            timeout: request.deadline.remaining().min(timeout),
        };
        request.instance.request_futures().add(of, end);
    }
}

/// Makes the reply to a request message that a consumer received; send it with any producer. The
/// broker pushes it to the client that waits, and the send fails when that is gone.
///
/// # Errors
/// [`MQClient`](crate::Error::MQClient) with
/// [`CREATE_REPLY_MESSAGE_EXCEPTION`](client_error_code::CREATE_REPLY_MESSAGE_EXCEPTION) when the
/// message was stored by a broker that does not say what cluster it belongs to.
///
/// # Java
/// `MessageUtil#createReplyMessage`
///
/// # Examples
/// ```
/// use rocketmq_blocking::{Message, create_reply_message, property};
///
/// let mut request = Message::new("Questions", "how many?");
/// request.put_property(property::CLUSTER, "DefaultCluster");
/// request.put_property(property::CORRELATION_ID, "7");
/// let reply = create_reply_message(&request, "three")?;
/// assert_eq!(reply.topic(), "DefaultCluster_REPLY_TOPIC");
/// assert_eq!(reply.property(property::CORRELATION_ID), Some("7"));
/// # Ok::<(), rocketmq_blocking::Error>(())
/// ```
pub fn create_reply_message(request: &Message, body: impl Into<Bytes>) -> Result<Message> {
    let Some(cluster) = request.property(property::CLUSTER) else {
        return Err(Error::client(
            client_error_code::CREATE_REPLY_MESSAGE_EXCEPTION,
            "a reply cannot be made: the request message does not say its cluster",
        ));
    };
    let mut reply = Message::new(format!("{cluster}_{REPLY_TOPIC_POSTFIX}"), body);
    reply.put_property(property::MESSAGE_TYPE, REPLY_MESSAGE_TYPE);
    for name in [
        property::CORRELATION_ID,
        property::MESSAGE_REPLY_TO_CLIENT,
        property::MESSAGE_TTL,
    ] {
        if let Some(value) = request.property(name) {
            reply.put_property(name, value);
        }
    }
    Ok(reply)
}
