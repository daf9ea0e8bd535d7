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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rocketmq_protocol::{Message, StoredMessage};

    use super::*;
    use crate::sync::Deadline;
    use crate::sync::atomic::{AtomicUsize, Ordering};

    fn holder() -> Arc<RequestFutureHolder> {
        let timer = Arc::new(ScheduledService::new("ClientTimer"));
        timer.start().unwrap();
        let executor = Arc::new(ThreadPool::new("ClientCallbackExecutor", 2));
        Arc::new(RequestFutureHolder::new(executor, timer))
    }

    fn request(correlation_id: &str, timeout: Duration) -> RequestOf<'_> {
        RequestOf {
            correlation_id,
            group: "g",
            topic: "T",
            timeout,
        }
    }

    fn reply() -> MessageExt {
        let host = "127.0.0.1:1".parse().unwrap();
        let message = Message::new("T", b"x".as_slice());
        let stored = StoredMessage {
            queue_id: 0,
            flag: 0,
            queue_offset: 0,
            commit_log_offset: 0,
            sys_flag: 0,
            born_timestamp: 0,
            born_host: host,
            store_timestamp: 0,
            store_host: host,
            reconsume_times: 0,
            prepared_transaction_offset: 0,
            body: message.body().clone(),
            topic: "T".to_owned(),
            properties: String::new(),
        };
        stored.into_message_ext(1).unwrap()
    }

    /// apache/rocketmq#1727, #10613: a reply that comes with the end of its time, many times over.
    #[test]
    fn b117_reply_and_time_out_race_and_one_of_them_is_heard() {
        let holder = holder();
        let reply = reply();
        for number in 0..1000 {
            let id = number.to_string();
            let (sender, outcome) = channel::unbounded();
            let heard = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&heard);
            let callback = move |outcome: Result<MessageExt>| {
                count.fetch_add(1, Ordering::SeqCst);
                sender.send(outcome.is_ok()).unwrap();
            };
            let timeout = Duration::from_micros(number % 1500);
            let end = RequestEnd::Callback(Box::new(callback));
            holder.add(request(&id, timeout), end);
            let early = outcome.recv_timeout(Duration::from_micros(1000)).ok();
            let won = holder.complete(&id, Ok(reply.clone()));
            let limit = Deadline::after(Duration::from_secs(30));
            let got_reply =
                early.unwrap_or_else(|| outcome.recv_deadline(limit.instant()).unwrap());
            assert_eq!(got_reply, won, "round {number}");
            assert!(!holder.complete(&id, Ok(reply.clone())), "it is gone");
            // The callback, and its sender with it, is used up.
            assert!(outcome.recv_deadline(limit.instant()).is_err());
            assert_eq!(heard.load(Ordering::SeqCst), 1);
        }
        assert!(holder.table.lock().is_empty());
    }

    #[test]
    fn the_end_of_a_group_ends_its_own_waits_only() {
        let holder = holder();
        let wait = |id: &str, group: &str| {
            let (sender, outcome) = channel::unbounded();
            let of = RequestOf {
                group,
                ..request(id, Duration::from_secs(60))
            };
            holder.add(of, RequestEnd::Caller(sender));
            outcome
        };
        let (first, other) = (wait("1", "g"), wait("2", "other"));
        holder.fail_all_of("g", &Error::client(1, "gone"));
        assert_eq!(first.try_recv().unwrap(), Err(Error::client(1, "gone")));
        assert!(other.try_recv().is_err());
        assert!(holder.complete("2", Ok(reply())));
        assert!(other.try_recv().unwrap().is_ok());
    }
}
