//! What brokers ask a producer of transactions.

use std::fmt;

use rocketmq_protocol::header::EndTransactionRequestHeader;
use rocketmq_protocol::property;

use super::end_transaction_hook::EndTransactionContext;
use super::producer_hooks::ProducerHooks;
use super::transaction_listener::{LocalTransactionState, TransactionListener};
use crate::client::{MQClientApi, TransactionCheck};
use crate::client_config::Namespace;
use crate::service::{ThreadPool, catch_panic};
use crate::sync::{Arc, Deadline};

/// The listener, and the threads on which it is asked (Java
/// `DefaultMQProducerImpl#initTransactionEnv`).
pub(super) struct TransactionChecks {
    listener: Arc<dyn TransactionListener>,
    /// As brokers know it, namespace included.
    group: String,
    namespace: Namespace,
    hooks: Arc<ProducerHooks>,
    pool: ThreadPool,
    hold_max: usize,
}

impl TransactionChecks {
    pub(super) fn new(
        listener: Arc<dyn TransactionListener>,
        (group, namespace): (String, Namespace),
        hooks: Arc<ProducerHooks>,
        threads: usize,
        hold_max: usize,
    ) -> Self {
        let name = format!("TransactionCheck_{}", namespace.unwrap(&group));
        Self {
            listener,
            group,
            namespace,
            hooks,
            pool: ThreadPool::new(name, threads),
            hold_max,
        }
    }

    pub(super) fn listener(&self) -> &dyn TransactionListener {
        &*self.listener
    }

    /// Has the listener asked, and the broker told (Java
    /// `DefaultMQProducerImpl#checkTransactionState`). What does not fit is left out: the broker
    /// asks again.
    pub(super) fn begin(&self, api: &Arc<MQClientApi>, check: TransactionCheck) {
        if self.pool.queued() >= self.hold_max {
            log::warn!(
                "{}: {} checks of group {} wait already, this one is left to the next round",
                check.addr,
                self.hold_max,
                self.group
            );
            return;
        }
        let (listener, api) = (Arc::clone(&self.listener), Arc::clone(api));
        let (group, namespace) = (self.group.clone(), self.namespace.clone());
        let hooks = Arc::clone(&self.hooks);
        let task = move || answer((&*listener, &hooks), &api, group, &namespace, check);
        if let Err(rejected) = self.pool.execute(task) {
            log::warn!(
                "check of a transaction of {}: {}",
                self.group,
                rejected.reason
            );
        }
    }

    /// Whether all threads ended in time. What waits is dropped.
    pub(super) fn shutdown(&self, deadline: Deadline) -> bool {
        self.pool.shutdown(deadline).left == 0
    }
}

fn answer(
    (listener, hooks): (&dyn TransactionListener, &ProducerHooks),
    api: &MQClientApi,
    group: String,
    namespace: &Namespace,
    check: TransactionCheck,
) {
    let TransactionCheck {
        addr,
        header,
        mut message,
    } = check;
    let wrapped = message.topic().to_owned();
    message
        .message_mut()
        .set_topic(namespace.unwrap(&wrapped).into_owned());
    if let Some(key) = message.property(property::UNIQ_KEY).map(str::to_owned) {
        message
            .message_mut()
            .put_property(property::TRANSACTION_ID, key);
    }
    let (state, remark) = caught("check_local_transaction", || {
        listener.check_local_transaction(&message)
    });
    hooks.end_transaction(&EndTransactionContext {
        producer_group: &namespace.unwrap(&group),
        message: &message,
        broker_addr: &addr,
        msg_id: message.msg_id(),
        transaction_id: message.property(property::TRANSACTION_ID),
        transaction_state: state,
        from_transaction_check: true,
    });
    let end = EndTransactionRequestHeader {
        topic: Some(wrapped),
        producer_group: group,
        tran_state_table_offset: header.tran_state_table_offset,
        commit_log_offset: header.commit_log_offset,
        commit_or_rollback: state.flag(),
        from_transaction_check: Some(true),
        msg_id: message.msg_id().to_owned(),
        transaction_id: header.transaction_id,
        broker_name: header.broker_name,
    };
    if let Err(error) = api.end_transaction_oneway(&addr, &end, remark) {
        log::warn!("{addr}: the answer to the check of {}: {error}", end.msg_id);
    }
}

/// Runs the user's code. A panic is logged, and told to the broker as the remark.
pub(super) fn caught(
    what: &str,
    run: impl FnOnce() -> LocalTransactionState,
) -> (LocalTransactionState, Option<String>) {
    match catch_panic(run) {
        Ok(state) => (state, None),
        Err(reason) => {
            log::error!("TransactionListener::{what}: caught a panic: {reason}");
            let remark = format!("{what} panicked: {reason}");
            (LocalTransactionState::Unknown, Some(remark))
        }
    }
}

impl fmt::Debug for TransactionChecks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransactionChecks")
            .field("group", &self.group)
            .field("pool", &self.pool)
            .finish_non_exhaustive()
    }
}
