//! Carries out what a group's members have worked out (Java `RebalanceImpl`).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rocketmq_protocol::{MessageQueue, compare_utf16, sort_utf16};

use super::{AllocateMessageQueueStrategy, WorkingState, rebalance_plan};
use crate::client::{Members, TopicBalance};
use crate::service::catch_panic;
use crate::sync::{Arc, Mutex};

/// What a queue that is worked on tells its rebalance.
pub(crate) trait WorkingQueue: Send + Sync {
    fn working_state(&self) -> WorkingState;
}

/// What a kind of consumer does when its queues change (Java's abstract methods of
/// `RebalanceImpl`). Borrowed for one call and never kept, so consumer and rebalance form no cycle.
pub(crate) trait RebalanceHooks {
    type Queue: WorkingQueue;

    /// Makes the state of a queue that is about to be worked on.
    fn new_process_queue(&self, mq: &MessageQueue) -> Self::Queue;

    /// Gives a queue up and has its offset saved. `false` leaves it in the table for the next round.
    fn remove_unnecessary_message_queue(&self, mq: &MessageQueue, queue: &Arc<Self::Queue>)
    -> bool;

    /// Begins to work on queues. `shared` says whether another member may have had them before.
    fn dispatch(&self, added: Vec<(MessageQueue, Arc<Self::Queue>)>, shared: bool);

    /// The own queues of a topic changed.
    fn message_queue_changed(
        &self,
        topic: &str,
        mq_all: &[MessageQueue],
        mq_divided: &[MessageQueue],
    );
}

/// The queues of a consumer: which there are, and which are its own.
pub(crate) struct RebalanceImpl<Q> {
    consumer_group: String,
    strategy: Arc<dyn AllocateMessageQueueStrategy>,
    /// Topic → all its queues, sorted; pushed here whenever a route changes.
    topic_subscribe_info: Mutex<HashMap<String, Arc<[MessageQueue]>>>,
    /// The members of the last look.
    members: Mutex<KnownMembers>,
    process_queues: Mutex<ProcessQueueTable<Q>>,
    confirm_shrink: bool,
}

/// One list of members, as a broker named them and in Java's order; brokers name them alike for as
/// long as the group stays as it is, and the topics of one look share one list.
#[derive(Default)]
struct KnownMembers {
    named: Arc<[String]>,
    sorted: Arc<[String]>,
}

impl KnownMembers {
    fn sorted(&mut self, named: &Arc<[String]>) -> Arc<[String]> {
        if !is_same(&self.named, named) {
            if self.named != *named {
                let mut sorted = named.to_vec();
                sort_client_ids(&mut sorted);
                self.sorted = sorted.into();
            }
            self.named = Arc::clone(named);
        }
        Arc::clone(&self.sorted)
    }
}

/// Whether two lists are one.
fn is_same<T>(a: &Arc<[T]>, b: &Arc<[T]>) -> bool {
    Arc::ptr_eq(a, b)
}

struct ProcessQueueTable<Q> {
    queues: BTreeMap<MessageQueue, Arc<Q>>,
    /// Set at the end: a round that is under way adds nothing any more.
    closed: bool,
}

impl<Q> ProcessQueueTable<Q> {
    /// The queues of a topic, sorted. They lie side by side, so other topics cost nothing.
    fn of_topic(&self, topic: &str) -> impl Iterator<Item = (&MessageQueue, &Arc<Q>)> {
        let first = MessageQueue::new(topic, "", i32::MIN);
        let from_there = self.queues.range(first..);
        from_there.take_while(move |(mq, _)| mq.topic() == topic)
    }
}

impl<Q: WorkingQueue> RebalanceImpl<Q> {
    pub(crate) fn new(
        consumer_group: String,
        strategy: Arc<dyn AllocateMessageQueueStrategy>,
    ) -> Self {
        Self {
            consumer_group,
            strategy,
            topic_subscribe_info: Mutex::new(HashMap::new()),
            members: Mutex::new(KnownMembers::default()),
            process_queues: Mutex::new(ProcessQueueTable {
                queues: BTreeMap::new(),
                closed: false,
            }),
            confirm_shrink: false,
        }
    }

    /// Whether queues are given up only when two brokers name the same members.
    pub(crate) fn confirm_shrink(mut self, confirm: bool) -> Self {
        self.confirm_shrink = confirm;
        self
    }

    /// Takes over the queues of a topic. Returns whether they are others than before.
    pub(crate) fn set_topic_queues(&self, topic: &str, queues: &Arc<[MessageQueue]>) -> bool {
        let mut table = self.topic_subscribe_info.lock();
        match table.get_mut(topic) {
            Some(known) => {
                let changed = !is_same(known, queues) && known != queues;
                *known = Arc::clone(queues);
                changed
            }
            None => {
                table.insert(topic.to_owned(), Arc::clone(queues));
                true
            }
        }
    }

    pub(crate) fn topic_queues(&self, topic: &str) -> Option<Arc<[MessageQueue]>> {
        self.topic_subscribe_info.lock().get(topic).cloned()
    }

    /// The queues that are worked on, sorted.
    pub(crate) fn process_queues(&self) -> Vec<(MessageQueue, Arc<Q>)> {
        let table = self.process_queues.lock();
        table
            .queues
            .iter()
            .map(|(mq, queue)| (mq.clone(), Arc::clone(queue)))
            .collect()
    }

    /// How many queues of a topic are worked on.
    pub(crate) fn process_queue_count(&self, topic: &str) -> usize {
        self.process_queues.lock().of_topic(topic).count()
    }

    /// Takes a queue out, if it is still this one.
    pub(crate) fn remove(&self, mq: &MessageQueue, queue: &Arc<Q>) -> bool {
        let mut table = self.process_queues.lock();
        let is_same = table
            .queues
            .get(mq)
            .is_some_and(|current| Arc::ptr_eq(current, queue));
        if is_same {
            table.queues.remove(mq);
        }
        is_same
    }

    /// Puts another state of a queue into the place of this one, if it is still there.
    pub(crate) fn replace(&self, mq: &MessageQueue, queue: &Arc<Q>, new: &Arc<Q>) -> bool {
        let mut table = self.process_queues.lock();
        match table.queues.get_mut(mq) {
            Some(current) if Arc::ptr_eq(current, queue) => {
                *current = Arc::clone(new);
                true
            }
            _ => false,
        }
    }

    /// Takes all queues out, and lets none in any more.
    pub(crate) fn close(&self) -> Vec<(MessageQueue, Arc<Q>)> {
        let mut table = self.process_queues.lock();
        table.closed = true;
        std::mem::take(&mut table.queues).into_iter().collect()
    }

    /// Begins a round: gives up the queues of topics that are not these, and returns those of the
    /// topics whose queues are known and to be divided.
    pub(crate) fn begin<H: RebalanceHooks<Queue = Q>>(
        &self,
        topics: &BTreeSet<String>,
        hooks: &H,
    ) -> Vec<String> {
        self.drop_queues_of_other_topics(topics, hooks);
        let has_queues = |topic: &&String| {
            let queues = self.topic_queues(topic);
            queues.is_some_and(|queues| !queues.is_empty())
        };
        topics.iter().filter(has_queues).cloned().collect()
    }

    /// Makes the queues of a topic that are worked on those that the strategy gives among these
    /// members. A topic that cannot be decided on keeps its queues.
    ///
    /// # Java
    /// `RebalanceImpl#rebalanceByTopic`. There a failed question for the members counts as balanced,
    /// and is asked again after 20 s; here it is asked again after the short pause.
    pub(crate) fn rebalance_by_topic<H: RebalanceHooks<Queue = Q>>(
        &self,
        client_id: &str,
        topic: &str,
        members: Members<'_>,
        hooks: &H,
    ) -> TopicBalance {
        let Some(mq_all) = self.topic_queues(topic).filter(|all| !all.is_empty()) else {
            return TopicBalance::Balanced;
        };
        let cid_all = self.members.lock().sorted(members.cid_all);
        if times_of(client_id, &cid_all) > 1 {
            log::warn!(
                "group {}: its broker has more than one member {client_id}: unless this client has \
                 just connected anew, another one has the same id, and both consume the same queues; \
                 give one of them another instance_name",
                self.consumer_group
            );
        }
        let allocated = match self.allocate(client_id, topic, &mq_all, &cid_all) {
            Ok(allocated) => allocated,
            Err(error) => {
                log::warn!(
                    "group {}, topic {topic}: its queues stay as they are, tried again soon: {error}",
                    self.consumer_group
                );
                return TopicBalance::Unbalanced;
            }
        };
        if self.confirm_shrink && !members.confirmed && self.would_shrink(topic, &allocated) {
            return TopicBalance::Unconfirmed;
        }
        let shared = cid_all.iter().any(|cid| cid != client_id);
        let changed = self.update_process_queue_table(topic, &allocated, shared, hooks);
        if changed {
            log::info!(
                "group {}, topic {topic}: {} of {} queues for {client_id} among {} members",
                self.consumer_group,
                allocated.len(),
                mq_all.len(),
                cid_all.len()
            );
            hooks.message_queue_changed(topic, &mq_all, &allocated);
        }
        match self.is_working_on(topic, &allocated) {
            true if changed => TopicBalance::Changed,
            true => TopicBalance::Balanced,
            false => TopicBalance::Unbalanced,
        }
    }

    /// The strategy's answer, sorted, each queue once, without those that are not the topic's: a
    /// fixed list names the queues of several topics.
    fn allocate(
        &self,
        client_id: &str,
        topic: &str,
        mq_all: &[MessageQueue],
        cid_all: &[String],
    ) -> Result<Vec<MessageQueue>, String> {
        let group = &self.consumer_group;
        let (name, allocated) = catch_panic(|| {
            let allocated = self.strategy.allocate(group, client_id, mq_all, cid_all);
            (self.strategy.name().to_owned(), allocated)
        })
        .map_err(|reason| format!("the strategy {:?} panicked: {reason}", self.strategy))?;
        let mut allocated = allocated.map_err(|error| format!("strategy {name}: {error}"))?;
        allocated.sort();
        allocated.dedup();
        let mut all = mq_all.iter().peekable();
        allocated.retain(|mq| {
            // Both are sorted, so each queue of the topic is passed once.
            while all.next_if(|next| *next != mq && *next < mq).is_some() {}
            let is_known = all.peek().is_some_and(|next| *next == mq);
            if !is_known && mq.topic() == topic {
                log::warn!(
                    "group {group}: strategy {name} gave {mq}, which is none of the topic's {} \
                     queues and is left out",
                    mq_all.len()
                );
            }
            is_known
        });
        Ok(allocated)
    }

    fn would_shrink(&self, topic: &str, allocated: &[MessageQueue]) -> bool {
        let table = self.process_queues.lock();
        let mut of_topic = table.of_topic(topic);
        of_topic.any(|(mq, _)| allocated.binary_search(mq).is_err())
    }

    /// Carries the plan out (Java `RebalanceImpl#updateProcessQueueTableInRebalance`). Returns
    /// whether anything changed.
    fn update_process_queue_table<H: RebalanceHooks<Queue = Q>>(
        &self,
        topic: &str,
        allocated: &[MessageQueue],
        shared: bool,
        hooks: &H,
    ) -> bool {
        let working: Vec<(MessageQueue, Arc<Q>)> = {
            let table = self.process_queues.lock();
            let of_topic = table.of_topic(topic);
            of_topic
                .map(|(mq, queue)| (mq.clone(), Arc::clone(queue)))
                .collect()
        };
        let states: Vec<_> = working
            .iter()
            .map(|(mq, queue)| (mq.clone(), queue.working_state()))
            .collect();
        let plan = rebalance_plan(&states, allocated);
        let mut changed = false;
        for (mq, reason) in plan.drop {
            let at = working.binary_search_by(|(other, _)| other.cmp(&mq));
            let Some((_, queue)) = at.ok().and_then(|at| working.get(at)) else {
                continue;
            };
            if hooks.remove_unnecessary_message_queue(&mq, queue) {
                changed |= self.remove(&mq, queue);
                log::info!("group {}: gave up {mq} ({reason:?})", self.consumer_group);
            }
        }
        let mut added = Vec::new();
        for mq in plan.add {
            let queue = Arc::new(hooks.new_process_queue(&mq));
            if self.insert(&mq, &queue) {
                added.push((mq, queue));
            }
        }
        changed |= !added.is_empty();
        hooks.dispatch(added, shared);
        changed
    }

    fn insert(&self, mq: &MessageQueue, queue: &Arc<Q>) -> bool {
        let mut table = self.process_queues.lock();
        if table.closed || table.queues.contains_key(mq) {
            return false;
        }
        table.queues.insert(mq.clone(), Arc::clone(queue));
        true
    }

    fn is_working_on(&self, topic: &str, allocated: &[MessageQueue]) -> bool {
        let table = self.process_queues.lock();
        let of_topic = table.of_topic(topic);
        let active = of_topic.filter(|(_, queue)| queue.working_state() == WorkingState::Active);
        active.map(|(mq, _)| mq).eq(allocated)
    }

    /// Java `RebalanceImpl#truncateMessageQueueNotMyTopic`; here the offset is saved first.
    fn drop_queues_of_other_topics<H: RebalanceHooks<Queue = Q>>(
        &self,
        topics: &BTreeSet<String>,
        hooks: &H,
    ) {
        let others: Vec<_> = {
            let table = self.process_queues.lock();
            let others = table
                .queues
                .iter()
                .filter(|(mq, _)| !topics.contains(mq.topic()));
            others
                .map(|(mq, queue)| (mq.clone(), Arc::clone(queue)))
                .collect()
        };
        for (mq, queue) in others {
            if hooks.remove_unnecessary_message_queue(&mq, &queue) {
                self.remove(&mq, &queue);
                log::info!("group {}: unsubscribed {mq}", self.consumer_group);
            }
        }
    }
}

/// How often an id is in a sorted list.
fn times_of(client_id: &str, sorted: &[String]) -> usize {
    let before = sorted.partition_point(|cid| compare_utf16(cid, client_id).is_lt());
    let from_there = sorted.iter().skip(before);
    from_there.take_while(|cid| *cid == client_id).count()
}

/// Into the order in which Java's members of a group see each other.
pub(crate) fn sort_client_ids(ids: &mut [String]) {
    sort_utf16(ids);
}

#[cfg(test)]
mod tests;
