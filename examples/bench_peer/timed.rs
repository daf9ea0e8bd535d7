//! Calls that some threads make one after the other, each of them timed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use crate::measure::{Failure, Line, Options, Stopwatch, nanos_since};

pub(crate) struct Plan<'a> {
    workload: &'a str,
    threads: usize,
    calls: usize,
    pub(crate) messages_per_call: usize,
    warmup: usize,
}

impl<'a> Plan<'a> {
    pub(crate) fn single(
        workload: &'a str,
        options: &Options,
        threads: usize,
        n: usize,
    ) -> Result<Self, Failure> {
        Ok(Self {
            workload,
            threads: options.number("threads", threads)?,
            calls: options.number("n", n)?,
            messages_per_call: 1,
            warmup: options.number("warmup", 2000)?,
        })
    }

    pub(crate) fn batches(options: &Options) -> Result<Self, Failure> {
        let messages_per_call = options.number("batch", 32)?;
        Ok(Self {
            workload: "send-batch",
            threads: 1,
            calls: options.number("n", 500_000)? / messages_per_call,
            messages_per_call,
            warmup: options.number("warmup", 100)?,
        })
    }

    /// `session` makes what a thread needs for its calls, before the time begins. A call that fails is counted, and the
    /// first one told; one that fails while all is warmed up ends the run.
    pub(crate) fn run<S: Send>(
        &self,
        session: impl Fn() -> Result<S, Failure>,
        call: impl Fn(&mut S) -> Result<(), Failure> + Sync,
    ) -> Result<(), Failure> {
        let sessions = (0..self.threads).map(|_| session());
        let mut sessions = sessions.collect::<Result<Vec<S>, Failure>>()?;
        if let Some(first) = sessions.first_mut() {
            for _ in 0..self.warmup {
                call(first)?;
            }
        }
        let (next, errors) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = |mut session: S| {
            let mut nanos = Vec::with_capacity(self.calls / self.threads + 1);
            while next.fetch_add(1, Ordering::Relaxed) < self.calls {
                let begun = Instant::now();
                if let Err(error) = call(&mut session) {
                    if errors.fetch_add(1, Ordering::Relaxed) == 0 {
                        eprintln!("{error}");
                    }
                }
                nanos.push(nanos_since(begun));
            }
            nanos
        };
        let work = &work;
        let watch = Stopwatch::start();
        let nanos: Vec<u64> = thread::scope(|scope| {
            let threads = sessions
                .into_iter()
                .map(|session| scope.spawn(move || work(session)));
            let threads: Vec<_> = threads.collect();
            let times = threads.into_iter().map(|thread| thread.join());
            times.flat_map(Result::unwrap_or_default).collect()
        });
        Line::of(self.workload)
            .count("n", self.calls * self.messages_per_call)
            .number("wall_s", watch.wall_s())
            .number("cpu_s", watch.cpu_s())
            .count("errors", errors.into_inner())
            .percentiles(nanos)
            .print();
        Ok(())
    }
}
