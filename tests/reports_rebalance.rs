//! Public bug reports about who consumes which queues, each with its right outcome.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test is outside of what loom models, and fails by panicking"
)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rocketmq_blocking::rebalance::{
    AllocateError, AllocateMachineRoomNearby, AllocateMessageQueueAveragely,
    AllocateMessageQueueAveragelyByCircle, AllocateMessageQueueByMachineRoom,
    AllocateMessageQueueStrategy, MachineRoomResolver,
};
use rocketmq_blocking::{
    ConsumeFromWhere, DefaultMQProducer, DefaultMQPushConsumer, DefaultMQPushConsumerBuilder,
    MQClientManager, Message, MessageQueue,
};
use rocketmq_embedded::Cluster;
use rocketmq_protocol::body::{
    BrokerData, GetConsumerListByGroupResponseBody, HeartbeatData, JsonBody, QueueData,
    TopicRouteData,
};
use rocketmq_protocol::{RemotingCommand, request_code, response_code};
use support::{FakePeer, GENEROUS, Inbox, producer_at, quick, reply_to, started, wait_until};

const PERIOD: Duration = Duration::from_millis(100);
/// Longer than a test waits: whatever happens in time has another cause.
const NEVER: Duration = Duration::from_secs(600);

fn builder(namesrv: &str, manager: &MQClientManager, group: &str) -> DefaultMQPushConsumerBuilder {
    quick(DefaultMQPushConsumer::builder(group))
        .client_manager(manager)
        .namesrv_addr(namesrv)
        .poll_name_server_interval(PERIOD)
        .rebalance_wait_interval(NEVER)
        .heartbeat_broker_interval(NEVER)
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .subscribe("T", "*")
}

fn start(builder: DefaultMQPushConsumerBuilder, inbox: &Inbox) -> DefaultMQPushConsumer {
    let consumer = builder.message_listener(inbox.listener()).build().unwrap();
    consumer.start().unwrap();
    consumer
}

fn owned(consumer: &DefaultMQPushConsumer) -> Vec<MessageQueue> {
    let mut queues = consumer.owned_queues();
    queues.retain(|mq| mq.topic() == "T");
    queues
}

fn ids(consumer: &DefaultMQPushConsumer) -> Vec<i32> {
    owned(consumer).iter().map(MessageQueue::queue_id).collect()
}

fn queues(count: i32) -> Vec<MessageQueue> {
    (0..count)
        .map(|id| MessageQueue::new("T", "broker-a", id))
        .collect()
}

fn cids(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// What each member is allocated of so many queues, as digits: `01|2|-`.
fn shares(
    strategy: &dyn AllocateMessageQueueStrategy,
    mq_all: &[MessageQueue],
    cid_all: &[String],
) -> String {
    let share = |cid: &String| -> String {
        let mine = strategy.allocate("g", cid, mq_all, cid_all).unwrap();
        let digits: String = mine.iter().map(|mq| mq.queue_id().to_string()).collect();
        if digits.is_empty() {
            "-".to_owned()
        } else {
            digits
        }
    };
    cid_all.iter().map(share).collect::<Vec<_>>().join("|")
}

fn producer(namesrv: &str) -> DefaultMQProducer {
    started(producer_at(namesrv))
}

/// What a route says of one broker.
#[derive(Clone)]
struct Part {
    name: String,
    addr: String,
    queues: i32,
}

/// A name server that knows topic T as the test says.
struct Routes {
    peer: FakePeer,
    parts: Arc<Mutex<Vec<Part>>>,
}

impl Routes {
    fn start(parts: Vec<Part>) -> Self {
        let parts = Arc::new(Mutex::new(parts));
        let known = Arc::clone(&parts);
        let peer = FakePeer::start(move |stream, request| {
            let frame = if request.ext_fields.get("topic") == Some("T") {
                let body = route(&known.lock().unwrap());
                reply_to(&request, response_code::SUCCESS, body)
            } else {
                reply_to(&request, response_code::TOPIC_NOT_EXIST, Vec::new())
            };
            stream.write_all(&frame).is_ok()
        });
        Self { peer, parts }
    }

    fn set(&self, parts: Vec<Part>) {
        *self.parts.lock().unwrap() = parts;
    }

    fn addr(&self) -> String {
        self.peer.addr()
    }
}

fn part(cluster: &Cluster, name: &str, queues: i32) -> Part {
    Part {
        name: name.to_owned(),
        addr: cluster.broker_addr(name).unwrap(),
        queues,
    }
}

fn route(parts: &[Part]) -> Vec<u8> {
    let broker_datas = parts.iter().map(|part| BrokerData {
        cluster: "DefaultCluster".to_owned(),
        broker_name: part.name.clone(),
        broker_addrs: BTreeMap::from([(0, part.addr.clone())]),
        ..BrokerData::default()
    });
    let queue_datas = parts.iter().map(|part| QueueData {
        broker_name: part.name.clone(),
        read_queue_nums: part.queues,
        write_queue_nums: part.queues,
        perm: 6,
        ..QueueData::default()
    });
    TopicRouteData {
        broker_datas: broker_datas.collect(),
        queue_datas: queue_datas.collect(),
        ..TopicRouteData::default()
    }
    .to_json()
    .unwrap()
}

/// apache/rocketmq#2760: two containers had one address and one process number, so one client id,
/// and both took the same half of the queues. Two managers stand for two such processes here.
#[test]
fn b13_clients_with_equal_addresses_and_process_numbers_have_different_ids() {
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("T", 8).unwrap();
    let managers = [MQClientManager::new(), MQClientManager::new()];
    let inbox = Inbox::new();
    let members = managers.each_ref().map(|manager| {
        let address = "10.0.0.1".parse().unwrap();
        start(
            builder(&cluster.namesrv_addr(), manager, "g").client_ip(address),
            &inbox,
        )
    });
    let names = members.each_ref().map(|m| m.client_id().unwrap());
    assert_ne!(names[0], names[1]);
    let prefix = format!("10.0.0.1@{}#", std::process::id());
    for name in &names {
        let digits = name.strip_prefix(&prefix).expect(name);
        assert!(digits.bytes().all(|b| b.is_ascii_digit()), "{name}");
    }
    wait_until("each has its half", || {
        let [a, b] = members.each_ref().map(owned);
        let all: BTreeSet<_> = a.iter().chain(&b).cloned().collect();
        (a.len(), b.len(), all.len()) == (4, 4, 8)
    });
    assert_eq!(cluster.consumer_ids("g").len(), 2);

    let other = builder(&cluster.namesrv_addr(), &managers[0], "h")
        .unit_name("u")
        .enable_stream_request_type(true);
    let name = start(other, &inbox).client_id().unwrap();
    assert!(name.ends_with("@u@STREAM"), "{name}");

    // Who shares an id by the user's fault is alone in the list, and takes all.
    let alone = cids(&["X"]);
    assert_eq!(
        shares(&AllocateMessageQueueAveragely, &queues(8), &alone),
        "01234567"
    );
}

/// mxsm/rocketmq-rust#1101 (PR#1102): with more members than queues the average strategy panicked.
#[test]
fn b14_members_without_a_share_get_nothing() {
    let names = cids(&["c1", "c2", "c3", "c4", "c5", "c6"]);
    let average = |mq_all, members: usize| {
        shares(
            &AllocateMessageQueueAveragely,
            &queues(mq_all),
            &names[..members],
        )
    };
    assert_eq!(average(4, 6), "0|1|2|3|-|-");
    assert_eq!(average(8, 3), "012|345|67");
    assert_eq!(average(10, 4), "012|345|67|89");
    assert_eq!(average(1, 5), "0|-|-|-|-");
    let circle = |mq_all, members: usize| {
        shares(
            &AllocateMessageQueueAveragelyByCircle,
            &queues(mq_all),
            &names[..members],
        )
    };
    assert_eq!(circle(8, 3), "036|147|25");
    assert_eq!(circle(10, 4), "048|159|26|37");
    assert_eq!(circle(1, 5), "0|-|-|-|-");
}

/// apache/rocketmq#2477 (PR#2478): the strategy by machine room counted the queues of its rooms and
/// then took that many from the list of all.
#[test]
fn b15_only_queues_of_the_wanted_rooms_are_shared_out() {
    let mut mq_all = Vec::new();
    for (broker, count) in [
        ("room1@broker-a", 3),
        ("room2@broker-b", 3),
        ("broker-c", 1),
    ] {
        mq_all.extend((0..count).map(|id| MessageQueue::new("T", broker, id)));
    }
    mq_all.sort();
    let strategy = AllocateMessageQueueByMachineRoom::new(["room2"]);
    let members = cids(&["c1", "c2"]);
    let share = |cid: &str| strategy.allocate("g", cid, &mq_all, &members).unwrap();
    let room2 = |id| MessageQueue::new("T", "room2@broker-b", id);
    assert_eq!(share("c1"), [room2(0), room2(2)]);
    assert_eq!(share("c2"), [room2(1)]);
    assert_eq!(share("c3"), []);
}

/// The room is what comes before the dash; of nobody once the switch is thrown.
#[derive(Debug, Clone, Default)]
struct BeforeDash {
    unknown: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
}

impl BeforeDash {
    fn room(&self, text: &str) -> String {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if self.unknown.load(Ordering::SeqCst) {
            return String::new();
        }
        text.split('-').next().unwrap().to_owned()
    }
}

impl MachineRoomResolver for BeforeDash {
    fn broker_deploy_in(&self, message_queue: &MessageQueue) -> String {
        self.room(message_queue.broker_name())
    }

    fn consumer_deploy_in(&self, client_id: &str) -> String {
        self.room(client_id)
    }
}

/// apache/rocketmq#2443, #2444: queues of rooms without members are shared room by room, so the last
/// members get none of them. It stayed so, and all members of a group have to agree.
#[test]
fn b16_rooms_without_members_are_shared_room_by_room() {
    let mut mq_all = Vec::new();
    for room in ["A", "B", "C"] {
        mq_all.extend((0..3).map(|id| MessageQueue::new("T", room, id)));
    }
    let strategy =
        AllocateMachineRoomNearby::new(AllocateMessageQueueAveragely, BeforeDash::default());
    let members = cids(&["C-1", "C-2", "C-3", "C-4"]);
    let share = |cid: &str| -> Vec<String> {
        let mine = strategy.allocate("g", cid, &mq_all, &members).unwrap();
        mine.iter()
            .map(|mq| format!("{}{}", mq.broker_name(), mq.queue_id()))
            .collect()
    };
    assert_eq!(share("C-1"), ["C0", "A0", "B0"]);
    assert_eq!(share("C-2"), ["C1", "A1", "B1"]);
    assert_eq!(share("C-3"), ["C2", "A2", "B2"]);
    assert_eq!(share("C-4"), Vec::<String>::new());
}

/// The same report: a resolver that knows no room is an error, and the consumer keeps its queues.
#[test]
fn b16_a_resolver_that_knows_no_room_changes_no_assignment() {
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("T", 4).unwrap();
    let manager = MQClientManager::new();
    let resolver = BeforeDash::default();
    let strategy =
        || AllocateMachineRoomNearby::new(AllocateMessageQueueAveragely, resolver.clone());
    let inbox = Inbox::new();
    let of = |name: &str| {
        builder(&cluster.namesrv_addr(), &manager, "g")
            .instance_name(name)
            .allocate_message_queue_strategy(strategy())
    };
    let first = start(of("a"), &inbox);
    wait_until("all queues are owned", || owned(&first).len() == 4);
    resolver.unknown.store(true, Ordering::SeqCst);
    let second = start(of("b"), &inbox);
    let before = resolver.asked.load(Ordering::SeqCst);
    wait_until("both have tried several times", || {
        resolver.asked.load(Ordering::SeqCst) > before + 6
    });
    assert_eq!((owned(&first).len(), owned(&second).len()), (4, 0));
    resolver.unknown.store(false, Ordering::SeqCst);
    wait_until("they share", || {
        (owned(&first).len(), owned(&second).len()) == (2, 2)
    });
}

/// mxsm/rocketmq-rust PR#1312: a member that was not listed took the first one's queues.
#[test]
fn b18_who_is_not_listed_gets_nothing_and_what_cannot_be_divided_is_an_error() {
    let strategies: [&dyn AllocateMessageQueueStrategy; 2] = [
        &AllocateMessageQueueAveragely,
        &AllocateMessageQueueAveragelyByCircle,
    ];
    let (mq_all, members) = (queues(8), cids(&["a", "b"]));
    for strategy in strategies {
        let allocate = |cid: &str, mq_all: &[MessageQueue], members: &[String]| {
            strategy.allocate("g", cid, mq_all, members)
        };
        assert_eq!(allocate("x", &mq_all, &members), Ok(Vec::new()));
        assert_eq!(allocate("a", &mq_all, &[]), Err(AllocateError::NoMembers));
        assert_eq!(allocate("a", &[], &members), Err(AllocateError::NoQueues));
        assert_eq!(
            allocate("", &mq_all, &members),
            Err(AllocateError::EmptyClientId)
        );
    }
}

/// Notes the members in the order in which it is given them.
#[derive(Debug, Clone, Default)]
struct Noting(Arc<Mutex<Vec<String>>>);

impl AllocateMessageQueueStrategy for Noting {
    fn name(&self) -> &str {
        "NOTING"
    }

    fn allocate(
        &self,
        _consumer_group: &str,
        _current_cid: &str,
        mq_all: &[MessageQueue],
        cid_all: &[String],
    ) -> Result<Vec<MessageQueue>, AllocateError> {
        *self.0.lock().unwrap() = cid_all.to_vec();
        Ok(mq_all.to_vec())
    }
}

/// apache/rocketmq#1945: who sorts low takes more; what matters is that all sort alike, as Java does.
#[test]
fn b19_members_and_queues_are_sorted_as_java_sorts_them() {
    let sorted = cids(&[
        "10.0.0.10@1",
        "10.0.0.1@10",
        "10.0.0.1@2#3",
        "10.0.0.9@1",
        "A@1",
        "a@1",
        // A code unit of a surrogate pair is smaller than one of the private use area.
        "\u{1F600}@1",
        "\u{E000}@1",
    ]);
    let mut answered = sorted.clone();
    answered.reverse();
    answered.swap(1, 4);
    let script = Script::new(Members::These(answered));
    let broker = script.start();
    let routes = Routes::start(vec![script.part(&broker, 1)]);
    let noting = Noting::default();
    let consumer = builder(&routes.addr(), &MQClientManager::new(), "g")
        .allocate_message_queue_strategy(noting.clone());
    let consumer = start(consumer, &Inbox::new());
    wait_until("the queue is owned", || owned(&consumer).len() == 1);
    assert_eq!(*noting.0.lock().unwrap(), sorted);

    let queue = |(topic, broker, id)| MessageQueue::new(topic, broker, id);
    let sorted = [
        ("S", "broker-z", 3),
        ("T", "broker-10", 0),
        ("T", "broker-9", 0),
        ("T", "broker-a", 2),
        ("T", "broker-a", 10),
        ("T", "broker-b", 0),
    ]
    .map(queue);
    let mut mixed = sorted.to_vec();
    mixed.reverse();
    mixed.swap(0, 3);
    mixed.sort();
    assert_eq!(mixed, sorted);
}

/// apache/rocketmq#1467: members learn at different times that a topic has more queues. Meanwhile a
/// queue may have two owners or none; once all know, each has one, and nothing is lost.
#[test]
fn b20_members_that_see_different_routes_agree_once_they_see_the_same() {
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("T", 8).unwrap();
    let seen_by = [4, 8].map(|count| Routes::start(vec![part(&cluster, "broker-a", count)]));
    let inbox = Inbox::new();
    // Of a member that comes last, so that the four are not shared as a half of the eight.
    let members = [("b", &seen_by[0]), ("a", &seen_by[1])].map(|(name, routes)| {
        let member = builder(&routes.addr(), &MQClientManager::new(), "g").instance_name(name);
        start(member, &inbox)
    });
    wait_until("each divides what it sees", || {
        (ids(&members[0]), ids(&members[1])) == (vec![2, 3], vec![0, 1, 2, 3])
    });
    let producer = producer(&cluster.namesrv_addr());
    let send = |range: std::ops::Range<usize>| {
        for n in range {
            producer.send(&Message::new("T", format!("m{n}"))).unwrap();
        }
    };
    send(0..80);
    seen_by[0].set(vec![part(&cluster, "broker-a", 8)]);
    wait_until("each has its half", || {
        (ids(&members[0]), ids(&members[1])) == (vec![4, 5, 6, 7], vec![0, 1, 2, 3])
    });
    send(80..160);
    inbox.wait_for_bodies(160);
}

/// apache/rocketmq-client-go#1056, #1057, #1071 (PR#1084): queues and brokers that were added while a
/// consumer ran were not consumed until it was started anew.
#[test]
fn b21_queues_and_brokers_that_come_later_are_consumed() {
    let cluster = Cluster::builder().brokers(2).start().unwrap();
    cluster.create_topic_on("broker-a", "T", 4).unwrap();
    let inbox = Inbox::new();
    let manager = MQClientManager::new();
    let consumer = start(builder(&cluster.namesrv_addr(), &manager, "g"), &inbox);
    wait_until("four queues are owned", || owned(&consumer).len() == 4);
    cluster.create_topic_on("broker-a", "T", 8).unwrap();
    cluster.create_topic_on("broker-b", "T", 2).unwrap();
    let producer = producer(&cluster.namesrv_addr());
    for n in 0..80 {
        producer.send(&Message::new("T", format!("m{n}"))).unwrap();
    }
    inbox.wait_for_bodies(80);
    assert_eq!(owned(&consumer).len(), 10);
}

/// The same report the other way round: queues that the route no longer names are let go of, with
/// their offsets saved.
#[test]
fn b21_queues_that_leave_the_route_are_let_go_of() {
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("T", 8).unwrap();
    let routes = Routes::start(vec![part(&cluster, "broker-a", 8)]);
    let inbox = Inbox::new();
    let consumer = builder(&routes.addr(), &MQClientManager::new(), "g")
        .persist_consumer_offset_interval(NEVER);
    let consumer = start(consumer, &inbox);
    let producer = producer(&cluster.namesrv_addr());
    for n in 0..80 {
        producer.send(&Message::new("T", format!("m{n}"))).unwrap();
    }
    inbox.wait_for_bodies(80);
    routes.set(vec![part(&cluster, "broker-a", 4)]);
    wait_until("four queues are left", || ids(&consumer) == [0, 1, 2, 3]);
    for mq in &queues(8)[4..] {
        wait_until("what was consumed is saved", || {
            cluster.committed_offset("g", mq) == Some(10)
        });
    }
    for n in 80..160 {
        producer.send(&Message::new("T", format!("m{n}"))).unwrap();
    }
    inbox.wait_for_bodies(120);
    consumer.shutdown(GENEROUS);
    assert_eq!(inbox.bodies().len(), 120, "those of the four that are left");
}

/// apache/rocketmq#9830 (PR#9846): a broker went and came back, and one of two consumers that share
/// what is known of routes kept its short list of queues for ever.
#[test]
fn b22_each_consumer_gets_the_queues_of_a_broker_that_comes_back() {
    let cluster = Cluster::builder().brokers(2).start().unwrap();
    cluster.create_topic("T", 2).unwrap();
    let both = || vec![part(&cluster, "broker-a", 2), part(&cluster, "broker-b", 2)];
    let routes = Routes::start(both());
    let manager = MQClientManager::new();
    let inbox = Inbox::new();
    let first = start(builder(&routes.addr(), &manager, "g1"), &inbox);
    wait_until("four queues are owned", || owned(&first).len() == 4);
    for _ in 0..3 {
        routes.set(both()[..1].to_vec());
        // It starts while the route is short, and the shared table may say the one or the other.
        let second = start(builder(&routes.addr(), &manager, "g2"), &inbox);
        assert_eq!(manager.instance_count(), 1);
        wait_until("both know of the short route", || {
            owned(&first).len() == 2 && owned(&second).len() == 2
        });
        routes.set(both());
        wait_until("both know of the long route", || {
            owned(&first).len() == 4 && owned(&second).len() == 4
        });
    }
}

/// apache/rocketmq#7556, #2737: members are listed by group, not by topic. The share of one that has
/// no interest in a topic is consumed by nobody; all members have to subscribe the same.
#[test]
fn b25_a_member_counts_for_topics_that_it_does_not_subscribe() {
    let cluster = Cluster::builder().start().unwrap();
    for topic in ["T", "U"] {
        cluster.create_topic(topic, 4).unwrap();
    }
    let manager = MQClientManager::new();
    let inbox = Inbox::new();
    let of = |name: &str| builder(&cluster.namesrv_addr(), &manager, "g").instance_name(name);
    let first = start(of("a"), &inbox);
    let second = start(of("b").subscribe("U", "*"), &inbox);
    wait_until("both have their halves", || {
        ids(&first) == [0, 1] && ids(&second) == [2, 3]
    });
    let of_u = || {
        let mut queues = second.owned_queues();
        queues.retain(|mq| mq.topic() == "U");
        queues
            .iter()
            .map(MessageQueue::queue_id)
            .collect::<Vec<_>>()
    };
    wait_until("the second has its half of U", || of_u() == [2, 3]);
}

/// What the broker of a [`Script`] says of the members.
#[derive(Clone)]
enum Members {
    These(Vec<String>),
    Code(i32),
    Silence,
}

/// A broker without messages that says of a group's members what the test wants.
#[derive(Clone)]
struct Script {
    members: Arc<Mutex<Members>>,
    /// How many questions for members it has been asked.
    asked: Arc<AtomicUsize>,
    /// The versions of T's subscription in heartbeats.
    versions: Arc<Mutex<Vec<i64>>>,
    /// Whether the next heartbeat is to be answered later, and those that are.
    hold_heartbeat: Arc<AtomicBool>,
    held: Arc<Mutex<Vec<(TcpStream, RemotingCommand)>>>,
    /// How many pulls are refused with 25 before a heartbeat has to come.
    refusals: Arc<AtomicUsize>,
    refused_after: Arc<AtomicUsize>,
    good_pulls: Arc<AtomicUsize>,
    offset_queries: Arc<AtomicUsize>,
}

impl Script {
    fn new(members: Members) -> Self {
        Self {
            members: Arc::new(Mutex::new(members)),
            asked: Arc::default(),
            versions: Arc::default(),
            hold_heartbeat: Arc::default(),
            held: Arc::default(),
            refusals: Arc::default(),
            refused_after: Arc::default(),
            good_pulls: Arc::default(),
            offset_queries: Arc::default(),
        }
    }

    fn part(&self, broker: &FakePeer, queues: i32) -> Part {
        Part {
            name: "broker-a".to_owned(),
            addr: broker.addr(),
            queues,
        }
    }

    fn start(&self) -> FakePeer {
        let this = self.clone();
        FakePeer::start(move |stream, request| {
            let (code, body) = match request.code {
                request_code::HEART_BEAT => {
                    let data = HeartbeatData::from_command(&request).unwrap();
                    let subscriptions = data
                        .consumer_data_set
                        .iter()
                        .flat_map(|group| &group.subscription_data_set);
                    let of_t = subscriptions.filter(|s| s.topic == "T");
                    this.versions
                        .lock()
                        .unwrap()
                        .extend(of_t.map(|s| s.sub_version));
                    if this.hold_heartbeat.swap(false, Ordering::SeqCst) {
                        let held = (stream.try_clone().unwrap(), request);
                        this.held.lock().unwrap().push(held);
                        return true;
                    }
                    (response_code::SUCCESS, Vec::new())
                }
                request_code::GET_CONSUMER_LIST_BY_GROUP => {
                    let members = this.members.lock().unwrap().clone();
                    this.asked.fetch_add(1, Ordering::SeqCst);
                    match members {
                        Members::These(consumer_id_list) => {
                            let body = GetConsumerListByGroupResponseBody { consumer_id_list };
                            (response_code::SUCCESS, body.to_json().unwrap())
                        }
                        Members::Code(code) => (code, Vec::new()),
                        Members::Silence => return true,
                    }
                }
                request_code::QUERY_CONSUMER_OFFSET => {
                    this.offset_queries.fetch_add(1, Ordering::SeqCst);
                    (response_code::QUERY_NOT_FOUND, Vec::new())
                }
                request_code::PULL_MESSAGE => {
                    let heartbeats = this.versions.lock().unwrap().len();
                    let refusals = this.refusals.load(Ordering::SeqCst);
                    let is_known = heartbeats > this.refused_after.load(Ordering::SeqCst);
                    if refusals == 0 && is_known {
                        this.good_pulls.fetch_add(1, Ordering::SeqCst);
                        return true;
                    }
                    if refusals > 0 && is_known {
                        this.refusals.fetch_sub(1, Ordering::SeqCst);
                        this.refused_after.store(heartbeats, Ordering::SeqCst);
                    }
                    (response_code::SUBSCRIPTION_NOT_LATEST, Vec::new())
                }
                _ => (response_code::SUCCESS, Vec::new()),
            };
            request.is_oneway() || stream.write_all(&reply_to(&request, code, body)).is_ok()
        })
    }

    fn set_members(&self, members: Members) {
        *self.members.lock().unwrap() = members;
    }

    /// Waits until the broker has been asked, and has answered, a few times more.
    #[track_caller]
    fn wait_until_asked(&self) {
        let before = self.asked.load(Ordering::SeqCst);
        wait_until("the members are asked for", || {
            self.asked.load(Ordering::SeqCst) > before + 2
        });
    }
}

/// apache/rocketmq#2738, #3434, #588: after a rebalance the first pulls were refused with code 25 for
/// up to a heartbeat's period, which is longer than this test.
#[test]
fn b29_a_changed_assignment_is_told_at_once_and_a_refused_pull_leads_to_a_heartbeat() {
    let script = Script::new(Members::These(cids(&["10.0.0.1@a"])));
    script.refusals.store(2, Ordering::SeqCst);
    let broker = script.start();
    let routes = Routes::start(vec![script.part(&broker, 1)]);
    let consumer = builder(&routes.addr(), &MQClientManager::new(), "g")
        .client_ip("10.0.0.1".parse().unwrap())
        .instance_name("a")
        .pull_time_delay_when_exception(PERIOD);
    let consumer = start(consumer, &Inbox::new());
    wait_until("there is a good pull", || {
        script.good_pulls.load(Ordering::SeqCst) == 1
    });
    let versions = script.versions.lock().unwrap().clone();
    assert!(
        versions[1] > versions[0],
        "the assignment has changed between the two: {versions:?}"
    );
    assert_eq!(
        script.offset_queries.load(Ordering::SeqCst),
        1,
        "the queue was not dropped meanwhile"
    );
    assert_eq!(owned(&consumer).len(), 1);
}

/// The same report: a heartbeat that is asked for while another is under way is not left out.
#[test]
fn b29_a_heartbeat_that_is_asked_for_while_one_is_under_way_follows_it() {
    let script = Script::new(Members::These(cids(&["10.0.0.1@a"])));
    let broker = script.start();
    let routes = Routes::start(vec![script.part(&broker, 1)]);
    let consumer = builder(&routes.addr(), &MQClientManager::new(), "g")
        .client_ip("10.0.0.1".parse().unwrap())
        .instance_name("a");
    let consumer = start(consumer, &Inbox::new());
    wait_until("the change is told", || {
        owned(&consumer).len() == 1 && script.versions.lock().unwrap().len() == 2
    });
    let grow_to = |queues: i32| {
        routes.set(vec![script.part(&broker, queues)]);
        wait_until("the queues are owned", || {
            owned(&consumer).len() == usize::try_from(queues).unwrap()
        });
    };
    script.hold_heartbeat.store(true, Ordering::SeqCst);
    grow_to(2);
    wait_until("a heartbeat is under way", || {
        script.held.lock().unwrap().len() == 1
    });
    grow_to(3);
    grow_to(4);
    assert_eq!(script.versions.lock().unwrap().len(), 3);
    let (mut stream, request) = script.held.lock().unwrap().pop().unwrap();
    let frame = reply_to(&request, response_code::SUCCESS, Vec::new());
    stream.write_all(&frame).unwrap();
    wait_until("another heartbeat follows", || {
        script.versions.lock().unwrap().len() == 4
    });
    let versions = script.versions.lock().unwrap().clone();
    assert!(versions.is_sorted_by(|a, b| a < b), "{versions:?}");
}

/// apache/rocketmq#2732, #7870: the list of members failed or was empty for a moment, and the
/// consumer gave up its queues.
#[test]
fn b31_without_a_valid_list_of_members_everything_stays_as_it_is() {
    let me = "10.0.0.1@a";
    let script = Script::new(Members::These(cids(&[me, "10.0.0.1@b"])));
    let broker = script.start();
    let routes = Routes::start(vec![script.part(&broker, 4)]);
    let consumer = builder(&routes.addr(), &MQClientManager::new(), "g")
        .client_ip("10.0.0.1".parse().unwrap())
        .instance_name("a")
        .mq_client_api_timeout(Duration::from_millis(300))
        .rebalance_wait_interval(PERIOD);
    let consumer = start(consumer, &Inbox::new());
    wait_until("it has its half", || ids(&consumer) == [0, 1]);
    for members in [
        Members::Code(response_code::SYSTEM_ERROR),
        Members::These(Vec::new()),
        Members::Silence,
    ] {
        script.set_members(members);
        script.wait_until_asked();
        assert_eq!(ids(&consumer), [0, 1]);
    }
    script.set_members(Members::These(cids(&["10.0.0.1@b"])));
    wait_until("it is no member", || ids(&consumer).is_empty());
    script.set_members(Members::These(cids(&[me])));
    wait_until("it is the only one", || ids(&consumer) == [0, 1, 2, 3]);
}
