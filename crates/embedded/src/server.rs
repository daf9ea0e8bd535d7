use std::collections::HashMap;
use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;
use rocketmq_protocol::{FrameDecoder, RemotingCommand};

use crate::connection::{CallEnd, Connection};
use crate::control::{Controls, Decision};
use crate::control_action::{ControlAction, ServerName};
use crate::reply::{AnswerChange, Reply};
use crate::request_log::{NAMESRV, ReceivedRequest, RequestLog};
use crate::timer::Timer;

/// What a server does with requests.
pub(crate) trait Service: Send + Sync + 'static {
    /// The name under which controls and threads know it.
    fn name(&self) -> ServerName<'_>;

    /// Processes a request; now or later the answer is given to `reply`.
    fn process(&self, request: RemotingCommand, reply: Reply);

    /// How long a connection may be idle; looked at when one begins.
    fn idle_limit(&self) -> Duration;

    /// A connection has ended; called once for each, after [`Connection::is_closed`] became true.
    fn connection_closed(&self, connection: &Connection);

    /// The server goes down: nothing more is to be said to clients.
    fn stopping(&self);
}

/// A listening socket, its accepting thread, one reading thread a connection, and a timer thread.
pub(crate) struct Server {
    addr: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
    timer: Option<JoinHandle<()>>,
}

struct Shared {
    label: Arc<str>,
    service: Arc<dyn Service>,
    watch: Watch,
    timer: Arc<Timer>,
    write_timeout: Duration,
    stopping: AtomicBool,
    connections: Mutex<Connections>,
}

#[derive(Default)]
struct Connections {
    next_id: u64,
    open: HashMap<u64, (Arc<Connection>, JoinHandle<()>)>,
    /// Threads that have nothing left to do but end.
    finished: Vec<JoinHandle<()>>,
}

/// What looks at every request of a cluster.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watch {
    pub(crate) controls: Arc<Controls>,
    pub(crate) log: Arc<RequestLog>,
}

/// After an accept that failed, for instance because the process has no file handle left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

const READ_BUFFER: usize = 64 * 1024;

/// A read timeout is at least this long, lest rounding makes it none.
const SHORTEST_READ: Duration = Duration::from_millis(1);

impl Server {
    /// Serves on a listening socket until [`Server::shutdown`].
    pub(crate) fn start(
        listener: TcpListener,
        service: Arc<dyn Service>,
        watch: Watch,
        timer: Arc<Timer>,
        write_timeout: Duration,
    ) -> io::Result<Self> {
        let addr = listener.local_addr()?;
        let label: Arc<str> = match service.name() {
            ServerName::NameServer => NAMESRV.into(),
            ServerName::Broker(name) => name.into(),
        };
        let shared = Arc::new(Shared {
            label,
            service,
            watch,
            timer,
            write_timeout,
            stopping: AtomicBool::new(false),
            connections: Mutex::default(),
        });
        let mut server = Self {
            addr,
            acceptor: None,
            timer: Some(shared.timer.start(&shared.label)?),
            shared: Arc::clone(&shared),
        };
        let name = format!("embedded-{}-accept", shared.label);
        match thread::Builder::new()
            .name(name)
            .spawn(move || shared.accept(&listener))
        {
            Ok(thread) => server.acceptor = Some(thread),
            Err(error) => {
                server.shutdown();
                return Err(error);
            }
        }
        Ok(server)
    }

    pub(crate) fn connections(&self) -> Vec<Arc<Connection>> {
        let connections = self.shared.connections.lock();
        let open = connections.open.values();
        open.map(|(connection, _)| Arc::clone(connection)).collect()
    }

    /// Closes the listener and all connections and joins all threads.
    ///
    /// # Blocking
    /// Until requests in process are done; each ends within the write timeout.
    pub(crate) fn shutdown(&mut self) {
        let shared = &self.shared;
        shared.stopping.store(true, Ordering::SeqCst);
        shared.service.stopping();
        if let Some(acceptor) = self.acceptor.take() {
            // A blocking accept is ended by a connection. When none can be made, accept fails or
            // succeeds for the same reason and the loop sees the flag.
            let _ = TcpStream::connect_timeout(&self.addr, Duration::from_secs(1));
            join(acceptor);
        }
        for connection in self.connections() {
            connection.close();
        }
        shared.timer.stop();
        self.timer.take().into_iter().for_each(join);
        loop {
            let threads: Vec<_> = {
                let mut connections = shared.connections.lock();
                let open: Vec<_> = connections.open.drain().collect();
                let mut threads: Vec<_> = open.into_iter().map(|(_, (_, thread))| thread).collect();
                threads.append(&mut connections.finished);
                threads
            };
            if threads.is_empty() {
                return;
            }
            threads.into_iter().for_each(join);
        }
    }
}

fn join(thread: JoinHandle<()>) {
    let name = thread.thread().name().unwrap_or_default().to_owned();
    if thread.join().is_err() {
        log::error!("thread {name} panicked");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shutdown();
    }
}

impl Shared {
    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        while !self.stopping.load(Ordering::SeqCst) {
            match listener.accept() {
                Ok(_) if self.stopping.load(Ordering::SeqCst) => {}
                Ok((stream, peer)) => {
                    if let Err(error) = self.take_in(stream) {
                        log::debug!("{}: connection from {peer}: {error}", self.label);
                    }
                }
                Err(error) => {
                    log::debug!("{}: accept: {error}", self.label);
                    thread::sleep(ACCEPT_PAUSE);
                }
            }
            let finished = std::mem::take(&mut self.connections.lock().finished);
            finished.into_iter().for_each(join);
        }
    }

    fn take_in(self: &Arc<Self>, stream: TcpStream) -> io::Result<()> {
        // The thread takes itself out of the table at its end and so must be in it before.
        let mut connections = self.connections.lock();
        let id = connections.next_id;
        connections.next_id = id.wrapping_add(1);
        let connection = Arc::new(Connection::new(id, stream, self.write_timeout)?);
        let shared = Arc::clone(self);
        let mine = Arc::clone(&connection);
        let thread = thread::Builder::new()
            .name(format!("embedded-{}-conn", self.label))
            .spawn(move || shared.serve(&mine))?;
        connections.open.insert(id, (connection, thread));
        drop(connections);
        self.watch.log.event();
        Ok(())
    }

    fn serve(self: &Arc<Self>, connection: &Arc<Connection>) {
        if let Err(error) = self.read(connection) {
            log::debug!("{}: {connection:?}: {error}", self.label);
        }
        connection.close();
        // Whoever hears that a call has ended does not find the client among the members.
        self.service.connection_closed(connection);
        connection.end_calls();
        let mut connections = self.connections.lock();
        if let Some((_, thread)) = connections.open.remove(&connection.id()) {
            connections.finished.push(thread);
        }
        drop(connections);
        self.watch.log.event();
    }

    fn read(self: &Arc<Self>, connection: &Arc<Connection>) -> io::Result<()> {
        let mut decoder = FrameDecoder::default();
        let mut buffer = vec![0; READ_BUFFER];
        let idle_limit = self.service.idle_limit();
        connection.stream().set_read_timeout(Some(idle_limit))?;
        while !connection.is_closed() {
            let count = match connection.stream().read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    // Bytes that were written count as well.
                    let left = idle_limit.saturating_sub(connection.idle());
                    if left.is_zero() {
                        return Err(error);
                    }
                    let left = left.max(SHORTEST_READ);
                    connection.stream().set_read_timeout(Some(left))?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            connection.used();
            decoder.extend(buffer.get(..count).unwrap_or_default());
            while let Some(request) = decoder.next_command().map_err(io::Error::other)? {
                if connection.is_closed() {
                    break;
                }
                self.dispatch(connection, request);
            }
        }
        Ok(())
    }

    /// Every request passes here.
    fn dispatch(self: &Arc<Self>, connection: &Arc<Connection>, request: RemotingCommand) {
        if request.is_response() {
            if !connection.end_call(request.opaque, CallEnd::Answer(request)) {
                log::debug!("{}: answer to nothing from {connection:?}", self.label);
            }
            return;
        }
        let code = request.code;
        connection.count_request(code);
        let describe = || ReceivedRequest {
            server: Arc::clone(&self.label),
            connection_id: connection.id(),
            peer: connection.peer(),
            client_id: connection.client_id(),
            command: request.clone(),
        };
        let Watch { controls, log } = &self.watch;
        let decision = controls.decide(self.service.name(), code, describe);
        let recorded = log.records().then(describe);
        match decision {
            None => self.process(connection, request, None),
            Some(decision) => self.act(connection, request, decision),
        }
        log.handled(&self.label, code, recorded);
    }

    /// Does with a request what a control wants.
    fn act(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        request: RemotingCommand,
        Decision { action, id }: Decision,
    ) {
        let go_on = |request| {
            let shared = Arc::clone(self);
            let connection = Arc::clone(connection);
            move || shared.process(&connection, request, None)
        };
        let refuse = |response: RemotingCommand| {
            if !request.is_oneway() {
                connection.send(response);
            }
        };
        let change = match action {
            ControlAction::Delay(time) => return self.timer.schedule(time, go_on(request)),
            ControlAction::Hold => {
                let held = Box::new(go_on(request));
                return self.watch.controls.hold(id, held);
            }
            ControlAction::Twice => {
                self.process(connection, request.clone(), None);
                AnswerChange::Lose
            }
            ControlAction::Drop => return,
            ControlAction::Close => return connection.close(),
            ControlAction::Respond(code, remark) => {
                return refuse(RemotingCommand::response(&request, code, remark));
            }
            ControlAction::Answer(answer) => {
                let mut response = RemotingCommand::response(&request, answer.code, answer.remark);
                response.ext_fields = answer.ext_fields;
                response.body = answer.body;
                return refuse(response);
            }
            ControlAction::LoseAnswer => AnswerChange::Lose,
            ControlAction::DelayAnswer(time) => AnswerChange::Delay(Arc::clone(&self.timer), time),
            ControlAction::HoldAnswer => AnswerChange::Hold(Arc::clone(&self.watch.controls), id),
            ControlAction::CloseAfter => AnswerChange::Close,
            ControlAction::RespondAfter(code, remark) => AnswerChange::Replace(code, remark),
            ControlAction::EditAnswer(edit) => AnswerChange::Edit(edit),
        };
        self.process(connection, request, Some(change));
    }

    fn process(
        &self,
        connection: &Arc<Connection>,
        request: RemotingCommand,
        change: Option<AnswerChange>,
    ) {
        // What was held or put off may come after the end.
        if !self.stopping.load(Ordering::SeqCst) {
            let reply = Reply::new(Arc::clone(connection), request.is_oneway(), change);
            self.service.process(request, reply);
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("label", &self.shared.label)
            .field("addr", &self.addr)
            .finish_non_exhaustive()
    }
}
