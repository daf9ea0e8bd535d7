//! Limits of what asynchronous sends have under way, changed while messages are sent.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and is outside of what loom models"
)]

mod support;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use rocketmq_blocking::{DefaultMQProducer, Error, Message, SendFailure, SendResult, request_code};
use rocketmq_embedded::{Cluster, ControlAction, ControlHandle, ControlTimes};
use support::{GENEROUS, producer_at, started, wait_until};

type Outcome = Result<SendResult, SendFailure>;

const MIB: usize = 1024 * 1024;

struct World {
    _cluster: Cluster,
    producer: DefaultMQProducer,
    /// Sends stay at the broker until it lets them go.
    held: ControlHandle,
    told: Sender<Outcome>,
    outcomes: Receiver<Outcome>,
}

impl World {
    fn start() -> Self {
        let cluster = Cluster::builder().start().unwrap();
        cluster.create_topic("T", 1).unwrap();
        let producer = started(
            producer_at(&cluster.namesrv_addr())
                .send_msg_timeout(GENEROUS)
                .enable_backpressure_for_async_mode(true)
                .back_pressure_for_async_send_num(10)
                .back_pressure_for_async_send_size(MIB),
        );
        producer.send(&Message::new("T", "first")).unwrap();
        let held = cluster.control(
            request_code::SEND_MESSAGE_V2,
            ControlAction::Hold,
            ControlTimes::UntilLifted,
        );
        let (told, outcomes) = channel();
        Self {
            _cluster: cluster,
            producer,
            held,
            told,
            outcomes,
        }
    }

    fn send(&self, length: usize, timeout: Duration) -> Result<(), SendFailure> {
        let told = self.told.clone();
        let message = Message::new("T", vec![b'x'; length]);
        self.producer
            .send_async_with_timeout(message, timeout, move |outcome| {
                told.send(outcome).unwrap();
            })
    }

    /// Whether a send finds no room.
    fn is_full(&self, length: usize) -> bool {
        match self.send(length, Duration::from_millis(20)) {
            Ok(()) => false,
            Err(failure) => {
                let error = failure.error();
                assert!(
                    matches!(error, Error::RemotingTooMuchRequest { .. }),
                    "{error}"
                );
                true
            }
        }
    }

    /// Sends once there is room, on a thread of its own.
    fn waiting(&self) -> (thread::JoinHandle<()>, Receiver<()>) {
        let (producer, told) = (self.producer.clone(), self.told.clone());
        let (sent, is_sent) = channel();
        let thread = thread::spawn(move || {
            let tell = move |outcome| told.send(outcome).unwrap();
            producer.send_async(Message::new("T", "m"), tell).unwrap();
            sent.send(()).unwrap();
        });
        (thread, is_sent)
    }

    /// Lets all go, and counts the callbacks.
    fn end(self) -> usize {
        self.held.lift();
        wait_until("no room is in use", || {
            self.producer.back_pressure_in_use() == (0, 0)
        });
        self.producer.shutdown(GENEROUS);
        drop(self.told);
        self.outcomes
            .iter()
            .map(|outcome| drop(outcome.unwrap()))
            .count()
    }
}

#[test]
fn more_room_lets_on_who_waits_and_less_counts_what_is_under_way() {
    let world = World::start();
    for _ in 0..10 {
        world.send(1, GENEROUS).unwrap();
    }
    assert_eq!(world.producer.back_pressure_in_use(), (10, 10));
    assert!(world.is_full(1));
    let (waits, sent) = world.waiting();
    world
        .producer
        .set_back_pressure_for_async_send_num(12)
        .unwrap();
    sent.recv_timeout(GENEROUS).unwrap();
    waits.join().unwrap();
    world.send(1, GENEROUS).unwrap();
    assert!(world.is_full(1));
    assert_eq!(world.producer.back_pressure_in_use().0, 12);

    world
        .producer
        .set_back_pressure_for_async_send_num(11)
        .unwrap();
    wait_until("all are at the broker", || world.held.held() == 12);
    assert!(world.is_full(1));
    world.held.release();
    for _ in 0..12 {
        world.outcomes.recv_timeout(GENEROUS).unwrap().unwrap();
    }
    // What was given back is room again, no more than there may be.
    for _ in 0..11 {
        world.send(1, GENEROUS).unwrap();
    }
    assert!(world.is_full(1));
    assert_eq!(world.producer.back_pressure_for_async_send_num(), 11);
    assert_eq!(world.end(), 11);
}

#[test]
fn the_room_in_bytes_changes_as_well() {
    let world = World::start();
    world.send(MIB, GENEROUS).unwrap();
    assert!(world.is_full(1));
    world
        .producer
        .set_back_pressure_for_async_send_size(2 * MIB)
        .unwrap();
    world.send(MIB, GENEROUS).unwrap();
    assert!(world.is_full(1));
    assert_eq!(world.producer.back_pressure_in_use(), (2, 2 * MIB));
    assert_eq!(world.producer.back_pressure_for_async_send_size(), 2 * MIB);
    assert_eq!(world.end(), 2);
}

#[test]
fn it_is_switched_off_and_on_while_sends_wait() {
    let world = World::start();
    for _ in 0..10 {
        world.send(1, GENEROUS).unwrap();
    }
    let (waits, sent) = world.waiting();
    world.producer.set_enable_backpressure_for_async_mode(false);
    assert!(!world.producer.is_enable_backpressure_for_async_mode());
    sent.recv_timeout(GENEROUS).unwrap();
    waits.join().unwrap();
    for _ in 0..5 {
        world.send(1, GENEROUS).unwrap();
    }
    world.producer.set_enable_backpressure_for_async_mode(true);
    assert!(world.is_full(1));
    assert_eq!(world.end(), 16);
}

#[test]
fn limits_that_are_too_small_are_refused_and_change_nothing() {
    let world = World::start();
    let problems = |result: Result<(), Error>| match result.unwrap_err() {
        Error::InvalidConfig { problems } => problems,
        error => panic!("{error}"),
    };
    let producer = &world.producer;
    assert_eq!(
        problems(producer.set_back_pressure_for_async_send_num(9)),
        ["back_pressure_for_async_send_num is 9, the least is 10"]
    );
    assert_eq!(
        problems(producer.set_back_pressure_for_async_send_size(MIB - 1)),
        ["back_pressure_for_async_send_size is 1048575, the least is 1048576"]
    );
    assert_eq!(producer.back_pressure_for_async_send_num(), 10);
    assert_eq!(producer.back_pressure_for_async_send_size(), MIB);
    assert_eq!(world.end(), 0);
}
