//! One connection to one address: its socket, its pending calls, its life.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};
use mio::Token;
use mio::net::TcpStream;
use rocketmq_protocol::RemotingCommand;

use super::channel_table::Channel;
use super::event_loop::{Shared, Timer, TimerKey, is_loop};
use super::mio_remoting_client::RemotingConfig;
use super::reader_role::ReaderRole;
use super::response_future::{Completion, ResponseTable, Waiter};
use super::socks5::{Socks5Handshake, Target};
use crate::client_config::{SocksProxy, split_address};
use crate::error::{Error, Result};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, Deadline, Mutex, MutexGuard, OnceCell, now};

mod reading;
mod socket;

use reading::Reader;
pub(super) use reading::{ReadProgress, is_reading};

/// Bytes that may wait for a peer that does not read. More are refused with
/// [`Error::RemotingTooMuchRequest`].
const MAX_QUEUED_BYTES: usize = 64 * 1024 * 1024;
/// With so many calls under way that nobody waits for, the frame of a further one may wait for others
/// to be written with it.
const CORK_FROM_CALLBACKS: usize = 16;
/// So many gathered bytes are written at once.
const CORKED_BYTES: usize = 64 * 1024;
/// After so many writes, the rest of which was queued by others, the event loop goes on.
const WRITES_FOR_OTHERS: usize = 16;
/// A buffer that has grown larger is given back when it is empty.
const KEPT_BUFFER: usize = 256 * 1024;
/// The longest piece of a SOCKS5 proxy's answer: a name and a port.
const MAX_SOCKS_INPUT: usize = 255 + 2;

/// What a connection tells its owner. Called on the event loop or on a calling thread, one that
/// waits for a reply too, without any lock of the connection held; must not block.
pub(super) trait ConnectionHandler: Send + Sync + fmt::Debug {
    fn on_request(&self, connection: &Arc<Connection>, request: RemotingCommand);
    fn on_open(&self, connection: &Arc<Connection>);
    fn on_close(&self, connection: &Arc<Connection>, error: &Error);
}

pub(super) struct Connection {
    addr: Arc<str>,
    token: Token,
    config: RemotingConfig,
    event_loop: Arc<Shared>,
    handler: Arc<dyn ConnectionHandler>,
    responses: ResponseTable<RemotingCommand>,
    outbound: Mutex<Outbound>,
    /// Set once the connect is done, for whoever reads. It stays for as long as this does: a file
    /// descriptor that is closed might be another's the next moment.
    socket: OnceCell<Arc<TcpStream>>,
    /// Who reads the socket and completes calls.
    role: ReaderRole<RemotingCommand>,
    /// Locked by the holder of the role, and never while a call is completed.
    reader: Mutex<Reader>,
    /// When bytes last went either way, in milliseconds since the event loop's epoch.
    last_activity: AtomicU64,
    /// Set when nothing new is sent here: it ends with its last pending call.
    retired: AtomicBool,
}

struct Outbound {
    phase: Phase,
    opened_at: Option<Instant>,
    /// Frames that wait for the connect, with their opaques; empty once the phase is `Open`.
    unsent: Vec<(i32, BytesMut)>,
    /// Bytes that are to be written, empty before the phase is `Open`.
    queued: BytesMut,
    output: Output,
    /// Whether the event loop is told when the socket takes more: from the start of the connect on, and
    /// whenever it is blocked, whoever reads.
    is_watched: bool,
}

/// What becomes of what is queued once the connection is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    /// Nothing is.
    Idle,
    /// It waits for more to come with it; a timer of the event loop is set to write it.
    Corked,
    /// Somebody writes, and will write it next.
    Writing,
    /// A write would block; the event loop writes it when it no longer does.
    Blocked,
}

/// One way to the server.
struct Way {
    /// What is connected to: the server, or a proxy.
    addr: SocketAddr,
    /// What the proxy is asked for.
    through: Option<(SocksProxy, Target)>,
}

enum Phase {
    Resolving,
    Connecting {
        stream: Arc<TcpStream>,
        /// Set when a proxy is connected to, which is asked for the server then.
        proxy: Option<Box<Socks5Handshake>>,
        /// Whether the connect to the proxy is done, and the conversation with it goes on.
        talking: bool,
        rest: VecDeque<Way>,
        timer: TimerKey,
    },
    Open(Arc<TcpStream>),
    Closed(Error),
}

impl Connection {
    pub(super) fn new(
        addr: Arc<str>,
        config: RemotingConfig,
        event_loop: Arc<Shared>,
        handler: Arc<dyn ConnectionHandler>,
    ) -> Arc<Self> {
        Arc::new(Self {
            addr,
            token: event_loop.next_token(),
            config,
            event_loop,
            handler,
            responses: ResponseTable::new(),
            outbound: Mutex::new(Outbound {
                phase: Phase::Resolving,
                opened_at: None,
                unsent: Vec::new(),
                queued: BytesMut::new(),
                output: Output::Blocked,
                is_watched: true,
            }),
            socket: OnceCell::new(),
            role: ReaderRole::of_event_loop(),
            reader: Mutex::new(Reader::default()),
            last_activity: AtomicU64::new(0),
            retired: AtomicBool::new(false),
        })
    }

    pub(super) fn addr(&self) -> &str {
        &self.addr
    }

    pub(super) fn token(&self) -> Token {
        self.token
    }

    pub(super) fn responses(&self) -> &ResponseTable<RemotingCommand> {
        &self.responses
    }

    #[cfg(all(test, unix))]
    pub(super) fn role(&self) -> &ReaderRole<RemotingCommand> {
        &self.role
    }

    /// When the connect was done; `None` before that, and after the end.
    pub(super) fn opened_at(&self) -> Option<Instant> {
        let outbound = self.outbound.lock();
        outbound
            .opened_at
            .filter(|_| matches!(outbound.phase, Phase::Open(_)))
    }

    fn note_activity(&self) {
        let millis = self.event_loop.since_epoch().as_millis() as u64;
        self.last_activity.store(millis, Ordering::Relaxed);
    }

    /// Ends the connection as soon as nobody waits for a reply on it.
    pub(super) fn retire(self: &Arc<Self>) {
        self.retired.store(true, Ordering::SeqCst);
        self.close_if_done();
    }

    /// To be called whenever a call has ended.
    pub(super) fn close_if_done(self: &Arc<Self>) {
        if self.retired.load(Ordering::SeqCst) && self.responses.len() == 0 {
            self.close(&Error::RemotingSendRequest {
                addr: self.addr.to_string(),
                reason: "the server is shutting down or no longer in use".into(),
                written: false,
            });
        }
    }

    /// Begins to connect and returns at once; frames submitted meanwhile go out once it is done. A
    /// host name is looked up on a thread of its own.
    pub(super) fn open(self: &Arc<Self>) {
        if let Err(error) = self.event_loop.add(self) {
            return self.fail_connect(&error.to_string());
        }
        if self.is_closed() {
            // Whoever has closed it may have taken it out before it was in.
            return self.event_loop.forget(self.token);
        }
        if let Some(way) = self.way_without_look_up() {
            self.connect(VecDeque::from([way]), "");
            return;
        }
        let this = Arc::clone(self);
        let lookup = self
            .event_loop
            .resolver
            .execute(move || match this.look_up_ways() {
                Ok(ways) => this.connect(ways, "the name has no address"),
                Err(error) => this.fail_connect(&error),
            });
        if lookup.is_err() {
            self.fail_connect("the client is shut down");
        }
    }

    fn way_without_look_up(&self) -> Option<Way> {
        let addr: SocketAddr = self.addr.parse().ok()?;
        match self.config.socks_proxies.find(Some(addr.ip())) {
            None => Some(Way {
                addr,
                through: None,
            }),
            Some(proxy) => Some(Way {
                addr: proxy.addr.parse().ok()?,
                through: Some((proxy.clone(), Target::Addr(addr))),
            }),
        }
    }

    /// All ways to the server. Blocks for as long as looking up names takes.
    fn look_up_ways(&self) -> Result<VecDeque<Way>, String> {
        let proxies = &self.config.socks_proxies;
        let (host, port) = split_address(&self.addr).map_err(str::to_owned)?;
        let is_name = self.addr.parse::<SocketAddr>().is_err();
        if let Some(proxy) = proxies.find(None).filter(|_| is_name) {
            // Names are the proxy's to look up: this machine may not know them.
            let target = Target::Name(host.to_owned(), port);
            return Ok(ways_through(proxy, &target)?.collect());
        }
        let mut ways = VecDeque::new();
        for addr in look_up(host, port)? {
            match proxies.find(Some(addr.ip())) {
                None => ways.push_back(Way {
                    addr,
                    through: None,
                }),
                Some(proxy) => ways.extend(ways_through(proxy, &Target::Addr(addr))?),
            }
        }
        Ok(ways)
    }

    /// Tries the ways in turn.
    fn connect(self: &Arc<Self>, mut ways: VecDeque<Way>, reason: &str) {
        let mut reason = reason.to_owned();
        while let Some(way) = ways.pop_front() {
            let mut stream = match TcpStream::connect(way.addr) {
                Ok(stream) => stream,
                Err(error) => {
                    reason = error.to_string();
                    continue;
                }
            };
            let deadline = Deadline::after(self.config.connect_timeout);
            let timer = (deadline.instant(), self.token, Timer::Connect);
            let mut outbound = self.outbound.lock();
            if let Phase::Closed(_) = outbound.phase {
                return;
            }
            // Registered under the lock: the event that the connect is done finds the phase set.
            if let Err(error) = self.event_loop.register(self.token, &mut stream) {
                drop(outbound);
                self.fail_connect(&error.to_string());
                return;
            }
            let proxy = way
                .through
                .map(|(proxy, target)| Box::new(Socks5Handshake::new(proxy, target)));
            outbound.phase = Phase::Connecting {
                stream: Arc::new(stream),
                proxy,
                talking: false,
                rest: ways,
                timer,
            };
            drop(outbound);
            self.event_loop.add_timer(timer);
            return;
        }
        self.fail_connect(&reason);
    }

    fn fail_connect(self: &Arc<Self>, reason: &str) {
        self.close(&Error::RemotingConnect {
            addr: self.addr.to_string(),
            reason: reason.to_owned(),
        });
    }

    /// Writes a frame, or keeps it until the connect is done or the peer reads on. Never blocks.
    pub(super) fn submit(self: &Arc<Self>, opaque: i32, frame: BytesMut) -> Result<()> {
        self.submit_or_cork(opaque, frame, false)
    }

    /// [`submit`](Self::submit) for a call that nobody waits for: with many of them under way, and on the
    /// event loop itself, it is written together with those that follow, as soon as the event loop has
    /// time.
    pub(super) fn submit_later(self: &Arc<Self>, opaque: i32, frame: BytesMut) -> Result<()> {
        let corks = is_loop() || self.responses.callbacks() >= CORK_FROM_CALLBACKS;
        self.submit_or_cork(opaque, frame, corks)
    }

    fn submit_or_cork(self: &Arc<Self>, opaque: i32, frame: BytesMut, corks: bool) -> Result<()> {
        let mut outbound = self.outbound.lock();
        let stream = match &outbound.phase {
            Phase::Closed(error) => return Err(error.clone()),
            Phase::Open(stream) if matches!(outbound.output, Output::Idle | Output::Corked) => {
                Some(Arc::clone(stream))
            }
            _ => None,
        };
        let Some(stream) = stream else {
            let waiting = outbound.waiting_bytes();
            if waiting.saturating_add(frame.len()) > MAX_QUEUED_BYTES {
                return Err(Error::RemotingTooMuchRequest {
                    reason: format!(
                        "{waiting} bytes wait for {} to read them, the most is {MAX_QUEUED_BYTES}",
                        self.addr
                    ),
                });
            }
            if let Phase::Open(_) = outbound.phase {
                outbound.queued.extend_from_slice(&frame);
            } else {
                outbound.unsent.push((opaque, frame));
            }
            return Ok(());
        };
        if outbound.output == Output::Idle && !corks {
            return self.write(outbound, &stream, frame);
        }
        outbound.queued.extend_from_slice(&frame);
        if corks && outbound.queued.len() < CORKED_BYTES {
            self.cork(outbound);
            return Ok(());
        }
        let bytes = std::mem::take(&mut outbound.queued);
        self.write(outbound, &stream, bytes)
    }

    /// Leaves what is queued to the event loop.
    fn cork(&self, mut outbound: MutexGuard<'_, Outbound>) {
        let before = std::mem::replace(&mut outbound.output, Output::Corked);
        drop(outbound);
        if before != Output::Corked {
            let timer = (now(), self.token, Timer::Uncork);
            self.event_loop.add_timer(timer);
        }
    }

    /// Writes what was gathered, if nobody has done so meanwhile.
    fn uncork(self: &Arc<Self>) {
        let outbound = self.outbound.lock();
        if outbound.output == Output::Corked {
            // The end of the connection tells those who wait.
            let _ = self.write_queued(outbound);
        }
    }

    fn write_queued(self: &Arc<Self>, mut outbound: MutexGuard<'_, Outbound>) -> Result<()> {
        let Phase::Open(stream) = &outbound.phase else {
            return Ok(());
        };
        let stream = Arc::clone(stream);
        let bytes = std::mem::take(&mut outbound.queued);
        self.write(outbound, &stream, bytes)
    }

    /// Writes bytes as far as the socket takes them, and what others queue meanwhile; the event loop
    /// writes the rest. The lock is released around each write: who comes then queues and leaves, so
    /// that the frames of several callers go out with one write.
    fn write<'a>(
        self: &'a Arc<Self>,
        mut outbound: MutexGuard<'a, Outbound>,
        stream: &TcpStream,
        mut bytes: BytesMut,
    ) -> Result<()> {
        outbound.output = Output::Writing;
        for _ in 0..WRITES_FOR_OTHERS {
            drop(outbound);
            self.note_activity();
            let written = write_until_blocked(stream, &bytes);
            outbound = self.outbound.lock();
            if let Phase::Closed(error) = &outbound.phase {
                return written.map(drop).map_err(|_| error.clone());
            }
            let written = match written {
                Ok(written) => written,
                Err(error) => return self.ended_if_broken(outbound, Err(error)),
            };
            if written < bytes.len() {
                bytes.advance(written);
                bytes.extend_from_slice(&outbound.queued);
                outbound.queued = bytes;
                outbound.output = Output::Blocked;
                let watched = self.watch_output(&mut outbound, true);
                return self.ended_if_broken(outbound, watched);
            }
            bytes.clear();
            std::mem::swap(&mut bytes, &mut outbound.queued);
            if bytes.is_empty() {
                outbound.output = Output::Idle;
                if outbound.queued.capacity() > KEPT_BUFFER {
                    outbound.queued = BytesMut::new();
                }
                let watched = self.watch_output(&mut outbound, false);
                return self.ended_if_broken(outbound, watched);
            }
        }
        // Others write so much that this thread would serve them for ever.
        outbound.queued = bytes;
        let watched = self.watch_output(&mut outbound, false);
        if watched.is_err() {
            return self.ended_if_broken(outbound, watched);
        }
        self.cork(outbound);
        Ok(())
    }

    fn watch_output(self: &Arc<Self>, outbound: &mut Outbound, output: bool) -> io::Result<()> {
        if std::mem::replace(&mut outbound.is_watched, output) == output {
            return Ok(());
        }
        self.role.watch_output(output, self)
    }

    /// Ends the connection after a write that failed.
    fn ended_if_broken(
        self: &Arc<Self>,
        outbound: MutexGuard<'_, Outbound>,
        written: io::Result<()>,
    ) -> Result<()> {
        written.map_err(|error| {
            drop(outbound);
            let error = self.broken(&error);
            self.close(&error);
            error
        })
    }

    /// Takes back a frame that waits for the connect. `true` means that the peer has not seen and
    /// will not see anything of it.
    pub(super) fn withdraw(&self, opaque: i32) -> bool {
        let mut outbound = self.outbound.lock();
        let before = outbound.unsent.len();
        outbound.unsent.retain(|(waiting, _)| *waiting != opaque);
        outbound.unsent.len() < before
    }

    /// Registers a call that ends by `completion` exactly once: with the reply, when the connection
    /// ends, or at the deadline.
    pub(super) fn add_callback(
        self: &Arc<Self>,
        opaque: i32,
        deadline: Deadline,
        completion: Completion<RemotingCommand>,
    ) {
        let timer = (deadline.instant(), self.token, Timer::Call(opaque));
        let event_loop = Arc::clone(&self.event_loop);
        let waiter = Waiter::Callback(Box::new(move |outcome| {
            event_loop.cancel_timer(&timer);
            completion(outcome);
        }));
        // The timer first: whoever completes the call finds it and takes it out. If it has fired in
        // between, it has found no call, and that is made up for here.
        self.event_loop.add_timer(timer);
        self.responses.insert(opaque, waiter);
        self.role.callback_added(self);
        if deadline.has_passed() {
            self.on_timer(Timer::Call(opaque));
        }
    }

    pub(super) fn on_writable(self: &Arc<Self>) {
        let mut outbound = self.outbound.lock();
        let mut opened = false;
        if matches!(outbound.phase, Phase::Connecting { .. }) {
            match outbound.go_on_connecting() {
                Ok(None) => return,
                Ok(Some(timer)) => {
                    opened = true;
                    self.event_loop.cancel_timer(&timer);
                }
                Err(reason) => {
                    drop(outbound);
                    self.next_address(&reason);
                    return;
                }
            }
        }
        let Phase::Open(stream) = &outbound.phase else {
            return;
        };
        let stream = Arc::clone(stream);
        if opened {
            let _ = self.socket.set(Arc::clone(&stream));
        }
        // Told of output from the start of the connect on, whether anything waits or not.
        let written = match outbound.output {
            Output::Blocked => self.write_queued(outbound),
            Output::Writing => Ok(()),
            Output::Idle | Output::Corked => {
                let watched = self.watch_output(&mut outbound, false);
                self.ended_if_broken(outbound, watched)
            }
        };
        if written.is_err() {
            return;
        }
        if opened {
            self.role.end_turn(self);
            self.watch_idle(self.config.channel_max_idle_time);
            self.handler.on_open(self);
        }
    }

    fn watch_idle(&self, within: Duration) {
        let at = Deadline::after(within).instant();
        self.event_loop.add_timer((at, self.token, Timer::Idle));
    }

    fn close_if_idle(self: &Arc<Self>) {
        let most = self.config.channel_max_idle_time;
        let last = Duration::from_millis(self.last_activity.load(Ordering::Relaxed));
        let idle = self.event_loop.since_epoch().saturating_sub(last);
        if idle < most {
            return self.watch_idle(most - idle);
        }
        self.close(&Error::RemotingSendRequest {
            addr: self.addr.to_string(),
            reason: format!("closed after {} s without traffic", idle.as_secs()),
            written: true,
        });
    }

    /// Gives up on the address being connected and takes the next one.
    fn next_address(self: &Arc<Self>, reason: &str) {
        let mut outbound = self.outbound.lock();
        match std::mem::replace(&mut outbound.phase, Phase::Resolving) {
            Phase::Connecting {
                rest, proxy, timer, ..
            } => {
                drop(outbound);
                self.event_loop.cancel_timer(&timer);
                match proxy {
                    Some(proxy) => {
                        let reason = format!("through the proxy {}: {reason}", proxy.addr());
                        self.connect(rest, &reason);
                    }
                    None => self.connect(rest, reason),
                }
            }
            other => outbound.phase = other,
        }
    }

    pub(super) fn on_timer(self: &Arc<Self>, timer: Timer) {
        match timer {
            Timer::Connect => {
                self.next_address(&format!(
                    "no answer within {} ms",
                    self.config.connect_timeout.as_millis()
                ));
            }
            Timer::Idle => self.close_if_idle(),
            Timer::Uncork => self.uncork(),
            Timer::PutBack => self.role.put_back(self),
            Timer::Call(opaque) => {
                if let Some(waiter) = self.responses.take(opaque) {
                    waiter.complete(Err(self.timed_out(opaque, Duration::ZERO)));
                    self.close_if_done();
                }
            }
        }
    }

    /// The error of a call whose time is up: nothing was sent if the connect is what took so long.
    pub(super) fn timed_out(&self, opaque: i32, waited: Duration) -> Error {
        if self.withdraw(opaque) {
            return Error::RemotingConnect {
                addr: self.addr.to_string(),
                reason: "not connected before the request's time was up".to_owned(),
            };
        }
        Error::RemotingTimeout {
            addr: self.addr.to_string(),
            timeout: waited,
        }
    }

    /// Ends the connection and fails its pending calls with `error`; later calls of this have no
    /// effect.
    pub(super) fn close(self: &Arc<Self>, error: &Error) {
        let mut outbound = self.outbound.lock();
        let before = match &outbound.phase {
            Phase::Closed(_) => return,
            _ => std::mem::replace(&mut outbound.phase, Phase::Closed(error.clone())),
        };
        outbound.queued = BytesMut::new();
        let unsent = std::mem::take(&mut outbound.unsent);
        drop(outbound);
        match before {
            Phase::Connecting { stream, timer, .. } => {
                self.event_loop.cancel_timer(&timer);
                drop(stream);
            }
            Phase::Open(stream) => {
                // The last handle of the stream may be in a reader's hands; this ends it now.
                if let Err(error) = stream.shutdown(std::net::Shutdown::Both) {
                    log::trace!("{}: shutdown of the socket: {error}", self.addr);
                }
            }
            Phase::Resolving | Phase::Closed(_) => {}
        }
        self.role.end();
        self.event_loop.forget(self.token);
        // Before the calls end: whoever tries again at once gets a new connection.
        self.handler.on_close(self, error);
        for (opaque, waiter) in self.responses.drain() {
            let mut error = error.clone();
            if let Error::RemotingSendRequest { written, .. } = &mut error {
                *written &= unsent.iter().all(|(waiting, _)| *waiting != opaque);
            }
            waiter.complete(Err(error));
        }
    }

    fn broken(&self, error: &io::Error) -> Error {
        let reason = if error.kind() == ErrorKind::UnexpectedEof {
            "the server closed the connection".to_owned()
        } else {
            error.to_string()
        };
        Error::RemotingSendRequest {
            addr: self.addr.to_string(),
            reason,
            written: true,
        }
    }
}

impl Outbound {
    /// Goes on with a connect as far as the socket lets it, the conversation with a proxy being part
    /// of it. When it is done the phase is `Open`, and the timer is returned that watched over it.
    fn go_on_connecting(&mut self) -> Result<Option<TimerKey>, String> {
        let Phase::Connecting {
            stream,
            proxy,
            talking,
            timer,
            ..
        } = &mut self.phase
        else {
            return Ok(None);
        };
        if !*talking && !connect_outcome(stream).map_err(|error| error.to_string())? {
            return Ok(None);
        }
        *talking = true;
        if let Some(proxy) = proxy {
            if !talk(proxy, stream)? {
                return Ok(None);
            }
        }
        let (stream, timer) = (Arc::clone(stream), *timer);
        socket::make_ready(&stream).map_err(|error| error.to_string())?;
        self.phase = Phase::Open(stream);
        self.opened_at = Some(now());
        for (_, frame) in std::mem::take(&mut self.unsent) {
            self.queued.unsplit(frame);
        }
        Ok(Some(timer))
    }

    fn waiting_bytes(&self) -> usize {
        let unsent: usize = self.unsent.iter().map(|(_, frame)| frame.len()).sum();
        self.queued.len() + unsent
    }
}

impl Channel for Connection {
    fn is_closed(&self) -> bool {
        matches!(self.outbound.lock().phase, Phase::Closed(_))
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("addr", &self.addr)
            .field("pending", &self.responses.len())
            .finish_non_exhaustive()
    }
}

/// The addresses of a host. Blocks.
fn look_up(host: &str, port: u16) -> Result<impl Iterator<Item = SocketAddr>, String> {
    (host, port)
        .to_socket_addrs()
        .map_err(|error| format!("the name cannot be resolved: {error}"))
}

/// The ways to a target through each address of a proxy. Blocks.
fn ways_through(proxy: &SocksProxy, target: &Target) -> Result<impl Iterator<Item = Way>, String> {
    let (host, port) = split_address(&proxy.addr).map_err(str::to_owned)?;
    let found = look_up(host, port).map_err(|error| format!("proxy {}: {error}", proxy.addr))?;
    Ok(found.map(|addr| Way {
        addr,
        through: Some((proxy.clone(), target.clone())),
    }))
}

/// Talks to a proxy until the socket would block or it is done.
fn talk(proxy: &mut Socks5Handshake, mut stream: &TcpStream) -> Result<bool, String> {
    loop {
        let written = write_until_blocked(stream, &proxy.output).map_err(|e| e.to_string())?;
        proxy.output.drain(..written);
        if !proxy.output.is_empty() {
            return Ok(false);
        }
        let mut bytes = [0; MAX_SOCKS_INPUT];
        let wanted = proxy.wanted().min(bytes.len());
        match stream.read(bytes.get_mut(..wanted).unwrap_or_default()) {
            Ok(0) => return Err("it closed the connection".to_owned()),
            Ok(length) => {
                if proxy.input(bytes.get(..length).unwrap_or_default())? {
                    return Ok(true);
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// Whether a connect is done; an error is the connect's.
fn connect_outcome(stream: &TcpStream) -> io::Result<bool> {
    if let Some(error) = stream.take_error()? {
        return Err(error);
    }
    match stream.peer_addr() {
        Ok(_) => {
            stream.set_nodelay(true)?;
            Ok(true)
        }
        Err(error) if error.kind() == ErrorKind::NotConnected => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes as much as the socket takes.
fn write_until_blocked(stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    let mut written = 0;
    while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
        match socket::send(stream, rest) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(length) => written += length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use super::super::event_loop::EventLoop;
    use super::super::response_future::ResponseFuture;
    use super::*;
    use crate::sync::channel::{bounded, unbounded};

    const GENEROUS: Duration = Duration::from_secs(30);

    #[derive(Debug)]
    struct Ignores;

    impl ConnectionHandler for Ignores {
        fn on_request(&self, _: &Arc<Connection>, _: RemotingCommand) {}
        fn on_open(&self, _: &Arc<Connection>) {}
        fn on_close(&self, _: &Arc<Connection>, _: &Error) {}
    }

    fn connection(event_loop: &EventLoop, addr: &str) -> Arc<Connection> {
        let shared = Arc::clone(event_loop.shared());
        let config = RemotingConfig {
            connect_timeout: GENEROUS,
            channel_max_idle_time: GENEROUS,
            close_socket_if_timeout: true,
            socks_proxies: Arc::default(),
        };
        Connection::new(addr.into(), config, shared, Arc::new(Ignores))
    }

    #[test]
    fn a_frame_that_is_taken_back_before_the_connect_is_never_sent() {
        let event_loop = EventLoop::start("test").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap().to_string();
        let connection = connection(&event_loop, &addr);
        connection.submit(1, BytesMut::from("one")).unwrap();
        connection.submit(2, BytesMut::from("two")).unwrap();
        let error = connection.timed_out(1, GENEROUS);
        assert!(matches!(error, Error::RemotingConnect { .. }), "{error:?}");
        assert!(!error.may_have_been_stored());

        connection.open();
        let mut stream = listener.accept().unwrap().0;
        stream.set_read_timeout(Some(GENEROUS)).unwrap();
        let mut received = [0; 3];
        stream.read_exact(&mut received).unwrap();
        assert_eq!(&received, b"two");
        let error = connection.timed_out(2, GENEROUS);
        assert!(matches!(error, Error::RemotingTimeout { .. }), "{error:?}");
        assert!(event_loop.shutdown(Deadline::after(GENEROUS)));
    }

    #[test]
    fn a_connection_that_ends_before_it_is_open_has_sent_nothing() {
        let event_loop = EventLoop::start("test").unwrap();
        let connection = connection(&event_loop, "127.0.0.1:1");
        let future = ResponseFuture::new();
        let waiter = Waiter::Future(future.clone());
        connection.responses().insert(1, waiter);
        connection.submit(1, BytesMut::from("one")).unwrap();
        connection.close(&Error::RemotingSendRequest {
            addr: connection.addr().to_owned(),
            reason: "the client is shut down".into(),
            written: true,
        });
        let error = future.wait(Deadline::after(GENEROUS)).unwrap().unwrap_err();
        assert!(!error.may_have_been_stored(), "{error:?}");
        assert!(event_loop.shutdown(Deadline::after(GENEROUS)));
    }

    /// A client that ends while a call of its is about to connect.
    #[test]
    fn a_connection_that_is_closed_before_it_opens_does_not_keep_the_loop() {
        let event_loop = EventLoop::start("test").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap().to_string();
        let connection = connection(&event_loop, &addr);
        connection.close(&Error::RemotingConnect {
            addr,
            reason: "the client is shut down".to_owned(),
        });
        connection.open();
        assert_eq!(event_loop.shared().connections(), 0);
        assert!(event_loop.shutdown(Deadline::after(GENEROUS)));
    }

    /// Words and the end that come with one event: the loop is told of neither again.
    #[test]
    fn an_end_that_comes_with_the_last_words_is_found() {
        let event_loop = EventLoop::start("test").unwrap();
        let (ended, outcome) = unbounded();
        let call = |connection: &Arc<Connection>, completion: Completion<RemotingCommand>| {
            connection.add_callback(1, Deadline::after(GENEROUS), completion);
            connection.submit(1, BytesMut::from("call")).unwrap();
        };
        let open = |listener: &TcpListener, completion: Completion<RemotingCommand>| {
            let addr = listener.local_addr().unwrap().to_string();
            let connection = connection(&event_loop, &addr);
            call(&connection, completion);
            connection.open();
            let mut peer = listener.accept().unwrap().0;
            peer.set_read_timeout(Some(GENEROUS)).unwrap();
            peer.read_exact(&mut [0; 4]).unwrap();
            (connection, peer)
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let completion = Box::new(move |outcome: Result<_>| ended.send(outcome).unwrap());
        let (_ends, mut ending) = open(&listener, completion);

        // The loop is held up until both are there.
        let (begun, is_held) = unbounded();
        let (release, held) = bounded::<()>(0);
        let (_holds, holding) = open(
            &listener,
            Box::new(move |_| {
                begun.send(()).unwrap();
                let _ = held.recv();
            }),
        );
        drop(holding);
        is_held.recv_timeout(GENEROUS).unwrap();
        ending.write_all(b"\0\0").unwrap();
        drop(ending);
        drop(release);
        let error = outcome.recv_timeout(GENEROUS / 2).unwrap().unwrap_err();
        assert!(
            matches!(error, Error::RemotingSendRequest { .. }),
            "{error:?}"
        );
        assert!(event_loop.shutdown(Deadline::after(GENEROUS)));
    }

    #[test]
    fn a_call_ends_at_its_deadline_while_the_name_is_looked_up() {
        let event_loop = EventLoop::start("test").unwrap();
        let (release, held) = bounded::<()>(0);
        for _ in 0..16 {
            let held = held.clone();
            let busy = event_loop.shared().resolver.execute(move || {
                let _ = held.recv();
            });
            assert!(busy.is_ok());
        }
        let connection = connection(&event_loop, "localhost:1");
        connection.open();
        let (ended, outcome) = unbounded();
        let deadline = Deadline::after(Duration::from_millis(20));
        let callback = Box::new(move |outcome: Result<_>| ended.send(outcome).unwrap());
        connection.add_callback(1, deadline, callback);
        connection.submit(1, BytesMut::from("one")).unwrap();
        let error = outcome.recv_timeout(GENEROUS).unwrap().unwrap_err();
        assert!(matches!(error, Error::RemotingConnect { .. }), "{error:?}");
        drop(release);
        assert!(event_loop.shutdown(Deadline::after(GENEROUS)));
    }
}
