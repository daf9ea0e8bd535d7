use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use parking_lot::Mutex;
use rocketmq_protocol::{LanguageCode, RemotingCommand};

/// One accepted socket. Its own thread reads it; any thread may write to it.
pub(crate) struct Connection {
    id: u64,
    stream: TcpStream,
    peer: SocketAddr,
    /// The frame being written; the lock makes frames whole.
    writer: Mutex<BytesMut>,
    write_timeout: Duration,
    closed: AtomicBool,
    opened: Instant,
    /// Milliseconds from the opening to the last byte in either direction.
    last_use: AtomicU64,
    /// The client id of its heartbeats.
    client_id: Mutex<Option<Arc<str>>>,
    /// How many requests came on it, by code.
    counts: Mutex<BTreeMap<i32, u64>>,
    /// Requests to the client that wait for its answer, by opaque.
    calls: Mutex<HashMap<i32, Call>>,
}

/// How a request to a client ended.
#[derive(Debug)]
pub(crate) enum CallEnd {
    Answer(RemotingCommand),
    Timeout,
    Closed,
}

/// What is done when a request to a client has ended.
pub(crate) type Call = Box<dyn FnOnce(CallEnd) + Send>;

/// A write buffer that grew beyond this is not kept.
const KEPT_BUFFER: usize = 512 * 1024;

impl Connection {
    pub(crate) fn new(id: u64, stream: TcpStream, write_timeout: Duration) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(write_timeout))?;
        Ok(Self {
            id,
            peer: stream.peer_addr()?,
            stream,
            writer: Mutex::default(),
            write_timeout,
            closed: AtomicBool::new(false),
            opened: Instant::now(),
            last_use: AtomicU64::new(0),
            client_id: Mutex::default(),
            counts: Mutex::default(),
            calls: Mutex::default(),
        })
    }

    /// Unique within its server.
    pub(crate) const fn id(&self) -> u64 {
        self.id
    }

    pub(crate) const fn peer(&self) -> SocketAddr {
        self.peer
    }

    pub(crate) const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Closes both directions; the reading thread sees the end and cleans up.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        // An error means that the peer was faster.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Notes that bytes went to or fro.
    pub(crate) fn used(&self) {
        let millis = self.opened.elapsed().as_millis() as u64;
        self.last_use.store(millis, Ordering::Relaxed);
    }

    /// How long no byte went to or fro.
    pub(crate) fn idle(&self) -> Duration {
        let used = Duration::from_millis(self.last_use.load(Ordering::Relaxed));
        self.opened.elapsed().saturating_sub(used)
    }

    pub(crate) fn client_id(&self) -> Option<Arc<str>> {
        self.client_id.lock().clone()
    }

    /// Notes whose heartbeat came.
    pub(crate) fn set_client_id(&self, client_id: &str) {
        let mut known = self.client_id.lock();
        if known.as_deref() != Some(client_id) {
            *known = Some(client_id.into());
        }
    }

    pub(crate) fn count_request(&self, code: i32) {
        *self.counts.lock().entry(code).or_default() += 1;
    }

    pub(crate) fn request_counts(&self) -> BTreeMap<i32, u64> {
        self.counts.lock().clone()
    }

    /// Sends a request to the client. `end` is called once: with the answer, when
    /// [`Connection::end_call`] says so, or when the connection ends.
    pub(crate) fn call(&self, request: RemotingCommand, end: Call) {
        let opaque = request.opaque;
        self.calls.lock().insert(opaque, end);
        if !self.send(request) || self.is_closed() {
            self.end_call(opaque, CallEnd::Closed);
        }
    }

    /// Ends a request to the client, if it has not ended.
    pub(crate) fn end_call(&self, opaque: i32, how: CallEnd) -> bool {
        let call = self.calls.lock().remove(&opaque);
        let waited = call.is_some();
        if let Some(call) = call {
            call(how);
        }
        waited
    }

    /// The connection has ended, and nothing will be answered any more.
    pub(crate) fn end_calls(&self) {
        let calls = std::mem::take(&mut *self.calls.lock());
        for call in calls.into_values() {
            call(CallEnd::Closed);
        }
    }

    /// Writes a command as a server does, and says whether the socket took it.
    ///
    /// A peer that does not read for the write timeout loses its connection, so that it holds a
    /// broker's thread no longer than that.
    pub(crate) fn send(&self, mut command: RemotingCommand) -> bool {
        command.language = LanguageCode::Java;
        if self.is_closed() {
            return false;
        }
        let deadline = Instant::now() + self.write_timeout;
        let Some(mut buffer) = self.writer.try_lock_until(deadline) else {
            log::warn!("{} does not read, closing it", self.peer);
            self.close();
            return false;
        };
        buffer.clear();
        if let Err(error) = command.encode(&mut buffer) {
            log::warn!("code {} for {}: {error}", command.code, self.peer);
            self.close();
            return false;
        }
        let written = write_all_until(&self.stream, &buffer, deadline);
        self.used();
        if buffer.capacity() > KEPT_BUFFER {
            *buffer = BytesMut::new();
        }
        drop(buffer);
        if let Err(error) = &written {
            log::debug!("writing to {}: {error}", self.peer);
            self.close();
        }
        written.is_ok()
    }
}

/// The socket's own timeout bounds one call only; a peer that takes a few bytes each time would
/// start it anew.
fn write_all_until(mut stream: &TcpStream, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if !bytes.is_empty() && Instant::now() >= deadline {
            return Err(ErrorKind::TimedOut.into());
        }
    }
    Ok(())
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connection({} from {})", self.id, self.peer)
    }
}
