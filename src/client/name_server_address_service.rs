//! Keeps asking where the name servers are.

use std::time::Duration;

use super::MQClientApi;
use crate::client_config::ClientConfig;
use crate::remoting::TopAddressing;
use crate::service::{ServiceContext, ServiceThread};
use crate::sync::{Arc, Condvar, Deadline, Mutex};

/// Java `MQClientAPIImpl#fetchNameServerAddr`.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Asks at the start, once more soon after, and then each period (Java
/// `MQClientInstance#startScheduledTask`, 10 s and 120 s).
#[derive(Debug)]
pub(crate) struct NameServerAddressService {
    api: Arc<MQClientApi>,
    addressing: TopAddressing,
    second: Duration,
    period: Duration,
    state: Mutex<State>,
    asked: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Whether the first question was answered, or had no answer.
    asked: bool,
    /// The list in use, as it was answered.
    list: Vec<String>,
    /// Set when the user has given a list: from then on answers do not count.
    overruled: bool,
}

impl NameServerAddressService {
    pub(crate) fn new(api: Arc<MQClientApi>, addressing: TopAddressing) -> Self {
        Self {
            api,
            addressing,
            second: Duration::from_secs(10),
            period: Duration::from_secs(120),
            state: Mutex::new(State::default()),
            asked: Condvar::new(),
        }
    }

    /// Waits until the first question is over, with whatever outcome, and not for longer than that
    /// may take.
    pub(crate) fn wait_for_first_answer(&self) {
        let deadline = Deadline::after(TIMEOUT);
        let mut state = self.state.lock();
        while !state.asked {
            if self.asked.wait_until(&mut state, deadline) {
                return;
            }
        }
    }

    /// Sets the list, and ends the asking.
    pub(crate) fn overrule(&self, addrs: Vec<String>) {
        let mut state = self.state.lock();
        state.overruled = true;
        self.api.remoting().update_name_server_address_list(addrs);
    }

    fn ask(&self) {
        let answer = self
            .addressing
            .fetch(Deadline::after(TIMEOUT))
            .map_err(|error| error.to_string())
            .and_then(|text| {
                ClientConfig::name_servers_of(&text).map_err(|error| error.to_string())
            });
        let mut state = self.state.lock();
        match answer {
            Ok(list) if !state.overruled && state.list != list => {
                log::info!("name servers by {}: {list:?}", self.addressing.url());
                // Under the lock, so that the user's list, if it comes now, comes last.
                self.api
                    .remoting()
                    .update_name_server_address_list(list.clone());
                state.list = list;
            }
            Ok(_) => {}
            Err(error) => log::warn!("asking {}: {error}", self.addressing.url()),
        }
        state.asked = true;
        drop(state);
        self.asked.notify_all();
    }
}

impl ServiceThread for NameServerAddressService {
    fn service_name(&self) -> String {
        "NameServerAddressService".to_owned()
    }

    fn run(&self, context: &ServiceContext) {
        let mut pause = self.second;
        while !context.is_stopped() && !self.state.lock().overruled {
            self.ask();
            context.wait_for_running(pause);
            pause = self.period;
        }
    }
}
