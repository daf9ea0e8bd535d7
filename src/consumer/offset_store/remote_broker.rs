use std::collections::BTreeSet;

use rocketmq_protocol::MessageQueue;
use rocketmq_protocol::body::MASTER_ID;

use super::OffsetTable;
use crate::client::{MQClientApi, MQClientInstance, OnlyThisBroker, QueueAt};
use crate::consumer::process_queue::ProcessQueue;
use crate::error::{Error, Result, client_error_code};
use crate::sync::{Arc, Deadline, Mutex};

/// Offsets in memory, and at the brokers (Java `RemoteBrokerOffsetStore`).
#[derive(Debug)]
pub(crate) struct RemoteBrokerOffsetStore {
    group: String,
    table: OffsetTable,
    /// Held from reading an offset until its frame is written, which does not block. Otherwise a
    /// periodic save or a pull could read an offset, a drop save a later one, and the older one
    /// arrive last and stay. (A broker works on requests of one connection side by side, so the
    /// last word can still be the older one, as with Java.)
    sending: Mutex<()>,
}

impl RemoteBrokerOffsetStore {
    pub(crate) fn new(group: String) -> Self {
        Self {
            group,
            table: OffsetTable::new(),
            sending: Mutex::new(()),
        }
    }

    /// Notes how far the group has come; see [`OffsetTable::update_if_owned`].
    pub(crate) fn update_if_owned(&self, mq: &MessageQueue, offset: i64, queue: &ProcessQueue) {
        self.table.update_if_owned(mq, offset, queue);
    }

    /// The offset of a queue, if there is one in memory.
    pub(crate) fn read(&self, mq: &MessageQueue) -> Option<i64> {
        self.table.read(mq)
    }

    /// The offsets of all queues that are in memory.
    pub(crate) fn snapshot(&self) -> Vec<(MessageQueue, i64)> {
        self.table.snapshot()
    }

    /// Runs `send` with the offset in memory. It must write its frame, or none, and not block; no
    /// other offset is written meanwhile.
    pub(crate) fn send_with_offset(&self, mq: &MessageQueue, send: impl FnOnce(Option<i64>)) {
        let _sending = self.sending.lock();
        send(self.table.read(mq));
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

    /// Sends all offsets, without waiting.
    pub(crate) fn persist_all(&self, instance: &MQClientInstance) {
        let _sending = self.sending.lock();
        for (mq, offset) in self.table.snapshot() {
            self.send_oneway(instance, &mq, offset);
        }
    }

    /// Drops a queue, with no commit after that, and sends how far it came, without waiting.
    pub(crate) fn drop_and_persist(
        &self,
        instance: &MQClientInstance,
        mq: &MessageQueue,
        queue: &ProcessQueue,
    ) {
        let _sending = self.sending.lock();
        if let Some(offset) = self.table.take_for_drop(mq, queue) {
            self.send_oneway(instance, mq, offset);
        }
    }

    /// Drops a queue, with no commit after that, without a word to the broker.
    pub(crate) fn drop_queue(&self, mq: &MessageQueue, queue: &ProcessQueue) {
        self.table.take_for_drop(mq, queue);
    }

    /// Drops a queue, with no commit after that, and stores an offset for it that may be smaller
    /// than before; `callback` runs once, when the broker has it or will not have it.
    pub(crate) fn drop_and_reset(
        &self,
        instance: &MQClientInstance,
        mq: &MessageQueue,
        queue: &ProcessQueue,
        (offset, deadline): (i64, Deadline),
        callback: impl FnOnce(Result<()>) + Send + 'static,
    ) {
        let sending = self.sending.lock();
        self.table.take_for_drop(mq, queue);
        match broker_of(instance, mq) {
            Ok(addr) => instance.api().update_consumer_offset_async(
                QueueAt { addr: &addr, mq },
                &self.group,
                (offset, deadline),
                callback,
            ),
            Err(error) => {
                drop(sending);
                callback(Err(error));
            }
        }
    }

    /// A loss is made good by the next round, or costs a second delivery (as in Java).
    fn send_oneway(&self, instance: &MQClientInstance, mq: &MessageQueue, offset: i64) {
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

    /// Sends all offsets, and returns how many the brokers have taken by the deadline: the first one of
    /// each broker and topic, side by side, and when they are answered the others.
    ///
    /// Of a group that has no offset of a topic yet, a broker keeps the first one in a table that it
    /// makes then. Two that come at once make two, and one of them is lost, though both are answered
    /// well (Java broker, `ConsumerOffsetManager#commitOffset`).
    pub(crate) fn persist_all_and_wait(
        &self,
        instance: &MQClientInstance,
        deadline: Deadline,
    ) -> usize {
        let mut seen = BTreeSet::new();
        let (first, others): (Vec<_>, Vec<_>) =
            self.table.snapshot().into_iter().partition(|(mq, _)| {
                seen.insert((mq.broker_name().to_owned(), mq.topic().to_owned()))
            });
        [first, others]
            .into_iter()
            .map(|queues| self.persist_and_wait(instance, queues, deadline))
            .sum()
    }

    fn persist_and_wait(
        &self,
        instance: &MQClientInstance,
        queues: Vec<(MessageQueue, i64)>,
        deadline: Deadline,
    ) -> usize {
        let sending = self.sending.lock();
        let calls: Vec<_> = queues
            .into_iter()
            .map(|(mq, offset)| {
                // What was committed meanwhile counts.
                let offset = self.table.read(&mq).unwrap_or(offset);
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
        drop(sending);
        let mut saved = 0;
        for (mq, call) in calls {
            match call.and_then(|call| MQClientApi::finish_update_consumer_offset(call, deadline)) {
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
