//! From a wake-up to the parked thread running: a service thread beside what else a thread can wait on.
//!
//! Each wake-up meets a waiter that had 50 us to fall asleep.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a program, not the library"
)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use criterion::Criterion;
use crossbeam::sync::{Parker, Unparker};
use rocketmq_blocking::service::{JoinOutcome, ServiceContext, ServiceHandle, ServiceThread};

/// How long a waiter sleeps if nobody wakes it; nobody measures that.
const INTERVAL: Duration = Duration::from_secs(60);

fn main() {
    let mut criterion = Criterion::default().sample_size(20).configure_from_args();
    service_thread(&mut criterion);
    doorbell::<StdCondvar>(&mut criterion, "std-condvar");
    doorbell::<StdPark>(&mut criterion, "std-park");
    doorbell::<ParkingLot>(&mut criterion, "parking-lot-condvar");
    doorbell::<CrossbeamParker>(&mut criterion, "crossbeam-parker");
    doorbell::<FlagAndLatch>(&mut criterion, "flag-and-latch-of-java");
    criterion.final_summary();
}

/// What a waiter has done.
struct Log {
    base: Instant,
    rung_at: AtomicU64,
    nanos: AtomicU64,
    woken: AtomicU64,
    ended: AtomicBool,
}

impl Log {
    fn new() -> Self {
        Self {
            base: Instant::now(),
            rung_at: AtomicU64::new(0),
            nanos: AtomicU64::new(0),
            woken: AtomicU64::new(0),
            ended: AtomicBool::new(false),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.base.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn note(&self) {
        let took = self
            .now()
            .saturating_sub(self.rung_at.load(Ordering::Acquire));
        self.nanos.fetch_add(took, Ordering::Relaxed);
        self.woken.fetch_add(1, Ordering::Release);
    }

    fn measure(&self, criterion: &mut Criterion, name: &str, ring: impl Fn()) {
        criterion
            .benchmark_group("wakeup")
            .bench_function(name, |bencher| {
                bencher.iter_custom(|times| {
                    let before = self.nanos.load(Ordering::Relaxed);
                    for _ in 0..times {
                        let woken = self.woken.load(Ordering::Acquire);
                        thread::sleep(Duration::from_micros(50));
                        self.rung_at.store(self.now(), Ordering::Release);
                        ring();
                        while self.woken.load(Ordering::Acquire) == woken {
                            thread::sleep(Duration::from_micros(20));
                        }
                    }
                    Duration::from_nanos(self.nanos.load(Ordering::Relaxed) - before)
                });
            });
    }
}

struct Waiter(Log);

impl ServiceThread for Waiter {
    fn service_name(&self) -> String {
        "Waiter".to_owned()
    }

    fn run(&self, context: &ServiceContext) {
        while !context.is_stopped() {
            if context.wait_for_running(INTERVAL) {
                self.0.note();
            }
        }
    }
}

fn service_thread(criterion: &mut Criterion) {
    let service = ServiceHandle::new(Arc::new(Waiter(Log::new())));
    if let Err(error) = service.start() {
        eprintln!("no service thread: {error}");
        return;
    }
    let log = &service.service().0;
    log.measure(criterion, "service-thread", || service.wakeup());
    if service.shutdown(Duration::from_secs(10)) != JoinOutcome::Joined {
        eprintln!("the service thread has not ended");
    }
}

trait Doorbell: Default + Send + Sync {
    /// Sleeps until the next ring; a ring before it counts.
    fn wait(&self);

    fn ring(&self);
}

fn doorbell<D: Doorbell>(criterion: &mut Criterion, name: &str) {
    let (bell, log) = (D::default(), Log::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            loop {
                bell.wait();
                if log.ended.load(Ordering::Acquire) {
                    return;
                }
                log.note();
            }
        });
        log.measure(criterion, name, || bell.ring());
        log.ended.store(true, Ordering::Release);
        bell.ring();
    });
}

#[derive(Default)]
struct StdCondvar {
    rung: Mutex<bool>,
    condvar: Condvar,
}

impl Doorbell for StdCondvar {
    fn wait(&self) {
        let mut rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        while !*rung {
            let waited = self.condvar.wait_timeout(rung, INTERVAL);
            (rung, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        *rung = false;
    }

    fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.condvar.notify_one();
    }
}

#[derive(Default)]
struct ParkingLot {
    rung: parking_lot::Mutex<bool>,
    condvar: parking_lot::Condvar,
}

impl Doorbell for ParkingLot {
    fn wait(&self) {
        let mut rung = self.rung.lock();
        while !*rung {
            self.condvar.wait_for(&mut rung, INTERVAL);
        }
        *rung = false;
    }

    fn ring(&self) {
        *self.rung.lock() = true;
        self.condvar.notify_one();
    }
}

#[derive(Default)]
struct StdPark {
    rung: AtomicBool,
    waiter: OnceLock<Thread>,
}

impl Doorbell for StdPark {
    fn wait(&self) {
        self.waiter.get_or_init(thread::current);
        while !self.rung.swap(false, Ordering::Acquire) {
            thread::park_timeout(INTERVAL);
        }
    }

    fn ring(&self) {
        self.rung.store(true, Ordering::Release);
        if let Some(waiter) = self.waiter.get() {
            waiter.unpark();
        }
    }
}

struct CrossbeamParker {
    parker: Mutex<Parker>,
    unparker: Unparker,
}

impl Default for CrossbeamParker {
    fn default() -> Self {
        let parker = Parker::new();
        Self {
            unparker: parker.unparker().clone(),
            parker: Mutex::new(parker),
        }
    }
}

impl Doorbell for CrossbeamParker {
    /// Only the waiter takes the lock.
    fn wait(&self) {
        let parker = self.parker.lock().unwrap_or_else(PoisonError::into_inner);
        parker.park_timeout(INTERVAL);
    }

    fn ring(&self) {
        self.unparker.unpark();
    }
}

/// The form of Java's `ServiceThread`: `hasNotified`, and a latch that each wait resets.
///
/// A ring between the look at the flag and the reset of the latch is slept over, so its waits are short.
#[derive(Default)]
struct FlagAndLatch {
    has_notified: AtomicBool,
    count: Mutex<u32>,
    zero: Condvar,
}

impl FlagAndLatch {
    const INTERVAL: Duration = Duration::from_millis(10);

    fn wait_for_running(&self) -> bool {
        if self.take_notice() {
            return true;
        }
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) = 1;
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .zero
            .wait_timeout_while(count, Self::INTERVAL, |count| *count > 0);
        drop(waited);
        self.take_notice()
    }

    fn take_notice(&self) -> bool {
        let seen =
            self.has_notified
                .compare_exchange(true, false, Ordering::AcqRel, Ordering::Acquire);
        seen.is_ok()
    }
}

impl Doorbell for FlagAndLatch {
    fn wait(&self) {
        while !self.wait_for_running() {}
    }

    fn ring(&self) {
        let first =
            self.has_notified
                .compare_exchange(false, true, Ordering::AcqRel, Ordering::Acquire);
        if first.is_ok() {
            *self.count.lock().unwrap_or_else(PoisonError::into_inner) = 0;
            self.zero.notify_all();
        }
    }
}
