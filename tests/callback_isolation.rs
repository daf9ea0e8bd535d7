//! What a user's code does, panic or never return, holds up nobody else's.
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

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rocketmq_blocking::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, DefaultMQProducer,
    DefaultMQPushConsumer, DefaultMQPushConsumerBuilder, Error, MQClientManager, Message,
    MessageExt, MessageQueue, RPCHook, RemotingCommand, request_code,
};
use rocketmq_embedded::{Cluster, ControlAction, ControlHandle, ControlTimes};
use support::{GENEROUS, Inbox, quick, wait_until};

const TIMEOUT: Duration = Duration::from_secs(10);
/// Longer than a test waits: whatever happens in time has another cause.
const NEVER: Duration = Duration::from_secs(600);

/// An instance in which everything goes well, and which the test makes suffer.
struct World {
    cluster: Cluster,
    manager: MQClientManager,
    producer: DefaultMQProducer,
    consumer: DefaultMQPushConsumer,
    inbox: Inbox,
    sent: AtomicUsize,
    hook: Arc<PanickingHook>,
}

/// Panics at what is meant for it.
#[derive(Default)]
struct PanickingHook {
    panics: AtomicUsize,
}

impl RPCHook for PanickingHook {
    fn do_before_request(&self, _: &str, request: &mut RemotingCommand) {
        let is_meant = ["topic", "b", "consumerGroup"]
            .into_iter()
            .filter_map(|name| request.ext_fields.get(name))
            .any(|value| value.ends_with("hooked"));
        if is_meant {
            self.panics.fetch_add(1, Ordering::SeqCst);
            panic!("a hook, on purpose");
        }
    }
}

impl World {
    fn start() -> Self {
        let cluster = Cluster::builder().start().unwrap();
        for topic in ["Good", "Bad"] {
            cluster.create_topic(topic, 4).unwrap();
        }
        let manager = MQClientManager::new();
        let hook = Arc::new(PanickingHook::default());
        let producer = DefaultMQProducer::builder("p")
            .client_manager(&manager)
            .namesrv_addr(&cluster.namesrv_addr())
            .rpc_hook(hook.clone())
            .heartbeat_broker_interval(Duration::from_millis(100))
            .rebalance_wait_interval(NEVER)
            .persist_consumer_offset_interval(Duration::from_millis(200))
            .rebalance_min_interval(Duration::from_millis(100))
            .build()
            .unwrap();
        producer.start().unwrap();
        let inbox = Inbox::new();
        let consumer = builder(&cluster, &manager, &hook, "good")
            .subscribe("Good", "*")
            .message_listener(inbox.listener())
            .build()
            .unwrap();
        consumer.start().unwrap();
        Self {
            cluster,
            manager,
            producer,
            consumer,
            inbox,
            sent: AtomicUsize::new(0),
            hook,
        }
    }

    /// Settings of a consumer that shares the instance.
    fn builder(&self, group: &str) -> DefaultMQPushConsumerBuilder {
        builder(&self.cluster, &self.manager, &self.hook, group).subscribe("Bad", "*")
    }

    fn send_bad(&self, count: usize) {
        for n in 0..count {
            let message = Message::new("Bad", format!("bad{n}"));
            self.producer.send(&message).unwrap();
        }
    }

    fn count(&self, code: i32) -> ControlHandle {
        let counted = ControlAction::Delay(Duration::ZERO);
        self.cluster
            .control(code, counted, ControlTimes::UntilLifted)
    }

    /// All that the instance does goes on: sends, pulls, calls of listeners, saves of offsets,
    /// heartbeats, and rebalances in which its good consumer gives queues up and takes them again.
    #[track_caller]
    fn all_others_go_on(&self) {
        assert_eq!(self.manager.instance_count(), 1, "all share the instance");
        let before = self.sent.fetch_add(8, Ordering::SeqCst);
        let heartbeats = self.count(request_code::HEART_BEAT);
        for n in before..before + 8 {
            let message = Message::new("Good", format!("good{n}"));
            self.producer.send(&message).unwrap();
        }
        self.inbox.wait_for_bodies(before + 8);
        wait_until("offsets are saved", || {
            let queues = self.producer.fetch_publish_message_queues("Good").unwrap();
            queues.iter().all(|mq| {
                let saved = self.cluster.committed_offset("good", mq).unwrap_or(0);
                saved == self.cluster.max_offset(mq)
            })
        });
        assert!(heartbeats.wait_for_hits(3, GENEROUS));
        heartbeats.lift();
        let own = || {
            let own = self.consumer.owned_queues().into_iter();
            own.filter(|mq| mq.topic() == "Good").count()
        };
        let other_instance = MQClientManager::new();
        let hook = Arc::new(PanickingHook::default());
        let other = builder(&self.cluster, &other_instance, &hook, "good")
            .subscribe("Good", "*")
            .message_listener(self.inbox.listener())
            .build()
            .unwrap();
        other.start().unwrap();
        wait_until("another member has its share", || own() == 2);
        assert!(other.shutdown(TIMEOUT).threads_joined);
        wait_until("its share comes back", || own() == 4);
    }

    #[track_caller]
    fn end(self) {
        assert!(self.consumer.shutdown(TIMEOUT).threads_joined);
        assert!(self.producer.shutdown(TIMEOUT).threads_joined);
        assert_eq!(self.manager.instance_count(), 0);
    }
}

fn builder(
    cluster: &Cluster,
    manager: &MQClientManager,
    hook: &Arc<PanickingHook>,
    group: &str,
) -> DefaultMQPushConsumerBuilder {
    quick(DefaultMQPushConsumer::builder(group))
        .client_manager(manager)
        .namesrv_addr(&cluster.namesrv_addr())
        .rpc_hook(hook.clone())
        .heartbeat_broker_interval(Duration::from_millis(100))
        .rebalance_wait_interval(NEVER)
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
}

#[test]
fn a_listener_that_panics_holds_up_nobody() {
    let world = World::start();
    world.send_bad(8);
    let panics = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&panics);
    let bad = world
        .builder("bad")
        .consume_threads(1)
        .message_listener(
            move |_: &[MessageExt],
                  _: &mut ConsumeConcurrentlyContext|
                  -> ConsumeConcurrentlyStatus {
                counted.fetch_add(1, Ordering::SeqCst);
                panic!("a listener, on purpose")
            },
        )
        .build()
        .unwrap();
    bad.start().unwrap();
    wait_until("its one thread has outlived eight panics", || {
        panics.load(Ordering::SeqCst) >= 8
    });
    world.all_others_go_on();
    assert!(bad.shutdown(TIMEOUT).threads_joined);
    world.end();
}

#[test]
fn a_listener_that_does_not_return_holds_up_nobody() {
    let world = World::start();
    world.send_bad(8);
    let held = Arc::new(Mutex::new(()));
    let gate = held.lock().unwrap();
    let (waiting, (entered, entries)) = (Arc::clone(&held), channel());
    let entered = Mutex::new(entered);
    let bad = world
        .builder("bad")
        .consume_threads(2)
        .message_listener(
            move |_: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
                entered.lock().unwrap().send(()).unwrap();
                drop(waiting.lock().unwrap());
                ConsumeConcurrentlyStatus::ConsumeSuccess
            },
        )
        .build()
        .unwrap();
    bad.start().unwrap();
    for _ in 0..2 {
        entries.recv_timeout(GENEROUS).unwrap();
    }
    world.all_others_go_on();
    let report = bad.shutdown(Duration::from_millis(200));
    assert!(!report.threads_joined && report.abandoned > 0, "{report:?}");
    world.all_others_go_on();
    drop(gate);
    world.end();
}

#[test]
fn a_listener_of_queue_changes_that_blocks_or_panics_holds_up_nobody() {
    let world = World::start();
    let held = Arc::new(Mutex::new(()));
    let gate = held.lock().unwrap();
    let (waiting, (told, changes)) = (Arc::clone(&held), channel());
    let told = Mutex::new(told);
    let inbox = Inbox::new();
    let bad = world
        .builder("bad")
        .subscribe("Good", "*")
        .message_listener(inbox.listener())
        .message_queue_listener(
            move |topic: &str, all: &[MessageQueue], own: &[MessageQueue]| {
                let change = (topic.to_owned(), all.len(), own.len());
                told.lock().unwrap().send(change).unwrap();
                drop(waiting.lock());
                panic!("a listener of queue changes, on purpose");
            },
        )
        .build()
        .unwrap();
    bad.start().unwrap();
    let mut told = vec![changes.recv_timeout(GENEROUS).unwrap()];
    // Its own group goes on, too.
    world.send_bad(4);
    inbox.wait_for_bodies(4);
    world.all_others_go_on();
    assert!(changes.try_recv().is_err(), "one call after the other");
    drop(gate);
    for _ in 0..2 {
        told.push(changes.recv_timeout(GENEROUS).unwrap());
    }
    told.sort();
    let all = [("%RETRY%bad", 1, 1), ("Bad", 4, 4), ("Good", 4, 4)];
    assert_eq!(
        told,
        all.map(|(topic, all, own)| (topic.to_owned(), all, own))
    );
    assert!(bad.shutdown(TIMEOUT).threads_joined);
    world.end();
}

#[test]
fn a_hook_that_panics_fails_its_request_and_holds_up_nobody() {
    let world = World::start();
    world.cluster.create_topic("hooked", 1).unwrap();
    let bad = world
        .builder("hooked")
        .message_listener(Inbox::new().listener())
        .build()
        .unwrap();
    bad.start().unwrap();
    let error = world
        .producer
        .send(&Message::new("hooked", "m"))
        .unwrap_err();
    assert!(matches!(error, Error::MQClient { .. }), "{error:?}");
    let panics = || world.hook.panics.load(Ordering::SeqCst);
    let before = panics();
    wait_until("the group's requests fail", || panics() > before + 3);
    world.all_others_go_on();
    let before = panics();
    wait_until("they are still made", || panics() > before + 3);
    assert!(bad.shutdown(TIMEOUT).threads_joined);
    world.end();
}
