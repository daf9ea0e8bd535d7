//! Topics that are subscribed, changed and unsubscribed while a consumer runs; suspend and resume.
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

use std::collections::BTreeMap;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rocketmq_blocking::service::ServiceState;
use rocketmq_blocking::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, DefaultMQProducer,
    DefaultMQPushConsumer, DefaultMQPushConsumerBuilder, Error, MQClientManager, Message,
    MessageExt, Properties, request_code,
};
use rocketmq_embedded::{Cluster, ControlAction, ControlScope, ControlTimes};
use rocketmq_protocol::body::{HeartbeatData, JsonBody};
use support::{Answer, GENEROUS, Inbox, ScriptedBroker, holds_within, quick, wait_until};

const TIMEOUT: Duration = Duration::from_secs(10);
/// Longer than a test waits: whatever happens in time has another cause.
const NEVER: Duration = Duration::from_secs(600);

struct World {
    cluster: Cluster,
    manager: MQClientManager,
    producer: DefaultMQProducer,
}

impl World {
    /// The topics `T` and `U` with two queues each. Held pulls are answered when there is something
    /// that matches, and not before.
    fn start() -> Self {
        let cluster = Cluster::builder().long_poll_sweep(NEVER);
        let cluster = cluster.start().unwrap();
        for topic in ["T", "U"] {
            cluster.create_topic(topic, 2).unwrap();
        }
        let manager = MQClientManager::new();
        let producer = DefaultMQProducer::builder("p")
            .client_manager(&manager)
            .namesrv_addr(&cluster.namesrv_addr())
            .build()
            .unwrap();
        producer.start().unwrap();
        Self {
            cluster,
            manager,
            producer,
        }
    }

    /// No period ends while a test runs: what happens is done at once.
    fn builder(&self) -> DefaultMQPushConsumerBuilder {
        self.builder_of("g")
    }

    fn builder_of(&self, group: &str) -> DefaultMQPushConsumerBuilder {
        quick(DefaultMQPushConsumer::builder(group))
            .client_manager(&self.manager)
            .namesrv_addr(&self.cluster.namesrv_addr())
            .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
            .rebalance_wait_interval(NEVER)
            .heartbeat_broker_interval(NEVER)
            .poll_name_server_interval(NEVER)
    }

    fn consume(&self, expression: &str) -> (DefaultMQPushConsumer, Inbox) {
        let inbox = Inbox::new();
        let consumer = self
            .builder()
            .subscribe("T", expression)
            .message_listener(inbox.listener())
            .build()
            .unwrap();
        consumer.start().unwrap();
        (consumer, inbox)
    }

    fn send(&self, topic: &str, tag: &str, bodies: &[&str]) {
        for body in bodies {
            let message = Message::new(topic, (*body).to_owned()).with_tags(tag);
            self.producer.send(&message).unwrap();
        }
    }
}

/// apache/rocketmq-client-go#1024: queues of an unsubscribed topic stayed, and were pulled on.
#[test]
fn b23_an_unsubscribed_topic_is_pulled_no_more() {
    let world = World::start();
    let inbox = Inbox::new();
    let consumer = world
        .builder()
        .subscribe("T", "*")
        .subscribe("U", "*")
        .message_listener(inbox.listener())
        .build()
        .unwrap();
    consumer.start().unwrap();
    world.send("T", "A", &["t0"]);
    world.send("U", "A", &["u0"]);
    inbox.wait_for_bodies(2);
    // Two queues of each topic and that of retries, and once more those of the messages: brokers hold all
    // pulls then, and none is on its way that would come too late.
    let pulls = 2 * 2 + 1 + 2;
    assert!(
        world
            .cluster
            .wait_for(request_code::PULL_MESSAGE, pulls, GENEROUS)
    );
    consumer.unsubscribe("T").unwrap();
    wait_until("the queues are given up", || queues_of(&consumer, "T") == 0);
    // From here on each pull of it would be one too many.
    let pulls = world.cluster.control_when(
        ControlScope::Cluster,
        request_code::PULL_MESSAGE,
        ControlTimes::UntilLifted,
        |request| {
            let is_of_topic = request.command.ext_fields.get("topic") == Some("T");
            is_of_topic.then_some(ControlAction::Delay(Duration::ZERO))
        },
    );
    world.send("T", "A", &["t1", "t2", "t3", "t4"]);
    for round in 1..=4 {
        world.send("U", "A", &[&format!("u{round}")]);
        inbox.wait_for_bodies(2 + round);
    }
    assert_eq!(pulls.hits(), 0, "pulls of the topic");
    assert_eq!(queues_of(&consumer, "U"), 2);
    assert!(
        inbox
            .bodies()
            .keys()
            .all(|body| body == "t0" || body.starts_with('u'))
    );
}

fn queues_of(consumer: &DefaultMQPushConsumer, topic: &str) -> usize {
    let queues = consumer.owned_queues().into_iter();
    queues.filter(|mq| mq.topic() == topic).count()
}

#[test]
fn a_topic_that_is_subscribed_at_run_time_is_consumed_and_its_offsets_are_kept() {
    let world = World::start();
    world.send("U", "A", &["u0", "u1", "u2", "u3"]);
    let (consumer, inbox) = world.consume("*");
    consumer.subscribe("U", "A || B").unwrap();
    inbox.wait_for_bodies(4);
    world.send("T", "A", &["t0"]);
    inbox.wait_for_bodies(5);

    consumer.unsubscribe("U").unwrap();
    wait_until("the queues are given up", || queues_of(&consumer, "U") == 0);
    wait_until("what was consumed of them is saved", || {
        world
            .producer
            .fetch_publish_message_queues("U")
            .unwrap()
            .iter()
            .all(|mq| {
                let saved = world.cluster.committed_offset("g", mq);
                saved == Some(world.cluster.max_offset(mq))
            })
    });
    world.send("U", "A", &["u4"]);
    world.send("T", "A", &["t1"]);
    inbox.wait_for_bodies(6);
    assert!(!inbox.bodies().contains_key("u4"));

    // The topic grows meanwhile, which another consumer of the instance learns.
    world.cluster.create_topic("U", 4).unwrap();
    let other = world
        .builder_of("h")
        .subscribe("U", "*")
        .message_listener(Inbox::new().listener())
        .build()
        .unwrap();
    other.start().unwrap();
    assert_eq!(other.client_id(), consumer.client_id(), "one instance");
    consumer.subscribe("U", "*").unwrap();
    inbox.wait_for_bodies(7);
    wait_until("all of its queues are consumed", || {
        queues_of(&consumer, "U") == 4
    });
    assert!(inbox.bodies().values().all(|times| *times == 1));
    assert_eq!(consumer.shutdown(TIMEOUT).abandoned, 0);
}

#[test]
fn a_changed_expression_counts_from_then_on() {
    let world = World::start();
    let (consumer, inbox) = world.consume("A");
    // The latter carry the former along: both queues are read to their end.
    world.send("T", "B", &["b0", "b1"]);
    world.send("T", "A", &["a0", "a1"]);
    inbox.wait_for_bodies(2);
    consumer.subscribe("T", "B || C").unwrap();
    // The broker held a pull of each queue, with an expression that these do not match.
    world.send("T", "B", &["b2", "b3"]);
    inbox.wait_for_bodies(4);
    world.send("T", "A", &["a2", "a3"]);
    world.send("T", "C", &["c0", "c1"]);
    inbox.wait_for_bodies(6);
    let bodies: Vec<_> = inbox.bodies().into_keys().collect();
    assert_eq!(bodies, ["a0", "a1", "b2", "b3", "c0", "c1"]);
    consumer.shutdown(TIMEOUT);
}

/// A broker refuses a pull that names a newer version than its last heartbeat, and keeps an
/// expression until it hears of a newer one.
#[test]
fn brokers_are_told_of_an_expression_before_it_is_used() {
    let broker = ScriptedBroker::start(|_| Answer::Usual);
    let inbox = Inbox::new();
    let consumer = quick(DefaultMQPushConsumer::builder("g"))
        .client_manager(&MQClientManager::new())
        .namesrv_addr(&broker.namesrv())
        .subscribe("T", "A")
        .message_listener(inbox.listener())
        .build()
        .unwrap();
    consumer.start().unwrap();
    for expression in ["A || B", "C", "*", "A"] {
        broker.wait_for(request_code::PULL_MESSAGE, 4);
        consumer.subscribe("T", expression).unwrap();
        broker.put("m", &Properties::new());
        if expression == "*" {
            inbox.wait_for(1);
        }
    }
    assert!(consumer.shutdown(TIMEOUT).threads_joined);

    let mut told: BTreeMap<String, i64> = BTreeMap::new();
    let mut newest = 0;
    let heartbeats = broker.requests(request_code::HEART_BEAT);
    for (_, heartbeat) in &heartbeats {
        let data = HeartbeatData::from_command(heartbeat).unwrap();
        for group in data.consumer_data_set {
            let of_topic = group.subscription_data_set.into_iter();
            for data in of_topic.filter(|data| data.topic == "T") {
                assert!(data.sub_version >= newest, "a version goes back");
                if !told.contains_key(&data.sub_string) {
                    assert!(data.sub_version > newest, "{}: not newer", data.sub_string);
                }
                newest = data.sub_version;
                told.insert(data.sub_string, data.sub_version);
            }
        }
    }
    assert_eq!(told.len(), 4, "{told:?}");
    let pulls = broker.requests(request_code::PULL_MESSAGE);
    for (at, pull) in pulls {
        let version: i64 = pull.ext_fields.get("subVersion").unwrap().parse().unwrap();
        let known = heartbeats.iter().filter(|(told_at, _)| *told_at < at);
        let known = known.flat_map(|(_, heartbeat)| {
            let data = HeartbeatData::from_command(heartbeat).unwrap();
            let groups = data.consumer_data_set.into_iter();
            groups.flat_map(|group| group.subscription_data_set)
        });
        let topic = pull.ext_fields.get("topic").unwrap();
        let newest = known.filter(|data| data.topic == topic);
        let newest = newest.map(|data| data.sub_version).max();
        assert!(
            newest.unwrap() >= version,
            "{topic}: a pull before its heartbeat"
        );
    }
}

#[test]
fn what_cannot_be_subscribed_changes_nothing() {
    let world = World::start();
    let (consumer, inbox) = world.consume("A");
    wait_until("it has its queues", || queues_of(&consumer, "T") == 2);
    for (topic, expression) in [
        ("T", "||"),
        ("no blanks", "*"),
        ("", "*"),
        ("%RETRY%g", "A"),
    ] {
        let error = consumer.subscribe(topic, expression).unwrap_err();
        let Error::InvalidConfig { problems } = &error else {
            panic!("{error:?}");
        };
        assert!(
            problems.len() == 1 && problems[0].contains(topic),
            "{error}"
        );
    }
    consumer.unsubscribe("%RETRY%g").unwrap_err();
    consumer.unsubscribe("Unknown").unwrap();
    world.send("T", "B", &["b"]);
    world.send("T", "A", &["a0", "a1"]);
    inbox.wait_for_bodies(2);
    assert_eq!(queues_of(&consumer, "%RETRY%g"), 1);
    assert_eq!(inbox.len(), 2, "{:?}", inbox.bodies());

    consumer.shutdown(TIMEOUT);
    for error in [
        consumer.subscribe("U", "*").unwrap_err(),
        consumer.unsubscribe("T").unwrap_err(),
    ] {
        let ended = ServiceState::ShutdownAlready;
        assert!(
            matches!(&error, Error::ServiceState { state, .. } if *state == ended),
            "{error}"
        );
    }
}

#[test]
fn topics_can_be_changed_before_the_start_and_by_the_listener() {
    let world = World::start();
    world.send("T", "A", &["t"]);
    world.send("U", "A", &["u"]);
    let (received, bodies) = channel();
    let received = Mutex::new(received);
    let own: Arc<Mutex<Option<DefaultMQPushConsumer>>> = Arc::default();
    let handle = Arc::clone(&own);
    let consumer = world
        .builder()
        .subscribe("Unknown", "*")
        .message_listener(
            move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
                let topic = messages[0].topic().to_owned();
                if topic == "T" {
                    let consumer = handle.lock().unwrap().clone().unwrap();
                    consumer.subscribe("U", "*").unwrap();
                    consumer.unsubscribe("Unknown").unwrap();
                }
                received.lock().unwrap().send(topic).unwrap();
                ConsumeConcurrentlyStatus::ConsumeSuccess
            },
        )
        .build()
        .unwrap();
    *own.lock().unwrap() = Some(consumer.clone());
    consumer.subscribe("T", "*").unwrap();
    consumer.start().unwrap();
    assert_eq!(bodies.recv_timeout(GENEROUS).unwrap(), "T");
    assert_eq!(bodies.recv_timeout(GENEROUS).unwrap(), "U");
    own.lock().unwrap().take();
    assert!(consumer.shutdown(TIMEOUT).threads_joined);
}

#[test]
fn a_suspended_consumer_keeps_its_queues_and_leaves_its_listener_alone() {
    let world = World::start();
    let (consumer, inbox) = world.consume("*");
    world.send("T", "A", &["before0", "before1"]);
    inbox.wait_for_bodies(2);
    consumer.suspend();
    assert!(consumer.is_suspended());
    // Each queue has a pull that its broker holds, which brings one message.
    world.send("T", "A", &["during0", "during1", "during2", "during3"]);
    let delivered = holds_within(Duration::from_secs(2), || inbox.len() > 2);
    assert!(!delivered, "{:?}", inbox.bodies());
    assert_eq!(queues_of(&consumer, "T"), 2);
    consumer.resume();
    inbox.wait_for_bodies(6);
    assert!(inbox.bodies().values().all(|times| *times == 1));
    assert!(!consumer.is_suspended());
    assert_eq!(consumer.shutdown(TIMEOUT).abandoned, 0);
}
