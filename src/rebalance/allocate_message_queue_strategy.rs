use std::fmt;

use rocketmq_protocol::MessageQueue;

/// Decides which queues of a topic one member of a consumer group consumes.
///
/// Each member calls its own strategy for itself; the assignment is right only if the answers of
/// all members fit together. A strategy therefore has to be deterministic, must depend on nothing
/// but its arguments and settings that all members share, and every member of the group must use
/// the same one. Users may implement it; see the strategies of this module for the usual cases.
///
/// The caller keeps this contract:
/// * `mq_all` holds the queues of one topic, sorted as [`MessageQueue`] is ordered;
/// * `cid_all` holds the client ids of the group as its broker reported them, sorted by UTF-16
///   code units as Java sorts strings. It may hold an id twice.
///
/// # Java
/// `AllocateMessageQueueStrategy`
pub trait AllocateMessageQueueStrategy: Send + Sync + fmt::Debug {
    /// The strategy's name, which is the same in Java (`getName`): for instance `AVG`.
    fn name(&self) -> &str;

    /// The queues that `current_cid` consumes, in any order. One that is given twice counts once; one
    /// that is not in `mq_all` is left out, and logged if it is said to be the topic's.
    ///
    /// It runs on the thread that looks at all groups of the instance: while it has not returned, no
    /// group is looked at, and a shutdown waits for it until its deadline. A panic counts as an
    /// error.
    ///
    /// An id that is missing from `cid_all` gets nothing: a member that its broker has forgotten
    /// gives up all its queues. `consumer_group` is for strategies that distinguish groups.
    ///
    /// # Errors
    /// The inputs allow no assignment. The consumer then keeps the queues it has and tries again.
    fn allocate(
        &self,
        consumer_group: &str,
        current_cid: &str,
        mq_all: &[MessageQueue],
        cid_all: &[String],
    ) -> Result<Vec<MessageQueue>, AllocateError>;
}

/// Why a strategy could not assign queues (Java raises an `IllegalArgumentException` for each).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AllocateError {
    /// The member's own client id is empty.
    EmptyClientId,
    /// The topic has no queues.
    NoQueues,
    /// The group has no members.
    NoMembers,
    /// The resolver knows no machine room for this queue.
    QueueWithoutMachineRoom(MessageQueue),
    /// The resolver knows no machine room for the member with this client id.
    MemberWithoutMachineRoom(String),
    /// A strategy of the user's own failed.
    Other(String),
}

impl fmt::Display for AllocateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyClientId => f.write_str("the own client id is empty"),
            Self::NoQueues => f.write_str("there are no queues to allocate"),
            Self::NoMembers => f.write_str("the consumer group has no members"),
            Self::QueueWithoutMachineRoom(mq) => write!(f, "no machine room is known for {mq}"),
            Self::MemberWithoutMachineRoom(cid) => {
                write!(f, "no machine room is known for the member {cid}")
            }
            Self::Other(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for AllocateError {}

/// The check that all strategies but the fixed one begin with
/// (Java `AbstractAllocateMessageQueueStrategy#check`): the member's place in `cid_all`, its first
/// if the id is there twice, or `None` if it is not there.
pub(super) fn member_index(
    current_cid: &str,
    mq_all: &[MessageQueue],
    cid_all: &[String],
) -> Result<Option<usize>, AllocateError> {
    if current_cid.is_empty() {
        return Err(AllocateError::EmptyClientId);
    }
    if mq_all.is_empty() {
        return Err(AllocateError::NoQueues);
    }
    if cid_all.is_empty() {
        return Err(AllocateError::NoMembers);
    }
    Ok(cid_all.iter().position(|cid| cid == current_cid))
}
