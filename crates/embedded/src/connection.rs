use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
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
}

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
