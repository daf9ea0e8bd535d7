//! What the client costs when there is much of something, and how that grows.
//!
//! ```text
//! cargo run --release --example scale -- case=topics,brokers idle=60 part=1
//! ```
//!
//! Each case runs at an eighth, a quarter, a half and the whole of its size, divided by `part`; each run is a
//! process of its own, and so are its servers. `docs/performance.md` says what the columns mean.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a program, not the library"
)]

mod allocation;
mod cached;
mod consuming;
#[path = "../support/process.rs"]
mod process;
mod servers;
#[path = "../support/mod.rs"]
mod support;
mod table;

use std::error::Error;
use std::process::{Command, ExitCode};
use std::time::Duration;

use support::Options;
use table::{Figures, Table};

type Failure = Box<dyn Error + Send + Sync>;

/// Each case with its whole size, and what that counts.
const CASES: [(&str, usize, &str); 7] = [
    ("topics", 1000, "topics of 8 queues in one consumer"),
    ("consumers", 200, "consumers of own instances, 4 a group"),
    ("shared", 200, "consumers, 4 a group, that share instances"),
    ("groups", 200, "groups of one instance"),
    ("brokers", 50, "brokers with 8 queues of one topic each"),
    ("allocation", 10_000, "queues among a tenth as many members"),
    ("cached", 100_000, "messages that wait for the listener"),
];

/// The word that makes this program one run of a case.
const RUN: &str = "run";

fn main() -> ExitCode {
    env_logger::init();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        [servers::ROLE, brokers] => number(brokers).and_then(servers::serve),
        [RUN, case, size, idle] => number(size)
            .and_then(|size| run(case, size, Duration::from_secs(number(idle)? as u64)))
            .map(|figures| println!("{figures}")),
        _ => all(&words),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("scale: {error}");
            ExitCode::FAILURE
        }
    }
}

fn number(text: &str) -> Result<usize, Failure> {
    Ok(text.parse()?)
}

fn run(case: &str, size: usize, idle: Duration) -> Result<Figures, Failure> {
    match case {
        "topics" => consuming::topics(size, idle),
        "consumers" => consuming::consumers(size, idle),
        "shared" => consuming::shared(size, idle),
        "groups" => consuming::groups(size, idle),
        "brokers" => consuming::brokers(size, idle),
        "allocation" => allocation::allocation(size),
        "cached" => cached::cached(size),
        _ => Err(format!("no case {case:?}").into()),
    }
}

fn all(words: &[&str]) -> Result<(), Failure> {
    let options = Options::parse(words)?;
    let wanted = options.get("case");
    let idle: u64 = options.number("idle", 60)?;
    let part: usize = options.number("part", 1)?;
    for (case, whole, counts) in CASES {
        if wanted.is_some_and(|wanted| !wanted.split(',').any(|one| one == case)) {
            continue;
        }
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split(' ').next().unwrap_or_default();
        println!("\n{case}: {counts} (load {load} before it)\n");
        let mut table = Table::default();
        for eighths in [1, 2, 4, 8] {
            let size = (whole * eighths / 8 / part).max(1);
            table.add(size, in_own_process(case, size, idle)?);
        }
        println!("{table}");
    }
    Ok(())
}

fn in_own_process(case: &str, size: usize, idle: u64) -> Result<Figures, Failure> {
    let output = Command::new(std::env::current_exe()?)
        .args([RUN, case, &size.to_string(), &idle.to_string()])
        .stderr(std::process::Stdio::inherit())
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    if !output.status.success() {
        return Err(format!("{case} at {size}: {}", output.status).into());
    }
    text.parse()
}
