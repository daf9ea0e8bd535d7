//! Sends whose messages go in batches with others.

use std::time::Duration;

use rocketmq_protocol::{Message, MessageQueue};

use super::async_send::{AsyncSend, Destination, End, RunOn};
use super::attempts::Budget;
use super::default_mq_producer_impl::{DefaultMQProducerImpl, Outgoing};
use super::produce_accumulator::{
    Added, AggregateKey, Gathering, Part, ProduceAccumulator, Room, split_send_result,
};
use super::send_kernel::{Prepared, check_sendable};
use super::send_result::SendResult;
use crate::client::MQClientInstance;
use crate::error::{Error, Result};
use crate::sync::{Arc, Deadline, channel};

/// How long the result of a batch may take from its deadline to the sender that waits for it.
const HAND_OVER: Duration = Duration::from_secs(5);

/// Whether a message goes with others.
pub(super) enum Gathered<C> {
    /// It does, and its callback will run.
    Yes,
    /// It is not sent.
    Refused(Error, Message),
    /// It has to go by itself.
    Alone(Message, C),
}

impl DefaultMQProducerImpl {
    /// Whether a message is to be gathered with others: then there is room for it.
    fn room_in_batch(&self, message: &Message) -> Option<(&ProduceAccumulator, Room)> {
        let accumulator = self.accumulator.as_ref()?;
        // What is wrong with it is said where it is sent by itself.
        check_sendable(message, &self.config.send).ok()?;
        Some((accumulator, accumulator.room_for(message)?))
    }

    /// Sends a message with others and waits for its result; `None` when it has to go by itself.
    ///
    /// # Java
    /// `DefaultMQProducer#sendByAccumulator`
    pub(super) fn send_by_accumulator(
        self: &Arc<Self>,
        message: &Message,
        mq: Option<&MessageQueue>,
    ) -> Option<Result<SendResult>> {
        let (accumulator, room) = self.room_in_batch(message)?;
        let timeout = self.config.send_msg_timeout;
        let deadline = Deadline::after(timeout);
        let flight = self.in_flight.begin();
        let instance = match self.instance() {
            Ok(instance) => instance,
            Err(error) => return Some(Err(error)),
        };
        let (tell, told) = channel::bounded(1);
        let callback = Box::new(move |outcome| {
            let _ = tell.send(outcome);
        });
        let end = End::new(self, callback, RunOn::Finder, None, Some(flight));
        let part = Part {
            message: message.clone(),
            end,
            room,
        };
        let key = AggregateKey::new(message, mq, true);
        let added = accumulator.add(&key, part, deadline, &instance);
        self.carry_on(&key, added, &instance);
        let longest = deadline.remaining().saturating_add(HAND_OVER);
        let outcome = told.recv_timeout(longest);
        Some(outcome.unwrap_or_else(|_| {
            Err(Error::RemotingTimeout {
                addr: format!("the broker of a batch for topic {}", message.topic()),
                timeout,
            })
        }))
    }

    /// [`send_by_accumulator`](Self::send_by_accumulator) without waiting for the result. What has to
    /// go by itself comes back with its callback.
    pub(super) fn send_async_by_accumulator<C>(
        self: &Arc<Self>,
        message: Message,
        mq: Option<&MessageQueue>,
        callback: C,
    ) -> Gathered<C>
    where
        C: FnOnce(Result<SendResult>, Message) + Send + 'static,
    {
        let Some((accumulator, room)) = self.room_in_batch(&message) else {
            return Gathered::Alone(message, callback);
        };
        let retries = self.config.retry_times_when_send_async_failed;
        let budget = Budget::new(retries, self.config.send_msg_timeout);
        let flight = self.in_flight.begin();
        let allowed = self.instance().and_then(|instance| {
            let permit = self.wait_for_room(&Outgoing::One(&message), &budget)?;
            Ok((instance, permit))
        });
        let (instance, permit) = match allowed {
            Ok(allowed) => allowed,
            Err(error) => return Gathered::Refused(error, message),
        };
        let returned = message.clone();
        let callback = Box::new(move |outcome| callback(outcome, returned));
        let end = End::new(self, callback, RunOn::Pool, permit, Some(flight));
        let key = AggregateKey::new(&message, mq, false);
        let part = Part { message, end, room };
        let added = accumulator.add(&key, part, budget.deadline, &instance);
        self.carry_on(&key, added, &instance);
        Gathered::Yes
    }

    /// Sends the batches that are ready, and has the one that was begun sent in time.
    fn carry_on(
        self: &Arc<Self>,
        key: &AggregateKey,
        added: Added,
        instance: &Arc<MQClientInstance>,
    ) {
        for batch in added.ready {
            self.send_gathered(key, batch);
        }
        let (Some(number), Some(accumulator)) = (added.begun, &self.accumulator) else {
            return;
        };
        let key = key.clone();
        let weak = Arc::downgrade(self);
        let delay = accumulator.batch_max_delay();
        instance.timer().schedule_once(delay, move || {
            let Some(this) = weak.upgrade() else {
                return;
            };
            let producer = Arc::clone(&this);
            let task = move || {
                let accumulator = producer.accumulator.as_ref();
                if let Some(batch) = accumulator.and_then(|a| a.take(&key, number)) {
                    producer.send_gathered(&key, batch);
                }
            };
            // Not on the timer's thread: hooks of the user run before a request. After the end of
            // the pool there is no other.
            if let Err(rejected) = this.async_sender_executor.execute(task) {
                (rejected.task)();
            }
        });
    }

    pub(super) fn send_gathered(self: &Arc<Self>, key: &AggregateKey, batch: Gathering) {
        let mut messages = Vec::with_capacity(batch.parts.len());
        let mut ends = Vec::with_capacity(batch.parts.len());
        for part in batch.parts {
            messages.push(part.message);
            ends.push((part.end, part.room));
        }
        let tell = move |outcome: Result<SendResult>| {
            let each = split_send_result(outcome, ends.len());
            for ((end, _room), outcome) in ends.into_iter().zip(each) {
                end.with(outcome);
            }
        };
        let prepared = match &messages[..] {
            [one] => Prepared::new(one, &self.config.send),
            several => Prepared::gathered(several, key.tags.as_deref(), &self.config.send),
        };
        let mq = key.mq.as_ref().map(|mq| self.queue_of(&key.topic, mq));
        let (prepared, mq) = match (prepared, mq.transpose()) {
            (Ok(prepared), Ok(mq)) => (Arc::new(prepared), mq),
            (Err(error), _) | (_, Err(error)) => return tell(Err(error)),
        };
        let retries = if key.sync {
            self.config.retry_times_when_send_failed
        } else {
            self.config.retry_times_when_send_async_failed
        };
        let send = AsyncSend {
            producer: Arc::clone(self),
            instance: batch.instance,
            prepared,
            destination: mq.map_or(Destination::Any, Destination::Queue),
            budget: Budget {
                attempts: retries.saturating_add(1),
                timeout: self.config.send_msg_timeout,
                deadline: batch.deadline,
            },
        };
        send.begin(End::new(self, Box::new(tell), RunOn::Finder, None, None));
    }
}
