//! Which client uses which instance.

use std::collections::BTreeSet;
use std::fmt;

use super::MQClientInstance;
use super::mq_client_instance::Runtime;
use crate::client_config::ClientConfig;
use crate::error::{Error, Result};
use crate::remoting::EventLoop;
use crate::service::ScheduledService;
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
#[derive(Debug, Clone, Default)]
pub struct MQClientManager {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    entries: Vec<Entry>,
    /// The shared threads, and how many instances use them.
    runtime: Option<(Runtime, usize)>,
}

/// The users are counted here, under the manager's lock, and the instance ends with the last one;
/// the table can hold the instance itself, since nothing is decided by a reference count.
struct Entry {
    config: ClientConfig,
    instance: Arc<MQClientInstance>,
    users: BTreeSet<(Role, String)>,
}

/// In which way a client is in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    Producer,
    Consumer,
}

static GLOBAL: Lazy<MQClientManager> = Lazy::new(MQClientManager::default);

impl MQClientManager {
    /// A manager of its own; its clients share nothing with those of other managers.
    pub fn new() -> Self {
        Self::default()
    }

    /// The manager of the process.
    pub fn global() -> &'static Self {
        &GLOBAL
    }

    /// How many instances there are, each with connections and threads of its own.
    pub fn instance_count(&self) -> usize {
        self.state.lock().entries.len()
    }

    /// Finds or makes the instance for a member of a group, and starts it.
    pub(crate) fn join(
        &self,
        config: &ClientConfig,
        role: Role,
        group: &str,
    ) -> Result<Membership> {
        let user = (role, group.to_owned());
        let mut state = self.state.lock();
        let instance = match state.find(config, &user)? {
            Some(entry) => {
                entry.users.insert(user.clone());
                Arc::clone(&entry.instance)
            }
            None => state.create(config, user.clone())?,
        };
        drop(state);
        let membership = Membership {
            manager: self.clone(),
            instance,
            user,
        };
        if let Err(error) = membership.instance.start() {
            membership.leave(Deadline::after(std::time::Duration::from_secs(1)));
            return Err(error);
        }
        Ok(membership)
    }

    fn leave(
        &self,
        instance: &Arc<MQClientInstance>,
        user: &(Role, String),
        deadline: Deadline,
    ) -> bool {
        let mut state = self.state.lock();
        let Some(at) = state
            .entries
            .iter()
            .position(|e| Arc::ptr_eq(&e.instance, instance))
        else {
            return true;
        };
        let is_last = match state.entries.get_mut(at) {
            Some(entry) => {
                entry.users.remove(user);
                entry.users.is_empty()
            }
            None => false,
        };
        if !is_last {
            return true;
        }
        // From here on a new client gets a new instance; this one is nobody's.
        state.entries.remove(at);
        drop(state);
        let mut joined = instance.shutdown(deadline);
        if let Some(runtime) = self.release_runtime() {
            joined &= runtime.event_loop.shutdown(deadline);
            let timer = runtime.timer.shutdown(deadline);
            joined &= timer == crate::service::JoinOutcome::Joined;
        }
        joined
    }

    /// The shared threads, if nobody uses them any more.
    fn release_runtime(&self) -> Option<Runtime> {
        let mut state = self.state.lock();
        let (_, users) = state.runtime.as_mut()?;
        *users = users.saturating_sub(1);
        if *users > 0 {
            return None;
        }
        state.runtime.take().map(|(runtime, _)| runtime)
    }
}

impl State {
    fn find(&mut self, config: &ClientConfig, user: &(Role, String)) -> Result<Option<&mut Entry>> {
        let Some(name) = config.instance_name.as_deref() else {
            return Ok(self
                .entries
                .iter_mut()
                .find(|entry| entry.config == *config && !entry.users.contains(user)));
        };
        let named = self.entries.iter_mut().find(|entry| {
            entry.config.instance_name.as_deref() == Some(name)
                && entry.config.shares_name_server_with(config)
        });
        match named {
            Some(entry) if entry.config != *config => Err(Error::InvalidConfig {
                problems: vec![format!(
                    "instance name {name:?} is in use by a client with other settings on the same \
                     name server; choose another name or the same settings"
                )],
            }),
            Some(entry) if entry.users.contains(user) => Err(Error::MQClient {
                code: None,
                reason: format!(
                    "group {} has been created before in instance {name:?}; choose another group \
                     or another instance name",
                    user.1
                ),
                source: None,
            }),
            found => Ok(found),
        }
    }

    fn create(
        &mut self,
        config: &ClientConfig,
        user: (Role, String),
    ) -> Result<Arc<MQClientInstance>> {
        let runtime = match &mut self.runtime {
            Some((runtime, users)) => {
                *users += 1;
                runtime.clone()
            }
            None => {
                let runtime = start_runtime()?;
                self.runtime = Some((runtime.clone(), 1));
                runtime
            }
        };
        let client_id = match config.instance_name.as_deref() {
            Some(name) => config.client_id(name),
            None => config.client_id(&unique_instance_name()),
        };
        let instance = MQClientInstance::new(client_id, config, &runtime);
        self.entries.push(Entry {
            config: config.clone(),
            instance: Arc::clone(&instance),
            users: BTreeSet::from([user]),
        });
        Ok(instance)
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.entries.iter().map(|entry| &entry.instance))
            .finish()
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
        event_loop.shutdown(Deadline::after(std::time::Duration::from_secs(1)));
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
    user: (Role, String),
}

impl Membership {
    pub(crate) fn instance(&self) -> &Arc<MQClientInstance> {
        &self.instance
    }

    /// Gives the place up. The last one stops the instance. Returns whether every thread that had
    /// to end did so in time; calling it again does nothing.
    pub(crate) fn leave(&self, deadline: Deadline) -> bool {
        self.manager.leave(&self.instance, &self.user, deadline)
    }
}
