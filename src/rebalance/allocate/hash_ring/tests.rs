use std::collections::{BTreeMap, HashSet};

use super::*;
use crate::random::SplitMix64;
use crate::rebalance::allocate::consistent_hash::Md5Hash;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// Java's ring, built as Java builds it: `ConsistentHashRouter`.
fn java_ring(
    members: &[String],
    count: u32,
    hash_function: &dyn HashFunction,
) -> Vec<(i64, String)> {
    let mut ring: BTreeMap<i64, &str> = BTreeMap::new();
    let mut seen = HashSet::new();
    for member in members {
        let first = match seen.insert(member) {
            true => 0,
            false => ring.values().filter(|owner| *owner == member).count(),
        };
        for number in first..first + count as usize {
            ring.insert(hash_function.hash(&format!("{member}-{number}")), member);
        }
    }
    let owned = ring
        .into_iter()
        .map(|(place, owner)| (place, owner.to_owned()));
    owned.collect()
}

fn owners(ring: &HashRing) -> Vec<(i64, String)> {
    let owned = ring
        .owners()
        .map(|(place, owner)| (place, owner.to_owned()));
    owned.collect()
}

/// Few places, so that many fall on one, and a count of the questions.
#[derive(Debug, Default)]
struct Narrow(AtomicUsize);

impl HashFunction for Narrow {
    fn hash(&self, key: &str) -> i64 {
        self.0.fetch_add(1, Ordering::SeqCst);
        Md5Hash.hash(key) % 40 - 20
    }
}

impl Narrow {
    fn asked(&self) -> usize {
        self.0.swap(0, Ordering::SeqCst)
    }
}

fn ids(names: &str) -> Vec<String> {
    names.split(' ').map(str::to_owned).collect()
}

#[test]
fn rings_are_those_of_java_whatever_was_hashed_before() {
    for seed in 0..300 {
        let mut random = SplitMix64::new(seed);
        let narrow = Narrow::default();
        let hash_function: &dyn HashFunction = if seed % 2 == 0 { &narrow } else { &Md5Hash };
        let count = u32::try_from(random.below(6)).unwrap();
        let before = HashedBefore::default();
        for round in 0..12 {
            let mut members: Vec<String> = (0..1 + random.below(12))
                .map(|_| format!("m{}", random.below(16)))
                .collect();
            // A group whose members come twice, or in no order, is divided all the same.
            if random.below(3) > 0 {
                members.sort();
            }
            if random.below(2) == 0 {
                members.dedup();
            }
            let ring = before.ring(&members, count, hash_function);
            assert_eq!(
                owners(&ring),
                java_ring(&members, count, hash_function),
                "seed {seed}, round {round}: {members:?}"
            );
        }
    }
}

#[test]
fn a_queue_belongs_to_the_next_place_and_the_first_follows_the_last() {
    let members = ids("a b c");
    let ring = HashRing::new(&members, 4, &Narrow::default(), None);
    let expected: BTreeMap<i64, String> = owners(&ring).into_iter().collect();
    for place in -25..25 {
        let next = (expected.range(place..).next()).or_else(|| expected.iter().next());
        assert_eq!(ring.owner(place), next.map(|(_, owner)| owner.as_str()));
    }
    let none = HashRing::new(&members, 0, &Md5Hash, None);
    assert_eq!(none.owner(0), None);
}

#[test]
fn an_id_that_is_there_twice_has_twice_as_many_places() {
    let ring = HashRing::new(&ids("a a"), 10, &Md5Hash, None);
    assert_eq!(ring.owners().count(), 20);
    let last = Md5Hash.hash("a-19");
    assert!(ring.owners().any(|(place, _)| place == last));
}

#[test]
fn only_what_is_new_is_hashed() {
    let hash_function = Narrow::default();
    let before = HashedBefore::default();
    let ring = |names: &str| {
        before.ring(&ids(names), 10, &hash_function);
        hash_function.asked()
    };
    assert_eq!(ring("a b c"), 30);
    assert_eq!(ring("a b c"), 0);
    assert_eq!(ring("a b c d"), 10, "one came");
    assert_eq!(ring("b d"), 0, "two left");
    assert_eq!(ring("a b c"), 0, "as it was before");
    assert_eq!(ring("a a b"), 10, "the second a and nothing else");

    let queues: Vec<MessageQueue> = (0..7).map(|id| MessageQueue::new("t", "b", id)).collect();
    let places = before.places(&queues, &hash_function);
    assert_eq!(hash_function.asked(), 7);
    assert_eq!(before.places(&queues, &hash_function), places);
    assert_eq!(hash_function.asked(), 0);
    let expected = queues
        .iter()
        .map(|mq| Md5Hash.hash(&mq.to_string()) % 40 - 20);
    assert!(places.iter().copied().eq(expected));
    assert_eq!(before.places(&queues[1..], &hash_function).len(), 6);
    assert_eq!(hash_function.asked(), 6, "another list");
}

#[test]
fn what_is_kept_is_bounded() {
    #[derive(Debug)]
    struct Nowhere;
    impl HashFunction for Nowhere {
        fn hash(&self, _: &str) -> i64 {
            0
        }
    }
    let before = HashedBefore::default();
    for n in 0..20 {
        before.ring(&ids(&format!("a{n} b")), 3, &Md5Hash);
    }
    before.ring(&ids("large"), MOST_PLACES as u32 + 1, &Nowhere);
    let queues: Vec<MessageQueue> = (0..MOST_PLACES as i32 / 3)
        .map(|id| MessageQueue::new("t", "b", id))
        .collect();
    for from in 0..5 {
        before.places(&queues[from..], &Nowhere);
    }
    let kept = before.0.lock();
    assert_eq!(kept.rings.len(), MOST_RINGS);
    assert!(kept.rings.iter().all(|ring| ring.members.len() == 2));
    assert_eq!(kept.queues.len(), 3);
    assert_eq!(kept.queues[2].queues, queues[4..], "the newest");
}
