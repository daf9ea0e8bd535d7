//! A great many small messages from eight threads, with and without batches: each callback once, and no
//! more memory than the room that is set.
//!
//! The client is a process of its own, so that what it takes is not mixed up with what the broker keeps:
//! `VmHWM` of its `/proc/self/status` is the most memory it ever had, and `back_pressure_in_use` the room
//! that its sends took, looked at after each send. The million is
//!
//! ```text
//! cargo test --release --test million a_million -- --exact --ignored --nocapture
//! ```
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, prints its figures, and is outside of what loom models"
)]

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use rocketmq_blocking::{
    DefaultMQProducer, MQClientManager, Message, SendFailure, SendResult, request_code,
};
use rocketmq_embedded::Cluster;

const CHILD: &str = "ROCKETMQ_TEST_CHILD";
const THREADS: usize = 8;
const BODY: usize = 100;
const ROOM_IN_BYTES: usize = 1024 * 1024;
/// What the client may grow by while it sends, whatever the number of messages. A send under way takes
/// about 2 KiB.
const MOST_GROWTH_KIB: usize = 64 * 1024;
/// No send of these fails because of a busy machine.
const PATIENT: Duration = Duration::from_secs(600);

/// How messages are sent.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// Each in a request of its own.
    Single,
    /// Gathered into batches.
    Gathered,
}

impl Form {
    /// How many sends may be under way.
    const fn room(self) -> usize {
        match self {
            Self::Single => 1000,
            Self::Gathered => 8000,
        }
    }
}

/// A figure of this process's status, in KiB.
fn status(name: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// How often each callback was run, and how the sends ended.
struct Told {
    times: Vec<AtomicU8>,
    failed: AtomicUsize,
}

impl Told {
    fn tell(&self, number: usize, outcome: &Result<SendResult, SendFailure>) {
        self.times[number].fetch_add(1, Ordering::Relaxed);
        if let Err(failure) = outcome {
            if self.failed.fetch_add(1, Ordering::Relaxed) == 0 {
                println!("the first failure: {failure}");
            }
        }
    }
}

/// Sends every eighth message, and tells the most room that was in use.
fn send_share(
    producer: &DefaultMQProducer,
    told: &Arc<Told>,
    (first, messages): (usize, usize),
) -> (usize, usize) {
    let mut peak = (0, 0);
    for number in (first..messages).step_by(THREADS) {
        let mut body = vec![b'x'; BODY];
        body[..8].copy_from_slice(&(number as u64).to_be_bytes());
        let told = Arc::clone(told);
        producer
            .send_async(Message::new("T", body), move |outcome| {
                told.tell(number, &outcome);
            })
            .unwrap();
        let (count, bytes) = producer.back_pressure_in_use();
        peak = (peak.0.max(count), peak.1.max(bytes));
    }
    peak
}

#[test]
#[ignore = "the client's process, run by the other tests"]
fn client() {
    let spec = env::var(CHILD).expect("only as a child");
    let mut spec = spec.split(' ');
    let mut next = || spec.next().unwrap();
    let (namesrv, messages, room) = (next(), next(), next());
    let messages: usize = messages.parse().unwrap();
    let producer = DefaultMQProducer::builder("p")
        .client_manager(&MQClientManager::new())
        .namesrv_addr(namesrv)
        .mq_client_api_timeout(PATIENT)
        .connect_timeout(PATIENT)
        .send_msg_timeout(PATIENT)
        .auto_batch(next() == "Gathered")
        .enable_backpressure_for_async_mode(true)
        .back_pressure_for_async_send_num(room.parse().unwrap())
        .back_pressure_for_async_send_size(ROOM_IN_BYTES)
        .build()
        .unwrap();
    producer.start().unwrap();
    producer.send(&Message::new("T", "first")).unwrap();
    let told = Arc::new(Told {
        times: (0..messages).map(|_| AtomicU8::new(0)).collect(),
        failed: AtomicUsize::new(0),
    });
    let before = status("VmHWM");
    let begin = Arc::new(Barrier::new(THREADS + 1));
    let threads: Vec<_> = (0..THREADS)
        .map(|first| {
            let (producer, told) = (producer.clone(), Arc::clone(&told));
            let begin = Arc::clone(&begin);
            thread::spawn(move || {
                begin.wait();
                send_share(&producer, &told, (first, messages))
            })
        })
        .collect();
    begin.wait();
    let began = Instant::now();
    let peaks: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
    let report = producer.shutdown(PATIENT);
    let took = began.elapsed();
    let once = |times: &&AtomicU8| times.load(Ordering::Relaxed) == 1;
    let figures = [
        ("callbacks", told.times.iter().filter(once).count()),
        ("failed", told.failed.load(Ordering::Relaxed)),
        ("abandoned", report.abandoned),
        ("most_sends", peaks.iter().map(|p| p.0).max().unwrap()),
        ("most_bytes", peaks.iter().map(|p| p.1).max().unwrap()),
        ("growth_kib", status("VmHWM") - before),
        ("most_kib", status("VmHWM")),
        ("millis", took.as_millis() as usize),
    ];
    let figures = figures.map(|(name, value)| format!("{name}={value}"));
    println!("figures {}", figures.join(" "));
}

fn show(messages: usize, form: Form) {
    let cluster = Cluster::builder().brokers(2).start().unwrap();
    cluster.create_topic("T", 4).unwrap();
    let namesrv = cluster.namesrv_addr();
    let room = form.room();
    let output = Command::new(env::current_exe().unwrap())
        .args(["client", "--exact", "--ignored", "--nocapture"])
        .env(CHILD, format!("{namesrv} {messages} {room} {form:?}"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let line = text.lines().find_map(|line| line.split_once("figures "));
    let (_, line) = line.unwrap_or_else(|| panic!("no figures in {text}"));
    let figures: BTreeMap<&str, usize> = line
        .split(' ')
        .map(|figure| {
            let (name, value) = figure.split_once('=').unwrap();
            (name, value.parse().unwrap())
        })
        .collect();
    let requests = cluster.request_count(request_code::SEND_MESSAGE_V2)
        + cluster.request_count(request_code::SEND_BATCH_MESSAGE);
    println!("{form:?} {messages}: requests={requests} {line}");

    assert_eq!(figures["callbacks"], messages, "each once: {text}");
    assert_eq!((figures["failed"], figures["abandoned"]), (0, 0), "{text}");
    assert_eq!(cluster.stored_count("T"), messages + 1);
    assert!((1..=room).contains(&figures["most_sends"]), "{line}");
    assert!(
        (BODY..=ROOM_IN_BYTES).contains(&figures["most_bytes"]),
        "{line}"
    );
    assert!(figures["growth_kib"] < MOST_GROWTH_KIB, "{line}");
    match form {
        Form::Single => assert_eq!(requests, messages as u64 + 1),
        Form::Gathered => assert!(requests < messages as u64 / 10, "{requests}"),
    }
}

#[test]
fn fifty_thousand() {
    show(10_000, Form::Single);
    show(40_000, Form::Gathered);
}

#[test]
#[ignore = "takes minutes without optimisation; the command is above"]
fn a_million() {
    show(1_000_000, Form::Single);
    show(1_000_000, Form::Gathered);
}
