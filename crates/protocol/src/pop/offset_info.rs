use std::collections::BTreeMap;
use std::fmt::{Display, Write};

use super::RetryMarker;
use crate::CodecError;

/// A queue in the texts of a pop's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueKey {
    /// Which of the topic's places it belongs to.
    pub retry: RetryMarker,
    /// Its id.
    pub queue_id: i32,
}

impl QueueKey {
    /// The queue `queue_id` of the topic of that name.
    pub fn new(topic: &str, queue_id: i32) -> Self {
        Self {
            retry: RetryMarker::of_topic(topic),
            queue_id,
        }
    }
}

/// Where the handed-out range of each queue starts: `marker queue offset`, joined by semicolons.
///
/// # Errors
/// [`CodecError::BadReceipt`] for another form, or a queue that is there twice.
pub fn parse_start_offset_info(text: &str) -> Result<BTreeMap<QueueKey, i64>, CodecError> {
    parse("start offset info", text, |value| value.parse().ok())
}

/// The offsets handed out of each queue: `marker queue offset,offset`, joined by semicolons.
///
/// # Errors
/// [`CodecError::BadReceipt`] for another form, or a queue that is there twice.
pub fn parse_msg_offset_info(text: &str) -> Result<BTreeMap<QueueKey, Vec<i64>>, CodecError> {
    parse("message offset info", text, |value| {
        value.split(',').map(|part| part.parse().ok()).collect()
    })
}

/// Writes what [`parse_start_offset_info`] reads.
pub fn build_start_offset_info(offsets: &BTreeMap<QueueKey, i64>) -> String {
    build(offsets, i64::to_string)
}

/// Writes what [`parse_msg_offset_info`] reads.
pub fn build_msg_offset_info(offsets: &BTreeMap<QueueKey, Vec<i64>>) -> String {
    build(offsets, |offsets| {
        let offsets: Vec<String> = offsets.iter().map(i64::to_string).collect();
        offsets.join(",")
    })
}

/// How often each message of a pop of lite topics was handed out before, in the order of the
/// messages. `None` when the text does not tell for exactly `messages` of them.
pub fn parse_lite_order_count_info(text: &str, messages: usize) -> Option<Vec<i32>> {
    let counts: Vec<i32> = text
        .split(';')
        .map(|count| count.parse().ok())
        .collect::<Option<_>>()?;
    (counts.len() == messages).then_some(counts)
}

/// How often messages were handed out before by an ordered pop: of a whole queue, and of single
/// messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrderCountInfo {
    /// Of the messages of a queue that have no count of their own.
    pub by_queue: BTreeMap<QueueKey, i32>,
    /// Of the message at an offset.
    pub by_offset: BTreeMap<(QueueKey, i64), i32>,
}

impl OrderCountInfo {
    /// Reads `marker queue count` and `marker qo<queue>%<offset> count`, joined by semicolons.
    ///
    /// # Errors
    /// [`CodecError::BadReceipt`] for another form, or a count that is there twice.
    pub fn parse(text: &str) -> Result<Self, CodecError> {
        let mut counts = Self::default();
        for entry in entries(text) {
            counts
                .read(entry)
                .ok_or_else(|| bad("order count info", text))?;
        }
        Ok(counts)
    }

    fn read(&mut self, entry: &str) -> Option<()> {
        let [retry, queue, count] = parts(entry)?;
        let retry = RetryMarker::from_digit(retry)?;
        let count = count.parse().ok()?;
        let earlier = match queue.strip_prefix("qo") {
            Some(place) => {
                let (queue_id, offset) = place.split_once('%')?;
                let queue_id = queue_id.parse().ok()?;
                let key = (QueueKey { retry, queue_id }, offset.parse().ok()?);
                self.by_offset.insert(key, count)
            }
            None => {
                let queue_id = queue.parse().ok()?;
                self.by_queue.insert(QueueKey { retry, queue_id }, count)
            }
        };
        earlier.is_none().then_some(())
    }

    /// How often the message at an offset was handed out before.
    pub fn count(&self, queue: QueueKey, offset: i64) -> Option<i32> {
        let own = self.by_offset.get(&(queue, offset));
        own.or_else(|| self.by_queue.get(&queue)).copied()
    }

    /// Writes what [`OrderCountInfo::parse`] reads.
    pub fn build(&self) -> String {
        let mut text = build(&self.by_queue, i32::to_string);
        for ((key, offset), count) in &self.by_offset {
            let place = format!("qo{}%{offset}", key.queue_id);
            push(&mut text, key.retry, place, count);
        }
        text
    }
}

fn parse<V>(
    what: &'static str,
    text: &str,
    value: impl Fn(&str) -> Option<V>,
) -> Result<BTreeMap<QueueKey, V>, CodecError> {
    let mut map = BTreeMap::new();
    for entry in entries(text) {
        let read = parts(entry).and_then(|[retry, queue_id, number]| {
            let key = QueueKey {
                retry: RetryMarker::from_digit(retry)?,
                queue_id: queue_id.parse().ok()?,
            };
            Some((key, value(number)?))
        });
        let (key, number) = read.ok_or_else(|| bad(what, text))?;
        if map.insert(key, number).is_some() {
            return Err(bad(what, text));
        }
    }
    Ok(map)
}

/// The entries of a text; none of an empty one. Java takes no notice of a semicolon at the end.
fn entries(text: &str) -> impl Iterator<Item = &str> {
    let text = text.trim_end_matches(';');
    text.split(';').filter(move |_| !text.is_empty())
}

fn parts(entry: &str) -> Option<[&str; 3]> {
    let mut parts = entry.split(' ');
    let three = [parts.next()?, parts.next()?, parts.next()?];
    parts.next().is_none().then_some(three)
}

fn bad(what: &'static str, text: &str) -> CodecError {
    CodecError::BadReceipt {
        what,
        text: text.to_owned(),
    }
}

fn build<V>(entries: &BTreeMap<QueueKey, V>, value: impl Fn(&V) -> String) -> String {
    let mut text = String::new();
    for (key, entry) in entries {
        push(&mut text, key.retry, key.queue_id, value(entry));
    }
    text
}

fn push(text: &mut String, retry: RetryMarker, queue: impl Display, value: impl Display) {
    if !text.is_empty() {
        text.push(';');
    }
    // Writing to a string cannot fail.
    let _ = write!(text, "{} {queue} {value}", retry.digit());
}
