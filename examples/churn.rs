//! The client in a group whose members come and go, for `tests/figures`: `churn` or `stay`, then
//! options as `key=value`. It writes one JSON object a line; `tests/figures/README.md` lists both.
//!
//! ```text
//! cargo run --release --example churn -- churn ns=127.0.0.1:9876 topic=T8 queues=8 tries=1
//! cargo run --release --example churn -- stay ns=127.0.0.1:9876 topic=T8 queues=8
//! ```
//!
//! The topic must exist with so many queues, for instance on
//! `cargo run --release -p rocketmq-embedded -- --brokers 2 --topic T8:4`. `stay` ends with its
//! standard input.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a program, not the library"
)]

mod support;

use std::collections::HashSet;
use std::error::Error;
use std::io::Read;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rocketmq_blocking::rebalance::{
    AllocateError, AllocateMessageQueueAveragely, AllocateMessageQueueStrategy,
};
use rocketmq_blocking::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, DefaultMQPushConsumer,
    MessageExt, MessageQueue,
};
use serde_json::json;
use support::{Options, say};

const SETTLES_WITHIN: Duration = Duration::from_secs(60);
const NOTHING: usize = usize::MAX;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    env_logger::init();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&json!({ "error": error.to_string() }));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Outcome<()> {
    let mut words = std::env::args().skip(1);
    let verb = words.next().ok_or("a verb is missing: churn or stay")?;
    let options = Options::parse(words)?;
    match verb.as_str() {
        "churn" => churn(&options),
        "stay" => stay(&options),
        other => Err(format!("{other:?} is neither churn nor stay").into()),
    }
}

/// What all members of this process were given.
#[derive(Default)]
struct Deliveries(Mutex<Noted>);

#[derive(Default)]
struct Noted {
    /// Broker, queue and offset of each message seen.
    places: HashSet<(String, i32, i64)>,
    all: u64,
    again: u64,
}

impl Deliveries {
    fn note(&self, message: &MessageExt) {
        let place = (
            message.broker_name().to_owned(),
            message.queue_id(),
            message.queue_offset(),
        );
        let mut noted = self.noted();
        noted.all += 1;
        noted.again += u64::from(!noted.places.insert(place));
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all(&self) -> u64 {
        self.noted().all
    }

    fn again(&self) -> u64 {
        self.noted().again
    }
}

/// Java's default strategy, watched: how many queues it gave last.
#[derive(Debug)]
struct Watched {
    topic: String,
    allocated: Arc<AtomicUsize>,
    tell: bool,
}

impl AllocateMessageQueueStrategy for Watched {
    fn name(&self) -> &str {
        AllocateMessageQueueAveragely.name()
    }

    fn allocate(
        &self,
        group: &str,
        me: &str,
        queues: &[MessageQueue],
        ids: &[String],
    ) -> Result<Vec<MessageQueue>, AllocateError> {
        let mine = AllocateMessageQueueAveragely.allocate(group, me, queues, ids)?;
        let of_topic = queues.first().is_some_and(|mq| mq.topic() == self.topic);
        if of_topic && self.allocated.swap(mine.len(), Ordering::SeqCst) != mine.len() && self.tell
        {
            let at = SystemTime::now().duration_since(UNIX_EPOCH);
            let at = at.map_or(0.0, |at| at.as_secs_f64() * 1000.0);
            say(&json!({ "allocated": mine.len(), "at_ms": at }));
        }
        Ok(mine)
    }
}

struct Member {
    consumer: DefaultMQPushConsumer,
    allocated: Arc<AtomicUsize>,
}

impl Member {
    fn new(
        options: &Options,
        instance: &str,
        deliveries: &Arc<Deliveries>,
        tell: bool,
    ) -> Outcome<Self> {
        let allocated = Arc::new(AtomicUsize::new(NOTHING));
        let topic = options.text("topic", "T8");
        let work = Duration::from_micros(options.number("work_us", 0)?);
        let noted = Arc::clone(deliveries);
        let consumer = DefaultMQPushConsumer::builder(options.text("group", "churn"))
            .namesrv_addr(options.text("ns", "127.0.0.1:9876"))
            .instance_name(instance)
            .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
            .allocate_message_queue_strategy(Watched {
                topic: topic.to_owned(),
                allocated: Arc::clone(&allocated),
                tell,
            })
            .subscribe(topic, "*")
            .message_listener(
                move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
                    for message in messages {
                        noted.note(message);
                    }
                    if !work.is_zero() {
                        std::thread::sleep(work);
                    }
                    ConsumeConcurrentlyStatus::ConsumeSuccess
                },
            )
            .build()?;
        Ok(Self {
            consumer,
            allocated,
        })
    }

    fn has(&self, queues: usize) -> bool {
        self.allocated.load(Ordering::SeqCst) == queues
    }
}

/// Milliseconds since then once a condition holds.
fn until(began: Instant, condition: impl Fn() -> bool) -> Outcome<f64> {
    while !condition() {
        if began.elapsed() > SETTLES_WITHIN {
            return Err(format!("not settled within {SETTLES_WITHIN:?}").into());
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    Ok(began.elapsed().as_secs_f64() * 1000.0)
}

fn churn(options: &Options) -> Outcome<()> {
    let deliveries = Arc::new(Deliveries::default());
    let queues = options.number("queues", 8_usize)?;
    let pause = options.millis("pause_ms", 1500)?;
    let first = Member::new(options, "a", &deliveries, false)?;
    first.consumer.start()?;
    until(Instant::now(), || first.has(queues))?;
    for k in 0..options.number("tries", 5_usize)? {
        std::thread::sleep(pause);
        let before = deliveries.again();
        let second = Member::new(options, &format!("b{k}"), &deliveries, false)?;
        let began = Instant::now();
        second.consumer.start()?;
        let join = until(began, || first.has(queues / 2) && second.has(queues / 2))?;
        std::thread::sleep(pause);
        let between = deliveries.again();
        let began = Instant::now();
        let leaving = second.consumer.clone();
        let ended = std::thread::spawn(move || leaving.shutdown(Duration::from_secs(10)));
        let leave = until(began, || first.has(queues))?;
        ended.join().map_err(|_| "the shutdown panicked")?;
        std::thread::sleep(pause);
        say(&json!({
            "join_ms": join,
            "leave_ms": leave,
            "again_join": between - before,
            "again_leave": deliveries.again() - between,
        }));
    }
    first.consumer.shutdown(Duration::from_secs(10));
    say(&json!({ "done": deliveries.all() }));
    Ok(())
}

fn stay(options: &Options) -> Outcome<()> {
    let deliveries = Arc::new(Deliveries::default());
    let member = Member::new(options, options.text("instance", "a"), &deliveries, true)?;
    member.consumer.start()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    member.consumer.shutdown(Duration::from_secs(10));
    say(&json!({ "done": deliveries.all() }));
    Ok(())
}
