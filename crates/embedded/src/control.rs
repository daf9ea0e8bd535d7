use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::control_action::{ControlAction, ControlScope, ControlTimes, ServerName};
use crate::request_log::ReceivedRequest;

/// A control that was set with [`Cluster::control`](crate::Cluster::control).
///
/// Dropping the handle changes nothing; the control stays until it is used up or lifted.
#[derive(Clone)]
pub struct ControlHandle {
    controls: Arc<Controls>,
    id: u64,
}

impl ControlHandle {
    /// Ends the control. What it holds is released; other requests that it already acted on stay
    /// as they are.
    ///
    /// # Blocking
    /// While what it holds is processed, in this thread.
    pub fn lift(&self) {
        if let Some(rule) = self.controls.state.lock().find(self.id) {
            rule.left = Some(0);
            rule.lifted = true;
        }
        self.release();
    }

    /// Lets the requests and answers go on that [`ControlAction::Hold`] and
    /// [`ControlAction::HoldAnswer`] hold, in the order in which they came. Later ones are held
    /// again.
    ///
    /// # Blocking
    /// While they are processed, in this thread.
    pub fn release(&self) {
        let held = self
            .controls
            .state
            .lock()
            .find(self.id)
            .map(|rule| std::mem::take(&mut rule.held));
        for go_on in held.into_iter().flatten() {
            go_on();
        }
    }

    /// How many requests and answers are held at the moment.
    pub fn held(&self) -> usize {
        let mut state = self.controls.state.lock();
        state.find(self.id).map_or(0, |rule| rule.held.len())
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
#[derive(Default)]
pub(crate) struct Controls {
    state: Mutex<State>,
    hit: Condvar,
}

#[derive(Default)]
struct State {
    rules: Vec<Rule>,
    /// Rules that may still act. Most requests come when there are none.
    active: usize,
}

struct Rule {
    scope: ControlScope,
    /// `None` means every request.
    request_code: Option<i32>,
    choice: Choice,
    /// `None` means without end.
    left: Option<u32>,
    hits: u64,
    held: Vec<Held>,
    lifted: bool,
}

/// What goes on when it is released.
pub(crate) type Held = Box<dyn FnOnce() + Send>;

/// A user's function that looks at requests.
pub(crate) type Decide = dyn Fn(&ReceivedRequest) -> Option<ControlAction> + Send + Sync;

#[derive(Clone)]
pub(crate) enum Choice {
    Always(ControlAction),
    Ask(Arc<Decide>),
}

/// An action and the control that ordered it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) action: ControlAction,
    pub(crate) id: u64,
}

impl State {
    fn find(&mut self, id: u64) -> Option<&mut Rule> {
        self.rules.get_mut(usize::try_from(id).ok()?)
    }
}

impl Controls {
    pub(crate) fn add(
        self: &Arc<Self>,
        scope: ControlScope,
        request_code: Option<i32>,
        choice: Choice,
        times: ControlTimes,
    ) -> ControlHandle {
        let mut state = self.state.lock();
        let id = state.rules.len() as u64;
        state.active += 1;
        state.rules.push(Rule {
            scope,
            request_code,
            choice,
            left: match times {
                ControlTimes::Once => Some(1),
                ControlTimes::Times(times) => Some(times),
                ControlTimes::UntilLifted => None,
            },
            hits: 0,
            held: Vec::new(),
            lifted: false,
        });
        ControlHandle {
            controls: Arc::clone(self),
            id,
        }
    }

    /// What to do with a request, if anything special. A control's own function is called without
    /// a lock, and only for requests that its scope and code let through.
    pub(crate) fn decide(
        &self,
        server: ServerName<'_>,
        request_code: i32,
        describe: impl Fn() -> ReceivedRequest,
    ) -> Option<Decision> {
        let candidates: Vec<(u64, Choice)> = {
            let state = self.state.lock();
            if state.active == 0 {
                return None;
            }
            let rules = state.rules.iter().enumerate();
            rules
                .filter(|(_, rule)| rule.may_act(server, request_code))
                .map(|(id, rule)| (id as u64, rule.choice.clone()))
                .collect()
        };
        candidates.into_iter().find_map(|(id, choice)| {
            let action = match choice {
                Choice::Always(action) => action,
                Choice::Ask(decide) => decide(&describe())?,
            };
            self.charge(id).then_some(Decision { action, id })
        })
    }

    /// Counts a hit, unless the control was used up meanwhile.
    fn charge(&self, id: u64) -> bool {
        let mut state = self.state.lock();
        let Some(rule) = state.find(id).filter(|rule| rule.left != Some(0)) else {
            return false;
        };
        if let Some(left) = &mut rule.left {
            *left -= 1;
        }
        rule.hits += 1;
        self.hit.notify_all();
        state.active = state.rules.iter().filter(|r| r.left != Some(0)).count();
        true
    }

    /// Keeps what goes on when the control is released; at once if it was lifted meanwhile.
    pub(crate) fn hold(&self, id: u64, go_on: Held) {
        let mut state = self.state.lock();
        match state.find(id) {
            Some(rule) if !rule.lifted => rule.held.push(go_on),
            _ => {
                drop(state);
                go_on();
            }
        }
    }

    /// Forgets what is held: its servers are gone.
    pub(crate) fn forget_held(&self) {
        let held: Vec<Held> = {
            let mut state = self.state.lock();
            let rules = state.rules.iter_mut();
            rules
                .flat_map(|rule| std::mem::take(&mut rule.held))
                .collect()
        };
        drop(held);
    }
}

impl Rule {
    fn may_act(&self, server: ServerName<'_>, request_code: i32) -> bool {
        self.left != Some(0)
            && self.request_code.is_none_or(|code| code == request_code)
            && self.scope.holds(server)
    }
}

impl fmt::Debug for Controls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controls")
            .field("active", &self.state.lock().active)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use rocketmq_protocol::RemotingCommand;

    use super::*;

    fn request() -> ReceivedRequest {
        ReceivedRequest {
            server: "broker-a".into(),
            connection_id: 7,
            peer: ([127, 0, 0, 1], 1).into(),
            client_id: None,
            command: RemotingCommand::request_without_header(10),
        }
    }

    #[test]
    fn a_control_acts_so_often_and_only_in_its_scope() {
        let controls = Arc::new(Controls::default());
        let a = ServerName::Broker("broker-a");
        let decide = |server, code| controls.decide(server, code, request).map(|d| d.action);
        let twice = controls.add(
            ControlScope::Broker("broker-a".to_owned()),
            Some(10),
            Choice::Always(ControlAction::Drop),
            ControlTimes::Times(2),
        );
        let rest = controls.add(
            ControlScope::Cluster,
            Some(10),
            Choice::Always(ControlAction::Close),
            ControlTimes::UntilLifted,
        );
        assert_eq!(decide(a, 11), None);
        assert_eq!(
            decide(ServerName::NameServer, 10),
            Some(ControlAction::Close)
        );
        assert_eq!(decide(a, 10), Some(ControlAction::Drop));
        assert_eq!(decide(a, 10), Some(ControlAction::Drop));
        assert_eq!(decide(a, 10), Some(ControlAction::Close));
        assert_eq!((twice.hits(), rest.hits()), (2, 2));
        rest.lift();
        assert_eq!(decide(a, 10), None);
        assert!(!twice.wait_for_hits(3, Duration::from_millis(1)));
    }

    #[test]
    fn a_function_that_passes_a_request_over_leaves_it_to_the_next_control() {
        let controls = Arc::new(Controls::default());
        let picky = controls.add(
            ControlScope::Cluster,
            None,
            Choice::Ask(Arc::new(|request| {
                (request.connection_id == 8).then_some(ControlAction::Drop)
            })),
            ControlTimes::Once,
        );
        let next = controls.add(
            ControlScope::Cluster,
            Some(10),
            Choice::Always(ControlAction::Twice),
            ControlTimes::Once,
        );
        let decision = controls.decide(ServerName::NameServer, 10, request);
        assert_eq!(decision.map(|d| d.action), Some(ControlAction::Twice));
        assert_eq!((picky.hits(), next.hits()), (0, 1));
        assert_eq!(controls.decide(ServerName::NameServer, 10, request), None);
    }

    #[test]
    fn what_is_held_goes_on_when_released_and_at_once_after_the_lift() {
        let controls = Arc::new(Controls::default());
        let handle = controls.add(
            ControlScope::Cluster,
            Some(10),
            Choice::Always(ControlAction::Hold),
            ControlTimes::UntilLifted,
        );
        let went = Arc::new(Mutex::new(Vec::new()));
        let hold = |number| {
            let went = Arc::clone(&went);
            controls.hold(0, Box::new(move || went.lock().push(number)));
        };
        hold(1);
        hold(2);
        assert_eq!((handle.held(), went.lock().len()), (2, 0));
        handle.release();
        assert_eq!(*went.lock(), [1, 2]);
        hold(3);
        handle.lift();
        hold(4);
        assert_eq!((handle.held(), &went.lock()[..]), (0, &[1, 2, 3, 4][..]));
    }
}
