use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rocketmq_protocol::SubscriptionData;
use rocketmq_protocol::body::{ConsumerData, MessageModel};

use crate::connection::Connection;

/// The members of consumer groups, by connection (Java `ConsumerManager`).
///
/// A member is a *connection*: a client that is connected twice is two members.
#[derive(Debug, Default)]
pub(crate) struct ConsumerManager {
    groups: Mutex<HashMap<String, GroupInfo>>,
}

#[derive(Debug)]
struct GroupInfo {
    message_model: MessageModel,
    subscriptions: HashMap<String, Arc<SubscriptionData>>,
    members: HashMap<u64, Member>,
}

#[derive(Debug)]
struct Member {
    connection: Arc<Connection>,
    client_id: String,
    last_update: Instant,
}

/// A group whose members are to be told that something changed.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) group: String,
    pub(crate) members: Vec<Arc<Connection>>,
}

/// What is known of a group's subscription of a topic.
#[derive(Debug)]
pub(crate) enum Subscription {
    Known(Arc<SubscriptionData>),
    UnknownTopic,
    UnknownGroup,
}

impl ConsumerManager {
    /// Takes in one group of a heartbeat (Java `registerConsumer` and
    /// `registerConsumerWithoutSub`). The members are told when a connection is new or the set of
    /// topics is another one; a newer subscription of a known topic alone tells nobody.
    pub(crate) fn register(
        &self,
        connection: &Arc<Connection>,
        client_id: &str,
        data: &ConsumerData,
        without_sub: bool,
    ) -> Option<Change> {
        let mut groups = self.groups.lock();
        let info = groups
            .entry(data.group_name.clone())
            .or_insert_with(|| GroupInfo {
                message_model: data.message_model,
                subscriptions: HashMap::new(),
                members: HashMap::new(),
            });
        info.message_model = data.message_model;
        let member = Member {
            connection: Arc::clone(connection),
            client_id: client_id.to_owned(),
            last_update: Instant::now(),
        };
        let mut changed = info.members.insert(connection.id(), member).is_none();
        if !without_sub {
            changed |= info.update_subscriptions(&data.subscription_data_set);
        }
        if connection.is_closed() {
            // Its end may have been handled before this heartbeat was.
            let change = info.remove(connection.id(), &data.group_name);
            remove_if_empty(&mut groups, &data.group_name);
            return change;
        }
        (changed && info.is_told()).then(|| info.change(&data.group_name))
    }

    /// A member leaves. The others are told even if it was none, as by a real broker.
    pub(crate) fn unregister(&self, connection: &Connection, group: &str) -> Option<Change> {
        let mut groups = self.groups.lock();
        let info = groups.get_mut(group)?;
        info.members.remove(&connection.id());
        let change = info.is_told().then(|| info.change(group));
        remove_if_empty(&mut groups, group);
        change
    }

    /// A connection has ended, and with it its memberships.
    pub(crate) fn connection_closed(&self, connection: &Connection) -> Vec<Change> {
        let mut groups = self.groups.lock();
        let changes = groups
            .iter_mut()
            .filter_map(|(group, info)| info.remove(connection.id(), group))
            .collect();
        groups.retain(|_, info| !info.members.is_empty());
        changes
    }

    /// Removes members that sent no heartbeat for so long; their connections are to be closed.
    pub(crate) fn remove_expired(&self, expiry: Duration) -> (Vec<Change>, Vec<Arc<Connection>>) {
        let mut groups = self.groups.lock();
        let mut expired = Vec::new();
        let mut changes = Vec::new();
        for (group, info) in groups.iter_mut() {
            let before = expired.len();
            info.members.retain(|_, member| {
                let alive = member.last_update.elapsed() <= expiry;
                if !alive {
                    expired.push(Arc::clone(&member.connection));
                }
                alive
            });
            if expired.len() > before && info.is_told() {
                changes.push(info.change(group));
            }
        }
        groups.retain(|_, info| !info.members.is_empty());
        (changes, expired)
    }

    /// One id a connection, in no order.
    pub(crate) fn client_ids(&self, group: &str) -> Vec<String> {
        let groups = self.groups.lock();
        let members = groups
            .get(group)
            .into_iter()
            .flat_map(|i| i.members.values());
        members.map(|member| member.client_id.clone()).collect()
    }

    pub(crate) fn subscription(&self, group: &str, topic: &str) -> Subscription {
        let groups = self.groups.lock();
        let Some(info) = groups.get(group) else {
            return Subscription::UnknownGroup;
        };
        let known = info.subscriptions.get(topic);
        known.map_or(Subscription::UnknownTopic, |data| {
            Subscription::Known(Arc::clone(data))
        })
    }
}

impl GroupInfo {
    /// Whether the set of topics changed.
    fn update_subscriptions(&mut self, new: &[SubscriptionData]) -> bool {
        let mut changed = false;
        for data in new {
            match self.subscriptions.get(&data.topic) {
                Some(known) if known.sub_version >= data.sub_version => continue,
                Some(_) => {}
                None => changed = true,
            }
            let topic = data.topic.clone();
            self.subscriptions.insert(topic, Arc::new(data.clone()));
        }
        let topics: HashSet<&str> = new.iter().map(|data| data.topic.as_str()).collect();
        let before = self.subscriptions.len();
        self.subscriptions
            .retain(|topic, _| topics.contains(topic.as_str()));
        changed || self.subscriptions.len() != before
    }

    /// Members of a broadcasting group share nothing and are told nothing.
    fn is_told(&self) -> bool {
        self.message_model != MessageModel::Broadcasting
    }

    fn remove(&mut self, connection_id: u64, group: &str) -> Option<Change> {
        self.members.remove(&connection_id)?;
        self.is_told().then(|| self.change(group))
    }

    fn change(&self, group: &str) -> Change {
        let members = self.members.values();
        Change {
            group: group.to_owned(),
            members: members
                .map(|member| Arc::clone(&member.connection))
                .collect(),
        }
    }
}

fn remove_if_empty(groups: &mut HashMap<String, GroupInfo>, group: &str) {
    if groups
        .get(group)
        .is_some_and(|info| info.members.is_empty())
    {
        groups.remove(group);
    }
}
