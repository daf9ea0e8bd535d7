//! Calls to servers by their address (Java `NettyRemotingClient`).

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use bytes::BytesMut;
use rocketmq_protocol::{RemotingCommand, response_code};

use super::connection::{Connection, ConnectionHandler};
use super::event_loop::EventLoop;
use super::request_processor::RequestProcessor;
use super::response_future::{ResponseFuture, Waiter, wait_or_withdraw};
use crate::error::{Error, Result, client_error_code};
use crate::service::ThreadPool;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Deadline, Mutex, OnceCell, Weak, now};

/// How long a caller whose deadline has passed waits for a reply that is being handed over.
const HAND_OVER: Duration = Duration::from_secs(1);

/// Told of connections that come and go. Called on the event loop: it must not block.
pub(crate) trait ChannelEventListener: Send + Sync + fmt::Debug {
    fn on_channel_active(&self, addr: &str);
    fn on_channel_closed(&self, addr: &str);
}

/// One connection per address, made at the first call and shared by all callers.
#[derive(Debug)]
pub(crate) struct MioRemotingClient {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    event_loop: Arc<EventLoop>,
    /// Runs completions of asynchronous calls and requests of servers.
    executor: Arc<ThreadPool>,
    connect_timeout: Duration,
    channel_table: Mutex<ChannelTable>,
    name_servers: Vec<String>,
    /// The position of the name server in use.
    chosen_name_server: AtomicUsize,
    processor: OnceCell<Weak<dyn RequestProcessor>>,
    listener: OnceCell<Weak<dyn ChannelEventListener>>,
}

#[derive(Debug, Default)]
struct ChannelTable {
    connections: HashMap<Arc<str>, Arc<Connection>>,
    /// Set at the end: a call that comes later, of a caller that tries again say, opens nothing.
    closed: bool,
}

impl MioRemotingClient {
    pub(crate) fn new(
        event_loop: Arc<EventLoop>,
        executor: Arc<ThreadPool>,
        connect_timeout: Duration,
        name_servers: Vec<String>,
    ) -> Self {
        // Clients of one machine would all ask the first of the list; the process id spreads them.
        let start = std::process::id() as usize % name_servers.len().max(1);
        Self {
            inner: Arc::new(Inner {
                event_loop,
                executor,
                connect_timeout,
                channel_table: Mutex::new(ChannelTable::default()),
                name_servers,
                chosen_name_server: AtomicUsize::new(start),
                processor: OnceCell::new(),
                listener: OnceCell::new(),
            }),
        }
    }

    /// Sets who answers requests of servers; the first one stays.
    pub(crate) fn register_processor(&self, processor: Weak<dyn RequestProcessor>) {
        let _ = self.inner.processor.set(processor);
    }

    /// Sets who hears of connections; the first one stays.
    pub(crate) fn register_listener(&self, listener: Weak<dyn ChannelEventListener>) {
        let _ = self.inner.listener.set(listener);
    }

    /// Sends a request and waits for its reply, at most until `deadline`; connecting is part of it.
    pub(crate) fn invoke_sync(
        &self,
        addr: &str,
        request: RemotingCommand,
        deadline: Deadline,
    ) -> Result<RemotingCommand> {
        self.start_call(addr, request)?.wait(deadline)
    }

    /// Sends a request and returns at once, so that calls to several servers can be under way side
    /// by side.
    pub(crate) fn start_call(
        &self,
        addr: &str,
        mut request: RemotingCommand,
    ) -> Result<PendingCall> {
        let started = now();
        let opaque = self.inner.event_loop.shared().next_opaque();
        request.opaque = opaque;
        let frame = encode(addr, &request)?;
        let connection = self.inner.connection(addr)?;
        let future = ResponseFuture::new();
        connection
            .responses()
            .insert(opaque, Waiter::Future(future.clone()));
        if let Err(error) = connection.submit(opaque, frame) {
            // Without the entry the end of the connection has completed the future already.
            if connection.responses().take(opaque).is_some() {
                return Err(error);
            }
        }
        Ok(PendingCall {
            connection,
            opaque,
            future,
            started,
        })
    }

    /// Sends a request and runs `callback` with the outcome, exactly once, on the executor.
    pub(crate) fn invoke_async(
        &self,
        addr: &str,
        mut request: RemotingCommand,
        deadline: Deadline,
        callback: impl FnOnce(Result<RemotingCommand>) + Send + 'static,
    ) {
        let opaque = self.inner.event_loop.shared().next_opaque();
        request.opaque = opaque;
        let executor = Arc::clone(&self.inner.executor);
        let started = now();
        let completion = move |outcome: Result<RemotingCommand>| {
            let outcome = outcome.map_err(|error| with_waited(error, started));
            let rejected = executor.execute(move || callback(outcome));
            if let Err(rejected) = rejected {
                // Nobody else would run it, and it must run once.
                (rejected.task)();
            }
        };
        let ready =
            encode(addr, &request).and_then(|frame| Ok((frame, self.inner.connection(addr)?)));
        let (frame, connection) = match ready {
            Ok(ready) => ready,
            Err(error) => return completion(Err(error)),
        };
        connection.add_callback(opaque, deadline, Box::new(completion));
        if let Err(error) = connection.submit(opaque, frame) {
            if let Some(waiter) = connection.responses().take(opaque) {
                waiter.complete(Err(error));
            }
        }
    }

    /// Sends a request that gets no answer. It may wait for the connect, and is lost if that fails.
    pub(crate) fn invoke_oneway(&self, addr: &str, mut request: RemotingCommand) -> Result<()> {
        request.opaque = self.inner.event_loop.shared().next_opaque();
        request.mark_oneway();
        let frame = encode(addr, &request)?;
        self.inner.connection(addr)?.submit(request.opaque, frame)
    }

    /// Asks the name server in use, and the others in turn if that one cannot be reached.
    pub(crate) fn invoke_name_server(
        &self,
        request: &RemotingCommand,
        timeout_each: Duration,
        deadline: Deadline,
    ) -> Result<RemotingCommand> {
        let servers = &self.inner.name_servers;
        let mut last = Error::client(
            client_error_code::NO_NAME_SERVER_EXCEPTION,
            "no name server address is set",
        );
        for _ in 0..servers.len() {
            let chosen = self.inner.chosen_name_server.load(Ordering::Relaxed);
            let Some(addr) = servers.get(chosen % servers.len()) else {
                break;
            };
            match self.invoke_sync(
                addr,
                request.clone(),
                deadline.min(Deadline::after(timeout_each)),
            ) {
                Ok(reply) => return Ok(reply),
                Err(error) => {
                    log::warn!("name server {addr}: {error}");
                    last = error;
                }
            }
            self.inner
                .chosen_name_server
                .store((chosen + 1) % servers.len(), Ordering::Relaxed);
            if deadline.has_passed() {
                break;
            }
        }
        Err(last)
    }

    /// Closes all connections, whose pending calls fail, and lets no new ones be made.
    pub(crate) fn close(&self) {
        let mut table = self.inner.channel_table.lock();
        table.closed = true;
        let connections: Vec<_> = table.connections.values().cloned().collect();
        drop(table);
        for connection in connections {
            connection.close(&shut_down(connection.addr(), true));
        }
    }
}

fn shut_down(addr: &str, written: bool) -> Error {
    Error::RemotingSendRequest {
        addr: addr.to_owned(),
        reason: "the client is shut down".into(),
        written,
    }
}

fn encode(addr: &str, request: &RemotingCommand) -> Result<BytesMut> {
    let mut frame = BytesMut::new();
    request
        .encode(&mut frame)
        .map_err(|error| Error::command(addr, error))?;
    Ok(frame)
}

/// The event loop ends calls without knowing when they began.
fn with_waited(error: Error, started: std::time::Instant) -> Error {
    match error {
        Error::RemotingTimeout { addr, timeout } if timeout.is_zero() => Error::RemotingTimeout {
            addr,
            timeout: now().saturating_duration_since(started),
        },
        other => other,
    }
}

impl Inner {
    /// The connection to an address, which may be under way still.
    fn connection(self: &Arc<Self>, addr: &str) -> Result<Arc<Connection>> {
        let mut table = self.channel_table.lock();
        if table.closed {
            return Err(shut_down(addr, false));
        }
        let present = table.connections.get(addr);
        if let Some(connection) = present.filter(|connection| !connection.is_closed()) {
            return Ok(Arc::clone(connection));
        }
        let addr: Arc<str> = addr.into();
        let handler = Arc::clone(self) as Arc<dyn ConnectionHandler>;
        let event_loop = Arc::clone(self.event_loop.shared());
        let connection =
            Connection::new(Arc::clone(&addr), self.connect_timeout, event_loop, handler);
        table.connections.insert(addr, Arc::clone(&connection));
        drop(table);
        connection.open();
        Ok(connection)
    }
}

impl ConnectionHandler for Inner {
    fn on_request(&self, connection: &Arc<Connection>, request: RemotingCommand) {
        let processor = self.processor.get().and_then(Weak::upgrade);
        let connection = Arc::clone(connection);
        let served = self.executor.execute(move || {
            let oneway = request.is_oneway();
            let opaque = request.opaque;
            let code = request.code;
            let answer = match processor {
                Some(processor) => processor.process_request(connection.addr(), request),
                None => Some(not_supported(&request)),
            };
            let Some(mut answer) = answer.filter(|_| !oneway) else {
                return;
            };
            answer.opaque = opaque;
            let sent =
                encode(connection.addr(), &answer).and_then(|f| connection.submit(opaque, f));
            if let Err(error) = sent {
                log::warn!(
                    "the answer to request {code} of {} is lost: {error}",
                    connection.addr()
                );
            }
        });
        if let Err(rejected) = served {
            log::debug!("a request of a server is not served: {}", rejected.reason);
        }
    }

    fn on_open(&self, connection: &Arc<Connection>) {
        log::debug!("connected to {}", connection.addr());
        if let Some(listener) = self.listener.get().and_then(Weak::upgrade) {
            listener.on_channel_active(connection.addr());
        }
    }

    fn on_close(&self, connection: &Arc<Connection>, error: &Error) {
        log::debug!("connection to {} ended: {error}", connection.addr());
        let mut table = self.channel_table.lock();
        let current = table.connections.get(connection.addr());
        if current.is_some_and(|current| Arc::ptr_eq(current, connection)) {
            table.connections.remove(connection.addr());
        }
        drop(table);
        if let Some(listener) = self.listener.get().and_then(Weak::upgrade) {
            listener.on_channel_closed(connection.addr());
        }
    }
}

/// The answer to a request whose code nobody serves.
pub(super) fn not_supported(request: &RemotingCommand) -> RemotingCommand {
    let remark = format!("request type {} not supported", request.code);
    RemotingCommand::response(
        request,
        response_code::REQUEST_CODE_NOT_SUPPORTED,
        Some(remark),
    )
}

/// A call under way. Dropping it gives the call up.
#[derive(Debug)]
pub(crate) struct PendingCall {
    connection: Arc<Connection>,
    opaque: i32,
    future: ResponseFuture<RemotingCommand>,
    started: std::time::Instant,
}

impl PendingCall {
    pub(crate) fn addr(&self) -> &str {
        self.connection.addr()
    }

    /// Waits for the reply, at most until `deadline`. A reply of any code is `Ok`.
    pub(crate) fn wait(self, deadline: Deadline) -> Result<RemotingCommand> {
        let grace = Deadline::after(deadline.remaining().saturating_add(HAND_OVER));
        let outcome = wait_or_withdraw(
            self.connection.responses(),
            self.opaque,
            &self.future,
            deadline,
            grace,
        );
        outcome.unwrap_or_else(|| {
            let waited = now().saturating_duration_since(self.started);
            Err(self.connection.timed_out(self.opaque, waited))
        })
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        if self.connection.responses().take(self.opaque).is_some() {
            self.connection.withdraw(self.opaque);
        }
    }
}
