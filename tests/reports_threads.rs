//! Public bug reports about threads that outlive their clients.
//!
//! Threads of the whole process are counted, so this is one test that runs its scenarios one after
//! the other.
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

use std::fs;
use std::net::TcpListener;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use rocketmq_blocking::{
    ConsumeFromWhere, DefaultMQProducer, DefaultMQPushConsumer, MQClientManager, Message, Result,
};
use rocketmq_embedded::Cluster;
use support::{BlackHole, GENEROUS, Inbox, holds_within, library_threads, quick};

const ROUNDS: usize = 50;
const THREADS: usize = 20;

fn producer(manager: &MQClientManager, group: &str, namesrv: &str) -> DefaultMQProducer {
    DefaultMQProducer::builder(group)
        .client_manager(manager)
        .namesrv_addr(namesrv)
        .mq_client_api_timeout(Duration::from_millis(500))
        .retry_times_when_send_failed(0)
        .build()
        .unwrap()
}

fn consumer(
    manager: &MQClientManager,
    (group, name): (&str, Option<&str>),
    namesrv: &str,
    inbox: &Inbox,
) -> DefaultMQPushConsumer {
    let mut builder = quick(DefaultMQPushConsumer::builder(group))
        .client_manager(manager)
        .namesrv_addr(namesrv)
        .mq_client_api_timeout(Duration::from_millis(500))
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .subscribe("T", "*")
        .message_listener(inbox.listener());
    if let Some(name) = name {
        builder = builder.instance_name(name);
    }
    builder.build().unwrap()
}

fn all_threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

#[track_caller]
fn assert_threads_gone(before: usize) {
    if !holds_within(GENEROUS, || library_threads().is_empty()) {
        panic!("threads are left: {:?}", library_threads());
    }
    assert!(
        holds_within(GENEROUS, || all_threads() <= before),
        "{} threads, {before} before",
        all_threads()
    );
}

/// apache/rocketmq#3923, #10906 and #9375, alibaba/rocketmq#405, apache/eventmesh#3707: threads were
/// left by clients that had ended, by starts that failed, and by the losers of a race to make an
/// instance. (The lite pull consumer is not built yet.)
#[test]
fn b88_no_thread_outlives_its_client() {
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("T", 2).unwrap();
    clients_that_come_and_go(&cluster);
    clients_that_start_at_the_same_time(&cluster);
    clients_without_a_name_server();
}

fn clients_that_come_and_go(cluster: &Cluster) {
    let manager = MQClientManager::new();
    let inbox = Inbox::new();
    let mut before = 0;
    for round in 0..ROUNDS {
        let producer = producer(&manager, "p", &cluster.namesrv_addr());
        let consumer = consumer(&manager, ("g", None), &cluster.namesrv_addr(), &inbox);
        producer.start().unwrap();
        consumer.start().unwrap();
        producer
            .send(&Message::new("T", format!("m{round}")))
            .unwrap();
        inbox.wait_for_bodies(round + 1);
        assert!(consumer.shutdown(GENEROUS).threads_joined);
        assert!(producer.shutdown(GENEROUS).threads_joined);
        if round == 0 {
            // The cluster has started what it needs for connections by now.
            assert!(holds_within(GENEROUS, || library_threads().is_empty()));
            assert!(holds_within(GENEROUS, || cluster.connection_count() == 0));
            before = all_threads();
        }
    }
    assert_eq!(manager.instance_count(), 0);
    assert_threads_gone(before);
}

fn clients_that_start_at_the_same_time(cluster: &Cluster) {
    for round in 0..5 {
        let before = all_threads();
        let manager = MQClientManager::new();
        let barrier = Arc::new(Barrier::new(THREADS));
        let inbox = Inbox::new();
        let starting: Vec<thread::JoinHandle<Result<DefaultMQPushConsumer>>> = (0..THREADS)
            .map(|thread| {
                // Each group twice: one of the two is refused, since the name is shared.
                let group = format!("g{}", thread / 2);
                let who = (group.as_str(), Some("same"));
                let consumer = consumer(&manager, who, &cluster.namesrv_addr(), &inbox);
                let barrier = Arc::clone(&barrier);
                thread::spawn(move || {
                    barrier.wait();
                    consumer.start().map(|()| consumer)
                })
            })
            .collect();
        let started: Vec<_> = starting
            .into_iter()
            .filter_map(|thread| thread.join().unwrap().ok())
            .collect();
        assert_eq!(started.len(), THREADS / 2, "round {round}");
        assert_eq!(manager.instance_count(), 1, "round {round}");
        let mut services = library_threads();
        services.retain(|name| name == "HeartbeatServic");
        assert_eq!(services.len(), 1, "losers leave nothing: {services:?}");
        let ending: Vec<_> = started
            .into_iter()
            .map(|consumer| thread::spawn(move || consumer.shutdown(GENEROUS)))
            .collect();
        for end in ending {
            assert!(end.join().unwrap().threads_joined, "round {round}");
        }
        assert_eq!(manager.instance_count(), 0, "round {round}");
        assert_threads_gone(before);
    }
}

fn clients_without_a_name_server() {
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().to_string()
    };
    let black_hole = BlackHole::start();
    let before = all_threads();
    for namesrv in [closed, black_hole.addr()] {
        for _ in 0..3 {
            let manager = MQClientManager::new();
            let producer = producer(&manager, "p", &namesrv);
            let consumer = consumer(&manager, ("g", None), &namesrv, &Inbox::new());
            producer.start().unwrap();
            consumer.start().unwrap();
            producer.send(&Message::new("T", "m")).unwrap_err();
            assert!(consumer.shutdown(GENEROUS).threads_joined);
            // The other one is dropped only.
            drop(producer);
            assert_threads_gone(before);
            assert_eq!(manager.instance_count(), 0);
        }
    }
}
