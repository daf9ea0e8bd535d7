//! The one thread that waits for sockets.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::time::{Duration, Instant};

#[cfg(unix)]
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Registry, Token, Waker};

use super::connection::{Connection, ReadProgress};
use super::reader_role::Watch;
use crate::error::Error;
use crate::service::ThreadPool;
use crate::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Arc, Deadline, Mutex, now};

const WAKER: Token = Token(0);
const EVENTS_CAPACITY: usize = 256;
const RESOLVER_THREADS: usize = 4;

/// Reads and completes replies where no caller does, finishes connects, writes what would have
/// blocked a caller, and ends asynchronous calls at their deadline. Runs no user code and never
/// blocks but for events.
#[derive(Debug)]
pub(crate) struct EventLoop {
    shared: Arc<Shared>,
    thread: JoinHandle,
}

/// What connections and callers use of the loop from their own threads.
#[derive(Debug)]
pub(super) struct Shared {
    registry: Registry,
    waker: Waker,
    connections: Mutex<HashMap<Token, Arc<Connection>>>,
    timers: Mutex<Timers>,
    stopped: AtomicBool,
    next_token: AtomicUsize,
    next_opaque: AtomicI32,
    /// Times of activity are counted from here.
    epoch: Instant,
    /// Looks host names up, which may block for long.
    pub(super) resolver: ThreadPool,
}

/// What ends at a point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// Connecting to one address.
    Connect,
    /// A connection that nobody uses.
    Idle,
    /// The asynchronous call with this opaque.
    Call(i32),
    /// Looking whether callers have ceased to read a socket.
    PutBack,
    /// Frames that were gathered.
    Uncork,
}

pub(super) type TimerKey = (Instant, Token, Timer);

#[derive(Debug, Default)]
struct Timers {
    queue: BTreeSet<TimerKey>,
    /// When the loop will look next; `None` while it is awake or has nothing to wait for.
    sleeping_until: Option<Option<Instant>>,
}

impl EventLoop {
    /// Starts the loop's thread.
    ///
    /// # Errors
    /// The operating system has no thread, descriptor or selector to give.
    pub(crate) fn start(name: &str) -> io::Result<Self> {
        let poll = Poll::new()?;
        let registry = poll.registry().try_clone()?;
        let waker = Waker::new(&registry, WAKER)?;
        let shared = Arc::new(Shared {
            registry,
            waker,
            connections: Mutex::new(HashMap::new()),
            timers: Mutex::new(Timers::default()),
            stopped: AtomicBool::new(false),
            next_token: AtomicUsize::new(WAKER.0 + 1),
            next_opaque: AtomicI32::new(0),
            epoch: now(),
            resolver: ThreadPool::new(format!("{name}Resolver"), RESOLVER_THREADS),
        });
        let of_thread = Arc::clone(&shared);
        let thread = thread::spawn(name, move || run(poll, &of_thread))?;
        Ok(Self { shared, thread })
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Closes every connection, which fails the calls that wait, and joins the thread. Returns
    /// whether the thread ended before the deadline.
    pub(crate) fn shutdown(&self, deadline: Deadline) -> bool {
        self.shared.stopped.store(true, Ordering::SeqCst);
        self.shared.wake();
        let _ = self.shared.resolver.shutdown(deadline);
        self.thread.join_until(deadline)
    }
}

impl Shared {
    pub(super) fn next_token(&self) -> Token {
        Token(self.next_token.fetch_add(1, Ordering::Relaxed))
    }

    /// Correlation numbers are unique in the process for as long as an `i32` takes to wrap. None is
    /// 0: a reply whose header has no number reads as 0, and it must not be anybody's.
    pub(super) fn next_opaque(&self) -> i32 {
        match self.next_opaque.fetch_add(1, Ordering::Relaxed) {
            0 => self.next_opaque.fetch_add(1, Ordering::Relaxed),
            opaque => opaque,
        }
    }

    #[cfg(test)]
    pub(super) fn set_next_opaque(&self, opaque: i32) {
        self.next_opaque.store(opaque, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(super) fn connections(&self) -> usize {
        self.connections.lock().len()
    }

    #[cfg(test)]
    pub(super) fn call_timers(&self) -> usize {
        let timers = self.timers.lock();
        let is_call = |key: &&TimerKey| matches!(key.2, Timer::Call(_));
        timers.queue.iter().filter(is_call).count()
    }

    pub(super) fn since_epoch(&self) -> Duration {
        now().saturating_duration_since(self.epoch)
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Takes a connection in, so that its deadlines are kept from here on.
    ///
    /// # Errors
    /// The loop has stopped; nobody would end the connection any more.
    pub(super) fn add(&self, connection: &Arc<Connection>) -> io::Result<()> {
        let mut connections = self.connections.lock();
        // Under the lock: whatever is in before the loop looks for the last time, it ends.
        if self.is_stopped() {
            return Err(io::Error::other("the client is shut down"));
        }
        connections.insert(connection.token(), Arc::clone(connection));
        Ok(())
    }

    /// Makes the loop serve a connection's socket. Edge-triggered: whoever is told that the socket
    /// is ready goes on until it would block.
    pub(super) fn register(
        &self,
        token: Token,
        stream: &mut mio::net::TcpStream,
    ) -> io::Result<()> {
        self.registry
            .register(stream, token, Interest::READABLE | Interest::WRITABLE)
    }

    /// Changes what the loop is told of a registered socket; what is there already it is told at once.
    #[cfg(unix)]
    pub(super) fn watch(
        &self,
        token: Token,
        stream: &mio::net::TcpStream,
        from: Watch,
        to: Watch,
    ) -> io::Result<()> {
        use std::os::fd::AsRawFd;

        let fd = stream.as_raw_fd();
        let mut source = SourceFd(&fd);
        match (interest(from), interest(to)) {
            (None, None) => Ok(()),
            (None, Some(interest)) => self.registry.register(&mut source, token, interest),
            (Some(_), Some(interest)) => self.registry.reregister(&mut source, token, interest),
            (Some(_), None) => self.registry.deregister(&mut source),
        }
    }

    /// The loop is told everything, always; callers do not read sockets here.
    #[cfg(not(unix))]
    pub(super) fn watch(
        &self,
        _: Token,
        _: &mio::net::TcpStream,
        _: Watch,
        _: Watch,
    ) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn forget(&self, token: Token) {
        self.connections.lock().remove(&token);
        // Left timers find no connection and end.
    }

    pub(super) fn add_timer(&self, key: TimerKey) {
        let mut timers = self.timers.lock();
        timers.queue.insert(key);
        let must_wake = match timers.sleeping_until {
            None => false,
            Some(None) => true,
            Some(Some(until)) => key.0 < until,
        };
        drop(timers);
        if must_wake {
            self.wake();
        }
    }

    pub(super) fn cancel_timer(&self, key: &TimerKey) {
        self.timers.lock().queue.remove(key);
    }

    fn wake(&self) {
        if let Err(error) = self.waker.wake() {
            log::error!("the event loop cannot be woken: {error}");
        }
    }

    fn connection(&self, token: Token) -> Option<Arc<Connection>> {
        self.connections.lock().get(&token).cloned()
    }

    fn before_sleep(&self) -> Option<Instant> {
        let mut timers = self.timers.lock();
        let next = timers.queue.first().map(|key| key.0);
        timers.sleeping_until = Some(next);
        next
    }

    fn expired(&self) -> Vec<TimerKey> {
        let now = now();
        let mut timers = self.timers.lock();
        timers.sleeping_until = None;
        let mut expired = Vec::new();
        while let Some(key) = timers.queue.first().copied().filter(|key| key.0 <= now) {
            timers.queue.remove(&key);
            expired.push(key);
        }
        expired
    }
}

#[cfg(unix)]
fn interest(watch: Watch) -> Option<Interest> {
    match (watch.input, watch.output) {
        (true, true) => Some(Interest::READABLE | Interest::WRITABLE),
        (true, false) => Some(Interest::READABLE),
        (false, true) => Some(Interest::WRITABLE),
        (false, false) => None,
    }
}

thread_local! {
    static IS_LOOP: Cell<bool> = const { Cell::new(false) };
}

/// Whether this is the thread of an event loop.
pub(super) fn is_loop() -> bool {
    IS_LOOP.try_with(Cell::get).unwrap_or(false)
}

fn run(mut poll: Poll, shared: &Shared) {
    let _ = IS_LOOP.try_with(|is_loop| is_loop.set(true));
    let mut events = Events::with_capacity(EVENTS_CAPACITY);
    // With whether the peer has sent its last.
    let mut unfinished: Vec<(Token, bool)> = Vec::new();
    while !shared.is_stopped() {
        let next = shared.before_sleep();
        let timeout = if unfinished.is_empty() {
            next.map(|next| next.saturating_duration_since(now()))
        } else {
            Some(Duration::ZERO)
        };
        match poll.poll(&mut events, timeout) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                log::error!("waiting for sockets failed: {error}");
                break;
            }
        }
        let mut readable = std::mem::take(&mut unfinished);
        for event in &events {
            let Some(connection) = shared.connection(event.token()) else {
                continue;
            };
            if event.is_writable() {
                connection.on_writable();
            }
            let has_ended = event.is_read_closed() || event.is_error();
            if !event.is_readable() && !has_ended {
                continue;
            }
            match readable
                .iter_mut()
                .find(|(token, _)| *token == event.token())
            {
                Some((_, known)) => *known |= has_ended,
                None => readable.push((event.token(), has_ended)),
            }
        }
        for (token, has_ended) in readable {
            let Some(connection) = shared.connection(token) else {
                continue;
            };
            if connection.on_readable(has_ended) == ReadProgress::More {
                unfinished.push((token, has_ended));
            }
        }
        for (_, token, timer) in shared.expired() {
            if let Some(connection) = shared.connection(token) {
                connection.on_timer(timer);
            }
        }
    }
    shared.stopped.store(true, Ordering::SeqCst);
    // None is added from here on. The lock is released first: a connection takes itself out.
    let connections = std::mem::take(&mut *shared.connections.lock());
    for connection in connections.into_values() {
        connection.close(&Error::RemotingSendRequest {
            addr: connection.addr().to_owned(),
            reason: "the client is shut down".into(),
            written: true,
        });
    }
}
