use std::collections::HashMap;
use std::fmt;

use rocketmq_protocol::{MessageQueue, compare_utf16};

use crate::rebalance::allocate_message_queue_strategy::{
    AllocateError, AllocateMessageQueueStrategy, member_index,
};
use crate::sync::Arc;

/// Tells in which machine room brokers and consumers stand.
///
/// All members of a group must give the same answers. An empty answer is an error.
///
/// # Java
/// `AllocateMachineRoomNearby.MachineRoomResolver`
pub trait MachineRoomResolver: Send + Sync + fmt::Debug {
    /// The room of the queue's broker.
    fn broker_deploy_in(&self, message_queue: &MessageQueue) -> String;

    /// The room of the member with this client id.
    fn consumer_deploy_in(&self, client_id: &str) -> String;
}

/// Lets members consume the queues of their own machine room, by another strategy.
///
/// The queues of each room are shared by that strategy among the members of the room. Those of a
/// room without any member are shared among all members.
///
/// # Java
/// `AllocateMachineRoomNearby`
#[derive(Debug, Clone)]
pub struct AllocateMachineRoomNearby {
    inner: Arc<dyn AllocateMessageQueueStrategy>,
    resolver: Arc<dyn MachineRoomResolver>,
    name: String,
}

impl AllocateMachineRoomNearby {
    /// Shares each room's queues by `inner`, with the rooms that `resolver` tells.
    pub fn new(
        inner: impl AllocateMessageQueueStrategy + 'static,
        resolver: impl MachineRoomResolver + 'static,
    ) -> Self {
        Self {
            name: format!("MACHINE_ROOM_NEARBY-{}", inner.name()),
            inner: Arc::new(inner),
            resolver: Arc::new(resolver),
        }
    }
}

impl AllocateMessageQueueStrategy for AllocateMachineRoomNearby {
    /// `MACHINE_ROOM_NEARBY-` and the inner strategy's name.
    fn name(&self) -> &str {
        &self.name
    }

    fn allocate(
        &self,
        consumer_group: &str,
        current_cid: &str,
        mq_all: &[MessageQueue],
        cid_all: &[String],
    ) -> Result<Vec<MessageQueue>, AllocateError> {
        if member_index(current_cid, mq_all, cid_all)?.is_none() {
            return Ok(Vec::new());
        }
        let mut queues_by_room: HashMap<String, Vec<MessageQueue>> = HashMap::new();
        for mq in mq_all {
            let room = self.resolver.broker_deploy_in(mq);
            if room.is_empty() {
                return Err(AllocateError::QueueWithoutMachineRoom(mq.clone()));
            }
            queues_by_room.entry(room).or_default().push(mq.clone());
        }
        let mut members_by_room: HashMap<String, Vec<String>> = HashMap::new();
        for cid in cid_all {
            let room = self.resolver.consumer_deploy_in(cid);
            if room.is_empty() {
                return Err(AllocateError::MemberWithoutMachineRoom(cid.clone()));
            }
            members_by_room.entry(room).or_default().push(cid.clone());
        }

        let own_room = self.resolver.consumer_deploy_in(current_cid);
        let mut allocated = match queues_by_room.remove(&own_room) {
            Some(queues) => {
                let neighbours = members_by_room
                    .get(&own_room)
                    .map_or(&[][..], Vec::as_slice);
                self.inner
                    .allocate(consumer_group, current_cid, &queues, neighbours)?
            }
            None => Vec::new(),
        };
        let mut deserted: Vec<(String, Vec<MessageQueue>)> = queues_by_room
            .into_iter()
            .filter(|(room, _)| !members_by_room.contains_key(room))
            .collect();
        deserted.sort_by(|(a, _), (b, _)| compare_utf16(a, b));
        for (_, queues) in &deserted {
            let share = self
                .inner
                .allocate(consumer_group, current_cid, queues, cid_all)?;
            allocated.extend(share);
        }
        Ok(allocated)
    }
}
