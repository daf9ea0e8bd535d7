//! The attempts of one send, whoever waits for their outcomes.

use std::time::{Duration, Instant};

use rocketmq_protocol::MessageQueue;

use super::send_outcome::{Next, RetryPolicy, judge};
use super::send_result::SendResult;
use crate::client::TopicPublishInfo;
use crate::error::{Error, Result, client_error_code};
use crate::latency::MQFaultStrategy;
use crate::sync::{Arc, Deadline};

/// What a send is allowed.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    pub(super) attempts: u32,
    pub(super) timeout: Duration,
    pub(super) deadline: Deadline,
}

impl Budget {
    /// A first attempt and so many more, from now on.
    pub(super) fn new(retries: u32, timeout: Duration) -> Self {
        Self {
            attempts: retries.saturating_add(1),
            timeout,
            deadline: Deadline::after(timeout),
        }
    }
}

/// Java's loop in `DefaultMQProducerImpl#sendDefaultImpl` without the waiting: says which queue is
/// next, is told what became of it, and puts the result together. It remembers every broker that was
/// tried, so that none is tried twice while another one is left.
#[derive(Debug)]
pub(super) struct Attempts {
    topic: String,
    info: Arc<TopicPublishInfo>,
    strategy: Arc<MQFaultStrategy>,
    policy: Arc<RetryPolicy>,
    budget: Budget,
    started: Instant,
    brokers_sent: Vec<String>,
    stored: Option<SendResult>,
    failure: Option<Error>,
}

/// One attempt to be made.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) mq: MessageQueue,
    pub(super) deadline: Deadline,
}

/// Whether an attempt is to be followed by another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    GoOn,
    Ended,
}

impl Attempts {
    pub(super) fn new(
        topic: &str,
        info: Arc<TopicPublishInfo>,
        strategy: &Arc<MQFaultStrategy>,
        policy: &Arc<RetryPolicy>,
        budget: Budget,
    ) -> Self {
        Self {
            topic: topic.to_owned(),
            info,
            started: strategy.now(),
            strategy: Arc::clone(strategy),
            policy: Arc::clone(policy),
            budget,
            brokers_sent: Vec::new(),
            stored: None,
            failure: None,
        }
    }

    /// The next attempt; `None` when there is none left, no time, or no queue.
    pub(super) fn next(&mut self) -> Option<Attempt> {
        let left = self.budget.attempts as usize - self.brokers_sent.len();
        if left == 0 {
            return None;
        }
        let mq = if self.brokers_sent.is_empty() {
            let (info, strategy) = (&self.info, &self.strategy);
            strategy.select_one_message_queue(info, None, false)?
        } else {
            self.strategy
                .select_another(&self.info, &self.brokers_sent)?
        };
        if self.budget.deadline.has_passed() {
            self.failure
                .get_or_insert_with(|| used_up(&self.topic, self.budget.timeout));
            return None;
        }
        let mut deadline = self.budget.deadline;
        if let (Some(cap), true) = (self.policy.send_msg_max_timeout_per_request, left > 1) {
            deadline = deadline.min(Deadline::after(cap));
        }
        self.brokers_sent.push(mq.broker_name().to_owned());
        Some(Attempt { mq, deadline })
    }

    /// Takes note of what became of an attempt, and how long it took.
    pub(super) fn ended(
        &mut self,
        attempt: &Attempt,
        took: Duration,
        outcome: Result<SendResult>,
    ) -> Progress {
        let detector_on = self.strategy.is_start_detector_enable();
        let (update, next) = judge(&outcome, detector_on, &self.policy);
        let broker = attempt.mq.broker_name();
        self.strategy.update_fault_item(broker, took, update);
        match outcome {
            Ok(result) => self.stored = Some(result),
            Err(error) => {
                let number = self.brokers_sent.len();
                log::warn!("attempt {number} to send to {}: {error}", attempt.mq);
                // What is in doubt must not be hidden by a later, harmless failure.
                let in_doubt = self.failure.as_ref();
                if !in_doubt.is_some_and(Error::may_have_been_stored)
                    || error.may_have_been_stored()
                {
                    self.failure = Some(error);
                }
            }
        }
        match next {
            Next::Retry => Progress::GoOn,
            Next::Return | Next::Fail => Progress::Ended,
        }
    }

    /// The result of the send: what is stored, if only less safely than configured, else the failure
    /// that leaves most in doubt.
    pub(super) fn finish(self) -> Result<SendResult> {
        if let Some(result) = self.stored {
            return Ok(result);
        }
        let topic = &self.topic;
        let Some(error) = self.failure else {
            return Err(no_queue(topic));
        };
        if self.brokers_sent.is_empty() {
            return Err(error);
        }
        let took = self.strategy.now().saturating_duration_since(self.started);
        Err(Error::MQClient {
            code: Some(code_of(&error)),
            reason: format!(
                "sending to topic {topic} failed after {} attempts and {} ms, brokers tried: {}",
                self.brokers_sent.len(),
                took.as_millis(),
                self.brokers_sent.join(", ")
            ),
            source: Some(error.into()),
        })
    }

    /// Makes the attempts one after the other, each by `transport`.
    pub(super) fn run(
        mut self,
        mut transport: impl FnMut(&Attempt) -> Result<SendResult>,
    ) -> Result<SendResult> {
        while let Some(attempt) = self.next() {
            let began = self.strategy.now();
            let outcome = transport(&attempt);
            let took = self.strategy.now().saturating_duration_since(began);
            if self.ended(&attempt, took, outcome) == Progress::Ended {
                break;
            }
        }
        self.finish()
    }
}

/// There is nowhere to send to.
pub(super) fn no_queue(topic: &str) -> Error {
    Error::client(
        client_error_code::NOT_FOUND_TOPIC_EXCEPTION,
        format!("topic {topic} has no queue that can be written"),
    )
}

/// No time is left for an attempt.
pub(super) fn used_up(topic: &str, timeout: Duration) -> Error {
    Error::RemotingTooMuchRequest {
        reason: format!(
            "sending to topic {topic}: the timeout of {} ms was used up before an attempt",
            timeout.as_millis()
        ),
    }
}

/// The number that Java puts into the exception after all attempts.
fn code_of(error: &Error) -> i32 {
    match error {
        Error::MQBroker { code, .. } => *code,
        Error::RemotingConnect { .. }
        | Error::RemotingSendRequest { .. }
        | Error::RemotingCommand { .. } => client_error_code::CONNECT_BROKER_EXCEPTION,
        Error::RemotingTimeout { .. } | Error::RemotingTooMuchRequest { .. } => {
            client_error_code::ACCESS_BROKER_TIMEOUT
        }
        Error::MQClient {
            code: Some(code), ..
        } => *code,
        _ => client_error_code::BROKER_NOT_EXIST_EXCEPTION,
    }
}

#[cfg(test)]
mod tests;
