//! What the client takes when there is much of something: threads, requests, room for messages.
//!
//! Threads of the whole process are counted, so this is one test that runs its scenarios one after the
//! other. `ROCKETMQ_SCALE` says how many hundredths of the whole it has, 20 unless told otherwise; the whole is
//!
//! ```text
//! cargo test --release --test scale the_whole -- --exact --ignored
//! ```
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test is outside of what loom models, and fails by panicking"
)]

mod support;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rocketmq_blocking::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, DefaultMQPushConsumer,
    DefaultMQPushConsumerBuilder, FilterMessageContext, FilterMessageHook, MQClientManager,
    Message, MessageExt, MessageQueue, request_code,
};
use rocketmq_embedded::Cluster;
use support::{GENEROUS, assert_nothing_left, library_threads, wait_until};

/// The service threads of an instance, as the system cuts their names short.
const SERVICES: [&str; 5] = [
    "HeartbeatServic",
    "OffsetPersistSe",
    "PullMessageServ",
    "RebalanceServic",
    "TopicRouteServi",
];
/// What all instances share.
const SHARED: [&str; 2] = ["ClientTimer", "MioClientSelect"];
const QUEUES: u16 = 8;
/// No period of those that are counted ends in a test that does not set it.
const NEVER: Duration = Duration::from_secs(3600);

#[test]
fn a_part_of_the_whole() {
    let hundredths = std::env::var("ROCKETMQ_SCALE").map_or(20, |text| text.parse().unwrap());
    scenarios(hundredths);
}

#[test]
#[ignore = "takes a minute; the command is above"]
fn the_whole() {
    scenarios(100);
}

fn scenarios(hundredths: usize) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let part = |whole: usize| (whole * hundredths / 100).max(2);
    topics(part(1000));
    brokers(part(50));
    groups(part(50));
    instances(part(200));
    cached_messages(part(100_000));
}

/// How many threads of the library have each name.
fn threads() -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for name in library_threads() {
        *counts.entry(name).or_default() += 1;
    }
    counts
}

/// Two and six for each instance: its services, and the one thread for callbacks that the tests allow.
fn threads_of(instances: usize) -> BTreeMap<String, usize> {
    let of_instance = SERVICES.iter().chain(&["ClientCallbackE"]);
    let of_instance = of_instance.map(|name| ((*name).to_owned(), instances));
    let shared = SHARED.iter().map(|name| ((*name).to_owned(), 1));
    of_instance.chain(shared).collect()
}

#[track_caller]
fn assert_threads(instances: usize) {
    let expected = threads_of(instances);
    if !support::holds_within(GENEROUS, || threads() == expected) {
        panic!("{:?}, wanted were {expected:?}", threads());
    }
}

fn builder(
    cluster: &Cluster,
    group: &str,
    manager: &MQClientManager,
) -> DefaultMQPushConsumerBuilder {
    DefaultMQPushConsumer::builder(group)
        .client_manager(manager)
        .namesrv_addr(&cluster.namesrv_addr())
        .client_callback_executor_threads(1)
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .heartbeat_broker_interval(NEVER)
        .poll_name_server_interval(NEVER)
        .rebalance_wait_interval(NEVER)
        .persist_consumer_offset_interval(NEVER)
}

fn ignoring(builder: DefaultMQPushConsumerBuilder) -> DefaultMQPushConsumer {
    let consumer = builder
        .message_listener(|_: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
            ConsumeConcurrentlyStatus::ConsumeSuccess
        })
        .build()
        .unwrap();
    consumer.start().unwrap();
    consumer
}

/// How many queues it has, without those of the retry topic.
fn owned(consumer: &DefaultMQPushConsumer) -> usize {
    let queues = consumer.owned_queues();
    let of_users = queues.iter().filter(|mq| !mq.topic().starts_with('%'));
    of_users.count()
}

/// Has all queues looked for, divided, and pulled.
fn wait_for_queues(cluster: &Cluster, consumer: &DefaultMQPushConsumer, count: usize) {
    wait_until("all queues are its own", || owned(consumer) == count);
    let pulls = cluster.wait_for(request_code::PULL_MESSAGE, count as u64, GENEROUS);
    assert!(pulls, "all queues are pulled");
}

fn topics(count: usize) {
    let (few, many) = (of_topics((count / 8).max(1)), of_topics(count));
    for code in [
        request_code::HEART_BEAT,
        request_code::GET_CONSUMER_LIST_BY_GROUP,
    ] {
        // A look that is asked for while another one is under way makes one more, and so does a note.
        assert!(many[&code] <= 12, "{code}: {few:?} {many:?}");
    }
    let routes = many[&request_code::GET_ROUTEINFO_BY_TOPIC];
    assert_eq!(
        routes,
        2 * (count as u64 + 1),
        "one for each topic and member"
    );
    assert_idle_minutes_are_explained((count / 4).max(1));
}

/// Starts a consumer, and a second one that takes half of its queues. Returns how many requests that took.
fn of_topics(count: usize) -> BTreeMap<i32, u64> {
    let cluster = Cluster::builder().start().unwrap();
    for topic in 0..count {
        cluster.create_topic(&format!("T{topic}"), QUEUES).unwrap();
    }
    let all = count * usize::from(QUEUES);
    let manager = MQClientManager::new();
    let subscribed = || {
        let builder = builder(&cluster, "g", &manager);
        (0..count).fold(builder, |builder, topic| {
            builder.subscribe(&format!("T{topic}"), "*")
        })
    };
    let first = ignoring(subscribed());
    wait_for_queues(&cluster, &first, all);
    assert_threads(1);
    let second = ignoring(subscribed());
    wait_until("both have their half", || {
        owned(&first) == all / 2 && owned(&second) == all / 2
    });
    let counts = [
        request_code::HEART_BEAT,
        request_code::GET_CONSUMER_LIST_BY_GROUP,
        request_code::GET_ROUTEINFO_BY_TOPIC,
    ];
    let counts = counts.map(|code| (code, cluster.request_count(code)));
    for consumer in [second, first] {
        assert!(consumer.shutdown(GENEROUS).threads_joined);
    }
    assert_nothing_left(&cluster, &manager, &["g"]);
    counts.into()
}

/// Nothing is asked for more often than the intervals say, and in each as much as there is.
fn assert_idle_minutes_are_explained(topics: usize) {
    const INTERVAL: Duration = Duration::from_millis(300);
    const ROUNDS: u64 = 5;
    let cluster = Cluster::builder().start().unwrap();
    for topic in 0..topics {
        let topic = format!("T{topic}");
        cluster.create_topic(&topic, QUEUES).unwrap();
        for id in 0..i32::from(QUEUES) {
            // So that there are offsets to save.
            let queue = MessageQueue::new(topic.as_str(), "broker-a", id);
            cluster.commit_offset("g", &queue, 0);
        }
    }
    let queues = topics * usize::from(QUEUES);
    let manager = MQClientManager::new();
    let builder = builder(&cluster, "g", &manager)
        .heartbeat_broker_interval(INTERVAL)
        .poll_name_server_interval(INTERVAL)
        .rebalance_wait_interval(INTERVAL)
        .rebalance_min_interval(INTERVAL)
        .persist_consumer_offset_interval(INTERVAL);
    let consumer = ignoring((0..topics).fold(builder, |builder, topic| {
        builder.subscribe(&format!("T{topic}"), "*")
    }));
    wait_for_queues(&cluster, &consumer, queues);
    // What each interval asks for: one question for all topics of the group, one heartbeat, a route for
    // each topic and the retry topic, and an offset for each queue that has one.
    let of_a_round = [
        (request_code::GET_CONSUMER_LIST_BY_GROUP, 1),
        (request_code::HEART_BEAT, 1),
        (request_code::GET_ROUTEINFO_BY_TOPIC, topics as u64 + 1),
        (request_code::UPDATE_CONSUMER_OFFSET, queues as u64),
        (request_code::QUERY_CONSUMER_OFFSET, 0),
    ];
    let begun = Instant::now();
    let before = of_a_round.map(|(code, _)| cluster.request_count(code));
    for ((code, each), before) in of_a_round.into_iter().zip(before) {
        let come = cluster.wait_for(code, before + ROUNDS * each, GENEROUS);
        assert!(come, "{code} each interval");
    }
    let after = of_a_round.map(|(code, _)| cluster.request_count(code));
    // One round may have been under way, and one is.
    let rounds = begun.elapsed().as_millis() as u64 / INTERVAL.as_millis() as u64 + 2;
    for (((code, each), before), after) in of_a_round.into_iter().zip(before).zip(after) {
        let (count, most) = (after - before, rounds * each);
        assert!(
            count <= most,
            "{code}: {count} in {rounds} rounds of {each}"
        );
    }
    assert!(consumer.shutdown(GENEROUS).threads_joined);
    assert_nothing_left(&cluster, &manager, &["g"]);
}

fn brokers(count: usize) {
    for count in [(count / 8).max(1), count] {
        let cluster = Cluster::builder().brokers(count).start().unwrap();
        cluster.create_topic("T", QUEUES).unwrap();
        let manager = MQClientManager::new();
        let consumer = ignoring(builder(&cluster, "g", &manager).subscribe("T", "*"));
        wait_for_queues(&cluster, &consumer, count * usize::from(QUEUES));
        assert_threads(1);
        let questions = cluster.request_count(request_code::GET_CONSUMER_LIST_BY_GROUP);
        assert!(
            questions <= 12,
            "{questions} for one group at {count} brokers"
        );
        let heartbeats = cluster.request_count(request_code::HEART_BEAT);
        // The first one, one for each connection that it makes, and one after each look that changed something.
        let most = 6 * count as u64;
        assert!(heartbeats <= most, "{heartbeats} to {count} brokers");
        assert!(consumer.shutdown(GENEROUS).threads_joined);
        assert_nothing_left(&cluster, &manager, &["g"]);
    }
}

fn groups(count: usize) {
    for count in [(count / 8).max(1), count] {
        let cluster = Cluster::builder().start().unwrap();
        cluster.create_topic("T", QUEUES).unwrap();
        let manager = MQClientManager::new();
        let names: Vec<String> = (0..count).map(|group| format!("g{group}")).collect();
        let consumers: Vec<_> = names
            .iter()
            .map(|group| ignoring(builder(&cluster, group, &manager).subscribe("T", "*")))
            .collect();
        assert_eq!(manager.instance_count(), 1);
        for consumer in &consumers {
            wait_until("it has all queues", || {
                owned(consumer) == usize::from(QUEUES)
            });
        }
        let pulls = (count * usize::from(QUEUES)) as u64;
        assert!(cluster.wait_for(request_code::PULL_MESSAGE, pulls, GENEROUS));
        assert_threads(1);
        let questions = cluster.request_count(request_code::GET_CONSUMER_LIST_BY_GROUP);
        assert!(
            questions <= 6 * count as u64,
            "{questions} for {count} groups"
        );
        let ends = consumers.iter().map(|consumer| consumer.shutdown(GENEROUS));
        assert!(ends.into_iter().all(|report| report.threads_joined));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_nothing_left(&cluster, &manager, &names);
    }
}

/// One event loop and one timer, however many there are.
fn instances(count: usize) {
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("T", QUEUES).unwrap();
    let manager = MQClientManager::new();
    let mut consumers = Vec::new();
    for count in [(count / 8).max(1), count] {
        while consumers.len() < count {
            let number = consumers.len();
            let builder = builder(&cluster, &format!("g{}", number / 4), &manager)
                .instance_name(format!("i{number}"))
                .subscribe("T", "*");
            consumers.push(ignoring(builder));
        }
        assert_eq!(manager.instance_count(), count);
        for members in consumers.chunks(4) {
            wait_until("the group has divided the queues", || {
                let shares: Vec<usize> = members.iter().map(owned).collect();
                shares.iter().sum::<usize>() == usize::from(QUEUES)
                    && shares.iter().all(|share| *share >= usize::from(QUEUES) / 4)
            });
        }
        assert_threads(count);
    }
    let ends: Vec<_> = consumers
        .into_iter()
        .map(|consumer| std::thread::spawn(move || consumer.shutdown(GENEROUS)))
        .collect();
    for end in ends {
        assert!(end.join().unwrap().threads_joined);
    }
    assert_nothing_left(&cluster, &manager, &["g0"]);
}

/// Counts what was pulled, before the listener is called.
struct Pulled(Arc<AtomicUsize>);

impl FilterMessageHook for Pulled {
    fn hook_name(&self) -> &str {
        "pulled"
    }

    fn filter_message(&self, context: &mut FilterMessageContext<'_>) {
        self.0.fetch_add(context.messages().len(), Ordering::SeqCst);
    }
}

#[derive(Default)]
struct Gate(Mutex<bool>, Condvar);

impl Gate {
    fn pass(&self) {
        let is_open = self.0.lock().unwrap();
        drop(self.1.wait_while(is_open, |is_open| !*is_open).unwrap());
    }

    fn open(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }
}

/// They are all held while the listener is busy, each comes once, and nothing is left of them.
fn cached_messages(count: usize) {
    let per_queue = count / usize::from(QUEUES);
    let count = per_queue * usize::from(QUEUES);
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("T", QUEUES).unwrap();
    let queues: Vec<_> = (0..QUEUES)
        .map(|id| MessageQueue::new("T", "broker-a", i32::from(id)))
        .collect();
    for number in 0..count {
        let message = Message::new("T", (number as u32).to_be_bytes().to_vec());
        let queue = &queues[number % queues.len()];
        cluster.put_message(queue, &message).unwrap();
    }
    let times: Arc<Vec<AtomicU8>> = Arc::new((0..count).map(|_| AtomicU8::new(0)).collect());
    let (pulled, gate) = (Arc::<AtomicUsize>::default(), Arc::<Gate>::default());
    let (told, keeper) = (Arc::clone(&times), Arc::clone(&gate));
    let manager = MQClientManager::new();
    let consumer = builder(&cluster, "g", &manager)
        .persist_consumer_offset_interval(Duration::from_millis(200))
        .pull_threshold_for_queue(per_queue as u64)
        .consume_concurrently_max_span(per_queue as u64)
        .filter_message_hook(Pulled(Arc::clone(&pulled)))
        .subscribe("T", "*")
        .message_listener(
            move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
                keeper.pass();
                for message in messages {
                    let number = u32::from_be_bytes(message.body()[..4].try_into().unwrap());
                    told[number as usize].fetch_add(1, Ordering::SeqCst);
                }
                ConsumeConcurrentlyStatus::ConsumeSuccess
            },
        )
        .build()
        .unwrap();
    consumer.start().unwrap();
    wait_until("all messages are held", || {
        pulled.load(Ordering::SeqCst) == count
    });
    let heard = || {
        times
            .iter()
            .map(|times| usize::from(times.load(Ordering::SeqCst)))
    };
    assert_eq!(heard().sum::<usize>(), 0, "the listener is busy");
    let mut held = threads();
    assert_eq!(
        held.remove("ConsumeMessageT"),
        Some(20),
        "as many as are set"
    );
    assert_eq!(held, threads_of(1));
    gate.open();
    wait_until("the listener had all", || heard().sum::<usize>() == count);
    assert!(heard().all(|times| times == 1), "each once");
    wait_until("all are counted as done", || {
        let done = queues.iter().map(|mq| cluster.committed_offset("g", mq));
        done.into_iter()
            .all(|offset| offset == Some(per_queue as i64))
    });
    let report = consumer.shutdown(GENEROUS);
    assert!(report.threads_joined);
    assert_eq!(report.abandoned, 0);
    assert_eq!(
        pulled.load(Ordering::SeqCst),
        count,
        "nothing was pulled twice"
    );
    assert_nothing_left(&cluster, &manager, &["g"]);
}
