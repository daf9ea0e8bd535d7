//! Options, clocks and the line of results.

use std::collections::HashMap;
use std::error::Error;
use std::fmt::Write as _;
use std::str::FromStr;
use std::time::{Duration, Instant};

pub(crate) use crate::process::{Stopwatch, status};

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// Pairs of `--key value`.
pub(crate) struct Options(HashMap<String, String>);

impl Options {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut options = HashMap::new();
        while let Some(word) = words.next() {
            let key = word
                .strip_prefix("--")
                .ok_or_else(|| format!("{word:?} is no --key"))?;
            let value = words
                .next()
                .ok_or_else(|| format!("--{key} has no value"))?;
            options.insert(key.to_owned(), value);
        }
        Ok(Self(options))
    }

    pub(crate) fn text<'a>(&'a self, key: &str, default: &'a str) -> &'a str {
        self.0.get(key).map_or(default, String::as_str)
    }

    pub(crate) fn number<T: FromStr>(&self, key: &str, default: T) -> Result<T, Failure> {
        match self.0.get(key) {
            None => Ok(default),
            Some(text) => text
                .parse()
                .map_err(|_| format!("--{key} {text:?} is no number").into()),
        }
    }

    pub(crate) fn namesrv(&self) -> &str {
        self.text("namesrv", "127.0.0.1:19876")
    }

    pub(crate) fn topic(&self) -> &str {
        self.text("topic", "bench")
    }

    pub(crate) fn group(&self) -> &str {
        self.text("group", "bench_group")
    }
}

pub(crate) fn nanos_since(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// One line of results, made field by field.
pub(crate) struct Line(String);

impl Line {
    pub(crate) fn of(workload: &str) -> Self {
        Self(format!("{{\"workload\":\"{workload}\""))
    }

    pub(crate) fn text(mut self, name: &str, value: &str) -> Self {
        let _ = write!(self.0, ",\"{name}\":\"{value}\"");
        self
    }

    pub(crate) fn count(mut self, name: &str, value: usize) -> Self {
        let _ = write!(self.0, ",\"{name}\":{value}");
        self
    }

    pub(crate) fn number(mut self, name: &str, value: f64) -> Self {
        let _ = write!(self.0, ",\"{name}\":{value:.4}");
        self
    }

    /// Percentiles of times in nanoseconds.
    pub(crate) fn percentiles(mut self, mut nanos: Vec<u64>) -> Self {
        nanos.sort_unstable();
        let last = nanos.len().saturating_sub(1);
        for (name, thousandths) in [
            ("p50_us", 500),
            ("p99_us", 990),
            ("p999_us", 999),
            ("max_us", 1000),
        ] {
            if let Some(value) = nanos.get((nanos.len() * thousandths / 1000).min(last)) {
                let _ = write!(self.0, ",\"{name}\":{:.1}", *value as f64 / 1e3);
            }
        }
        self
    }

    pub(crate) fn print(self) {
        let peak = status("VmHWM") / 1024.0;
        println!("RESULT {},\"rss_peak_mib\":{peak:.1}}}", self.0);
    }
}

/// Looks every millisecond whether something has come true; the seconds until then, or -1 after the limit.
pub(crate) fn seconds_until(
    since: Instant,
    limit: Duration,
    mut is_true: impl FnMut() -> bool,
) -> f64 {
    while !is_true() {
        if since.elapsed() > limit {
            return -1.0;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    since.elapsed().as_secs_f64()
}
