use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use crate::sync::{Deadline, Mutex};

/// The name servers, and the one in use: it is kept as long as it answers.
///
/// # Java
/// `NettyRemotingClient#getAndCreateNameserverChannel`. The list is shuffled when it is set, so that
/// clients spread over the servers, and spread again over the others when one of them fails.
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
        Self {
            state: Mutex::new(State {
                addrs: shuffled(addrs),
                chosen: 0,
            }),
        }
    }

    /// Takes over another list. Returns the server that was in use if it is not in it.
    pub(super) fn update(&self, addrs: Vec<String>) -> Option<String> {
        let mut state = self.state.lock();
        let in_use = state.addrs.get(state.chosen).cloned();
        state.addrs = shuffled(addrs);
        let place = state
            .addrs
            .iter()
            .position(|addr| in_use.as_ref() == Some(addr));
        state.chosen = place.unwrap_or(0);
        in_use.filter(|_| place.is_none())
    }

    pub(super) fn count(&self) -> usize {
        self.state.lock().addrs.len()
    }

    /// The one in use; `None` when the list is empty.
    pub(super) fn chosen(&self) -> Option<String> {
        let state = self.state.lock();
        state.addrs.get(state.chosen).cloned()
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

/// Fisher and Yates, with the random keys that std makes for its hash maps; there is nothing to
/// protect.
fn shuffled(mut addrs: Vec<String>) -> Vec<String> {
    for last in (1..addrs.len()).rev() {
        let random = RandomState::new().build_hasher().finish();
        addrs.swap(last, (random % (last as u64 + 1)) as usize);
    }
    addrs
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

    fn list(addrs: &[&str]) -> Vec<String> {
        addrs.iter().map(|addr| (*addr).to_owned()).collect()
    }

    #[test]
    fn clients_spread_over_the_servers() {
        let firsts: std::collections::BTreeSet<_> = (0..200)
            .map(|_| NameServers::new(list(&["a", "b", "c"])).chosen().unwrap())
            .collect();
        assert_eq!(firsts.len(), 3);
    }

    #[test]
    fn an_update_keeps_the_server_in_use_or_names_it() {
        for _ in 0..20 {
            let servers = NameServers::new(list(&["a", "b"]));
            let in_use = servers.chosen().unwrap();
            assert_eq!(servers.update(list(&["b", "c", "a"])), None);
            assert_eq!(servers.chosen().unwrap(), in_use);
            assert_eq!(servers.count(), 3);
            assert_eq!(servers.update(list(&["d"])), Some(in_use));
            assert_eq!(servers.chosen().unwrap(), "d");
        }
        let none = NameServers::new(Vec::new());
        assert_eq!(none.chosen(), None);
        assert_eq!(none.update(list(&["a"])), None);
        assert_eq!(none.chosen().unwrap(), "a");
    }

    #[test]
    fn no_server_gets_more_than_its_share() {
        let deadline = Deadline::after(Duration::from_secs(3));
        let of_two = share(deadline, 2, Duration::from_secs(3));
        assert!(of_two.remaining() <= Duration::from_millis(1500));
        assert_eq!(share(deadline, 1, Duration::from_secs(9)), deadline);
    }
}
