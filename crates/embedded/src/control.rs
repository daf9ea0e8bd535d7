use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// What happens to a request instead of being processed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ControlAction {
    /// It is processed after this time. Other requests of the same connection are not held up.
    Delay(Duration),
    /// It is never processed and never answered.
    Drop,
    /// The connection it came on is closed.
    Close,
    /// It is not processed but answered with this code and remark.
    Respond(i32, Option<String>),
}

/// How many requests a control acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlTimes {
    /// The next one.
    Once,
    /// The next so many.
    Times(u32),
    /// All, until [`ControlHandle::lift`].
    UntilLifted,
}

/// Which servers a control watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlScope {
    /// The name server and all brokers.
    Cluster,
    /// The name server.
    NameServer,
    /// The broker of this name.
    Broker(String),
}

/// A control that was set with [`Cluster::control`](crate::Cluster::control).
///
/// Dropping the handle changes nothing; the control stays until it is used up or lifted.
#[derive(Clone)]
pub struct ControlHandle {
    controls: Arc<Controls>,
    id: u64,
}

impl ControlHandle {
    /// Ends the control. Requests that it already acted on stay as they are.
    pub fn lift(&self) {
        if let Some(rule) = self.controls.state.lock().find(self.id) {
            rule.left = Some(0);
        }
    }

    /// How many requests it has acted on.
    pub fn hits(&self) -> u64 {
        let mut state = self.controls.state.lock();
        state.find(self.id).map_or(0, |rule| rule.hits)
    }

    /// Waits until it has acted on so many requests, and says whether that came true in time.
    ///
    /// # Blocking
    /// At most `timeout`.
    pub fn wait_for_hits(&self, hits: u64, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut state = self.controls.state.lock();
        loop {
            if state.find(self.id).map_or(0, |rule| rule.hits) >= hits {
                return true;
            }
            if self
                .controls
                .hit
                .wait_until(&mut state, deadline)
                .timed_out()
            {
                return state.find(self.id).map_or(0, |rule| rule.hits) >= hits;
            }
        }
    }
}

impl fmt::Debug for ControlHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlHandle")
            .field("id", &self.id)
            .field("hits", &self.hits())
            .finish_non_exhaustive()
    }
}

/// All controls of a cluster, in the order in which they were set; the first that fits acts.
#[derive(Debug, Default)]
pub(crate) struct Controls {
    state: Mutex<State>,
    hit: Condvar,
}

#[derive(Debug, Default)]
struct State {
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    scope: ControlScope,
    request_code: i32,
    action: ControlAction,
    /// `None` means without end.
    left: Option<u32>,
    hits: u64,
}

impl State {
    fn find(&mut self, id: u64) -> Option<&mut Rule> {
        self.rules.get_mut(usize::try_from(id).ok()?)
    }
}

/// Which server asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerName<'a> {
    NameServer,
    Broker(&'a str),
}

impl Controls {
    pub(crate) fn add(
        self: &Arc<Self>,
        scope: ControlScope,
        request_code: i32,
        action: ControlAction,
        times: ControlTimes,
    ) -> ControlHandle {
        let mut state = self.state.lock();
        let id = state.rules.len() as u64;
        state.rules.push(Rule {
            scope,
            request_code,
            action,
            left: match times {
                ControlTimes::Once => Some(1),
                ControlTimes::Times(times) => Some(times),
                ControlTimes::UntilLifted => None,
            },
            hits: 0,
        });
        ControlHandle {
            controls: Arc::clone(self),
            id,
        }
    }

    /// What to do with a request, if anything special.
    pub(crate) fn decide(
        &self,
        server: ServerName<'_>,
        request_code: i32,
    ) -> Option<ControlAction> {
        let mut state = self.state.lock();
        let rule = state.rules.iter_mut().find(|rule| {
            rule.request_code == request_code && rule.left != Some(0) && rule.scope.holds(server)
        })?;
        if let Some(left) = &mut rule.left {
            *left -= 1;
        }
        rule.hits += 1;
        let action = rule.action.clone();
        self.hit.notify_all();
        Some(action)
    }
}

impl ControlScope {
    fn holds(&self, server: ServerName<'_>) -> bool {
        match self {
            Self::Cluster => true,
            Self::NameServer => server == ServerName::NameServer,
            Self::Broker(name) => server == ServerName::Broker(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_acts_so_often_and_only_in_its_scope() {
        let controls = Arc::new(Controls::default());
        let a = ServerName::Broker("broker-a");
        let twice = controls.add(
            ControlScope::Broker("broker-a".to_owned()),
            10,
            ControlAction::Drop,
            ControlTimes::Times(2),
        );
        let rest = controls.add(
            ControlScope::Cluster,
            10,
            ControlAction::Close,
            ControlTimes::UntilLifted,
        );
        assert_eq!(controls.decide(a, 11), None);
        assert_eq!(
            controls.decide(ServerName::NameServer, 10),
            Some(ControlAction::Close)
        );
        assert_eq!(controls.decide(a, 10), Some(ControlAction::Drop));
        assert_eq!(controls.decide(a, 10), Some(ControlAction::Drop));
        assert_eq!(controls.decide(a, 10), Some(ControlAction::Close));
        assert_eq!((twice.hits(), rest.hits()), (2, 2));
        rest.lift();
        assert_eq!(controls.decide(a, 10), None);
        assert!(!twice.wait_for_hits(3, Duration::from_millis(1)));
    }
}
