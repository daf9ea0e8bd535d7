use std::time::Duration;

use crate::sync::{Deadline, Mutex};

/// The name servers, and the one in use: it is kept as long as it answers.
///
/// # Java
/// `NettyRemotingClient#getAndCreateNameserverChannel`. The list there is shuffled when set, here
/// the process id decides where it begins; in both, clients spread over the servers.
#[derive(Debug)]
pub(super) struct NameServers {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    addrs: Vec<String>,
    chosen: usize,
}

impl NameServers {
    pub(super) fn new(addrs: Vec<String>) -> Self {
        let chosen = std::process::id() as usize % addrs.len().max(1);
        Self {
            state: Mutex::new(State { addrs, chosen }),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.state.lock().addrs.len()
    }

    /// The one in use; `None` when the list is empty.
    pub(super) fn chosen(&self) -> Option<String> {
        let state = self.state.lock();
        state
            .addrs
            .get(state.chosen % state.addrs.len().max(1))
            .cloned()
    }

    /// Leaves a server that did not answer. Several callers that met the same silence move on by one
    /// server, not by several.
    pub(super) fn leave(&self, addr: &str) {
        let mut state = self.state.lock();
        let length = state.addrs.len().max(1);
        if state
            .addrs
            .get(state.chosen % length)
            .is_some_and(|chosen| chosen == addr)
        {
            state.chosen = (state.chosen + 1) % length;
        }
    }
}

/// The time for one of the servers that are left to try: none of them may use up the whole call.
pub(super) fn share(deadline: Deadline, servers_left: usize, most: Duration) -> Deadline {
    let parts = u32::try_from(servers_left).unwrap_or(u32::MAX).max(1);
    deadline.min(Deadline::after((deadline.remaining() / parts).min(most)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_one_stays_until_it_is_left() {
        let servers = NameServers::new(vec!["a".into(), "b".into()]);
        let first = servers.chosen().unwrap();
        assert_eq!(servers.chosen().unwrap(), first);
        servers.leave(&first);
        let second = servers.chosen().unwrap();
        assert_ne!(second, first);
        servers.leave(&first);
        assert_eq!(
            servers.chosen().unwrap(),
            second,
            "the second caller met the same silence"
        );
    }

    #[test]
    fn no_server_gets_more_than_its_share() {
        let deadline = Deadline::after(Duration::from_secs(3));
        let of_two = share(deadline, 2, Duration::from_secs(3));
        assert!(of_two.remaining() <= Duration::from_millis(1500));
        assert_eq!(share(deadline, 1, Duration::from_secs(9)), deadline);
    }
}
