//! What the life of a producer and that of a consumer have in common: joining an instance once,
//! leaving it once, and the handles that see to it.

use std::time::Duration;

use super::{MQClientInstance, MQClientManager, Membership, Role, ShutdownReport, Termination};
use crate::client_config::ClientConfig;
use crate::error::{Error, Result};
use crate::service::{AtomicServiceState, ServiceState};
use crate::sync::{Arc, Deadline, Mutex, thread};

/// How long a start that a shutdown overtook waits for the threads it started.
const UNDO_TIMEOUT: Duration = Duration::from_secs(1);
const SHUTDOWN_ON_DROP: Duration = Duration::from_secs(1);
const A_LONG_TIME: Duration = Duration::from_secs(3600);

/// One client's place in its group and, between start and end, in an instance.
#[derive(Debug)]
pub(crate) struct Member {
    role: Role,
    /// As brokers know it, namespace included.
    group: String,
    client_config: ClientConfig,
    manager: MQClientManager,
    state: AtomicServiceState,
    membership: Mutex<Option<Arc<Membership>>>,
    termination: Arc<Termination>,
}

impl Member {
    pub(crate) fn new(
        role: Role,
        group: String,
        client_config: ClientConfig,
        manager: MQClientManager,
    ) -> Self {
        Self {
            role,
            group,
            client_config,
            manager,
            state: AtomicServiceState::new(),
            membership: Mutex::new(None),
            termination: Termination::new(),
        }
    }

    pub(crate) fn client_config(&self) -> &ClientConfig {
        &self.client_config
    }

    pub(crate) fn group(&self) -> &str {
        &self.group
    }

    pub(crate) fn state(&self) -> ServiceState {
        self.state.get()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.state.is_running()
    }

    /// The name servers that it was built with.
    pub(crate) fn name_servers(&self) -> &[String] {
        &self.client_config.namesrv_addr
    }

    pub(crate) fn client_id(&self) -> Option<String> {
        self.instance()
            .map(|instance| instance.client_id().to_owned())
    }

    /// The instance, from the start until the end has taken it.
    pub(crate) fn instance(&self) -> Option<Arc<MQClientInstance>> {
        let membership = self.membership.lock();
        let instance = membership.as_ref().map(|place| place.instance());
        instance.map(Arc::clone)
    }

    /// The instance of a client that is running.
    ///
    /// # Errors
    /// [`Error::ServiceState`] in every other state.
    pub(crate) fn running_instance(&self, operation: &str) -> Result<Arc<MQClientInstance>> {
        match self.instance() {
            Some(instance) if self.is_running() => Ok(instance),
            _ => Err(self.wrong_state(operation, self.state())),
        }
    }

    /// The instance as long as there is one: work that was begun goes on while the client ends.
    ///
    /// # Errors
    /// [`Error::ServiceState`] before the start and after the end.
    pub(crate) fn running_or_ending_instance(
        &self,
        operation: &str,
    ) -> Result<Arc<MQClientInstance>> {
        let instance = self.instance();
        instance.ok_or_else(|| self.wrong_state(operation, self.state()))
    }

    pub(crate) fn update_name_server_address_list(&self, list: &str) -> Result<()> {
        let addrs = ClientConfig::name_servers_of(list)?;
        let membership = self.membership.lock();
        match membership.as_ref() {
            Some(membership) if self.is_running() => {
                membership.update_name_server_address_list(addrs);
                Ok(())
            }
            _ => Err(self.wrong_state("updating the name servers of", self.state())),
        }
    }

    pub(crate) fn wrong_state(&self, operation: &str, state: ServiceState) -> Error {
        let role = match self.role {
            Role::Producer => "producer",
            Role::Consumer => "consumer",
        };
        Error::ServiceState {
            operation: format!("{operation} {role} {}", self.group),
            state,
        }
    }

    /// Joins an instance and has `enter` put the client into its tables, under the lock that an end
    /// waits for: one that comes from then on finds what there is to end. Exactly one call does so,
    /// and none after an end has begun.
    pub(crate) fn start(
        &self,
        enter: impl FnOnce(&MQClientInstance),
    ) -> Result<Arc<MQClientInstance>> {
        let starting = |state| self.wrong_state("starting", state);
        self.state.begin_start().map_err(starting)?;
        let joined = self
            .manager
            .join(&self.client_config, self.role, &self.group)?;
        let instance = Arc::clone(joined.instance());
        let mut place = self.membership.lock();
        if let Err(state) = self.state.finish_start() {
            drop(place);
            joined.leave(Deadline::after(UNDO_TIMEOUT));
            return Err(starting(state));
        }
        enter(&instance);
        *place = Some(Arc::new(joined));
        drop(place);
        Ok(instance)
    }

    /// Ends the client's life as far as others see it, and returns the state before.
    pub(crate) fn begin_end(&self) -> ServiceState {
        self.state.begin_shutdown()
    }

    /// The place in the instance, for the end to give up; `None` if it was never taken.
    pub(crate) fn take_membership(&self) -> Option<Arc<Membership>> {
        self.membership.lock().take()
    }
}

/// What a [`Handle`] ends.
pub(crate) trait Client: Send + Sync + 'static {
    fn member(&self) -> &Member;

    /// Takes no new work, without waiting, and returns the state before.
    fn begin_end(&self) -> ServiceState {
        self.member().begin_end()
    }

    /// The rest of the end, until the deadline.
    fn end(&self, before: ServiceState, deadline: Deadline) -> ShutdownReport;
}

/// What the clones of a user's handle share; when the last one goes, the client ends.
#[derive(Debug)]
pub(crate) struct Handle<C: Client> {
    client: Arc<C>,
}

impl<C: Client> Handle<C> {
    pub(crate) fn new(client: C) -> Arc<Self> {
        Arc::new(Self {
            client: Arc::new(client),
        })
    }

    pub(crate) fn client(&self) -> &Arc<C> {
        &self.client
    }

    pub(crate) fn shutdown(&self, timeout: Duration) -> ShutdownReport {
        let client = Arc::clone(&self.client);
        self.client.member().termination.shut_down(
            timeout,
            || self.client.begin_end(),
            move |before, deadline| client.end(before, deadline),
        )
    }

    pub(crate) fn await_termination(&self, timeout: Duration) -> Option<ShutdownReport> {
        let termination = &self.client.member().termination;
        termination.wait_for_end(Deadline::after(timeout))
    }

    /// Waits for the end, however long the client lives; `None` on a thread of this library.
    pub(crate) fn wait(&self) -> Option<ShutdownReport> {
        loop {
            let report = self.await_termination(A_LONG_TIME);
            if report.is_some() || thread::is_library_thread() {
                return report;
            }
        }
    }
}

impl<C: Client> Drop for Handle<C> {
    fn drop(&mut self) {
        let member = self.client.member();
        if member.is_running() {
            log::warn!(
                "{:?} group {}: its last handle was dropped without a shutdown, so it ends now",
                member.role,
                member.group
            );
        }
        self.shutdown(SHUTDOWN_ON_DROP);
    }
}
