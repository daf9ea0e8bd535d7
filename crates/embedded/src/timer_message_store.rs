use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use rocketmq_protocol::{
    Properties, StoredMessage, decode_properties, encode_properties, property,
};

use crate::broker_config::BrokerConfig;
use crate::put_message::PutError;
use crate::store::now_millis;
use crate::timer::FOREVER;
use crate::transactions::real_place;

/// When timer messages are due (Java `TimerMessageStore`). They lie in the store like others, in
/// [`TIMER_TOPIC`]; this outlives the broker as they do.
#[derive(Debug, Default)]
pub(crate) struct TimerMessageStore {
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    next_number: u64,
    /// By `TIMER_OUT_MS`; the number keeps the order of equal times.
    messages: BTreeMap<(i64, u64), TimerMessage>,
}

/// A message that waits for its time.
#[derive(Debug)]
pub(crate) struct TimerMessage {
    at: Instant,
    pub(crate) commit_log_offset: i64,
    taken_at: i64,
    topic: String,
    uniq_key: String,
}

/// Where timer messages wait.
pub(crate) const TIMER_TOPIC: &str = "rmq_sys_wheel_timer";

/// What a sender says of the time, the stronger first.
pub(crate) const TIMER_PROPERTIES: [&str; 3] = [
    property::TIMER_DELAY_SEC,
    property::TIMER_DELAY_MS,
    property::TIMER_DELIVER_MS,
];

/// Whether a message without a delay level asks for a time (Java `HookUtils#checkIfTimerMessage`).
pub(crate) fn is_timer_message(properties: &Properties) -> bool {
    !properties.contains_key(property::TIMER_OUT_MS)
        && TIMER_PROPERTIES
            .iter()
            .any(|name| properties.contains_key(*name))
}

/// The time to keep a message for, whole units of the precision; `None` when it is due already (Java
/// `HookUtils#transformTimerMessage`).
pub(crate) fn timer_out_millis(
    properties: &Properties,
    config: &BrokerConfig,
) -> Result<Option<i64>, PutError> {
    if !config.timer_wheel_enable {
        return Err(PutError::TimerOff);
    }
    let now = now_millis();
    let illegal = || PutError::TimerIllegal {
        max_delay: config.timer_max_delay,
    };
    let number = |name: &str| {
        let text = properties.get(name);
        let number = text.map(|text| text.parse::<i64>().map_err(|_| illegal()));
        number.transpose()
    };
    let deliver = if let Some(seconds) = number(property::TIMER_DELAY_SEC)? {
        now.wrapping_add(seconds.wrapping_mul(1000))
    } else if let Some(millis) = number(property::TIMER_DELAY_MS)? {
        now.wrapping_add(millis)
    } else {
        number(property::TIMER_DELIVER_MS)?.unwrap_or(0)
    };
    if deliver <= now {
        return Ok(None);
    }
    if (deliver - now) as u128 > config.timer_max_delay.as_millis() {
        return Err(illegal());
    }
    Ok(Some(slot(deliver, config)))
}

/// The slot that a time falls into: where a message is kept which asks for this time.
pub(crate) fn slot(millis: i64, config: &BrokerConfig) -> i64 {
    let precision = precision_millis(config);
    (millis - 1).div_euclid(precision) * precision
}

fn precision_millis(config: &BrokerConfig) -> i64 {
    i64::try_from(config.timer_precision.as_millis())
        .unwrap_or(i64::MAX)
        .max(1)
}

impl TimerMessageStore {
    /// Notes a message and says how long it waits: a unit of the precision beyond its slot, so that
    /// it is never early.
    pub(crate) fn add(
        &self,
        out_millis: i64,
        config: &BrokerConfig,
        commit_log_offset: i64,
        (topic, uniq_key): (String, String),
    ) -> Duration {
        let now = now_millis();
        let due = out_millis.saturating_add(precision_millis(config));
        let delay = Duration::from_millis(due.saturating_sub(now).max(0) as u64).min(FOREVER);
        let mut waiting = self.waiting.lock();
        let number = waiting.next_number;
        waiting.next_number = number.wrapping_add(1);
        let message = TimerMessage {
            at: Instant::now() + delay,
            commit_log_offset,
            taken_at: now,
            topic,
            uniq_key,
        };
        waiting.messages.insert((out_millis, number), message);
        delay
    }

    /// Takes back the messages of a slot that have this unique key.
    pub(crate) fn remove(&self, out_millis: i64, topic: &str, uniq_key: &str) {
        let mut waiting = self.waiting.lock();
        waiting.messages.retain(|(out, _), message| {
            *out != out_millis || message.topic != topic || message.uniq_key != uniq_key
        });
    }

    /// Takes the messages whose time has come, in the order of their times.
    pub(crate) fn take_due(&self) -> Vec<TimerMessage> {
        let now = Instant::now();
        let mut waiting = self.waiting.lock();
        let mut due = Vec::new();
        while let Some(first) = waiting.messages.first_entry() {
            if first.get().at > now {
                break;
            }
            due.push(first.remove());
        }
        due
    }

    /// How long each waiting message still has to wait.
    pub(crate) fn delays(&self) -> Vec<Duration> {
        let now = Instant::now();
        let waiting = self.waiting.lock();
        let messages = waiting.messages.values();
        messages
            .map(|message| message.at.saturating_duration_since(now))
            .collect()
    }
}

impl TimerMessage {
    /// The form in which the message is stored for its topic.
    pub(crate) fn due_form(&self, bytes: Bytes) -> Option<StoredMessage> {
        let mut message = StoredMessage::decode(bytes).ok()?;
        let mut properties = decode_properties(&message.properties);
        for (name, millis) in [
            (property::TIMER_ENQUEUE_MS, self.taken_at),
            (property::TIMER_DEQUEUE_MS, now_millis()),
        ] {
            properties.insert(name.to_owned(), millis.to_string());
        }
        (message.topic, message.queue_id) = real_place(&properties)?;
        message.properties = encode_properties(&properties);
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn out(name: &str, value: i64, config: &BrokerConfig) -> Option<i64> {
        let properties = [(name.to_owned(), value.to_string())].into();
        timer_out_millis(&properties, config).unwrap()
    }

    #[test]
    fn times_are_rounded_down_to_a_whole_unit_and_exact_ones_too() {
        let config = BrokerConfig::default();
        let second = (now_millis() / 1000 + 10) * 1000;
        let deliver = |millis| out(property::TIMER_DELIVER_MS, millis, &config).unwrap();
        assert_eq!(deliver(second), second - 1000);
        assert_eq!(deliver(second + 1), second);
        assert_eq!(deliver(second + 999), second);
        assert_eq!(slot(second - 1000 + 1, &config), second - 1000);
        assert_eq!(out(property::TIMER_DELIVER_MS, 5, &config), None);
        assert_eq!(out(property::TIMER_DELAY_MS, 0, &config), None);
    }

    #[test]
    fn equal_times_keep_their_order_and_what_is_taken_back_is_gone() {
        let config = BrokerConfig {
            timer_precision: Duration::from_millis(1),
            ..BrokerConfig::default()
        };
        let store = TimerMessageStore::default();
        for (offset, out, key) in [(1, 20, "a"), (2, 10, "b"), (3, 10, "c"), (4, 10, "b")] {
            store.add(out, &config, offset, ("T".to_owned(), key.to_owned()));
        }
        store.remove(20, "T", "b");
        store.remove(10, "U", "b");
        store.remove(10, "T", "c");
        let due = store.take_due();
        let offsets: Vec<_> = due.iter().map(|m| m.commit_log_offset).collect();
        assert_eq!(offsets, [2, 4, 1]);
    }
}
