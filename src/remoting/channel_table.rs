//! Which connection serves an address: one, whoever asks first.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::sync::{Arc, Mutex};

/// What the table asks of a connection.
pub(super) trait Channel {
    fn is_closed(&self) -> bool;
}

/// Address → connection.
#[derive(Debug)]
pub(super) struct ChannelTable<C>(Mutex<Channels<C>>);

#[derive(Debug)]
struct Channels<C> {
    table: HashMap<Arc<str>, Arc<C>>,
    /// When a server was left because it said good-bye.
    left: HashMap<Arc<str>, Instant>,
    /// Set at the end: a call that is still under way somewhere connects to nobody any more.
    closed: bool,
}

/// What a caller gets.
#[derive(Debug)]
pub(super) enum Found<C> {
    /// The connection that serves the address.
    Present(Arc<C>),
    /// A new one, which this caller, and no other, has to open.
    Made(Arc<C>),
    /// The table is closed.
    Closed,
}

impl<C: Channel> ChannelTable<C> {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Channels {
            table: HashMap::new(),
            left: HashMap::new(),
            closed: false,
        }))
    }

    /// The connection to an address. `make` must not wait: other callers do meanwhile.
    pub(super) fn get_or_make(
        &self,
        addr: &str,
        make: impl FnOnce(Arc<str>) -> Arc<C>,
    ) -> Found<C> {
        let mut channels = self.0.lock();
        if channels.closed {
            return Found::Closed;
        }
        if let Some(channel) = channels
            .table
            .get(addr)
            .filter(|channel| !channel.is_closed())
        {
            return Found::Present(Arc::clone(channel));
        }
        let addr: Arc<str> = addr.into();
        let channel = make(Arc::clone(&addr));
        channels.table.insert(addr, Arc::clone(&channel));
        Found::Made(channel)
    }

    /// The connection to an address, if there is one.
    pub(super) fn get(&self, addr: &str) -> Option<Arc<C>> {
        self.0.lock().table.get(addr).cloned()
    }

    /// Takes a connection out, unless another one has its place by now.
    pub(super) fn remove(&self, addr: &str, channel: &Arc<C>) {
        let mut channels = self.0.lock();
        if channels
            .table
            .get(addr)
            .is_some_and(|current| Arc::ptr_eq(current, channel))
        {
            channels.table.remove(addr);
        }
    }

    /// Takes the connection of an address out, if there is one.
    pub(super) fn take(&self, addr: &str) -> Option<Arc<C>> {
        self.0.lock().table.remove(addr)
    }

    /// Takes a connection out because its server says good-bye; `false` when another one has its
    /// place, or when the same server was left less than `interval` ago.
    pub(super) fn leave(
        &self,
        addr: &str,
        channel: &Arc<C>,
        now: Instant,
        interval: Duration,
    ) -> bool {
        let mut channels = self.0.lock();
        let is_current = channels
            .table
            .get(addr)
            .is_some_and(|current| Arc::ptr_eq(current, channel));
        let lately = channels
            .left
            .get(addr)
            .is_some_and(|at| now.saturating_duration_since(*at) < interval);
        if !is_current || lately {
            return false;
        }
        channels.table.remove(addr);
        channels.left.insert(addr.into(), now);
        true
    }

    /// Makes no more connections, and gives those that are there.
    pub(super) fn close(&self) -> Vec<Arc<C>> {
        let mut channels = self.0.lock();
        channels.closed = true;
        channels.table.values().cloned().collect()
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Debug)]
    struct Dummy;

    impl Channel for Dummy {
        fn is_closed(&self) -> bool {
            false
        }
    }

    /// Two callers, one connection; who made it opens it, the other shares it.
    #[test]
    fn loom_two_callers_make_one_connection() {
        loom::model(|| {
            let table = Arc::new(ChannelTable::<Dummy>::new());
            let made = Arc::new(AtomicUsize::new(0));
            let call = |table: Arc<ChannelTable<Dummy>>, made: Arc<AtomicUsize>| {
                if let Found::Made(_) = table.get_or_make("a:1", |_| Arc::new(Dummy)) {
                    made.fetch_add(1, Ordering::SeqCst);
                }
            };
            let other = {
                let (table, made) = (Arc::clone(&table), Arc::clone(&made));
                loom::thread::spawn(move || call(table, made))
            };
            call(Arc::clone(&table), Arc::clone(&made));
            other.join().unwrap();
            assert_eq!(made.load(Ordering::SeqCst), 1);
        });
    }

    /// A caller against the end: what it got is in the list that the end closes, or it got nothing.
    #[test]
    fn loom_no_connection_outlives_the_end() {
        loom::model(|| {
            let table = Arc::new(ChannelTable::<Dummy>::new());
            let caller = {
                let table = Arc::clone(&table);
                loom::thread::spawn(move || {
                    matches!(
                        table.get_or_make("a:1", |_| Arc::new(Dummy)),
                        Found::Made(_)
                    )
                })
            };
            let closed = table.close().len();
            let made = caller.join().unwrap();
            let left = table.close().len();
            assert_eq!(left, closed, "nothing came in after the end");
            assert_eq!(made, left == 1);
        });
    }

    /// The mistake: looking and inserting in two steps.
    #[test]
    #[should_panic(expected = "two connections")]
    fn loom_looking_and_inserting_in_two_steps_makes_two() {
        loom::model(|| {
            let table = Arc::new(Mutex::new(HashMap::<&str, Arc<Dummy>>::new()));
            let made = Arc::new(AtomicUsize::new(0));
            let call = |table: Arc<Mutex<HashMap<&str, Arc<Dummy>>>>, made: Arc<AtomicUsize>| {
                let present = table.lock().contains_key("a:1");
                if !present {
                    table.lock().insert("a:1", Arc::new(Dummy));
                    made.fetch_add(1, Ordering::SeqCst);
                }
            };
            let other = {
                let (table, made) = (Arc::clone(&table), Arc::clone(&made));
                loom::thread::spawn(move || call(table, made))
            };
            call(Arc::clone(&table), Arc::clone(&made));
            other.join().unwrap();
            assert!(made.load(Ordering::SeqCst) == 1, "two connections");
        });
    }
}
