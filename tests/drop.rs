//! Clients that are dropped without a shutdown, in every state, leave nothing behind.
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

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier, Mutex, Weak};
use std::thread;
use std::time::Duration;

use rocketmq_blocking::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, DefaultMQProducer,
    DefaultMQPushConsumer, DefaultMQPushConsumerBuilder, MQClientManager, Message, MessageExt,
    MessageQueue,
};
use rocketmq_embedded::{Cluster, ControlAction, ControlTimes};
use support::{GENEROUS, assert_nothing_left, quick, wait_until};

const SEND_MESSAGE_V2: i32 = 310;

/// A cluster and a manager of one scenario.
struct World {
    cluster: Cluster,
    manager: MQClientManager,
    /// Held by every listener; dead when all of them are gone.
    held: Option<Arc<()>>,
    watch: Weak<()>,
}

impl World {
    fn start() -> Self {
        let cluster = Cluster::builder().brokers(2).start().unwrap();
        cluster.create_topic("T", 4).unwrap();
        let held = Arc::new(());
        Self {
            cluster,
            manager: MQClientManager::new(),
            watch: Arc::downgrade(&held),
            held: Some(held),
        }
    }

    fn producer(&self) -> DefaultMQProducer {
        DefaultMQProducer::builder("p")
            .client_manager(&self.manager)
            .namesrv_addr(&self.cluster.namesrv_addr())
            .build()
            .unwrap()
    }

    fn consumer_builder(&self) -> DefaultMQPushConsumerBuilder {
        quick(DefaultMQPushConsumer::builder("g"))
            .client_manager(&self.manager)
            .namesrv_addr(&self.cluster.namesrv_addr())
            .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
            .subscribe("T", "*")
    }

    /// A consumer that calls `on_message` with each message.
    fn consumer(&self, on_message: impl Fn() + Send + Sync + 'static) -> DefaultMQPushConsumer {
        let held = self.held.clone();
        self.consumer_builder()
            .message_listener(
                move |_: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
                    let _held = &held;
                    on_message();
                    ConsumeConcurrentlyStatus::ConsumeSuccess
                },
            )
            .build()
            .unwrap()
    }

    fn send(&self, count: usize) {
        let producer = self.producer();
        producer.start().unwrap();
        for _ in 0..count {
            producer.send(&Message::new("T", "m")).unwrap();
        }
    }

    fn wait_until_it_owns_its_queues(&self, consumer: &DefaultMQPushConsumer) {
        wait_until("the consumer owns all queues", || {
            owned_of_topic(consumer) == 8
        });
    }

    #[track_caller]
    fn end(mut self) {
        drop(self.held.take());
        assert_nothing_left(&self.cluster, &self.manager, &["g"]);
        wait_until("the listeners are released", || {
            self.watch.upgrade().is_none()
        });
    }
}

fn owned_of_topic(consumer: &DefaultMQPushConsumer) -> usize {
    let queues = consumer.owned_queues();
    queues.iter().filter(|mq| mq.topic() == "T").count()
}

fn signal() -> (Sender<()>, Receiver<()>) {
    channel()
}

#[test]
fn nothing_is_left_of_a_client_that_is_dropped() {
    let scenarios: [(&str, fn()); 15] = [
        ("producer, built only", producer_built_only),
        ("producer, started", producer_started),
        ("producer, having sent", producer_having_sent),
        ("producer, sending", producer_sending),
        ("consumer, built only", consumer_built_only),
        ("consumer, started", consumer_started),
        (
            "consumer, started without servers",
            consumer_started_without_servers,
        ),
        ("consumer, consuming", consumer_consuming),
        (
            "consumer, its listener blocked",
            consumer_with_a_blocked_listener,
        ),
        ("consumer, starting", consumer_starting),
        ("consumer, shutting down", consumer_shutting_down),
        ("consumer, failing to start", consumer_failing_to_start),
        ("last handle in the listener", last_handle_in_the_listener),
        (
            "last handle in the queue listener",
            last_handle_in_the_queue_listener,
        ),
        ("a clone", a_clone),
    ];
    for (name, scenario) in scenarios {
        println!("{name}");
        scenario();
    }
}

fn producer_built_only() {
    let world = World::start();
    drop(world.producer());
    assert_eq!(world.manager.instance_count(), 0);
    world.end();
}

fn producer_started() {
    let world = World::start();
    let producer = world.producer();
    producer.start().unwrap();
    assert_eq!(world.manager.instance_count(), 1);
    drop(producer);
    world.end();
}

fn producer_having_sent() {
    let world = World::start();
    world.send(10);
    world.end();
}

fn producer_sending() {
    let world = World::start();
    let held_up = world.cluster.control(
        SEND_MESSAGE_V2,
        ControlAction::Drop,
        ControlTimes::UntilLifted,
    );
    let producer = world.producer();
    producer.start().unwrap();
    let sender = producer.clone();
    let sending = thread::spawn(move || {
        let message = Message::new("T", "m");
        sender.send_with_timeout(&message, Duration::from_secs(2))
    });
    assert!(held_up.wait_for_hits(1, GENEROUS));
    drop(producer);
    sending.join().unwrap().unwrap_err();
    world.end();
}

fn consumer_built_only() {
    let world = World::start();
    drop(world.consumer(|| {}));
    world.end();
}

fn consumer_started() {
    let world = World::start();
    let consumer = world.consumer(|| {});
    consumer.start().unwrap();
    world.wait_until_it_owns_its_queues(&consumer);
    drop(consumer);
    world.end();
}

fn consumer_started_without_servers() {
    let world = World::start();
    world.cluster.shutdown();
    let consumer = world.consumer(|| {});
    consumer.start().unwrap();
    drop(consumer);
    world.end();
}

fn consumer_consuming() {
    let world = World::start();
    world.send(200);
    let (called, calls) = signal();
    let called = Mutex::new(called);
    let consumer = world.consumer(move || {
        let _ = called.lock().unwrap().send(());
        thread::sleep(Duration::from_millis(5));
    });
    consumer.start().unwrap();
    calls.recv_timeout(GENEROUS).unwrap();
    drop(consumer);
    world.end();
}

fn consumer_with_a_blocked_listener() {
    let world = World::start();
    world.send(8);
    let (called, calls) = signal();
    let called = Mutex::new(called);
    let (release, blocked) = signal();
    let blocked = Mutex::new(blocked);
    let consumer = world.consumer(move || {
        let _ = called.lock().unwrap().send(());
        let _ = blocked.lock().unwrap().recv();
    });
    consumer.start().unwrap();
    calls.recv_timeout(GENEROUS).unwrap();
    drop(consumer);
    drop(release);
    world.end();
}

/// A start and a shutdown, or a drop, that meet: whichever is first, both come to their end.
fn consumer_starting() {
    let world = World::start();
    for round in 0..200 {
        let consumer = world.consumer(|| {});
        let meet = Arc::new(Barrier::new(2));
        let (starting, at) = (consumer.clone(), Arc::clone(&meet));
        let starter = thread::spawn(move || {
            at.wait();
            starting.start()
        });
        meet.wait();
        if round % 2 == 0 {
            consumer.shutdown(Duration::from_secs(5));
        }
        drop(consumer);
        let _ = starter.join().unwrap();
    }
    world.end();
}

fn consumer_shutting_down() {
    let world = World::start();
    world.send(8);
    let (called, calls) = signal();
    let called = Mutex::new(called);
    let consumer = world.consumer(move || {
        let _ = called.lock().unwrap().send(());
        thread::sleep(Duration::from_millis(100));
    });
    consumer.start().unwrap();
    calls.recv_timeout(GENEROUS).unwrap();
    let ending = consumer.clone();
    let shutdown = thread::spawn(move || ending.shutdown(GENEROUS));
    drop(consumer);
    assert!(shutdown.join().unwrap().threads_joined);
    world.end();
}

fn consumer_failing_to_start() {
    let world = World::start();
    let started = world.consumer_builder().instance_name("name");
    let started = started.message_listener(idle).build().unwrap();
    started.start().unwrap();
    let refused = world.consumer_builder().instance_name("name");
    let refused = refused.message_listener(idle).build().unwrap();
    refused.start().unwrap_err();
    drop(refused);
    drop(started);
    world.end();
}

fn idle(_: &[MessageExt], _: &mut ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus {
    ConsumeConcurrentlyStatus::ConsumeSuccess
}

fn last_handle_in_the_listener() {
    let world = World::start();
    world.send(1);
    let handle: Arc<Mutex<Option<DefaultMQPushConsumer>>> = Arc::default();
    let own = Arc::clone(&handle);
    let (dropped, drops) = signal();
    let dropped = Mutex::new(dropped);
    let consumer = world.consumer(move || {
        if let Some(last) = own.lock().unwrap().take() {
            drop(last);
            let _ = dropped.lock().unwrap().send(());
        }
    });
    // Only the listener has it from here on; it cannot run before the start has put it there.
    let mut place = handle.lock().unwrap();
    consumer.start().unwrap();
    *place = Some(consumer);
    drop(place);
    drops.recv_timeout(GENEROUS).unwrap();
    world.end();
}

fn last_handle_in_the_queue_listener() {
    let world = World::start();
    let handle: Arc<Mutex<Option<DefaultMQPushConsumer>>> = Arc::default();
    let own = Arc::clone(&handle);
    let (dropped, drops) = signal();
    let dropped = Mutex::new(dropped);
    let held = world.held.clone();
    let consumer = world
        .consumer_builder()
        .message_listener(idle)
        .message_queue_listener(move |_: &str, _: &[MessageQueue], _: &[MessageQueue]| {
            let _held = &held;
            if let Some(last) = own.lock().unwrap().take() {
                drop(last);
                let _ = dropped.lock().unwrap().send(());
            }
        })
        .build()
        .unwrap();
    let mut place = handle.lock().unwrap();
    consumer.start().unwrap();
    *place = Some(consumer);
    drop(place);
    drops.recv_timeout(GENEROUS).unwrap();
    world.end();
}

fn a_clone() {
    let world = World::start();
    let consumer = world.consumer(|| {});
    consumer.start().unwrap();
    world.wait_until_it_owns_its_queues(&consumer);
    drop(consumer.clone());
    assert_eq!(world.manager.instance_count(), 1, "one handle is left");
    assert_eq!(world.cluster.consumer_ids("g").len(), 1);
    assert_eq!(owned_of_topic(&consumer), 8);
    drop(consumer);
    world.end();
}
