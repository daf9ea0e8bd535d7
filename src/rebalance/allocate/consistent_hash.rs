use std::fmt;

use rocketmq_protocol::MessageQueue;

use super::hash_ring::HashedBefore;
use crate::rebalance::allocate_message_queue_strategy::{
    AllocateError, AllocateMessageQueueStrategy, member_index,
};
use crate::sync::Arc;

/// A place on the ring for a key.
///
/// # Java
/// `HashFunction`
pub trait HashFunction: Send + Sync + fmt::Debug {
    /// The key's place, the same each time; the ring goes from the smallest number to the largest.
    fn hash(&self, key: &str) -> i64;
}

/// Puts members and queues on a ring; each queue belongs to the next member.
///
/// When a member comes or goes, only queues that it takes or had move. The price is an uneven
/// share: with few queues a member may well get none.
///
/// Places are remembered for as long as a topic and a group stay as they are; clones share them.
///
/// # Java
/// `AllocateMessageQueueConsistentHash`. A negative number of virtual nodes, which Java refuses
/// when it is first used, cannot be written here.
#[derive(Clone)]
pub struct AllocateMessageQueueConsistentHash {
    virtual_node_count: u32,
    hash_function: Arc<dyn HashFunction>,
    before: Arc<HashedBefore>,
}

impl AllocateMessageQueueConsistentHash {
    /// A ring on which each member has 10 places, by MD5.
    pub fn new() -> Self {
        Self::with_virtual_nodes(10)
    }

    /// A ring on which each member has `count` places (Java `virtualNodeCnt`); with 0 nobody gets
    /// anything.
    pub fn with_virtual_nodes(count: u32) -> Self {
        Self::with_hash_function(count, Md5Hash)
    }

    /// A ring of the user's own hash (Java `customHashFunction`), which all members must share.
    pub fn with_hash_function(count: u32, hash_function: impl HashFunction + 'static) -> Self {
        Self {
            virtual_node_count: count,
            hash_function: Arc::new(hash_function),
            before: Arc::default(),
        }
    }
}

impl fmt::Debug for AllocateMessageQueueConsistentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllocateMessageQueueConsistentHash")
            .field("virtual_node_count", &self.virtual_node_count)
            .field("hash_function", &self.hash_function)
            .finish_non_exhaustive()
    }
}

impl Default for AllocateMessageQueueConsistentHash {
    fn default() -> Self {
        Self::new()
    }
}

impl AllocateMessageQueueStrategy for AllocateMessageQueueConsistentHash {
    fn name(&self) -> &str {
        "CONSISTENT_HASH"
    }

    fn allocate(
        &self,
        _consumer_group: &str,
        current_cid: &str,
        mq_all: &[MessageQueue],
        cid_all: &[String],
    ) -> Result<Vec<MessageQueue>, AllocateError> {
        if member_index(current_cid, mq_all, cid_all)?.is_none() {
            return Ok(Vec::new());
        }
        let hash_function = &*self.hash_function;
        let places = self.before.places(mq_all, hash_function);
        let ring = (self.before).ring(cid_all, self.virtual_node_count, hash_function);
        let placed = mq_all.iter().zip(places.iter());
        let ours = placed.filter(|(_, place)| ring.owner(**place) == Some(current_cid));
        Ok(ours.map(|(mq, _)| mq.clone()).collect())
    }
}

/// The first four bytes of the key's MD5 as an unsigned number.
#[derive(Debug)]
pub(super) struct Md5Hash;

impl HashFunction for Md5Hash {
    fn hash(&self, key: &str) -> i64 {
        let [a, b, c, d, ..] = md5::compute(key).0;
        i64::from(u32::from_be_bytes([a, b, c, d]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_the_java_client() {
        assert_eq!(Md5Hash.hash("10.0.0.1@1-0"), 2_998_294_157);
    }

    #[test]
    fn a_later_place_with_the_same_hash_overwrites() {
        #[derive(Debug)]
        struct Constant;
        impl HashFunction for Constant {
            fn hash(&self, _: &str) -> i64 {
                -7
            }
        }
        let strategy = AllocateMessageQueueConsistentHash::with_hash_function(3, Constant);
        let cids = ["a".to_owned(), "b".to_owned()];
        let queues = [MessageQueue::new("t", "b", 0)];
        assert_eq!(strategy.allocate("g", "a", &queues, &cids).unwrap(), []);
        assert_eq!(strategy.allocate("g", "b", &queues, &cids).unwrap(), queues);
    }

    #[test]
    fn without_places_nobody_gets_anything() {
        let strategy = AllocateMessageQueueConsistentHash::with_virtual_nodes(0);
        let cids = ["a".to_owned()];
        let queues = [MessageQueue::new("t", "b", 0)];
        assert_eq!(strategy.allocate("g", "a", &queues, &cids).unwrap(), []);
    }
}
