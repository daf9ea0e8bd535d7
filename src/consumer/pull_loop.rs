//! Pulls the messages of each owned queue, over and over.

use std::time::Duration;

use rocketmq_protocol::header::PullMessageRequestHeader;
use rocketmq_protocol::{MessageQueue, StoredMessages, SubscriptionData, response_code, sys_flag};

use super::default_mq_push_consumer_impl::{DefaultMQPushConsumerImpl, OFFSET_TIMEOUT};
use super::process_queue::ProcessQueue;
use super::pull_api_wrapper::process_pull_result;
use super::pull_request::PullRequest;
use super::retained_bytes::retained_bytes;
use crate::client::{FindBrokerResult, OnlyThisBroker, PullReply};
use crate::error::{Error, Result, client_error_code};
use crate::service::catch_panic;
use crate::sync::atomic::Ordering;
use crate::sync::{Arc, Clock, Deadline};

/// Java `PULL_TIME_DELAY_MILLS_WHEN_CACHE_FLOW_CONTROL`.
const PULL_TIME_DELAY_WHEN_CACHE_FLOW_CONTROL: Duration = Duration::from_millis(50);
/// Java `PULL_TIME_DELAY_MILLS_WHEN_BROKER_FLOW_CONTROL`.
const PULL_TIME_DELAY_WHEN_BROKER_FLOW_CONTROL: Duration = Duration::from_millis(20);
/// How long a queue waits that came back before it had been given up wholly.
const PULL_TIME_DELAY_WHEN_HANDED_OVER: Duration = Duration::from_millis(5);
/// Java `PULL_TIME_DELAY_MILLS_WHEN_SUSPEND`.
const PULL_TIME_DELAY_WHEN_SUSPENDED: Duration = Duration::from_secs(1);
/// Java `BROKER_SUSPEND_MAX_TIME_MILLIS`.
const BROKER_SUSPEND_MAX_TIME: Duration = Duration::from_secs(15);
/// Java `CONSUMER_TIMEOUT_MILLIS_WHEN_SUSPEND`: a broker sweeps the requests it holds only every 5
/// s, so an answer may come that much later than asked for.
const CONSUMER_TIMEOUT_WHEN_SUSPEND: Duration = Duration::from_secs(30);
const MEBIBYTE: u64 = 1024 * 1024;
/// Larger replies are worked off on a thread for callbacks, in bytes.
const MOST_IN_PLACE: usize = 64 * 1024;

impl DefaultMQPushConsumerImpl {
    /// Hands a queue's token to the pull thread in a while.
    pub(super) fn again(&self, request: Box<PullRequest>, delay: Duration) {
        if let Some(instance) = self.instance() {
            instance.pull_requests().execute_later(request, delay);
        }
    }

    /// Pulls on after a reply: here and now, unless it is to be later. (Java hands the token to the pull
    /// thread, which costs a change of threads for each pull.) It waits for nothing.
    fn go_on(self: &Arc<Self>, request: Box<PullRequest>, delay: Duration) {
        if delay.is_zero() {
            self.pull_message(request);
        } else {
            self.again(request, delay);
        }
    }

    /// One step of a queue's pull loop (Java `DefaultMQPushConsumerImpl#pullMessage`). A token whose
    /// queue is dropped, or whose consumer ends, dies here.
    pub(super) fn pull_message(self: &Arc<Self>, request: Box<PullRequest>) {
        let (true, false, Some(instance)) = (
            self.is_running(),
            request.process_queue.is_given_up(),
            self.instance(),
        ) else {
            return;
        };
        request.process_queue.pulled();
        if self.is_suspended() {
            return self.again(request, PULL_TIME_DELAY_WHEN_SUSPENDED);
        }
        if self.has_enough(&request) {
            return self.again(request, PULL_TIME_DELAY_WHEN_CACHE_FLOW_CONTROL);
        }
        let Some(offset) = request.next_offset else {
            if self.hand_over.is_under_way(&request.mq) {
                return self.again(request, PULL_TIME_DELAY_WHEN_HANDED_OVER);
            }
            return self.find_start(&instance, request);
        };
        let Some(subscription) = self.subscriptions.get(request.mq.topic()) else {
            // The next rebalance drops the queue, unless the topic is subscribed again before.
            return self.again(request, self.config.pull_time_delay_when_exception);
        };
        let broker_name = instance.routes().broker_name(&request.mq);
        let Some(broker) = instance.brokers().find_broker_address_in_subscribe(
            &broker_name,
            request.suggested_broker_id,
            OnlyThisBroker::No,
        ) else {
            instance.refresh_routes_soon();
            let error = Error::client(
                client_error_code::BROKER_NOT_EXIST_EXCEPTION,
                format!("broker {broker_name} is in no route"),
            );
            return self.on_pull_error(request, &error);
        };
        let mq = request.mq.clone();
        let weak = Arc::downgrade(self);
        let (of, pull) = (mq.clone(), self.held_pulls.hold(request));
        let on_outcome = move |outcome: Result<PullReply>| {
            let Some(consumer) = weak.upgrade() else {
                return;
            };
            let Some(request) = consumer.held_pulls.take(&of, &pull) else {
                // The queue is pulled anew.
                return;
            };
            match outcome {
                Ok(reply) if consumer.is_soon_done(&reply) => {
                    // This thread serves others: a panic must not end it.
                    let done = catch_panic(|| consumer.on_pull_reply(request, offset, reply));
                    if let Err(reason) = done {
                        log::error!("{of} is pulled no more, the client panicked: {reason}");
                    }
                }
                outcome => {
                    let Some(instance) = consumer.instance() else {
                        return;
                    };
                    instance.execute_callback(Box::new(move || match outcome {
                        Ok(reply) => consumer.on_pull_reply(request, offset, reply),
                        Err(error) => consumer.on_pull_error(request, &error),
                    }));
                }
            }
        };
        // The pull tells the broker how far the group has come.
        self.offsets.send_with_offset(&mq, |committed| {
            let header = self.pull_header((&mq, offset), committed, &subscription, &broker);
            let deadline = Deadline::after(CONSUMER_TIMEOUT_WHEN_SUSPEND);
            instance
                .api()
                .pull_message_async(&broker.broker_addr, &header, deadline, on_outcome);
        });
    }

    /// Has the queues of a topic pulled anew whose pulls brokers hold with an old expression.
    pub(super) fn pull_anew(&self, topic: &str) {
        for request in self.held_pulls.take_all_of(topic) {
            self.again(Box::new(request), Duration::ZERO);
        }
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

    /// Flow control: by count, by size, by the distance that one stuck message may hold back, and by
    /// the memory that all received messages of the process keep.
    fn has_enough(&self, request: &PullRequest) -> bool {
        let cached = request.process_queue.cached();
        let (count, mebibytes) = self.thresholds(request.mq.topic());
        cached.count > count
            || cached.body_bytes / MEBIBYTE > mebibytes
            || cached.span() > self.config.consume_concurrently_max_span
            || self.process_has_enough()
    }

    /// How many messages and MiB of a queue may be in work: a threshold of the topic, divided among
    /// the topic's own queues, counts in place of the queue's. (Java writes the quotient over the
    /// user's setting, and divides by the number of own queues of all topics.)
    fn thresholds(&self, topic: &str) -> (u64, u64) {
        let config = &self.config;
        let of_topic = (
            config.pull_threshold_for_topic,
            config.pull_threshold_size_for_topic,
        );
        let own = match of_topic {
            (None, None) => 1,
            _ => (self.rebalance.process_queue_count(topic) as u64).max(1),
        };
        let part = |of_topic: Option<u64>, of_queue: u64| {
            of_topic.map_or(of_queue, |whole| (whole / own).max(1))
        };
        (
            part(of_topic.0, config.pull_threshold_for_queue),
            part(of_topic.1, config.pull_threshold_size_for_queue),
        )
    }

    fn process_has_enough(&self) -> bool {
        let Some(most) = self.config.max_retained_bytes else {
            return false;
        };
        let kept = retained_bytes();
        let enough = kept >= most;
        if enough != self.waits_for_memory.swap(enough, Ordering::Relaxed) && enough {
            log::warn!(
                "group {}: received messages keep {kept} bytes, max_retained_bytes is {most}; \
                 nothing is pulled until some are let go of",
                self.group()
            );
        }
        enough
    }

    /// Whether the thread that has read a reply may work it off, the event loop's as a rule: it takes
    /// microseconds and runs no code of the user. So most pulls cost no change of threads but that to the
    /// listener's.
    fn is_soon_done(&self, reply: &PullReply) -> bool {
        match reply.code {
            response_code::SUCCESS => {
                reply.body.len() <= MOST_IN_PLACE
                    && self.config.hooks.filter_message.is_empty()
                    && !StoredMessages::may_have_compressed(&reply.body)
            }
            code => code != response_code::PULL_OFFSET_MOVED,
        }
    }

    fn on_pull_reply(
        self: &Arc<Self>,
        mut request: Box<PullRequest>,
        offset: i64,
        reply: PullReply,
    ) {
        request.suggested_broker_id = reply.header.suggest_which_broker_id;
        request.next_offset = Some(reply.header.next_begin_offset);
        if request.process_queue.is_given_up() {
            return;
        }
        match reply.code {
            response_code::SUCCESS => self.on_found(request, offset, reply),
            response_code::PULL_OFFSET_MOVED => self.on_offset_illegal(&request),
            _ => {
                // Nothing is there, or nothing that matches.
                self.unreachable.note_answer(&mut request);
                self.pass_over(&request, reply.header.next_begin_offset);
                self.go_on(request, Duration::ZERO);
            }
        }
    }

    /// What was passed over is done as soon as all before it is.
    fn pass_over(&self, request: &PullRequest, next: i64) {
        if let Some(offset) = request.process_queue.passed_to(next) {
            self.commit(&request.mq, offset, &request.process_queue);
        }
    }

    fn on_found(self: &Arc<Self>, mut request: Box<PullRequest>, offset: i64, reply: PullReply) {
        let subscription = self.subscriptions.get(request.mq.topic());
        let (Some(subscription), false) = (subscription, self.is_suspended()) else {
            // It is pulled once more if it is wanted then.
            request.next_offset = Some(offset);
            return self.again(request, PULL_TIME_DELAY_WHEN_SUSPENDED);
        };
        let mut pulled = process_pull_result(&request.mq, offset, &subscription, reply);
        let hooks = &self.config.hooks;
        hooks.filter(self, &request.mq, &mut pulled.messages);
        request.next_offset = Some(pulled.next_offset);
        if pulled.next_offset <= offset {
            // At once the same would come again, for ever.
            let error = Error::MQClient {
                code: None,
                reason: format!(
                    "the broker answers a pull from offset {offset} with {} messages and is to be \
                     asked from {} on",
                    pulled.messages.len(),
                    pulled.next_offset
                ),
                source: None,
            };
            request.next_offset = Some(offset);
            return self.on_pull_error(request, &error);
        }
        self.unreachable.note_answer(&mut request);
        if pulled.messages.is_empty() {
            self.pass_over(&request, pulled.next_offset);
            return self.go_on(request, Duration::ZERO);
        }
        let queue = Arc::clone(&request.process_queue);
        if queue.put_messages(&pulled.messages).is_err() {
            return;
        }
        self.pass_over(&request, pulled.next_offset);
        self.consume_service
            .submit(self, &request.mq, &queue, pulled.messages);
        self.go_on(request, self.config.pull_interval);
    }

    pub(super) fn on_pull_error(self: &Arc<Self>, mut request: Box<PullRequest>, error: &Error) {
        let delay = match error.broker_code() {
            Some(response_code::FLOW_CONTROL) => PULL_TIME_DELAY_WHEN_BROKER_FLOW_CONTROL,
            _ => self.config.pull_time_delay_when_exception,
        };
        if self.is_running() && !request.process_queue.is_given_up() {
            self.unreachable.note_failure(&request, error);
        }
        request.failures = request.failures.saturating_add(1);
        if error.broker_code() == Some(response_code::TOPIC_NOT_EXIST) {
            self.forget_offsets(&mut request);
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
        if let (Error::RemotingConnect { .. }, Some(instance)) = (error, self.instance()) {
            // A replica may stand in for it once the route says that it is gone.
            instance.broker_failed();
        }
        self.again(request, delay);
    }

    /// The topic was deleted at the broker. One that comes back under its name counts from 0 again, so
    /// that the old offset would pass over as many messages as the old queue had: where to start is
    /// asked anew, and what the listener has of the old queue is committed no more. (Java goes on at
    /// the old offset.)
    fn forget_offsets(&self, request: &mut PullRequest) {
        if request.next_offset.is_none_or(|offset| offset <= 0) {
            return;
        }
        let new = Arc::new(ProcessQueue::new(Clock::Real));
        let (mq, old) = (&request.mq, &request.process_queue);
        if self.rebalance.replace(mq, old, &new) {
            self.offsets.drop_queue(mq, old);
            request.process_queue = new;
            request.next_offset = None;
        }
    }

    /// The broker says that the offset is none of the queue, and which one to go on from: that is
    /// stored, and the queue begun anew.
    fn on_offset_illegal(self: &Arc<Self>, request: &PullRequest) {
        let (mq, queue) = (&request.mq, &request.process_queue);
        let offset = request.next_offset.unwrap_or(0);
        log::warn!(
            "group {}: the offset of {mq} was moved to {offset}",
            self.group()
        );
        self.begin_anew(mq, queue, offset);
    }

    /// Drops a queue with no commit after that, saves another offset for it, and has it allocated
    /// again; whoever gets it goes on there.
    pub(super) fn begin_anew(
        self: &Arc<Self>,
        mq: &MessageQueue,
        queue: &Arc<ProcessQueue>,
        offset: i64,
    ) {
        let Some(instance) = self.instance() else {
            return;
        };
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
            consumer.being_moved.lock().remove(&of);
            if let Some(instance) = consumer.instance() {
                instance.rebalance_soon(consumer.group());
            }
        };
        self.being_moved.lock().insert(mq.clone());
        self.offsets
            .drop_and_reset(&instance, mq, queue, (offset, deadline), stored);
    }
}
