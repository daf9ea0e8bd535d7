//! Public bug reports about heartbeats, and about brokers that are gone, each with its right outcome.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test is outside of what loom models, and fails by panicking"
)]

mod support;

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rocketmq_blocking::{
    ConsumeFromWhere, DefaultMQProducer, DefaultMQProducerBuilder, DefaultMQPushConsumer,
    DefaultMQPushConsumerBuilder, MQClientManager, Message, MessageQueue,
};
use rocketmq_embedded::{Cluster, ControlAction, ControlScope, ControlTimes};
use rocketmq_protocol::body::{ConsumeType, ConsumerData, HeartbeatData, JsonBody, MessageModel};
use rocketmq_protocol::{RemotingCommand, request_code};
use support::{
    FakePeer, GENEROUS, Inbox, Line, Proxy, keep_logs, logged, quick, reply_to, route_over,
    wait_until,
};

const TOPIC_NOT_EXIST: i32 = 17;
/// The period of whatever is periodical here.
const PERIOD: Duration = Duration::from_millis(100);
/// How long a dead broker could hold something up, if it did.
const HELD_UP: Duration = Duration::from_secs(20);

fn producer(manager: &MQClientManager, group: &str, namesrv: &str) -> DefaultMQProducerBuilder {
    DefaultMQProducer::builder(group)
        .client_manager(manager)
        .namesrv_addr(namesrv)
        .poll_name_server_interval(PERIOD)
        .heartbeat_broker_interval(PERIOD)
}

fn consumer(
    manager: &MQClientManager,
    group: &str,
    namesrv: &str,
    inbox: &Inbox,
) -> DefaultMQPushConsumerBuilder {
    quick(DefaultMQPushConsumer::builder(group))
        .client_manager(manager)
        .namesrv_addr(namesrv)
        .poll_name_server_interval(PERIOD)
        .heartbeat_broker_interval(PERIOD)
        .persist_consumer_offset_interval(PERIOD)
        .mq_client_api_timeout(HELD_UP)
        .connect_timeout(HELD_UP)
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .message_listener(inbox.listener())
}

/// apache/rocketmq#2763: route updates, heartbeats and offset saves of a client took turns, and a
/// dead broker held all of them up by minutes. What concerns living servers goes on at its own pace,
/// a consumer that starts or ends meanwhile included.
#[test]
fn b77_a_dead_broker_holds_up_nothing_that_concerns_others() {
    const GROUPS: usize = 20;
    const ROUNDS: u64 = 20;
    let cluster = Cluster::builder().brokers(2).start().unwrap();
    cluster.create_topic("T", 1).unwrap();
    let proxy = Proxy::start(cluster.broker_addr("broker-a").unwrap());
    let (a, b) = (proxy.addr(), cluster.broker_addr("broker-b").unwrap());
    let polls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&polls);
    let name_server = FakePeer::start(move |stream, request| {
        if request.ext_fields.get("topic") == Some("T") {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        let route = route_over(&[("broker-a", &a), ("broker-b", &b)]);
        stream.write_all(&reply_to(&request, 0, route)).is_ok()
    });
    let counts_on_b = |code| {
        // A control that changes nothing counts.
        let scope = ControlScope::Broker("broker-b".to_owned());
        let delay = ControlAction::Delay(Duration::ZERO);
        cluster.control_on(scope, code, delay, ControlTimes::UntilLifted)
    };
    let heartbeats = counts_on_b(request_code::HEART_BEAT);

    let sender = producer(&MQClientManager::new(), "p", &name_server.addr())
        .build()
        .unwrap();
    sender.start().unwrap();
    let send = |count| {
        for _ in 0..count {
            sender.send(&Message::new("T", "m")).unwrap();
        }
    };
    send(2);
    let manager = MQClientManager::new();
    let inbox = Inbox::new();
    let groups: Vec<String> = (0..GROUPS).map(|group| format!("g{group}")).collect();
    let consumers: Vec<_> = groups
        .iter()
        .map(|group| {
            let consumer = consumer(&manager, group, &name_server.addr(), &inbox)
                .subscribe("T", "*")
                .build()
                .unwrap();
            consumer.start().unwrap();
            consumer
        })
        .collect();
    assert_eq!(manager.instance_count(), 1);
    inbox.wait_for(2 * GROUPS);

    proxy.set(Line::BlackHole);
    let cut = Instant::now();
    let (heartbeats_then, polls_then) = (heartbeats.hits(), polls.load(Ordering::SeqCst));
    assert!(heartbeats.wait_for_hits(heartbeats_then + ROUNDS, HELD_UP));
    wait_until("routes are polled", || {
        polls.load(Ordering::SeqCst) >= polls_then + ROUNDS as usize
    });
    // What is stored at the living broker from here on is consumed and saved.
    let direct = DefaultMQProducer::builder("direct")
        .client_manager(&MQClientManager::new())
        .namesrv_addr(&cluster.namesrv_addr())
        .build()
        .unwrap();
    direct.start().unwrap();
    let of_b = MessageQueue::new("T", "broker-b", 0);
    let stored = cluster.max_offset(&of_b);
    while cluster.max_offset(&of_b) < stored + 1 {
        direct.send(&Message::new("T", "later")).unwrap();
    }
    let now = cluster.max_offset(&of_b);
    for group in &groups {
        wait_until("the offset at the living broker is saved", || {
            cluster.committed_offset(group, &of_b) == Some(now)
        });
    }
    // A group that comes and goes meanwhile.
    let late = consumer(&manager, "late", &name_server.addr(), &inbox)
        .subscribe("T", "*")
        .build()
        .unwrap();
    let starting = {
        let late = late.clone();
        thread::spawn(move || late.start())
    };
    wait_until("the living broker knows the new group", || {
        cluster.consumer_ids_on("broker-b", "late").len() == 1
    });
    late.shutdown(Duration::from_secs(1));
    assert!(cluster.consumer_ids_on("broker-b", "late").is_empty());
    assert!(cut.elapsed() < HELD_UP, "{:?}", cut.elapsed());

    proxy.set(Line::Good);
    let _ = starting.join().unwrap();
    assert!(consumers[0].shutdown(GENEROUS).threads_joined);
    assert!(cluster.consumer_ids(&groups[0]).is_empty());
}

/// A broker that keeps the heartbeats it gets.
fn recording_broker() -> (FakePeer, Arc<Mutex<Vec<RemotingCommand>>>) {
    let heartbeats: Arc<Mutex<Vec<RemotingCommand>>> = Arc::default();
    let kept = Arc::clone(&heartbeats);
    let broker = FakePeer::broker(move |request| {
        if request.code == request_code::HEART_BEAT {
            kept.lock().unwrap().push(request.clone());
        }
    });
    (broker, heartbeats)
}

/// apache/rocketmq-client-go#471: a heartbeat said something else than what the consumer is. It tells
/// type, model, starting point and tags of each group, and names all groups of a client at once.
/// (Broadcasting consumers are not built yet.)
#[test]
fn b82_a_heartbeat_says_what_the_clients_are() {
    let (broker, heartbeats) = recording_broker();
    let name_server = FakePeer::name_server("fake", broker.addr());
    let manager = MQClientManager::new();
    let inbox = Inbox::new();
    let first = consumer(&manager, "first", &name_server.addr(), &inbox)
        .subscribe("T", "a || b")
        .build()
        .unwrap();
    let second = consumer(&manager, "second", &name_server.addr(), &inbox)
        .subscribe("T", "*")
        .consume_from_where(ConsumeFromWhere::ConsumeFromLastOffset)
        .build()
        .unwrap();
    let sender = producer(&manager, "sender", &name_server.addr())
        .persist_consumer_offset_interval(PERIOD)
        .mq_client_api_timeout(HELD_UP)
        .connect_timeout(HELD_UP)
        .rebalance_min_interval(PERIOD)
        .build()
        .unwrap();
    first.start().unwrap();
    second.start().unwrap();
    sender.start().unwrap();
    assert_eq!(manager.instance_count(), 1, "all have the same settings");
    let read = |command: &RemotingCommand| HeartbeatData::from_command(command).unwrap();
    let mut all = None;
    wait_until("a heartbeat names all groups", || {
        let last = heartbeats.lock().unwrap().last().cloned();
        all = last.filter(|command| {
            let data = read(command);
            data.consumer_data_set.len() == 2 && data.producer_data_set.len() == 2
        });
        all.is_some()
    });
    let command = all.unwrap();
    let data = read(&command);
    assert_eq!(Some(data.client_id), first.client_id());
    let producers: BTreeSet<_> = data
        .producer_data_set
        .iter()
        .map(|producer| producer.group_name.as_str())
        .collect();
    assert_eq!(
        producers,
        BTreeSet::from(["CLIENT_INNER_PRODUCER", "sender"])
    );
    let of = |group: &str| -> ConsumerData {
        let mut found = data.consumer_data_set.iter();
        found.find(|data| data.group_name == group).unwrap().clone()
    };
    for group in ["first", "second"] {
        assert_eq!(of(group).consume_type, ConsumeType::ConsumePassively);
        assert_eq!(of(group).message_model, MessageModel::Clustering);
        assert!(!of(group).unit_mode);
        let topics: BTreeSet<_> = of(group)
            .subscription_data_set
            .iter()
            .map(|subscription| subscription.topic.clone())
            .collect();
        assert_eq!(
            topics,
            BTreeSet::from(["T".to_owned(), format!("%RETRY%{group}")])
        );
    }
    assert_eq!(
        of("first").consume_from_where,
        ConsumeFromWhere::ConsumeFromFirstOffset
    );
    assert_eq!(
        of("second").consume_from_where,
        ConsumeFromWhere::ConsumeFromLastOffset
    );
    // As text, since the names and the form of the tags' codes are what brokers read.
    let text = String::from_utf8(command.body_bytes().to_vec()).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let sets = json["consumerDataSet"].as_array().unwrap();
    let first = sets.iter().find(|set| set["groupName"] == "first").unwrap();
    assert_eq!(first["consumeType"], "CONSUME_PASSIVELY");
    assert_eq!(first["messageModel"], "CLUSTERING");
    assert_eq!(first["consumeFromWhere"], "CONSUME_FROM_FIRST_OFFSET");
    let subscriptions = first["subscriptionDataSet"].as_array().unwrap();
    let of_topic = subscriptions.iter().find(|s| s["topic"] == "T").unwrap();
    assert_eq!(of_topic["codeSet"], serde_json::json!([97, 98]));
    assert_eq!(of_topic["tagsSet"], serde_json::json!(["a", "b"]));
}

/// A name server whose answer a test changes: these brokers, or no such topic. And how often it was
/// asked.
fn changing_name_server(
    brokers: &Arc<Mutex<Vec<(&'static str, String)>>>,
) -> (FakePeer, Arc<AtomicUsize>) {
    let brokers = Arc::clone(brokers);
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let peer = FakePeer::start(move |stream, request| {
        count.fetch_add(1, Ordering::SeqCst);
        let brokers = brokers.lock().unwrap().clone();
        let brokers: Vec<_> = brokers
            .iter()
            .map(|(name, addr)| (*name, &**addr))
            .collect();
        let frame = match brokers.is_empty() {
            true => reply_to(&request, TOPIC_NOT_EXIST, Vec::new()),
            false => reply_to(&request, 0, route_over(&brokers)),
        };
        stream.write_all(&frame).is_ok()
    });
    (peer, asked)
}

/// apache/rocketmq PR#115 and #1681, #1685, #1686: a broker that left all routes was sent heartbeats
/// for ever. It is forgotten at the next poll, and its connection closed.
#[test]
fn b85_a_broker_that_no_route_names_is_let_go() {
    let (a, at_a) = recording_broker();
    let (b, at_b) = recording_broker();
    let brokers = Arc::new(Mutex::new(vec![("a", a.addr()), ("b", b.addr())]));
    let (name_server, _) = changing_name_server(&brokers);
    let manager = MQClientManager::new();
    let producer = producer(&manager, "p", &name_server.addr())
        .build()
        .unwrap();
    producer.start().unwrap();
    for topic in ["T", "U"] {
        producer.send(&Message::new(topic, "m")).unwrap();
    }
    wait_until("both are told", || {
        [&at_a, &at_b].iter().all(|at| at.lock().unwrap().len() > 1)
    });
    brokers.lock().unwrap().pop();
    wait_until("the connection is closed", || b.ended() == 1);
    let so_far = at_b.lock().unwrap().len();
    let then = at_a.lock().unwrap().len();
    wait_until("the other one goes on being told", || {
        at_a.lock().unwrap().len() > then + 10
    });
    assert_eq!(at_b.lock().unwrap().len(), so_far, "nothing more for it");
    assert_eq!(b.connections(), 1);
    assert_eq!(a.ended(), 0);
    producer.send(&Message::new("T", "m")).unwrap();
}

/// The same reports, and a topic whose last broker is gone: the name server does not know the topic
/// any more. Its route is kept, since a name server that was restarted knows nothing at first either;
/// the failing heartbeats fill no log, and stop no thread.
#[test]
fn b85_the_last_route_is_kept_and_a_dead_broker_is_told_of_once() {
    keep_logs();
    let (a, _) = recording_broker();
    let addr = a.addr();
    let brokers = Arc::new(Mutex::new(vec![("a", addr.clone())]));
    let (name_server, asked) = changing_name_server(&brokers);
    let manager = MQClientManager::new();
    let producer = producer(&manager, "p", &name_server.addr())
        .retry_times_when_send_failed(0)
        .build()
        .unwrap();
    producer.start().unwrap();
    producer.send(&Message::new("T", "m")).unwrap();
    brokers.lock().unwrap().clear();
    drop(a);
    let told = || logged(&["heartbeat to", &addr]).len();
    wait_until("the failure is told", || told() > 0);
    let error = producer.send(&Message::new("T", "m")).unwrap_err();
    assert!(
        error
            .to_string()
            .contains(&format!("cannot connect to {addr}")),
        "the route is kept: {error}"
    );
    // So many periods later: the name server is asked once in each.
    let then = asked.load(Ordering::SeqCst);
    wait_until("periods pass", || asked.load(Ordering::SeqCst) >= then + 20);
    assert_eq!(told(), 1, "{:?}", logged(&["heartbeat to", &addr]));

    // It comes back, at another address.
    let (back, at_back) = recording_broker();
    brokers.lock().unwrap().push(("a", back.addr()));
    wait_until("the new broker is told", || {
        !at_back.lock().unwrap().is_empty()
    });
    producer.send(&Message::new("T", "m")).unwrap();
    assert!(producer.shutdown(GENEROUS).threads_joined);
}

/// The same reports: a server that takes connections and ends them, a proxy without its broker for
/// one, is not called again before the next period.
#[test]
fn b85_a_server_that_ends_each_connection_is_called_once_a_period() {
    let alive = Arc::new(AtomicBool::new(true));
    let lives = Arc::clone(&alive);
    let broker = FakePeer::start(move |stream, request| {
        let frame = match request.code {
            request_code::SEND_MESSAGE_V2 => support::stored_reply(&request, "0A"),
            _ => reply_to(&request, 0, Vec::new()),
        };
        lives.load(Ordering::SeqCst) && stream.write_all(&frame).is_ok()
    });
    let name_server = FakePeer::name_server("fake", broker.addr());
    let producer = producer(&MQClientManager::new(), "p", &name_server.addr())
        .heartbeat_broker_interval(Duration::from_secs(1))
        .build()
        .unwrap();
    producer.start().unwrap();
    producer.send(&Message::new("T", "m")).unwrap();
    alive.store(false, Ordering::SeqCst);
    wait_until("the broker has ended some connections", || {
        broker.ended() >= 2
    });
    let (began, before) = (Instant::now(), broker.connections());
    wait_until("it is called again", || broker.connections() >= before + 2);
    let periods = began.elapsed().as_secs() as usize + 1;
    // The wait ends at the second call, unless calls follow each other without a pause.
    assert!(
        broker.connections() <= before + periods + 1,
        "{} connections in {periods} s",
        broker.connections() - before
    );
    assert!(
        began.elapsed() > Duration::from_millis(500),
        "two calls within {:?}",
        began.elapsed()
    );
}
