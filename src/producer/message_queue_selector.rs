use std::collections::BTreeSet;

use rocketmq_protocol::{Message, MessageQueue, java_string_hash};

use crate::client::random_u32;

/// Chooses the queue of a message by an argument of the caller's, an order's number for instance.
///
/// Closures `Fn(&[MessageQueue], &Message, &A) -> Option<MessageQueue>` are selectors too. One runs
/// once for a send, on the thread that sends, or on one that fetches the topic's route first.
///
/// # Java
/// `MessageQueueSelector`; its argument is any object, here a type of the caller's.
pub trait MessageQueueSelector<A: ?Sized> {
    /// One of the queues, which are in the order of the route and never none; `None` fails the send.
    fn select(&self, mqs: &[MessageQueue], message: &Message, arg: &A) -> Option<MessageQueue>;
}

impl<A: ?Sized, F> MessageQueueSelector<A> for F
where
    F: Fn(&[MessageQueue], &Message, &A) -> Option<MessageQueue>,
{
    fn select(&self, mqs: &[MessageQueue], message: &Message, arg: &A) -> Option<MessageQueue> {
        self(mqs, message, arg)
    }
}

/// What has a number as Java's `hashCode` gives it, so that a key goes to the same queue from both.
pub trait HashCode {
    /// Java `Object#hashCode` of the type that this one is in Java.
    fn hash_code(&self) -> i32;
}

impl HashCode for str {
    /// `String#hashCode`, over UTF-16 code units.
    fn hash_code(&self) -> i32 {
        java_string_hash(self)
    }
}

impl HashCode for String {
    fn hash_code(&self) -> i32 {
        java_string_hash(self)
    }
}

impl HashCode for i32 {
    /// `Integer#hashCode`
    fn hash_code(&self) -> i32 {
        *self
    }
}

impl HashCode for i64 {
    /// `Long#hashCode`
    fn hash_code(&self) -> i32 {
        let bits = *self as u64;
        (bits ^ (bits >> 32)) as i32
    }
}

impl<T: HashCode + ?Sized> HashCode for &T {
    fn hash_code(&self) -> i32 {
        (**self).hash_code()
    }
}

/// Chooses by the hash of the argument: the same argument, the same queue, while the topic has as
/// many queues.
///
/// # Java
/// `SelectMessageQueueByHash`: the remainder first, then its absolute value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SelectMessageQueueByHash;

impl<A: HashCode + ?Sized> MessageQueueSelector<A> for SelectMessageQueueByHash {
    fn select(&self, mqs: &[MessageQueue], _: &Message, arg: &A) -> Option<MessageQueue> {
        // 64 bits hold every remainder, also that of the smallest number by a length of its size.
        let remainder = i64::from(arg.hash_code()) % i64::try_from(mqs.len()).ok()?.max(1);
        mqs.get(usize::try_from(remainder.abs()).ok()?).cloned()
    }
}

/// Chooses any queue.
///
/// # Java
/// `SelectMessageQueueByRandom`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SelectMessageQueueByRandom;

impl<A: ?Sized> MessageQueueSelector<A> for SelectMessageQueueByRandom {
    fn select(&self, mqs: &[MessageQueue], _: &Message, _: &A) -> Option<MessageQueue> {
        mqs.get(random_u32() as usize % mqs.len().max(1)).cloned()
    }
}

/// Chooses any queue of the machine rooms given. A broker's room is what stands before the `@` of its
/// name, as for [`AllocateMessageQueueByMachineRoom`](crate::rebalance::AllocateMessageQueueByMachineRoom).
///
/// # Java
/// `SelectMessageQueueByMachineRoom`, whose `select` returns null for everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SelectMessageQueueByMachineRoom {
    rooms: BTreeSet<String>,
}

impl SelectMessageQueueByMachineRoom {
    /// A selector for these rooms.
    pub fn new(rooms: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            rooms: rooms.into_iter().map(Into::into).collect(),
        }
    }
}

impl<A: ?Sized> MessageQueueSelector<A> for SelectMessageQueueByMachineRoom {
    fn select(&self, mqs: &[MessageQueue], message: &Message, arg: &A) -> Option<MessageQueue> {
        let here = |mq: &&MessageQueue| {
            let room = mq.broker_name().split_once('@').map(|(room, _)| room);
            room.is_some_and(|room| self.rooms.contains(room))
        };
        let near: Vec<MessageQueue> = mqs.iter().filter(here).cloned().collect();
        SelectMessageQueueByRandom.select(&near, message, arg)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queues(broker: &str, count: i32) -> Vec<MessageQueue> {
        (0..count)
            .map(|id| MessageQueue::new("t", broker, id))
            .collect()
    }

    fn by_hash<A: HashCode + ?Sized>(arg: &A, count: i32) -> Option<i32> {
        let message = Message::new("t", "m");
        let mq = SelectMessageQueueByHash.select(&queues("a", count), &message, arg);
        mq.map(|mq| mq.queue_id())
    }

    #[test]
    fn hashes_are_javas_and_the_remainder_comes_before_the_absolute_value() {
        assert_eq!("order-7".hash_code(), -1_207_111_304);
        assert_eq!(by_hash("order-7", 8), Some(0));
        assert_eq!(by_hash("order-7", 5), Some(4));
        assert_eq!(by_hash(&"order-7".to_owned(), 5), Some(4));
        assert_eq!(by_hash(&-7, 4), Some(3));
        assert_eq!(by_hash(&i32::MIN, 3), Some(2));
        assert_eq!(by_hash(&i32::MIN, 8), Some(0));
        assert_eq!((-1_i64).hash_code(), 0);
        assert_eq!(0x1_0000_0003_i64.hash_code(), 2);
        assert_eq!(by_hash(&&-7, 4), Some(3));
        assert_eq!(by_hash("x", 0), None);
    }

    #[test]
    fn any_queue_is_chosen_at_times() {
        let message = Message::new("t", "m");
        let all = queues("a", 4);
        let chosen: BTreeSet<i32> = (0..500)
            .map(|_| {
                SelectMessageQueueByRandom
                    .select(&all, &message, &())
                    .unwrap()
                    .queue_id()
            })
            .collect();
        assert_eq!(chosen.len(), 4);
        assert_eq!(SelectMessageQueueByRandom.select(&[], &message, &()), None);
    }

    #[test]
    fn rooms_are_kept_to() {
        let message = Message::new("t", "m");
        let all = [queues("r1@a", 2), queues("r2@a", 2), queues("r1", 2)].concat();
        let select = |rooms: &[&str]| {
            let selector = SelectMessageQueueByMachineRoom::new(rooms.iter().copied());
            let picks = (0..100).filter_map(|_| selector.select(&all, &message, ""));
            picks
                .map(|mq| mq.broker_name().to_owned())
                .collect::<BTreeSet<_>>()
        };
        assert_eq!(select(&["r1"]), BTreeSet::from(["r1@a".to_owned()]));
        assert_eq!(select(&["r1", "r2"]).len(), 2);
        assert!(select(&["r3"]).is_empty());
    }
}
