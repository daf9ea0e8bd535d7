//! Where threads sleep until a word changes: the kernel's futex where there is one.
//!
//! A wake-up by futex is the shortest that the kernel has: one call of the waker, and nothing of
//! the waiter but its return. A condvar takes a lock on each side besides.

use super::Deadline;
use super::atomic::AtomicU32;

#[cfg(any(loom, not(target_os = "linux"), test))]
pub(crate) use by_condvar::ByCondvar;
#[cfg(all(target_os = "linux", not(loom)))]
pub(crate) use by_futex::ByFutex;

#[cfg(all(target_os = "linux", not(loom)))]
pub(crate) type Platform = ByFutex;
#[cfg(any(loom, not(target_os = "linux")))]
pub(crate) type Platform = ByCondvar;

/// Lets threads sleep on a word, always the same one.
pub(crate) trait Parking: Default {
    /// Sleeps while the word is `expected`, until [`unpark_all`](Self::unpark_all) or the deadline,
    /// and returns whether the deadline ended it; may end for no reason, too.
    fn park(&self, word: &AtomicU32, expected: u32, deadline: Deadline) -> bool;

    /// Ends the sleep of all; comes after the word was changed.
    fn unpark_all(&self, word: &AtomicU32);
}

#[cfg(all(target_os = "linux", not(loom)))]
mod by_futex {
    use std::time::Duration;

    use rustix::io::Errno;
    use rustix::thread::futex::{self, Flags, Timespec};

    use super::{AtomicU32, Deadline, Parking};

    #[derive(Debug, Default)]
    pub(crate) struct ByFutex;

    impl Parking for ByFutex {
        fn park(&self, word: &AtomicU32, expected: u32, deadline: Deadline) -> bool {
            let remaining = deadline.remaining();
            if remaining == Duration::ZERO {
                return true;
            }
            let timeout = Timespec {
                tv_sec: i64::try_from(remaining.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: remaining.subsec_nanos().into(),
            };
            let slept = futex::wait(word, Flags::PRIVATE, expected, Some(&timeout));
            slept == Err(Errno::TIMEDOUT)
        }

        fn unpark_all(&self, word: &AtomicU32) {
            let _ = futex::wake(word, Flags::PRIVATE, i32::MAX.unsigned_abs());
        }
    }
}

#[cfg(any(loom, not(target_os = "linux"), test))]
mod by_condvar {
    use super::super::atomic::Ordering;
    use super::super::{Condvar, Mutex};
    use super::{AtomicU32, Deadline, Parking};

    /// Its lock is held over the look at the word and the begin of the sleep, so whoever changes
    /// the word and takes the lock then finds the sleeper asleep.
    #[derive(Debug, Default)]
    pub(crate) struct ByCondvar {
        lock: Mutex<()>,
        changed: Condvar,
    }

    impl Parking for ByCondvar {
        fn park(&self, word: &AtomicU32, expected: u32, deadline: Deadline) -> bool {
            let mut guard = self.lock.lock();
            word.load(Ordering::Acquire) == expected
                && self.changed.wait_until(&mut guard, deadline)
        }

        fn unpark_all(&self, _: &AtomicU32) {
            drop(self.lock.lock());
            self.changed.notify_all();
        }
    }
}
