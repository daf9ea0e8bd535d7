//! Sends wake-ups to a service thread, waits for what each of them does, and counts the lost ones.
//!
//! ```text
//! cargo run --release --example wakeup_stress              # 20,000,000 wake-ups: some minutes
//! cargo run --release --example wakeup_stress -- 200000    # some seconds
//! ```
//!
//! A wake-up comes 0 to 100 spins after the service's last round, so it meets the service anywhere
//! between "about to wait" and "asleep". It is lost if no round follows within a second; the service
//! itself would wait for 3 s. At the end the waits that say they were woken must be as many as the
//! wake-ups. Exits with 1 if any was lost.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a program outside of the library"
)]

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rocketmq_blocking::service::{JoinOutcome, ServiceContext, ServiceHandle, ServiceThread};

const DEFAULT_WAKEUPS: u64 = 20_000_000;
const INTERVAL: Duration = Duration::from_secs(3);
const LOST_AFTER: Duration = Duration::from_secs(1);
const MOST_SPINS: u64 = 100;

#[derive(Default)]
struct Sleeper {
    rounds: AtomicU64,
    woken: AtomicU64,
}

impl ServiceThread for Sleeper {
    fn service_name(&self) -> String {
        "Sleeper".to_owned()
    }

    fn run(&self, context: &ServiceContext) {
        while !context.is_stopped() {
            if context.wait_for_running(INTERVAL) {
                self.woken.fetch_add(1, Ordering::Relaxed);
            }
            self.rounds.fetch_add(1, Ordering::Release);
        }
    }
}

impl Sleeper {
    /// Whether a round ended since `before` was read; waits for one up to `limit`.
    fn moved(&self, before: u64, limit: Duration) -> bool {
        let mut waits = 0_u32;
        let start = Instant::now();
        while self.rounds.load(Ordering::Acquire) == before {
            waits += 1;
            if waits < 50 {
                std::hint::spin_loop();
            } else if start.elapsed() < limit {
                thread::yield_now();
            } else {
                return false;
            }
        }
        true
    }
}

fn main() -> ExitCode {
    let wakeups = match std::env::args().nth(1).map(|argument| argument.parse()) {
        None => DEFAULT_WAKEUPS,
        Some(Ok(wakeups)) => wakeups,
        Some(Err(error)) => {
            eprintln!("the number of wake-ups: {error}");
            return ExitCode::from(2);
        }
    };
    let service = ServiceHandle::new(Arc::new(Sleeper::default()));
    if let Err(error) = service.start() {
        eprintln!("cannot start the service: {error}");
        return ExitCode::from(2);
    }
    let sleeper = service.service();

    let start = Instant::now();
    let mut random = 1_u64;
    let (mut sent, mut lost, mut longest_deafness) = (0_u64, 0_u64, Duration::ZERO);
    while sent < wakeups {
        let before = sleeper.rounds.load(Ordering::Acquire);
        for _ in 0..next_random(&mut random) % MOST_SPINS {
            std::hint::spin_loop();
        }
        service.wakeup();
        sent += 1;
        if !sleeper.moved(before, LOST_AFTER) {
            lost += 1;
            let since = Instant::now();
            while !sleeper.moved(before, Duration::from_millis(1)) {
                service.wakeup();
            }
            longest_deafness = longest_deafness.max(LOST_AFTER + since.elapsed());
        }
    }
    let elapsed = start.elapsed();

    let joined = service.shutdown(Duration::from_secs(10)) == JoinOutcome::Joined;
    let woken = sleeper.woken.load(Ordering::Relaxed);
    let lost = lost.max(sent.abs_diff(woken));
    println!(
        "wakeups sent {sent}, lost {lost}, longest deafness ms {}",
        longest_deafness.as_millis()
    );
    println!(
        "interval {} ms, {:.1} s, {:.2} us each, thread joined: {joined}",
        INTERVAL.as_millis(),
        elapsed.as_secs_f64(),
        elapsed.as_secs_f64() * 1e6 / sent.max(1) as f64
    );
    if lost == 0 && joined {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// xorshift; the run is the same each time as far as the scheduler lets it.
fn next_random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}
