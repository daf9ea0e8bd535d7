use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rocketmq_protocol::body::{ConsumeFromWhere, ConsumeType, ConsumerData, MessageModel};
use rocketmq_protocol::{LanguageCode, RemotingCommand, SubscriptionData};

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
    consume_type: ConsumeType,
    consume_from_where: ConsumeFromWhere,
    subscriptions: HashMap<String, Arc<SubscriptionData>>,
    members: HashMap<u64, Member>,
}

/// Who a client says it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientInfo {
    pub(crate) client_id: String,
    pub(crate) language: LanguageCode,
    pub(crate) version: i32,
}

impl ClientInfo {
    /// The client that sent a heartbeat.
    pub(crate) fn new(client_id: &str, request: &RemotingCommand) -> Self {
        Self {
            client_id: client_id.to_owned(),
            language: request.language,
            version: request.version,
        }
    }
}

/// A client's membership, kept alive by heartbeats.
#[derive(Debug)]
pub(crate) struct Member {
    connection: Arc<Connection>,
    client: ClientInfo,
    last_update: Instant,
}

impl Member {
    pub(crate) fn new(connection: &Arc<Connection>, client: &ClientInfo) -> Self {
        Self {
            connection: Arc::clone(connection),
            client: client.clone(),
            last_update: Instant::now(),
        }
    }

    /// Whether a heartbeat came in time; otherwise its connection joins the expired ones.
    pub(crate) fn is_alive(
        &self,
        now: Instant,
        expiry: Duration,
        expired: &mut Vec<Arc<Connection>>,
    ) -> bool {
        let alive = now.saturating_duration_since(self.last_update) <= expiry;
        if !alive {
            expired.push(Arc::clone(&self.connection));
        }
        alive
    }

    pub(crate) fn describe(&self) -> (ClientInfo, Arc<Connection>) {
        (self.client.clone(), Arc::clone(&self.connection))
    }
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
    Known(Arc<SubscriptionData>, MessageModel),
    UnknownTopic(MessageModel),
    UnknownGroup,
}

/// A group as its heartbeats describe it.
#[derive(Debug)]
pub(crate) struct GroupSnapshot {
    pub(crate) message_model: MessageModel,
    pub(crate) consume_type: ConsumeType,
    pub(crate) consume_from_where: ConsumeFromWhere,
    pub(crate) subscriptions: BTreeMap<String, SubscriptionData>,
    pub(crate) members: Vec<(ClientInfo, Arc<Connection>)>,
}

impl ConsumerManager {
    /// Takes in one group of a heartbeat (Java `registerConsumer` and
    /// `registerConsumerWithoutSub`). The members are told when a connection is new or the set of
    /// topics is another one, if the group's settings allow; a newer subscription of a known topic
    /// alone tells nobody.
    pub(crate) fn register(
        &self,
        connection: &Arc<Connection>,
        client: &ClientInfo,
        data: &ConsumerData,
        without_sub: bool,
        group_is_told: bool,
    ) -> Option<Change> {
        let mut groups = self.groups.lock();
        let info = groups
            .entry(data.group_name.clone())
            .or_insert_with(|| GroupInfo {
                message_model: data.message_model,
                consume_type: data.consume_type,
                consume_from_where: data.consume_from_where,
                subscriptions: HashMap::new(),
                members: HashMap::new(),
            });
        info.message_model = data.message_model;
        info.consume_type = data.consume_type;
        info.consume_from_where = data.consume_from_where;
        let member = Member::new(connection, client);
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
        (changed && group_is_told && info.is_told()).then(|| info.change(&data.group_name))
    }

    /// A member leaves. The others are told even if it was none, as by a real broker.
    pub(crate) fn unregister(
        &self,
        connection: &Connection,
        group: &str,
        group_is_told: bool,
    ) -> Option<Change> {
        let mut groups = self.groups.lock();
        let info = groups.get_mut(group)?;
        info.members.remove(&connection.id());
        let change = (group_is_told && info.is_told()).then(|| info.change(group));
        remove_if_empty(&mut groups, group);
        change
    }

    /// A connection has ended, and with it its memberships. The groups' settings are not asked
    /// whether the others are told, as by a real broker.
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
    /// Nobody is told: when a real broker sees those connections end, their members are gone.
    pub(crate) fn remove_expired(&self, expiry: Duration) -> Vec<Arc<Connection>> {
        let now = Instant::now();
        let mut expired = Vec::new();
        let mut groups = self.groups.lock();
        for info in groups.values_mut() {
            info.members
                .retain(|_, member| member.is_alive(now, expiry, &mut expired));
        }
        groups.retain(|_, info| !info.members.is_empty());
        expired
    }

    /// One id a connection, in no order.
    pub(crate) fn client_ids(&self, group: &str) -> Vec<String> {
        let groups = self.groups.lock();
        let members = groups
            .get(group)
            .into_iter()
            .flat_map(|i| i.members.values());
        members
            .map(|member| member.client.client_id.clone())
            .collect()
    }

    /// A member of a group by its client id.
    pub(crate) fn find(
        &self,
        group: &str,
        client_id: &str,
    ) -> Option<(ClientInfo, Arc<Connection>)> {
        let groups = self.groups.lock();
        let mut members = groups.get(group)?.members.values();
        members
            .find(|member| member.client.client_id == client_id)
            .map(Member::describe)
    }

    pub(crate) fn subscription(&self, group: &str, topic: &str) -> Subscription {
        let groups = self.groups.lock();
        let Some(info) = groups.get(group) else {
            return Subscription::UnknownGroup;
        };
        let model = info.message_model;
        let known = info.subscriptions.get(topic);
        known.map_or(Subscription::UnknownTopic(model), |data| {
            Subscription::Known(Arc::clone(data), model)
        })
    }

    pub(crate) fn snapshot(&self, group: &str) -> Option<GroupSnapshot> {
        let groups = self.groups.lock();
        let info = groups.get(group)?;
        let subscriptions = info.subscriptions.iter();
        Some(GroupSnapshot {
            message_model: info.message_model,
            consume_type: info.consume_type,
            consume_from_where: info.consume_from_where,
            subscriptions: subscriptions
                .map(|(topic, data)| (topic.clone(), SubscriptionData::clone(data)))
                .collect(),
            members: info.members.values().map(Member::describe).collect(),
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
