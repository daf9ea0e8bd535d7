use rocketmq_protocol::MessageQueue;
use rocketmq_protocol::body::MASTER_ID;

use super::OffsetTable;
use crate::client::{MQClientApi, MQClientInstance, OnlyThisBroker, QueueAt};
use crate::error::{Error, Result, client_error_code};
use crate::sync::{Arc, Deadline};

/// Offsets in memory, and at the brokers (Java `RemoteBrokerOffsetStore`).
#[derive(Debug)]
pub(crate) struct RemoteBrokerOffsetStore {
    group: String,
    pub(crate) table: OffsetTable,
}

impl RemoteBrokerOffsetStore {
    pub(crate) fn new(group: String) -> Self {
        Self {
            group,
            table: OffsetTable::new(),
        }
    }

    /// Asks the broker for the group's offset of a queue; `callback` runs once.
    pub(crate) fn read_from_store(
        &self,
        instance: &MQClientInstance,
        mq: &MessageQueue,
        deadline: Deadline,
        callback: impl FnOnce(Result<i64>) + Send + 'static,
    ) {
        match broker_of(instance, mq) {
            Ok(addr) => {
                let at = QueueAt { addr: &addr, mq };
                instance
                    .api()
                    .query_consumer_offset_async(at, &self.group, deadline, callback);
            }
            Err(error) => callback(Err(error)),
        }
    }

    /// Sends the offsets of the queues given, without waiting; all others are forgotten.
    pub(crate) fn persist_all(&self, instance: &MQClientInstance, owned: &[MessageQueue]) {
        for (mq, offset) in self.table.snapshot(owned) {
            self.persist_oneway(instance, &mq, offset);
        }
    }

    /// Sends one offset, without waiting for an answer (as Java does). A loss is made good by the
    /// next round, or costs a second delivery.
    pub(crate) fn persist_oneway(
        &self,
        instance: &MQClientInstance,
        mq: &MessageQueue,
        offset: i64,
    ) {
        let sent = broker_of(instance, mq).and_then(|addr| {
            let at = QueueAt { addr: &addr, mq };
            instance
                .api()
                .update_consumer_offset_oneway(at, &self.group, offset)
        });
        if let Err(error) = sent {
            log::warn!(
                "group {}: offset {offset} of {mq} is not saved: {error}",
                self.group
            );
        }
    }

    /// Sends one offset and waits until the broker has it.
    pub(crate) fn persist(
        &self,
        instance: &MQClientInstance,
        mq: &MessageQueue,
        offset: i64,
        deadline: Deadline,
    ) -> Result<()> {
        let addr = broker_of(instance, mq)?;
        let call = instance.api().start_update_consumer_offset(
            QueueAt { addr: &addr, mq },
            &self.group,
            offset,
        )?;
        MQClientApi::finish(call, deadline)
    }

    /// Sends the offsets of the queues given side by side, and returns how many the brokers have
    /// taken by the deadline.
    pub(crate) fn persist_all_and_wait(
        &self,
        instance: &MQClientInstance,
        owned: &[MessageQueue],
        deadline: Deadline,
    ) -> usize {
        let calls: Vec<_> = self
            .table
            .snapshot(owned)
            .into_iter()
            .map(|(mq, offset)| {
                let call = broker_of(instance, &mq).and_then(|addr| {
                    let at = QueueAt {
                        addr: &addr,
                        mq: &mq,
                    };
                    instance
                        .api()
                        .start_update_consumer_offset(at, &self.group, offset)
                });
                (mq, call)
            })
            .collect();
        let mut saved = 0;
        for (mq, call) in calls {
            match call.and_then(|call| MQClientApi::finish(call, deadline)) {
                Ok(()) => saved += 1,
                Err(error) => {
                    log::warn!(
                        "group {}: the offset of {mq} is not saved: {error}",
                        self.group
                    );
                }
            }
        }
        saved
    }
}

/// Where offsets of a queue are kept: at its master, or while there is none at a replica.
pub(crate) fn broker_of(instance: &MQClientInstance, mq: &MessageQueue) -> Result<Arc<str>> {
    let broker_name = instance.routes().broker_name(mq);
    instance
        .brokers()
        .find_broker_address_in_subscribe(&broker_name, MASTER_ID, OnlyThisBroker::No)
        .map(|found| found.broker_addr)
        .ok_or_else(|| {
            Error::client(
                client_error_code::BROKER_NOT_EXIST_EXCEPTION,
                format!("broker {broker_name} of {mq} is in no route"),
            )
        })
}
