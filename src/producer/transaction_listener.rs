use std::any::Any;

use rocketmq_protocol::{Message, MessageExt, sys_flag};

/// What became of the work that a message tells of (Java `LocalTransactionState`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LocalTransactionState {
    /// It is done: consumers get the message.
    CommitMessage,
    /// It is not done: the message is thrown away.
    RollbackMessage,
    /// That is not known yet, Java's `UNKNOW`: the broker asks later.
    Unknown,
}

impl LocalTransactionState {
    /// Java's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CommitMessage => "COMMIT_MESSAGE",
            Self::RollbackMessage => "ROLLBACK_MESSAGE",
            Self::Unknown => "UNKNOW",
        }
    }

    /// The number in the request that ends a transaction.
    pub(super) const fn flag(self) -> i32 {
        match self {
            Self::CommitMessage => sys_flag::TRANSACTION_COMMIT,
            Self::RollbackMessage => sys_flag::TRANSACTION_ROLLBACK,
            Self::Unknown => 0,
        }
    }
}

/// Does the work that a transactional message tells of, and knows later what became of it.
///
/// A panic counts as [`Unknown`](LocalTransactionState::Unknown).
///
/// # Java
/// `TransactionListener`
pub trait TransactionListener: Send + Sync + 'static {
    /// Does the work. The broker has the message and shows it to nobody. Runs on the thread that
    /// sends; `arg` is what it gave.
    fn execute_local_transaction(&self, message: &Message, arg: &dyn Any) -> LocalTransactionState;

    /// Says what became of the work. Brokers ask any producer of the group, in any process, some
    /// time after a message for which nothing was decided, and may ask for one that was decided a
    /// moment ago. Runs on a thread for checks.
    fn check_local_transaction(&self, message: &MessageExt) -> LocalTransactionState;
}
