//! Pulling a backlog from eight queues at once; messages are counted by their sizes.

use crate::connection::{Connection, position, put_frame, size_at};
use crate::measure::{Failure, Line, Options, Stopwatch};

const PULL_MESSAGE: u32 = 11;
const QUEUES: usize = 8;

pub(crate) fn backlog(options: &Options) -> Result<(), Failure> {
    let n: usize = options.number("n", 500_000)?;
    let most: usize = options.number("pull-batch", 32)?;
    let pull = |queue: usize, offset: usize| -> Result<Vec<u8>, Failure> {
        let mut frame = Vec::with_capacity(512);
        // The queue is the opaque, so a reply says which one it is of.
        let fields = format!(
            "\"consumerGroup\":\"{}\",\"topic\":\"{}\",\"queueId\":\"{queue}\",\"queueOffset\":\"{offset}\",\
             \"maxMsgNums\":\"{most}\",\"sysFlag\":\"6\",\"commitOffset\":\"0\",\"suspendTimeoutMillis\":\"15000\",\
             \"subscription\":\"*\",\"subVersion\":\"1\",\"expressionType\":\"TAG\"",
            options.group(),
            options.topic(),
        );
        put_frame(&mut frame, PULL_MESSAGE, queue, &fields, b"")?;
        Ok(frame)
    };
    let mut connection = Connection::open(options)?;
    let watch = Stopwatch::start();
    for queue in 0..QUEUES {
        connection.write(&pull(queue, 0)?)?;
    }
    let (mut got, mut first_s) = (0, None);
    while got < n {
        let reply = connection.reply()?;
        if !connection.is_ok(&reply) {
            return Err(connection.refusal(&reply));
        }
        let header = connection.header(&reply);
        let queue = number_after(header, b"\"opaque\":")?;
        let next = number_after(header, b"\"nextBeginOffset\":")?;
        got += count(connection.body(&reply))?;
        first_s.get_or_insert_with(|| watch.wall_s());
        connection.write(&pull(queue, next)?)?;
    }
    Line::of("consume")
        .count("n", got)
        .number("wall_s", watch.wall_s())
        .number("cpu_s", watch.cpu_s())
        .number("first_s", first_s.unwrap_or(-1.0))
        .count("errors", 0)
        .print();
    Ok(())
}

/// A number of a JSON text, with quotation marks or without.
fn number_after(header: &[u8], name: &[u8]) -> Result<usize, Failure> {
    let at = position(header, name).ok_or("the reply lacks a field")? + name.len();
    let digits: Vec<u8> = header[at..]
        .iter()
        .copied()
        .skip_while(|byte| *byte == b'"')
        .take_while(u8::is_ascii_digit)
        .collect();
    Ok(std::str::from_utf8(&digits)?.parse()?)
}

fn count(messages: &[u8]) -> Result<usize, Failure> {
    let (mut at, mut count) = (0, 0);
    while at < messages.len() {
        match size_at(messages, at) {
            Some(size) if size > 0 => at += size,
            _ => return Err("a message without a size".into()),
        }
        count += 1;
    }
    Ok(count)
}
