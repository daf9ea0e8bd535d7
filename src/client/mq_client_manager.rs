//! Which client uses which instance.

use std::time::Duration;

use super::MQClientInstance;
use super::mq_client_instance::Runtime;
use crate::client_config::ClientConfig;
use crate::error::{Error, Result};
use crate::remoting::EventLoop;
use crate::service::{Entry, InstanceTable, JoinOutcome, ScheduledService};
use crate::sync::atomic::{AtomicI64, Ordering};
use crate::sync::{Arc, Deadline, Lazy, Mutex, system_time_millis};

/// Shares instances, and so connections, threads and client ids, among the clients of a process
/// (Java `MQClientManager`).
///
/// Clients whose settings are equal share one instance. Two members of one group never share: a
/// broker tells members apart by client id, so the second gets an instance of its own. A client with
/// an explicit instance name shares only with clients of the same name.
///
/// All clients use [`MQClientManager::global`] unless their builder is given another one. Clones are
/// the same manager. Its threads start with the first client and end with the last.
#[derive(Debug, Clone)]
pub struct MQClientManager {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    instances: InstanceTable<ClientConfig, MQClientInstance, User>,
    /// The shared threads, and how many instances use them. Locked after the instances.
    runtime: Mutex<Option<(Runtime, usize)>>,
}

/// In which way a client is in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    Producer,
    Consumer,
}

/// A member of a group.
type User = (Role, String);

static GLOBAL: Lazy<MQClientManager> = Lazy::new(MQClientManager::new);

impl Default for MQClientManager {
    fn default() -> Self {
        Self::new()
    }
}

impl MQClientManager {
    /// A manager of its own; its clients share nothing with those of other managers.
    pub fn new() -> Self {
        let inner = Inner {
            instances: InstanceTable::new(),
            runtime: Mutex::new(None),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// The manager of the process.
    pub fn global() -> &'static Self {
        &GLOBAL
    }

    /// How many instances there are, each with connections and threads of its own.
    pub fn instance_count(&self) -> usize {
        self.inner.instances.len()
    }

    /// Finds or makes the instance for a member of a group, and starts it.
    pub(crate) fn join(
        &self,
        config: &ClientConfig,
        role: Role,
        group: &str,
    ) -> Result<Membership> {
        let user = (role, group.to_owned());
        let instance = self.inner.instances.join(
            user.clone(),
            |entries| choose(entries, config, &user),
            || Ok((config.clone(), self.inner.make(config)?)),
        )?;
        let membership = Membership {
            manager: self.clone(),
            instance,
            user,
        };
        if let Err(error) = membership.instance.start() {
            membership.leave(Deadline::after(UNDO_TIMEOUT));
            return Err(error);
        }
        Ok(membership)
    }

    fn leave(&self, instance: &Arc<MQClientInstance>, user: &User, deadline: Deadline) -> bool {
        if !self.inner.instances.leave(instance, user) {
            return true;
        }
        let mut joined = instance.shutdown(deadline);
        if let Some(runtime) = self.inner.release_runtime() {
            joined &= runtime.event_loop.shutdown(deadline);
            joined &= runtime.timer.shutdown(deadline) == JoinOutcome::Joined;
        }
        joined
    }
}

/// How long threads that a failed start has started are waited for.
const UNDO_TIMEOUT: Duration = Duration::from_secs(1);

/// The instance that a member may share. Two members of one group never share one: brokers tell
/// members apart by client id.
fn choose(
    entries: &[Entry<ClientConfig, MQClientInstance, User>],
    config: &ClientConfig,
    user: &User,
) -> Result<Option<usize>> {
    let Some(name) = config.instance_name.as_deref() else {
        return Ok(entries
            .iter()
            .position(|entry| entry.config == *config && !entry.has_user(user)));
    };
    let named = entries.iter().position(|entry| {
        entry.config.instance_name.as_deref() == Some(name)
            && entry.config.shares_name_server_with(config)
    });
    match named.and_then(|at| entries.get(at)) {
        Some(entry) if entry.config != *config => Err(Error::InvalidConfig {
            problems: vec![format!(
                "instance name {name:?} is in use by a client with other settings on the same \
                 name server; choose another name or the same settings"
            )],
        }),
        Some(entry) if entry.has_user(user) => Err(Error::MQClient {
            code: None,
            reason: format!(
                "group {} has been created before in instance {name:?}; choose another group or \
                 another instance name",
                user.1
            ),
            source: None,
        }),
        _ => Ok(named),
    }
}

impl Inner {
    fn make(&self, config: &ClientConfig) -> Result<Arc<MQClientInstance>> {
        let runtime = self.acquire_runtime()?;
        let client_id = match config.instance_name.as_deref() {
            Some(name) => config.client_id(name),
            None => config.client_id(&unique_instance_name()),
        };
        Ok(MQClientInstance::new(client_id, config, &runtime))
    }

    fn acquire_runtime(&self) -> Result<Runtime> {
        let mut place = self.runtime.lock();
        if let Some((runtime, users)) = place.as_mut() {
            *users += 1;
            return Ok(runtime.clone());
        }
        let runtime = start_runtime()?;
        *place = Some((runtime.clone(), 1));
        Ok(runtime)
    }

    /// The shared threads, if nobody uses them any more.
    fn release_runtime(&self) -> Option<Runtime> {
        let mut place = self.runtime.lock();
        let (_, users) = place.as_mut()?;
        *users = users.saturating_sub(1);
        if *users > 0 {
            return None;
        }
        place.take().map(|(runtime, _)| runtime)
    }
}

fn start_runtime() -> Result<Runtime> {
    let failed = |error: std::io::Error| Error::MQClient {
        code: None,
        reason: format!("the client cannot start its event loop: {error}"),
        source: None,
    };
    let event_loop = Arc::new(EventLoop::start("MioClientSelector").map_err(failed)?);
    let timer = Arc::new(ScheduledService::new("ClientTimer"));
    if let Err(error) = timer.start() {
        event_loop.shutdown(Deadline::after(UNDO_TIMEOUT));
        return Err(failed(error));
    }
    Ok(Runtime { event_loop, timer })
}

/// `pid#nanotime` (Java `ClientConfig#changeInstanceNameToPID`), never the same twice in a process.
fn unique_instance_name() -> String {
    static LAST: AtomicI64 = AtomicI64::new(0);
    let now = system_time_millis().saturating_mul(1_000_000);
    let last = LAST.fetch_max(now, Ordering::Relaxed).max(now);
    let unique = LAST.fetch_add(1, Ordering::Relaxed).max(last);
    format!("{}#{unique}", std::process::id())
}

/// One member's place in its instance.
#[derive(Debug)]
pub(crate) struct Membership {
    manager: MQClientManager,
    instance: Arc<MQClientInstance>,
    user: User,
}

impl Membership {
    pub(crate) fn instance(&self) -> &Arc<MQClientInstance> {
        &self.instance
    }

    /// Replaces the name servers of the instance. Who comes later shares the instance only with the
    /// new list.
    pub(crate) fn update_name_server_address_list(&self, addrs: Vec<String>) {
        let instances = &self.manager.inner.instances;
        instances.change_config(&self.instance, |config| {
            config.namesrv_addr.clone_from(&addrs);
            self.instance.update_name_server_address_list(addrs);
        });
    }

    /// Gives the place up. The last one stops the instance. Returns whether every thread that had
    /// to end did so in time; calling it again does nothing.
    pub(crate) fn leave(&self, deadline: Deadline) -> bool {
        self.manager.leave(&self.instance, &self.user, deadline)
    }
}
