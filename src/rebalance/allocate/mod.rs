//! The strategies of the Java client, one file each.

mod averagely;
mod averagely_by_circle;
mod by_config;
mod by_machine_room;
mod consistent_hash;
mod hash_ring;
mod machine_room_nearby;
#[cfg(test)]
mod tests;

pub use averagely::AllocateMessageQueueAveragely;
pub use averagely_by_circle::AllocateMessageQueueAveragelyByCircle;
pub use by_config::AllocateMessageQueueByConfig;
pub use by_machine_room::AllocateMessageQueueByMachineRoom;
pub use consistent_hash::{AllocateMessageQueueConsistentHash, HashFunction};
pub use machine_room_nearby::{AllocateMachineRoomNearby, MachineRoomResolver};
