use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use rocketmq_protocol::{StoredMessage, decode_properties};

use crate::timer::FOREVER;
use crate::transactions::real_place;

/// When delayed messages are due. They lie in the store like others, in [`SCHEDULE_TOPIC`]; this
/// knows their times and outlives the broker as they do (Java `ScheduleMessageService`).
#[derive(Debug)]
pub(crate) struct Schedule {
    levels: Vec<Duration>,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    next_number: u64,
    /// Offset in the log by time; the number keeps the order of equal times.
    messages: BTreeMap<(Instant, u64), i64>,
}

/// Where delayed messages wait, one queue a level.
pub(crate) const SCHEDULE_TOPIC: &str = "SCHEDULE_TOPIC_XXXX";

const DEFAULT_SECONDS: [u64; 18] = [
    1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200,
];

impl Schedule {
    pub(crate) fn new(levels: Vec<Duration>) -> Self {
        Self {
            levels,
            waiting: Mutex::default(),
        }
    }

    pub(crate) fn default_levels() -> Vec<Duration> {
        DEFAULT_SECONDS.map(Duration::from_secs).to_vec()
    }

    /// Reads levels in the form of Java's setting, such as `1s 5s 10m 2h`.
    pub(crate) fn parse_levels(text: &str) -> Option<Vec<Duration>> {
        let levels = text.split_whitespace().map(|word| {
            let (number, unit) = word.split_at_checked(word.len().checked_sub(1)?)?;
            let seconds = match unit {
                "s" => 1,
                "m" => 60,
                "h" => 3600,
                "d" => 86_400,
                _ => return None,
            };
            let number: u64 = number.parse().ok()?;
            number.checked_mul(seconds).map(Duration::from_secs)
        });
        let levels: Option<Vec<_>> = levels.collect();
        levels.filter(|levels| !levels.is_empty())
    }

    /// How many levels there are.
    pub(crate) fn levels(&self) -> i32 {
        i32::try_from(self.levels.len()).unwrap_or(i32::MAX)
    }

    /// The level that a message is delayed by: a number beyond the last means the last, `None` is
    /// no delay.
    pub(crate) fn level(&self, property: &str) -> Option<i32> {
        let level = property.parse::<i32>().ok()?.min(self.levels());
        (level > 0).then_some(level)
    }

    /// Notes a message of a level and says how long it waits.
    pub(crate) fn add(&self, level: i32, commit_log_offset: i64) -> Duration {
        let index = usize::try_from(level - 1).unwrap_or(0);
        let delay = self.levels.get(index).copied().unwrap_or_default();
        let mut waiting = self.waiting.lock();
        let number = waiting.next_number;
        waiting.next_number = number.wrapping_add(1);
        let key = (Instant::now() + delay.min(FOREVER), number);
        waiting.messages.insert(key, commit_log_offset);
        delay
    }

    /// Takes the messages whose time has come, in the order of their times.
    pub(crate) fn take_due(&self) -> Vec<i64> {
        let mut waiting = self.waiting.lock();
        let later = waiting.messages.split_off(&(Instant::now(), u64::MAX));
        let due = std::mem::replace(&mut waiting.messages, later);
        due.into_values().collect()
    }

    /// How long each waiting message still has to wait.
    pub(crate) fn delays(&self) -> Vec<Duration> {
        let now = Instant::now();
        let waiting = self.waiting.lock();
        let times = waiting.messages.keys();
        times
            .map(|(at, _)| at.saturating_duration_since(now))
            .collect()
    }
}

/// The form in which a delayed message is stored for its real topic once its time has come.
/// `None` when it names no real topic, which no message that this broker delayed lacks.
pub(crate) fn due_message(bytes: Bytes) -> Option<StoredMessage> {
    let mut message = StoredMessage::decode(bytes).ok()?;
    let properties = decode_properties(&message.properties);
    (message.topic, message.queue_id) = real_place(&properties)?;
    Some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_as_java_writes_them() {
        let java = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h";
        assert_eq!(
            Schedule::parse_levels(java),
            Some(Schedule::default_levels())
        );
        for wrong in ["", "s", "1", "1x", "1s,2s", "-1s", "1s é"] {
            assert_eq!(Schedule::parse_levels(wrong), None, "{wrong}");
        }
    }
}
