//! Clients that come and go many times leave nothing behind, and disturb nobody.
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

use std::time::Duration;

use rocketmq_blocking::{
    ConsumeFromWhere, DefaultMQProducer, DefaultMQPushConsumer, MQClientManager, Message,
};
use rocketmq_embedded::Cluster;
use support::{Inbox, assert_nothing_left, quick};

const TIMEOUT: Duration = Duration::from_secs(10);

fn producer(cluster: &Cluster, manager: &MQClientManager, group: &str) -> DefaultMQProducer {
    let producer = DefaultMQProducer::builder(group)
        .client_manager(manager)
        .namesrv_addr(&cluster.namesrv_addr())
        .build()
        .unwrap();
    producer.start().unwrap();
    producer
}

fn consumer(
    cluster: &Cluster,
    manager: &MQClientManager,
    (group, topic): (&str, &str),
    inbox: &Inbox,
) -> DefaultMQPushConsumer {
    let consumer = quick(DefaultMQPushConsumer::builder(group))
        .client_manager(manager)
        .namesrv_addr(&cluster.namesrv_addr())
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .subscribe(topic, "*")
        .message_listener(inbox.listener())
        .build()
        .unwrap();
    consumer.start().unwrap();
    consumer
}

#[test]
fn clients_that_come_and_go_leave_nothing() {
    two_hundred_pairs();
    beside_a_client_that_stays();
    main_waits_for_the_end();
}

/// Every tenth pair also works before it goes.
fn two_hundred_pairs() {
    let cluster = Cluster::builder().brokers(2).start().unwrap();
    cluster.create_topic("T", 2).unwrap();
    let manager = MQClientManager::new();
    let inbox = Inbox::new();
    for round in 0..200 {
        let producer = producer(&cluster, &manager, "p");
        let consumer = consumer(&cluster, &manager, ("g", "T"), &inbox);
        if round % 10 == 0 {
            producer
                .send(&Message::new("T", format!("m{round}")))
                .unwrap();
            inbox.wait_for_bodies(round / 10 + 1);
        }
        let (ended, report) = if round % 2 == 0 {
            let ended = producer.shutdown(TIMEOUT);
            (ended, consumer.shutdown(TIMEOUT))
        } else {
            let report = consumer.shutdown(TIMEOUT);
            (producer.shutdown(TIMEOUT), report)
        };
        assert!(
            ended.threads_joined && report.threads_joined,
            "round {round}: {report:?}"
        );
        assert_eq!(report.abandoned, 0, "round {round}");
        assert_eq!(manager.instance_count(), 0, "round {round}");
    }
    assert!(
        inbox.bodies().values().all(|times| *times == 1),
        "{:?}",
        inbox.bodies()
    );
    assert_nothing_left(&cluster, &manager, &["g"]);
}

fn beside_a_client_that_stays() {
    let cluster = Cluster::builder().brokers(2).start().unwrap();
    cluster.create_topic("T", 2).unwrap();
    cluster.create_topic("Stays", 2).unwrap();
    let manager = MQClientManager::new();
    let sender = producer(&cluster, &manager, "stays_p");
    let received = Inbox::new();
    let stays = consumer(&cluster, &manager, ("stays", "Stays"), &received);
    for round in 0..20 {
        let producer = producer(&cluster, &manager, "p");
        let consumer = consumer(&cluster, &manager, ("g", "T"), &Inbox::new());
        assert_eq!(
            consumer.client_id(),
            stays.client_id(),
            "they share an instance"
        );
        producer.send(&Message::new("T", "m")).unwrap();
        sender
            .send(&Message::new("Stays", format!("during {round}")))
            .unwrap();
        consumer.shutdown(TIMEOUT);
        producer.shutdown(TIMEOUT);
        sender
            .send(&Message::new("Stays", format!("after {round}")))
            .unwrap();
        received.wait_for_bodies(2 * (round + 1));
    }
    assert_eq!(manager.instance_count(), 2, "producers have other settings");
    assert!(
        received.bodies().values().all(|times| *times == 1),
        "{:?}",
        received.bodies()
    );
    assert!(stays.shutdown(TIMEOUT).threads_joined);
    assert!(sender.shutdown(TIMEOUT).threads_joined);
    assert_nothing_left(&cluster, &manager, &["g", "stays"]);
}

/// A thread waits without a limit; it goes on when another one ends the client, with what that one
/// is told.
fn main_waits_for_the_end() {
    let cluster = Cluster::builder().start().unwrap();
    let manager = MQClientManager::new();
    let producer = producer(&cluster, &manager, "waited_for");
    let waiting = producer.clone();
    let (says, said) = std::sync::mpsc::channel();
    let waiter = std::thread::spawn(move || {
        says.send(None).unwrap();
        says.send(waiting.wait()).unwrap();
    });
    assert_eq!(said.recv_timeout(TIMEOUT).unwrap(), None);
    let report = producer.shutdown(TIMEOUT);
    assert_eq!(said.recv_timeout(TIMEOUT).unwrap(), Some(report));
    waiter.join().unwrap();
}
