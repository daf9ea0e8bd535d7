use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Write;

use rocketmq_protocol::{MessageQueue, compare_utf16};

use super::HashFunction;
use crate::sync::{Arc, Mutex};

/// The places of a group's members, sorted: a queue belongs to the member of the next place.
pub(super) struct HashRing {
    members: Vec<String>,
    /// Of each member in turn, as many as each one has.
    places: Vec<i64>,
    /// Whether no member is there twice: then the places of each are those that it has anywhere.
    is_distinct: bool,
    /// Each place once, with a member's number in `members`.
    owners: Vec<(i64, usize)>,
}

impl HashRing {
    /// The ring of these members. Those of `known` that are distinct keep the places they have there.
    fn new(
        members: &[String],
        count: u32,
        hash_function: &dyn HashFunction,
        known: Option<&Self>,
    ) -> Self {
        let mut text = String::new();
        let mut place = |member: &str, number: u64| {
            text.clear();
            let _ = write!(text, "{member}-{number}");
            hash_function.hash(&text)
        };
        let mut known = Known::new(known, count);
        let mut numbers: HashMap<&str, usize> = HashMap::with_capacity(members.len());
        let mut places = Vec::new();
        let mut owners: Vec<(i64, usize)> = Vec::new();
        for (number, member) in members.iter().enumerate() {
            let (owner, of_member) = match numbers.entry(member) {
                Entry::Vacant(new) => (*new.insert(number), known.places_of(member)),
                Entry::Occupied(first) => (*first.get(), None),
            };
            if let Some(of_member) = of_member {
                places.extend_from_slice(of_member);
            } else {
                // An id that is there twice gets further places, numbered on from those it has.
                let from = if owner == number {
                    0
                } else {
                    settle(&mut owners);
                    owners.iter().filter(|(_, other)| *other == owner).count() as u64
                };
                let own = from..from + u64::from(count);
                places.extend(own.map(|number| place(member, number)));
            }
            let own = places.iter().skip(places.len() - count as usize);
            owners.extend(own.map(|place| (*place, owner)));
        }
        settle(&mut owners);
        Self {
            is_distinct: numbers.len() == members.len(),
            members: members.to_vec(),
            places,
            owners,
        }
    }

    /// Whose queues at this place are.
    pub(super) fn owner(&self, place: i64) -> Option<&str> {
        let next = self.owners.partition_point(|(other, _)| *other < place);
        let (_, owner) = self.owners.get(next).or_else(|| self.owners.first())?;
        self.members.get(*owner).map(String::as_str)
    }

    #[cfg(test)]
    pub(super) fn owners(&self) -> impl Iterator<Item = (i64, &str)> {
        let name = |owner: usize| self.members.get(owner).unwrap().as_str();
        self.owners
            .iter()
            .map(move |(place, owner)| (*place, name(*owner)))
    }
}

/// Sorts by place; of those with the same place the one that came last is left.
fn settle(owners: &mut Vec<(i64, usize)>) {
    owners.sort_by_key(|(place, _)| *place);
    owners.dedup_by(|later, kept| {
        let is_same = later.0 == kept.0;
        if is_same {
            *kept = *later;
        }
        is_same
    });
}

/// Walks along the members of another ring; both lists are sorted as a rule, and if not, then less is
/// found.
struct Known<'a> {
    members: &'a [String],
    places: &'a [i64],
    count: usize,
}

impl<'a> Known<'a> {
    fn new(ring: Option<&'a HashRing>, count: u32) -> Self {
        let ring = ring.filter(|ring| ring.is_distinct);
        Self {
            members: ring.map_or(&[], |ring| &ring.members),
            places: ring.map_or(&[], |ring| &ring.places),
            count: count as usize,
        }
    }

    fn places_of(&mut self, member: &str) -> Option<&'a [i64]> {
        while let [next, rest @ ..] = self.members {
            if compare_utf16(next, member).is_gt() {
                return None;
            }
            let (of_next, places) = self.places.split_at_checked(self.count)?;
            (self.members, self.places) = (rest, places);
            if next == member {
                return Some(of_next);
            }
        }
        None
    }
}

/// The queues of a topic with their places.
struct PlacedQueues {
    queues: Vec<MessageQueue>,
    places: Arc<[i64]>,
}

/// What hashing has come to before: a group is looked at again and again, and little changes.
///
/// It keeps the rings that were used last, and the places of queues; the user's function runs without
/// its lock.
#[derive(Default)]
pub(super) struct HashedBefore(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// The one that was used last is the last one.
    rings: Vec<Arc<HashRing>>,
    queues: Vec<PlacedQueues>,
}

/// A strategy within a strategy is asked about several lists of members in each look.
const MOST_RINGS: usize = 4;
/// A ring that is larger, or queues that are more, are worked out each time.
const MOST_PLACES: usize = 1 << 17;

impl HashedBefore {
    pub(super) fn ring(
        &self,
        members: &[String],
        count: u32,
        hash_function: &dyn HashFunction,
    ) -> Arc<HashRing> {
        let known = {
            let mut kept = self.0.lock();
            let same = kept.rings.iter().position(|ring| ring.members == members);
            if let Some(same) = same {
                let ring = kept.rings.remove(same);
                kept.rings.push(Arc::clone(&ring));
                return ring;
            }
            kept.rings.last().cloned()
        };
        let ring = HashRing::new(members, count, hash_function, known.as_deref());
        let ring = Arc::new(ring);
        if ring.places.len() <= MOST_PLACES {
            let mut kept = self.0.lock();
            kept.rings.push(Arc::clone(&ring));
            let too_many = kept.rings.len().saturating_sub(MOST_RINGS);
            kept.rings.drain(..too_many);
        }
        ring
    }

    /// The places of these queues, in their order.
    pub(super) fn places(
        &self,
        queues: &[MessageQueue],
        hash_function: &dyn HashFunction,
    ) -> Arc<[i64]> {
        {
            let mut kept = self.0.lock();
            let same = kept.queues.iter().position(|known| known.queues == queues);
            if let Some(same) = same {
                let placed = kept.queues.remove(same);
                let places = Arc::clone(&placed.places);
                kept.queues.push(placed);
                return places;
            }
        }
        let mut text = String::new();
        let place = |mq: &MessageQueue| {
            text.clear();
            let _ = write!(text, "{mq}");
            hash_function.hash(&text)
        };
        let places: Arc<[i64]> = queues.iter().map(place).collect();
        let mut kept = self.0.lock();
        kept.queues.push(PlacedQueues {
            queues: queues.to_vec(),
            places: Arc::clone(&places),
        });
        let mut total = 0;
        let fitting = kept.queues.iter().rev().take_while(|placed| {
            total += placed.places.len();
            total <= MOST_PLACES
        });
        let too_many = kept.queues.len() - fitting.count();
        kept.queues.drain(..too_many);
        places
    }
}

#[cfg(test)]
mod tests;
