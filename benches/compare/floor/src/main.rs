//! No client: the least that a process can do on the wire for the workloads of the comparison, over blocking sockets
//! and with frames made by hand, and the barest way to wake a thread. No client can be much below its processor time.
//!
//! It takes the words of the other peers; `--broker` names the broker, for it asks no name server.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a program, not the library"
)]

mod connection;
mod consuming;
#[path = "../../../../examples/bench_peer/measure.rs"]
#[allow(dead_code, reason = "the client's peer needs more of it")]
mod measure;
#[path = "../../../../examples/support/process.rs"]
mod process;
mod sending;
#[path = "../../../../examples/bench_peer/timed.rs"]
mod timed;
mod waking;

use std::process::ExitCode;

use measure::{Failure, Options};

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let outcome = match words.next() {
        Some(workload) => Options::parse(words).and_then(|options| run(&workload, &options)),
        None => Err("usage: floor WORKLOAD --key value ...".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("floor: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(workload: &str, options: &Options) -> Result<(), Failure> {
    match workload {
        "send-sync" => sending::sync(workload, options, 1, 20_000, 1024),
        "send-sync-8" => sending::sync(workload, options, 8, 100_000, 100),
        "send-async" => sending::pipelined(options),
        "send-batch" => sending::batches(options),
        "consume" => consuming::backlog(options),
        "wakeup" => waking::futex(options),
        _ => {
            println!("RESULT {{\"workload\":\"{workload}\",\"unsupported\":1}}");
            Ok(())
        }
    }
}
