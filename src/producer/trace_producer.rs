//! The producer that carries traces away, of a producer or of a consumer.

use std::time::Duration;

use rocketmq_protocol::Message;

use super::async_send::Destination;
use super::attempts::used_up;
use super::default_mq_producer_builder::DefaultMQProducerBuilder;
use super::default_mq_producer_impl::{DefaultMQProducerImpl, Outgoing};
use crate::client::{Client, MQClientManager};
use crate::client_config::ClientConfig;
use crate::error::{Error, Result};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Deadline, Mutex};
use crate::trace::{AsyncTraceDispatcher, MAX_MSG_SIZE, TraceConfig, TraceFlight, TraceSender};

const GROUP_NAME_PREFIX: &str = "_INNER_TRACE_PRODUCER";
const TRACE_INSTANCE_NAME: &str = "PID_CLIENT_INNER_TRACE_PRODUCER";
const SEND_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest instance name; behind it there is room for a number.
const NAME_MAX_LENGTH: usize = 240;

/// Whose messages are told of (Java `TraceDispatcher.Type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TraceOf {
    Produce,
    Consume,
}

impl TraceOf {
    const fn name(self) -> &'static str {
        match self {
            Self::Produce => "PRODUCE",
            Self::Consume => "CONSUME",
        }
    }
}

/// The dispatcher of a client whose traces are enabled. Its group is the one that brokers know.
///
/// The producer it sends with has the client's name servers, RPC hook and proxies, and an instance for
/// all trace producers with these, beside those of other clients. It has no hooks and is traced by
/// nobody.
///
/// # Java
/// `AsyncTraceDispatcher#getAndCreateTraceProducer` and `#start`. There a message is tried once, here
/// as often as by any producer; and of trace producers with different settings the first one's count
/// for all.
///
/// # Errors
/// [`InvalidConfig`](crate::Error::InvalidConfig) when the group is too long for the group of traces
/// that is made of it.
pub(crate) fn trace_dispatcher(
    of: TraceOf,
    group: &str,
    config: &TraceConfig,
    client_config: &ClientConfig,
    manager: &MQClientManager,
) -> Result<Arc<AsyncTraceDispatcher>> {
    static COUNTER: AtomicUsize = AtomicUsize::new(0);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed) + 1;
    let sender = TraceProducer {
        group: format!("{GROUP_NAME_PREFIX}-{group}-{}-{number}", of.name()),
        number,
        client_config: own_config(client_config),
        manager: manager.clone(),
        life: Mutex::new(Life::New),
    };
    // What is wrong is said now, not at the start.
    sender.make(&sender.shared_name())?;
    let plain = client_config.namespace.unwrap(group);
    let dispatcher = AsyncTraceDispatcher::new(&plain, config.clone(), Arc::new(sender));
    Ok(Arc::new(dispatcher))
}

/// What a trace producer has of its client: not the times, which matter to consumers only, nor what is
/// of the client's own topics.
fn own_config(of: &ClientConfig) -> ClientConfig {
    ClientConfig {
        namesrv_addr: of.namesrv_addr.clone(),
        namesrv_domain: of.namesrv_domain.clone(),
        namesrv_domain_subgroup: of.namesrv_domain_subgroup.clone(),
        namespace_v2: of.namespace_v2.clone(),
        language: of.language,
        serialize_type: of.serialize_type.clone(),
        rpc_hook: of.rpc_hook.clone(),
        zone_name: of.zone_name.clone(),
        zone_mode: of.zone_mode.clone(),
        socks_proxy_config: of.socks_proxy_config.clone(),
        client_ip: of.client_ip,
        unit_name: of.unit_name.clone(),
        ..ClientConfig::default()
    }
}

struct TraceProducer {
    group: String,
    number: usize,
    client_config: ClientConfig,
    manager: MQClientManager,
    life: Mutex<Life>,
}

enum Life {
    New,
    Started(Arc<DefaultMQProducerImpl>),
    Ended,
}

impl TraceProducer {
    /// The name of the instance for all trace producers with the same settings.
    fn shared_name(&self) -> String {
        let config = &self.client_config;
        let servers = match &config.namesrv_domain {
            Some(domain) if config.namesrv_addr.is_empty() => domain.clone(),
            _ => config.namesrv_addr.join(";"),
        };
        let mut name = format!("{TRACE_INSTANCE_NAME}_{servers}");
        while name.len() > NAME_MAX_LENGTH {
            name.pop();
        }
        name
    }

    fn make(&self, instance_name: &str) -> Result<DefaultMQProducerImpl> {
        let config = ClientConfig {
            instance_name: Some(instance_name.to_owned()),
            ..self.client_config.clone()
        };
        DefaultMQProducerBuilder::new(self.group.clone())
            .with_client(config, &self.manager)
            .send_msg_timeout(SEND_TIMEOUT)
            .max_message_size(MAX_MSG_SIZE)
            .build_impl()
    }

    fn started(&self) -> Option<Arc<DefaultMQProducerImpl>> {
        match &*self.life.lock() {
            Life::Started(producer) => Some(Arc::clone(producer)),
            Life::New | Life::Ended => None,
        }
    }
}

impl TraceSender for TraceProducer {
    fn start(&self) -> Result<()> {
        let mut life = self.life.lock();
        if !matches!(*life, Life::New) {
            return Ok(());
        }
        let shared = self.shared_name();
        let mut producer = Arc::new(self.make(&shared)?);
        let mut started = producer.start();
        if let Err(Error::InvalidConfig { .. }) = started {
            // Of other settings, another hook for instance.
            let own = format!("{shared}#{}", self.number);
            producer = Arc::new(self.make(&own)?);
            started = producer.start();
        }
        started?;
        *life = Life::Started(producer);
        Ok(())
    }

    fn send(&self, message: Message, timeout: Duration, flight: TraceFlight) {
        let Some(producer) = self.started() else {
            return flight.end(Err(&used_up(message.topic(), timeout)));
        };
        let what = Outgoing::One(&message);
        match producer.send_async(&what, Destination::Any, timeout) {
            Ok((send, held)) => {
                let callback = Box::new(move |outcome: Result<_>| {
                    flight.end(outcome.as_ref().map(|_| ()));
                });
                send.begin(held.until(&producer, callback));
            }
            Err(error) => flight.end(Err(&error)),
        }
    }

    fn end(&self, deadline: Deadline) -> bool {
        let before = std::mem::replace(&mut *self.life.lock(), Life::Ended);
        match before {
            Life::Started(producer) => {
                let before = producer.begin_end();
                producer.end(before, deadline).threads_joined
            }
            Life::New | Life::Ended => true,
        }
    }
}
