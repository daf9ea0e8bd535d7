//! Public bug reports about memory that bad or silent servers took.
//!
//! The allocations of the whole process are counted, so this is one test that runs its scenarios one
//! after the other.
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

use std::alloc::System;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rocketmq_blocking::{DefaultMQProducerBuilder, Message};
use rocketmq_protocol::request_code;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use support::{FakePeer, producer_at, reply_to, started, stored_reply};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const MEBIBYTE: isize = 1024 * 1024;

/// Bytes in use.
fn in_use() -> isize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated as isize - stats.bytes_deallocated as isize
}

fn builder(namesrv: &str) -> DefaultMQProducerBuilder {
    producer_at(namesrv).retry_times_when_send_failed(0)
}

#[test]
fn servers_that_send_nonsense_or_nothing_take_no_memory() {
    b66_the_longest_frame_from_a_slow_sender();
    b69_calls_that_are_never_answered();
}

/// The processor time that event loops of this process have used, in the system's ticks of 10 ms.
fn event_loop_ticks() -> u64 {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    tasks
        .filter_map(|task| fs::read_to_string(task.ok()?.path().join("stat")).ok())
        .filter(|stat| stat.contains("MioClientSelect"))
        .filter_map(|stat| {
            let (_, fields) = stat.rsplit_once(')')?;
            let fields: Vec<_> = fields.split_whitespace().collect();
            Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
        })
        .sum()
}

/// apache/rocketmq#8086, #6784 and #2015: a length that is just allowed, of a frame that comes byte
/// by byte. The call times out, the event loop sleeps between the bytes, and what has not come takes
/// no memory.
fn b66_the_longest_frame_from_a_slow_sender() {
    const CONNECTIONS: usize = 8;
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    let broker = FakePeer::start(move |stream, request| {
        if request.code != request_code::SEND_MESSAGE_V2 {
            return stream.write_all(&reply_to(&request, 0, Vec::new())).is_ok();
        }
        count.fetch_add(1, Ordering::SeqCst);
        let mut stream = stream.try_clone().unwrap();
        thread::spawn(move || {
            let begun = stream.write_all(&[0x00, 0xff, 0xff, 0xfc]);
            while begun.is_ok() && stream.write_all(&[0]).is_ok() {
                thread::sleep(Duration::from_millis(5));
            }
        });
        true
    });
    let name_server = FakePeer::name_server("fake", broker.addr());
    let timeout = Duration::from_millis(1500);
    let producers: Vec<_> = (0..CONNECTIONS)
        .map(|_| started(builder(&name_server.addr()).send_msg_timeout(timeout)))
        .collect();
    let before = in_use();
    let (begun, ticks) = (Instant::now(), event_loop_ticks());
    let sends: Vec<_> = producers
        .iter()
        .map(|producer| {
            let producer = producer.clone();
            thread::spawn(move || producer.send(&Message::new("T", "m")).unwrap_err())
        })
        .collect();
    support::wait_until("all wait for the end of a frame", || {
        connections.load(Ordering::SeqCst) == CONNECTIONS
    });
    let mut most = 0;
    while sends.iter().any(|send| !send.is_finished()) {
        most = most.max(in_use() - before);
        thread::sleep(Duration::from_millis(10));
    }
    for send in sends {
        let error = send.join().unwrap();
        assert!(error.to_string().contains("no answer from"), "{error}");
    }
    let used = Duration::from_millis(10 * (event_loop_ticks() - ticks));
    assert!(
        used < begun.elapsed() / 2,
        "{used:?} of {:?}",
        begun.elapsed()
    );
    assert!(
        most < CONNECTIONS as isize * MEBIBYTE,
        "{most} bytes for {CONNECTIONS} frames that have hardly begun"
    );
    for producer in producers {
        assert!(producer.shutdown(Duration::from_secs(10)).threads_joined);
    }
}

/// apache/rocketmq-client-go#646 and apache/rocketmq#8250: calls that were never answered stayed in
/// memory for ever. 10,000 of them leave nothing behind that counts.
fn b69_calls_that_are_never_answered() {
    const CALLERS: usize = 50;
    const CALLS: usize = 200;
    let kept = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&kept);
    let broker = FakePeer::start(move |stream, request| {
        if request.code != request_code::SEND_MESSAGE_V2 {
            return stream.write_all(&reply_to(&request, 0, Vec::new())).is_ok();
        }
        count.fetch_add(1, Ordering::SeqCst);
        let silent = request.body_bytes() != b"last";
        silent || stream.write_all(&stored_reply(&request, "0A")).is_ok()
    });
    let name_server = FakePeer::name_server("fake", broker.addr());
    let producer = started(
        builder(&name_server.addr())
            .compress_msg_body_over_howmuch(usize::MAX)
            .close_socket_if_timeout(false),
    );
    producer.send(&Message::new("T", "last")).unwrap();
    let before = in_use();
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let producer = producer.clone();
            thread::spawn(move || {
                let message = Message::new("T", vec![b'x'; 8 * 1024]);
                for _ in 0..CALLS {
                    let error = producer
                        .send_with_timeout(&message, Duration::from_millis(10))
                        .unwrap_err();
                    assert!(error.is_retryable(), "{error:?}");
                }
            })
        })
        .collect();
    for caller in callers {
        caller.join().unwrap();
    }
    producer.send(&Message::new("T", "last")).unwrap();
    let grown = in_use() - before;
    assert!(
        kept.load(Ordering::SeqCst) > CALLERS * CALLS / 2,
        "most calls reached the broker"
    );
    assert!(grown < 5 * MEBIBYTE, "{grown} bytes are left");
    assert_eq!(broker.connections(), 1);
}
