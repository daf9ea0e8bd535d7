//! What needs no broker: dividing queues, decoding a pull's reply, choosing a queue.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rocketmq_blocking::MessageQueue;
use rocketmq_blocking::internals::{SelectQueue, sort_client_ids};
use rocketmq_blocking::rebalance::{
    AllocateMessageQueueAveragely, AllocateMessageQueueConsistentHash, AllocateMessageQueueStrategy,
};
use rocketmq_protocol::{CodecError, StoredMessages};

use crate::measure::{Failure, Line, Options};

const ROUND: Duration = Duration::from_millis(300);
const ROUNDS: usize = 5;

/// Nanoseconds of an operation: the median of some rounds and the best one, after a round to warm up.
fn measure(name: &str, per: usize, mut operation: impl FnMut()) {
    let mut nanos: Vec<f64> = (0..=ROUNDS)
        .map(|_| {
            let begun = Instant::now();
            let mut times = 0_usize;
            while begun.elapsed() < ROUND {
                operation();
                times += 1;
            }
            begun.elapsed().as_nanos() as f64 / times as f64 / per as f64
        })
        .skip(1)
        .collect();
    nanos.sort_by(f64::total_cmp);
    let at = |index: usize| nanos.get(index).copied().unwrap_or(f64::NAN);
    Line::of("cpu")
        .text("name", name)
        .number("ns", at(ROUNDS / 2))
        .number("min_ns", at(0))
        .count("errors", 0)
        .print();
}

/// The same order in each run.
fn shuffle<T>(items: &mut [T], mut seed: u64) {
    for end in (1..items.len()).rev() {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let other = usize::try_from(seed >> 33).unwrap_or(0) % (end + 1);
        items.swap(end, other);
    }
}

pub(crate) fn all(options: &Options) -> Result<(), Failure> {
    for queues in [1000, 10_000] {
        allocate(queues)?;
    }
    if let Ok(reply) = std::fs::read(options.text("fixture", "pull32.bin")) {
        decode(Bytes::from(reply))?;
    } else {
        eprintln!("no --fixture: decoding is left out");
    }
    select();
    Ok(())
}

fn allocate(queues: i32) -> Result<(), Failure> {
    // Queues of a route share their names.
    let topic: Arc<str> = "bench_topic".into();
    let brokers = (0..10).map(|n| format!("broker-{n}").into());
    let mut all: Vec<MessageQueue> = brokers
        .flat_map(|broker: Arc<str>| {
            let ids = 0..queues / 10;
            let topic = Arc::clone(&topic);
            ids.map(move |id| MessageQueue::new(Arc::clone(&topic), Arc::clone(&broker), id))
        })
        .collect();
    let mut members: Vec<String> = (0..1000)
        .map(|n| format!("10.0.{}.{}@{}#{n}", n / 256, n % 256, 1000 + n * 7))
        .collect();
    let me = members.get(500).cloned().unwrap_or_default();
    shuffle(&mut all, 1);
    shuffle(&mut members, 2);
    let strategies: [(&str, Box<dyn AllocateMessageQueueStrategy>); 2] = [
        ("avg", Box::new(AllocateMessageQueueAveragely)),
        (
            "hash",
            Box::new(AllocateMessageQueueConsistentHash::default()),
        ),
    ];
    for (name, strategy) in strategies {
        strategy.allocate("g", &me, &all, &members)?;
        // The copies lie in the same memory each time: other clients copy references only.
        let (mut sorted, mut sorted_members) = (all.clone(), members.clone());
        measure(&format!("{name}-{queues}"), 1, || {
            sorted.clone_from(&all);
            sorted_members.clone_from(&members);
            MessageQueue::sort(&mut sorted);
            sort_client_ids(&mut sorted_members);
            let _ = black_box(strategy.allocate("g", &me, &sorted, &sorted_members));
        });
    }
    Ok(())
}

fn decode(reply: Bytes) -> Result<(), Failure> {
    let count = StoredMessages::new(reply.clone()).count();
    let messages = || {
        // A consumer knows by the reply's offsets how many come.
        let mut messages = Vec::with_capacity(count);
        for message in StoredMessages::new(reply.clone()) {
            messages.push(message?);
        }
        Ok::<_, CodecError>(messages)
    };
    messages()?;
    measure("decode", count, || {
        let _ = black_box(messages());
    });
    Ok(())
}

/// With a clone of the queue, and without one as in Java, where it is a reference.
fn select() {
    const TIMES: usize = 1000;
    let queues =
        SelectQueue::new((0..8).map(|id| MessageQueue::new("bench_topic", "broker-a", id)));
    measure("round-robin", TIMES, || {
        for _ in 0..TIMES {
            black_box(queues.next());
        }
    });
    measure("round-robin-borrowed", TIMES, || {
        for _ in 0..TIMES {
            black_box(queues.next_borrowed());
        }
    });
}
