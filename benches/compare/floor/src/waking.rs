//! How long a thread that waits on a bare futex takes to run after it is woken.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::thread::futex;

use crate::measure::{Failure, Line, Options, Stopwatch};

const WARMUP: usize = 2000;

#[derive(Default)]
struct Flag(AtomicU32);

impl Flag {
    fn set(&self) -> Result<(), Failure> {
        self.0.store(1, Ordering::SeqCst);
        futex::wake(&self.0, futex::Flags::PRIVATE, 1)?;
        Ok(())
    }

    fn wait(&self) -> Result<(), Failure> {
        while self.0.swap(0, Ordering::SeqCst) == 0 {
            match futex::wait(&self.0, futex::Flags::PRIVATE, 0, None) {
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

pub(crate) fn futex(options: &Options) -> Result<(), Failure> {
    let n: usize = options.number("n", 20_000)?;
    let base = Instant::now();
    let now = || u64::try_from(base.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let (flag, woken_at, seen) = (Flag::default(), AtomicU64::new(0), AtomicUsize::new(0));
    let waiter = || -> Result<Vec<u64>, Failure> {
        let mut nanos = Vec::with_capacity(n + WARMUP);
        while nanos.len() < n + WARMUP {
            flag.wait()?;
            nanos.push(now().saturating_sub(woken_at.load(Ordering::Acquire)));
            seen.store(nanos.len(), Ordering::Release);
        }
        Ok(nanos)
    };
    let mut watch = Stopwatch::start();
    let mut nanos = thread::scope(|scope| -> Result<Vec<u64>, Failure> {
        let waiting = scope.spawn(waiter);
        for number in 0..n + WARMUP {
            if number == WARMUP {
                watch = Stopwatch::start();
            }
            woken_at.store(now(), Ordering::Release);
            flag.set()?;
            while seen.load(Ordering::Acquire) <= number && !waiting.is_finished() {
                thread::sleep(Duration::from_micros(20));
            }
            thread::sleep(Duration::from_micros(50));
        }
        waiting.join().map_err(|_| "the waiter has panicked")?
    })?;
    Line::of("wakeup")
        .text("name", "futex")
        .count("n", n)
        .number("cpu_s", watch.cpu_s())
        .count("errors", 0)
        .percentiles(nanos.split_off(WARMUP))
        .print();
    Ok(())
}
