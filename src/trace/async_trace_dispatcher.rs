//! Takes what happened, and has it sent from a thread of its own.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use rocketmq_protocol::Message;

use super::trace_batch::{TRACE_TOPIC_PREFIX, batches};
use super::trace_config::TraceConfig;
use super::trace_context::TraceContext;
use crate::error::{Error, Result};
use crate::service::{ServiceContext, ServiceHandle, ServiceThread};
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Arc, Deadline, Mutex, Wakeup, add, now};

/// How many contexts wait at most.
const CAPACITY: usize = 2048;
/// How long a context waits for others.
const FLUSH_TRACE_INTERVAL: Duration = Duration::from_secs(5);
const SEND_TIMEOUT: Duration = Duration::from_secs(5);
/// How many messages are under way at most. (Java: as many as 2048 tasks of an executor begin.)
const MOST_IN_FLIGHT: usize = 32;

/// Who carries the messages away.
pub(crate) trait TraceSender: Send + Sync + 'static {
    fn start(&self) -> Result<()>;

    /// Begins to send and does not wait. The flight is told how it ended.
    fn send(&self, message: Message, timeout: Duration, flight: TraceFlight);

    /// Ends it, and returns whether its threads have ended in time.
    fn end(&self, deadline: Deadline) -> bool;
}

/// What happened goes through here to the trace topic (Java `AsyncTraceDispatcher`).
pub(crate) struct AsyncTraceDispatcher {
    queue: Arc<TraceQueue>,
    service: ServiceHandle<Worker>,
    sender: Arc<dyn TraceSender>,
    trace_topic: String,
}

impl AsyncTraceDispatcher {
    /// Of the group of that plain name.
    pub(crate) fn new(group: &str, config: TraceConfig, sender: Arc<dyn TraceSender>) -> Self {
        let queue = Arc::new(TraceQueue {
            group: group.to_owned(),
            batch_num: config.trace_msg_batch_num,
            waiting: Mutex::new(Waiting::default()),
            discarded: AtomicU64::new(0),
            in_flight: AtomicUsize::new(0),
            is_failing: AtomicBool::new(false),
        });
        Self {
            service: ServiceHandle::new(Arc::new(Worker {
                queue: Arc::clone(&queue),
                trace_topic: config.trace_topic.clone(),
                config: config.clone(),
                sender: Arc::clone(&sender),
            })),
            queue,
            sender,
            trace_topic: config.trace_topic,
        }
    }

    /// Whether messages of a topic are not to be told of, because they tell of others.
    pub(crate) fn is_trace_topic(&self, topic: &str) -> bool {
        topic.starts_with(&self.trace_topic) || topic.starts_with(TRACE_TOPIC_PREFIX)
    }

    /// Starts sending.
    ///
    /// # Errors
    /// The sender cannot start, or there is no thread; then nothing is kept.
    pub(crate) fn start(&self) -> Result<()> {
        let started = self.sender.start().and_then(|()| {
            let started = self.service.start().map(|_| ());
            started.map_err(|error| Error::MQClient {
                code: None,
                reason: format!("the thread that sends traces cannot be started: {error}"),
                source: None,
            })
        });
        if started.is_err() {
            self.queue.close(Deadline::at(now()));
        }
        started
    }

    /// Takes a context, without waiting; one that has no room is thrown away.
    pub(crate) fn append(&self, context: TraceContext) {
        if let Some(waiting) = self.queue.put(context) {
            // The first one begins a time of waiting, and a full batch ends it.
            if waiting == 1 || waiting == self.queue.batch_num {
                self.service.wakeup();
            }
        }
    }

    /// How many contexts were thrown away.
    pub(crate) fn discard_count(&self) -> u64 {
        self.queue.discarded.load(Ordering::Relaxed)
    }

    /// Sends what is there, until the deadline, and returns whether all threads have ended.
    pub(crate) fn shutdown(&self, deadline: Deadline) -> bool {
        self.queue.close(deadline);
        let joined = self.service.shutdown_until(deadline).is_over();
        self.sender.end(deadline) && joined
    }
}

impl fmt::Debug for AsyncTraceDispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncTraceDispatcher")
            .field("trace_topic", &self.trace_topic)
            .field("waiting", &self.queue.len())
            .field("discarded", &self.discard_count())
            .finish_non_exhaustive()
    }
}

/// Contexts on their way to the thread, and the account of what was lost.
struct TraceQueue {
    group: String,
    batch_num: usize,
    waiting: Mutex<Waiting>,
    discarded: AtomicU64,
    in_flight: AtomicUsize,
    is_failing: AtomicBool,
}

#[derive(Default)]
struct Waiting {
    contexts: VecDeque<TraceContext>,
    /// Until when what is there is sent still, once nothing more is taken.
    closed: Option<Deadline>,
}

impl TraceQueue {
    /// How many there are now, if it was taken.
    fn put(&self, context: TraceContext) -> Option<usize> {
        let mut waiting = self.waiting.lock();
        if waiting.closed.is_none() && waiting.contexts.len() < CAPACITY {
            waiting.contexts.push_back(context);
            return Some(waiting.contexts.len());
        }
        drop(waiting);
        self.discard(1, "there is no room for more");
        None
    }

    fn discard(&self, contexts: u64, why: &str) {
        if contexts == 0 {
            return;
        }
        let before = self.discarded.fetch_add(contexts, Ordering::Relaxed);
        // At powers of two, so that a flood of them is no flood of lines.
        if (before + contexts).ilog2() > before.checked_ilog2().unwrap_or(0) || before == 0 {
            let all = before + contexts;
            log::warn!("group {}: {all} traces were thrown away: {why}", self.group);
        }
    }

    fn len(&self) -> usize {
        self.waiting.lock().contexts.len()
    }

    fn take(&self) -> Vec<TraceContext> {
        let mut waiting = self.waiting.lock();
        let count = self.batch_num.min(waiting.contexts.len());
        waiting.contexts.drain(..count).collect()
    }

    fn close(&self, deadline: Deadline) {
        self.waiting.lock().closed.get_or_insert(deadline);
    }

    fn closed(&self) -> Option<Deadline> {
        self.waiting.lock().closed
    }
}

/// A message under way; however it ends, the next one has its place then.
pub(crate) struct TraceFlight {
    queue: Arc<TraceQueue>,
    wakeup: Arc<Wakeup>,
    contexts: u64,
}

impl TraceFlight {
    /// What it carries has arrived, or is lost.
    pub(crate) fn end(self, outcome: Result<(), &Error>) {
        match outcome {
            Ok(()) => self.queue.is_failing.store(false, Ordering::Relaxed),
            Err(error) => {
                if !self.queue.is_failing.swap(true, Ordering::Relaxed) {
                    log::warn!("group {}: traces cannot be sent: {error}", self.queue.group);
                }
                self.queue.discard(self.contexts, "they could not be sent");
            }
        }
    }
}

impl Drop for TraceFlight {
    fn drop(&mut self) {
        self.queue.in_flight.fetch_sub(1, Ordering::AcqRel);
        self.wakeup.wakeup();
    }
}

impl fmt::Debug for TraceFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceFlight")
            .field("contexts", &self.contexts)
            .finish_non_exhaustive()
    }
}

struct Worker {
    queue: Arc<TraceQueue>,
    trace_topic: String,
    config: TraceConfig,
    sender: Arc<dyn TraceSender>,
}

impl Worker {
    /// Sends the next batch; returns whether there was one.
    fn flush(&self, wakeup: &Arc<Wakeup>, timeout: Duration) -> bool {
        let contexts = self.queue.take();
        for batch in batches(&contexts, &self.config) {
            self.queue.in_flight.fetch_add(1, Ordering::AcqRel);
            let flight = TraceFlight {
                queue: Arc::clone(&self.queue),
                wakeup: Arc::clone(wakeup),
                contexts: batch.contexts,
            };
            self.sender.send(batch.message, timeout, flight);
        }
        !contexts.is_empty()
    }
}

impl ServiceThread for Worker {
    fn service_name(&self) -> String {
        format!("AsyncTraceDispatcher_{}", self.queue.group)
    }

    fn run(&self, context: &ServiceContext) {
        let wakeup = context.wakeup_of_thread();
        let mut due = add(now(), FLUSH_TRACE_INTERVAL);
        while !context.is_stopped() {
            let waiting = self.queue.len();
            let has_room = self.queue.in_flight.load(Ordering::Acquire) < MOST_IN_FLIGHT;
            let is_due = waiting >= self.queue.batch_num || (waiting > 0 && now() >= due);
            if has_room && is_due {
                self.flush(&wakeup, SEND_TIMEOUT);
                due = add(now(), FLUSH_TRACE_INTERVAL);
            } else if has_room && waiting > 0 {
                context.wait_until(Deadline::at(due));
            } else {
                // Until the first context, or until a message has ended.
                context.wait_for_running(FLUSH_TRACE_INTERVAL);
            }
        }
        if let Some(deadline) = self.queue.closed() {
            while !deadline.has_passed() && self.flush(&wakeup, deadline.remaining()) {}
        }
        let left = self.queue.waiting.lock().contexts.drain(..).len() as u64;
        self.queue
            .discard(left, "the time of the shutdown was over");
        log::debug!(
            "{}: no more traces for {}",
            self.queue.group,
            self.trace_topic
        );
    }
}

/// A dispatcher that nobody starts, for tests of what is handed in.
#[cfg(test)]
pub(crate) mod not_started {
    use super::*;

    struct Nobody;

    impl TraceSender for Nobody {
        fn start(&self) -> Result<()> {
            Ok(())
        }

        fn send(&self, _: Message, _: Duration, _: TraceFlight) {}

        fn end(&self, _: Deadline) -> bool {
            true
        }
    }

    pub(crate) fn dispatcher(trace_topic: &str) -> Arc<AsyncTraceDispatcher> {
        let config = TraceConfig {
            trace_topic: trace_topic.to_owned(),
            ..TraceConfig::default()
        };
        Arc::new(AsyncTraceDispatcher::new("group", config, Arc::new(Nobody)))
    }

    /// The records of what was handed in, without time and request id.
    pub(crate) fn timeless(dispatcher: &AsyncTraceDispatcher) -> Vec<String> {
        let contexts = std::mem::take(&mut dispatcher.queue.waiting.lock().contexts);
        let mut records = Vec::new();
        for context in contexts.into_iter().filter(|c| c.region_id.is_some()) {
            let context = TraceContext {
                time_stamp: 0,
                cost_time: 0,
                request_id: "request".to_owned(),
                ..context
            };
            let encoded = crate::trace::encode(&context, crate::trace::AccessChannel::Local);
            records.push(encoded.into_iter().map(|r| r.trans_data).collect());
        }
        records
    }
}
