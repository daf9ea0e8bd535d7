//! Carries out what a group's members have worked out (Java `RebalanceImpl`).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rocketmq_protocol::body::MASTER_ID;
use rocketmq_protocol::{MessageQueue, compare_utf16};

use super::{AllocateMessageQueueStrategy, WorkingState, rebalance_plan};
use crate::client::{MQClientApi, MQClientInstance};
use crate::error::{Error, Result, client_error_code};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Deadline, Mutex};

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

    /// Gives a queue up: drops it and saves its offset. `false` leaves it in the table for the next
    /// round.
    fn remove_unnecessary_message_queue(&self, mq: &MessageQueue, queue: &Self::Queue) -> bool;

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
    process_queues: Mutex<ProcessQueueTable<Q>>,
    /// Which broker of a topic is asked next.
    turn: AtomicUsize,
}

struct ProcessQueueTable<Q> {
    queues: BTreeMap<MessageQueue, Arc<Q>>,
    /// Set at the end: a round that is under way adds nothing any more.
    closed: bool,
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
            process_queues: Mutex::new(ProcessQueueTable {
                queues: BTreeMap::new(),
                closed: false,
            }),
            turn: AtomicUsize::new(0),
        }
    }

    /// Takes over the queues of a topic. Returns whether they are others than before.
    pub(crate) fn set_topic_queues(&self, topic: &str, queues: &Arc<[MessageQueue]>) -> bool {
        let mut table = self.topic_subscribe_info.lock();
        let changed = table.get(topic).is_none_or(|known| known != queues);
        table.insert(topic.to_owned(), Arc::clone(queues));
        changed
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

    /// Takes all queues out, and lets none in any more.
    pub(crate) fn close(&self) -> Vec<(MessageQueue, Arc<Q>)> {
        let mut table = self.process_queues.lock();
        table.closed = true;
        std::mem::take(&mut table.queues).into_iter().collect()
    }

    /// One round: makes the queues that are worked on those that the strategy gives. Returns whether
    /// they are. A topic that cannot be decided on keeps its queues.
    ///
    /// # Java
    /// `RebalanceImpl#doRebalance`. There a failed question for the members counts as balanced, and
    /// is asked again after 20 s; here it is asked again after the short pause.
    pub(crate) fn do_rebalance<H: RebalanceHooks<Queue = Q>>(
        &self,
        instance: &MQClientInstance,
        topics: &BTreeSet<String>,
        hooks: &H,
    ) -> bool {
        let mut balanced = true;
        let undecided: Vec<(&String, Arc<[MessageQueue]>)> = topics
            .iter()
            .filter_map(|topic| Some((topic, self.topic_queues(topic)?)))
            .filter(|(_, queues)| !queues.is_empty())
            .collect();
        let members = self.members_by_topic(instance, undecided.iter().map(|(topic, _)| *topic));
        for (topic, mq_all) in undecided {
            let decided = match members.get(topic.as_str()) {
                Some(Ok(cid_all)) => {
                    self.rebalance_by_topic(instance, topic, &mq_all, cid_all, hooks)
                }
                Some(Err(error)) => Err(error.clone()),
                None => continue,
            };
            match decided {
                Ok(is_balanced) => balanced &= is_balanced,
                Err(error) => {
                    log::info!(
                        "group {}, topic {topic}: its queues stay as they are, tried again soon: \
                         {error}",
                        self.consumer_group
                    );
                    balanced = false;
                }
            }
        }
        self.drop_queues_of_other_topics(topics, hooks);
        balanced
    }

    /// Asks one broker of each topic for the group's members; the questions go out side by side,
    /// and one broker is asked once.
    fn members_by_topic<'a>(
        &self,
        instance: &MQClientInstance,
        topics: impl Iterator<Item = &'a String>,
    ) -> HashMap<&'a str, Result<Vec<String>>> {
        let deadline = Deadline::after(instance.api_timeout());
        let mut asked = BTreeMap::new();
        let mut addr_of: Vec<(&str, Result<String>)> = Vec::new();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        for topic in topics {
            let addr = find_broker_addr_by_topic(instance, topic, turn);
            if let Ok(addr) = &addr {
                asked.entry(addr.clone()).or_insert_with(|| {
                    instance
                        .api()
                        .start_consumer_id_list(addr, &self.consumer_group)
                });
            }
            addr_of.push((topic, addr));
        }
        let answers: BTreeMap<String, Result<Vec<String>>> = asked
            .into_iter()
            .map(|(addr, call)| {
                (
                    addr,
                    call.and_then(|call| MQClientApi::finish_consumer_id_list(call, deadline)),
                )
            })
            .collect();
        addr_of
            .into_iter()
            .map(|(topic, addr)| {
                let answer = addr.and_then(|addr| {
                    answers
                        .get(&addr)
                        .cloned()
                        .unwrap_or_else(|| Ok(Vec::new()))
                });
                (topic, answer)
            })
            .collect()
    }

    fn rebalance_by_topic<H: RebalanceHooks<Queue = Q>>(
        &self,
        instance: &MQClientInstance,
        topic: &str,
        mq_all: &[MessageQueue],
        cid_all: &[String],
        hooks: &H,
    ) -> Result<bool> {
        let mut cid_all = cid_all.to_vec();
        cid_all.sort_by(|a, b| compare_utf16(a, b));
        let allocated = self
            .strategy
            .allocate(&self.consumer_group, instance.client_id(), mq_all, &cid_all)
            .map_err(|error| Error::MQClient {
                code: None,
                reason: format!("strategy {}: {error}", self.strategy.name()),
                source: None,
            })?;
        let shared = cid_all.iter().any(|cid| cid != instance.client_id());
        if self.update_process_queue_table(topic, &allocated, shared, hooks) {
            log::info!(
                "group {}, topic {topic}: {} of {} queues for {} among {} members",
                self.consumer_group,
                allocated.len(),
                mq_all.len(),
                instance.client_id(),
                cid_all.len()
            );
            hooks.message_queue_changed(topic, mq_all, &allocated);
        }
        Ok(self.is_working_on(topic, &allocated))
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
        let working: BTreeMap<MessageQueue, Arc<Q>> = self
            .process_queues()
            .into_iter()
            .filter(|(mq, _)| mq.topic() == topic)
            .collect();
        let states: Vec<_> = working
            .iter()
            .map(|(mq, queue)| (mq.clone(), queue.working_state()))
            .collect();
        let plan = rebalance_plan(&states, allocated);
        let mut changed = false;
        for (mq, reason) in plan.drop {
            let Some(queue) = working.get(&mq) else {
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
        let working: BTreeSet<&MessageQueue> = table
            .queues
            .iter()
            .filter(|(mq, queue)| {
                mq.topic() == topic && queue.working_state() == WorkingState::Active
            })
            .map(|(mq, _)| mq)
            .collect();
        working == allocated.iter().collect()
    }

    /// Java `RebalanceImpl#truncateMessageQueueNotMyTopic`; here the offset is saved first.
    fn drop_queues_of_other_topics<H: RebalanceHooks<Queue = Q>>(
        &self,
        topics: &BTreeSet<String>,
        hooks: &H,
    ) {
        for (mq, queue) in self.process_queues() {
            if !topics.contains(mq.topic()) && hooks.remove_unnecessary_message_queue(&mq, &queue) {
                self.remove(&mq, &queue);
                log::info!("group {}: unsubscribed {mq}", self.consumer_group);
            }
        }
    }
}

/// The master, or else any replica, of one broker of the topic (Java
/// `MQClientInstance#findBrokerAddrByTopic`, a random one). Brokers take turns, so one that does not
/// answer is not asked twice in a row.
fn find_broker_addr_by_topic(
    instance: &MQClientInstance,
    topic: &str,
    turn: usize,
) -> Result<String> {
    let not_found = || {
        Error::client(
            client_error_code::NOT_FOUND_TOPIC_EXCEPTION,
            format!("no broker of topic {topic} is known to ask for the members"),
        )
    };
    let route = instance.routes().route(topic).ok_or_else(not_found)?;
    let brokers: Vec<_> = route
        .broker_datas
        .iter()
        .filter(|broker| !broker.broker_addrs.is_empty())
        .collect();
    let chosen = brokers
        .get(turn % brokers.len().max(1))
        .ok_or_else(not_found)?;
    let addrs = &chosen.broker_addrs;
    addrs
        .get(&MASTER_ID)
        .or_else(|| addrs.values().next())
        .cloned()
        .ok_or_else(not_found)
}
