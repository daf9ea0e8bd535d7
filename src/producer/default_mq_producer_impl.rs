//! Behind the producer's handle: the send loop.

use std::collections::BTreeSet;
use std::time::Duration;

use rocketmq_protocol::{Message, response_code};

use super::send_kernel::{Prepared, SendSettings, check_properties, send_kernel};
use super::send_result::{SendResult, SendStatus};
use super::transaction_checks::TransactionChecks;
use crate::client::{
    Client, MQClientInstance, MQClientManager, MQProducerInner, Member, Role, RouteOf,
    ShutdownReport, TopicPublishInfo, TransactionCheck,
};
use crate::client_config::ClientConfig;
use crate::error::{Error, Result, client_error_code};
use crate::service::{ServiceState, SnapshotTable};
use crate::sync::{Arc, Deadline, OnceCell, Weak, now};

/// Settings of a producer; never written after `build`.
#[derive(Debug, Clone)]
pub(super) struct ProducerConfig {
    pub(super) send: SendSettings,
    pub(super) send_msg_timeout: Duration,
    pub(super) send_msg_max_timeout_per_request: Option<Duration>,
    pub(super) retry_times_when_send_failed: u32,
    pub(super) retry_another_broker_when_not_store_ok: bool,
    pub(super) retry_response_codes: BTreeSet<i32>,
}

/// Java `DefaultMQProducer#retryResponseCodes`.
pub(super) const DEFAULT_RETRY_RESPONSE_CODES: [i32; 8] = [
    response_code::TOPIC_NOT_EXIST,
    response_code::SERVICE_NOT_AVAILABLE,
    response_code::SYSTEM_ERROR,
    response_code::SYSTEM_BUSY,
    response_code::NO_PERMISSION,
    response_code::NO_BUYER_ID,
    response_code::NOT_IN_CURRENT_UNIT,
    response_code::GO_AWAY,
];

#[derive(Debug)]
pub(super) struct DefaultMQProducerImpl {
    pub(super) config: ProducerConfig,
    member: Member,
    /// Topic → its queues; empty ones are waited for.
    topic_publish_info_table: SnapshotTable<TopicPublishInfo>,
    /// There in a producer of transactions.
    pub(super) transaction_checks: OnceCell<TransactionChecks>,
}

impl DefaultMQProducerImpl {
    pub(super) fn new(
        config: ProducerConfig,
        client_config: ClientConfig,
        manager: MQClientManager,
    ) -> Self {
        let group = config.send.producer_group.clone();
        Self {
            member: Member::new(Role::Producer, group, client_config, manager),
            config,
            topic_publish_info_table: SnapshotTable::new(),
            transaction_checks: OnceCell::new(),
        }
    }

    pub(super) fn start(self: &Arc<Self>) -> Result<()> {
        let weak: Weak<Self> = Arc::downgrade(self);
        let instance = self.member.start(|instance| {
            instance.register_producer(self.member.group(), weak);
        })?;
        instance.heartbeat_soon();
        Ok(())
    }

    pub(super) fn instance(&self) -> Result<Arc<MQClientInstance>> {
        self.member.running_instance("using")
    }

    /// The instance as long as there is one.
    pub(super) fn running_or_ending_instance(
        &self,
        operation: &str,
    ) -> Result<Arc<MQClientInstance>> {
        self.member.running_or_ending_instance(operation)
    }

    /// Java `DefaultMQProducerImpl#sendDefaultImpl`, the synchronous form: picks a queue, sends, and
    /// on a failure that another broker may not have tries one of another broker.
    pub(super) fn send(&self, message: &Message, timeout: Duration) -> Result<SendResult> {
        let deadline = Deadline::after(timeout);
        let instance = self.instance()?;
        check_properties(message)?;
        let prepared = Prepared::new(message, &self.config.send)?;
        let topic = prepared.topic();
        let info = self.try_to_find_topic_publish_info(&instance, topic, deadline)?;
        let started = now();
        let attempts = self.config.retry_times_when_send_failed.saturating_add(1);
        let mut brokers_sent: Vec<String> = Vec::new();
        let mut not_ok: Option<SendResult> = None;
        let mut last_error: Option<Error> = None;
        for attempt in 1..=attempts {
            let last_broker = brokers_sent.last().map(String::as_str);
            let Some(mq) = info.select_one_message_queue(last_broker) else {
                break;
            };
            if deadline.has_passed() {
                last_error.get_or_insert_with(|| Error::RemotingTooMuchRequest {
                    reason: format!(
                        "sending to topic {topic}: the timeout of {} ms was used up before an \
                         attempt",
                        timeout.as_millis()
                    ),
                });
                break;
            }
            let mut attempt_deadline = deadline;
            if let (Some(cap), true) = (
                self.config.send_msg_max_timeout_per_request,
                attempt < attempts,
            ) {
                attempt_deadline = deadline.min(Deadline::after(cap));
            }
            brokers_sent.push(mq.broker_name().to_owned());
            match send_kernel(&instance, &prepared, &mq, attempt_deadline) {
                Ok(result) => {
                    let retry = result.send_status != SendStatus::SendOk
                        && self.config.retry_another_broker_when_not_store_ok;
                    if !retry {
                        return Ok(result);
                    }
                    not_ok = Some(result);
                }
                Err(error) => {
                    log::warn!("attempt {attempt} to send to {mq}: {error}");
                    let again = self.may_try_another_broker(&error);
                    // What is in doubt must not be hidden by a later, harmless failure.
                    let in_doubt = last_error.as_ref().is_some_and(Error::may_have_been_stored);
                    if !in_doubt || error.may_have_been_stored() {
                        last_error = Some(error);
                    }
                    if !again {
                        break;
                    }
                }
            }
        }
        if let Some(result) = not_ok {
            return Ok(result);
        }
        let Some(error) = last_error else {
            return Err(Error::client(
                client_error_code::NOT_FOUND_TOPIC_EXCEPTION,
                format!("topic {topic} has no queue that can be written"),
            ));
        };
        if brokers_sent.is_empty() {
            return Err(error);
        }
        Err(Error::MQClient {
            code: Some(code_of(&error)),
            reason: format!(
                "sending to topic {topic} failed after {} attempts and {} ms, brokers tried: {}",
                brokers_sent.len(),
                now().saturating_duration_since(started).as_millis(),
                brokers_sent.join(", ")
            ),
            source: Some(error.into()),
        })
    }

    /// What a failed attempt means for the next one. A broker that answered with an error is left
    /// only for the codes that another broker may not answer with.
    fn may_try_another_broker(&self, error: &Error) -> bool {
        match error {
            Error::MQBroker { code, .. } => self.config.retry_response_codes.contains(code),
            _ => true,
        }
    }

    pub(super) fn try_to_find_topic_publish_info(
        &self,
        instance: &MQClientInstance,
        topic: &str,
        deadline: Deadline,
    ) -> Result<Arc<TopicPublishInfo>> {
        if let Some(info) = self.topic_publish_info(topic) {
            return Ok(info);
        }
        self.topic_publish_info_table
            .ensure(topic, TopicPublishInfo::unknown);
        let default_topic = RouteOf::DefaultTopic {
            queue_nums: self.config.send.default_topic_queue_nums,
        };
        let mut failure = None;
        for which in [RouteOf::Topic, default_topic] {
            match instance.update_topic_route_info(topic, which, deadline) {
                Ok(_) => {}
                Err(error) => failure = Some(error),
            }
            if let Some(info) = self.topic_publish_info(topic) {
                return Ok(info);
            }
            if failure.is_some() {
                break;
            }
        }
        let reason = match failure {
            Some(
                none @ Error::MQClient {
                    code: Some(client_error_code::NO_NAME_SERVER_EXCEPTION),
                    source: None,
                    ..
                },
            ) => {
                // There is no server to ask, and nothing is wrong with the topic (as in Java).
                return Err(none);
            }
            Some(_) => format!("the route of topic {topic} cannot be asked for"),
            None => format!(
                "no route for topic {topic}: create it, or let brokers create topics \
                 (autoCreateTopicEnable)"
            ),
        };
        Err(Error::MQClient {
            code: Some(client_error_code::NOT_FOUND_TOPIC_EXCEPTION),
            reason,
            source: failure.map(Box::new),
        })
    }

    pub(super) fn topic_publish_info(&self, topic: &str) -> Option<Arc<TopicPublishInfo>> {
        self.topic_publish_info_table
            .get(topic)
            .filter(|info| info.ok())
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

impl Client for DefaultMQProducerImpl {
    fn member(&self) -> &Member {
        &self.member
    }

    /// Leaves the group, then the instance.
    fn end(&self, before: ServiceState, deadline: Deadline) -> ShutdownReport {
        let mut threads_joined = true;
        if let Some(checks) = self.transaction_checks.get() {
            threads_joined &= checks.shutdown(deadline);
        }
        if let Some(membership) = self.member.take_membership() {
            let instance = membership.instance();
            let group = self.member.group();
            let ended = self
                .member
                .wrong_state("requesting with", ServiceState::ShutdownAlready);
            instance.request_futures().fail_all_of(group, &ended);
            if before == ServiceState::Running {
                instance.unregister_producer(self.member.group(), deadline);
            }
            threads_joined &= membership.leave(deadline);
        }
        self.topic_publish_info_table.clear();
        ShutdownReport {
            threads_joined,
            ..ShutdownReport::default()
        }
    }
}

impl MQProducerInner for DefaultMQProducerImpl {
    fn publish_topic_list(&self) -> Vec<String> {
        self.topic_publish_info_table.names()
    }

    fn is_publish_topic_need_update(&self, topic: &str) -> bool {
        self.topic_publish_info_table
            .get(topic)
            .is_some_and(|info| !info.ok())
    }

    fn update_topic_publish_info(&self, topic: &str, info: &Arc<TopicPublishInfo>) {
        self.topic_publish_info_table.replace(topic, info);
    }

    fn check_transaction_state(&self, check: TransactionCheck) {
        match (self.transaction_checks.get(), self.member.instance()) {
            (Some(checks), Some(instance)) => checks.begin(instance.api(), check),
            _ => log::warn!(
                "{}: check of a transaction of group {}, whose producer has no transactions",
                check.addr,
                self.member.group()
            ),
        }
    }
}
