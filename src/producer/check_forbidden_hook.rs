use rocketmq_protocol::{Message, MessageQueue};

use super::send_message_hook::CommunicationMode;

/// Says whether a message may be sent to where it is to go.
///
/// Give it to a builder with
/// [`check_forbidden_hook`](crate::DefaultMQProducerBuilder::check_forbidden_hook). It is asked before
/// each attempt of a send of any form, on the caller's thread or, of an asynchronous send that goes on
/// in the background, on one that it must not hold up; before every
/// [`SendMessageHook`](crate::SendMessageHook), and in the order in which several were given.
///
/// The first `Err` refuses the attempt. As after any failure of the client's own, an attempt at another
/// broker follows if one is left, and is asked for in turn: a hook may forbid one broker. When none is
/// left the send fails with [`MQClient`](crate::Error::MQClient), whose text has the reason. A panic
/// refuses as well.
///
/// # Java
/// `CheckForbiddenHook`, which throws `MQClientException`. There an asynchronous send is asked for
/// once, and its later attempts are not.
///
/// # Examples
/// ```
/// use rocketmq_blocking::{CheckForbiddenContext, CheckForbiddenHook, DefaultMQProducer, Message};
/// use rocketmq_embedded::Cluster;
///
/// struct NoSecrets;
///
/// impl CheckForbiddenHook for NoSecrets {
///     fn hook_name(&self) -> &str {
///         "no secrets"
///     }
///
///     fn check_forbidden(&self, context: &CheckForbiddenContext<'_>) -> Result<(), String> {
///         match context.message().tags() {
///             Some("secret") => Err("secrets stay here".to_owned()),
///             _ => Ok(()),
///         }
///     }
/// }
///
/// let cluster = Cluster::builder().start()?;
/// cluster.create_topic("Orders", 1)?;
/// let producer = DefaultMQProducer::builder("shop")
///     .namesrv_addr(&cluster.namesrv_addr())
///     .check_forbidden_hook(NoSecrets)
///     .build()?;
/// producer.start()?;
/// producer.send(&Message::new("Orders", "a book"))?;
/// let error = producer.send(&Message::new("Orders", "a key").with_tags("secret")).unwrap_err();
/// assert!(error.to_string().contains("secrets stay here"));
/// assert_eq!(cluster.stored_count("Orders"), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait CheckForbiddenHook: Send + Sync + 'static {
    /// Names the hook in errors.
    fn hook_name(&self) -> &str;

    /// Says that the message may be sent, or why not.
    ///
    /// # Errors
    /// What is said to whoever sends.
    fn check_forbidden(&self, context: &CheckForbiddenContext<'_>) -> Result<(), String>;
}

/// What a [`CheckForbiddenHook`] is told (Java `CheckForbiddenContext`). Group, topic and queue have
/// their plain names, without the namespace.
#[derive(Debug)]
pub struct CheckForbiddenContext<'a> {
    pub(super) name_srv_addr: &'a [String],
    pub(super) group: &'a str,
    pub(super) message: &'a Message,
    pub(super) mq: &'a MessageQueue,
    pub(super) broker_addr: &'a str,
    pub(super) communication_mode: CommunicationMode,
    pub(super) unit_mode: bool,
}

impl CheckForbiddenContext<'_> {
    /// The name servers that the producer was built with.
    pub fn name_srv_addr(&self) -> &[String] {
        self.name_srv_addr
    }

    /// The producer's group.
    pub fn group(&self) -> &str {
        self.group
    }

    /// The message as it goes to the broker, see
    /// [`SendMessageContext::message`](crate::SendMessageContext::message).
    pub fn message(&self) -> &Message {
        self.message
    }

    /// The queue that it is to go to.
    pub fn mq(&self) -> &MessageQueue {
        self.mq
    }

    /// The address of the queue's broker.
    pub fn broker_addr(&self) -> &str {
        self.broker_addr
    }

    /// How it is sent.
    pub fn communication_mode(&self) -> CommunicationMode {
        self.communication_mode
    }

    /// Whether the producer is in unit mode.
    pub fn is_unit_mode(&self) -> bool {
        self.unit_mode
    }
}
