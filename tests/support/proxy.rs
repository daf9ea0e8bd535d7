use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// How long a connect on loopback may take before it counts as one that hangs.
const HANGS: Duration = Duration::from_millis(300);

/// What happens to bytes between a client and a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// They go through.
    Good,
    /// They go through after this time.
    Delayed(Duration),
    /// They go through one by one, with this pause between them.
    Trickling(Duration),
    /// They go nowhere, and nobody is told: the other side has lost its power. What is held back
    /// goes through when the line is good again.
    BlackHole,
}

/// A line to a server that a test can disturb while it is in use.
pub(crate) struct Proxy {
    addr: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    line: Line,
    ended: bool,
    connections: usize,
    open: Vec<TcpStream>,
    /// Connects that fill the listener's queue, so that further ones hang.
    filling: Vec<TcpStream>,
}

impl Proxy {
    pub(crate) fn start(upstream: String) -> Self {
        Self::start_at(TcpListener::bind("127.0.0.1:0").unwrap(), upstream)
    }

    pub(crate) fn start_at(listener: TcpListener, upstream: String) -> Self {
        let proxy = Self {
            addr: listener.local_addr().unwrap(),
            shared: Arc::new(Shared {
                state: Mutex::new(State {
                    line: Line::Good,
                    ended: false,
                    connections: 0,
                    open: Vec::new(),
                    filling: Vec::new(),
                }),
                changed: Condvar::new(),
            }),
        };
        let shared = Arc::clone(&proxy.shared);
        thread::spawn(move || {
            listener.set_nonblocking(true).unwrap();
            while shared.wait_for_line().is_some() {
                match listener.accept() {
                    Ok((client, _)) => shared.connect(client, &upstream),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        thread::sleep(Duration::from_millis(2));
                    }
                    Err(_) => return,
                }
            }
        });
        proxy
    }

    pub(crate) fn addr(&self) -> String {
        self.addr.to_string()
    }

    /// How many connections have come through.
    pub(crate) fn connections(&self) -> usize {
        self.shared.state.lock().unwrap().connections
    }

    /// Changes what happens to bytes from here on. In a black hole nobody is connected either.
    pub(crate) fn set(&self, line: Line) {
        let mut state = self.shared.state.lock().unwrap();
        state.line = line;
        state.filling.clear();
        drop(state);
        self.shared.changed.notify_all();
        if line == Line::BlackHole {
            // What the accepting thread may have been taking when the line changed.
            thread::sleep(Duration::from_millis(20));
            let filling = fill(self.addr);
            self.shared.state.lock().unwrap().filling = filling;
        }
    }

    /// Ends all connections; new ones are welcome.
    pub(crate) fn cut(&self) {
        for stream in self.shared.state.lock().unwrap().open.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.state.lock().unwrap().ended = true;
        self.shared.changed.notify_all();
        self.cut();
    }
}

impl Shared {
    /// Waits while the line is a black hole; `None` at the end.
    fn wait_for_line(&self) -> Option<Line> {
        let mut state = self.state.lock().unwrap();
        while state.line == Line::BlackHole && !state.ended {
            state = self.changed.wait(state).unwrap();
        }
        (!state.ended).then_some(state.line)
    }

    fn connect(self: &Arc<Self>, client: TcpStream, upstream: &str) {
        let Ok(server) = TcpStream::connect(upstream) else {
            return;
        };
        client.set_nonblocking(false).unwrap();
        let mut state = self.state.lock().unwrap();
        state.connections += 1;
        for stream in [&client, &server] {
            stream.set_nodelay(true).unwrap();
            state.open.push(stream.try_clone().unwrap());
        }
        drop(state);
        for (from, to) in [
            (client.try_clone().unwrap(), server.try_clone().unwrap()),
            (server, client),
        ] {
            let shared = Arc::clone(self);
            thread::spawn(move || {
                let (mut from, mut to) = (from, to);
                shared.pump(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Both);
                let _ = from.shutdown(Shutdown::Both);
            });
        }
    }

    fn pump(&self, from: &mut TcpStream, to: &mut TcpStream) {
        let mut chunk = [0; 64 * 1024];
        while let Ok(length) = from.read(&mut chunk) {
            let bytes = &chunk[..length];
            let Some(line) = self.wait_for_line().filter(|_| length > 0) else {
                return;
            };
            let passed = match line {
                Line::Trickling(pause) => bytes.iter().all(|byte| {
                    thread::sleep(pause);
                    to.write_all(&[*byte]).is_ok()
                }),
                Line::Delayed(time) => {
                    thread::sleep(time);
                    to.write_all(bytes).is_ok()
                }
                Line::Good | Line::BlackHole => to.write_all(bytes).is_ok(),
            };
            if !passed {
                return;
            }
        }
    }
}

/// An address at which connects neither succeed nor fail, as of a machine without power: a listener
/// that accepts nobody and whose queue is full.
pub(crate) struct BlackHole {
    listener: TcpListener,
    _filling: Vec<TcpStream>,
}

impl BlackHole {
    pub(crate) fn start() -> Self {
        Self::at(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    pub(crate) fn at(listener: TcpListener) -> Self {
        let filling = fill(listener.local_addr().unwrap());
        Self {
            listener,
            _filling: filling,
        }
    }

    pub(crate) fn addr(&self) -> String {
        self.listener.local_addr().unwrap().to_string()
    }

    /// How many connects to it are under way in this process's network.
    pub(crate) fn connects_under_way(&self) -> usize {
        const SYN_SENT: &str = "02";
        let port = self.listener.local_addr().unwrap().port();
        let remote = format!("0100007F:{port:04X}");
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        table
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .filter(|columns| columns.len() > 3 && columns[2] == remote && columns[3] == SYN_SENT)
            .count()
    }
}

/// Connects until the next one hangs.
fn fill(addr: SocketAddr) -> Vec<TcpStream> {
    let mut filling = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&addr, HANGS) {
        filling.push(stream);
        assert!(filling.len() < 10_000, "the queue of {addr} has no end");
    }
    filling
}
