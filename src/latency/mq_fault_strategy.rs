use std::time::{Duration, Instant};

use rocketmq_protocol::MessageQueue;

use super::BackOffTable;
use super::latency_fault_tolerance::{FaultItem, LatencyFaultTolerance, LatencyFaultToleranceImpl};
use crate::client::TopicPublishInfo;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Clock, RwLock};

/// The settings that a strategy begins with.
#[derive(Debug, Clone)]
pub(crate) struct LatencyConfig {
    pub(crate) send_latency_fault_enable: bool,
    pub(crate) start_detector_enable: bool,
    pub(crate) detect_interval: Duration,
    pub(crate) detect_timeout: Duration,
    pub(crate) latency_max: Vec<Duration>,
    pub(crate) not_available_duration: Vec<Duration>,
}

impl Default for LatencyConfig {
    fn default() -> Self {
        let table = BackOffTable::default();
        let (latency_max, not_available_duration) = table.columns();
        Self {
            send_latency_fault_enable: false,
            start_detector_enable: false,
            detect_interval: Duration::from_secs(2),
            detect_timeout: Duration::from_millis(200),
            latency_max: latency_max.to_vec(),
            not_available_duration: not_available_duration.to_vec(),
        }
    }
}

/// What an attempt says of its broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultUpdate {
    /// Nothing: no broker was asked.
    None,
    /// Its latency, or that it is to be left alone as after a slow one; and whether it was reached.
    Of {
        /// Whether the attempt counts as one of [`ISOLATION`].
        isolation: bool,
        reachable: bool,
    },
}

/// The latency that a failed attempt counts as (Java `MQFaultStrategy#updateFaultItem`).
const ISOLATION: Duration = Duration::from_secs(10);

/// Chooses the queue of the next attempt.
///
/// All switches and the table count from the next choice on, also while producers send.
///
/// # Java
/// `MQFaultStrategy`
#[derive(Debug)]
pub(crate) struct MQFaultStrategy {
    clock: Clock,
    latency_fault_tolerance: Arc<dyn LatencyFaultTolerance>,
    send_latency_fault_enable: AtomicBool,
    start_detector_enable: AtomicBool,
    detect_interval: Duration,
    detect_timeout: Duration,
    table: RwLock<Arc<BackOffTable>>,
}

impl MQFaultStrategy {
    /// # Errors
    /// What is wrong with the settings, a sentence each.
    pub(crate) fn new(config: &LatencyConfig, clock: Clock) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        let table = BackOffTable::new(&config.latency_max, &config.not_available_duration);
        if let Err(wrong) = &table {
            problems.extend_from_slice(wrong);
        }
        for (name, time) in [
            ("detect_interval", config.detect_interval),
            ("detect_timeout", config.detect_timeout),
        ] {
            if !(SHORTEST..=LONGEST).contains(&time) {
                problems.push(format!(
                    "{name} is {time:?}, the range is {SHORTEST:?} to {LONGEST:?}"
                ));
            }
        }
        match table {
            Ok(table) if problems.is_empty() => Ok(Self {
                latency_fault_tolerance: Arc::new(LatencyFaultToleranceImpl::new(clock.clone())),
                clock,
                send_latency_fault_enable: AtomicBool::new(config.send_latency_fault_enable),
                start_detector_enable: AtomicBool::new(config.start_detector_enable),
                detect_interval: config.detect_interval,
                detect_timeout: config.detect_timeout,
                table: RwLock::new(Arc::new(table)),
            }),
            _ => Err(problems),
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    pub(crate) fn tolerance(&self) -> &Arc<dyn LatencyFaultTolerance> {
        &self.latency_fault_tolerance
    }

    pub(crate) fn fault_items(&self) -> Vec<FaultItem> {
        self.latency_fault_tolerance.items()
    }

    pub(crate) fn is_send_latency_fault_enable(&self) -> bool {
        self.send_latency_fault_enable.load(Ordering::Relaxed)
    }

    pub(crate) fn set_send_latency_fault_enable(&self, enable: bool) {
        self.send_latency_fault_enable
            .store(enable, Ordering::Relaxed);
    }

    pub(crate) fn is_start_detector_enable(&self) -> bool {
        self.start_detector_enable.load(Ordering::Relaxed)
    }

    pub(crate) fn set_start_detector_enable(&self, enable: bool) {
        self.start_detector_enable.store(enable, Ordering::Relaxed);
    }

    /// How often a broker is probed at most, and how long for.
    pub(crate) fn detect_times(&self) -> (Duration, Duration) {
        (self.detect_interval, self.detect_timeout)
    }

    pub(crate) fn table(&self) -> Arc<BackOffTable> {
        Arc::clone(&self.table.read())
    }

    pub(crate) fn set_table(&self, table: BackOffTable) {
        *self.table.write() = Arc::new(table);
    }

    /// The next queue. With the switch on: of a broker that is available and not the last one; else
    /// of one that is reachable and not the last one; else the plain next. With the switch off: of
    /// another broker than the last one; else the plain next. `None` if there are no queues.
    ///
    /// With `reset_index` and the switch on, the thread goes on from a random queue.
    ///
    /// # Java
    /// `MQFaultStrategy#selectOneMessageQueue`, pick by pick.
    pub(crate) fn select_one_message_queue(
        &self,
        info: &TopicPublishInfo,
        last_broker_name: Option<&str>,
        reset_index: bool,
    ) -> Option<MessageQueue> {
        if !self.is_send_latency_fault_enable() {
            return info.select_one_message_queue(last_broker_name);
        }
        if reset_index {
            info.reset_index();
        }
        let not_last = |mq: &MessageQueue| last_broker_name != Some(mq.broker_name());
        info.select_filtered(&[&|mq| self.is_available(mq), &not_last])
            .or_else(|| info.select_filtered(&[&|mq| self.is_reachable(mq), &not_last]))
            .or_else(|| info.select_filtered(&[]))
    }

    /// The queue of another attempt at a message that was refused by `tried`, the last one last.
    ///
    /// # Java
    /// `MQFaultStrategy#selectOneMessageQueue` knows the last broker only, so a third attempt may go
    /// to the first one's, and with the switch on even to the last one's when no other is available
    /// or reachable. Here a broker that was not tried for this message comes first, whatever is
    /// remembered of it; when all were, the choice is Java's.
    pub(crate) fn select_another(
        &self,
        info: &TopicPublishInfo,
        tried: &[String],
    ) -> Option<MessageQueue> {
        let untried = |mq: &MessageQueue| tried.iter().all(|broker| broker != mq.broker_name());
        let latency = self.is_send_latency_fault_enable();
        if latency {
            info.reset_index();
            let good = info
                .select_filtered(&[&|mq| self.is_available(mq), &untried])
                .or_else(|| info.select_filtered(&[&|mq| self.is_reachable(mq), &untried]));
            if good.is_some() {
                return good;
            }
        }
        let last = tried.last().map(String::as_str);
        info.select_filtered(&[&untried])
            .or_else(|| self.select_one_message_queue(info, last, false))
    }

    /// Remembers an attempt, if the switch is on.
    ///
    /// # Java
    /// `MQFaultStrategy#updateFaultItem`
    pub(crate) fn update_fault_item(
        &self,
        broker_name: &str,
        current_latency: Duration,
        update: FaultUpdate,
    ) {
        let FaultUpdate::Of {
            isolation,
            reachable,
        } = update
        else {
            return;
        };
        if !self.is_send_latency_fault_enable() {
            return;
        }
        let counts_as = if isolation {
            ISOLATION
        } else {
            current_latency
        };
        let duration = self.table.read().not_available_duration(counts_as);
        self.latency_fault_tolerance.update_fault_item(
            broker_name,
            current_latency,
            duration,
            reachable,
        );
    }

    fn is_available(&self, mq: &MessageQueue) -> bool {
        self.latency_fault_tolerance.is_available(mq.broker_name())
    }

    fn is_reachable(&self, mq: &MessageQueue) -> bool {
        self.latency_fault_tolerance.is_reachable(mq.broker_name())
    }
}

const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(60 * 60);

#[cfg(test)]
mod tests;
