//! The client as one side of an interoperability check, with the words of
//! `tests/real-cluster/Probe.java`: `produce`, `consume` or `session`, then options as `key=value`. It
//! writes one JSON object a line; a session takes its commands from standard input.
//!
//! ```text
//! cargo run --release --example probe -- produce ns=127.0.0.1:9876 topic=T8 n=10 tag=A
//! cargo run --release --example probe -- consume ns=127.0.0.1:9876 topic=T8 group=g n=10 ms=10000
//! ```
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a program, not the library"
)]

mod sends;
mod session;
#[path = "../support/mod.rs"]
mod support;
mod transactions;

use std::error::Error;
use std::io::Read;
use std::process::ExitCode;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use rocketmq_blocking::rebalance::{
    AllocateMessageQueueAveragely, AllocateMessageQueueAveragelyByCircle,
    AllocateMessageQueueConsistentHash,
};
use rocketmq_blocking::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, DefaultMQProducer,
    DefaultMQPushConsumer, Message, MessageExt, MessageQueue,
};
use serde_json::json;
use support::{Options, say};

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

fn run() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let verb = words
        .next()
        .ok_or("a verb is missing: produce, consume or session")?;
    let options = Options::parse(words)?;
    match verb.as_str() {
        "produce" => produce(&options),
        "consume" => consume(&options),
        "session" => session::run(&options),
        other => Err(format!("{other:?} is not produce, consume or session").into()),
    }
}

/// Options of the Java probe that this client has no feature for.
fn refuse(options: &Options, keys: &[(&str, &str)]) -> Result<(), String> {
    for (key, harmless) in keys {
        let value = options.text(key, harmless);
        if value != *harmless {
            return Err(format!("{key}={value} is not supported"));
        }
    }
    Ok(())
}

fn produce(options: &Options) -> Result<(), Box<dyn Error>> {
    refuse(options, &[("tls", "false")])?;
    let producer = DefaultMQProducer::builder(options.text("group", "probe_p"))
        .namesrv_addr(options.text("ns", "127.0.0.1:9876"))
        .poll_name_server_interval(options.millis("poll", 30_000)?)
        .build()?;
    producer.start()?;
    let (finished, wait) = mpsc::channel();
    if options.flag("stdin") {
        end_with_standard_input(&finished);
    }
    let size = options.number("size", 20)?;
    let rate = options.number("rate", 0)?;
    let began = Instant::now();
    for i in 0..options.number("n", 10)? {
        if wait.recv_timeout(wait_before(i, rate, began)).is_ok() {
            break;
        }
        let mut message = Message::new(options.text("topic", "T8"), body(i, size))
            .with_tags(options.text("tag", "A"))
            .with_keys(format!("k{i}"));
        if options.get("prop").is_some() {
            message.put_user_property("a", i.to_string())?;
        }
        let result = producer.send(&message)?;
        say(&json!({
            "sent": i,
            "status": result.send_status.name(),
            "broker": result.message_queue.broker_name(),
            "queueId": result.message_queue.queue_id(),
            "offset": result.queue_offset,
            "msgId": result.msg_id,
        }));
    }
    producer.shutdown(Duration::from_secs(5));
    Ok(())
}

/// The time until message number `i` is due, at so many a second.
fn wait_before(i: i64, rate: u32, began: Instant) -> Duration {
    if rate == 0 {
        return Duration::ZERO;
    }
    let due = began + Duration::from_secs_f64(i as f64 / f64::from(rate));
    due.saturating_duration_since(Instant::now())
}

fn end_with_standard_input(finished: &mpsc::Sender<()>) {
    let finished = finished.clone();
    std::thread::spawn(move || {
        // A pipe that breaks has ended as well.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = finished.send(());
    });
}

/// `m<i>`, and where that is shorter than `size`, a blank and as many `x` as are missing.
fn body(i: i64, size: usize) -> String {
    let mut text = format!("m{i}");
    if size > text.len() {
        text.push(' ');
        text.push_str(&"x".repeat(size - text.len()));
    }
    text
}

fn consume(options: &Options) -> Result<(), Box<dyn Error>> {
    refuse(
        options,
        &[
            ("tls", "false"),
            ("model", ""),
            ("mode", "concurrently"),
            ("sql", ""),
        ],
    )?;
    let from = match options.text("from", "CONSUME_FROM_FIRST_OFFSET") {
        "CONSUME_FROM_FIRST_OFFSET" => ConsumeFromWhere::ConsumeFromFirstOffset,
        "CONSUME_FROM_LAST_OFFSET" => ConsumeFromWhere::ConsumeFromLastOffset,
        "CONSUME_FROM_TIMESTAMP" => ConsumeFromWhere::ConsumeFromTimestamp,
        other => return Err(format!("from={other} is unknown").into()),
    };
    let instance = format!("probe{}", std::process::id());
    let got = Arc::new(AtomicI64::new(0));
    let fails = AtomicI64::new(options.number("fail", 0)?);
    let want = options.number("n", i64::MAX)?;
    let (finished, wait) = mpsc::channel();
    let counter = Arc::clone(&got);
    let done = finished.clone();
    let listener = move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
        if fails.fetch_sub(1, Ordering::Relaxed) > 0 {
            for message in messages {
                let times = message.reconsume_times();
                say(&json!({ "failed": message.keys(), "reconsume": times }));
            }
            return ConsumeConcurrentlyStatus::ReconsumeLater;
        }
        for message in messages {
            let count = counter.fetch_add(1, Ordering::Relaxed) + 1;
            say_got(count, message);
            if count == want {
                // Nobody waits any more once the time is over.
                let _ = done.send(());
            }
        }
        ConsumeConcurrentlyStatus::ConsumeSuccess
    };
    let builder = DefaultMQPushConsumer::builder(options.text("group", "probe_c"))
        .namesrv_addr(options.text("ns", "127.0.0.1:9876"))
        .instance_name(options.text("instance", &instance))
        .poll_name_server_interval(options.millis("poll", 30_000)?)
        .consume_from_where(from)
        .subscribe(options.text("topic", "T8"), options.text("sub", "*"))
        .message_listener(listener)
        .message_queue_listener(say_assigned);
    let builder = match options.number("max", -1)? {
        -1 => builder,
        times => builder.max_reconsume_times(times),
    };
    let consumer = match options.text("strategy", "AVG") {
        "AVG" => builder.allocate_message_queue_strategy(AllocateMessageQueueAveragely),
        "AVG_BY_CIRCLE" => {
            builder.allocate_message_queue_strategy(AllocateMessageQueueAveragelyByCircle)
        }
        "CONSISTENT_HASH" => {
            builder.allocate_message_queue_strategy(AllocateMessageQueueConsistentHash::new())
        }
        other => return Err(format!("strategy={other} is unknown").into()),
    }
    .build()?;
    consumer.start()?;
    if options.flag("stdin") {
        end_with_standard_input(&finished);
    }
    let _ = wait.recv_timeout(options.millis("ms", 10_000)?);
    std::thread::sleep(options.millis("linger", 0)?);
    consumer.shutdown(Duration::from_secs(10));
    say(&json!({ "done": got.load(Ordering::Relaxed) }));
    Ok(())
}

fn say_got(count: i64, message: &MessageExt) {
    let body = String::from_utf8_lossy(message.body());
    say(&json!({
        "got": count,
        "broker": message.broker_name(),
        "queueId": message.queue_id(),
        "offset": message.queue_offset(),
        "key": message.keys(),
        "tag": message.tags(),
        "len": message.body().len(),
        "reconsume": message.reconsume_times(),
        "msgId": message.msg_id(),
        "body": body.chars().take(40).collect::<String>(),
    }));
}

fn say_assigned(topic: &str, _all: &[MessageQueue], divided: &[MessageQueue]) {
    let mut queues: Vec<String> = divided
        .iter()
        .map(|mq| format!("{}#{}", mq.broker_name(), mq.queue_id()))
        .collect();
    queues.sort();
    say(&json!({ "assigned": topic, "queues": queues }));
}
