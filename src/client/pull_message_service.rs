//! The thread that works off pull requests.

use std::fmt;
use std::time::Duration;

use crate::service::{ScheduledService, ServiceContext, ServiceThread, catch_panic};
use crate::sync::{Arc, Deadline, Mailbox, Taken};

/// How long the thread waits before it looks whether it was stopped without its mailbox.
const LOOK_UP: Duration = Duration::from_secs(60);

/// A token: one exists for each queue that a consumer owns, and it is moved, never cloned. Dropping
/// it ends the work on its queue.
pub(crate) trait MessageRequest: Send {
    /// Does the next step. It must not block for long: all queues of the process share the thread.
    fn execute(self: Box<Self>);
}

/// Where tokens wait for the thread.
#[derive(Clone)]
pub(crate) struct PullRequestQueue {
    mailbox: Arc<Mailbox<Box<dyn MessageRequest>>>,
    timer: Arc<ScheduledService>,
}

impl PullRequestQueue {
    pub(crate) fn new(timer: Arc<ScheduledService>) -> Self {
        Self {
            mailbox: Arc::new(Mailbox::unbounded()),
            timer,
        }
    }

    /// Hands a token to the thread. After the end of the service the token is dropped.
    pub(crate) fn execute_immediately(&self, request: Box<dyn MessageRequest>) {
        if self.mailbox.put(request).is_err() {
            log::debug!("a pull request came after the shutdown");
        }
    }

    /// Hands a token to the thread in a while.
    pub(crate) fn execute_later(&self, request: Box<dyn MessageRequest>, delay: Duration) {
        if delay.is_zero() {
            return self.execute_immediately(request);
        }
        let this = self.clone();
        self.timer
            .schedule_once(delay, move || this.execute_immediately(request));
    }

    /// Drops what waits and ends the thread's wait.
    pub(crate) fn close(&self) {
        drop(self.mailbox.close());
    }
}

/// Java `PullMessageService`.
#[derive(Debug)]
pub(crate) struct PullMessageService {
    pub(crate) queue: PullRequestQueue,
}

impl ServiceThread for PullMessageService {
    fn service_name(&self) -> String {
        "PullMessageService".to_owned()
    }

    fn run(&self, context: &ServiceContext) {
        while !context.is_stopped() {
            match self.queue.mailbox.take(Deadline::after(LOOK_UP)) {
                Taken::Item(request) => {
                    if let Err(reason) = catch_panic(|| request.execute()) {
                        log::error!(
                            "a pull request panicked, its queue is pulled no more: {reason}"
                        );
                    }
                }
                Taken::TimedOut => {}
                Taken::Closed => return,
            }
        }
    }
}

impl fmt::Debug for PullRequestQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PullRequestQueue")
            .field("waiting", &self.mailbox.len())
            .finish()
    }
}
