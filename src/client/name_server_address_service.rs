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

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::remoting::{EventLoop, MioRemotingClient};
    use crate::service::{JoinOutcome, ServiceHandle, ThreadPool};
    use crate::sync::channel::{Receiver, Sender, bounded};
    use crate::sync::thread;

    const GENEROUS: Duration = Duration::from_secs(30);

    /// Gives the answers in turn, the last one for ever, and says how many it has given.
    fn serve(listener: TcpListener, answers: Vec<&'static str>, given: Sender<usize>) {
        for (number, stream) in listener.incoming().map_while(Result::ok).enumerate() {
            let mut stream: TcpStream = stream;
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                if stream.read(&mut byte).unwrap_or(0) == 0 {
                    return;
                }
                request.push(byte[0]);
            }
            let answer = answers[number.min(answers.len() - 1)];
            let _ = stream.write_all(answer.as_bytes());
            drop(stream);
            if given.send(number + 1).is_err() {
                return;
            }
        }
    }

    fn service(answers: Vec<&'static str>) -> (NameServerAddressService, Receiver<usize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let config = ClientConfig {
            namesrv_addr: Vec::new(),
            namesrv_domain: Some(listener.local_addr().unwrap().to_string()),
            ..ClientConfig::default()
        };
        let (given, asked) = bounded(0);
        thread::spawn("http", move || serve(listener, answers, given)).unwrap();
        let event_loop = Arc::new(EventLoop::start("test").unwrap());
        let executor = Arc::new(ThreadPool::new("test", 1));
        let remoting = MioRemotingClient::new(event_loop, executor, &config);
        let api = Arc::new(MQClientApi::new(remoting, GENEROUS, false));
        let service = NameServerAddressService {
            second: Duration::from_millis(1),
            period: Duration::from_millis(1),
            ..NameServerAddressService::new(api, TopAddressing::of(&config).unwrap())
        };
        (service, asked)
    }

    #[test]
    fn the_last_good_answer_is_used() {
        let (service, asked) = service(vec![
            "HTTP/1.0 200 OK\r\n\r\na:1",
            "HTTP/1.0 200 OK\r\n\r\nc:1;b:1",
            "HTTP/1.0 200 OK\r\n\r\nnot an address",
            "HTTP/1.0 500 Oh\r\n\r\nd:1\n",
        ]);
        let handle = ServiceHandle::new(Arc::new(service));
        handle.start().unwrap();
        handle.service().wait_for_first_answer();
        assert_eq!(handle.service().state.lock().list, ["a:1"]);
        while asked.recv_timeout(GENEROUS).unwrap() < 6 {}
        assert_eq!(handle.service().state.lock().list, ["b:1", "c:1"]);
        drop(asked);
        let ended = handle.shutdown_until(Deadline::after(GENEROUS));
        assert_eq!(ended, JoinOutcome::Joined);
    }

    #[test]
    fn after_the_users_list_no_answer_counts() {
        let (service, asked) = service(vec!["HTTP/1.0 200 OK\r\n\r\na:1"]);
        let service = Arc::new(service);
        service.overrule(vec!["u:1".to_owned()]);
        let handle = ServiceHandle::new(Arc::clone(&service));
        handle.start().unwrap();
        let ended = handle.shutdown_until(Deadline::after(GENEROUS));
        assert_eq!(ended, JoinOutcome::Joined);
        assert!(asked.try_recv().is_err(), "nobody is asked");

        let this = Arc::clone(&service);
        let late = thread::spawn("late", move || this.ask()).unwrap();
        asked.recv_timeout(GENEROUS).unwrap();
        assert!(late.join_until(Deadline::after(GENEROUS)));
        assert_eq!(
            service.state.lock().list,
            [""; 0],
            "an answer under way is too late"
        );
    }
}
