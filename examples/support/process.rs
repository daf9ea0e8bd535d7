//! What a process has taken: time, memory, threads.
#![allow(dead_code, reason = "each program takes what it needs")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Wall time and the processor time of this process, from a moment on.
pub(crate) struct Stopwatch {
    begun: Instant,
    cpu: Duration,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self {
            begun: Instant::now(),
            cpu: cpu_time(),
        }
    }

    pub(crate) fn wall_s(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    pub(crate) fn cpu_s(&self) -> f64 {
        cpu_time().saturating_sub(self.cpu).as_secs_f64()
    }
}

#[cfg(unix)]
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(not(unix))]
fn cpu_time() -> Duration {
    Duration::ZERO
}

/// A number of `/proc/self/status`; 0 where there is none.
pub(crate) fn status(name: &str) -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of_name = |line: &str| Some(line.strip_prefix(name)?.strip_prefix(':')?.to_owned());
    let value = text.lines().find_map(of_name).unwrap_or_default();
    let number = value.split_whitespace().next();
    number.and_then(|n| n.parse().ok()).unwrap_or(0.0)
}

/// How many threads this process has, by the name that the system shows, without the numbers at its end.
pub(crate) fn threads() -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    for task in tasks.flatten() {
        if let Ok(name) = std::fs::read_to_string(task.path().join("comm")) {
            let name = name
                .trim_end()
                .trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
            *counts.entry(name.to_owned()).or_default() += 1;
        }
    }
    counts
}
