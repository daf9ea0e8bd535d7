//! What a user has run around each send.

use std::any::Any;
use std::fmt;

use rocketmq_protocol::{CodecError, Message, MessageQueue, Properties, property};

use super::send_result::SendResult;
use crate::error::{Error, Result};
use crate::trace::TraceContext;

/// How a message is sent (Java `CommunicationMode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CommunicationMode {
    /// The caller waits for the broker.
    Sync,
    /// A callback is told, or a sender whose message went with others.
    Async,
    /// No answer is asked for.
    Oneway,
}

/// What kind of message is sent (Java `MessageType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MessageType {
    /// Any other.
    NormalMsg,
    /// The half message of a transaction.
    TransMsgHalf,
    /// The end of a transaction.
    TransMsgCommit,
    /// One that is delivered later.
    DelayMsg,
    /// One of an ordered queue; a producer cannot tell, so this stands here for completeness.
    OrderMsg,
}

impl MessageType {
    /// Java's number, which traces have for it.
    pub const fn ordinal(self) -> i32 {
        match self {
            Self::NormalMsg => 0,
            Self::TransMsgHalf => 1,
            Self::TransMsgCommit => 2,
            Self::DelayMsg => 3,
            Self::OrderMsg => 4,
        }
    }

    fn of(message: &Message) -> Self {
        const LATER: [&str; 5] = [
            "__STARTDELIVERTIME",
            property::DELAY_TIME_LEVEL,
            property::TIMER_DELIVER_MS,
            property::TIMER_DELAY_SEC,
            property::TIMER_DELAY_MS,
        ];
        if LATER.iter().any(|name| message.property(name).is_some()) {
            Self::DelayMsg
        } else if message.property(property::TRANSACTION_PREPARED) == Some("true") {
            Self::TransMsgHalf
        } else {
            Self::NormalMsg
        }
    }
}

/// Is called before and after each send; for tracing, counting, properties that all messages get.
///
/// Give it to a builder with
/// [`send_message_hook`](crate::DefaultMQProducerBuilder::send_message_hook). Several are called in
/// the order in which they were given, before and after alike. It is called once the broker is known,
/// so not for a send that ends without one.
///
/// *A synchronous or one-way send* calls it around each attempt, on the caller's thread. *An
/// asynchronous one*, a request, and a batch that was
/// [gathered](crate::DefaultMQProducerBuilder::auto_batch) call it once: before on the thread that
/// makes the first attempt, after, with the outcome of all attempts and before the callback, on a thread
/// of the library's that may be held up. Nothing of the client is locked meanwhile. Before-calls hold the
/// send up, and count for its time limit; if they use all of it the message is not sent.
///
/// A panic is logged, and changes nothing else. A hook that keeps a handle of its own producer keeps it
/// from ending when the other handles are dropped.
///
/// # Java
/// `SendMessageHook`. An asynchronous send calls Java's after-method twice, the first time without an
/// outcome, when the request has been written.
///
/// # Examples
/// ```
/// use rocketmq_blocking::{DefaultMQProducer, Message, SendMessageContext, SendMessageHook};
/// use rocketmq_embedded::Cluster;
///
/// struct Tenant;
///
/// impl SendMessageHook for Tenant {
///     fn hook_name(&self) -> &str {
///         "tenant"
///     }
///
///     fn send_message_before(&self, context: &mut SendMessageContext) {
///         context.put_user_property("tenant", "a").expect("an allowed name");
///     }
///
///     fn send_message_after(&self, context: &mut SendMessageContext) {
///         assert!(context.send_result().is_some());
///     }
/// }
///
/// let cluster = Cluster::builder().start()?;
/// cluster.create_topic("Orders", 1)?;
/// let producer = DefaultMQProducer::builder("shop")
///     .namesrv_addr(&cluster.namesrv_addr())
///     .send_message_hook(Tenant)
///     .build()?;
/// producer.start()?;
/// let sent = producer.send(&Message::new("Orders", "one book"))?;
/// let stored = producer.view_message("Orders", &sent.offset_msg_id)?;
/// assert_eq!(stored.property("tenant"), Some("a"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait SendMessageHook: Send + Sync + 'static {
    /// Names the hook in logs.
    fn hook_name(&self) -> &str;

    /// Called before the message is sent.
    fn send_message_before(&self, context: &mut SendMessageContext);

    /// Called once its outcome is known; with [`Oneway`](CommunicationMode::Oneway) once it was handed
    /// to the network.
    fn send_message_after(&self, context: &mut SendMessageContext);
}

/// What a [`SendMessageHook`] is told. The same value goes to all hooks, before and after.
///
/// # Java
/// `SendMessageContext`. Group, topic and queue have their plain names here, without the namespace.
pub struct SendMessageContext {
    pub(super) producer_group: String,
    pub(super) namespace: Option<String>,
    pub(super) message: Message,
    pub(super) mq: MessageQueue,
    pub(super) broker_addr: String,
    pub(super) born_host: String,
    pub(super) communication_mode: CommunicationMode,
    pub(super) msg_type: MessageType,
    /// That of a one-way send has no value.
    pub(super) outcome: Option<Result<Option<SendResult>>>,
    pub(super) props: Properties,
    pub(super) mq_trace_context: Option<Box<dyn Any + Send>>,
    /// What the library's own hook keeps.
    pub(super) trace: Option<TraceContext>,
    /// Whether a hook has put a property into the message.
    pub(super) has_new_properties: bool,
    pub(super) most_bytes_of_properties: usize,
}

impl SendMessageContext {
    /// The producer's group.
    pub fn producer_group(&self) -> &str {
        &self.producer_group
    }

    /// The producer's namespace.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The message as it goes to the broker: its unique key is among the properties, and the body is
    /// compressed if it is sent so. That of a batch has all messages in its body.
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// Adds a property to the message that is sent, or replaces one. The caller's message stays as it
    /// is. That of a batch is on the batch, which is not what consumers see.
    ///
    /// # Errors
    /// [`CodecError::Unencodable`] for what
    /// [`Message::put_user_property`] refuses, when the properties become longer than 32,767 bytes,
    /// and after the send. The message is then sent without it.
    pub fn put_user_property(&mut self, name: &str, value: &str) -> Result<(), CodecError> {
        let refused = |detail: String| CodecError::Unencodable {
            what: "user property",
            detail,
        };
        if self.outcome.is_some() {
            return Err(refused(format!("{name} comes after the send")));
        }
        let mut changed = self.message.clone();
        changed.put_user_property(name, value)?;
        let length = rocketmq_protocol::encode_properties(changed.properties()).len();
        let most = self.most_bytes_of_properties;
        if length > most {
            return Err(refused(format!(
                "with {name} the properties have {length} bytes, the most is {most}"
            )));
        }
        self.message = changed;
        self.has_new_properties = true;
        Ok(())
    }

    /// The queue of the attempt, of the first one if there are several;
    /// [`SendResult::message_queue`] is where it went in the end.
    pub fn mq(&self) -> &MessageQueue {
        &self.mq
    }

    /// The address of the queue's broker.
    pub fn broker_addr(&self) -> &str {
        &self.broker_addr
    }

    /// The address of this client, as its id has it.
    pub fn born_host(&self) -> &str {
        &self.born_host
    }

    /// How it is sent.
    pub fn communication_mode(&self) -> CommunicationMode {
        self.communication_mode
    }

    /// What kind of message it is.
    pub fn msg_type(&self) -> MessageType {
        self.msg_type
    }

    /// After the send: the result, if the broker has stored the message.
    pub fn send_result(&self) -> Option<&SendResult> {
        self.outcome.as_ref()?.as_ref().ok()?.as_ref()
    }

    /// After the send: why it failed. Java `exception`.
    pub fn error(&self) -> Option<&Error> {
        self.outcome.as_ref()?.as_ref().err()
    }

    /// What hooks note for each other, and for after the send; empty at first.
    pub fn props(&self) -> &Properties {
        &self.props
    }

    /// [`props`](Self::props) to be changed.
    pub fn props_mut(&mut self) -> &mut Properties {
        &mut self.props
    }

    /// What a hook has kept for after the send, such as a span; there is one place for all hooks.
    pub fn mq_trace_context(&mut self) -> Option<&mut (dyn Any + Send)> {
        self.mq_trace_context.as_deref_mut()
    }

    /// Keeps something for after the send.
    pub fn set_mq_trace_context(&mut self, kept: impl Any + Send) {
        self.mq_trace_context = Some(Box::new(kept));
    }

    pub(super) fn settle_msg_type(mut self) -> Self {
        self.msg_type = MessageType::of(&self.message);
        self
    }
}

impl fmt::Debug for SendMessageContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendMessageContext")
            .field("producer_group", &self.producer_group)
            .field("topic", &self.message.topic())
            .field("mq", &self.mq)
            .field("broker_addr", &self.broker_addr)
            .field("communication_mode", &self.communication_mode)
            .field("outcome", &self.outcome)
            .finish_non_exhaustive()
    }
}
