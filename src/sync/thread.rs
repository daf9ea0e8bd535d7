//! Named threads that know they belong to this library, and joins that end at a deadline.

use std::io;

use super::imp::{library_thread_id, os_thread, set_library_thread_id};
use super::{Arc, Condvar, Deadline, Mutex};

/// How many threads can run at once, at least 1.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs first on a new thread, with its name.
pub(crate) type StartHook = Arc<dyn Fn(&str) + Send + Sync>;

/// Process-wide; std's lock, since a static of a modelled type does not outlive one execution.
static OPTIONS: std::sync::RwLock<Options> = std::sync::RwLock::new(Options {
    stack_size: None,
    on_start: None,
});

#[derive(Clone)]
struct Options {
    stack_size: Option<usize>,
    on_start: Option<StartHook>,
}

/// Sets how threads are started from now on.
pub(crate) fn set_options(stack_size: Option<usize>, on_start: Option<StartHook>) {
    let mut options = OPTIONS
        .write()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    *options = Options {
        stack_size,
        on_start,
    };
}

fn options() -> Options {
    OPTIONS
        .read()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
        .clone()
}

/// Starts a thread that is known as this library's for as long as it runs.
///
/// Everything `f` owns is dropped before a join of the thread returns.
///
/// # Errors
///
/// The operating system has no thread to give.
pub(crate) fn spawn<F>(name: &str, f: F) -> io::Result<JoinHandle>
where
    F: FnOnce() + Send + 'static,
{
    // Only uniqueness counts, so this is std's atomic under loom too, where statics of modelled
    // types do not outlive one execution.
    static NEXT_ID: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let id = NEXT_ID.fetch_add(1, std::sync::atomic::Ordering::Relaxed);

    let exit = Arc::new(Exit::default());
    let on_exit = SetOnDrop(Arc::clone(&exit));
    // std panics on a name with a zero byte in it.
    let name = name.replace('\0', "?");
    let options = options();
    let mut builder = os_thread::Builder::new().name(name.clone());
    if let Some(bytes) = options.stack_size {
        builder = builder.stack_size(bytes);
    }
    let os_handle = builder.spawn(move || {
        let _on_exit = on_exit;
        set_library_thread_id(id);
        if let Some(hook) = options.on_start {
            let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| hook(&name)));
            if ran.is_err() {
                log::error!("{name}: the thread's start hook panicked");
            }
        }
        f();
    })?;
    Ok(JoinHandle {
        id,
        exit,
        os_handle: Arc::new(Mutex::new(Some(os_handle))),
    })
}

/// Whether the current thread was started by [`spawn`]; such a thread must not wait for itself.
pub(crate) fn is_library_thread() -> bool {
    library_thread_id().is_some()
}

/// The name of the current thread, for logs.
pub(crate) fn current_name() -> String {
    os_thread::current().name().unwrap_or("unnamed").to_owned()
}

/// One of the handles of a thread. Dropping them all detaches the thread.
#[derive(Clone, Debug)]
pub(crate) struct JoinHandle {
    id: u64,
    exit: Arc<Exit>,
    os_handle: Arc<Mutex<Option<os_thread::JoinHandle<()>>>>,
}

impl JoinHandle {
    /// Waits until the thread has ended, at most until `deadline`, and returns whether it has.
    ///
    /// On the thread itself this returns `false` at once. Any number of threads may join one.
    pub(crate) fn join_until(&self, deadline: Deadline) -> bool {
        if self.is_current() || !self.exit.wait(deadline) {
            return false;
        }
        // The closure has returned; what is left is the operating system's part, so this join is
        // short. The lock stays held over it, so that a second joiner finds the thread gone too.
        let mut os_handle = self.os_handle.lock();
        if let Some(os_handle) = os_handle.take() {
            // A panic was printed by its hook already; here the thread has ended, as asked.
            let _ = os_handle.join();
        }
        true
    }

    /// Whether the current thread is the one behind this handle.
    pub(crate) fn is_current(&self) -> bool {
        library_thread_id() == Some(self.id)
    }

    /// Whether the thread's closure has returned or panicked.
    pub(crate) fn has_exited(&self) -> bool {
        *self.exit.done.lock()
    }
}

/// std's join has no time limit; this latch gives it one.
#[derive(Debug, Default)]
struct Exit {
    done: Mutex<bool>,
    changed: Condvar,
}

impl Exit {
    fn wait(&self, deadline: Deadline) -> bool {
        let mut done = self.done.lock();
        while !*done {
            if self.changed.wait_until(&mut done, deadline) {
                return *done;
            }
        }
        true
    }
}

/// Sets the latch when the thread's closure returns, and when it unwinds.
struct SetOnDrop(Arc<Exit>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        *self.0.done.lock() = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sync::channel::bounded;

    const GENEROUS: Duration = Duration::from_secs(30);

    #[test]
    fn a_spawned_thread_has_its_name_and_the_mark() {
        let (sender, receiver) = bounded(1);
        let handle = spawn("PullMessageService", move || {
            sender.send((current_name(), is_library_thread())).unwrap();
        })
        .unwrap();
        let (name, marked) = receiver.recv_timeout(GENEROUS).unwrap();
        assert_eq!(name, "PullMessageService");
        assert!(marked);
        assert!(handle.join_until(Deadline::after(GENEROUS)));
        assert!(!is_library_thread());
    }

    #[test]
    fn a_name_with_a_zero_byte_starts_all_the_same() {
        let handle = spawn("a\0b", || {}).unwrap();
        assert!(handle.join_until(Deadline::after(GENEROUS)));
    }

    #[test]
    fn a_join_ends_at_its_deadline_and_works_later() {
        let (release, held) = bounded::<()>(0);
        let handle = spawn("held", move || {
            let _ = held.recv();
        })
        .unwrap();
        assert!(!handle.join_until(Deadline::after(Duration::from_millis(1))));
        assert!(!handle.has_exited());
        drop(release);
        assert!(handle.join_until(Deadline::after(GENEROUS)));
        assert!(handle.join_until(Deadline::after(Duration::ZERO)));
    }

    #[test]
    fn a_thread_never_joins_itself() {
        let (give, taken) = bounded::<JoinHandle>(1);
        let (answer, answered) = bounded(1);
        let handle = spawn("self", move || {
            let myself = taken.recv().unwrap();
            answer
                .send(myself.join_until(Deadline::after(10 * GENEROUS)))
                .unwrap();
        })
        .unwrap();
        give.send(handle.clone()).unwrap();
        assert!(!answered.recv_timeout(GENEROUS).unwrap());
        assert!(handle.join_until(Deadline::after(GENEROUS)));
    }

    #[test]
    fn a_panicking_thread_can_be_joined() {
        let handle = spawn("panicking", || panic!("on purpose")).unwrap();
        assert!(handle.join_until(Deadline::after(GENEROUS)));
    }

    #[test]
    fn what_the_closure_owned_is_gone_after_the_join() {
        let owned = Arc::new(());
        let weak = Arc::downgrade(&owned);
        let handle = spawn("owner", move || drop(owned)).unwrap();
        assert!(handle.join_until(Deadline::after(GENEROUS)));
        assert!(weak.upgrade().is_none());
    }
}
