//! Sending: waiting, with callbacks, and in batches.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rocketmq_blocking::{DefaultMQProducer, Message, SendStatus};

use crate::measure::{Failure, Line, Options, Stopwatch};

pub(crate) fn producer(options: &Options) -> Result<DefaultMQProducer, Failure> {
    let producer = DefaultMQProducer::builder("bench_producer")
        .namesrv_addr(options.namesrv())
        .build()?;
    producer.start()?;
    Ok(producer)
}

/// What one call sends, and whether all went well.
type Call = dyn Fn(&DefaultMQProducer) -> Result<(), Failure> + Send + Sync;

pub(crate) fn sync(
    workload: &str,
    options: &Options,
    threads: usize,
    n: usize,
    size: usize,
) -> Result<(), Failure> {
    let message = Message::new(options.topic(), vec![b'x'; options.number("size", size)?]);
    let one = move |producer: &DefaultMQProducer| {
        let result = producer.send(&message)?;
        is_ok(result.send_status)
    };
    let plan = Plan {
        workload,
        threads: options.number("threads", threads)?,
        calls: options.number("n", n)?,
        messages_per_call: 1,
        warmup: options.number("warmup", 2000)?,
    };
    timed(options, &plan, &one)
}

pub(crate) fn batches(options: &Options) -> Result<(), Failure> {
    let body = vec![b'x'; options.number("size", 100)?];
    let batch: usize = options.number("batch", 32)?;
    let topic = options.topic().to_owned();
    let one = move |producer: &DefaultMQProducer| {
        // Made anew each time, as a program would.
        let messages: Vec<Message> = (0..batch)
            .map(|_| Message::new(topic.as_str(), body.clone()))
            .collect();
        is_ok(producer.send_batch(&messages)?.send_status)
    };
    let n: usize = options.number("n", 500_000)?;
    let plan = Plan {
        workload: "send-batch",
        threads: 1,
        calls: n / batch,
        messages_per_call: batch,
        warmup: options.number("warmup", 100)?,
    };
    timed(options, &plan, &one)
}

fn is_ok(status: SendStatus) -> Result<(), Failure> {
    match status {
        SendStatus::SendOk => Ok(()),
        other => Err(format!("stored, but {other:?}").into()),
    }
}

struct Plan<'a> {
    workload: &'a str,
    threads: usize,
    calls: usize,
    messages_per_call: usize,
    warmup: usize,
}

fn timed(options: &Options, plan: &Plan<'_>, one: &Call) -> Result<(), Failure> {
    let producer = producer(options)?;
    for _ in 0..plan.warmup {
        one(&producer)?;
    }
    let next = AtomicUsize::new(0);
    let errors = AtomicUsize::new(0);
    let watch = Stopwatch::start();
    let work = || {
        let mut nanos = Vec::with_capacity(plan.calls / plan.threads + 1);
        while next.fetch_add(1, Ordering::Relaxed) < plan.calls {
            let begun = Instant::now();
            if let Err(error) = one(&producer) {
                if errors.fetch_add(1, Ordering::Relaxed) == 0 {
                    eprintln!("{error}");
                }
            }
            nanos.push(nanos_since(begun));
        }
        nanos
    };
    let nanos: Vec<u64> = thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.threads).map(|_| scope.spawn(work)).collect();
        let times = threads.into_iter().map(|thread| thread.join());
        times.flat_map(Result::unwrap_or_default).collect()
    });
    Line::of(plan.workload)
        .count("n", plan.calls * plan.messages_per_call)
        .number("wall_s", watch.wall_s())
        .number("cpu_s", watch.cpu_s())
        .count("errors", errors.into_inner())
        .percentiles(nanos)
        .print();
    producer.shutdown(Duration::from_secs(5));
    Ok(())
}

fn nanos_since(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// So many messages may be under way; who finds none free waits until half of them are.
struct Window {
    all: usize,
    free: Mutex<usize>,
    changed: Condvar,
}

impl Window {
    fn locked(&self) -> MutexGuard<'_, usize> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) {
        let mut free = self.locked();
        if *free == 0 {
            while *free < self.all / 2 {
                free = self
                    .changed
                    .wait(free)
                    .unwrap_or_else(PoisonError::into_inner);
            }
        }
        *free -= 1;
    }

    fn give_back(&self) {
        let mut free = self.locked();
        *free += 1;
        let wakes = *free == self.all / 2 || *free == self.all;
        drop(free);
        if wakes {
            self.changed.notify_one();
        }
    }

    fn wait_for_all(&self, limit: Duration) -> bool {
        let all = self.all;
        let waited = self
            .changed
            .wait_timeout_while(self.locked(), limit, |free| *free < all);
        match waited {
            Ok((free, _)) => *free == all,
            Err(poisoned) => *poisoned.into_inner().0 == all,
        }
    }
}

pub(crate) fn asynchronous(options: &Options) -> Result<(), Failure> {
    let producer = producer(options)?;
    let n: usize = options.number("n", 200_000)?;
    let all: usize = options.number("window", 1000)?;
    let body = vec![b'x'; options.number("size", 100)?];
    let topic = options.topic();
    for _ in 0..options.number("warmup", 2000)? {
        producer.send(&Message::new(topic, body.clone()))?;
    }
    let nanos: Arc<Vec<AtomicU64>> = Arc::new((0..n).map(|_| AtomicU64::new(0)).collect());
    let errors = Arc::new(AtomicUsize::new(0));
    let window = Arc::new(Window {
        all,
        free: Mutex::new(all),
        changed: Condvar::new(),
    });
    let failed = |errors: &AtomicUsize, error: &dyn std::fmt::Display| {
        if errors.fetch_add(1, Ordering::Relaxed) == 0 {
            eprintln!("{error}");
        }
    };
    let watch = Stopwatch::start();
    for number in 0..n {
        window.take();
        let (times, count, room) = (Arc::clone(&nanos), Arc::clone(&errors), Arc::clone(&window));
        let begun = Instant::now();
        let sent = producer.send_async(Message::new(topic, body.clone()), move |outcome| {
            if let Err(failure) = &outcome {
                failed(&count, failure);
            }
            if let Some(time) = times.get(number) {
                time.store(nanos_since(begun), Ordering::Relaxed);
            }
            room.give_back();
        });
        if let Err(failure) = sent {
            failed(&errors, &failure);
            window.give_back();
        }
    }
    let drained = window.wait_for_all(Duration::from_secs(30));
    let (wall, cpu) = (watch.wall_s(), watch.cpu_s());
    let times: Vec<u64> = nanos
        .iter()
        .map(|time| time.load(Ordering::Relaxed))
        .collect();
    let lost = times.iter().filter(|time| **time == 0).count();
    Line::of("send-async")
        .count("n", n)
        .number("wall_s", wall)
        .number("cpu_s", cpu)
        .count("errors", errors.load(Ordering::Relaxed) + lost)
        .count("lost", lost)
        .count("drained", usize::from(drained))
        .percentiles(times.into_iter().filter(|time| *time > 0).collect())
        .print();
    producer.shutdown(Duration::from_secs(5));
    Ok(())
}
