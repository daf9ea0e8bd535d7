//! Sending: each message waited for, many under way on one socket, and in batches.

use crate::connection::{Connection, put_frame};
use crate::measure::{Failure, Line, Options, Stopwatch};
use crate::timed::Plan;

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

impl<'a> Requests<'a> {
    fn new(topic: &'a str, body: &'a [u8], is_batch: bool) -> Self {
        Self {
            topic,
            body,
            is_batch,
            made: 0,
        }
    }

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
    let body = vec![b'x'; options.number("size", size)?];
    timed(
        options,
        &Plan::single(workload, options, threads, n)?,
        &body,
    )
}

pub(crate) fn batches(options: &Options) -> Result<(), Failure> {
    let plan = Plan::batches(options)?;
    let body = batch_of(plan.messages_per_call, options.number("size", 100)?)?;
    timed(options, &plan, &body)
}

/// Each thread has a connection of its own; clients share one.
fn timed(options: &Options, plan: &Plan<'_>, body: &[u8]) -> Result<(), Failure> {
    let is_batch = plan.messages_per_call > 1;
    plan.run(
        || {
            let requests = Requests::new(options.topic(), body, is_batch);
            Ok((Connection::open(options)?, requests, Vec::new()))
        },
        |(connection, requests, frame)| {
            frame.clear();
            requests.put_next(frame)?;
            connection.write(frame)?;
            let reply = connection.reply()?;
            if connection.is_ok(&reply) {
                Ok(())
            } else {
                Err(connection.refusal(&reply))
            }
        },
    )
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

/// So many under way as the window has places; half a window is filled up with one write.
pub(crate) fn pipelined(options: &Options) -> Result<(), Failure> {
    let n: usize = options.number("n", 200_000)?;
    let window: usize = options.number("window", 1000)?;
    let body = vec![b'x'; options.number("size", 100)?];
    let mut connection = Connection::open(options)?;
    let mut requests = Requests::new(options.topic(), &body, false);
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
