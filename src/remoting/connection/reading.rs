//! Reading a connection's socket and completing calls with what comes, on the event loop or on the
//! thread of a caller that waits for its own reply.

use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use rocketmq_protocol::{FrameDecoder, RemotingCommand};

use super::super::event_loop::Timer;
use super::super::reader_role::{Socket, Turn, Watch};
use super::super::response_future::ResponseFuture;
use super::socket::{receive, wait_and_receive};
use super::{Connection, Phase};
use crate::error::{Error, Result};
use crate::service::wake_at_the_end;
use crate::sync::{Arc, Deadline, now};

const READ_CHUNK: usize = 64 * 1024;
/// After so many chunks other connections get their turn.
const CHUNKS_PER_TURN: usize = 32;

#[derive(Default)]
pub(super) struct Reader {
    decoder: FrameDecoder,
    chunk: Vec<u8>,
}

/// Whether a turn of reading ended because nothing was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum ReadProgress {
    Drained,
    More,
}

/// What came of reading once.
enum Chunk {
    /// As much as there is room for at a time: there may be more.
    Full,
    /// All that was there. What comes later is told of anew, but for an end that was there with it.
    Part,
    WouldBlock,
    Ended,
}

impl Connection {
    /// Waits for the outcome of a call that is in the response table, and reads the socket meanwhile
    /// if nobody else does. `None` when the deadline passes first.
    pub(in super::super) fn wait(
        self: &Arc<Self>,
        opaque: i32,
        future: &ResponseFuture<RemotingCommand>,
        deadline: Deadline,
    ) -> Option<Result<RemotingCommand>> {
        if cfg!(unix) {
            self.role.wait(opaque, future, deadline, self)
        } else {
            future.wait(deadline)
        }
    }

    /// The event loop's turn: reads what is there and completes calls with it. If the peer has sent its
    /// last (`has_ended`), nothing more is told of, and it is read to its end.
    pub(in super::super) fn on_readable(self: &Arc<Self>, has_ended: bool) -> ReadProgress {
        let mut talked = false;
        let stream = loop {
            match &self.outbound.lock().phase {
                Phase::Open(stream) => break Arc::clone(stream),
                Phase::Connecting { talking: true, .. } if !talked => {}
                _ => return ReadProgress::Drained,
            }
            // The proxy has answered. What follows its last word is the server's, and is read below.
            talked = true;
            self.on_writable();
        };
        if !self.role.begin_turn() {
            // A caller reads, and whoever it hands on to is told of what it leaves.
            return ReadProgress::Drained;
        }
        let progress = self.read_chunks(&stream, has_ended);
        self.role.end_turn(self);
        progress
    }

    fn read_chunks(self: &Arc<Self>, stream: &TcpStream, has_ended: bool) -> ReadProgress {
        for _ in 0..CHUNKS_PER_TURN {
            match self.read_chunk(stream, None) {
                Chunk::Full => {}
                Chunk::Part if has_ended => {}
                Chunk::Part | Chunk::WouldBlock | Chunk::Ended => return ReadProgress::Drained,
            }
        }
        ReadProgress::More
    }

    /// Reads once and completes calls with what has come; waits for it, about so long at most, or not at
    /// all. Only the holder of the role may.
    fn read_chunk(self: &Arc<Self>, stream: &TcpStream, wait: Option<Duration>) -> Chunk {
        let ended = match self.fill(stream, wait) {
            Ok(0) => self.broken(&io::Error::from(ErrorKind::UnexpectedEof)),
            Ok(length) => {
                self.note_activity();
                match wake_at_the_end(|| self.deliver()) {
                    Ok(()) if length < READ_CHUNK => return Chunk::Part,
                    Ok(()) => return Chunk::Full,
                    Err(error) => error,
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Chunk::WouldBlock,
            Err(error) => self.broken(&error),
        };
        self.close(&ended);
        Chunk::Ended
    }

    /// The place that is read into is taken out meanwhile: no lock is held while input is waited for.
    fn fill(&self, stream: &TcpStream, wait: Option<Duration>) -> io::Result<usize> {
        let mut chunk = std::mem::take(&mut self.reader.lock().chunk);
        chunk.resize(READ_CHUNK, 0);
        let received = match wait {
            Some(left) => wait_and_receive(stream, &mut chunk, left),
            None => receive(stream, &mut chunk),
        };
        let mut reader = self.reader.lock();
        if let Ok(length) = received {
            reader
                .decoder
                .extend(chunk.get(..length).unwrap_or_default());
        }
        reader.chunk = chunk;
        received
    }

    fn deliver(self: &Arc<Self>) -> Result<()> {
        loop {
            let next = self.reader.lock().decoder.next_command();
            let command = match next {
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
}

impl Socket for Arc<Connection> {
    fn now(&self) -> Instant {
        now()
    }

    fn watch(&self, from: Watch, to: Watch) -> io::Result<()> {
        match self.socket.get() {
            Some(stream) => self.event_loop.watch(self.token, stream, from, to),
            None => Ok(()),
        }
    }

    fn awaits_callbacks(&self) -> bool {
        self.responses.has_callbacks()
    }

    fn put_back_at(&self, at: Instant) {
        self.event_loop.add_timer((at, self.token, Timer::PutBack));
    }

    fn read(&self, deadline: Deadline) -> Turn {
        let Some(stream) = self.socket.get() else {
            return Turn::Ended;
        };
        let left = deadline.remaining();
        if left.is_zero() {
            return Turn::TimedOut;
        }
        let _reading = Reading::begin();
        match self.read_chunk(stream, Some(left)) {
            Chunk::Full | Chunk::Part | Chunk::WouldBlock => Turn::Read,
            Chunk::Ended => Turn::Ended,
        }
    }

    fn fail(&self, error: &io::Error) {
        self.close(&self.broken(error));
    }
}

thread_local! {
    static IS_READING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread, one that waits for a reply of its own, is completing calls of others.
pub(in super::super) fn is_reading() -> bool {
    IS_READING.try_with(Cell::get).unwrap_or(false)
}

struct Reading;

impl Reading {
    fn begin() -> Self {
        let _ = IS_READING.try_with(|is_reading| is_reading.set(true));
        Self
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let _ = IS_READING.try_with(|is_reading| is_reading.set(false));
    }
}
