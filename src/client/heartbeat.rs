//! Heartbeats: who this client is, told to all brokers side by side.

use std::time::Duration;

use bytes::Bytes;
use rocketmq_protocol::body::{HeartbeatData, JsonBody, ProducerData};
use rocketmq_protocol::header::UnregisterClientRequestHeader;
use rocketmq_protocol::mix_all::CLIENT_INNER_PRODUCER_GROUP;

use super::MQClientApi;
use super::broker_address_table::BrokerAddressTable;
use super::group_registry::{ConsumerTable, ProducerTable};
use crate::service::{ServiceContext, ServiceThread};
use crate::sync::{Arc, Deadline, Mutex};

/// Sends heartbeats, and takes groups off the brokers' lists.
#[derive(Debug)]
pub(crate) struct HeartbeatSender {
    client_id: String,
    api: Arc<MQClientApi>,
    brokers: Arc<BrokerAddressTable>,
    producers: Arc<ProducerTable>,
    consumers: Arc<ConsumerTable>,
    /// Single flight: guards no data, is taken with a time limit, and spans the round trips. While
    /// it is held no heartbeat of this client is on its way, so a group that leaves cannot be
    /// brought back by one that was sent before.
    in_flight: Mutex<()>,
}

impl HeartbeatSender {
    pub(crate) fn new(
        client_id: String,
        api: Arc<MQClientApi>,
        brokers: Arc<BrokerAddressTable>,
        producers: Arc<ProducerTable>,
        consumers: Arc<ConsumerTable>,
    ) -> Self {
        Self {
            client_id,
            api,
            brokers,
            producers,
            consumers,
            in_flight: Mutex::new(()),
        }
    }

    /// Tells all brokers, and returns how many have answered by the deadline. A heartbeat that is
    /// under way is waited for, and then this one is sent: it may know more (Java skips it).
    pub(crate) fn send_heartbeat_to_all_broker(&self, deadline: Deadline) -> usize {
        let Some(_in_flight) = self.in_flight.try_lock_until(deadline.instant()) else {
            log::warn!(
                "{}: the heartbeat before this one has no answer yet",
                self.client_id
            );
            return 0;
        };
        let data = self.heartbeat_data();
        if data.producer_data_set.is_empty() && data.consumer_data_set.is_empty() {
            return 0;
        }
        let body = match data.to_json() {
            Ok(body) => Bytes::from(body),
            Err(error) => {
                log::error!(
                    "{}: the heartbeat cannot be written: {error}",
                    self.client_id
                );
                return 0;
            }
        };
        let targets = self
            .brokers
            .heartbeat_targets(!data.consumer_data_set.is_empty());
        let calls: Vec<_> = targets
            .iter()
            .map(|addr| (addr, self.api.start_heartbeat(addr, body.clone())))
            .collect();
        let mut answered = 0;
        for (addr, call) in calls {
            match call.and_then(|call| MQClientApi::finish(call, deadline)) {
                Ok(()) => answered += 1,
                Err(error) => log::warn!("{}: heartbeat to {addr}: {error}", self.client_id),
            }
        }
        answered
    }

    /// Leaves a group at all brokers (Java `MQClientInstance#unregisterClient`). The group must be
    /// out of its table already.
    pub(crate) fn unregister(
        &self,
        producer_group: Option<&str>,
        consumer_group: Option<&str>,
        deadline: Deadline,
    ) {
        let _in_flight = self.in_flight.try_lock_until(deadline.instant());
        let header = UnregisterClientRequestHeader {
            client_id: self.client_id.clone(),
            producer_group: producer_group.map(str::to_owned),
            consumer_group: consumer_group.map(str::to_owned),
        };
        let targets = self.brokers.heartbeat_targets(true);
        let calls: Vec<_> = targets
            .iter()
            .map(|addr| (addr, self.api.start_unregister(addr, &header)))
            .collect();
        for (addr, call) in calls {
            if let Err(error) = call.and_then(|call| MQClientApi::finish(call, deadline)) {
                log::warn!("{}: leaving a group at {addr}: {error}", self.client_id);
            }
        }
    }

    fn heartbeat_data(&self) -> HeartbeatData {
        let mut producers = self.producers.groups();
        // Java's instances send retries through a producer of their own and list it; a broker finds
        // a client of any kind under this group.
        producers.push(CLIENT_INNER_PRODUCER_GROUP.to_owned());
        HeartbeatData {
            client_id: self.client_id.clone(),
            producer_data_set: producers
                .into_iter()
                .map(|group_name| ProducerData { group_name })
                .collect(),
            consumer_data_set: self
                .consumers
                .snapshot()
                .into_iter()
                .map(|(_, consumer)| consumer.consumer_data())
                .collect(),
            ..HeartbeatData::default()
        }
    }
}

/// Sends a heartbeat each interval, and at once when woken.
#[derive(Debug)]
pub(crate) struct HeartbeatService {
    pub(crate) sender: Arc<HeartbeatSender>,
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
}

impl ServiceThread for HeartbeatService {
    fn service_name(&self) -> String {
        "HeartbeatService".to_owned()
    }

    fn run(&self, context: &ServiceContext) {
        loop {
            context.wait_for_running(self.interval);
            if context.is_stopped() {
                return;
            }
            self.sender
                .send_heartbeat_to_all_broker(Deadline::after(self.timeout));
        }
    }
}
