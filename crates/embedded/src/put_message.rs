//! How a broker takes a message: for its queue, or for the time at which it is due.

use std::fmt;
use std::time::Duration;

use rocketmq_protocol::body::Permission;
use rocketmq_protocol::{
    CodecError, Properties, StoredMessage, decode_properties, encode_properties, property,
    response_code, sys_flag,
};

use crate::broker::Broker;
use crate::broker_config::BrokerConfig;
use crate::schedule::{SCHEDULE_TOPIC, due_message};
use crate::store::Placed;
use crate::timer_message_store::{
    TIMER_PROPERTIES, TIMER_TOPIC, is_timer_message, timer_out_millis,
};
use crate::topic_config::TopicConfig;
use crate::transactions::HALF_TOPIC;

/// Why a message is not stored.
#[derive(Debug)]
pub(crate) enum PutError {
    Codec(CodecError),
    /// It asks for a time that is none, or too far away.
    TimerIllegal {
        max_delay: Duration,
    },
    /// It asks for a time, which is switched off.
    TimerOff,
}

impl From<CodecError> for PutError {
    fn from(error: CodecError) -> Self {
        Self::Codec(error)
    }
}

impl fmt::Display for PutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Codec(error) => error.fmt(f),
            Self::TimerIllegal { max_delay } => write!(
                f,
                "timer message illegal, the delay time should not be bigger than the max delay \
                 {}ms; or if set del msg, the delay time should be bigger than the current time",
                max_delay.as_millis()
            ),
            Self::TimerOff => {
                f.write_str("accurate timer message is not enabled, timerWheelEnable is false")
            }
        }
    }
}

impl PutError {
    /// The code and the words with which a sender is refused.
    pub(crate) fn refusal(&self) -> (i32, String) {
        let code = match self {
            Self::Codec(_) | Self::TimerIllegal { .. } => response_code::MESSAGE_ILLEGAL,
            Self::TimerOff => response_code::SYSTEM_ERROR,
        };
        (code, self.to_string())
    }
}

impl Broker {
    /// Stores a message, for its topic or, with a delay level or a time, for when it is due (Java
    /// `HookUtils#handleScheduleMessage`).
    pub(crate) fn put(&self, message: StoredMessage) -> Result<Placed, PutError> {
        let state = message.sys_flag & sys_flag::TRANSACTION_MASK;
        if state != 0 && state != sys_flag::TRANSACTION_COMMIT {
            return Ok(self.put_now(message)?);
        }
        let properties = decode_properties(&message.properties);
        let level = properties
            .get(property::DELAY_TIME_LEVEL)
            .and_then(|level| self.schedule.level(level));
        if let Some(level) = level {
            return Ok(self.put_delayed(message, properties, level)?);
        }
        if is_timer_message(&properties) {
            let config = self.config();
            if let Some(out_millis) = timer_out_millis(&properties, &config)? {
                return Ok(self.put_timer(message, properties, out_millis, &config)?);
            }
        }
        Ok(self.put_now(message)?)
    }

    fn put_timer(
        &self,
        mut message: StoredMessage,
        mut properties: Properties,
        out_millis: i64,
        config: &BrokerConfig,
    ) -> Result<Placed, CodecError> {
        let topic = std::mem::take(&mut message.topic);
        let uniq_key = properties.get(property::UNIQ_KEY).cloned();
        for (name, value) in [
            (property::TIMER_OUT_MS, out_millis.to_string()),
            (property::REAL_TOPIC, topic.clone()),
            (property::REAL_QUEUE_ID, message.queue_id.to_string()),
        ] {
            properties.insert(name.to_owned(), value);
        }
        message.properties = encode_properties(&properties);
        TIMER_TOPIC.clone_into(&mut message.topic);
        message.queue_id = 0;
        let topic_config = TopicConfig::new(1, Permission::READ_WRITE);
        self.store.topic_or_create(TIMER_TOPIC, topic_config);
        let placed = self.put_now(message)?;
        let key = (topic, uniq_key.unwrap_or_default());
        let offset = placed.commit_log_offset;
        let delay = self.timers.add(out_millis, config, offset, key);
        self.later(delay, Self::deliver_timers);
        Ok(Placed {
            timer_out_millis: Some(out_millis),
            ..placed
        })
    }

    pub(crate) fn deliver_timers(&self) {
        for timer in self.timers.take_due() {
            let stored = self.store.message_at(timer.commit_log_offset);
            let Some(message) = stored.and_then(|bytes| timer.due_form(bytes)) else {
                log::error!(
                    "{}: no timer message at {}",
                    self.name,
                    timer.commit_log_offset
                );
                continue;
            };
            if let Err(error) = self.put_now(message) {
                log::error!("{}: timer message is lost: {error}", self.name);
            }
        }
    }

    fn put_delayed(
        &self,
        mut message: StoredMessage,
        mut properties: Properties,
        level: i32,
    ) -> Result<Placed, CodecError> {
        for name in TIMER_PROPERTIES {
            properties.remove(name);
        }
        for (name, value) in [
            (property::REAL_TOPIC, std::mem::take(&mut message.topic)),
            (property::REAL_QUEUE_ID, message.queue_id.to_string()),
        ] {
            properties.insert(name.to_owned(), value);
        }
        message.properties = encode_properties(&properties);
        SCHEDULE_TOPIC.clone_into(&mut message.topic);
        message.queue_id = level - 1;
        let config = TopicConfig::new(self.schedule.levels(), Permission::READ_WRITE);
        self.store.topic_or_create(SCHEDULE_TOPIC, config);
        let placed = self.put_now(message)?;
        let delay = self.schedule.add(level, placed.commit_log_offset);
        self.later(delay, Self::deliver_due);
        Ok(placed)
    }

    /// Stores messages of one queue one after the other, with no other in between.
    pub(crate) fn put_all(&self, messages: Vec<StoredMessage>) -> Result<Vec<Placed>, CodecError> {
        let place = messages
            .first()
            .map(|message| (message.topic.clone(), message.queue_id));
        let placed = self.store.put_all(messages)?;
        if let Some((topic, queue_id)) = place {
            for message in &placed {
                self.wake(&topic, queue_id, Some(message.tags_code));
            }
        }
        Ok(placed)
    }

    fn put_now(&self, message: StoredMessage) -> Result<Placed, CodecError> {
        let topic = message.topic.clone();
        let queue_id = message.queue_id;
        let placed = self.store.put(message)?;
        self.wake(&topic, queue_id, Some(placed.tags_code));
        Ok(placed)
    }

    pub(crate) fn deliver_due(&self) {
        for commit_log_offset in self.schedule.take_due() {
            let delayed = self.store.message_at(commit_log_offset);
            let Some(message) = delayed.and_then(due_message) else {
                log::error!("{}: no delayed message at {commit_log_offset}", self.name);
                continue;
            };
            if message.topic == HALF_TOPIC {
                // A half message that was delayed; a real broker loses it here, too.
                log::error!("{}: a delayed half message is given up", self.name);
                continue;
            }
            if let Err(error) = self.put_now(message) {
                log::error!("{}: delayed message is lost: {error}", self.name);
            }
        }
    }
}
