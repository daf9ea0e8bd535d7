//! A send that nobody waits for: from attempt to attempt to its callback.

use std::fmt;
use std::time::{Duration, Instant};

use rocketmq_protocol::MessageQueue;

use super::attempts::{Attempt, Attempts, Budget, Progress, used_up};
use super::back_pressure::Permit;
use super::default_mq_producer_impl::DefaultMQProducerImpl;
use super::hooked_send::{HookedSend, Place};
use super::in_flight::Flight;
use super::send_kernel::{Master, Prepared, send_kernel_async};
use super::send_message_hook::CommunicationMode;
use super::send_result::SendResult;
use crate::client::{MQClientInstance, TopicPublishInfo};
use crate::error::{Error, Result};
use crate::service::catch_panic;
use crate::sync::Arc;

/// What runs with the result of an asynchronous send.
pub(super) type Callback = Box<dyn FnOnce(Result<SendResult>) + Send>;

/// Which thread runs a callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunOn {
    /// One of the pool for users' callbacks, which may block.
    Pool,
    /// The one that finds the result.
    Finder,
}

/// Chooses a queue of those of a topic.
pub(super) type Select = Box<dyn FnOnce(&TopicPublishInfo) -> Result<MessageQueue> + Send>;

/// Where a message is to go.
pub(super) enum Destination {
    /// Wherever the strategy says, with further attempts.
    Any,
    /// To this queue, once.
    Queue(MessageQueue),
    /// To the queue that is chosen, once.
    Selected(Select),
}

/// A send that is allowed; it begins once it is told whom to tell.
pub(super) struct AsyncSend {
    pub(super) producer: Arc<DefaultMQProducerImpl>,
    pub(super) instance: Arc<MQClientInstance>,
    pub(super) prepared: Arc<Prepared>,
    pub(super) destination: Destination,
    pub(super) budget: Budget,
}

impl AsyncSend {
    /// Begins the send. Does not wait: what has to wait for a route goes on on another thread.
    pub(super) fn begin(self, end: End) {
        let sending = Sending {
            end,
            producer: self.producer,
            instance: self.instance,
            prepared: self.prepared,
            budget: self.budget,
        };
        sending.begin(self.destination);
    }
}

/// A send under way.
struct Sending {
    producer: Arc<DefaultMQProducerImpl>,
    instance: Arc<MQClientInstance>,
    prepared: Arc<Prepared>,
    budget: Budget,
    end: End,
}

/// The end of an asynchronous send: it comes exactly once, also when all else is dropped.
pub(super) struct End {
    producer: Arc<DefaultMQProducerImpl>,
    callback: Option<Callback>,
    run_on: RunOn,
    permit: Option<Permit>,
    flight: Option<Flight>,
    /// The last broker that the message went to.
    sent_to: Option<Arc<str>>,
    /// There from the first attempt on, if a hook is to be told of the end. It is large, and moves
    /// with the send from hand to hand.
    hooked: Option<Box<HookedSend>>,
}

impl End {
    /// The end of a send that holds these until then.
    pub(super) fn new(
        producer: &Arc<DefaultMQProducerImpl>,
        callback: Callback,
        run_on: RunOn,
        permit: Option<Permit>,
        flight: Option<Flight>,
    ) -> Self {
        Self {
            producer: Arc::clone(producer),
            callback: Some(callback),
            run_on,
            permit,
            flight,
            sent_to: None,
            hooked: None,
        }
    }

    pub(super) fn producer(&self) -> &Arc<DefaultMQProducerImpl> {
        &self.producer
    }

    pub(super) fn with(mut self, result: Result<SendResult>) {
        self.run(result);
    }

    fn run(&mut self, result: Result<SendResult>) {
        let Some(callback) = self.callback.take() else {
            return;
        };
        // Before the callback: it may send the next message, and wait for room.
        self.permit = None;
        let due = Due {
            hooked: self.hooked.take(),
            what: Some((callback, result)),
            flight: self.flight.take(),
        };
        let executor = match (self.run_on, &due.hooked) {
            (RunOn::Pool, _) => &self.producer.callback_executor,
            // A hook may block. Users' callbacks may wait for just this send, and use up their pool.
            (RunOn::Finder, Some(_)) => &self.producer.async_sender_executor,
            (RunOn::Finder, None) => return drop(due),
        };
        if let Err(rejected) = executor.execute(move || drop(due)) {
            self.producer.run_after_end(rejected.task);
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let reason = "the producer ended before the send did".to_owned();
        let error = match self.sent_to.take() {
            Some(addr) => Error::RemotingSendRequest {
                addr: addr.to_string(),
                reason,
                written: true,
            },
            None => Error::RemotingTooMuchRequest { reason },
        };
        self.run(Err(error));
    }
}

/// A callback whose time has come. It runs when this is dropped: by a thread of the pool, or by
/// whoever drops the pool's queue.
struct Due {
    /// Told before the callback.
    hooked: Option<Box<HookedSend>>,
    what: Option<(Callback, Result<SendResult>)>,
    flight: Option<Flight>,
}

impl Drop for Due {
    fn drop(&mut self) {
        let Some((callback, result)) = self.what.take() else {
            return;
        };
        if let Some(hooked) = self.hooked.take() {
            hooked.end(result.clone().map(Some));
        }
        // Whoever drops this may be in the middle of dropping others.
        if let Err(reason) = catch_panic(move || callback(result)) {
            log::error!("caught a panic of the callback of a send: {reason}");
        }
        if let Some(flight) = &mut self.flight {
            flight.was_told();
        }
    }
}

impl fmt::Debug for AsyncSend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncSend")
            .field("prepared", &self.prepared)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("End")
            .field("pending", &self.callback.is_some())
            .finish_non_exhaustive()
    }
}

impl Sending {
    fn begin(self, destination: Destination) {
        if let Destination::Queue(mq) = destination {
            return self.send_to(mq);
        }
        match self.producer.topic_publish_info(self.prepared.topic()) {
            Some(info) => self.send_over(info, destination),
            None => self.elsewhere(|this| {
                let topic = this.prepared.topic();
                let found = this.producer.try_to_find_topic_publish_info(
                    &this.instance,
                    topic,
                    this.budget.deadline,
                );
                match found {
                    Ok(info) => this.send_over(info, destination),
                    Err(error) => this.end.with(Err(error)),
                }
            }),
        }
    }

    /// Goes on on a thread that may wait.
    fn elsewhere(self, work: impl FnOnce(Self) + Send + 'static) {
        let producer = Arc::clone(&self.producer);
        let task = move || work(self);
        if let Err(rejected) = producer.async_sender_executor.execute(task) {
            // Dropping it ends the send.
            log::warn!("an asynchronous send cannot go on: {}", rejected.reason);
        }
    }

    fn send_over(self, info: Arc<TopicPublishInfo>, destination: Destination) {
        match destination {
            Destination::Any => {
                let topic = self.prepared.topic();
                let attempts = self.producer.attempts(topic, info, self.budget.clone());
                self.go_on(attempts);
            }
            Destination::Queue(mq) => self.send_to(mq),
            Destination::Selected(select) => match select(&info) {
                Ok(mq) => self.send_to(mq),
                Err(error) => self.end.with(Err(error)),
            },
        }
    }

    fn send_to(self, mq: MessageQueue) {
        if self.budget.deadline.has_passed() {
            let error = used_up(self.prepared.topic(), self.budget.timeout);
            return self.end.with(Err(error));
        }
        let attempt = Attempt {
            mq,
            deadline: self.budget.deadline,
        };
        self.attempt(attempt, |this, _, _, outcome| this.end.with(outcome));
    }

    /// Makes the next attempt, or ends.
    fn go_on(self, mut attempts: Attempts) {
        let Some(attempt) = attempts.next() else {
            return self.end.with(attempts.finish());
        };
        self.attempt(attempt, move |this, attempt, took, outcome| match attempts
            .ended(&attempt, took, outcome)
        {
            Progress::GoOn => this.go_on_after_failure(attempts),
            Progress::Ended => this.end.with(attempts.finish()),
        });
    }

    /// The thread that has found the failure may be the event loop, and hooks of the user are called
    /// before the next attempt.
    fn go_on_after_failure(self, attempts: Attempts) {
        if self.producer.send_hooks().is_some() {
            self.elsewhere(|this| this.go_on(attempts));
        } else {
            self.go_on(attempts);
        }
    }

    fn attempt<F>(self, attempt: Attempt, then: F)
    where
        F: FnOnce(Self, Attempt, Duration, Result<SendResult>) + Send + 'static,
    {
        let began = self.producer.fault_strategy().now();
        match Master::known(&self.instance, &attempt.mq) {
            Some(master) => self.start(began, &master, attempt, then),
            None => self.elsewhere(move |this| {
                let topic = this.prepared.topic();
                match Master::find(&this.instance, topic, &attempt.mq, attempt.deadline) {
                    Ok(master) => this.start(began, &master, attempt, then),
                    Err(error) => {
                        let took = this.since(began);
                        then(this, attempt, took, Err(error));
                    }
                }
            }),
        }
    }

    fn start<F>(mut self, began: Instant, master: &Master, attempt: Attempt, then: F)
    where
        F: FnOnce(Self, Attempt, Duration, Result<SendResult>) + Send + 'static,
    {
        if let Err(error) = self.before(master, &attempt) {
            let took = self.since(began);
            return then(self, attempt, took, Err(error));
        }
        self.end.sent_to = Some(Arc::clone(master.addr()));
        let instance = Arc::clone(&self.instance);
        let prepared = Arc::clone(&self.prepared);
        let to = Attempt {
            mq: attempt.mq.clone(),
            deadline: attempt.deadline,
        };
        send_kernel_async(&instance, prepared, master, &to, move |outcome| {
            let took = self.since(began);
            then(self, attempt, took, outcome);
        });
    }

    /// Asks the hooks whether the attempt may be made, and tells them of the first one.
    fn before(&mut self, master: &Master, attempt: &Attempt) -> Result<()> {
        let Some(hooks) = self.producer.send_hooks() else {
            return Ok(());
        };
        let place = Place {
            instance: &self.instance,
            master,
            mq: &attempt.mq,
            mode: CommunicationMode::Async,
            deadline: attempt.deadline,
        };
        let producer = &self.producer;
        producer.check_forbidden(hooks, &self.prepared, &place)?;
        if self.end.hooked.is_some() || hooks.send_message.is_empty() {
            return Ok(());
        }
        let (hooked, in_time) = producer.before_send(hooks, &self.prepared, &place);
        if let Some(changed) = hooked.changed(&self.prepared) {
            self.prepared = Arc::new(changed);
        }
        self.end.hooked = Some(Box::new(hooked));
        in_time
    }

    fn since(&self, began: Instant) -> Duration {
        let now = self.producer.fault_strategy().now();
        now.saturating_duration_since(began)
    }
}
