use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use rocketmq_protocol::MessageExt;

use crate::error::{Error, Result, client_error_code};
use crate::service::{ScheduledService, TaskHandle, ThreadPool};
use crate::sync::{Arc, Mutex, Weak, channel};

/// Who waits for which reply (Java `RequestFutureHolder`, which looks for late ones once a second;
/// here each has a timer). Whoever takes an entry out of the table completes it, so each is
/// completed once.
pub(crate) struct RequestFutureHolder {
    executor: Arc<ThreadPool>,
    timer: Arc<ScheduledService>,
    table: Mutex<HashMap<String, Pending>>,
}

/// A request message whose reply is waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestOf<'a> {
    pub(crate) correlation_id: &'a str,
    /// The group of the producer, as brokers know it.
    pub(crate) group: &'a str,
    pub(crate) topic: &'a str,
    pub(crate) timeout: Duration,
}

struct Pending {
    group: String,
    end: RequestEnd,
    expiry: Option<TaskHandle>,
}

/// Who hears how a request ended.
pub(crate) enum RequestEnd {
    /// A thread that waits, which needs none of the pool's.
    Caller(channel::Sender<Result<MessageExt>>),
    /// A callback, which runs on the pool for callbacks.
    Callback(Box<dyn FnOnce(Result<MessageExt>) + Send>),
}

impl RequestFutureHolder {
    pub(crate) fn new(executor: Arc<ThreadPool>, timer: Arc<ScheduledService>) -> Self {
        Self {
            executor,
            timer,
            table: Mutex::new(HashMap::new()),
        }
    }

    /// Waits for a reply. `end` hears once: of the reply, of the end of the time, or of what
    /// [`complete`](Self::complete) brings.
    pub(crate) fn add(self: &Arc<Self>, request: RequestOf<'_>, end: RequestEnd) {
        let RequestOf {
            correlation_id,
            group,
            topic,
            timeout,
        } = request;
        let pending = Pending {
            group: group.to_owned(),
            end,
            expiry: None,
        };
        self.table.lock().insert(correlation_id.to_owned(), pending);
        let holder: Weak<Self> = Arc::downgrade(self);
        let (id, late) = (correlation_id.to_owned(), no_reply(topic, timeout));
        let expiry = self.timer.schedule_once(timeout, move || {
            if let Some(holder) = holder.upgrade() {
                holder.complete(&id, Err(late));
            }
        });
        match self.table.lock().get_mut(correlation_id) {
            Some(pending) => pending.expiry = Some(expiry),
            None => {
                expiry.cancel();
            }
        }
    }

    /// Ends a wait, and says whether there was one.
    pub(crate) fn complete(&self, correlation_id: &str, outcome: Result<MessageExt>) -> bool {
        let pending = self.table.lock().remove(correlation_id);
        let found = pending.is_some();
        if let Some(pending) = pending {
            self.run(pending, outcome);
        }
        found
    }

    /// Ends all waits of a group whose producer goes.
    pub(crate) fn fail_all_of(&self, group: &str, error: &Error) {
        let ended: Vec<Pending> = {
            let mut table = self.table.lock();
            let ids: Vec<String> = table
                .iter()
                .filter(|(_, pending)| pending.group == group)
                .map(|(id, _)| id.clone())
                .collect();
            ids.iter().filter_map(|id| table.remove(id)).collect()
        };
        for pending in ended {
            self.run(pending, Err(error.clone()));
        }
    }

    fn run(&self, pending: Pending, outcome: Result<MessageExt>) {
        if let Some(expiry) = pending.expiry {
            expiry.cancel();
        }
        let callback = match pending.end {
            RequestEnd::Caller(sender) => {
                // A caller that gave up has gone.
                let _ = sender.send(outcome);
                return;
            }
            RequestEnd::Callback(callback) => callback,
        };
        if let Err(rejected) = self.executor.execute(move || callback(outcome)) {
            // Without a pool this thread is as good as any; nobody is left without an outcome.
            (rejected.task)();
        }
    }
}

/// Java `RequestTimeoutException`.
pub(crate) fn no_reply(topic: &str, timeout: Duration) -> Error {
    Error::client(
        client_error_code::REQUEST_TIMEOUT_EXCEPTION,
        format!(
            "no reply to the request message to topic {topic} within {} ms",
            timeout.as_millis()
        ),
    )
}

impl fmt::Debug for RequestFutureHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestFutureHolder")
            .field("waiting", &self.table.lock().len())
            .finish_non_exhaustive()
    }
}
