use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use rocketmq_protocol::MessageQueue;

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Weak};

/// The queues of a topic that a producer may send to: a snapshot that never changes.
///
/// A new route makes a new snapshot. Each thread goes round the queues of each snapshot by itself,
/// from a random queue on, so threads share nothing when they choose. Clones are the same snapshot.
///
/// # Java
/// `TopicPublishInfo` with `ThreadLocalIndex`
#[derive(Debug, Clone)]
pub(crate) struct TopicPublishInfo {
    queues: Arc<[MessageQueue]>,
    place: PlaceInRound,
    snapshot: Arc<SnapshotId>,
}

/// The remainder of an index by the number of queues, without a division, which would be most of the
/// cost of a choice (D. Lemire, O. Kaser, N. Kurz: Faster remainder by direct computation, 2019).
#[derive(Debug, Clone, Copy)]
struct PlaceInRound {
    count: u32,
    /// 2 to the power of 64 by the count, rounded up; 0 for a count of 1.
    reciprocal: u64,
}

impl PlaceInRound {
    fn of_count(count: u32) -> Self {
        let rounded_down = u64::MAX.checked_div(count.into()).unwrap_or(0);
        Self {
            count,
            reciprocal: rounded_down.wrapping_add(1),
        }
    }

    /// 0 when there are no queues.
    #[inline]
    fn of(self, index: u32) -> u32 {
        let fraction = self.reciprocal.wrapping_mul(index.into());
        ((u128::from(fraction) * u128::from(self.count)) >> 64) as u32
    }
}

/// Names a snapshot for as long as it lives; threads watch it by `Weak` to forget its index.
#[derive(Debug)]
struct SnapshotId(u64);

/// Whether a queue may be chosen.
pub(crate) type QueueFilter<'a> = &'a dyn Fn(&MessageQueue) -> bool;

impl TopicPublishInfo {
    /// The snapshot of a route.
    pub(crate) fn new(queues: impl Into<Arc<[MessageQueue]>>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(NO_SNAPSHOT + 1);
        let queues = queues.into();
        let count = u32::try_from(queues.len()).unwrap_or(u32::MAX);
        Self {
            queues,
            place: PlaceInRound::of_count(count),
            snapshot: Arc::new(SnapshotId(NEXT.fetch_add(1, Ordering::Relaxed))),
        }
    }

    /// The snapshot of a topic of which nothing is known yet.
    pub(crate) fn unknown() -> Self {
        Self::new([])
    }

    /// Whether there is a queue to send to.
    pub(crate) fn ok(&self) -> bool {
        !self.queues.is_empty()
    }

    /// All queues, in the order of the round.
    pub(crate) fn queues(&self) -> &[MessageQueue] {
        &self.queues
    }

    /// The next queue, on another broker than `last_broker_name` if there is any; `None` if there
    /// are no queues.
    ///
    /// # Java
    /// `MQFaultStrategy#selectOneMessageQueue` with `sendLatencyEnable` off
    #[inline]
    pub(crate) fn select_one_message_queue(
        &self,
        last_broker_name: Option<&str>,
    ) -> Option<MessageQueue> {
        let Some(last) = last_broker_name else {
            return self.next_message_queue().cloned();
        };
        self.select_filtered(&[&|mq| mq.broker_name() != last])
            .or_else(|| self.next_message_queue().cloned())
    }

    /// The next queue of the round, whatever it is; `None` if there are none.
    ///
    /// # Java
    /// `TopicPublishInfo#selectOneMessageQueue()`
    #[inline]
    pub(crate) fn next_message_queue(&self) -> Option<&MessageQueue> {
        if self.queues.is_empty() {
            return None;
        }
        let place = self.place.of(self.next_index());
        self.queues.get(place as usize)
    }

    /// The next queue that all filters accept, of at most one round; `None` if there is none. The
    /// index stays where the search ended.
    ///
    /// # Java
    /// `TopicPublishInfo#selectOneMessageQueue(QueueFilter...)`
    pub(crate) fn select_filtered(&self, filters: &[QueueFilter<'_>]) -> Option<MessageQueue> {
        (0..self.queues.len())
            .filter_map(|_| self.next_message_queue())
            .find(|mq| filters.iter().all(|accepts| accepts(mq)))
            .cloned()
    }

    /// Lets the calling thread go on from a random queue.
    ///
    /// # Java
    /// `TopicPublishInfo#resetIndex`
    pub(crate) fn reset_index(&self) {
        self.go_on_from(random_u32() & POSITIVE_MASK);
    }

    /// The next queue of the calling thread is the one after `index`.
    fn go_on_from(&self, index: u32) {
        if self.current_index().is_some() {
            CURRENT.set(Place {
                snapshot: self.snapshot.0,
                index,
            });
        }
    }

    #[inline]
    fn next_index(&self) -> u32 {
        let Some(index) = self.current_index() else {
            return random_u32() & POSITIVE_MASK;
        };
        let index = index.wrapping_add(1);
        CURRENT.set(Place {
            snapshot: self.snapshot.0,
            index,
        });
        index & POSITIVE_MASK
    }

    /// The calling thread's index, once this is its current snapshot; `None` on a thread that ends.
    #[inline]
    fn current_index(&self) -> Option<u32> {
        let current = CURRENT.get();
        if current.snapshot == self.snapshot.0 {
            return Some(current.index);
        }
        self.make_current()
    }

    #[cold]
    fn make_current(&self) -> Option<u32> {
        INDEXES
            .try_with(|indexes| {
                let mut indexes = indexes.borrow_mut();
                indexes.keep(CURRENT.get());
                let index = indexes.of(&self.snapshot);
                CURRENT.set(Place {
                    snapshot: self.snapshot.0,
                    index,
                });
                index
            })
            .ok()
    }
}

/// Keeps an index as Java's `int` does once its sign is taken off.
const POSITIVE_MASK: u32 = 0x7FFF_FFFF;

/// The snapshot of a thread that has chosen no queue yet.
const NO_SNAPSHOT: u64 = 0;

thread_local! {
    /// Of the snapshot that was used last, for most threads send to one topic at a time.
    static CURRENT: Cell<Place> = const { Cell::new(Place { snapshot: NO_SNAPSHOT, index: 0 }) };
    static INDEXES: RefCell<Indexes> = const { RefCell::new(Indexes::new()) };
}

#[derive(Clone, Copy)]
struct Place {
    snapshot: u64,
    index: u32,
}

/// This thread's place in each snapshot but the current one, whose index is out of date here.
struct Indexes {
    by_snapshot: BTreeMap<u64, (u32, Weak<SnapshotId>)>,
    /// How many were alive when the dead were last removed.
    alive: usize,
}

impl Indexes {
    const fn new() -> Self {
        Self {
            by_snapshot: BTreeMap::new(),
            alive: 0,
        }
    }

    fn keep(&mut self, place: Place) {
        if let Some((index, _)) = self.by_snapshot.get_mut(&place.snapshot) {
            *index = place.index;
        }
    }

    /// The index in this snapshot, a random one at first.
    ///
    /// Those of dead snapshots are removed when there are twice as many as were alive the last
    /// time, so each choice costs the same on average and no thread keeps more than that.
    fn of(&mut self, snapshot: &Arc<SnapshotId>) -> u32 {
        if self.by_snapshot.len() >= 2 * self.alive.max(PRUNE_FROM)
            && !self.by_snapshot.contains_key(&snapshot.0)
        {
            self.by_snapshot
                .retain(|_, (_, snapshot)| snapshot.strong_count() > 0);
            self.alive = self.by_snapshot.len();
        }
        let entry = self.by_snapshot.entry(snapshot.0);
        entry
            .or_insert_with(|| (random_u32(), Arc::downgrade(snapshot)))
            .0
    }
}

const PRUNE_FROM: usize = 8;

/// A random number from the keys that std makes for its hash maps; there is nothing to protect.
pub(crate) fn random_u32() -> u32 {
    let hash = RandomState::new().build_hasher().finish();
    (hash >> 32) as u32
}

#[cfg(test)]
impl TopicPublishInfo {
    /// Sets the place of the calling thread: the next queue is the one after it.
    pub(crate) fn set_index(&self, index: u32) {
        self.go_on_from(index);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::time::Duration;

    use super::*;
    use crate::random::SplitMix64;
    use crate::sync::{Deadline, thread};

    fn info(brokers: &[(&str, i32)]) -> TopicPublishInfo {
        let queues: Vec<MessageQueue> = brokers
            .iter()
            .flat_map(|(broker, count)| (0..*count).map(|id| MessageQueue::new("t", *broker, id)))
            .collect();
        TopicPublishInfo::new(queues)
    }

    fn choose(info: &TopicPublishInfo, last_broker: Option<&str>) -> String {
        let mq = info.select_one_message_queue(last_broker).unwrap();
        format!("{}{}", mq.broker_name(), mq.queue_id())
    }

    #[test]
    fn without_queues_there_is_no_choice() {
        let unknown = TopicPublishInfo::unknown();
        assert!(!unknown.ok());
        assert_eq!(unknown.select_one_message_queue(None), None);
        assert_eq!(unknown.select_one_message_queue(Some("a")), None);
        assert_eq!(unknown.select_filtered(&[]), None);
    }

    #[test]
    fn the_place_in_the_round_is_the_remainder() {
        let mut random = SplitMix64::new(1);
        let edges = [0, 1, 2, 3, 7, 8, POSITIVE_MASK - 1, POSITIVE_MASK];
        let mut indexes = edges.to_vec();
        indexes.extend((0..1000).map(|_| random.next() as u32 & POSITIVE_MASK));
        for count in (1..300).chain([65_535, 65_536, 1 << 30, POSITIVE_MASK, u32::MAX]) {
            let place = PlaceInRound::of_count(count);
            for index in &indexes {
                assert_eq!(place.of(*index), index % count, "{index} of {count}");
            }
        }
        assert_eq!(PlaceInRound::of_count(0).of(5), 0);
    }

    #[test]
    fn queues_are_gone_round_one_by_one() {
        let info = info(&[("a", 2), ("b", 1)]);
        info.set_index(2);
        let round: Vec<_> = (0..5).map(|_| choose(&info, None)).collect();
        assert_eq!(round, ["a0", "a1", "b0", "a0", "a1"]);
    }

    #[test]
    fn the_last_broker_is_passed_over() {
        let info = info(&[("a", 3), ("b", 2)]);
        info.set_index(4);
        assert_eq!(
            choose(&info, Some("a")),
            "b0",
            "a0, a1 and a2 are passed over"
        );
        assert_eq!(choose(&info, Some("a")), "b1");
        assert_eq!(choose(&info, Some("b")), "a0");
        assert_eq!(choose(&info, Some("elsewhere")), "a1");
    }

    #[test]
    fn the_last_broker_is_taken_if_there_is_no_other() {
        let info = info(&[("a", 3)]);
        info.set_index(2);
        // One full round in vain, then the plain next.
        assert_eq!(choose(&info, Some("a")), "a0");
        assert_eq!(choose(&info, Some("a")), "a1");
    }

    #[test]
    fn filters_all_have_to_accept_within_one_round() {
        let info = info(&[("a", 2), ("b", 2)]);
        info.set_index(3);
        let in_b = |mq: &MessageQueue| mq.broker_name() == "b";
        let odd = |mq: &MessageQueue| mq.queue_id() % 2 == 1;
        let chosen = info.select_filtered(&[&in_b, &odd]).unwrap();
        assert_eq!((chosen.broker_name(), chosen.queue_id()), ("b", 1));
        assert_eq!(info.select_filtered(&[&|_| false]), None);
    }

    #[test]
    fn the_index_wraps_as_a_java_int_and_stays_positive() {
        let info = info(&[("a", 5)]);
        info.set_index(0x7FFF_FFFE);
        let largest = 0x7FFF_FFFF % 5;
        assert_eq!(choose(&info, None), format!("a{largest}"));
        assert_eq!(choose(&info, None), "a0", "0x80000000 without its sign");
        info.set_index(u32::MAX);
        assert_eq!(choose(&info, None), "a0");
        assert!(info.next_index() <= POSITIVE_MASK);
    }

    /// apache/rocketmq#2783, #3131, #5716, #6897, PR#4350: beyond the largest 32-bit number the index
    /// was negative, which was an error or led to two of the queues for ever.
    #[test]
    fn b01_the_index_wraps_and_stays_in_the_round() {
        let info = info(&[("a", 2), ("b", 2), ("c", 2)]);
        info.set_index(2_147_483_644);
        let picks: Vec<_> = (0..10).map(|_| choose(&info, None)).collect();
        assert_eq!(
            picks.join(" "),
            "c1 a0 a1 a0 a1 b0 b1 c0 c1 a0",
            "one skip at the wrap"
        );
        info.set_index(2_147_483_645);
        let indexes: Vec<_> = (0..6).map(|_| info.next_index()).collect();
        assert_eq!(indexes, [2_147_483_646, 2_147_483_647, 0, 1, 2, 3]);
    }

    #[test]
    fn a_reset_index_is_random_and_positive() {
        let info = info(&[("a", 1000)]);
        let places: HashSet<u32> = (0..50)
            .map(|_| {
                info.reset_index();
                info.current_index().unwrap()
            })
            .collect();
        assert!(places.len() > 40, "{places:?}");
        assert!(places.iter().all(|place| *place <= POSITIVE_MASK));
    }

    #[test]
    fn each_thread_and_each_snapshot_has_an_index_of_its_own() {
        let queues = info(&[("a", 1000)]);
        queues.set_index(9);
        assert_eq!(choose(&queues, None), "a10");
        let clone = queues.clone();
        let elsewhere = thread::spawn("elsewhere", move || clone.set_index(500)).unwrap();
        assert!(elsewhere.join_until(Deadline::after(Duration::from_secs(30))));
        let other = info(&[("a", 1000)]);
        other.set_index(700);
        assert_eq!(choose(&queues, None), "a11");
        let clone = queues.clone();
        assert_eq!(choose(&clone, None), "a12");
        assert_eq!(choose(&queues, None), "a13");
        assert_eq!(choose(&other, None), "a701");
    }

    #[test]
    fn snapshots_start_at_different_queues() {
        let starts: HashSet<String> = (0..20)
            .map(|_| choose(&info(&[("a", 1000)]), None))
            .collect();
        assert!(starts.len() > 1, "{starts:?}");
    }

    #[test]
    fn a_thread_forgets_dead_snapshots_and_no_others() {
        let kept: Vec<_> = (0..30).map(|_| info(&[("a", 1000)])).collect();
        for info in &kept {
            info.set_index(5);
        }
        for _ in 0..1000 {
            choose(&info(&[("a", 1)]), None);
        }
        let remembered = INDEXES.with(|indexes| indexes.borrow().by_snapshot.len());
        assert!(remembered <= 2 * (kept.len() + 1), "{remembered}");
        for info in &kept {
            assert_eq!(choose(info, None), "a6");
        }
    }
}
