//! Sending: each message waited for, many under way on one socket, and in batches.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use crate::connection::{Connection, put_frame};
use crate::measure::{Failure, Line, Options, Stopwatch};

const SEND_MESSAGE_V2: u32 = 310;
const SEND_BATCH_MESSAGE: u32 = 320;
const QUEUES: usize = 8;

/// Requests to send to one topic, queue after queue.
struct Requests<'a> {
    topic: &'a str,
    body: &'a [u8],
    is_batch: bool,
    made: usize,
}

impl Requests<'_> {
    fn put_next(&mut self, frames: &mut Vec<u8>) -> Result<(), Failure> {
        self.made += 1;
        let code = if self.is_batch {
            SEND_BATCH_MESSAGE
        } else {
            SEND_MESSAGE_V2
        };
        // The properties are those that every client adds.
        let fields = format!(
            "\"a\":\"floor\",\"b\":\"{}\",\"c\":\"TBW102\",\"d\":\"4\",\"e\":\"{}\",\"f\":\"0\",\"g\":\"1700000000000\",\
             \"h\":\"0\",\"i\":\"{}\",\"j\":\"0\",\"k\":\"false\",\"m\":\"{}\"",
            self.topic,
            self.made % QUEUES,
            properties(self.made, "\\u0001", "\\u0002"),
            self.is_batch,
        );
        put_frame(frames, code, self.made, &fields, self.body)
    }
}

fn properties(number: usize, is: &str, and: &str) -> String {
    format!("UNIQ_KEY{is}7F000001000018B4AAC2{number:012X}{and}WAIT{is}true")
}

pub(crate) fn sync(
    workload: &str,
    options: &Options,
    threads: usize,
    n: usize,
    size: usize,
) -> Result<(), Failure> {
    let plan = Plan {
        workload,
        threads: options.number("threads", threads)?,
        calls: options.number("n", n)?,
        messages_per_call: 1,
        warmup: options.number("warmup", 2000)?,
        body: vec![b'x'; options.number("size", size)?],
    };
    timed(options, &plan)
}

pub(crate) fn batches(options: &Options) -> Result<(), Failure> {
    let batch: usize = options.number("batch", 32)?;
    let n: usize = options.number("n", 500_000)?;
    let plan = Plan {
        workload: "send-batch",
        threads: 1,
        calls: n / batch,
        messages_per_call: batch,
        warmup: options.number("warmup", 100)?,
        body: batch_of(batch, options.number("size", 100)?)?,
    };
    timed(options, &plan)
}

fn batch_of(messages: usize, size: usize) -> Result<Vec<u8>, Failure> {
    let mut batch = Vec::new();
    for number in 0..messages {
        let properties = properties(number, "\u{1}", "\u{2}");
        let length = 22 + size + properties.len();
        batch.extend(u32::try_from(length)?.to_be_bytes());
        // magic code, check sum and flag
        batch.extend([0; 12]);
        batch.extend(u32::try_from(size)?.to_be_bytes());
        batch.resize(batch.len() + size, b'x');
        batch.extend(u16::try_from(properties.len())?.to_be_bytes());
        batch.extend(properties.as_bytes());
    }
    Ok(batch)
}

struct Plan<'a> {
    workload: &'a str,
    threads: usize,
    calls: usize,
    messages_per_call: usize,
    warmup: usize,
    body: Vec<u8>,
}

/// Each thread has a connection of its own; clients share one.
fn timed(options: &Options, plan: &Plan<'_>) -> Result<(), Failure> {
    let requests = || Requests {
        topic: options.topic(),
        body: &plan.body,
        is_batch: plan.messages_per_call > 1,
        made: 0,
    };
    let (mut first, mut warmup) = (Connection::open(options)?, requests());
    for _ in 0..plan.warmup {
        if let Some(refusal) = call(&mut first, &mut warmup, &mut Vec::new())? {
            return Err(refusal);
        }
    }
    let (next, errors) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let watch = Stopwatch::start();
    let work = || -> Result<Vec<u64>, Failure> {
        let (mut connection, mut requests) = (Connection::open(options)?, requests());
        let (mut nanos, mut frame) = (Vec::new(), Vec::new());
        while next.fetch_add(1, Ordering::Relaxed) < plan.calls {
            let begun = Instant::now();
            if call(&mut connection, &mut requests, &mut frame)?.is_some() {
                errors.fetch_add(1, Ordering::Relaxed);
            }
            nanos.push(u64::try_from(begun.elapsed().as_nanos())?);
        }
        Ok(nanos)
    };
    let mut nanos = Vec::new();
    thread::scope(|scope| -> Result<(), Failure> {
        let threads: Vec<_> = (0..plan.threads).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            nanos.extend(thread.join().map_err(|_| "a thread has panicked")??);
        }
        Ok(())
    })?;
    Line::of(plan.workload)
        .count("n", plan.calls * plan.messages_per_call)
        .number("wall_s", watch.wall_s())
        .number("cpu_s", watch.cpu_s())
        .count("errors", errors.into_inner())
        .percentiles(nanos)
        .print();
    Ok(())
}

/// One request and its reply; what the broker says if it refuses.
fn call(
    connection: &mut Connection,
    requests: &mut Requests<'_>,
    frame: &mut Vec<u8>,
) -> Result<Option<Failure>, Failure> {
    frame.clear();
    requests.put_next(frame)?;
    connection.write(frame)?;
    let reply = connection.reply()?;
    Ok((!connection.is_ok(&reply)).then(|| connection.refusal(&reply)))
}

/// So many under way as the window has places; half a window is filled up with one write.
pub(crate) fn pipelined(options: &Options) -> Result<(), Failure> {
    let n: usize = options.number("n", 200_000)?;
    let window: usize = options.number("window", 1000)?;
    let body = vec![b'x'; options.number("size", 100)?];
    let mut connection = Connection::open(options)?;
    let mut requests = Requests {
        topic: options.topic(),
        body: &body,
        is_batch: false,
        made: 0,
    };
    let (mut errors, mut frames) = (0, Vec::new());
    let watch = Stopwatch::start();
    for received in 0..n {
        let under_way = requests.made - received;
        if requests.made < n && under_way <= window / 2 {
            frames.clear();
            for _ in 0..(n - requests.made).min(window - under_way) {
                requests.put_next(&mut frames)?;
            }
            connection.write(&frames)?;
        }
        let reply = connection.reply()?;
        errors += usize::from(!connection.is_ok(&reply));
    }
    Line::of("send-async")
        .count("n", n)
        .number("wall_s", watch.wall_s())
        .number("cpu_s", watch.cpu_s())
        .count("errors", errors)
        .print();
    Ok(())
}
