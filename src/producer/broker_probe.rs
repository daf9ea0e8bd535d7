//! Probing the brokers that a producer sends to.

use std::time::Duration;

use rocketmq_protocol::MessageQueue;

use super::default_mq_producer_impl::DefaultMQProducerImpl;
use crate::client::{Client, QueueAt};
use crate::error::{Error, Result};
use crate::latency::{FaultDetector, Resolver, ServiceDetector};
use crate::service::ServiceHandle;
use crate::sync::{Arc, Deadline, Weak};

impl DefaultMQProducerImpl {
    /// Switches the detector, and starts its thread when it is on for the first time.
    pub(super) fn set_start_detector_enable(self: &Arc<Self>, enable: bool) -> Result<()> {
        self.fault_strategy().set_start_detector_enable(enable);
        if let Some(detector) = &*self.detector.lock() {
            detector.wakeup();
        }
        if enable && self.member().is_running() {
            return self.start_detector();
        }
        Ok(())
    }

    pub(super) fn start_detector(self: &Arc<Self>) -> Result<()> {
        let mut place = self.detector.lock();
        let detector = place.get_or_insert_with(|| {
            ServiceHandle::new(Arc::new(FaultDetector {
                strategy: Arc::clone(self.fault_strategy()),
                ports: BrokerProbe(Arc::downgrade(self)),
            }))
        });
        let started = detector.start();
        started.map(|_| ()).map_err(|error| Error::MQClient {
            code: None,
            reason: format!("the thread that probes brokers cannot be started: {error}"),
            source: None,
        })
    }
}

/// Finds brokers, and asks them for an offset (Java's `Resolver` and `ServiceDetector` in the constructor
/// of `DefaultMQProducerImpl`).
#[derive(Debug)]
pub(super) struct BrokerProbe(Weak<DefaultMQProducerImpl>);

impl Resolver for BrokerProbe {
    fn resolve(&self, name: &str) -> Option<String> {
        let instance = self.0.upgrade()?.instance().ok()?;
        let addr = instance.brokers().find_broker_address_in_publish(name)?;
        Some(addr.to_string())
    }
}

impl ServiceDetector for BrokerProbe {
    fn detect(&self, endpoint: &str, timeout: Duration) -> bool {
        let Some((instance, topic)) = self.0.upgrade().and_then(|producer| {
            let topics = producer.topic_publish_info_table.names();
            let known = |topic: &String| producer.topic_publish_info(topic).is_some();
            let topic = topics.into_iter().find(known)?;
            Some((producer.instance().ok()?, topic))
        }) else {
            return false;
        };
        let mq = MessageQueue::new(topic, "", 0);
        let at = QueueAt {
            addr: endpoint,
            mq: &mq,
        };
        let answer = instance.api().max_offset(at, Deadline::after(timeout));
        answer.is_ok()
    }
}
