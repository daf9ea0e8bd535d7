//! One seed: a group, its faults, and what must hold.
//!
//! **T**: once the faults have ended,
//!
//! 1. each queue of the topic and of the retry topic has exactly one owner, and it is a member;
//! 2. every message whose send succeeded has been consumed successfully at least once;
//!
//! and throughout,
//!
//! 3. within one ownership of a queue no committed offset is below an earlier one;
//! 4. nor past a message that the owner has in hands: in a listener's call, or failed and not yet
//!    given back;
//!
//! and in the end
//!
//! 5. no thread, no connection and no child is left.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rocketmq_blocking::{DefaultMQProducer, Message, MessageQueue, request_code};
use rocketmq_embedded::{
    Cluster, ControlAction, ControlHandle, ControlScope, ControlTimes, ReceivedRequest,
};

use crate::ledger::Ledger;
use crate::member::{Local, Moods, Place, Remote, name_of};

/// How long the group may take to be calm; `GROUP_PATIENCE_MS` makes it shorter where a failure is what
/// is wanted.
fn patience() -> Duration {
    let shorter = crate::number("GROUP_PATIENCE_MS").map(Duration::from_millis);
    shorter.unwrap_or(Duration::from_secs(40))
}

const LOCALS: usize = 6;
const REMOTES: usize = 2;
const MOST_MEMBERS: usize = 12;
const QUEUES_PER_BROKER: u16 = 8;
const STEPS: u64 = 10;
/// Of a pull's `sysFlag`: it carries an offset to commit.
const PULL_COMMITS: i32 = 1;

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    Join,
    Leave,
    Kill,
    LostNote,
    DoubledNote,
    LateNote,
    SplitMemberList,
    BrokerKilled,
    BrokerStopped,
    RouteChanged,
    ConnectionsCut,
    SlowListener,
    FailingListener,
    PanickingListener,
}

impl Fault {
    pub(crate) const ALL: [Self; 14] = [
        Self::Join,
        Self::Leave,
        Self::Kill,
        Self::LostNote,
        Self::DoubledNote,
        Self::LateNote,
        Self::SplitMemberList,
        Self::BrokerKilled,
        Self::BrokerStopped,
        Self::RouteChanged,
        Self::ConnectionsCut,
        Self::SlowListener,
        Self::FailingListener,
        Self::PanickingListener,
    ];

    pub(crate) fn name(self) -> String {
        format!("{self:?}")
    }
}

/// SplitMix64.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn millis(&mut self, most: u64) -> Duration {
        Duration::from_millis(self.below(most))
    }
}

pub(crate) struct Outcome {
    pub(crate) summary: String,
    pub(crate) faults: BTreeMap<Fault, u64>,
}

pub(crate) fn run(seed: u64) -> Result<Outcome, String> {
    let threads_before = threads();
    let began = Instant::now();
    let mut world = World::new(seed)?;
    world.misbehave()?;
    let faulty = began.elapsed();
    world.calm_down()?;
    let calm = began.elapsed();
    let outcome = world.end(&threads_before)?;
    Ok(Outcome {
        summary: format!(
            "{}, faults {} ms, calm after {} ms, end after {} ms",
            outcome.summary,
            faulty.as_millis(),
            (calm - faulty).as_millis(),
            (began.elapsed() - calm).as_millis()
        ),
        faults: outcome.faults,
    })
}

struct World {
    random: Random,
    cluster: Cluster,
    place: Place,
    ledger: Arc<Ledger>,
    moods: Arc<Moods>,
    locals: Vec<Local>,
    remotes: Vec<Remote>,
    next_member: usize,
    queues_per_broker: u16,
    sender: Sender,
    observers: Vec<ControlHandle>,
    /// What ends by itself: controls of notes with what they count as.
    notes: Vec<(ControlHandle, Fault)>,
    leaving: Vec<thread::JoinHandle<Result<(), String>>>,
    faults: BTreeMap<Fault, u64>,
    story: Vec<String>,
}

impl World {
    fn new(seed: u64) -> Result<Self, String> {
        let cluster = Cluster::builder()
            .brokers(2)
            .delay_levels(vec![Duration::from_millis(15); 18])
            .start()
            .map_err(|error| format!("no cluster: {error}"))?;
        let place = Place {
            namesrv: cluster.namesrv_addr(),
            topic: "Groups".to_owned(),
            group: format!("g{seed}"),
        };
        cluster
            .create_topic(&place.topic, QUEUES_PER_BROKER)
            .map_err(|error| error.to_string())?;
        let ledger = Arc::new(Ledger::default());
        let observers = observe(&cluster, &place, &ledger);
        let sender = Sender::start(&place, &ledger)?;
        let mut world = Self {
            random: Random::new(seed),
            cluster,
            place,
            ledger,
            moods: Arc::default(),
            locals: Vec::new(),
            remotes: Vec::new(),
            next_member: 0,
            queues_per_broker: QUEUES_PER_BROKER,
            sender,
            observers,
            notes: Vec::new(),
            leaving: Vec::new(),
            faults: BTreeMap::new(),
            story: Vec::new(),
        };
        for _ in 0..REMOTES {
            world.join_remote()?;
        }
        for _ in 0..LOCALS {
            world.join_local()?;
        }
        world.faults.clear();
        Ok(world)
    }

    fn count(&mut self, fault: Fault, times: u64) {
        *self.faults.entry(fault).or_default() += times;
    }

    fn new_name(&mut self) -> String {
        self.next_member += 1;
        format!("m{}", self.next_member)
    }

    fn join_local(&mut self) -> Result<(), String> {
        let name = self.new_name();
        let seed = self.random.next();
        let local = Local::start(&self.place, name, &self.ledger, &self.moods, seed)?;
        self.locals.push(local);
        self.count(Fault::Join, 1);
        Ok(())
    }

    fn join_remote(&mut self) -> Result<(), String> {
        let name = self.new_name();
        self.remotes
            .push(Remote::start(&self.place, name, &self.ledger)?);
        self.count(Fault::Join, 1);
        Ok(())
    }

    fn members(&self) -> usize {
        self.locals.len() + self.remotes.len()
    }

    fn misbehave(&mut self) -> Result<(), String> {
        for _ in 0..STEPS {
            let pause = self.random.millis(60);
            thread::sleep(pause);
            self.step()?;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), String> {
        let die = self.random.below(16);
        self.story.push(format!("step {die}"));
        match die {
            0..=2 if self.members() < MOST_MEMBERS => self.join_local()?,
            3 if self.members() < MOST_MEMBERS => self.join_remote()?,
            4 | 5 if self.locals.len() > 2 => self.leave(),
            6 | 7 if !self.remotes.is_empty() => {
                let victim = self.random.below(self.remotes.len() as u64) as usize;
                self.remotes.swap_remove(victim).kill();
                self.count(Fault::Kill, 1);
            }
            8 => self.control_notes(ControlAction::Drop, Fault::LostNote),
            9 => self.control_notes(ControlAction::Twice, Fault::DoubledNote),
            10 => {
                let late = Duration::from_millis(20) + self.random.millis(100);
                self.control_notes(ControlAction::Delay(late), Fault::LateNote);
            }
            11 => self.split_member_list(),
            12 | 13 => self.break_broker()?,
            14 if self.queues_per_broker < 12 => {
                self.queues_per_broker += 1;
                let queues = self.queues_per_broker;
                self.cluster
                    .create_topic(&self.place.topic, queues)
                    .map_err(|error| error.to_string())?;
                self.count(Fault::RouteChanged, 1);
            }
            15 => {
                let mut ids = self.cluster.consumer_ids(&self.place.group);
                if !ids.is_empty() {
                    let victim = self.random.below(ids.len() as u64) as usize;
                    let cut = self.cluster.cut_connections(&ids.swap_remove(victim));
                    self.count(Fault::ConnectionsCut, cut as u64);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A change of the group whose notes meet a fault: without a change there would be none.
    fn control_notes(&mut self, action: ControlAction, fault: Fault) {
        let times = 1 + self.random.below(12) as u32;
        let notes = request_code::NOTIFY_CONSUMER_IDS_CHANGED;
        let control = self
            .cluster
            .control(notes, action, ControlTimes::Times(times));
        self.notes.push((control, fault));
        if self.locals.len() > 4 {
            self.leave();
        } else if let Err(error) = self.join_local() {
            self.story.push(error);
        }
    }

    fn leave(&mut self) {
        let victim = self.random.below(self.locals.len() as u64) as usize;
        let local = self.locals.swap_remove(victim);
        self.count(Fault::Leave, 1);
        self.leaving.push(thread::spawn(move || {
            let report = local.consumer.shutdown(Duration::from_secs(10));
            if report.threads_joined && report.abandoned == 0 {
                Ok(())
            } else {
                Err(format!("{} ended badly: {report:?}", local.name))
            }
        }));
    }

    /// For a while each asker is told of some of the members only, itself always among them or not.
    fn split_member_list(&mut self) {
        let split = self.random.next();
        let hits = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&hits);
        self.cluster
            .set_member_view(&self.place.group, move |query| {
                counted.fetch_add(1, Ordering::Relaxed);
                let side = |id: &str| (hash(id) ^ split) % 2;
                let own = query.asker.as_deref().map(side);
                query
                    .members
                    .iter()
                    .filter(|id| own.is_none() || own == Some(side(id)))
                    .cloned()
                    .collect()
            });
        if let Err(error) = self.join_local() {
            self.story.push(error);
        }
        let while_split = Duration::from_millis(30) + self.random.millis(120);
        thread::sleep(while_split);
        self.cluster.clear_member_view(&self.place.group);
        self.count(Fault::SplitMemberList, hits.load(Ordering::Relaxed));
    }

    fn break_broker(&mut self) -> Result<(), String> {
        let names = self.cluster.broker_names();
        let broker = &names[self.random.below(names.len() as u64) as usize];
        let down = self.random.millis(120);
        let killed = self.random.below(2) == 0;
        if killed {
            self.cluster.kill_broker(broker)
        } else {
            self.cluster.stop_broker(broker)
        }
        .map_err(|error| error.to_string())?;
        thread::sleep(down);
        self.cluster
            .start_broker(broker)
            .map_err(|error| format!("{broker} does not start: {error}"))?;
        self.count(
            if killed {
                Fault::BrokerKilled
            } else {
                Fault::BrokerStopped
            },
            1,
        );
        Ok(())
    }

    /// Ends the faults and waits until 1 and 2 hold.
    fn calm_down(&mut self) -> Result<(), String> {
        for (control, fault) in std::mem::take(&mut self.notes) {
            control.lift();
            self.count(fault, control.hits());
        }
        self.moods.calm.store(true, Ordering::Relaxed);
        self.sender.stop();
        for leaving in std::mem::take(&mut self.leaving) {
            leaving
                .join()
                .map_err(|_| "a shutdown panicked".to_owned())??;
        }
        let mut seen = String::new();
        let is_calm = self
            .cluster
            .wait_until(patience(), || match self.not_yet() {
                Some(reason) => {
                    seen = reason;
                    false
                }
                None => true,
            });
        if is_calm {
            Ok(())
        } else {
            Err(self.failure(&seen))
        }
    }

    fn failure(&self, what: &str) -> String {
        format!("{what}; story: {}", self.story.join(", "))
    }

    /// What of 1 and 2 does not hold.
    fn not_yet(&self) -> Option<String> {
        let mut owners: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        let mut retry_owners: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for local in &self.locals {
            for mq in local.consumer.owned_queues() {
                let of = if mq.topic() == self.place.topic {
                    &mut owners
                } else {
                    &mut retry_owners
                };
                of.entry(name_of(&mq)).or_default().push(&local.name);
            }
        }
        for remote in &self.remotes {
            for queue in remote.owned() {
                owners.entry(queue).or_default().push(&remote.name);
            }
        }
        let all: BTreeSet<String> = self
            .cluster
            .broker_names()
            .iter()
            .flat_map(|broker| {
                (0..self.queues_per_broker).map(move |queue| format!("{broker}#{queue}"))
            })
            .collect();
        let owned: BTreeSet<String> = owners.keys().cloned().collect();
        let twice: Vec<_> = owners
            .iter()
            .chain(&retry_owners)
            .filter(|(_, names)| names.len() > 1)
            .collect();
        if owned != all || !twice.is_empty() {
            let nobodys: Vec<_> = all.difference(&owned).collect();
            return Some(format!(
                "nobody owns {nobodys:?}, several own {twice:?}, members {}",
                self.members()
            ));
        }
        let missing = self.ledger.missing();
        if !missing.is_empty() {
            return Some(format!(
                "{} messages are not consumed: {:?}",
                missing.len(),
                missing.iter().take(5).collect::<Vec<_>>()
            ));
        }
        None
    }

    fn end(mut self, threads_before: &BTreeMap<String, usize>) -> Result<Outcome, String> {
        for (mood, fault) in [
            (&self.moods.slow_calls, Fault::SlowListener),
            (&self.moods.failures, Fault::FailingListener),
            (&self.moods.panics, Fault::PanickingListener),
        ] {
            *self.faults.entry(fault).or_default() += mood.load(Ordering::Relaxed);
        }
        while !self.locals.is_empty() {
            self.leave();
        }
        self.faults.remove(&Fault::Leave).map(|all| {
            self.faults
                .insert(Fault::Leave, all.saturating_sub(self.leaving.len() as u64))
        });
        for remote in std::mem::take(&mut self.remotes) {
            remote.leave()?;
        }
        for leaving in std::mem::take(&mut self.leaving) {
            leaving
                .join()
                .map_err(|_| "a shutdown panicked".to_owned())??;
        }
        self.sender.end()?;
        let violations = self.ledger.violations();
        if !violations.is_empty() {
            return Err(self.failure(&violations.join(", ")));
        }
        let closed = self
            .cluster
            .wait_until(patience(), || self.cluster.connection_count() == 0);
        if !closed {
            return Err(self.failure(&format!(
                "connections are left: {:?}",
                self.cluster.connections()
            )));
        }
        for observer in &self.observers {
            observer.lift();
        }
        self.cluster.shutdown();
        let outcome = Outcome {
            summary: self.ledger.summary(),
            faults: std::mem::take(&mut self.faults),
        };
        drop(self);
        let deadline = Instant::now() + patience();
        while threads() != *threads_before {
            if Instant::now() > deadline {
                return Err(format!(
                    "threads are left: {:?}, there were {threads_before:?}",
                    threads()
                ));
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(outcome)
    }
}

/// What is done with a member's request. Whose it is, is not known before the first heartbeat on its
/// connection.
type Look = Box<dyn Fn(Option<&str>, &ReceivedRequest) + Send + Sync>;

/// Watches what brokers hear; see 3 and 4.
fn observe(cluster: &Cluster, place: &Place, ledger: &Arc<Ledger>) -> Vec<ControlHandle> {
    let watch = |code: i32, look: Look| {
        cluster.control_when(
            ControlScope::Cluster,
            code,
            ControlTimes::UntilLifted,
            move |request| {
                look(request.client_id.as_deref().and_then(member_of), request);
                None
            },
        )
    };
    let commits = Arc::clone(ledger);
    let pulls = Arc::clone(ledger);
    let given_back = Arc::clone(ledger);
    let begins = Arc::clone(ledger);
    let mut watching = vec![
        watch(
            request_code::QUERY_CONSUMER_OFFSET,
            Box::new(move |member, request| begins.begins_anew(member, &queue_of(request))),
        ),
        watch(
            request_code::UPDATE_CONSUMER_OFFSET,
            Box::new(move |member, request| {
                if let Some(member) = member {
                    commits.commit(member, &queue_of(request), field(request, "commitOffset"));
                }
            }),
        ),
        watch(
            request_code::PULL_MESSAGE,
            Box::new(move |member, request| {
                let Some(member) = member else {
                    return;
                };
                let flag: i32 = field(request, "sysFlag");
                pulls.pulls(member, &queue_of(request), field(request, "queueOffset"));
                let offset: i64 = field(request, "commitOffset");
                if flag & PULL_COMMITS != 0 && offset > 0 {
                    pulls.commit(member, &queue_of(request), offset);
                }
            }),
        ),
        watch(
            request_code::CONSUMER_SEND_MSG_BACK,
            Box::new(move |member, request| {
                given_back.given_back(member, &request.server, field(request, "offset"));
            }),
        ),
    ];
    for code in [request_code::SEND_MESSAGE, request_code::SEND_MESSAGE_V2] {
        let (ledger, retry_topic) = (Arc::clone(ledger), format!("%RETRY%{}", place.group));
        watching.push(watch(
            code,
            Box::new(move |member, request| {
                let topic = if code == request_code::SEND_MESSAGE {
                    "topic"
                } else {
                    "b"
                };
                if request.command.ext_fields.get(topic) == Some(&retry_topic) {
                    ledger.published_a_retry(member);
                }
            }),
        ));
    }
    watching
}

/// The name in a client id, `ip@name#…`.
fn member_of(client_id: &str) -> Option<&str> {
    let name = client_id.split_once('@')?.1;
    Some(name.split('#').next().unwrap_or(name))
}

fn field<T: std::str::FromStr>(request: &ReceivedRequest, name: &str) -> T {
    let text = request.command.ext_fields.get(name);
    text.and_then(|text| text.parse().ok())
        .unwrap_or_else(|| panic!("{name} in {request:?}"))
}

fn queue_of(request: &ReceivedRequest) -> MessageQueue {
    let topic: String = field(request, "topic");
    MessageQueue::new(topic, request.server.to_string(), field(request, "queueId"))
}

fn hash(text: &str) -> u64 {
    text.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

/// How many threads of each name this process has.
fn threads() -> BTreeMap<String, usize> {
    let mut names = BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
        if let Ok(name) = std::fs::read_to_string(task.path().join("comm")) {
            *names.entry(name.trim().to_owned()).or_default() += 1;
        }
    }
    names
}

/// Sends numbered messages until it is told to stop.
struct Sender {
    producer: DefaultMQProducer,
    stopped: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Sender {
    fn start(place: &Place, ledger: &Arc<Ledger>) -> Result<Self, String> {
        let producer = DefaultMQProducer::builder("senders")
            .namesrv_addr(&place.namesrv)
            .poll_name_server_interval(Duration::from_millis(150))
            .send_msg_timeout(Duration::from_secs(2))
            .build()
            .map_err(|error| error.to_string())?;
        producer.start().map_err(|error| error.to_string())?;
        let stopped = Arc::new(AtomicBool::new(false));
        let (sending, stop) = (producer.clone(), Arc::clone(&stopped));
        let (ledger, topic) = (Arc::clone(ledger), place.topic.clone());
        let thread = thread::spawn(move || {
            let mut id = 0;
            while !stop.load(Ordering::Relaxed) {
                id += 1;
                // One that fails may be stored or not, and is not missed.
                if sending
                    .send(&Message::new(topic.as_str(), id.to_string()))
                    .is_ok()
                {
                    ledger.sent(id);
                }
                thread::sleep(Duration::from_millis(1));
            }
        });
        Ok(Self {
            producer,
            stopped,
            thread: Some(thread),
        })
    }

    fn stop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    fn end(&mut self) -> Result<(), String> {
        self.stop();
        let report = self.producer.shutdown(Duration::from_secs(10));
        if report.threads_joined {
            Ok(())
        } else {
            Err(format!("the producer ended badly: {report:?}"))
        }
    }
}
