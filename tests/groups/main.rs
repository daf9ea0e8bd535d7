//! Whole groups under faults: members join, leave and are killed, notes are lost, doubled and late,
//! lists of members are split, brokers die and come back, queues are added, listeners are slow, fail
//! and panic, while messages flow. What must hold is stated in `scenario.rs`.
//!
//! ```text
//! cargo test --test groups                                        # a few seeds
//! GROUP_SEEDS=500 cargo test --release --test groups -- --nocapture
//! GROUP_SEED=17 cargo test --release --test groups -- --nocapture # one of them again
//! ```
//!
//! A seed decides what is done and when; which thread runs first it cannot decide.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test is outside of what loom models, and fails by panicking"
)]

mod ledger;
mod member;
mod scenario;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use scenario::Fault;

const SEEDS: u64 = 8;
const WORKERS: u64 = 3;
/// With so many seeds each kind of fault must have happened.
const ENOUGH_SEEDS: u64 = 100;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a number"))
}

/// This program again, as one of its ignored tests.
fn this_program(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        test,
        "--ignored",
        "--nocapture",
        "--test-threads=1",
    ]);
    command
}

/// What `RUST_LOG` names is written to standard error, nothing without it.
fn log_what_is_asked_for() {
    let env = env_logger::Env::default().default_filter_or("off");
    let _ = env_logger::Builder::from_env(env).try_init();
}

#[test]
fn a_group_stays_right_whatever_happens() {
    let (first, count) = match number("GROUP_SEED") {
        Some(seed) => (seed, 1),
        None => (1, number("GROUP_SEEDS").unwrap_or(SEEDS)),
    };
    let workers = number("GROUP_WORKERS").unwrap_or(WORKERS).min(count);
    let faults: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());
    let failed: Mutex<Vec<String>> = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for worker in 0..workers {
            let (faults, failed) = (&faults, &failed);
            scope.spawn(move || {
                // Threads and sockets are counted by process, so seeds run side by side in several.
                let mut child = this_program("work_on_seeds")
                    .env("GROUP_FIRST", (first + worker).to_string())
                    .env("GROUP_STEP", workers.to_string())
                    .env("GROUP_END", (first + count).to_string())
                    .stdin(Stdio::null())
                    .stdout(Stdio::piped())
                    .spawn()
                    .unwrap();
                for line in BufReader::new(child.stdout.take().unwrap()).lines() {
                    let line = line.unwrap();
                    match line.split_once(' ') {
                        Some(("fault", rest)) => {
                            let (kind, times) = rest.split_once(' ').unwrap();
                            let mut faults = faults.lock().unwrap();
                            *faults.entry(kind.to_owned()).or_default() +=
                                times.parse::<u64>().unwrap();
                        }
                        Some(("FAILED", rest)) => {
                            println!("{line}");
                            failed.lock().unwrap().push(rest.to_owned());
                        }
                        Some(("seed", _)) => println!("{line}"),
                        _ => {}
                    }
                }
                let status = child.wait().unwrap();
                if !status.success() && failed.lock().unwrap().is_empty() {
                    failed
                        .lock()
                        .unwrap()
                        .push(format!("a worker ended with {status}"));
                }
            });
        }
    });
    let faults = faults.into_inner().unwrap();
    println!("faults of {count} seeds: {faults:?}");
    let failed = failed.into_inner().unwrap();
    assert!(
        failed.is_empty(),
        "{} seeds failed:\n{}",
        failed.len(),
        failed.join("\n")
    );
    if count >= ENOUGH_SEEDS {
        for fault in Fault::ALL {
            assert!(
                faults.get(&fault.name()).is_some_and(|times| *times > 0),
                "no {fault:?} in {count} seeds"
            );
        }
    }
}

#[test]
#[ignore = "a part of a_group_stays_right_whatever_happens, run in a process of its own"]
fn work_on_seeds() {
    let Some(mut seed) = number("GROUP_FIRST") else {
        return;
    };
    log_what_is_asked_for();
    // Listeners that panic are part of it, and what they print is not.
    std::panic::set_hook(Box::new(|_| {}));
    // After what the harness has begun to write.
    println!();
    let (step, end) = (number("GROUP_STEP").unwrap(), number("GROUP_END").unwrap());
    let mut all_well = true;
    while seed < end {
        match scenario::run(seed) {
            Ok(outcome) => {
                println!("seed {seed} ok: {}", outcome.summary);
                for (fault, times) in outcome.faults {
                    println!("fault {} {times}", fault.name());
                }
            }
            Err(reason) => {
                all_well = false;
                println!("FAILED seed {seed}: {}", reason.replace('\n', "; "));
            }
        }
        seed += step;
    }
    assert!(all_well);
}

#[test]
#[ignore = "a member of a group that can be killed, run in a process of its own"]
fn be_a_member() {
    if let Some(words) = std::env::var_os("GROUP_MEMBER") {
        member::run_as_child(words.to_str().unwrap());
    }
}
