use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rocketmq_protocol::RemotingCommand;

use crate::control_action::{ControlScope, ServerName};

/// A request as a server received it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceivedRequest {
    /// The broker's name, or `namesrv`.
    pub server: Arc<str>,
    /// The connection it came on, unique within its server.
    pub connection_id: u64,
    /// The client's end of the connection.
    pub peer: SocketAddr,
    /// The client id that the connection's last heartbeat named.
    pub client_id: Option<Arc<str>>,
    /// The request.
    pub command: RemotingCommand,
}

/// The name server's name in a [`ReceivedRequest`].
pub(crate) const NAMESRV: &str = "namesrv";

/// What the servers of a cluster have seen, and a place to wait for more.
#[derive(Debug, Default)]
pub(crate) struct RequestLog {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    counts: HashMap<(Arc<str>, i32), u64>,
    recorded: VecDeque<ReceivedRequest>,
    /// How many requests are kept; none unless asked for.
    limit: usize,
    /// Counts events, so that a waiter sees that one came while it was looking.
    events: u64,
}

/// A condition is looked at again after this time even if no event told of a change: messages that
/// fall due and members that expire tell nobody.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

impl RequestLog {
    /// Whether requests are to be described to [`RequestLog::handled`].
    pub(crate) fn records(&self) -> bool {
        self.state.lock().limit > 0
    }

    /// A server is done with a request: it was processed, parked, or a control acted on it.
    pub(crate) fn handled(&self, server: &Arc<str>, code: i32, request: Option<ReceivedRequest>) {
        let mut state = self.state.lock();
        *state.counts.entry((Arc::clone(server), code)).or_default() += 1;
        if let Some(request) = request {
            state.recorded.push_back(request);
            let surplus = state.recorded.len().saturating_sub(state.limit);
            state.recorded.drain(..surplus);
        }
        self.tell(&mut state);
    }

    /// Something else happened that a condition may look at.
    pub(crate) fn event(&self) {
        self.tell(&mut self.state.lock());
    }

    fn tell(&self, state: &mut State) {
        state.events = state.events.wrapping_add(1);
        self.changed.notify_all();
    }

    /// Keeps the last so many requests from now on; 0 keeps none and forgets those that were kept.
    pub(crate) fn record(&self, limit: usize) {
        let mut state = self.state.lock();
        state.limit = limit;
        let surplus = state.recorded.len().saturating_sub(limit);
        state.recorded.drain(..surplus);
    }

    pub(crate) fn recorded(&self) -> Vec<ReceivedRequest> {
        self.state.lock().recorded.iter().cloned().collect()
    }

    pub(crate) fn take_recorded(&self) -> Vec<ReceivedRequest> {
        self.state.lock().recorded.drain(..).collect()
    }

    pub(crate) fn count(&self, scope: &ControlScope, code: i32) -> u64 {
        self.state.lock().count(scope, code)
    }

    pub(crate) fn wait_for(
        &self,
        scope: &ControlScope,
        code: i32,
        count: u64,
        timeout: Duration,
    ) -> bool {
        let deadline = Instant::now() + timeout;
        let mut state = self.state.lock();
        loop {
            if state.count(scope, code) >= count {
                return true;
            }
            if self.changed.wait_until(&mut state, deadline).timed_out() {
                return state.count(scope, code) >= count;
            }
        }
    }

    /// Waits until a condition holds; it is looked at without a lock, after each event.
    pub(crate) fn wait_until(
        &self,
        timeout: Duration,
        mut condition: impl FnMut() -> bool,
    ) -> bool {
        let deadline = Instant::now() + timeout;
        loop {
            let seen = self.state.lock().events;
            if condition() {
                return true;
            }
            let now = Instant::now();
            if now >= deadline {
                return false;
            }
            let mut state = self.state.lock();
            if state.events == seen {
                let until = deadline.min(now + LOOK_AGAIN);
                self.changed.wait_until(&mut state, until);
            }
        }
    }
}

impl State {
    fn count(&self, scope: &ControlScope, code: i32) -> u64 {
        let counts = self.counts.iter();
        counts
            .filter(|((server, of), _)| *of == code && scope.holds(server_name(server)))
            .map(|(_, count)| count)
            .sum()
    }
}

fn server_name(server: &str) -> ServerName<'_> {
    if server == NAMESRV {
        ServerName::NameServer
    } else {
        ServerName::Broker(server)
    }
}
