//! The only door to locks, atomics, threads, channels and clocks.
//!
//! What is behind the door depends on the build. An ordinary build gets parking_lot's locks, std's
//! atomics and threads, and crossbeam's channels (`real`), and on Linux the kernel's futex to sleep on
//! (`parking`). A build with `--cfg loom` gets loom's
//! types under the same names and with parking_lot's signatures (`model`), so that the code under a
//! model is the code that ships. `clippy.toml` bans the originals everywhere else; what is exported
//! here are aliases or types of our own, which that ban does not see.
//!
//! What loom cannot do, and what that means here:
//!
//! * Time does not pass: a wait with a deadline waits until it is notified. A time-out is modelled
//!   as one more thread that notifies.
//! * `Arc` and `Weak` are std's in both worlds. loom does not see them, so nothing that matters may
//!   be decided by a reference count.
//! * Channels, `Lazy` and `OnceCell` are missing. Modelled code uses [`Mailbox`].
#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "this module is where the banned types are wrapped"
)]
#![cfg_attr(
    not(test),
    allow(
        dead_code,
        unused_imports,
        reason = "clocks that stand still, channels and a few more are for tests"
    )
)]

mod deadline;
mod mailbox;
#[cfg(loom)]
mod model;
mod parking;
#[cfg(not(loom))]
mod real;
pub(crate) mod thread;
mod wakeup;

#[cfg(loom)]
use model as imp;
#[cfg(not(loom))]
use real as imp;

pub(crate) use std::sync::{Arc, Weak};

pub(crate) use deadline::{Clock, Deadline, add, now, system_time_millis};
pub(crate) use imp::{Condvar, Mutex, MutexGuard, RwLock, atomic};
#[cfg(not(loom))]
pub(crate) use imp::{Lazy, OnceCell, channel};
pub(crate) use mailbox::{Mailbox, Taken};
pub(crate) use wakeup::Wakeup;
