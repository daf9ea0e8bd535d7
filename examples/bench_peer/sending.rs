//! Sending: waiting, with callbacks, and in batches.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rocketmq_blocking::{DefaultMQProducer, Message, SendStatus};

use crate::measure::{Failure, Line, Options, Stopwatch, nanos_since};
use crate::timed::Plan;

pub(crate) fn producer(options: &Options) -> Result<DefaultMQProducer, Failure> {
    let producer = DefaultMQProducer::builder("bench_producer")
        .namesrv_addr(options.namesrv())
        .build()?;
    producer.start()?;
    Ok(producer)
}

pub(crate) fn sync(
    workload: &str,
    options: &Options,
    threads: usize,
    n: usize,
    size: usize,
) -> Result<(), Failure> {
    let message = Message::new(options.topic(), vec![b'x'; options.number("size", size)?]);
    let plan = Plan::single(workload, options, threads, n)?;
    timed(options, &plan, |producer| {
        Ok(producer.send(&message)?.send_status)
    })
}

pub(crate) fn batches(options: &Options) -> Result<(), Failure> {
    let body = vec![b'x'; options.number("size", 100)?];
    let topic: Arc<str> = options.topic().into();
    let plan = Plan::batches(options)?;
    timed(options, &plan, |producer| {
        // Made anew each time, as a program would.
        let messages: Vec<Message> = (0..plan.messages_per_call)
            .map(|_| Message::new(Arc::clone(&topic), body.clone()))
            .collect();
        Ok(producer.send_batch(&messages)?.send_status)
    })
}

fn timed(
    options: &Options,
    plan: &Plan<'_>,
    send: impl Fn(&DefaultMQProducer) -> Result<SendStatus, Failure> + Sync,
) -> Result<(), Failure> {
    let producer = producer(options)?;
    plan.run(
        || Ok(&producer),
        |producer| match send(producer)? {
            SendStatus::SendOk => Ok(()),
            other => Err(format!("stored, but {other:?}").into()),
        },
    )?;
    producer.shutdown(Duration::from_secs(5));
    Ok(())
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
    let topic: Arc<str> = options.topic().into();
    for _ in 0..options.number("warmup", 2000)? {
        producer.send(&Message::new(Arc::clone(&topic), body.clone()))?;
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
        let sent = producer.send_async(
            Message::new(Arc::clone(&topic), body.clone()),
            move |outcome| {
                if let Err(failure) = &outcome {
                    failed(&count, failure);
                }
                if let Some(time) = times.get(number) {
                    time.store(nanos_since(begun), Ordering::Relaxed);
                }
                room.give_back();
            },
        );
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
