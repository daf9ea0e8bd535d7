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

use crate::connection::Connection;
use crate::control::{ControlAction, Controls, ServerName};
use crate::timer::Timer;

/// What a server does with requests.
pub(crate) trait Service: Send + Sync + 'static {
    /// The name under which controls and threads know it.
    fn name(&self) -> ServerName<'_>;

    /// Processes a request. `None` means that no answer is due, or that it comes later.
    fn process(
        &self,
        connection: &Arc<Connection>,
        request: RemotingCommand,
    ) -> Option<RemotingCommand>;

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
    label: String,
    service: Arc<dyn Service>,
    controls: Arc<Controls>,
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

/// After an accept that failed, for instance because the process has no file handle left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

const READ_BUFFER: usize = 64 * 1024;

impl Server {
    /// Serves on a listening socket until [`Server::shutdown`].
    pub(crate) fn start(
        listener: TcpListener,
        service: Arc<dyn Service>,
        controls: Arc<Controls>,
        timer: Arc<Timer>,
        write_timeout: Duration,
    ) -> io::Result<Self> {
        let addr = listener.local_addr()?;
        let label = match service.name() {
            ServerName::NameServer => "namesrv".to_owned(),
            ServerName::Broker(name) => name.to_owned(),
        };
        let shared = Arc::new(Shared {
            label,
            service,
            controls,
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

    pub(crate) fn connection_count(&self) -> usize {
        self.shared.connections.lock().open.len()
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
        let open: Vec<_> = {
            let connections = shared.connections.lock();
            let open = connections.open.values();
            open.map(|(connection, _)| Arc::clone(connection)).collect()
        };
        for connection in open {
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
        Ok(())
    }

    fn serve(self: &Arc<Self>, connection: &Arc<Connection>) {
        if let Err(error) = self.read(connection) {
            log::debug!("{}: {connection:?}: {error}", self.label);
        }
        connection.close();
        self.service.connection_closed(connection);
        let mut connections = self.connections.lock();
        if let Some((_, thread)) = connections.open.remove(&connection.id()) {
            connections.finished.push(thread);
        }
    }

    fn read(self: &Arc<Self>, connection: &Arc<Connection>) -> io::Result<()> {
        let mut decoder = FrameDecoder::default();
        let mut buffer = vec![0; READ_BUFFER];
        while !connection.is_closed() {
            let count = match connection.stream().read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
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
            log::debug!("{}: answer to nothing from {connection:?}", self.label);
            return;
        }
        let name = self.service.name();
        match self.controls.decide(name, request.code) {
            None => self.process(connection, request),
            Some(ControlAction::Delay(time)) => {
                let shared = Arc::clone(self);
                let connection = Arc::clone(connection);
                self.timer
                    .schedule(time, move || shared.process(&connection, request));
            }
            Some(ControlAction::Drop) => {}
            Some(ControlAction::Close) => connection.close(),
            Some(ControlAction::Respond(code, remark)) => {
                if !request.is_oneway() {
                    connection.send(RemotingCommand::response(&request, code, remark));
                }
            }
        }
    }

    fn process(&self, connection: &Arc<Connection>, request: RemotingCommand) {
        let oneway = request.is_oneway();
        let response = self.service.process(connection, request);
        if let Some(response) = response.filter(|_| !oneway) {
            connection.send(response);
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
