//! One client as brokers see it: a client id, its connections, its groups and their threads.

use std::collections::HashSet;
use std::fmt;
use std::time::{Duration, Instant};

use super::broker_address_table::BrokerAddressTable;
use super::client_remoting_processor::ClientRemotingProcessor;
use super::group_registry::{ConsumerTable, ProducerTable};
use super::heartbeat::{HeartbeatSender, HeartbeatService};
use super::member_lists::BrokerMemberLists;
use super::name_server_address_service::NameServerAddressService;
use super::offset_persist_service::OffsetPersistService;
use super::pull_message_service::{PullMessageService, PullRequestQueue};
use super::rebalance_service::RebalanceService;
use super::topic_route::{RouteOf, TopicRouteService, TopicRoutes};
use super::{MQClientApi, MQConsumerInner, MQProducerInner, RequestFutureHolder};
use crate::client_config::ClientConfig;
use crate::error::{Error, Result};
use crate::remoting::{
    ChannelEventListener, EventLoop, MioRemotingClient, RequestProcessor, TopAddressing,
};
use crate::service::{
    ScheduledService, ServiceHandle, ServiceState, ServiceThread, Task, ThreadPool,
};
use crate::sync::{Arc, Deadline, Mutex, Weak, add, now};

/// How often routes are fetched at most because brokers fail.
const REFRESH_AFTER_FAILURE: Duration = Duration::from_secs(3);

/// What all instances of a manager share.
#[derive(Debug, Clone)]
pub(crate) struct Runtime {
    pub(crate) event_loop: Arc<EventLoop>,
    pub(crate) timer: Arc<ScheduledService>,
}

/// Owner of services and tables (Java `MQClientInstance`).
pub(crate) struct MQClientInstance {
    client_id: String,
    api: Arc<MQClientApi>,
    producers: Arc<ProducerTable>,
    consumers: Arc<ConsumerTable>,
    brokers: Arc<BrokerAddressTable>,
    routes: Arc<TopicRoutes>,
    heartbeats: Arc<HeartbeatSender>,
    pull_requests: PullRequestQueue,
    executor: Arc<ThreadPool>,
    request_futures: Arc<RequestFutureHolder>,
    timer: Arc<ScheduledService>,
    rebalance_service: Arc<ServiceHandle<RebalanceService>>,
    pull_message_service: ServiceHandle<PullMessageService>,
    heartbeat_service: ServiceHandle<HeartbeatService>,
    topic_route_service: ServiceHandle<TopicRouteService>,
    offset_persist_service: ServiceHandle<OffsetPersistService>,
    /// There when the name servers are asked for.
    name_server_address_service: Option<ServiceHandle<NameServerAddressService>>,
    /// Remoting holds them weakly, so this is where they live.
    _processor: Arc<ClientRemotingProcessor>,
    _listener: Arc<HeartbeatOnConnect>,
    next_refresh_after_failure: Mutex<Instant>,
    /// Held while the services are started or stopped, so that whoever comes second finds the first
    /// one's work done.
    state: Mutex<ServiceState>,
}

impl MQClientInstance {
    pub(crate) fn new(client_id: String, config: &ClientConfig, runtime: &Runtime) -> Arc<Self> {
        let executor = Arc::new(ThreadPool::new(
            "ClientCallbackExecutor",
            config.client_callback_executor_threads,
        ));
        let remoting = MioRemotingClient::new(
            Arc::clone(&runtime.event_loop),
            Arc::clone(&executor),
            config,
        );
        let api = Arc::new(MQClientApi::new(
            remoting,
            config.mq_client_api_timeout,
            config.vip_channel_enabled,
        ));
        let producers = Arc::new(ProducerTable::new());
        let consumers = Arc::new(ConsumerTable::new());
        let brokers = Arc::new(BrokerAddressTable::new());
        let routes = Arc::new(TopicRoutes::new(
            Arc::clone(&api),
            Arc::clone(&brokers),
            Arc::clone(&producers),
            Arc::clone(&consumers),
        ));
        let heartbeats = HeartbeatSender::new(
            client_id.clone(),
            Arc::clone(&api),
            Arc::clone(&brokers),
            Arc::clone(&producers),
            Arc::clone(&consumers),
        );
        let rebalance_service = Arc::new(handle(RebalanceService::new(
            Arc::clone(&consumers),
            Arc::new(BrokerMemberLists {
                api: Arc::clone(&api),
                routes: Arc::clone(&routes),
            }),
            config.rebalance_wait_interval,
            config.rebalance_min_interval,
        )));
        let pull_requests = PullRequestQueue::new(Arc::clone(&runtime.timer));
        let heartbeat_service = handle(HeartbeatService {
            sender: Arc::clone(&heartbeats),
            interval: config.heartbeat_broker_interval,
        });
        let request_futures = Arc::new(RequestFutureHolder::new(
            Arc::clone(&executor),
            Arc::clone(&runtime.timer),
        ));
        let processor = Arc::new(ClientRemotingProcessor {
            producers: Arc::clone(&producers),
            request_futures: Arc::clone(&request_futures),
            consumers: Arc::clone(&consumers),
            rebalance_service: Arc::clone(&rebalance_service),
        });
        let listener = Arc::new(HeartbeatOnConnect {
            brokers: Arc::clone(&brokers),
            known: Mutex::new(HashSet::new()),
            heartbeats: Arc::clone(&heartbeats),
            rebalance_service: Arc::clone(&rebalance_service),
        });
        let weak_processor: Weak<dyn RequestProcessor> =
            Arc::downgrade(&(Arc::clone(&processor) as Arc<dyn RequestProcessor>));
        let weak_listener: Weak<dyn ChannelEventListener> =
            Arc::downgrade(&(Arc::clone(&listener) as Arc<dyn ChannelEventListener>));
        api.remoting().register_processor(weak_processor);
        api.remoting().register_listener(weak_listener);
        let addressing = TopAddressing::of(config).filter(|_| config.namesrv_addr.is_empty());
        let name_server_address_service = addressing
            .map(|addressing| handle(NameServerAddressService::new(Arc::clone(&api), addressing)));
        Arc::new(Self {
            client_id,
            name_server_address_service,
            pull_message_service: handle(PullMessageService {
                queue: pull_requests.clone(),
            }),
            topic_route_service: handle(TopicRouteService {
                routes: Arc::clone(&routes),
                interval: config.poll_name_server_interval,
                timeout: config.mq_client_api_timeout,
            }),
            offset_persist_service: handle(OffsetPersistService {
                consumers: Arc::clone(&consumers),
                interval: config.persist_consumer_offset_interval,
            }),
            api,
            producers,
            consumers,
            brokers,
            routes,
            heartbeats,
            pull_requests,
            executor,
            request_futures,
            timer: Arc::clone(&runtime.timer),
            rebalance_service,
            heartbeat_service,
            _processor: processor,
            _listener: listener,
            next_refresh_after_failure: Mutex::new(now()),
            state: Mutex::new(ServiceState::CreateJust),
        })
    }

    pub(crate) fn client_id(&self) -> &str {
        &self.client_id
    }

    pub(crate) fn api(&self) -> &Arc<MQClientApi> {
        &self.api
    }

    pub(crate) fn brokers(&self) -> &BrokerAddressTable {
        &self.brokers
    }

    pub(crate) fn routes(&self) -> &TopicRoutes {
        &self.routes
    }

    pub(crate) fn pull_requests(&self) -> &PullRequestQueue {
        &self.pull_requests
    }

    /// What waits for replies to request messages.
    pub(crate) fn request_futures(&self) -> &Arc<RequestFutureHolder> {
        &self.request_futures
    }

    /// Runs a callback on the threads for callbacks; here if they have ended.
    pub(crate) fn execute_callback(&self, task: Task) {
        if let Err(rejected) = self.executor.execute(task) {
            (rejected.task)();
        }
    }

    pub(crate) fn timer(&self) -> &Arc<ScheduledService> {
        &self.timer
    }

    /// Starts the service threads; the second and later users find them running.
    ///
    /// # Errors
    /// The operating system has no thread to give, or the instance was stopped meanwhile.
    pub(crate) fn start(&self) -> Result<()> {
        let mut state = self.state.lock();
        match *state {
            ServiceState::Running => return Ok(()),
            ServiceState::CreateJust => {}
            other => {
                return Err(Error::ServiceState {
                    operation: format!("starting client {}", self.client_id),
                    state: other,
                });
            }
        }
        let started = match &self.name_server_address_service {
            Some(service) => service
                .start()
                .map(|_| service.service().wait_for_first_answer()),
            None => Ok(()),
        };
        let started = started
            .and_then(|()| self.pull_message_service.start())
            .and_then(|_| self.rebalance_service.start())
            .and_then(|_| self.heartbeat_service.start())
            .and_then(|_| self.topic_route_service.start())
            .and_then(|_| self.offset_persist_service.start());
        match started {
            Ok(_) => {
                *state = ServiceState::Running;
                log::info!("client {} started", self.client_id);
                Ok(())
            }
            Err(error) => {
                *state = ServiceState::StartFailed;
                Err(Error::MQClient {
                    code: None,
                    reason: format!(
                        "client {} cannot start its threads: {error}",
                        self.client_id
                    ),
                    source: None,
                })
            }
        }
    }

    /// Ends the service threads, then the connections. Returns whether all threads ended in time.
    pub(crate) fn shutdown(&self, deadline: Deadline) -> bool {
        let mut state = self.state.lock();
        *state = ServiceState::ShutdownAlready;
        // All are told before one is waited for. They issue requests, so they end before the
        // connections do.
        self.rebalance_service.make_stop();
        self.heartbeat_service.make_stop();
        self.topic_route_service.make_stop();
        self.offset_persist_service.make_stop();
        self.pull_message_service.make_stop();
        if let Some(service) = &self.name_server_address_service {
            service.make_stop();
        }
        self.pull_requests.close();
        let mut joined = self.rebalance_service.shutdown_until(deadline).is_over();
        joined &= self.pull_message_service.shutdown_until(deadline).is_over();
        joined &= self.heartbeat_service.shutdown_until(deadline).is_over();
        joined &= self.topic_route_service.shutdown_until(deadline).is_over();
        joined &= self
            .offset_persist_service
            .shutdown_until(deadline)
            .is_over();
        if let Some(service) = &self.name_server_address_service {
            joined &= service.shutdown_until(deadline).is_over();
        }
        joined &= self.api.remoting().close(deadline);
        let pool = self.executor.shutdown(deadline);
        joined &= pool.left == 0;
        log::info!("client {} stopped", self.client_id);
        joined
    }

    pub(crate) fn register_producer(
        &self,
        group: &str,
        producer: Weak<dyn MQProducerInner>,
    ) -> bool {
        self.producers.register(group, producer)
    }

    pub(crate) fn register_consumer(
        &self,
        group: &str,
        consumer: Weak<dyn MQConsumerInner>,
    ) -> bool {
        self.consumers.register(group, consumer)
    }

    pub(crate) fn unregister_producer(&self, group: &str, deadline: Deadline) {
        self.producers.unregister(group);
        self.heartbeats.unregister(Some(group), None, deadline);
    }

    pub(crate) fn unregister_consumer(&self, group: &str, deadline: Deadline) {
        self.consumers.unregister(group);
        self.heartbeats.unregister(None, Some(group), deadline);
    }

    /// Tells all brokers at once who this client is, and waits for their answers.
    pub(crate) fn send_heartbeat_to_all_broker(&self, deadline: Deadline) -> usize {
        self.heartbeats.send_heartbeat_to_all_broker(deadline)
    }

    /// Has a heartbeat sent soon, without waiting.
    pub(crate) fn heartbeat_soon(&self) {
        self.heartbeat_service.wakeup();
    }

    /// Has a group looked at soon.
    pub(crate) fn rebalance_soon(&self, group: &str) {
        self.rebalance_service.service().request(group);
        self.rebalance_service.wakeup();
    }

    /// Has all routes fetched again soon because a broker could not be reached, which may have left
    /// them; at most once in a while, however many requests fail.
    pub(crate) fn broker_failed(&self) {
        let mut next = self.next_refresh_after_failure.lock();
        if now() < *next {
            return;
        }
        *next = add(now(), REFRESH_AFTER_FAILURE);
        drop(next);
        self.refresh_routes_soon();
    }

    /// Has all routes fetched again soon.
    pub(crate) fn refresh_routes_soon(&self) {
        self.topic_route_service.wakeup();
    }

    /// Replaces the name servers by those of the user, who is not overruled by an answer to the
    /// question for name servers.
    pub(crate) fn update_name_server_address_list(&self, addrs: Vec<String>) {
        match &self.name_server_address_service {
            Some(service) => {
                service.service().overrule(addrs);
                // It has nothing more to do, and finds that out.
                service.wakeup();
            }
            None => self.api.remoting().update_name_server_address_list(addrs),
        }
    }

    /// Fetches the route of a topic; see [`TopicRoutes::update_topic_route_info`].
    pub(crate) fn update_topic_route_info(
        &self,
        topic: &str,
        which: RouteOf,
        deadline: Deadline,
    ) -> Result<bool> {
        self.routes.update_topic_route_info(topic, which, deadline)
    }

    /// How long requests without a limit of their own may take.
    pub(crate) fn api_timeout(&self) -> Duration {
        self.api.timeout()
    }
}

impl fmt::Debug for MQClientInstance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MQClientInstance")
            .field("client_id", &self.client_id)
            .field("producers", &self.producers)
            .field("consumers", &self.consumers)
            .finish_non_exhaustive()
    }
}

fn handle<S: ServiceThread>(service: S) -> ServiceHandle<S> {
    ServiceHandle::new(Arc::new(service))
}

/// A broker that is connected again may have forgotten this client: it is told, and the groups are
/// looked at (Java `enableHeartbeatChannelEventListener`, on by default, also at the first connect).
#[derive(Debug)]
struct HeartbeatOnConnect {
    brokers: Arc<BrokerAddressTable>,
    known: Mutex<HashSet<String>>,
    heartbeats: Arc<HeartbeatSender>,
    rebalance_service: Arc<ServiceHandle<RebalanceService>>,
}

impl ChannelEventListener for HeartbeatOnConnect {
    fn on_channel_active(&self, addr: &str) {
        // Name servers get no heartbeats, nor does a broker's VIP channel.
        if !self.brokers.contains_address(addr) {
            return;
        }
        self.heartbeats.begin_heartbeat_to_connected_broker(addr);
        if self.known.lock().insert(addr.to_owned()) {
            return;
        }
        self.rebalance_service.service().request_all();
        self.rebalance_service.wakeup();
    }

    fn on_channel_closed(&self, _addr: &str) {}
}
