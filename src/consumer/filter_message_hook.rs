use rocketmq_protocol::{MessageExt, MessageQueue};

/// Takes messages out of what was pulled, before a listener has them.
///
/// Give it to a builder with
/// [`filter_message_hook`](crate::DefaultMQPushConsumerBuilder::filter_message_hook). It is called with
/// the messages of each pull that the tags let through, on a thread for callbacks that pulls of all
/// queues of the instance share: it must be quick, and not wait. Several run in the order in which they
/// were given, each on what the one before has left. What is taken out counts as consumed.
///
/// A panic is logged; what was not taken out by then stays.
///
/// # Java
/// `FilterMessageHook`
pub trait FilterMessageHook: Send + Sync + 'static {
    /// Names the hook in logs.
    fn hook_name(&self) -> &str;

    /// Says which messages stay.
    fn filter_message(&self, context: &mut FilterMessageContext<'_>);
}

/// What a [`FilterMessageHook`] is told.
///
/// # Java
/// `FilterMessageContext`, in which group and queue are never set. They have their plain names here,
/// without the namespace; the messages have the topics that brokers know.
#[derive(Debug)]
pub struct FilterMessageContext<'a> {
    pub(super) consumer_group: &'a str,
    pub(super) mq: &'a MessageQueue,
    pub(super) messages: &'a mut Vec<MessageExt>,
    pub(super) unit_mode: bool,
}

impl FilterMessageContext<'_> {
    /// The consumer's group.
    pub fn consumer_group(&self) -> &str {
        self.consumer_group
    }

    /// The queue that was pulled.
    pub fn mq(&self) -> &MessageQueue {
        self.mq
    }

    /// The messages that are left. Java `msgList`.
    pub fn messages(&self) -> &[MessageExt] {
        self.messages
    }

    /// Keeps those for which `stays` says so.
    pub fn retain(&mut self, stays: impl FnMut(&MessageExt) -> bool) {
        self.messages.retain(stays);
    }

    /// Whether the consumer is in unit mode.
    pub fn is_unit_mode(&self) -> bool {
        self.unit_mode
    }
}
