//! Calls to servers by their address (Java `NettyRemotingClient`).

use std::fmt;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use rocketmq_protocol::{RemotingCommand, response_code};

use super::channel_table::{ChannelTable, Found};
use super::connection::{Connection, ConnectionHandler, is_reading};
use super::event_loop::{EventLoop, is_loop};
use super::name_servers::{NameServers, share};
use super::permits::Permits;
use super::request_processor::RequestProcessor;
use super::response_future::{ResponseFuture, Waiter, wait_or_withdraw};
use super::rpc_hook::RpcHooks;
use crate::client_config::{ClientConfig, SocksProxies};
use crate::error::{Error, Result, client_error_code};
use crate::service::ThreadPool;
use crate::sync::{Arc, Deadline, OnceCell, Weak, now};

/// How long a caller whose deadline has passed waits for a reply that is being handed over.
const HAND_OVER: Duration = Duration::from_secs(1);
/// How many asynchronous calls may be under way, and how many one-way ones (Java
/// `com.rocketmq.remoting.clientAsyncSemaphoreValue` and `clientOnewaySemaphoreValue`).
const PERMITS: usize = 65_535;
/// A silence shorter than this says nothing about the connection (Java
/// `NettyRemotingClient#MIN_CLOSE_TIMEOUT_MILLIS`).
const MIN_CLOSE_TIMEOUT: Duration = Duration::from_millis(100);
/// A server that says good-bye again so soon is not left again (Java
/// `maxReconnectIntervalTimeSeconds`).
const MIN_RECONNECT_INTERVAL: Duration = Duration::from_secs(60);

/// Told of connections that come and go. Called on the event loop, or on a calling thread when one
/// ends: it must not block.
pub(crate) trait ChannelEventListener: Send + Sync + fmt::Debug {
    fn on_channel_active(&self, addr: &str);
    fn on_channel_closed(&self, addr: &str);
}

/// What of the settings concerns connections.
#[derive(Debug, Clone)]
pub(crate) struct RemotingConfig {
    pub(crate) connect_timeout: Duration,
    pub(crate) channel_max_idle_time: Duration,
    pub(crate) close_socket_if_timeout: bool,
    pub(crate) socks_proxies: Arc<SocksProxies>,
}

impl From<&ClientConfig> for RemotingConfig {
    fn from(config: &ClientConfig) -> Self {
        Self {
            connect_timeout: config.connect_timeout,
            channel_max_idle_time: config.channel_max_idle_time,
            close_socket_if_timeout: config.close_socket_if_timeout,
            socks_proxies: Arc::new(config.socks_proxy_config.clone().unwrap_or_default()),
        }
    }
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
    config: RemotingConfig,
    hooks: RpcHooks,
    /// Runs the user's hook where neither the event loop may nor the executor should. One thread, so
    /// that the hook sees what it sees here in order.
    hook_executor: ThreadPool,
    channels: ChannelTable<Connection>,
    name_servers: NameServers,
    async_permits: Permits,
    oneway_permits: Permits,
    processor: OnceCell<Weak<dyn RequestProcessor>>,
    listener: OnceCell<Weak<dyn ChannelEventListener>>,
}

impl MioRemotingClient {
    pub(crate) fn new(
        event_loop: Arc<EventLoop>,
        executor: Arc<ThreadPool>,
        config: &ClientConfig,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                event_loop,
                executor,
                config: config.into(),
                hooks: config.into(),
                hook_executor: ThreadPool::new("RPCHookExecutor", 1),
                channels: ChannelTable::new(),
                name_servers: NameServers::new(config.namesrv_addr.clone()),
                async_permits: Permits::new(PERMITS),
                oneway_permits: Permits::new(PERMITS),
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
    pub(crate) fn start_call(&self, addr: &str, request: RemotingCommand) -> Result<PendingCall> {
        PendingCall::start(Arc::clone(&self.inner), addr, request)
    }

    /// Sends a request and runs `callback` with the outcome, exactly once, on the executor. With too
    /// many such calls under way it ends at once with [`Error::RemotingTooMuchRequest`].
    pub(crate) fn invoke_async(
        &self,
        addr: &str,
        request: RemotingCommand,
        deadline: Deadline,
        callback: impl FnOnce(Result<RemotingCommand>) + Send + 'static,
    ) {
        let executor = Arc::clone(&self.inner.executor);
        let inner = Arc::clone(&self.inner);
        let to = addr.to_owned();
        let finish = move |request: RemotingCommand, outcome: Result<RemotingCommand>| {
            let shown = move |outcome: Result<RemotingCommand>| {
                if let Ok(reply) = &outcome {
                    inner.show(&to, &request, reply);
                }
                callback(outcome);
            };
            hand_over(&executor, shown, outcome);
        };
        self.invoke_with_permit(addr, request, deadline, Box::new(finish));
    }

    /// [`invoke_async`](Self::invoke_async) with a `completion` that neither blocks nor runs code of the
    /// user: it runs on the thread that finds the outcome, the event loop's or that of another caller.
    pub(crate) fn invoke_async_in_place(
        &self,
        addr: &Arc<str>,
        request: RemotingCommand,
        deadline: Deadline,
        completion: impl FnOnce(Result<RemotingCommand>) + Send + 'static,
    ) {
        let finish = self.in_place(addr, completion);
        self.invoke_with_permit(addr, request, deadline, finish);
    }

    fn invoke_with_permit(
        &self,
        addr: &str,
        request: RemotingCommand,
        deadline: Deadline,
        finish: Finish,
    ) {
        let Some(permit) = self.inner.async_permits.try_acquire() else {
            return finish(request, Err(too_much("asynchronous", addr)));
        };
        let started = now();
        let finish = move |request: RemotingCommand, outcome: Result<RemotingCommand>| {
            drop(permit);
            finish(
                request,
                outcome.map_err(|error| with_waited(error, started)),
            );
        };
        let call = AsyncCall {
            request,
            deadline,
            go_away: GoAway::Reconnect,
            on_silence: OnSilence::Stay,
            finish: Box::new(finish),
        };
        self.inner.submit_async(addr, call);
    }

    /// Ends a call on the thread that finds its outcome, or where hooks may run.
    fn in_place(
        &self,
        addr: &Arc<str>,
        completion: impl FnOnce(Result<RemotingCommand>) + Send + 'static,
    ) -> Finish {
        let inner = Arc::clone(&self.inner);
        let to = Arc::clone(addr);
        Box::new(move |request, outcome| {
            let shower = Arc::clone(&inner);
            inner.where_hooks_may_run(move || {
                if let Ok(reply) = &outcome {
                    shower.show(&to, &request, reply);
                }
                completion(outcome);
            });
        })
    }

    /// Sends a request and runs `completion` with the outcome, exactly once, on the thread that
    /// finds it, the event loop's or that of another caller: it must not block. It takes neither a permit nor a thread
    /// of the executor, so that a client whose callbacks are busy still says that it is there; and a
    /// silent server is left as after a synchronous call. May be called on the event loop.
    pub(crate) fn invoke_directly(
        &self,
        addr: &str,
        request: RemotingCommand,
        deadline: Deadline,
        completion: impl FnOnce(Result<RemotingCommand>) + Send + 'static,
    ) {
        let to = addr.into();
        let call = AsyncCall {
            request,
            deadline,
            go_away: GoAway::Reconnect,
            on_silence: OnSilence::Close,
            finish: self.in_place(&to, completion),
        };
        let inner = Arc::clone(&self.inner);
        self.inner
            .where_hooks_may_run(move || inner.submit_async(&to, call));
    }

    /// Lets go of the connection to a server that is not needed any more; what waits there is still
    /// answered.
    pub(crate) fn release(&self, addr: &str) {
        if let Some(connection) = self.inner.channels.take(addr) {
            log::info!("{addr} is no longer needed");
            connection.retire();
        }
    }

    /// Sends a request that gets no answer. It may wait for the connect, and is lost if that fails.
    pub(crate) fn invoke_oneway(&self, addr: &str, mut request: RemotingCommand) -> Result<()> {
        let permit = self.inner.oneway_permits.try_acquire();
        let _permit = permit.ok_or_else(|| too_much("one-way", addr))?;
        request.mark_oneway();
        let (frame, connection) = self.inner.prepare(addr, &mut request)?;
        connection.submit(request.opaque, frame)
    }

    /// Asks the name server in use, and the others in turn if that one does not answer. The reply
    /// comes with the address of the server that gave it.
    pub(crate) fn invoke_name_server(
        &self,
        request: &RemotingCommand,
        timeout_each: Duration,
        deadline: Deadline,
    ) -> Result<(String, RemotingCommand)> {
        let servers = &self.inner.name_servers;
        let mut failures: Vec<Error> = Vec::new();
        for left in (1..=servers.count()).rev() {
            let Some(addr) = servers.chosen() else { break };
            let attempt = share(deadline, left, timeout_each);
            match self.invoke_sync(&addr, request.clone(), attempt) {
                Ok(reply) => return Ok((addr, reply)),
                Err(error) => {
                    log::warn!("name server {addr}: {error}");
                    failures.push(error);
                }
            }
            servers.leave(&addr);
            if deadline.has_passed() {
                break;
            }
        }
        let reason = match failures.len() {
            0 => "no address of a name server is known".to_owned(),
            asked => format!("none of {asked} name servers has answered"),
        };
        Err(Error::MQClient {
            code: Some(client_error_code::NO_NAME_SERVER_EXCEPTION),
            reason,
            source: failures.pop().map(Box::new),
        })
    }

    /// Replaces the list of name servers. The one in use stays in use if the new list has it too,
    /// else its connection is closed (Java `NettyRemotingClient#updateNameServerAddressList`).
    pub(crate) fn update_name_server_address_list(&self, addrs: Vec<String>) {
        let Some(left) = self.inner.name_servers.update(addrs) else {
            return;
        };
        if let Some(connection) = self.inner.channels.get(&left) {
            connection.close(&Error::RemotingSendRequest {
                addr: left,
                reason: "it is a name server no longer".into(),
                written: true,
            });
        }
    }

    /// Closes all connections, whose pending calls fail, and makes no new ones. Returns whether the
    /// thread that calls the user's hook has ended by the deadline.
    pub(crate) fn close(&self, deadline: Deadline) -> bool {
        for connection in self.inner.channels.close() {
            connection.close(&shut_down(connection.addr()));
        }
        self.inner.hook_executor.shutdown(deadline).left == 0
    }
}

#[cfg(test)]
impl MioRemotingClient {
    /// Calls under way to an address, and permits for asynchronous calls that are in use.
    pub(super) fn under_way(&self, addr: &str) -> (usize, usize) {
        let calls = match self.inner.connection(addr) {
            Ok(connection) => connection.responses().len(),
            Err(_) => 0,
        };
        (calls, PERMITS - self.inner.async_permits.free())
    }
}

#[cfg(all(test, unix))]
impl MioRemotingClient {
    /// Whether a waiting caller reads the connection to an address.
    pub(super) fn is_led(&self, addr: &str) -> bool {
        let connection = self.inner.channels.get(addr);
        connection.is_some_and(|connection| connection.role().is_led())
    }

    /// Whether the event loop is told of input on the connection to an address.
    pub(super) fn is_in_loop(&self, addr: &str) -> bool {
        let connection = self.inner.channels.get(addr);
        connection.is_some_and(|connection| connection.role().is_in_loop())
    }
}

/// Runs a callback on the executor; if that cannot take it nobody else would, and it must run once,
/// so then it runs here.
fn hand_over(
    executor: &ThreadPool,
    callback: impl FnOnce(Result<RemotingCommand>) + Send + 'static,
    outcome: Result<RemotingCommand>,
) {
    if let Err(rejected) = executor.execute(move || callback(outcome)) {
        (rejected.task)();
    }
}

fn too_much(kind: &str, addr: &str) -> Error {
    Error::RemotingTooMuchRequest {
        reason: format!("{PERMITS} {kind} calls are under way, the one to {addr} is not sent"),
    }
}

fn shut_down(addr: &str) -> Error {
    Error::RemotingSendRequest {
        addr: addr.to_owned(),
        reason: "the client is shut down".into(),
        written: true,
    }
}

/// A server that is shutting down has refused the request on the new connection too.
fn gone_away(addr: &str) -> Error {
    Error::RemotingSendRequest {
        addr: addr.to_owned(),
        reason: "the server is shutting down (GO_AWAY)".into(),
        written: false,
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
fn with_waited(error: Error, started: Instant) -> Error {
    match error {
        Error::RemotingTimeout { addr, timeout } if timeout.is_zero() => Error::RemotingTimeout {
            addr,
            timeout: now().saturating_duration_since(started),
        },
        other => other,
    }
}

/// Ends an asynchronous call: the request as it was sent, and what came of it.
type Finish = Box<dyn FnOnce(RemotingCommand, Result<RemotingCommand>) + Send>;

/// What to do when a server says that it is about to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GoAway {
    /// Connect anew and send the request again.
    Reconnect,
    /// That was done; it is an error.
    Fail,
}

/// What to do with the connection when a call has no answer in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnSilence {
    Stay,
    Close,
}

/// A call that nobody waits for.
struct AsyncCall {
    request: RemotingCommand,
    deadline: Deadline,
    go_away: GoAway,
    on_silence: OnSilence,
    finish: Finish,
}

impl Inner {
    /// The connection to an address, which may be under way still.
    fn connection(self: &Arc<Self>, addr: &str) -> Result<Arc<Connection>> {
        let found = self.channels.get_or_make(addr, |addr| {
            let handler = Arc::clone(self) as Arc<dyn ConnectionHandler>;
            let event_loop = Arc::clone(self.event_loop.shared());
            Connection::new(addr, self.config.clone(), event_loop, handler)
        });
        match found {
            Found::Present(connection) => Ok(connection),
            Found::Made(connection) => {
                connection.open();
                Ok(connection)
            }
            Found::Closed => Err(Error::RemotingConnect {
                addr: addr.to_owned(),
                reason: "the client is shut down".into(),
            }),
        }
    }

    /// Takes a connection whose server says good-bye out of use, so that the next call connects
    /// anew; what waits on it is still answered there. A server that was left a moment ago is not
    /// left again.
    fn leave(&self, connection: &Arc<Connection>) {
        let addr = connection.addr();
        if self
            .channels
            .leave(addr, connection, now(), MIN_RECONNECT_INTERVAL)
        {
            log::info!("{addr} is shutting down, connecting anew");
            connection.retire();
        }
    }

    /// Makes a request ready to be sent, for the first time or once more: hooks, a number of its own
    /// and its bytes.
    fn prepare(
        self: &Arc<Self>,
        addr: &str,
        request: &mut RemotingCommand,
    ) -> Result<(BytesMut, Arc<Connection>)> {
        if self.hooks.has_user() && self.is_others_thread() {
            return Err(Error::MQClient {
                code: None,
                reason: format!("there is no thread for the RPC hook of a request to {addr}"),
                source: None,
            });
        }
        self.hooks.before_request(addr, request)?;
        request.opaque = self.event_loop.shared().next_opaque();
        let frame = encode(addr, request)?;
        Ok((frame, self.connection(addr)?))
    }

    fn show(&self, addr: &str, request: &RemotingCommand, reply: &RemotingCommand) {
        if self.hooks.has_user() && self.is_others_thread() {
            let code = request.code;
            log::warn!(
                "there is no thread to show the answer of {addr} to request {code} to the RPC hook"
            );
            return;
        }
        self.hooks.after_response(addr, request, reply);
    }

    /// Whether this thread serves others just now: the event loop's, or one that completes calls on
    /// its way to its own reply. The user's hook must not hold it up.
    fn is_others_thread(&self) -> bool {
        is_loop() || is_reading()
    }

    /// Runs what calls hooks: on a thread of their own if one is the user's, because this may be a
    /// thread that serves others. If there is no such thread it runs here, and then does without the
    /// hook where it serves others, which fails a request.
    fn where_hooks_may_run(&self, task: impl FnOnce() + Send + 'static) {
        if !self.hooks.has_user() {
            return task();
        }
        if let Err(rejected) = self.hook_executor.execute(task) {
            (rejected.task)();
        }
    }

    fn submit_async(self: &Arc<Self>, addr: &str, mut call: AsyncCall) {
        let may_wait = self.hooks.has_user() && !call.deadline.has_passed();
        let (frame, connection) = match self.prepare(addr, &mut call.request) {
            Ok(prepared) => prepared,
            Err(error) => return (call.finish)(call.request, Err(error)),
        };
        if may_wait && call.deadline.has_passed() {
            let reason = format!("the time was used up before the request to {addr} was sent");
            let error = Error::RemotingTooMuchRequest { reason };
            return (call.finish)(call.request, Err(error));
        }
        let this = Arc::clone(self);
        let over = Arc::clone(&connection);
        let started = now();
        let (opaque, deadline) = (call.request.opaque, call.deadline);
        let completion = move |outcome: Result<RemotingCommand>| match outcome {
            Ok(reply) if reply.code == response_code::GO_AWAY => match call.go_away {
                GoAway::Reconnect => {
                    this.leave(&over);
                    call.go_away = GoAway::Fail;
                    let again = Arc::clone(&this);
                    this.where_hooks_may_run(move || again.submit_async(over.addr(), call));
                }
                GoAway::Fail => (call.finish)(call.request, Err(gone_away(over.addr()))),
            },
            Err(error @ Error::RemotingTimeout { .. }) => {
                if call.on_silence == OnSilence::Close {
                    this.close_if_silent(&over, started, deadline);
                }
                (call.finish)(call.request, Err(error));
            }
            outcome => (call.finish)(call.request, outcome),
        };
        connection.add_callback(opaque, deadline, Box::new(completion));
        if let Err(error) = connection.submit_later(opaque, frame) {
            if let Some(waiter) = connection.responses().take(opaque) {
                waiter.complete(Err(error));
            }
        }
    }

    /// A server that did not answer in a time in which it could have is probably not there any more,
    /// whatever the operating system says of the connection: the next call connects anew (Java
    /// `clientCloseSocketIfTimeout`).
    fn close_if_silent(&self, connection: &Arc<Connection>, started: Instant, deadline: Deadline) {
        let Some(opened) = connection.opened_at() else {
            return;
        };
        let sent = opened.max(started);
        let budget = deadline.instant().saturating_duration_since(sent);
        let timeout = deadline.instant().saturating_duration_since(started);
        let enough = budget > MIN_CLOSE_TIMEOUT || budget > timeout / 4;
        if self.config.close_socket_if_timeout && enough {
            connection.close(&Error::RemotingSendRequest {
                addr: connection.addr().to_owned(),
                reason: format!("closed after a silence of {} ms", budget.as_millis()),
                written: true,
            });
        }
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
        self.channels.remove(connection.addr(), connection);
        if let Some(listener) = self.listener.get().and_then(Weak::upgrade) {
            listener.on_channel_closed(connection.addr());
        }
    }
}

/// The answer to a request whose code nobody serves.
pub(crate) fn not_supported(request: &RemotingCommand) -> RemotingCommand {
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
    client: Arc<Inner>,
    request: RemotingCommand,
    connection: Arc<Connection>,
    future: ResponseFuture<RemotingCommand>,
    started: Instant,
}

impl PendingCall {
    fn start(client: Arc<Inner>, addr: &str, mut request: RemotingCommand) -> Result<Self> {
        let (frame, connection) = client.prepare(addr, &mut request)?;
        let opaque = request.opaque;
        let future = ResponseFuture::new();
        let responses = connection.responses();
        responses.insert(opaque, Waiter::Future(future.clone()));
        if let Err(error) = connection.submit(opaque, frame) {
            // Without the entry the end of the connection has completed the future already.
            if responses.take(opaque).is_some() {
                return Err(error);
            }
        }
        Ok(Self {
            client,
            request,
            connection,
            future,
            started: now(),
        })
    }

    pub(crate) fn addr(&self) -> &str {
        self.connection.addr()
    }

    /// Waits for the reply, at most until `deadline`. A reply of any code but GO_AWAY is `Ok`; after
    /// that one the request is sent once more on a new connection.
    pub(crate) fn wait(self, deadline: Deadline) -> Result<RemotingCommand> {
        let reply = self.wait_for_reply(deadline)?;
        if reply.code != response_code::GO_AWAY {
            self.show(&reply);
            return Ok(reply);
        }
        self.client.leave(&self.connection);
        let again = Self::start(Arc::clone(&self.client), self.addr(), self.request.clone())?;
        let reply = again.wait_for_reply(deadline)?;
        if reply.code == response_code::GO_AWAY {
            return Err(gone_away(self.addr()));
        }
        again.show(&reply);
        Ok(reply)
    }

    fn show(&self, reply: &RemotingCommand) {
        self.client.show(self.addr(), &self.request, reply);
    }

    /// Reads the connection if nobody else does; a thread that serves others just waits.
    fn wait_or_read(&self, deadline: Deadline) -> Option<Result<RemotingCommand>> {
        if self.client.is_others_thread() {
            return self.future.wait(deadline);
        }
        self.connection
            .wait(self.request.opaque, &self.future, deadline)
    }

    fn wait_for_reply(&self, deadline: Deadline) -> Result<RemotingCommand> {
        let grace = Deadline::after(deadline.remaining().saturating_add(HAND_OVER));
        let opaque = self.request.opaque;
        let outcome = wait_or_withdraw(
            self.connection.responses(),
            opaque,
            &self.future,
            || self.wait_or_read(deadline),
            grace,
        );
        outcome.unwrap_or_else(|| {
            let waited = now().saturating_duration_since(self.started);
            let error = self.connection.timed_out(opaque, waited);
            self.client
                .close_if_silent(&self.connection, self.started, deadline);
            Err(error)
        })
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        let opaque = self.request.opaque;
        if self.connection.responses().take(opaque).is_some() {
            self.connection.withdraw(opaque);
        }
        self.connection.close_if_done();
    }
}
