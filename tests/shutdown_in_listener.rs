//! A shutdown called in a listener: it is done in the background, and the listener's result counts.
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

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use rocketmq_blocking::service::ServiceState;
use rocketmq_blocking::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, DefaultMQProducer,
    DefaultMQPushConsumer, MQClientManager, Message, MessageExt, MessageQueue, ShutdownReport,
};
use support::{GENEROUS, Inbox, Target, holds_within, library_threads, quick, unique, wait_until};

/// Tests that count the process's threads run one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

struct World {
    target: Target,
    topic: String,
    manager: MQClientManager,
    held: Option<Arc<()>>,
    watch: Weak<()>,
}

impl World {
    /// A topic of one queue with so many messages.
    fn with_messages(count: usize) -> Self {
        let target = Target::start(1);
        let topic = unique("T");
        target.create_topic(&topic, 1);
        let manager = MQClientManager::new();
        let producer = DefaultMQProducer::builder("p")
            .client_manager(&manager)
            .namesrv_addr(target.namesrv())
            .build()
            .unwrap();
        producer.start().unwrap();
        for n in 0..count {
            producer
                .send(&Message::new(topic.as_str(), format!("m{n}")))
                .unwrap();
        }
        producer.shutdown(GENEROUS);
        let held = Arc::new(());
        Self {
            target,
            topic,
            manager,
            watch: Arc::downgrade(&held),
            held: Some(held),
        }
    }

    /// Starts a consumer whose listener is given with each call; it is not called before the last
    /// of the consumers has been put into its place.
    fn consumer(
        &self,
        group: &str,
        on_message: impl Fn() + Send + Sync + 'static,
    ) -> DefaultMQPushConsumer {
        let held = self.held.clone();
        let consumer = quick(DefaultMQPushConsumer::builder(group))
            .client_manager(&self.manager)
            .namesrv_addr(self.target.namesrv())
            .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
            .subscribe(&self.topic, "*")
            .message_listener(
                move |_: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
                    let _held = &held;
                    on_message();
                    ConsumeConcurrentlyStatus::ConsumeSuccess
                },
            )
            .build()
            .unwrap();
        consumer.start().unwrap();
        consumer
    }

    /// What the broker knows, and a new member receives, after the messages that were done.
    #[track_caller]
    fn assert_done(&self, group: &str, offset: usize) {
        if let Some(cluster) = self.target.embedded() {
            let mq = MessageQueue::new(self.topic.as_str(), "broker-a", 0);
            assert_eq!(cluster.committed_offset(group, &mq), Some(offset as i64));
            wait_until("the group is left", || {
                cluster.consumer_ids(group).is_empty()
            });
        }
        let producer = DefaultMQProducer::builder("p")
            .client_manager(&self.manager)
            .namesrv_addr(self.target.namesrv())
            .build()
            .unwrap();
        producer.start().unwrap();
        producer
            .send(&Message::new(self.topic.as_str(), "next"))
            .unwrap();
        let inbox = Inbox::new();
        let next = quick(DefaultMQPushConsumer::builder(group))
            .client_manager(&self.manager)
            .namesrv_addr(self.target.namesrv())
            .subscribe(&self.topic, "*")
            .message_listener(inbox.listener())
            .build()
            .unwrap();
        next.start().unwrap();
        let first = &inbox.wait_for(1)[0];
        assert_eq!(first.queue_offset(), offset as i64, "{first:?}");
    }

    #[track_caller]
    fn assert_nothing_left(mut self) {
        drop(self.held.take());
        if !holds_within(GENEROUS, || library_threads().is_empty()) {
            panic!("threads are left: {:?}", library_threads());
        }
        assert_eq!(self.manager.instance_count(), 0);
        wait_until("the listeners are released", || {
            self.watch.upgrade().is_none()
        });
    }
}

/// Where a listener finds a consumer that is built after it.
type Place = Arc<OnceLock<DefaultMQPushConsumer>>;

fn shut_down(place: &Place) -> ShutdownReport {
    wait_until("the test has put the consumer into its place", || {
        place.get().is_some()
    });
    place.get().unwrap().shutdown(Duration::from_secs(10))
}

#[track_caller]
fn deferred(reports: &Receiver<ShutdownReport>) {
    let report = reports.recv_timeout(GENEROUS).unwrap();
    assert!(report.deferred, "{report:?}");
}

#[track_caller]
fn ended(consumer: &DefaultMQPushConsumer) -> ShutdownReport {
    let report = consumer.await_termination(GENEROUS).expect("it ends");
    assert!(!report.deferred && report.threads_joined, "{report:?}");
    assert_eq!(report.abandoned, 0, "{report:?}");
    assert_eq!(consumer.service_state(), ServiceState::ShutdownAlready);
    assert_eq!(consumer.client_id(), None);
    assert_eq!(consumer.owned_queues(), []);
    assert_eq!(
        consumer.shutdown(Duration::ZERO),
        report,
        "later calls return the first report"
    );
    report
}

#[test]
fn by_one_listener() {
    let _alone = alone();
    let world = World::with_messages(1);
    let group = unique("g");
    let place = Place::default();
    let (told, reports) = channel();
    let (told, own) = (Mutex::new(told), Arc::clone(&place));
    let consumer = world.consumer(&group, move || {
        let report = shut_down(&own);
        let again = own.get().unwrap().shutdown(GENEROUS);
        assert_eq!(
            again, report,
            "a second call does not wait for this one either"
        );
        assert_eq!(own.get().unwrap().await_termination(GENEROUS), None);
        told.lock().unwrap().send(report).unwrap();
    });
    place.set(consumer.clone()).unwrap();
    deferred(&reports);
    let report = ended(&consumer);
    assert_eq!(report.drained, 1, "the call that shut down");
    assert!(report.offsets_saved >= 1, "{report:?}");
    world.assert_done(&group, 1);
    drop((place, consumer));
    world.assert_nothing_left();
}

#[test]
fn by_two_listeners_of_one_instance_at_once() {
    let _alone = alone();
    let world = World::with_messages(1);
    let meet = Arc::new(Barrier::new(2));
    let (told, reports) = channel();
    let clients: Vec<_> = [unique("g"), unique("h")]
        .into_iter()
        .map(|group| {
            let place = Place::default();
            let (told, own) = (Mutex::new(told.clone()), Arc::clone(&place));
            let meet = Arc::clone(&meet);
            let consumer = world.consumer(&group, move || {
                meet.wait();
                let report = shut_down(&own);
                told.lock().unwrap().send(report).unwrap();
            });
            place.set(consumer.clone()).unwrap();
            (group, consumer)
        })
        .collect();
    assert_eq!(world.manager.instance_count(), 1);
    for _ in &clients {
        deferred(&reports);
    }
    for (_, consumer) in &clients {
        ended(consumer);
    }
    assert_eq!(world.manager.instance_count(), 0);
    world.assert_done(&clients[0].0, 1);
    drop(clients);
    world.assert_nothing_left();
}

#[test]
fn by_two_threads_of_one_consumer_at_once() {
    let _alone = alone();
    let world = World::with_messages(2);
    let group = unique("g");
    let meet = Barrier::new(2);
    let place = Place::default();
    let (told, reports) = channel();
    let (told, own) = (Mutex::new(told), Arc::clone(&place));
    let consumer = world.consumer(&group, move || {
        meet.wait();
        let report = shut_down(&own);
        told.lock().unwrap().send(report).unwrap();
    });
    place.set(consumer.clone()).unwrap();
    deferred(&reports);
    deferred(&reports);
    let report = ended(&consumer);
    assert!(report.drained <= 2, "{report:?}");
    world.assert_done(&group, 2);
    drop((place, consumer));
    world.assert_nothing_left();
}

#[test]
fn of_the_other_one_by_each_of_two() {
    let _alone = alone();
    let world = World::with_messages(1);
    let meet = Arc::new(Barrier::new(2));
    let places = [Place::default(), Place::default()];
    let (told, reports) = channel();
    let groups = [unique("g"), unique("h")];
    let consumers = [0, 1].map(|index: usize| {
        let other = Arc::clone(&places[1 - index]);
        let (meet, told) = (Arc::clone(&meet), Mutex::new(told.clone()));
        world.consumer(&groups[index], move || {
            meet.wait();
            let report = shut_down(&other);
            told.lock().unwrap().send(report).unwrap();
        })
    });
    for (place, consumer) in places.iter().zip(&consumers) {
        place.set(consumer.clone()).unwrap();
    }
    deferred(&reports);
    deferred(&reports);
    for consumer in &consumers {
        ended(consumer);
    }
    world.assert_done(&groups[0], 1);
    drop((places, consumers));
    world.assert_nothing_left();
}

#[test]
fn while_another_thread_shuts_down_as_well() {
    let _alone = alone();
    let world = World::with_messages(1);
    let group = unique("g");
    let place = Place::default();
    let (told, reports) = channel();
    let (told, own) = (Mutex::new(told), Arc::clone(&place));
    let (entered, entries) = channel();
    let entered = Mutex::new(entered);
    let consumer = world.consumer(&group, move || {
        entered.lock().unwrap().send(()).unwrap();
        wait_until("the other thread has begun", || {
            own.get()
                .is_some_and(|c| c.service_state() == ServiceState::ShutdownAlready)
        });
        told.lock().unwrap().send(shut_down(&own)).unwrap();
    });
    place.set(consumer.clone()).unwrap();
    entries.recv_timeout(GENEROUS).unwrap();
    let report = consumer.shutdown(GENEROUS);
    deferred(&reports);
    assert_eq!(report, ended(&consumer));
    assert_eq!(report.drained, 1);
    world.assert_done(&group, 1);
    drop((place, consumer));
    world.assert_nothing_left();
}

#[test]
fn of_a_producer_that_the_listener_sends_with() {
    let _alone = alone();
    let world = World::with_messages(1);
    let group = unique("g");
    let producer = DefaultMQProducer::builder("q")
        .client_manager(&world.manager)
        .namesrv_addr(world.target.namesrv())
        .build()
        .unwrap();
    producer.start().unwrap();
    let (told, reports) = channel();
    let (told, sender, topic) = (Mutex::new(told), producer.clone(), unique("Elsewhere"));
    world.target.create_topic(&topic, 1);
    let consumer = world.consumer(&group, move || {
        sender
            .send(&Message::new(topic.as_str(), "from a listener"))
            .unwrap();
        told.lock()
            .unwrap()
            .send(sender.shutdown(GENEROUS))
            .unwrap();
    });
    deferred(&reports);
    assert!(
        producer
            .await_termination(GENEROUS)
            .expect("it ends")
            .threads_joined
    );
    assert_eq!(producer.service_state(), ServiceState::ShutdownAlready);
    assert_eq!(consumer.service_state(), ServiceState::Running);
    assert!(consumer.shutdown(GENEROUS).threads_joined);
    drop((producer, consumer));
    world.assert_nothing_left();
}
