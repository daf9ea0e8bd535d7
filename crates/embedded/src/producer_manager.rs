use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::connection::Connection;
use crate::consumer_manager::{ClientInfo, Member};

/// The members of producer groups, by connection (Java `ProducerManager`).
#[derive(Debug, Default)]
pub(crate) struct ProducerManager {
    groups: Mutex<HashMap<String, HashMap<u64, Member>>>,
    /// Counts the choices of a member of some group.
    turn: AtomicUsize,
}

impl ProducerManager {
    pub(crate) fn register(&self, connection: &Arc<Connection>, client: &ClientInfo, group: &str) {
        let member = Member::new(connection, client);
        let mut groups = self.groups.lock();
        let members = groups.entry(group.to_owned()).or_default();
        members.insert(connection.id(), member);
        if connection.is_closed() {
            // Its end may have been handled before this heartbeat was.
            remove(&mut groups, connection);
        }
    }

    pub(crate) fn unregister(&self, connection: &Connection, group: &str) {
        let mut groups = self.groups.lock();
        if let Some(members) = groups.get_mut(group) {
            members.remove(&connection.id());
            if members.is_empty() {
                groups.remove(group);
            }
        }
    }

    pub(crate) fn connection_closed(&self, connection: &Connection) {
        remove(&mut self.groups.lock(), connection);
    }

    /// Removes members that sent no heartbeat for so long; their connections are to be closed.
    pub(crate) fn remove_expired(&self, expiry: Duration) -> Vec<Arc<Connection>> {
        let now = Instant::now();
        let mut expired = Vec::new();
        let mut groups = self.groups.lock();
        for members in groups.values_mut() {
            members.retain(|_, member| member.is_alive(now, expiry, &mut expired));
        }
        groups.retain(|_, members| !members.is_empty());
        expired
    }

    /// A member that can be asked, each in its turn.
    pub(crate) fn available(&self, group: &str) -> Option<Arc<Connection>> {
        let mut members = self.members(group)?;
        members.retain(|(_, connection)| !connection.is_closed());
        members.sort_unstable_by_key(|(_, connection)| connection.id());
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let index = turn.checked_rem(members.len())?;
        members
            .get(index)
            .map(|(_, connection)| Arc::clone(connection))
    }

    /// The latest connection of a client that is in some group.
    pub(crate) fn find_client(&self, client_id: &str) -> Option<Arc<Connection>> {
        let groups = self.groups.lock();
        groups
            .values()
            .flat_map(HashMap::values)
            .map(Member::describe)
            .filter(|(client, _)| client.client_id == client_id)
            .map(|(_, connection)| connection)
            .max_by_key(|connection| connection.id())
    }

    /// The members of a group, `None` for a group without.
    pub(crate) fn members(&self, group: &str) -> Option<Vec<(ClientInfo, Arc<Connection>)>> {
        let groups = self.groups.lock();
        let members = groups.get(group)?.values();
        Some(members.map(Member::describe).collect())
    }
}

fn remove(groups: &mut HashMap<String, HashMap<u64, Member>>, connection: &Connection) {
    for members in groups.values_mut() {
        members.remove(&connection.id());
    }
    groups.retain(|_, members| !members.is_empty());
}
