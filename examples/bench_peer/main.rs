//! The client as a peer of a benchmark that compares RocketMQ clients: ten workloads, a line of results each.
//!
//! ```text
//! cargo build --release --example bench_peer
//! bench_peer send-sync --namesrv 127.0.0.1:9876 --topic bench_a --n 20000 --size 1024
//! ```
//!
//! `docs/performance.md` says what each workload measures and how to compare. Options that a workload does not know
//! are passed over, so that all peers can be given the same ones.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a program, not the library"
)]

mod computing;
mod consuming;
mod measure;
#[path = "../support/process.rs"]
mod process;
mod sending;
mod timed;
mod waking;

use std::process::ExitCode;

use measure::{Failure, Options};

const USAGE: &str = "usage: bench_peer WORKLOAD --key value ...\n\
    workloads: send-sync send-sync-8 send-async send-batch consume rebalance latency idle cpu wakeup";

fn main() -> ExitCode {
    env_logger::init();
    let mut words = std::env::args().skip(1);
    let outcome = match words.next() {
        Some(workload) => Options::parse(words).and_then(|options| run(&workload, &options)),
        None => Err(USAGE.into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench_peer: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(workload: &str, options: &Options) -> Result<(), Failure> {
    match workload {
        "send-sync" => sending::sync(workload, options, 1, 20_000, 1024),
        "send-sync-8" => sending::sync(workload, options, 8, 100_000, 100),
        "send-async" => sending::asynchronous(options),
        "send-batch" => sending::batches(options),
        "consume" => consuming::backlog(options),
        "rebalance" => consuming::rebalance(options),
        "latency" => consuming::latency(options),
        "idle" => consuming::idle(options),
        "cpu" => computing::all(options),
        "wakeup" => waking::service_thread(options),
        _ => {
            println!("RESULT {{\"workload\":\"{workload}\",\"unsupported\":1}}");
            Ok(())
        }
    }
}
