use std::fmt;

use crate::sync::Arc;
use crate::sync::thread::{self, StartHook};

/// How the threads of this library are started, for the whole process.
///
/// # Examples
/// ```
/// use rocketmq_blocking::service::ThreadOptions;
///
/// // Before the first client is made: threads that are running already stay as they are.
/// ThreadOptions::new()
///     .stack_size(512 * 1024)
///     .on_start(|name| println!("{name} starts"))
///     .install();
/// ```
#[derive(Clone, Default)]
pub struct ThreadOptions {
    stack_size: Option<usize>,
    on_start: Option<StartHook>,
}

impl ThreadOptions {
    /// The defaults: std's stack size, 2 MiB unless `RUST_MIN_STACK` says otherwise, and no hook.
    pub fn new() -> Self {
        Self::default()
    }

    /// The size of each thread's stack in bytes. Listeners and callbacks run on it.
    #[must_use]
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stack_size = Some(bytes);
        self
    }

    /// Runs first on each new thread, with the thread's name; for pinning it to a processor, for its
    /// priority, its signal mask, or registering it with a profiler. A panic in it is logged.
    #[must_use]
    pub fn on_start(mut self, hook: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_start = Some(Arc::new(hook));
        self
    }

    /// Makes these the options of all threads that are started from now on, in place of earlier
    /// ones.
    pub fn install(self) {
        thread::set_options(self.stack_size, self.on_start);
    }
}

impl fmt::Debug for ThreadOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadOptions")
            .field("stack_size", &self.stack_size)
            .field("on_start", &self.on_start.is_some())
            .finish()
    }
}
