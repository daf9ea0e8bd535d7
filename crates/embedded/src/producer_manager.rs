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
    tables: Mutex<Tables>,
    /// Counts the choices of a member of some group.
    turn: AtomicUsize,
}

#[derive(Debug, Default)]
struct Tables {
    groups: HashMap<String, HashMap<u64, Member>>,
    /// By client id, for replies (Java `clientChannelTable`). As in Java a client that leaves one of
    /// its groups is out of here, and back once it joins a group that it was not in.
    clients: HashMap<String, Arc<Connection>>,
}

impl ProducerManager {
    pub(crate) fn register(&self, connection: &Arc<Connection>, client: &ClientInfo, group: &str) {
        let member = Member::new(connection, client);
        let mut tables = self.tables.lock();
        let members = tables.groups.entry(group.to_owned()).or_default();
        if members.insert(connection.id(), member).is_none() {
            let id = client.client_id.clone();
            tables.clients.insert(id, Arc::clone(connection));
        }
        if connection.is_closed() {
            // Its end may have been handled before this heartbeat was.
            tables.remove(connection);
        }
    }

    pub(crate) fn unregister(&self, connection: &Connection, client_id: &str, group: &str) {
        let mut tables = self.tables.lock();
        if let Some(members) = tables.groups.get_mut(group) {
            members.remove(&connection.id());
            if members.is_empty() {
                tables.groups.remove(group);
            }
            tables.clients.remove(client_id);
        }
    }

    pub(crate) fn connection_closed(&self, connection: &Connection) {
        self.tables.lock().remove(connection);
    }

    /// Removes members that sent no heartbeat for so long; their connections are to be closed.
    pub(crate) fn remove_expired(&self, expiry: Duration) -> Vec<Arc<Connection>> {
        let now = Instant::now();
        let mut expired = Vec::new();
        let mut tables = self.tables.lock();
        for members in tables.groups.values_mut() {
            members.retain(|_, member| member.is_alive(now, expiry, &mut expired));
        }
        tables.groups.retain(|_, members| !members.is_empty());
        for connection in &expired {
            tables.forget(connection);
        }
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

    /// The connection by which a client gets its replies.
    pub(crate) fn find_client(&self, client_id: &str) -> Option<Arc<Connection>> {
        self.tables.lock().clients.get(client_id).cloned()
    }

    /// The members of a group, `None` for a group without.
    pub(crate) fn members(&self, group: &str) -> Option<Vec<(ClientInfo, Arc<Connection>)>> {
        let tables = self.tables.lock();
        let members = tables.groups.get(group)?.values();
        Some(members.map(Member::describe).collect())
    }
}

impl Tables {
    fn remove(&mut self, connection: &Connection) {
        for members in self.groups.values_mut() {
            members.remove(&connection.id());
        }
        self.groups.retain(|_, members| !members.is_empty());
        self.forget(connection);
    }

    fn forget(&mut self, connection: &Connection) {
        self.clients
            .retain(|_, known| known.id() != connection.id());
    }
}
