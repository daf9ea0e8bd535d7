//! Where to start in a queue that the consumer was given.

use std::time::Duration;

use rocketmq_protocol::body::ConsumeFromWhere;
use rocketmq_protocol::mix_all;

use super::default_mq_push_consumer_impl::{DefaultMQPushConsumerImpl, OFFSET_TIMEOUT};
use super::offset_store::broker_of;
use super::pull_request::PullRequest;
use crate::client::{MQClientInstance, QueueAt};
use crate::error::{Error, Result};
use crate::sync::{Arc, Deadline};

impl DefaultMQPushConsumerImpl {
    /// Finds out where to start (Java `RebalancePushImpl#computePullFromWhere`). Until the broker
    /// answers only this queue waits; a failure is tried again like a failed pull.
    pub(super) fn find_start(
        self: &Arc<Self>,
        instance: &Arc<MQClientInstance>,
        request: Box<PullRequest>,
    ) {
        let weak = Arc::downgrade(self);
        let deadline = Deadline::after(OFFSET_TIMEOUT);
        let mq = request.mq.clone();
        self.offsets
            .read_from_store(instance, &mq, deadline, move |outcome| {
                let Some(consumer) = weak.upgrade() else {
                    return;
                };
                match outcome {
                    Ok(offset) if offset >= 0 => {
                        consumer.commit(&request.mq, offset, &request.process_queue);
                        consumer.start_at(request, offset);
                    }
                    Ok(_) | Err(Error::OffsetNotFound { .. }) => {
                        consumer.start_without_offset(request)
                    }
                    Err(error) => consumer.on_pull_error(request, &error),
                }
            });
    }

    fn start_at(&self, mut request: Box<PullRequest>, offset: i64) {
        log::info!(
            "group {}: {} from offset {offset} on",
            self.group(),
            request.mq
        );
        request.next_offset = Some(offset);
        self.again(request, Duration::ZERO);
    }

    fn start_without_offset(self: &Arc<Self>, request: Box<PullRequest>) {
        let Some(instance) = self.instance() else {
            return;
        };
        let is_retry = request.mq.topic() == mix_all::retry_topic(self.group());
        let deadline = Deadline::after(OFFSET_TIMEOUT);
        let addr = match broker_of(&instance, &request.mq) {
            Ok(addr) => addr,
            Err(error) => return self.on_pull_error(request, &error),
        };
        let mq = request.mq.clone();
        let at = QueueAt {
            addr: &addr,
            mq: &mq,
        };
        match self.config.consume_from_where {
            ConsumeFromWhere::ConsumeFromFirstOffset => self.start_at(request, 0),
            ConsumeFromWhere::ConsumeFromTimestamp if !is_retry => {
                let timestamp = self.config.consume_timestamp;
                let found = self.start_where_found(request);
                instance
                    .api()
                    .search_offset_async(at, timestamp, deadline, found);
            }
            ConsumeFromWhere::ConsumeFromTimestamp => {
                let found = self.start_where_found(request);
                instance.api().max_offset_async(at, deadline, found);
            }
            _ if is_retry => self.start_at(request, 0),
            _ => {
                let weak = Arc::downgrade(self);
                instance.api().max_offset_async(at, deadline, move |end| {
                    let Some(consumer) = weak.upgrade() else {
                        return;
                    };
                    match end {
                        Ok(end) if end > 0 => consumer.start_at_the_end(request, end),
                        end => (consumer.start_where_found(request))(end),
                    }
                });
            }
        }
    }

    fn start_where_found(
        self: &Arc<Self>,
        request: Box<PullRequest>,
    ) -> impl FnOnce(Result<i64>) + Send + use<> {
        let weak = Arc::downgrade(self);
        move |outcome| {
            let Some(consumer) = weak.upgrade() else {
                return;
            };
            match outcome {
                Ok(offset) => consumer.start_at(request, offset),
                Err(error) => consumer.on_pull_error(request, &error),
            }
        }
    }

    /// A message may have come between the two questions, for the group's offset and for the end. So
    /// the first one is asked again: of a queue that was empty a moment ago the broker now says 0,
    /// and of an old one again that it knows nothing, and then the end it is. (Java does not ask
    /// again, and passes such a message over.)
    fn start_at_the_end(self: &Arc<Self>, request: Box<PullRequest>, end: i64) {
        let Some(instance) = self.instance() else {
            return;
        };
        let weak = Arc::downgrade(self);
        let mq = request.mq.clone();
        let deadline = Deadline::after(OFFSET_TIMEOUT);
        self.offsets
            .read_from_store(&instance, &mq, deadline, move |outcome| {
                let Some(consumer) = weak.upgrade() else {
                    return;
                };
                match outcome {
                    Ok(offset) if offset >= 0 => consumer.start_at(request, offset),
                    Ok(_) | Err(Error::OffsetNotFound { .. }) => {
                        log::info!("group {}: no offset yet", consumer.group());
                        consumer.start_at(request, end);
                    }
                    Err(error) => consumer.on_pull_error(request, &error),
                }
            });
    }
}
