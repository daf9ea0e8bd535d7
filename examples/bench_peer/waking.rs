//! How long a parked service thread takes to run after it is woken.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rocketmq_blocking::service::{JoinOutcome, ServiceContext, ServiceHandle, ServiceThread};

use crate::measure::{Failure, Line, Options, Stopwatch};

const WARMUP: usize = 2000;

struct Waiter {
    base: Instant,
    woken_at: AtomicU64,
    seen: AtomicUsize,
    nanos: Mutex<Vec<u64>>,
}

impl Waiter {
    fn now(&self) -> u64 {
        u64::try_from(self.base.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

impl ServiceThread for Waiter {
    fn service_name(&self) -> String {
        "waiter".to_owned()
    }

    fn run(&self, context: &ServiceContext) {
        while !context.is_stopped() {
            if context.wait_for_running(Duration::from_secs(60)) {
                let took = self
                    .now()
                    .saturating_sub(self.woken_at.load(Ordering::Acquire));
                let mut nanos = self.nanos.lock().unwrap_or_else(PoisonError::into_inner);
                nanos.push(took);
                self.seen.store(nanos.len(), Ordering::Release);
            }
        }
    }
}

pub(crate) fn service_thread(options: &Options) -> Result<(), Failure> {
    let n: usize = options.number("n", 20_000)?;
    let waiter = Arc::new(Waiter {
        base: Instant::now(),
        woken_at: AtomicU64::new(0),
        seen: AtomicUsize::new(0),
        nanos: Mutex::new(Vec::with_capacity(n + WARMUP)),
    });
    let service = ServiceHandle::new(Arc::clone(&waiter));
    service.start()?;
    thread::sleep(Duration::from_millis(100));
    let mut watch = Stopwatch::start();
    for number in 0..n + WARMUP {
        if number == WARMUP {
            watch = Stopwatch::start();
        }
        waiter.woken_at.store(waiter.now(), Ordering::Release);
        service.wakeup();
        while waiter.seen.load(Ordering::Acquire) <= number {
            thread::sleep(Duration::from_micros(20));
        }
        thread::sleep(Duration::from_micros(50));
    }
    let cpu = watch.cpu_s();
    let nanos = waiter
        .nanos
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .split_off(WARMUP);
    Line::of("wakeup")
        .text("name", "ServiceThread")
        .count("n", n)
        .number("cpu_s", cpu)
        .count("errors", 0)
        .percentiles(nanos)
        .print();
    match service.shutdown(Duration::from_secs(5)) {
        JoinOutcome::Joined => Ok(()),
        other => Err(format!("the waiter has not ended: {other:?}").into()),
    }
}
