//! Watching a cluster, and putting faults into it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::cluster::Cluster;
use crate::connection::Connection;
use crate::control::{Choice, ControlHandle};
use crate::control_action::{ControlAction, ControlScope, ControlTimes};
use crate::member_views::MemberListQuery;
use crate::request_log::{NAMESRV, ReceivedRequest};
use crate::server::Server;

/// A connection that is open to one of the servers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionInfo {
    /// The broker's name, or `namesrv`.
    pub server: Arc<str>,
    /// Unique within its server.
    pub id: u64,
    /// The client's end.
    pub peer: SocketAddr,
    /// The client id that its last heartbeat named.
    pub client_id: Option<Arc<str>>,
    /// How many requests came on it, by code.
    pub requests: BTreeMap<i32, u64>,
}

impl Cluster {
    /// Lets the next requests with a code meet something else than a working server, whichever
    /// server of the cluster they go to. Of several controls for a request the one set first acts.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use rocketmq_embedded::{Cluster, ControlAction, ControlTimes};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let cluster = Cluster::builder().start()?;
    /// let busy = ControlAction::Respond(2, Some("[OVERLOAD]".to_owned()));
    /// let control = cluster.control(310, busy, ControlTimes::UntilLifted);
    /// assert_eq!(control.hits(), 0);
    /// control.lift();
    /// # Ok(())
    /// # }
    /// ```
    pub fn control(
        &self,
        request_code: i32,
        action: ControlAction,
        times: ControlTimes,
    ) -> ControlHandle {
        self.control_on(ControlScope::Cluster, request_code, action, times)
    }

    /// The same for requests to some of the servers. A broker's name is not checked; a control for
    /// one that does not exist never acts.
    pub fn control_on(
        &self,
        scope: ControlScope,
        request_code: i32,
        action: ControlAction,
        times: ControlTimes,
    ) -> ControlHandle {
        let choice = Choice::Always(action);
        self.watch
            .controls
            .add(scope, Some(request_code), choice, times)
    }

    /// A control that looks at each request and chooses: `None` leaves the request to the next
    /// control and does not count. Without a code it looks at every request. Notes that brokers
    /// send to clients (code 40) are looked at like requests of the clients that they go to.
    ///
    /// `decide` is called on a server's thread, without a lock; it may look at the cluster.
    ///
    /// ```
    /// use rocketmq_embedded::{Cluster, ControlAction, ControlScope, ControlTimes};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let cluster = Cluster::builder().brokers(2).start()?;
    /// // The first commit for queue 3 at broker-a takes effect, but nobody hears of it.
    /// let scope = ControlScope::Broker("broker-a".to_owned());
    /// let control = cluster.control_when(scope, 15, ControlTimes::Once, |request| {
    ///     let queue = request.command.ext_fields.get("queueId");
    ///     (queue == Some("3")).then_some(ControlAction::LoseAnswer)
    /// });
    /// assert_eq!(control.hits(), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn control_when(
        &self,
        scope: ControlScope,
        request_code: impl Into<Option<i32>>,
        times: ControlTimes,
        decide: impl Fn(&ReceivedRequest) -> Option<ControlAction> + Send + Sync + 'static,
    ) -> ControlHandle {
        let choice = Choice::Ask(Arc::new(decide));
        self.watch
            .controls
            .add(scope, request_code.into(), choice, times)
    }

    /// Answers questions for the members of a group (GET_CONSUMER_LIST_BY_GROUP) with what `view`
    /// makes of the true list, so that members can disagree: a list that is split, lacks somebody or
    /// names somebody twice, each asker its own. An empty one is answered with code 1.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let cluster = rocketmq_embedded::Cluster::builder().start()?;
    /// // Each member sees itself only.
    /// cluster.set_member_view("g", |query| {
    ///     let own = |id: &String| Some(id.as_str()) == query.asker.as_deref();
    ///     query.members.iter().filter(|id| own(id)).cloned().collect()
    /// });
    /// cluster.clear_member_view("g");
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_member_view(
        &self,
        group: &str,
        view: impl Fn(&MemberListQuery) -> Vec<String> + Send + Sync + 'static,
    ) {
        self.views.set(group, Arc::new(view));
    }

    /// Ends what [`Cluster::set_member_view`] began.
    pub fn clear_member_view(&self, group: &str) {
        self.views.clear(group);
    }

    /// How many notes of a change members of a group were sent, by all brokers.
    pub fn notes_sent(&self, group: &str) -> u64 {
        self.notes.sent(group)
    }

    /// How many requests with a code the servers have done with: processed, parked, or met by a
    /// control.
    pub fn request_count(&self, request_code: i32) -> u64 {
        self.request_count_on(&ControlScope::Cluster, request_code)
    }

    /// The same at some of the servers.
    pub fn request_count_on(&self, scope: &ControlScope, request_code: i32) -> u64 {
        self.watch.log.count(scope, request_code)
    }

    /// Waits until the servers have done with so many requests with a code, counted from the
    /// cluster's start, and says whether that came true in time.
    ///
    /// # Blocking
    /// At most `timeout`.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let cluster = rocketmq_embedded::Cluster::builder().start()?;
    /// let before = cluster.request_count(34);
    /// // … something here lets a client send a heartbeat …
    /// assert!(!cluster.wait_for(34, before + 1, Duration::from_millis(1)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait_for(&self, request_code: i32, count: u64, timeout: Duration) -> bool {
        self.wait_for_on(&ControlScope::Cluster, request_code, count, timeout)
    }

    /// The same at some of the servers.
    ///
    /// # Blocking
    /// At most `timeout`.
    pub fn wait_for_on(
        &self,
        scope: &ControlScope,
        request_code: i32,
        count: u64,
        timeout: Duration,
    ) -> bool {
        self.watch.log.wait_for(scope, request_code, count, timeout)
    }

    /// Waits until something is true of the cluster, and says whether that came true in time. It is
    /// looked at after every request, note, and connection that comes or goes.
    ///
    /// # Blocking
    /// At most `timeout`, beside the time that `condition` takes.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let cluster = rocketmq_embedded::Cluster::builder().start()?;
    /// let nobody = cluster.wait_until(Duration::from_secs(30), || cluster.consumer_ids("g").is_empty());
    /// assert!(nobody);
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait_until(&self, timeout: Duration, condition: impl FnMut() -> bool) -> bool {
        self.watch.log.wait_until(timeout, condition)
    }

    /// Keeps the last so many requests of all servers from now on, for
    /// [`Cluster::recorded_requests`]. Nothing is kept by default; 0 ends it.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let cluster = rocketmq_embedded::Cluster::builder().start()?;
    /// cluster.record_requests(100);
    /// // … something here lets a client work …
    /// for request in cluster.take_recorded_requests() {
    ///     println!("{} got {}", request.server, request.command.code);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn record_requests(&self, last: usize) {
        self.watch.log.record(last);
    }

    /// The requests that were kept, oldest first: in the order in which servers were done with
    /// them.
    pub fn recorded_requests(&self) -> Vec<ReceivedRequest> {
        self.watch.log.recorded()
    }

    /// The same, and forgets them.
    pub fn take_recorded_requests(&self) -> Vec<ReceivedRequest> {
        self.watch.log.take_recorded()
    }

    /// The connections that are open to the name server and to all brokers.
    pub fn connections(&self) -> Vec<ConnectionInfo> {
        let mut all = Vec::new();
        let name_server = self.name_server.lock();
        let connections = name_server.as_ref().map(Server::connections);
        drop(name_server);
        for connection in connections.into_iter().flatten() {
            all.push(describe(&NAMESRV.into(), &connection));
        }
        for node in self.nodes() {
            for connection in node.connections() {
                all.push(describe(&node.name, &connection));
            }
        }
        all
    }

    /// How many connections are open, to the name server and to all brokers.
    pub fn connection_count(&self) -> usize {
        self.connections().len()
    }

    /// Cuts the connections of a client, by the id of its heartbeats, and says how many there were.
    /// The client may connect again at once.
    pub fn cut_connections(&self, client_id: &str) -> usize {
        let nodes = self.nodes();
        let connections = nodes.iter().flat_map(|node| node.connections());
        let of_client = connections.filter(|connection| {
            let id = connection.client_id();
            id.as_deref() == Some(client_id)
        });
        of_client.map(|connection| connection.close()).count()
    }
}

fn describe(server: &Arc<str>, connection: &Connection) -> ConnectionInfo {
    ConnectionInfo {
        server: Arc::clone(server),
        id: connection.id(),
        peer: connection.peer(),
        client_id: connection.client_id(),
        requests: connection.request_counts(),
    }
}
