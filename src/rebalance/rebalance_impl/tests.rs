use super::*;
use crate::rebalance::AllocateMessageQueueAveragely;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{Deadline, thread};

#[derive(Debug, Default)]
struct Queue {
    given_up: AtomicBool,
    /// Pull loops that were begun for it.
    loops: AtomicUsize,
}

impl WorkingQueue for Queue {
    fn working_state(&self) -> WorkingState {
        WorkingState::Active
    }
}

/// Notes what is begun with a grace and what without.
#[derive(Debug, Default)]
struct Hooks {
    dispatched: Mutex<Vec<(i32, bool)>>,
    changes: AtomicUsize,
}

impl RebalanceHooks for Hooks {
    type Queue = Queue;

    fn new_process_queue(&self, _mq: &MessageQueue) -> Queue {
        Queue::default()
    }

    fn remove_unnecessary_message_queue(&self, _mq: &MessageQueue, queue: &Arc<Queue>) -> bool {
        queue.given_up.store(true, Ordering::SeqCst);
        true
    }

    fn dispatch(&self, added: Vec<(MessageQueue, Arc<Queue>)>, shared: bool) {
        for (mq, queue) in added {
            queue.loops.fetch_add(1, Ordering::SeqCst);
            self.dispatched.lock().push((mq.queue_id(), shared));
        }
    }

    fn message_queue_changed(&self, _: &str, _: &[MessageQueue], _: &[MessageQueue]) {
        self.changes.fetch_add(1, Ordering::SeqCst);
    }
}

fn queues(count: i32) -> Arc<[MessageQueue]> {
    (0..count)
        .map(|id| MessageQueue::new("t", "b", id))
        .collect()
}

fn list(names: &[&str]) -> Arc<[String]> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn rebalance(count: i32) -> RebalanceImpl<Queue> {
    let rebalance = RebalanceImpl::new("g".to_owned(), Arc::new(AllocateMessageQueueAveragely));
    rebalance.set_topic_queues("t", &queues(count));
    rebalance
}

impl RebalanceImpl<Queue> {
    fn look(&self, hooks: &Hooks, me: &str, names: &[&str], confirmed: bool) -> TopicBalance {
        let cid_all = list(names);
        let members = Members {
            cid_all: &cid_all,
            confirmed,
        };
        self.rebalance_by_topic(me, "t", members, hooks)
    }

    fn ids(&self) -> Vec<i32> {
        let queues = self.process_queues();
        queues.iter().map(|(mq, _)| mq.queue_id()).collect()
    }
}

fn take(hooks: &Hooks) -> Vec<(i32, bool)> {
    std::mem::take(&mut *hooks.dispatched.lock())
}

#[test]
fn a_look_says_whether_it_has_changed_anything() {
    let (rebalance, hooks) = (rebalance(4), Hooks::default());
    let look = |names: &[&str]| rebalance.look(&hooks, "a", names, false);
    assert_eq!(look(&["b", "a"]), TopicBalance::Changed);
    assert_eq!(rebalance.ids(), [0, 1]);
    assert_eq!(look(&["a", "b"]), TopicBalance::Balanced);
    assert_eq!(hooks.changes.load(Ordering::SeqCst), 1);
    assert_eq!(look(&["b"]), TopicBalance::Changed, "it is no member");
    assert!(rebalance.ids().is_empty());
    assert_eq!(look(&[]), TopicBalance::Unbalanced, "nothing is said");
}

#[test]
fn members_that_are_named_as_before_are_not_sorted_again() {
    let mut known = KnownMembers::default();
    let first = known.sorted(&list(&["c", "a", "b"]));
    assert_eq!(first, list(&["a", "b", "c"]));
    let again = list(&["c", "a", "b"]);
    assert!(Arc::ptr_eq(&first, &known.sorted(&again)));
    assert!(Arc::ptr_eq(&first, &known.sorted(&again)), "the same list");
    let others = known.sorted(&list(&["c", "a", "d"]));
    assert_eq!(others, list(&["a", "c", "d"]));
    assert_eq!(known.sorted(&again), list(&["a", "b", "c"]));
}

#[test]
fn queues_of_other_topics_are_given_up_and_unknown_ones_not_asked_for() {
    let (rebalance, hooks) = (rebalance(2), Hooks::default());
    rebalance.set_topic_queues("empty", &queues(0));
    rebalance.look(&hooks, "a", &["a"], false);
    let topics = ["t", "u", "empty"].map(str::to_owned).into();
    assert_eq!(rebalance.begin(&topics, &hooks), ["t"]);
    assert_eq!(rebalance.ids(), [0, 1]);
    assert_eq!(
        rebalance.begin(&BTreeSet::new(), &hooks),
        Vec::<String>::new()
    );
    assert!(rebalance.ids().is_empty());
}

#[test]
fn new_queues_are_shared_unless_there_is_nobody_else() {
    let (rebalance, hooks) = (rebalance(4), Hooks::default());
    let look = |names: &[&str]| {
        rebalance.look(&hooks, "b", names, false);
        take(&hooks)
    };
    assert_eq!(look(&["a", "b"]), [(2, true), (3, true)]);
    assert_eq!(look(&["b"]), [(0, false), (1, false)]);
}

#[test]
fn a_shrink_is_confirmed_before_anything_changes_if_that_is_wanted() {
    let hooks = Hooks::default();
    let rebalance = rebalance(4).confirm_shrink(true);
    let look = |names: &[&str], confirmed| rebalance.look(&hooks, "b", names, confirmed);
    assert_eq!(look(&["b"], false), TopicBalance::Changed, "it grows");
    assert_eq!(look(&["a", "b"], false), TopicBalance::Unconfirmed);
    assert_eq!(rebalance.ids(), [0, 1, 2, 3]);
    assert_eq!(look(&["a", "b"], true), TopicBalance::Changed);
    assert_eq!(rebalance.ids(), [2, 3]);
    assert_eq!(
        look(&["b", "c"], false),
        TopicBalance::Unconfirmed,
        "others"
    );
    assert_eq!(look(&["b"], false), TopicBalance::Changed);
}

#[test]
fn after_the_close_nothing_is_added() {
    let (rebalance, hooks) = (rebalance(2), Hooks::default());
    rebalance.look(&hooks, "a", &["a"], false);
    assert_eq!(rebalance.close().len(), 2);
    take(&hooks);
    assert_eq!(
        rebalance.look(&hooks, "a", &["a"], false),
        TopicBalance::Unbalanced
    );
    assert_eq!(take(&hooks), []);
}

/// apache/rocketmq-client-go#313, apache/rocketmq#2449: two rebalances at once left the table and the
/// pull loops out of step. Here one thread does them all, and yet it would be right with eight.
#[test]
fn b26_whoever_rebalances_there_is_one_pull_loop_for_each_owned_queue() {
    const ROUNDS: usize = 1000;
    let shared = Arc::new((rebalance(3), Hooks::default()));
    let made: Arc<Mutex<Vec<Arc<Queue>>>> = Arc::default();
    let threads: Vec<_> = (0..8)
        .map(|n| {
            let (shared, made) = (Arc::clone(&shared), Arc::clone(&made));
            thread::spawn("rebalance", move || {
                for round in 0..ROUNDS {
                    let (rebalance, hooks) = &*shared;
                    // [0, 1] and [2] in turn.
                    let names = if (round + n) % 2 == 0 {
                        ["b", "c"]
                    } else {
                        ["a", "b"]
                    };
                    rebalance.look(hooks, "b", &names, false);
                    let queues = rebalance.process_queues();
                    made.lock()
                        .extend(queues.into_iter().map(|(_, queue)| queue));
                }
            })
            .unwrap()
        })
        .collect();
    for thread in threads {
        assert!(thread.join_until(Deadline::after(std::time::Duration::from_secs(60))));
    }
    let (rebalance, hooks) = &*shared;
    rebalance.look(hooks, "b", &["b", "c"], false);
    assert_eq!(rebalance.ids(), [0, 1]);
    let owned = rebalance.process_queues();
    for queue in made.lock().iter() {
        assert_eq!(queue.loops.load(Ordering::SeqCst), 1);
        let is_owned = owned.iter().any(|(_, other)| Arc::ptr_eq(queue, other));
        assert_eq!(queue.given_up.load(Ordering::SeqCst), !is_owned);
    }
    for (_, queue) in &owned {
        assert_eq!(queue.loops.load(Ordering::SeqCst), 1);
        assert!(!queue.given_up.load(Ordering::SeqCst));
    }
}

#[test]
fn a_look_at_one_topic_does_not_look_at_the_queues_of_others() {
    #[derive(Debug, Default)]
    struct Counted(Arc<AtomicUsize>);
    impl WorkingQueue for Counted {
        fn working_state(&self) -> WorkingState {
            self.0.fetch_add(1, Ordering::SeqCst);
            WorkingState::Active
        }
    }
    #[derive(Default)]
    struct CountedHooks(Arc<AtomicUsize>);
    impl RebalanceHooks for CountedHooks {
        type Queue = Counted;
        fn new_process_queue(&self, _: &MessageQueue) -> Counted {
            Counted(Arc::clone(&self.0))
        }
        fn remove_unnecessary_message_queue(&self, _: &MessageQueue, _: &Arc<Counted>) -> bool {
            true
        }
        fn dispatch(&self, _: Vec<(MessageQueue, Arc<Counted>)>, _: bool) {}
        fn message_queue_changed(&self, _: &str, _: &[MessageQueue], _: &[MessageQueue]) {}
    }
    let hooks = CountedHooks::default();
    let rebalance = RebalanceImpl::new("g".to_owned(), Arc::new(AllocateMessageQueueAveragely));
    let (cid_all, topics) = (list(&["a"]), ["t", "t1", "s", "u"]);
    let members = Members {
        cid_all: &cid_all,
        confirmed: false,
    };
    for topic in topics {
        let queues = (0..8).map(|id| MessageQueue::new(topic, "b", id));
        rebalance.set_topic_queues(topic, &queues.collect());
        let look = rebalance.rebalance_by_topic("a", topic, members, &hooks);
        assert_eq!(look, TopicBalance::Changed);
        assert_eq!(rebalance.process_queue_count(topic), 8);
    }
    hooks.0.store(0, Ordering::SeqCst);
    let look = rebalance.rebalance_by_topic("a", "t", members, &hooks);
    assert_eq!(look, TopicBalance::Balanced);
    assert_eq!(
        hooks.0.load(Ordering::SeqCst),
        16,
        "each of the eight once before and once after"
    );
}

#[test]
fn queues_are_known_again_by_what_they_are_and_not_by_who_brings_them() {
    let rebalance = rebalance(4);
    let again = queues(4);
    assert!(!rebalance.set_topic_queues("t", &again), "another list");
    assert!(!rebalance.set_topic_queues("t", &again), "the same list");
    assert!(rebalance.set_topic_queues("t", &queues(5)));
    assert!(rebalance.set_topic_queues("new", &again));
}

#[test]
fn what_a_strategy_gives_beside_the_queues_of_the_topic_is_left_out() {
    let mq = |topic: &str, id| MessageQueue::new(topic, "b", id);
    let fixed = vec![mq("u", 0), mq("t", 9), mq("t", 2), mq("t", 0), mq("t", 2)];
    let strategy = crate::rebalance::AllocateMessageQueueByConfig::new(fixed);
    let rebalance = RebalanceImpl::new("g".to_owned(), Arc::new(strategy));
    rebalance.set_topic_queues("t", &queues(4));
    let hooks = Hooks::default();
    assert_eq!(
        rebalance.look(&hooks, "a", &["a"], false),
        TopicBalance::Changed
    );
    assert_eq!(rebalance.ids(), [0, 2]);
}
