//! Public bug reports about clients that come and go beside others, each with its right outcome.
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
    MessageQueue,
};
use rocketmq_embedded::{Cluster, ControlAction, ControlTimes};
use support::{GENEROUS, Inbox, quick, wait_until};

const HEART_BEAT: i32 = 34;

/// Clients of one instance: the same name, and the same settings.
struct Shared<'a> {
    cluster: &'a Cluster,
    manager: MQClientManager,
    heartbeat: Duration,
}

impl<'a> Shared<'a> {
    fn new(cluster: &'a Cluster, heartbeat: Duration) -> Self {
        Self {
            cluster,
            manager: MQClientManager::new(),
            heartbeat,
        }
    }

    fn producer(&self, group: &str) -> DefaultMQProducer {
        let producer = DefaultMQProducer::builder(group)
            .client_manager(&self.manager)
            .namesrv_addr(&self.cluster.namesrv_addr())
            .instance_name("shared")
            .heartbeat_broker_interval(self.heartbeat)
            .persist_consumer_offset_interval(Duration::from_millis(200))
            .rebalance_min_interval(Duration::from_millis(100))
            .build()
            .unwrap();
        producer.start().unwrap();
        producer
    }

    fn consumer(&self, group: &str, topic: &str, inbox: &Inbox) -> DefaultMQPushConsumer {
        let consumer = quick(DefaultMQPushConsumer::builder(group))
            .client_manager(&self.manager)
            .namesrv_addr(&self.cluster.namesrv_addr())
            .instance_name("shared")
            .heartbeat_broker_interval(self.heartbeat)
            .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
            .subscribe(topic, "*")
            .message_listener(inbox.listener())
            .build()
            .unwrap();
        consumer.start().unwrap();
        consumer
    }
}

/// apache/rocketmq#3066 and apache/rocketmq-client-go#611: consumers that were started and stopped
/// often left a member that nobody serves, because a heartbeat that was built before the group was
/// left arrived after it. The instance lives on here, and its heartbeats are slow at the broker, which
/// is where that happens.
#[test]
fn b86_a_group_that_was_left_is_named_by_no_later_heartbeat() {
    const ROUNDS: usize = 200;
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("T", 4).unwrap();
    let shared = Shared::new(&cluster, Duration::from_millis(10));
    let producer = shared.producer("p");
    let slow = ControlAction::Delay(Duration::from_millis(5));
    let heartbeats = cluster.control(HEART_BEAT, slow, ControlTimes::UntilLifted);
    let inbox = Inbox::new();
    for round in 0..ROUNDS {
        let consumer = shared.consumer("g", "T", &inbox);
        producer
            .send(&Message::new("T", format!("m{round}")))
            .unwrap();
        inbox.wait_for_bodies(round + 1);
        assert!(consumer.shutdown(GENEROUS).threads_joined);
        assert!(
            cluster.consumer_ids("g").is_empty(),
            "round {round}: left, and still a member"
        );
        // Whatever was under way has arrived when two more have.
        assert!(heartbeats.wait_for_hits(heartbeats.hits() + 2, GENEROUS));
        assert!(
            cluster.consumer_ids("g").is_empty(),
            "round {round}: a member that nobody serves"
        );
    }
    let fresh = shared.consumer("g", "T", &inbox);
    wait_until("a fresh consumer has all queues", || {
        let queues = fresh.owned_queues();
        queues.iter().filter(|mq| mq.topic() == "T").count() == 4
    });
    assert_eq!(shared.manager.instance_count(), 1);
    assert!(fresh.shutdown(GENEROUS).threads_joined);
    assert!(producer.shutdown(GENEROUS).threads_joined);
}

/// The same reports, with a client that comes back while its good-bye is under way: the newcomer
/// stays a member.
#[test]
fn b86_a_group_that_comes_back_at_once_is_a_member() {
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("T", 4).unwrap();
    let shared = Shared::new(&cluster, GENEROUS);
    let producer = shared.producer("p");
    let slow = ControlAction::Delay(Duration::from_millis(50));
    cluster.control(35, slow, ControlTimes::UntilLifted);
    let inbox = Inbox::new();
    for round in 0..10 {
        let first = shared.consumer("g", "T", &inbox);
        // No time to wait for the broker's answer.
        first.shutdown(Duration::ZERO);
        let second = shared.consumer("g", "T", &inbox);
        assert_eq!(
            cluster.consumer_ids("g"),
            [second.client_id().unwrap()],
            "round {round}"
        );
        producer
            .send(&Message::new("T", format!("m{round}")))
            .unwrap();
        inbox.wait_for_bodies(round + 1);
        // When this later good-bye is answered, the first one has been served.
        shared.producer("other").shutdown(GENEROUS);
        assert_eq!(cluster.consumer_ids("g").len(), 1, "round {round}");
        second.shutdown(GENEROUS);
    }
}

/// apache/rocketmq#576: the first of two consumers of one instance that stopped closed the network
/// for the other. What is shared ends with its last user.
#[test]
fn b87_what_clients_share_ends_with_the_last_of_them() {
    let cluster = Cluster::builder().start().unwrap();
    cluster.create_topic("T", 1).unwrap();
    cluster.create_topic("U", 1).unwrap();
    let shared = Shared::new(&cluster, Duration::from_secs(1));
    let producer = shared.producer("p");
    let (first_inbox, second_inbox) = (Inbox::new(), Inbox::new());
    let first = shared.consumer("first", "T", &first_inbox);
    let second = shared.consumer("second", "U", &second_inbox);
    assert_eq!(shared.manager.instance_count(), 1);
    let send = |body: &str| {
        for topic in ["T", "U"] {
            producer
                .send(&Message::new(topic, body.to_owned()))
                .unwrap();
        }
    };
    send("both");
    first_inbox.wait_for(1);
    second_inbox.wait_for(1);
    let connections = cluster.connection_count();

    let report = first.shutdown(GENEROUS);
    assert!(
        report.threads_joined && report.offsets_saved > 0,
        "{report:?}"
    );
    assert!(
        cluster.consumer_ids("first").is_empty(),
        "its good-bye came through"
    );
    assert_eq!(cluster.consumer_ids("second").len(), 1);
    assert_eq!(cluster.connection_count(), connections, "nothing is closed");
    for round in 0..20 {
        send(&format!("second {round}"));
    }
    second_inbox.wait_for(21);
    let queue = MessageQueue::new("U", "broker-a", 0);
    wait_until("the other one's offset is saved", || {
        cluster.committed_offset("second", &queue) == Some(21)
    });

    assert!(second.shutdown(GENEROUS).threads_joined);
    assert!(cluster.consumer_ids("second").is_empty());
    assert_eq!(shared.manager.instance_count(), 1);
    send("no consumer is left");
    assert!(producer.shutdown(GENEROUS).threads_joined);
    assert_eq!(shared.manager.instance_count(), 0);
    wait_until("all connections are closed", || {
        cluster.connection_count() == 0
    });
    assert_eq!(first_inbox.len(), 1);
}
