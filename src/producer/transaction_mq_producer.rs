//! A producer of messages that count only if some work is done.

use std::any::Any;
use std::fmt;
use std::ops::Deref;

use rocketmq_protocol::header::EndTransactionRequestHeader;
use rocketmq_protocol::{Message, OffsetMessageId, property};

use super::default_mq_producer::DefaultMQProducer;
use super::default_mq_producer_builder::DefaultMQProducerBuilder;
use super::end_transaction_hook::EndTransactionContext;
use super::message_batch::DELAYS;
use super::message_client_id_setter::create_uniq_id;
use super::send_result::{SendResult, SendStatus};
use super::transaction_checks::{TransactionChecks, caught};
use super::transaction_listener::{LocalTransactionState, TransactionListener};
use crate::client_config;
use crate::error::{Error, Result, client_error_code};
use crate::sync::Arc;

/// Sends messages that consumers get only once the work they tell of is done: the broker keeps a
/// message back until it hears what became of the work, and asks if it does not hear.
///
/// It is a [`DefaultMQProducer`] as well. Made by
/// [`transaction_listener`](DefaultMQProducerBuilder::transaction_listener).
///
/// Brokers ask any producer of the group, so all of them must be able to say what became of the work
/// of any other. They ask those that they know from heartbeats: a producer is known to a broker once
/// a route has named the broker, so when it has sent to a topic of it, or is told of one by
/// [`topics`](DefaultMQProducerBuilder::topics). The same is true of Java's.
///
/// # Java
/// `TransactionMQProducer`
///
/// # Examples
/// ```
/// use std::any::Any;
/// use std::time::Duration;
///
/// use rocketmq_blocking::{
///     DefaultMQProducer, LocalTransactionState, Message, MessageExt, TransactionListener,
/// };
/// use rocketmq_embedded::Cluster;
///
/// struct Payments;
///
/// impl TransactionListener for Payments {
///     fn execute_local_transaction(&self, _: &Message, _: &dyn Any) -> LocalTransactionState {
///         LocalTransactionState::CommitMessage
///     }
///
///     fn check_local_transaction(&self, _: &MessageExt) -> LocalTransactionState {
///         LocalTransactionState::Unknown
///     }
/// }
///
/// let cluster = Cluster::builder().start()?;
/// cluster.create_topic("Payments", 1)?;
/// let producer = DefaultMQProducer::builder("shop")
///     .namesrv_addr(&cluster.namesrv_addr())
///     .transaction_listener(Payments)
///     .build()?;
/// producer.start()?;
/// let sent = producer.send_message_in_transaction(&Message::new("Payments", "paid"), &())?;
/// assert_eq!(sent.local_transaction_state, LocalTransactionState::CommitMessage);
/// assert!(cluster.wait_until(Duration::from_secs(30), || cluster.stored_count("Payments") == 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct TransactionMQProducer {
    producer: DefaultMQProducer,
}

/// What became of a transactional message (Java `TransactionSendResult`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransactionSendResult {
    /// Where the broker keeps the half message: the offset is not the one that consumers see.
    pub send_result: SendResult,
    /// What the listener said; [`RollbackMessage`](LocalTransactionState::RollbackMessage) without
    /// asking it, when the message is not stored as safely as brokers are set to.
    pub local_transaction_state: LocalTransactionState,
}

/// Sets up a [`TransactionMQProducer`].
#[must_use = "a builder does nothing until `build`"]
pub struct TransactionMQProducerBuilder {
    producer: DefaultMQProducerBuilder,
    listener: Arc<dyn TransactionListener>,
    check_thread_pool_max_size: usize,
    check_request_hold_max: usize,
}

impl DefaultMQProducerBuilder {
    /// Makes it a producer of transactions. Call it after all other settings.
    pub fn transaction_listener(
        self,
        listener: impl TransactionListener,
    ) -> TransactionMQProducerBuilder {
        TransactionMQProducerBuilder {
            producer: self,
            listener: Arc::new(listener),
            check_thread_pool_max_size: 1,
            check_request_hold_max: 2000,
        }
    }
}

impl TransactionMQProducerBuilder {
    /// How many threads ask the listener what became of transactions; they come when they are
    /// needed. Default 1, at least 1; Java `checkThreadPoolMaxSize`.
    pub fn check_thread_pool_max_size(mut self, threads: usize) -> Self {
        self.check_thread_pool_max_size = threads;
        self
    }

    /// How many questions of brokers may wait for such a thread. What comes beyond is left out, and
    /// brokers ask again. Default 2000, at least 1; Java `checkRequestHoldMax`.
    pub fn check_request_hold_max(mut self, checks: usize) -> Self {
        self.check_request_hold_max = checks;
        self
    }

    /// Checks all settings and makes the producer, which is then to be started.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::Error::InvalidConfig) with settings that are wrong.
    pub fn build(self) -> Result<TransactionMQProducer> {
        let mut problems = Vec::new();
        for (name, value) in [
            (
                "check_thread_pool_max_size",
                self.check_thread_pool_max_size,
            ),
            ("check_request_hold_max", self.check_request_hold_max),
        ] {
            if value == 0 {
                problems.push(format!("{name} is 0, the least is 1"));
            }
        }
        client_config::reject(problems)?;
        let producer = self.producer.build()?;
        let send = &producer.inner().config.send;
        let checks = TransactionChecks::new(
            self.listener,
            (send.producer_group.clone(), send.namespace.clone()),
            Arc::clone(&producer.inner().config.hooks),
            self.check_thread_pool_max_size,
            self.check_request_hold_max,
        );
        // It is new, so there are none yet.
        let _ = producer.inner().transaction_checks.set(checks);
        Ok(TransactionMQProducer { producer })
    }
}

impl TransactionMQProducer {
    /// Sends a message that is kept back, has the listener do its work, and tells the broker what
    /// became of it. `arg` is for the listener.
    ///
    /// What the broker is told needs no answer, and may be lost: then the broker asks.
    ///
    /// # Blocking
    /// At most `send_msg_timeout` (3 s) for the send, and as long as the listener takes.
    ///
    /// # Errors
    /// As [`send`](DefaultMQProducer::send), and
    /// [`InvalidMessage`](crate::Error::InvalidMessage) for a message that is to be delivered
    /// later: the listener has not been called then.
    ///
    /// # Java
    /// `TransactionMQProducer#sendMessageInTransaction`
    pub fn send_message_in_transaction(
        &self,
        message: &Message,
        arg: &dyn Any,
    ) -> Result<TransactionSendResult> {
        // It cannot wait for both (Java `ensureNotDelayedForTransactional`): a broker would take it, and
        // lose it at the commit.
        if DELAYS.iter().any(|name| message.property(name).is_some()) {
            return Err(Error::InvalidMessage {
                topic: message.topic().to_owned(),
                reason: "transactional messages cannot be delivered later".to_owned(),
            });
        }
        let mut message = message.clone();
        let group = self.inner().config.send.producer_group.as_str();
        message.put_property(property::TRANSACTION_PREPARED, "true");
        message.put_property(property::PRODUCER_GROUP, group);
        if message.property(property::UNIQ_KEY).is_none() {
            message.put_property(property::UNIQ_KEY, create_uniq_id());
        }
        let send_result = self.send(&message)?;
        let (state, remark) = match (
            send_result.send_status,
            self.inner().transaction_checks.get(),
        ) {
            (SendStatus::SendOk, Some(checks)) => {
                if let Some(id) = &send_result.transaction_id {
                    message.put_property(property::TRANSACTION_ID, id.as_str());
                }
                caught("execute_local_transaction", || {
                    checks.listener().execute_local_transaction(&message, arg)
                })
            }
            _ => (LocalTransactionState::RollbackMessage, None),
        };
        if let Err(error) = self.end_transaction(&message, &send_result, state, remark) {
            log::warn!(
                "{state:?} of {} is not told, the broker will ask: {error}",
                send_result.msg_id
            );
        }
        Ok(TransactionSendResult {
            send_result,
            local_transaction_state: state,
        })
    }

    /// Java `DefaultMQProducerImpl#endTransaction`.
    fn end_transaction(
        &self,
        message: &Message,
        sent: &SendResult,
        state: LocalTransactionState,
        remark: Option<String>,
    ) -> Result<()> {
        let inner = self.inner();
        let instance = inner.running_or_ending_instance("ending a transaction of")?;
        let mq = inner.config.send.namespace.wrap_queue(&sent.message_queue);
        let broker = instance.routes().broker_name(&mq);
        let lost =
            |reason: String| Error::client(client_error_code::BROKER_NOT_EXIST_EXCEPTION, reason);
        let addr = instance
            .brokers()
            .find_broker_address_in_publish(&broker)
            .ok_or_else(|| lost(format!("broker {broker} has no master")))?;
        let id = OffsetMessageId::parse(&sent.offset_msg_id)
            .ok_or_else(|| lost(format!("{:?} is no offset id", sent.offset_msg_id)))?;
        let header = EndTransactionRequestHeader {
            topic: Some(mq.topic().to_owned()),
            producer_group: inner.config.send.producer_group.clone(),
            tran_state_table_offset: sent.queue_offset,
            commit_log_offset: id.commit_log_offset,
            commit_or_rollback: state.flag(),
            from_transaction_check: Some(false),
            msg_id: sent.msg_id.clone(),
            transaction_id: sent.transaction_id.clone(),
            broker_name: Some(broker.into_owned()),
        };
        let send = &inner.config.send;
        inner.config.hooks.end_transaction(&EndTransactionContext {
            producer_group: &send.namespace.unwrap(&send.producer_group),
            message,
            broker_addr: &addr,
            msg_id: &sent.msg_id,
            transaction_id: message.property(property::TRANSACTION_ID),
            transaction_state: state,
            from_transaction_check: false,
        });
        instance
            .api()
            .end_transaction_oneway(&addr, &header, remark)
    }
}

impl Deref for TransactionMQProducer {
    type Target = DefaultMQProducer;

    fn deref(&self) -> &DefaultMQProducer {
        &self.producer
    }
}

impl fmt::Debug for TransactionMQProducerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransactionMQProducerBuilder")
            .field("producer", &self.producer)
            .field(
                "check_thread_pool_max_size",
                &self.check_thread_pool_max_size,
            )
            .field("check_request_hold_max", &self.check_request_hold_max)
            .finish_non_exhaustive()
    }
}
