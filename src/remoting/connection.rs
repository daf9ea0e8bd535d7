//! One connection to one address: its socket, its pending calls, its life.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};
use mio::Token;
use mio::net::TcpStream;
use rocketmq_protocol::{FrameDecoder, RemotingCommand};

use super::channel_table::Channel;
use super::event_loop::{Shared, Timer, TimerKey};
use super::mio_remoting_client::RemotingConfig;
use super::response_future::{Completion, ResponseTable, Waiter};
use crate::error::{Error, Result};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, Deadline, Mutex, now};

/// Bytes that may wait for a peer that does not read. More are refused with
/// [`Error::RemotingTooMuchRequest`].
const MAX_QUEUED_BYTES: usize = 64 * 1024 * 1024;
const READ_CHUNK: usize = 64 * 1024;
/// After so many chunks other connections get their turn.
const CHUNKS_PER_TURN: usize = 32;

/// What a connection tells its owner. Called on the event loop or on a calling thread, without any
/// lock of the connection held; must not block.
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
    /// Whoever holds it reads the socket and completes calls.
    reader: Mutex<Reader>,
    /// When bytes last went either way, in milliseconds since the event loop's epoch.
    last_activity: AtomicU64,
    /// Set when nothing new is sent here: it ends with its last pending call.
    retired: AtomicBool,
}

struct Outbound {
    phase: Phase,
    opened_at: Option<Instant>,
    /// Frames that wait for the connect, or for the peer to read. While the phase is `Open` and
    /// this is not empty, a write would block and the event loop will be told when it no longer
    /// does.
    queued: BytesMut,
}

enum Phase {
    Resolving,
    Connecting {
        stream: Arc<TcpStream>,
        rest: VecDeque<SocketAddr>,
        timer: TimerKey,
    },
    Open(Arc<TcpStream>),
    Closed(Error),
}

struct Reader {
    decoder: FrameDecoder,
    chunk: Vec<u8>,
}

/// Whether a turn of reading ended because nothing was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadProgress {
    Drained,
    More,
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
                queued: BytesMut::new(),
            }),
            reader: Mutex::new(Reader {
                decoder: FrameDecoder::default(),
                chunk: Vec::new(),
            }),
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

    fn close_if_done(self: &Arc<Self>) {
        if self.retired.load(Ordering::SeqCst) && self.responses.len() == 0 {
            self.close(&Error::RemotingSendRequest {
                addr: self.addr.to_string(),
                reason: "the server is shutting down".into(),
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
        if let Ok(addr) = self.addr.parse::<SocketAddr>() {
            self.connect(VecDeque::from([addr]), "");
            return;
        }
        let this = Arc::clone(self);
        let lookup = self
            .event_loop
            .resolver
            .execute(move || match this.addr.to_socket_addrs() {
                Ok(found) => this.connect(found.collect(), "the name has no address"),
                Err(error) => this.fail_connect(&format!("the name cannot be resolved: {error}")),
            });
        if lookup.is_err() {
            self.fail_connect("the client is shut down");
        }
    }

    /// Tries the addresses in turn.
    fn connect(self: &Arc<Self>, mut addrs: VecDeque<SocketAddr>, reason: &str) {
        let mut reason = reason.to_owned();
        while let Some(addr) = addrs.pop_front() {
            let mut stream = match TcpStream::connect(addr) {
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
            outbound.phase = Phase::Connecting {
                stream: Arc::new(stream),
                rest: addrs,
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

    /// Writes a frame, or queues it behind others or behind the connect. Never blocks.
    pub(super) fn submit(self: &Arc<Self>, frame: &[u8]) -> Result<()> {
        let mut outbound = self.outbound.lock();
        let stream = match &outbound.phase {
            Phase::Closed(error) => return Err(error.clone()),
            Phase::Open(stream) if outbound.queued.is_empty() => Some(Arc::clone(stream)),
            _ => None,
        };
        let mut rest = frame;
        if let Some(stream) = stream {
            self.note_activity();
            match write_until_blocked(&stream, frame) {
                Ok(written) => rest = frame.get(written..).unwrap_or_default(),
                Err(error) => {
                    drop(outbound);
                    let error = self.broken(&error);
                    self.close(&error);
                    return Err(error);
                }
            }
        } else if outbound.queued.len().saturating_add(frame.len()) > MAX_QUEUED_BYTES {
            return Err(Error::RemotingTooMuchRequest {
                reason: format!(
                    "{} bytes wait for {} to read them, the most is {MAX_QUEUED_BYTES}",
                    outbound.queued.len(),
                    self.addr
                ),
            });
        }
        outbound.queued.extend_from_slice(rest);
        Ok(())
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
        self.responses.insert(opaque, waiter);
        self.event_loop.add_timer(timer);
    }

    pub(super) fn on_writable(self: &Arc<Self>) {
        let mut outbound = self.outbound.lock();
        let mut opened = false;
        if let Phase::Connecting { stream, timer, .. } = &outbound.phase {
            let stream = Arc::clone(stream);
            let timer = *timer;
            match connect_outcome(&stream) {
                Ok(true) => {
                    outbound.phase = Phase::Open(stream);
                    outbound.opened_at = Some(now());
                    opened = true;
                }
                Ok(false) => return,
                Err(error) => {
                    drop(outbound);
                    self.event_loop.cancel_timer(&timer);
                    self.next_address(&error.to_string());
                    return;
                }
            }
            self.event_loop.cancel_timer(&timer);
        }
        let Phase::Open(stream) = &outbound.phase else {
            return;
        };
        let stream = Arc::clone(stream);
        let written = write_until_blocked(&stream, &outbound.queued);
        match written {
            Ok(written) if written == outbound.queued.len() => outbound.queued = BytesMut::new(),
            Ok(written) => outbound.queued.advance(written),
            Err(error) => {
                drop(outbound);
                let error = self.broken(&error);
                self.close(&error);
                return;
            }
        }
        drop(outbound);
        self.note_activity();
        if opened {
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
            Phase::Connecting { rest, .. } => {
                drop(outbound);
                self.connect(rest, reason);
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
            Timer::Call(opaque) => {
                if let Some(waiter) = self.responses.take(opaque) {
                    waiter.complete(Err(Error::RemotingTimeout {
                        addr: self.addr.to_string(),
                        timeout: Duration::ZERO,
                    }));
                }
            }
        }
    }

    /// Reads what is there and completes calls with it.
    pub(super) fn on_readable(self: &Arc<Self>) -> ReadProgress {
        let stream = match &self.outbound.lock().phase {
            Phase::Open(stream) => Arc::clone(stream),
            _ => return ReadProgress::Drained,
        };
        let mut reader = self.reader.lock();
        reader.chunk.resize(READ_CHUNK, 0);
        for _ in 0..CHUNKS_PER_TURN {
            let Reader { decoder, chunk } = &mut *reader;
            match (&*stream).read(chunk) {
                Ok(0) => {
                    drop(reader);
                    self.close(&self.broken(&io::Error::from(ErrorKind::UnexpectedEof)));
                    return ReadProgress::Drained;
                }
                Ok(length) => {
                    self.note_activity();
                    decoder.extend(chunk.get(..length).unwrap_or_default());
                    if let Err(error) = self.deliver(decoder) {
                        drop(reader);
                        self.close(&error);
                        return ReadProgress::Drained;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return ReadProgress::Drained;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    drop(reader);
                    self.close(&self.broken(&error));
                    return ReadProgress::Drained;
                }
            }
        }
        ReadProgress::More
    }

    fn deliver(self: &Arc<Self>, decoder: &mut FrameDecoder) -> Result<()> {
        loop {
            let command = match decoder.next_command() {
                Ok(Some(command)) => command,
                Ok(None) => return Ok(()),
                Err(error) => return Err(Error::command(&self.addr, error)),
            };
            if !command.is_response() {
                self.handler.on_request(self, command);
            } else if let Some(waiter) = self.responses.take(command.opaque) {
                waiter.complete(Ok(command));
                self.close_if_done();
            } else {
                log::debug!(
                    "{}: reply {} to a call that has ended, code {}",
                    self.addr,
                    command.opaque,
                    command.code
                );
            }
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
        self.event_loop.forget(self.token);
        // Before the calls end: whoever tries again at once gets a new connection.
        self.handler.on_close(self, error);
        for waiter in self.responses.drain() {
            waiter.complete(Err(error.clone()));
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
fn write_until_blocked(mut stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    let mut written = 0;
    while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
        match stream.write(rest) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(length) => written += length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}
