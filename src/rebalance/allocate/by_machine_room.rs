use std::collections::BTreeSet;

use rocketmq_protocol::MessageQueue;

use crate::rebalance::allocate_message_queue_strategy::{
    AllocateError, AllocateMessageQueueStrategy, member_index,
};

/// Shares only the queues of some machine rooms, evenly.
///
/// A broker's room is the text before the `@` of its name: `room@broker`. Queues of other rooms,
/// and of brokers named otherwise, go to nobody. Each member gets a block of `queues / members`;
/// what is left over at the end goes to the first members, one queue each.
///
/// # Java
/// `AllocateMessageQueueByMachineRoom`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocateMessageQueueByMachineRoom {
    consumer_idcs: BTreeSet<String>,
}

impl AllocateMessageQueueByMachineRoom {
    /// A strategy for the queues of the rooms `consumer_idcs` (Java `consumeridcs`).
    pub fn new(consumer_idcs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            consumer_idcs: consumer_idcs.into_iter().map(Into::into).collect(),
        }
    }

    fn is_ours(&self, mq: &MessageQueue) -> bool {
        room_of_broker(mq.broker_name()).is_some_and(|room| self.consumer_idcs.contains(room))
    }
}

impl AllocateMessageQueueStrategy for AllocateMessageQueueByMachineRoom {
    fn name(&self) -> &str {
        "MACHINE_ROOM"
    }

    fn allocate(
        &self,
        _consumer_group: &str,
        current_cid: &str,
        mq_all: &[MessageQueue],
        cid_all: &[String],
    ) -> Result<Vec<MessageQueue>, AllocateError> {
        let Some(index) = member_index(current_cid, mq_all, cid_all)? else {
            return Ok(Vec::new());
        };
        let ours: Vec<&MessageQueue> = mq_all.iter().filter(|mq| self.is_ours(mq)).collect();
        let share = ours.len() / cid_all.len();
        let block = ours.iter().skip(index * share).take(share);
        let left_over = ours.iter().skip(share * cid_all.len()).skip(index).take(1);
        Ok(block.chain(left_over).copied().cloned().collect())
    }
}

/// The room in a broker's name, if the name has exactly two parts. Java's `String#split` takes no
/// notice of empty parts at the end, so `room@b@` has two parts and `room@` has one.
fn room_of_broker(broker_name: &str) -> Option<&str> {
    let (room, broker) = broker_name.trim_end_matches('@').split_once('@')?;
    (!broker.contains('@')).then_some(room)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_needs_exactly_two_parts_as_java_splits_them() {
        assert_eq!(room_of_broker("r1@b"), Some("r1"));
        assert_eq!(room_of_broker("@b"), Some(""));
        assert_eq!(room_of_broker("r1@b@@"), Some("r1"));
        assert_eq!(room_of_broker("r1"), None);
        assert_eq!(room_of_broker("r1@"), None);
        assert_eq!(room_of_broker("r1@b@c"), None);
        assert_eq!(room_of_broker("r1@@b"), None);
        assert_eq!(room_of_broker("@@"), None);
        assert_eq!(room_of_broker(""), None);
    }
}
