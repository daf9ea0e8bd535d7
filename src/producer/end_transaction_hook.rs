use rocketmq_protocol::Message;

use super::transaction_listener::LocalTransactionState;

/// Is called when a transaction is about to be ended.
///
/// Give it to a builder with
/// [`end_transaction_hook`](crate::DefaultMQProducerBuilder::end_transaction_hook). It runs on the
/// thread that sends the transactional message, or, when a broker has asked, on the thread that asks
/// the listener; several run in the order in which they were given. Nothing of the client is locked
/// meanwhile. A panic is logged, and the broker is told all the same.
///
/// # Java
/// `EndTransactionHook`
pub trait EndTransactionHook: Send + Sync + 'static {
    /// Names the hook in logs.
    fn hook_name(&self) -> &str;

    /// Called before the broker is told.
    fn end_transaction(&self, context: &EndTransactionContext<'_>);
}

/// What an [`EndTransactionHook`] is told (Java `EndTransactionContext`). Group and topic have their
/// plain names, without the namespace.
#[derive(Debug)]
pub struct EndTransactionContext<'a> {
    pub(super) producer_group: &'a str,
    pub(super) message: &'a Message,
    pub(super) broker_addr: &'a str,
    pub(super) msg_id: &'a str,
    pub(super) transaction_id: Option<&'a str>,
    pub(super) transaction_state: LocalTransactionState,
    pub(super) from_transaction_check: bool,
}

impl EndTransactionContext<'_> {
    /// The producer's group.
    pub fn producer_group(&self) -> &str {
        self.producer_group
    }

    /// The message; after a broker's question, the one that it has sent along.
    pub fn message(&self) -> &Message {
        self.message
    }

    /// The broker that will be told.
    pub fn broker_addr(&self) -> &str {
        self.broker_addr
    }

    /// The message's unique key.
    pub fn msg_id(&self) -> &str {
        self.msg_id
    }

    /// The id of the transaction; `None` when the half message was not stored safely, so that the
    /// listener was not called.
    pub fn transaction_id(&self) -> Option<&str> {
        self.transaction_id
    }

    /// What the broker will be told.
    pub fn transaction_state(&self) -> LocalTransactionState {
        self.transaction_state
    }

    /// Whether a broker has asked.
    pub fn is_from_transaction_check(&self) -> bool {
        self.from_transaction_check
    }
}
