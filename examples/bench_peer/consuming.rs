//! Consuming: a backlog, members that come and go, end-to-end latency, and doing nothing.

use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rocketmq_blocking::rebalance::{
    AllocateError, AllocateMessageQueueAveragely, AllocateMessageQueueStrategy,
};
use rocketmq_blocking::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, DefaultMQPushConsumer,
    DefaultMQPushConsumerBuilder, Message, MessageExt, MessageQueue,
};

use crate::measure::{Failure, Line, Options, Stopwatch, seconds_until, status};
use crate::sending::producer;

const PATIENCE: Duration = Duration::from_secs(60);

fn builder(options: &Options, instance: &str) -> DefaultMQPushConsumerBuilder {
    DefaultMQPushConsumer::builder(options.group())
        .namesrv_addr(options.namesrv())
        .instance_name(instance)
        .subscribe(options.topic(), "*")
}

pub(crate) fn backlog(options: &Options) -> Result<(), Failure> {
    let n: usize = options.number("n", 500_000)?;
    let got = Arc::new(AtomicUsize::new(0));
    let first = Arc::new(Mutex::new(None));
    let (done, is_done) = channel();
    let (count, at) = (Arc::clone(&got), Arc::clone(&first));
    let consumer = builder(options, "consume")
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .message_listener(
            move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
                let before = count.fetch_add(messages.len(), Ordering::Relaxed);
                if before == 0 {
                    *at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
                }
                if (before..before + messages.len()).contains(&(n - 1)) {
                    let _ = done.send(());
                }
                ConsumeConcurrentlyStatus::ConsumeSuccess
            },
        )
        .build()?;
    let begun = Instant::now();
    let watch = Stopwatch::start();
    consumer.start()?;
    let limit = Duration::from_secs(options.number("timeout", 120)?);
    let all_came = is_done.recv_timeout(limit).is_ok();
    let (wall, cpu) = (watch.wall_s(), watch.cpu_s());
    let first = *first.lock().unwrap_or_else(PoisonError::into_inner);
    let first_s = first.map_or(-1.0, |at: Instant| at.duration_since(begun).as_secs_f64());
    let n = got.load(Ordering::Relaxed);
    // What comes twice comes after the rest.
    thread::sleep(Duration::from_millis(options.number("settle-ms", 0)?));
    Line::of("consume")
        .count("n", n)
        .number("wall_s", wall)
        .number("cpu_s", cpu)
        .number("first_s", first_s)
        .count("errors", usize::from(!all_came))
        .count("delivered", got.load(Ordering::Relaxed))
        .print();
    consumer.shutdown(Duration::from_secs(10));
    Ok(())
}

/// AVG, which tells how many queues of the topic it gave last.
#[derive(Debug)]
struct Watched {
    topic: String,
    allocated: Arc<AtomicI64>,
}

impl AllocateMessageQueueStrategy for Watched {
    fn name(&self) -> &str {
        "AVG"
    }

    fn allocate(
        &self,
        group: &str,
        cid: &str,
        mq_all: &[MessageQueue],
        cid_all: &[String],
    ) -> Result<Vec<MessageQueue>, AllocateError> {
        let own = AllocateMessageQueueAveragely.allocate(group, cid, mq_all, cid_all)?;
        // The retry topic is divided too.
        if mq_all.first().is_some_and(|mq| mq.topic() == self.topic) {
            let count = i64::try_from(own.len()).unwrap_or(i64::MAX);
            self.allocated.store(count, Ordering::Release);
        }
        Ok(own)
    }
}

fn watched(
    options: &Options,
    instance: &str,
) -> Result<(DefaultMQPushConsumer, Arc<AtomicI64>), Failure> {
    let allocated = Arc::new(AtomicI64::new(-1));
    let consumer = builder(options, instance)
        .consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset)
        .allocate_message_queue_strategy(Watched {
            topic: options.topic().to_owned(),
            allocated: Arc::clone(&allocated),
        })
        .message_listener(|_: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
            ConsumeConcurrentlyStatus::ConsumeSuccess
        })
        .build()?;
    Ok((consumer, allocated))
}

pub(crate) fn rebalance(options: &Options) -> Result<(), Failure> {
    let queues: i64 = options.number("queues", 8)?;
    let tries: u32 = options.number("tries", 5)?;
    let (stays, of_stays) = watched(options, "a")?;
    let has = |allocated: &AtomicI64, count| allocated.load(Ordering::Acquire) == count;
    stays.start()?;
    seconds_until(Instant::now(), PATIENCE, || has(&of_stays, queues));
    for number in 0..tries {
        thread::sleep(Duration::from_millis(1000) + number * Duration::from_millis(137));
        let (comes, of_comes) = watched(options, &format!("b{number}"))?;
        let begun = Instant::now();
        comes.start()?;
        let start_s = begun.elapsed().as_secs_f64();
        let join_s = seconds_until(begun, PATIENCE, || {
            has(&of_stays, queues / 2) && has(&of_comes, queues / 2)
        });
        thread::sleep(Duration::from_millis(1000) + number * Duration::from_millis(171));
        let begun = Instant::now();
        let ending = thread::spawn(move || {
            comes.shutdown(Duration::from_secs(10));
            begun.elapsed().as_secs_f64()
        });
        let leave_s = seconds_until(begun, PATIENCE, || has(&of_stays, queues));
        let shutdown_s = ending.join().unwrap_or(-1.0);
        Line::of("rebalance")
            .count("try", usize::try_from(number)?)
            .number("join_s", join_s)
            .number("leave_s", leave_s)
            .number("start_s", start_s)
            .number("shutdown_s", shutdown_s)
            .count(
                "errors",
                usize::from(join_s < 0.0) + usize::from(leave_s < 0.0),
            )
            .print();
    }
    stays.shutdown(Duration::from_secs(10));
    Ok(())
}

/// What a message of the latency workload carries: number, time of sending, and which run it is of.
const NUMBER: std::ops::Range<usize> = 0..4;
const SENT_AT: std::ops::Range<usize> = 4..12;
const NONCE: std::ops::Range<usize> = 12..20;

pub(crate) fn latency(options: &Options) -> Result<(), Failure> {
    let n: usize = options.number("n", 1000)?;
    let size: usize = options.number("size", 100)?.max(NONCE.end);
    let interval = Duration::from_micros(options.number("interval-us", 5000)?);
    let warmup: i32 = options.number("warmup", 200)?;
    let base = Instant::now();
    let nanos_now = move || u64::try_from(base.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let nonce = u64::try_from(since_epoch.as_nanos())?.to_be_bytes();
    let nanos: Arc<Vec<AtomicU64>> = Arc::new((0..n).map(|_| AtomicU64::new(0)).collect());
    let got = Arc::new(AtomicUsize::new(0));
    let (times, count) = (Arc::clone(&nanos), Arc::clone(&got));
    let note = move |message: &MessageExt| {
        let body = message.body();
        let number = i32::from_be_bytes(body.get(NUMBER)?.try_into().ok()?);
        let sent_at = u64::from_be_bytes(body.get(SENT_AT)?.try_into().ok()?);
        // What is negative warms up, and what has another nonce is of an earlier run.
        if body.get(NONCE)? == nonce {
            let place = times.get(usize::try_from(number).ok()?)?;
            place.store(nanos_now().saturating_sub(sent_at), Ordering::Relaxed);
            count.fetch_add(1, Ordering::Release);
        }
        Some(())
    };
    let consumer = builder(options, "latency")
        .message_listener(
            move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
                for message in messages {
                    note(message);
                }
                ConsumeConcurrentlyStatus::ConsumeSuccess
            },
        )
        .build()?;
    consumer.start()?;
    let producer = producer(options)?;
    thread::sleep(Duration::from_secs(3));
    let mut watch = Stopwatch::start();
    let mut next = Instant::now();
    for number in -warmup..i32::try_from(n)? {
        if number == 0 {
            watch = Stopwatch::start();
        }
        let mut body = vec![0; size];
        for (place, bytes) in [
            (NUMBER, number.to_be_bytes().as_slice()),
            (SENT_AT, nanos_now().to_be_bytes().as_slice()),
            (NONCE, nonce.as_slice()),
        ] {
            if let Some(place) = body.get_mut(place) {
                place.copy_from_slice(bytes);
            }
        }
        producer.send(&Message::new(options.topic(), body))?;
        next += interval;
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    let limit = Duration::from_secs(10);
    seconds_until(Instant::now(), limit, || got.load(Ordering::Acquire) >= n);
    let cpu = watch.cpu_s();
    let got = got.load(Ordering::Acquire);
    let times = nanos.iter().map(|time| time.load(Ordering::Relaxed));
    Line::of("latency")
        .count("n", got)
        .number("wall_s", n as f64 * interval.as_secs_f64())
        .number("cpu_s", cpu)
        .count("errors", n.saturating_sub(got))
        .percentiles(times.filter(|time| *time > 0).collect())
        .print();
    producer.shutdown(Duration::from_secs(5));
    consumer.shutdown(Duration::from_secs(10));
    Ok(())
}

pub(crate) fn idle(options: &Options) -> Result<(), Failure> {
    let (consumer, _) = watched(options, "idle")?;
    consumer.start()?;
    thread::sleep(Duration::from_secs(5));
    let seconds: u32 = options.number("seconds", 30)?;
    let watch = Stopwatch::start();
    thread::sleep(Duration::from_secs(seconds.into()));
    Line::of("idle")
        .number("wall_s", seconds.into())
        .number("cpu_s", watch.cpu_s())
        .number("threads", status("Threads"))
        .number("rss_mib", status("VmRSS") / 1024.0)
        .count("errors", 0)
        .print();
    consumer.shutdown(Duration::from_secs(10));
    Ok(())
}
