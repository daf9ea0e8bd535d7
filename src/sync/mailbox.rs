//! A queue with one taker that can be closed, built on what loom can model.

use std::collections::VecDeque;

use super::{Condvar, Deadline, Mutex};

/// A first-in-first-out queue between threads, with or without a bound.
///
/// Putting never waits. Each item comes out exactly once: of [`take`](Self::take), of
/// [`close`](Self::close), or of the [`put`](Self::put) that could not take it in.
#[derive(Debug)]
pub(crate) struct Mailbox<T> {
    inner: Mutex<Inner<T>>,
    changed: Condvar,
    capacity: usize,
}

#[derive(Debug)]
struct Inner<T> {
    /// Empty once `closed`; never longer than the capacity.
    items: VecDeque<T>,
    closed: bool,
}

/// What came of a [`Mailbox::take`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken<T> {
    Item(T),
    TimedOut,
    Closed,
}

impl<T> Mailbox<T> {
    pub(crate) fn unbounded() -> Self {
        Self::bounded(usize::MAX)
    }

    pub(crate) fn bounded(capacity: usize) -> Self {
        Self {
            inner: Mutex::new(Inner {
                items: VecDeque::new(),
                closed: false,
            }),
            changed: Condvar::new(),
            capacity,
        }
    }

    /// Adds an item at the end, or gives it back when the mailbox is full or closed.
    pub(crate) fn put(&self, item: T) -> Result<(), T> {
        let mut inner = self.inner.lock();
        if inner.closed || inner.items.len() >= self.capacity {
            return Err(item);
        }
        inner.items.push_back(item);
        drop(inner);
        self.changed.notify_one();
        Ok(())
    }

    /// Waits for an item; an item that is there comes out whatever the deadline.
    pub(crate) fn take(&self, deadline: Deadline) -> Taken<T> {
        let mut inner = self.inner.lock();
        let mut timed_out = false;
        loop {
            if let Some(item) = inner.items.pop_front() {
                return Taken::Item(item);
            }
            if inner.closed {
                return Taken::Closed;
            }
            if timed_out {
                return Taken::TimedOut;
            }
            timed_out = self.changed.wait_until(&mut inner, deadline);
        }
    }

    pub(crate) fn try_take(&self) -> Option<T> {
        self.inner.lock().items.pop_front()
    }

    /// Ends all waits, refuses later items, and gives back those nobody took.
    pub(crate) fn close(&self) -> Vec<T> {
        let mut inner = self.inner.lock();
        inner.closed = true;
        let left = std::mem::take(&mut inner.items);
        drop(inner);
        self.changed.notify_all();
        left.into()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.inner.lock().closed
    }

    pub(crate) fn len(&self) -> usize {
        self.inner.lock().items.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sync::{Arc, thread};

    const GENEROUS: Duration = Duration::from_secs(30);

    #[test]
    fn items_come_out_in_the_order_they_went_in() {
        let mailbox = Mailbox::unbounded();
        mailbox.put(1).unwrap();
        mailbox.put(2).unwrap();
        assert_eq!(mailbox.len(), 2);
        assert_eq!(
            mailbox.take(Deadline::after(Duration::ZERO)),
            Taken::Item(1)
        );
        assert_eq!(mailbox.try_take(), Some(2));
        assert_eq!(mailbox.try_take(), None);
        assert!(mailbox.is_empty());
    }

    #[test]
    fn a_full_mailbox_gives_the_item_back() {
        let mailbox = Mailbox::bounded(1);
        mailbox.put(1).unwrap();
        assert_eq!(mailbox.put(2), Err(2));
        assert_eq!(mailbox.try_take(), Some(1));
        mailbox.put(3).unwrap();
    }

    #[test]
    fn an_empty_mailbox_times_out() {
        let mailbox = Mailbox::<u8>::unbounded();
        assert_eq!(
            mailbox.take(Deadline::after(Duration::from_millis(1))),
            Taken::TimedOut
        );
    }

    #[test]
    fn close_gives_back_what_was_not_taken_and_refuses_the_rest() {
        let mailbox = Mailbox::unbounded();
        mailbox.put(1).unwrap();
        mailbox.put(2).unwrap();
        assert_eq!(mailbox.close(), [1, 2]);
        assert!(mailbox.is_closed());
        assert_eq!(mailbox.put(3), Err(3));
        assert_eq!(mailbox.take(Deadline::after(GENEROUS)), Taken::Closed);
        assert!(mailbox.close().is_empty());
    }

    #[test]
    fn a_waiting_taker_gets_what_is_put() {
        let mailbox = Arc::new(Mailbox::unbounded());
        let sender = Arc::clone(&mailbox);
        let handle = thread::spawn("sender", move || sender.put(5).unwrap()).unwrap();
        assert_eq!(mailbox.take(Deadline::after(GENEROUS)), Taken::Item(5));
        assert!(handle.join_until(Deadline::after(GENEROUS)));
    }
}

#[cfg(test)]
#[cfg(loom)]
mod loom_tests {
    use std::time::Duration;

    use loom::thread;

    use super::*;
    use crate::sync::Arc;

    fn some_deadline() -> Deadline {
        Deadline::after(Duration::from_secs(1))
    }

    #[test]
    fn loom_each_item_comes_out_once_whatever_the_close() {
        loom::model(|| {
            let mailbox = Arc::new(Mailbox::unbounded());
            let (putter, closer) = (Arc::clone(&mailbox), Arc::clone(&mailbox));
            let putting = thread::spawn(move || {
                [1, 2]
                    .into_iter()
                    .filter_map(|item| putter.put(item).err())
                    .collect::<Vec<_>>()
            });
            let closing = thread::spawn(move || closer.close());
            let mut all = Vec::new();
            while let Taken::Item(item) = mailbox.take(some_deadline()) {
                all.push(item);
            }
            let refused = putting.join().unwrap();
            let left = closing.join().unwrap();
            assert_eq!(mailbox.len(), 0, "nothing gets in after the close");
            all.extend(left);
            all.extend(refused);
            assert_eq!(all, [1, 2], "once each, in order");
        });
    }

    #[test]
    fn loom_two_puts_wake_one_taker_for_both() {
        loom::model(|| {
            let mailbox = Arc::new(Mailbox::bounded(2));
            let putters = [1, 2].map(|item| {
                let mailbox = Arc::clone(&mailbox);
                thread::spawn(move || mailbox.put(item).unwrap())
            });
            let mut sum = 0;
            for _ in 0..2 {
                match mailbox.take(some_deadline()) {
                    Taken::Item(item) => sum += item,
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(sum, 3);
            putters
                .into_iter()
                .for_each(|putter| putter.join().unwrap());
        });
    }

    /// The seeded mistake: a close that empties the queue first and marks it closed in a second step.
    #[test]
    #[should_panic(expected = "once each")]
    fn loom_a_close_in_two_steps_loses_an_item() {
        loom::model(|| {
            let mailbox = Arc::new(Mailbox::unbounded());
            let putter = Arc::clone(&mailbox);
            let putting = thread::spawn(move || putter.put(1).err());
            let mut all: Vec<i32> = mailbox.try_take().into_iter().collect();
            mailbox.inner.lock().closed = true;
            all.extend(putting.join().unwrap());
            assert_eq!(all, [1], "once each");
        });
    }
}
