//! parking_lot's locks, std's atomics and threads, crossbeam's channels.

use std::cell::Cell;

use super::Deadline;

pub(crate) type Mutex<T> = parking_lot::Mutex<T>;
pub(crate) type MutexGuard<'a, T> = parking_lot::MutexGuard<'a, T>;
pub(crate) type RwLock<T> = parking_lot::RwLock<T>;

pub(crate) type Lazy<T, F = fn() -> T> = once_cell::sync::Lazy<T, F>;
pub(crate) type OnceCell<T> = once_cell::sync::OnceCell<T>;

pub(crate) mod atomic {
    pub(crate) use std::sync::atomic::Ordering;

    pub(crate) type AtomicBool = std::sync::atomic::AtomicBool;
    pub(crate) type AtomicI32 = std::sync::atomic::AtomicI32;
    pub(crate) type AtomicI64 = std::sync::atomic::AtomicI64;
    pub(crate) type AtomicU32 = std::sync::atomic::AtomicU32;
    pub(crate) type AtomicU64 = std::sync::atomic::AtomicU64;
    pub(crate) type AtomicUsize = std::sync::atomic::AtomicUsize;
}

pub(crate) mod channel {
    pub(crate) use crossbeam::channel::{RecvTimeoutError, TryRecvError, bounded, unbounded};

    pub(crate) type Sender<T> = crossbeam::channel::Sender<T>;
    pub(crate) type Receiver<T> = crossbeam::channel::Receiver<T>;
}

/// A condition variable whose waits end at a [`Deadline`].
#[derive(Debug, Default)]
pub(crate) struct Condvar(parking_lot::Condvar);

impl Condvar {
    pub(crate) const fn new() -> Self {
        Self(parking_lot::Condvar::new())
    }

    /// Waits until notified or until the deadline, and returns whether the deadline ended it.
    pub(crate) fn wait_until<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        deadline: Deadline,
    ) -> bool {
        self.0.wait_until(guard, deadline.instant()).timed_out()
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

pub(super) mod os_thread {
    pub(crate) use std::thread::{Builder, JoinHandle, current};
}

thread_local! {
    static THREAD_ID: Cell<Option<u64>> = const { Cell::new(None) };
}

/// The number this library gave to the current thread; `None` on a thread of somebody else, and on
/// one whose thread-locals are gone already.
pub(super) fn library_thread_id() -> Option<u64> {
    THREAD_ID.try_with(Cell::get).unwrap_or(None)
}

pub(super) fn set_library_thread_id(id: u64) {
    THREAD_ID.with(|cell| cell.set(Some(id)));
}
