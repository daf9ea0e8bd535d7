//! Heartbeats: who this client is, told to each broker at its own pace.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use bytes::Bytes;
use rocketmq_protocol::body::{HeartbeatData, JsonBody, ProducerData};
use rocketmq_protocol::header::UnregisterClientRequestHeader;
use rocketmq_protocol::mix_all::CLIENT_INNER_PRODUCER_GROUP;

use super::MQClientApi;
use super::broker_address_table::BrokerAddressTable;
use super::group_registry::{ConsumerTable, ProducerTable};
use crate::error::Result;
use crate::service::{ServiceContext, ServiceThread};
use crate::sync::{Arc, Condvar, Deadline, Mutex, Weak};

/// Sends heartbeats, and takes groups off the brokers' lists.
///
/// To one address there are either heartbeats or good-byes under way, never both, and each reads the
/// groups after the one before it has ended: answered, or with its connection closed. So a group
/// that leaves is not brought back by a heartbeat that was sent before, and a broker that does not
/// answer holds up nobody but itself.
#[derive(Debug)]
pub(crate) struct HeartbeatSender {
    client_id: String,
    api: Arc<MQClientApi>,
    brokers: Arc<BrokerAddressTable>,
    producers: Arc<ProducerTable>,
    consumers: Arc<ConsumerTable>,
    timeout: Duration,
    flights: Mutex<Flights>,
}

#[derive(Debug, Default)]
struct Flights {
    /// Only those with something under way.
    addresses: HashMap<Arc<str>, Address>,
    /// Those whose last heartbeat failed. The first failure is a warning, the rest of a row is not.
    silent: BTreeSet<Arc<str>>,
}

#[derive(Debug, Default)]
struct Address {
    /// Requests that have not ended, all of one kind.
    in_flight: usize,
    /// Whether that kind is heartbeats.
    heartbeat_in_flight: bool,
    /// Who waits for a heartbeat that begins after this flight. Somebody may have asked for it
    /// without waiting.
    next_heartbeat: Option<Vec<Arc<Round>>>,
    next_goodbyes: Vec<Goodbye>,
}

#[derive(Debug)]
struct Goodbye {
    header: Arc<UnregisterClientRequestHeader>,
    round: Arc<Round>,
}

/// What follows at an address when a flight has ended.
enum Next {
    Nothing,
    Heartbeat(Vec<Arc<Round>>),
    Goodbyes(Vec<Goodbye>),
}

/// Counts the answers that one caller waits for.
#[derive(Debug)]
struct Round {
    counts: Mutex<Counts>,
    changed: Condvar,
}

#[derive(Debug)]
struct Counts {
    missing: usize,
    answered: usize,
}

impl Round {
    fn new(expected: usize) -> Arc<Self> {
        Arc::new(Self {
            counts: Mutex::new(Counts {
                missing: expected,
                answered: 0,
            }),
            changed: Condvar::new(),
        })
    }

    fn land(&self, answered: bool) {
        let mut counts = self.counts.lock();
        counts.missing = counts.missing.saturating_sub(1);
        counts.answered += usize::from(answered);
        drop(counts);
        self.changed.notify_all();
    }

    /// Waits for all, and returns how many were answered by the deadline.
    fn wait(&self, deadline: Deadline) -> usize {
        let mut counts = self.counts.lock();
        while counts.missing > 0 {
            if self.changed.wait_until(&mut counts, deadline) {
                break;
            }
        }
        counts.answered
    }
}

impl Flights {
    /// Asks for a heartbeat to an address; `Some` if it can begin now.
    fn ask(&mut self, addr: &Arc<str>, round: Option<&Arc<Round>>) -> Option<Vec<Arc<Round>>> {
        let address = self.addresses.entry(Arc::clone(addr)).or_default();
        let waiting = address.next_heartbeat.get_or_insert_with(Vec::new);
        waiting.extend(round.cloned());
        if address.in_flight > 0 {
            return None;
        }
        address.in_flight = 1;
        address.heartbeat_in_flight = true;
        address.next_heartbeat.take()
    }

    fn is_heartbeat_in_flight(&self, addr: &str) -> bool {
        let address = self.addresses.get(addr);
        address.is_some_and(|address| address.heartbeat_in_flight)
    }

    /// Takes a good-bye in; `Some` if it can be said now.
    fn say_goodbye(&mut self, addr: &Arc<str>, goodbye: Goodbye) -> Option<Goodbye> {
        let address = self.addresses.entry(Arc::clone(addr)).or_default();
        if address.in_flight > 0 {
            address.next_goodbyes.push(goodbye);
            return None;
        }
        address.in_flight = 1;
        Some(goodbye)
    }

    /// Notes that one request has ended.
    fn ended(&mut self, addr: &Arc<str>) -> Next {
        let Some(address) = self.addresses.get_mut(addr) else {
            return Next::Nothing;
        };
        address.in_flight = address.in_flight.saturating_sub(1);
        if address.in_flight > 0 {
            return Next::Nothing;
        }
        if !address.next_goodbyes.is_empty() {
            address.in_flight = address.next_goodbyes.len();
            address.heartbeat_in_flight = false;
            return Next::Goodbyes(std::mem::take(&mut address.next_goodbyes));
        }
        if let Some(waiting) = address.next_heartbeat.take() {
            address.in_flight = 1;
            address.heartbeat_in_flight = true;
            return Next::Heartbeat(waiting);
        }
        self.addresses.remove(addr);
        Next::Nothing
    }
}

impl HeartbeatSender {
    pub(crate) fn new(
        client_id: String,
        api: Arc<MQClientApi>,
        brokers: Arc<BrokerAddressTable>,
        producers: Arc<ProducerTable>,
        consumers: Arc<ConsumerTable>,
    ) -> Arc<Self> {
        Arc::new(Self {
            client_id,
            timeout: api.timeout(),
            api,
            brokers,
            producers,
            consumers,
            flights: Mutex::new(Flights::default()),
        })
    }

    /// Tells all brokers, and returns how many have answered by the deadline. Where a heartbeat is
    /// under way this one follows it: it may know more (Java skips it).
    pub(crate) fn send_heartbeat_to_all_broker(self: &Arc<Self>, deadline: Deadline) -> usize {
        let targets = self.targets();
        let round = Round::new(targets.len());
        self.begin_heartbeats(&targets, Some(&round));
        round.wait(deadline)
    }

    /// Tells all brokers without waiting for any of them.
    pub(crate) fn begin_heartbeat_to_all_broker(self: &Arc<Self>) {
        let targets = self.targets();
        let mut flights = self.flights.lock();
        flights.silent.retain(|addr| targets.contains(addr));
        drop(flights);
        self.begin_heartbeats(&targets, None);
    }

    /// Tells a broker that is connected, which may have forgotten this client. If it is a heartbeat
    /// that has connected, that one is on its way: another would follow each in vain at a server
    /// that accepts connections and ends them.
    pub(crate) fn begin_heartbeat_to_connected_broker(self: &Arc<Self>, addr: &str) {
        let targets = self.targets();
        let target = targets.iter().find(|target| &***target == addr);
        let Some(target) = target else { return };
        if !self.flights.lock().is_heartbeat_in_flight(addr) {
            self.begin_heartbeats(std::slice::from_ref(target), None);
        }
    }

    fn targets(&self) -> Vec<Arc<str>> {
        let have_consumers = !self.consumers.groups().is_empty();
        self.brokers.heartbeat_targets(have_consumers)
    }

    fn begin_heartbeats(self: &Arc<Self>, targets: &[Arc<str>], round: Option<&Arc<Round>>) {
        let mut flights = self.flights.lock();
        let free: Vec<_> = targets
            .iter()
            .filter_map(|addr| Some((addr, flights.ask(addr, round)?)))
            .collect();
        drop(flights);
        if free.is_empty() {
            return;
        }
        // Read after the flights are marked: whoever leaves a group from here on waits for them.
        let body = self.encode_heartbeat();
        for (addr, waiting) in free {
            self.send_heartbeat(addr, body.clone(), waiting);
        }
    }

    fn encode_heartbeat(&self) -> Option<Bytes> {
        match self.heartbeat_data().to_json() {
            Ok(body) => Some(body.into()),
            Err(error) => {
                log::error!(
                    "{}: the heartbeat cannot be written: {error}",
                    self.client_id
                );
                None
            }
        }
    }

    fn send_heartbeat(
        self: &Arc<Self>,
        addr: &Arc<str>,
        body: Option<Bytes>,
        waiting: Vec<Arc<Round>>,
    ) {
        let Some(body) = body else {
            waiting.iter().for_each(|round| round.land(false));
            return self.go_on(addr);
        };
        let (weak, to): (Weak<Self>, _) = (Arc::downgrade(self), Arc::clone(addr));
        let deadline = Deadline::after(self.timeout);
        self.api
            .heartbeat_async(addr, body, deadline, move |outcome| {
                waiting.iter().for_each(|round| round.land(outcome.is_ok()));
                if let Some(this) = weak.upgrade() {
                    this.note(&to, outcome);
                    this.go_on(&to);
                }
            });
    }

    /// A broker that is down for hours is told of once.
    fn note(&self, addr: &Arc<str>, outcome: Result<()>) {
        let silent = &mut self.flights.lock().silent;
        match outcome {
            Ok(()) => {
                if silent.remove(addr) {
                    log::info!("{}: {addr} answers heartbeats again", self.client_id);
                }
            }
            Err(error) if silent.insert(Arc::clone(addr)) => {
                log::warn!("{}: heartbeat to {addr}: {error}", self.client_id);
            }
            Err(error) => log::debug!("{}: heartbeat to {addr}: {error}", self.client_id),
        }
    }

    /// Begins what was asked for while the flight that has ended was under way.
    fn go_on(self: &Arc<Self>, addr: &Arc<str>) {
        let next = self.flights.lock().ended(addr);
        match next {
            Next::Nothing => {}
            Next::Heartbeat(waiting) => {
                self.send_heartbeat(addr, self.encode_heartbeat(), waiting);
            }
            Next::Goodbyes(goodbyes) => {
                for goodbye in goodbyes {
                    self.send_goodbye(addr, goodbye);
                }
            }
        }
    }

    /// Leaves a group at all brokers (Java `MQClientInstance#unregisterClient`), and waits for their
    /// answers until the deadline, but for no longer than one request may take: what waits its turn at a
    /// broker that does not answer must not use up the time of those who end. The group must be out of
    /// its table already.
    ///
    /// A broker that a producer leaves knows no more where replies to this client go (Java
    /// `ProducerManager#unregisterProducer`), though it still has other producers, until the client
    /// joins a group that it was not in. So it leaves the group that all instances have as well, and
    /// the heartbeat that follows joins it again.
    pub(crate) fn unregister(
        self: &Arc<Self>,
        producer_group: Option<&str>,
        consumer_group: Option<&str>,
        deadline: Deadline,
    ) {
        let deadline = deadline.min(Deadline::after(self.timeout));
        let header = |producer_group: Option<&str>| {
            Arc::new(UnregisterClientRequestHeader {
                client_id: self.client_id.clone(),
                producer_group: producer_group.map(str::to_owned),
                consumer_group: consumer_group.map(str::to_owned),
            })
        };
        let targets = self.brokers.heartbeat_targets(true);
        let stays = producer_group.is_some() && !self.producers.groups().is_empty();
        let mut headers = vec![header(producer_group)];
        if stays {
            headers.push(header(Some(CLIENT_INNER_PRODUCER_GROUP)));
        }
        let round = Round::new(targets.len() * headers.len());
        for addr in &targets {
            for header in &headers {
                let goodbye = Goodbye {
                    header: Arc::clone(header),
                    round: Arc::clone(&round),
                };
                let now = self.flights.lock().say_goodbye(addr, goodbye);
                if let Some(goodbye) = now {
                    self.send_goodbye(addr, goodbye);
                }
            }
        }
        if stays {
            let back = Round::new(targets.len());
            self.begin_heartbeats(&targets, Some(&back));
            back.wait(deadline);
        }
        round.wait(deadline);
    }

    fn send_goodbye(self: &Arc<Self>, addr: &Arc<str>, goodbye: Goodbye) {
        let Goodbye { header, round } = goodbye;
        if self.is_back(&header) {
            round.land(true);
            return self.go_on(addr);
        }
        let (weak, to): (Weak<Self>, _) = (Arc::downgrade(self), Arc::clone(addr));
        let deadline = Deadline::after(self.timeout);
        self.api
            .unregister_async(addr, &header, deadline, move |outcome| {
                round.land(outcome.is_ok());
                let Some(this) = weak.upgrade() else {
                    return;
                };
                if let Err(error) = outcome {
                    log::warn!("{}: leaving a group at {to}: {error}", this.client_id);
                }
                this.go_on(&to);
            });
    }

    /// Whether the group has a member again that came while the good-bye waited for its turn.
    fn is_back(&self, header: &UnregisterClientRequestHeader) -> bool {
        let of = |group: &Option<String>, present: fn(&Self, &str) -> bool| {
            group.as_deref().is_some_and(|group| present(self, group))
        };
        of(&header.producer_group, |this, group| {
            this.producers.get(group).is_some()
        }) || of(&header.consumer_group, |this, group| {
            this.consumers.get(group).is_some()
        })
    }

    fn heartbeat_data(&self) -> HeartbeatData {
        let mut producers = self.producers.groups();
        // Java's instances send retries through a producer of their own and list it; a broker finds
        // a client of any kind under this group.
        producers.push(CLIENT_INNER_PRODUCER_GROUP.to_owned());
        HeartbeatData {
            client_id: self.client_id.clone(),
            producer_data_set: producers
                .into_iter()
                .map(|group_name| ProducerData { group_name })
                .collect(),
            consumer_data_set: self
                .consumers
                .snapshot()
                .into_iter()
                .map(|(_, consumer)| consumer.consumer_data())
                .collect(),
            ..HeartbeatData::default()
        }
    }
}

/// Sends a heartbeat each interval, and at once when woken.
#[derive(Debug)]
pub(crate) struct HeartbeatService {
    pub(crate) sender: Arc<HeartbeatSender>,
    pub(crate) interval: Duration,
}

impl ServiceThread for HeartbeatService {
    fn service_name(&self) -> String {
        "HeartbeatService".to_owned()
    }

    fn run(&self, context: &ServiceContext) {
        loop {
            context.wait_for_running(self.interval);
            if context.is_stopped() {
                return;
            }
            self.sender.begin_heartbeat_to_all_broker();
        }
    }
}
