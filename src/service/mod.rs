//! Threads with a life cycle: services, a timer and a pool.
//!
//! Nothing here knows RocketMQ. A thread of this module has a name, ends when asked to, is waited
//! for at most until a deadline, and outlives a panic of the work it is given.

mod instance_table;
mod scheduled_service;
mod service_state;
mod service_thread;
mod snapshot_table;
#[cfg(not(loom))]
mod thread_options;
mod thread_pool;

pub(crate) use instance_table::{Entry, InstanceTable};
pub(crate) use scheduled_service::{ScheduledService, TaskHandle};
pub(crate) use service_state::AtomicServiceState;
pub use service_state::ServiceState;
pub use service_thread::{JoinOutcome, ServiceContext, ServiceHandle, ServiceThread};
pub(crate) use snapshot_table::SnapshotTable;
#[cfg(not(loom))]
pub use thread_options::ThreadOptions;
pub(crate) use thread_pool::{
    Parts, PoolReport, RejectedReason, Task, ThreadPool, wake_at_the_end,
};

/// Runs foreign code; a panic in it ends here, and what it said is the error.
#[cfg(not(loom))]
pub(crate) fn catch_panic<R>(work: impl FnOnce() -> R) -> Result<R, String> {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    // What a panic may have left half done belongs to the work; nothing of ours is lent to it.
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let reason = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("no message")
            .to_owned();
        // The payload is foreign too, and its drop may panic in turn; the second one is leaked.
        if let Err(second) = catch_unwind(AssertUnwindSafe(move || drop(payload))) {
            std::mem::forget(second);
        }
        reason
    })
}

/// loom reports what it finds by panicking, so nothing may be caught in a model.
#[cfg(loom)]
pub(crate) fn catch_panic<R>(work: impl FnOnce() -> R) -> Result<R, String> {
    Ok(work())
}

/// Calls a method of a user's hook; a panic in it is logged and ends here.
pub(crate) fn call_hook(hook: &str, method: &str, call: impl FnOnce()) {
    if let Err(reason) = catch_panic(call) {
        log::warn!("hook {hook}: caught a panic of {method}: {reason}");
    }
}

/// Runs foreign code on one of our threads: a panic in it is logged under `thread`'s name and ends
/// there. Returns whether the work came to its end.
fn run_caught(thread: &str, work: impl FnOnce()) -> bool {
    let ran = catch_panic(work);
    if let Err(reason) = &ran {
        log::error!("{thread}: caught a panic: {reason}");
    }
    ran.is_ok()
}
