//! Pulls the messages of each owned queue, over and over.

use std::time::Duration;

use rocketmq_protocol::header::PullMessageRequestHeader;
use rocketmq_protocol::{MessageQueue, SubscriptionData, response_code, sys_flag};

use super::default_mq_push_consumer_impl::{DefaultMQPushConsumerImpl, OFFSET_TIMEOUT};
use super::process_queue::ProcessQueue;
use super::pull_api_wrapper::process_pull_result;
use super::pull_request::PullRequest;
use crate::client::{FindBrokerResult, OnlyThisBroker, PullReply};
use crate::error::{Error, Result};
use crate::sync::{Arc, Deadline};

/// Java `PULL_TIME_DELAY_MILLS_WHEN_CACHE_FLOW_CONTROL`.
const PULL_TIME_DELAY_WHEN_CACHE_FLOW_CONTROL: Duration = Duration::from_millis(50);
/// Java `PULL_TIME_DELAY_MILLS_WHEN_BROKER_FLOW_CONTROL`.
const PULL_TIME_DELAY_WHEN_BROKER_FLOW_CONTROL: Duration = Duration::from_millis(20);
/// Java `BROKER_SUSPEND_MAX_TIME_MILLIS`.
const BROKER_SUSPEND_MAX_TIME: Duration = Duration::from_secs(15);
/// Java `CONSUMER_TIMEOUT_MILLIS_WHEN_SUSPEND`: a broker sweeps the requests it holds only every 5
/// s, so an answer may come that much later than asked for.
const CONSUMER_TIMEOUT_WHEN_SUSPEND: Duration = Duration::from_secs(30);
const MEBIBYTE: u64 = 1024 * 1024;

impl DefaultMQPushConsumerImpl {
    /// Hands a queue's token to the pull thread in a while.
    pub(super) fn again(&self, request: Box<PullRequest>, delay: Duration) {
        if let Some(instance) = self.instance() {
            instance.pull_requests().execute_later(request, delay);
        }
    }

    /// One step of a queue's pull loop (Java `DefaultMQPushConsumerImpl#pullMessage`). A token whose
    /// queue is dropped, or whose consumer ends, dies here.
    pub(super) fn pull_message(self: &Arc<Self>, mut request: Box<PullRequest>) {
        let (true, false, Some(instance)) = (
            self.is_running(),
            request.process_queue.is_dropped(),
            self.instance(),
        ) else {
            return;
        };
        request.process_queue.pulled();
        if self.has_enough(&request.process_queue) {
            return self.again(request, PULL_TIME_DELAY_WHEN_CACHE_FLOW_CONTROL);
        }
        let Some(offset) = request.next_offset else {
            return self.find_start(&instance, request);
        };
        let Some(subscription) = self.config.subscriptions.get(request.mq.topic()) else {
            return;
        };
        let broker_name = instance.routes().broker_name(&request.mq);
        let Some(broker) = instance.brokers().find_broker_address_in_subscribe(
            &broker_name,
            request.suggested_broker_id,
            OnlyThisBroker::No,
        ) else {
            log::warn!("{}: its broker is in no route", request.mq);
            instance.refresh_routes_soon();
            return self.again(request, self.config.pull_time_delay_when_exception);
        };
        let mq = request.mq.clone();
        let weak = Arc::downgrade(self);
        let on_outcome = move |outcome: Result<PullReply>| {
            let Some(consumer) = weak.upgrade() else {
                return;
            };
            match outcome {
                Ok(reply) => {
                    request.suggested_broker_id = reply.header.suggest_which_broker_id;
                    request.next_offset = Some(reply.header.next_begin_offset);
                    consumer.on_pull_reply(request, offset, reply);
                }
                Err(error) => consumer.on_pull_error(request, &error),
            }
        };
        // The pull tells the broker how far the group has come.
        self.offsets.send_with_offset(&mq, |committed| {
            let header = self.pull_header((&mq, offset), committed, subscription, &broker);
            let deadline = Deadline::after(CONSUMER_TIMEOUT_WHEN_SUSPEND);
            instance
                .api()
                .pull_message_async(&broker.broker_addr, &header, deadline, on_outcome);
        });
    }

    fn pull_header(
        &self,
        (mq, offset): (&MessageQueue, i64),
        committed: Option<i64>,
        subscription: &SubscriptionData,
        broker: &FindBrokerResult,
    ) -> PullMessageRequestHeader {
        let committed = committed.filter(|offset| *offset > 0);
        let mut flags = sys_flag::PULL_SUSPEND;
        if committed.is_some() && !broker.slave {
            flags |= sys_flag::PULL_COMMIT_OFFSET;
        }
        PullMessageRequestHeader {
            consumer_group: self.group().to_owned(),
            topic: mq.topic().to_owned(),
            queue_id: mq.queue_id(),
            queue_offset: offset,
            max_msg_nums: self.config.pull_batch_size,
            sys_flag: flags,
            commit_offset: committed.unwrap_or(0),
            suspend_timeout_millis: BROKER_SUSPEND_MAX_TIME.as_millis() as i64,
            subscription: None,
            sub_version: subscription.sub_version,
            expression_type: Some(subscription.expression_type.name().to_owned()),
            max_msg_bytes: Some(self.config.pull_batch_size_in_bytes),
            broker_name: Some(mq.broker_name().to_owned()),
            ..PullMessageRequestHeader::default()
        }
    }

    /// Flow control: by count, by size, and by the distance that one stuck message may hold back.
    fn has_enough(&self, queue: &ProcessQueue) -> bool {
        let cached = queue.cached();
        cached.count > self.config.pull_threshold_for_queue
            || cached.body_bytes / MEBIBYTE > self.config.pull_threshold_size_for_queue
            || cached.span() > self.config.consume_concurrently_max_span
    }

    fn on_pull_reply(self: &Arc<Self>, request: Box<PullRequest>, offset: i64, reply: PullReply) {
        match reply.code {
            response_code::SUCCESS => self.on_found(request, offset, reply),
            response_code::PULL_OFFSET_MOVED => self.on_offset_illegal(&request),
            _ => {
                // Nothing is there, or nothing that matches: what was passed over is done, unless
                // something before it is still in work.
                if request.process_queue.cached().count == 0 {
                    let passed = reply.header.next_begin_offset;
                    self.commit(&request.mq, passed, &request.process_queue);
                }
                self.again(request, Duration::ZERO);
            }
        }
    }

    fn on_found(self: &Arc<Self>, mut request: Box<PullRequest>, offset: i64, reply: PullReply) {
        let Some(subscription) = self.config.subscriptions.get(request.mq.topic()) else {
            return;
        };
        let pulled = process_pull_result(&request.mq, offset, subscription, reply);
        request.next_offset = Some(pulled.next_offset);
        if pulled.messages.is_empty() {
            return self.again(request, Duration::ZERO);
        }
        let queue = Arc::clone(&request.process_queue);
        if queue
            .put_messages(&pulled.messages, pulled.retained_bytes)
            .is_err()
        {
            return;
        }
        self.consume_service
            .submit(self, &request.mq, &queue, pulled.messages);
        self.again(request, self.config.pull_interval);
    }

    pub(super) fn on_pull_error(self: &Arc<Self>, request: Box<PullRequest>, error: &Error) {
        let delay = match error.broker_code() {
            Some(response_code::FLOW_CONTROL) => PULL_TIME_DELAY_WHEN_BROKER_FLOW_CONTROL,
            _ => self.config.pull_time_delay_when_exception,
        };
        if self.is_running() && !request.process_queue.is_dropped() {
            log::warn!("pulling {}: {error}", request.mq);
        }
        if let (
            Some(response_code::SUBSCRIPTION_NOT_EXIST | response_code::SUBSCRIPTION_NOT_LATEST),
            Some(instance),
        ) = (error.broker_code(), self.instance())
        {
            // The broker has not heard of this member, because it was restarted for instance.
            instance.heartbeat_soon();
        }
        if let (Some(response_code::NOT_LEADER_FOR_QUEUE), Some(instance)) =
            (error.broker_code(), self.instance())
        {
            instance.refresh_routes_soon();
        }
        self.again(request, delay);
    }

    /// The broker says that the offset is none of the queue, and which one to go on from: that is
    /// stored, and the queue begun anew.
    fn on_offset_illegal(self: &Arc<Self>, request: &PullRequest) {
        let Some(instance) = self.instance() else {
            return;
        };
        let (mq, queue) = (&request.mq, &request.process_queue);
        let offset = request.next_offset.unwrap_or(0);
        log::warn!(
            "group {}: the offset of {mq} was moved to {offset}",
            self.group()
        );
        let deadline = Deadline::after(OFFSET_TIMEOUT);
        let weak = Arc::downgrade(self);
        let (of, dropped) = (mq.clone(), Arc::clone(queue));
        let stored = move |outcome: Result<()>| {
            let Some(consumer) = weak.upgrade() else {
                return;
            };
            if let Err(error) = outcome {
                let group = consumer.group();
                log::warn!("group {group}: offset {offset} of {of} is not saved: {error}");
            }
            consumer.rebalance.remove(&of, &dropped);
            if let Some(instance) = consumer.instance() {
                instance.rebalance_soon(consumer.group());
            }
        };
        self.offsets
            .drop_and_reset(&instance, mq, queue, (offset, deadline), stored);
    }
}
