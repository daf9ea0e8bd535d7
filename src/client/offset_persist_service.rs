use std::time::Duration;

use super::group_registry::ConsumerTable;
use crate::service::{ServiceContext, ServiceThread};
use crate::sync::Arc;

/// Saves the offsets of all consumers each interval.
#[derive(Debug)]
pub(crate) struct OffsetPersistService {
    pub(crate) consumers: Arc<ConsumerTable>,
    pub(crate) interval: Duration,
}

impl ServiceThread for OffsetPersistService {
    fn service_name(&self) -> String {
        "OffsetPersistService".to_owned()
    }

    fn run(&self, context: &ServiceContext) {
        loop {
            context.wait_for_running(self.interval);
            if context.is_stopped() {
                return;
            }
            for (_, consumer) in self.consumers.snapshot() {
                consumer.persist_consumer_offset();
            }
        }
    }
}
