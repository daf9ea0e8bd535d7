//! What a user has run around each call of the listener.

use std::any::Any;
use std::fmt;
use std::time::Duration;

use rocketmq_protocol::{MessageExt, MessageQueue, Properties};

use super::consumer_hooks::ConsumerHooks;
use super::listener::ConsumeConcurrentlyStatus;
use crate::trace::TraceContext;

/// How a call of a listener ended (Java `ConsumeReturnType`, whose `RETURNNULL` cannot be here).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConsumeReturnType {
    /// The messages are done.
    Success,
    /// It took as long as [`consume_timeout`](crate::DefaultMQPushConsumerBuilder::consume_timeout) or
    /// longer, whatever it returned.
    TimeOut,
    /// It panicked.
    Exception,
    /// The messages are to come again.
    Failed,
}

impl ConsumeReturnType {
    /// Java's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "SUCCESS",
            Self::TimeOut => "TIME_OUT",
            Self::Exception => "EXCEPTION",
            Self::Failed => "FAILED",
        }
    }

    /// Java's number, which traces have for it.
    pub const fn ordinal(self) -> i32 {
        match self {
            Self::Success => 0,
            Self::TimeOut => 1,
            Self::Exception => 2,
            Self::Failed => 4,
        }
    }

    pub(super) fn of(
        called: &Result<ConsumeConcurrentlyStatus, String>,
        took: Duration,
        consume_timeout: Duration,
    ) -> Self {
        match called {
            Err(_) => Self::Exception,
            Ok(_) if took >= consume_timeout => Self::TimeOut,
            Ok(ConsumeConcurrentlyStatus::ConsumeSuccess) => Self::Success,
            Ok(ConsumeConcurrentlyStatus::ReconsumeLater) => Self::Failed,
        }
    }
}

/// Is called before and after each call of a push consumer's listener; for tracing and counting.
///
/// Give it to a builder with
/// [`consume_message_hook`](crate::DefaultMQPushConsumerBuilder::consume_message_hook). It runs on the
/// thread that calls the listener, with nothing of the client locked; several run in the order in which
/// they were given, before and after alike. It is not called for a message that an administrator has
/// consumed out of turn.
///
/// A panic is logged, and changes nothing else. A hook that keeps a handle of its own consumer keeps it
/// from ending when the other handles are dropped.
///
/// # Java
/// `ConsumeMessageHook`
///
/// # Examples
/// ```
/// use std::sync::mpsc::{Sender, channel};
/// use std::time::Duration;
///
/// use rocketmq_blocking::{
///     ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, ConsumeMessageContext,
///     ConsumeMessageHook, DefaultMQPushConsumer, Message, MessageExt, MessageQueue,
/// };
/// use rocketmq_embedded::Cluster;
///
/// struct Told(Sender<String>);
///
/// impl ConsumeMessageHook for Told {
///     fn hook_name(&self) -> &str {
///         "told"
///     }
///
///     fn consume_message_before(&self, _: &mut ConsumeMessageContext<'_>) {}
///
///     fn consume_message_after(&self, context: &mut ConsumeMessageContext<'_>) {
///         let _ = self.0.send(context.status().unwrap_or_default().to_owned());
///     }
/// }
///
/// let cluster = Cluster::builder().start()?;
/// cluster.create_topic("Orders", 1)?;
/// let queue = MessageQueue::new("Orders", "broker-a", 0);
/// cluster.put_message(&queue, &Message::new("Orders", "a book"))?;
/// let (told, statuses) = channel();
/// let consumer = DefaultMQPushConsumer::builder("billing")
///     .namesrv_addr(&cluster.namesrv_addr())
///     .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
///     .subscribe("Orders", "*")
///     .message_listener(|_: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
///         ConsumeConcurrentlyStatus::ConsumeSuccess
///     })
///     .consume_message_hook(Told(told))
///     .build()?;
/// consumer.start()?;
/// assert_eq!(statuses.recv_timeout(Duration::from_secs(30))?, "CONSUME_SUCCESS");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait ConsumeMessageHook: Send + Sync + 'static {
    /// Names the hook in logs.
    fn hook_name(&self) -> &str;

    /// Called before the listener.
    fn consume_message_before(&self, context: &mut ConsumeMessageContext<'_>);

    /// Called after the listener, also when the queue was given up meanwhile, so that what the listener
    /// said does not count.
    fn consume_message_after(&self, context: &mut ConsumeMessageContext<'_>);
}

/// What a [`ConsumeMessageHook`] is told. The same value goes to all hooks, before and after.
///
/// # Java
/// `ConsumeMessageContext`. The group has its plain name here, without the namespace, as topic and
/// queue have it for listeners.
pub struct ConsumeMessageContext<'a> {
    consumer_group: String,
    namespace: Option<&'a str>,
    mq: MessageQueue,
    messages: &'a [MessageExt],
    pub(super) status: Option<ConsumeConcurrentlyStatus>,
    pub(super) return_type: Option<ConsumeReturnType>,
    props: Properties,
    mq_trace_context: Option<Box<dyn Any + Send>>,
    /// What the library's own hook keeps.
    pub(super) trace: Option<TraceContext>,
}

impl<'a> ConsumeMessageContext<'a> {
    /// Of one call of the listener, with plain names.
    pub(super) fn new(
        consumer_group: String,
        namespace: Option<&'a str>,
        mq: &MessageQueue,
        messages: &'a [MessageExt],
    ) -> Self {
        Self {
            consumer_group,
            namespace,
            mq: mq.clone(),
            messages,
            status: None,
            return_type: None,
            props: Properties::new(),
            mq_trace_context: None,
            trace: None,
        }
    }

    /// The consumer's group.
    pub fn consumer_group(&self) -> &str {
        &self.consumer_group
    }

    /// The consumer's namespace.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace
    }

    /// The queue that the messages are from.
    pub fn mq(&self) -> &MessageQueue {
        &self.mq
    }

    /// The messages of the call. Java `msgList`.
    pub fn messages(&self) -> &[MessageExt] {
        self.messages
    }

    /// After the call: Java's name of what counts as the listener's answer, `CONSUME_SUCCESS` or
    /// `RECONSUME_LATER`.
    pub fn status(&self) -> Option<&'static str> {
        self.status.map(|status| match status {
            ConsumeConcurrentlyStatus::ConsumeSuccess => "CONSUME_SUCCESS",
            ConsumeConcurrentlyStatus::ReconsumeLater => "RECONSUME_LATER",
        })
    }

    /// Whether the messages are done; false before the call.
    pub fn is_success(&self) -> bool {
        self.status == Some(ConsumeConcurrentlyStatus::ConsumeSuccess)
    }

    /// After the call: how it ended. Java's property `ConsumeContextType`.
    pub fn return_type(&self) -> Option<ConsumeReturnType> {
        self.return_type
    }

    /// What hooks note for each other, and for after the call; empty at first.
    pub fn props(&self) -> &Properties {
        &self.props
    }

    /// [`props`](Self::props) to be changed.
    pub fn props_mut(&mut self) -> &mut Properties {
        &mut self.props
    }

    /// What a hook has kept for after the call, such as a span; there is one place for all hooks.
    pub fn mq_trace_context(&mut self) -> Option<&mut (dyn Any + Send)> {
        self.mq_trace_context.as_deref_mut()
    }

    /// Keeps something for after the call.
    pub fn set_mq_trace_context(&mut self, kept: impl Any + Send) {
        self.mq_trace_context = Some(Box::new(kept));
    }

    /// Tells the hooks how the call ended.
    pub(super) fn end(
        mut self,
        hooks: &ConsumerHooks,
        status: ConsumeConcurrentlyStatus,
        return_type: ConsumeReturnType,
    ) {
        self.status = Some(status);
        self.return_type = Some(return_type);
        hooks.after(&mut self);
    }
}

impl fmt::Debug for ConsumeMessageContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsumeMessageContext")
            .field("consumer_group", &self.consumer_group)
            .field("mq", &self.mq)
            .field("messages", &self.messages.len())
            .field("status", &self.status)
            .field("return_type", &self.return_type)
            .finish_non_exhaustive()
    }
}
