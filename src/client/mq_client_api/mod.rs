//! Typed requests, one file a family (Java `MQClientAPIImpl`).

mod admin;
mod heartbeat;
mod offset;
mod pull;
mod query;
mod reply;
mod route;
mod send;
mod transaction;

use std::borrow::Cow;
use std::time::Duration;

pub(crate) use offset::{QueueAt, SearchFor};
pub(crate) use pull::PullReply;
use rocketmq_protocol::header::CommandCustomHeader;
use rocketmq_protocol::{RemotingCommand, response_code};
pub(crate) use send::{SendReply, SendRequest};
pub(crate) use transaction::RecallReply;

use crate::client_config::vip_address;
use crate::error::{Error, Result};
use crate::remoting::MioRemotingClient;
use crate::sync::{Arc, Deadline};

/// Requests to servers by address.
#[derive(Debug)]
pub(crate) struct MQClientApi {
    remoting: MioRemotingClient,
    /// For requests whose caller has no time limit of its own.
    timeout: Duration,
    vip_channel_enabled: bool,
}

impl MQClientApi {
    pub(crate) fn new(
        remoting: MioRemotingClient,
        timeout: Duration,
        vip_channel_enabled: bool,
    ) -> Self {
        Self {
            remoting,
            timeout,
            vip_channel_enabled,
        }
    }

    /// Where sends, offsets and administration go: a broker's VIP channel, if that is wanted.
    pub(crate) fn vip<'a>(&self, addr: &'a str) -> Cow<'a, str> {
        if self.vip_channel_enabled {
            vip_address(addr)
        } else {
            Cow::Borrowed(addr)
        }
    }

    /// [`vip`](Self::vip) of a text that is shared.
    fn vip_of_shared(&self, addr: &Arc<str>) -> Arc<str> {
        match self.vip(addr) {
            Cow::Borrowed(_) => Arc::clone(addr),
            Cow::Owned(other) => other.into(),
        }
    }

    /// Lets go of a broker that is not needed any more, on all its ports.
    pub(crate) fn release(&self, addr: &str) {
        self.remoting.release(addr);
        self.remoting.release(&self.vip(addr));
    }

    /// Asks where [`vip`](Self::vip) says, without waiting; `callback` runs once, with what `read` makes
    /// of the reply from that address.
    fn ask_async<T: 'static>(
        &self,
        addr: &str,
        request: RemotingCommand,
        deadline: Deadline,
        read: impl FnOnce(&str, RemotingCommand) -> Result<T> + Send + 'static,
        callback: impl FnOnce(Result<T>) + Send + 'static,
    ) {
        let addr = self.vip(addr);
        let from = addr.clone().into_owned();
        self.remoting
            .invoke_async(&addr, request, deadline, move |outcome| {
                callback(outcome.and_then(|reply| read(&from, reply)));
            });
    }

    pub(crate) fn remoting(&self) -> &MioRemotingClient {
        &self.remoting
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }
}

/// The reply itself if its code is success, else the broker's error.
fn expect_success(addr: &str, reply: RemotingCommand) -> Result<RemotingCommand> {
    if reply.code == response_code::SUCCESS {
        Ok(reply)
    } else {
        Err(refusal(addr, reply))
    }
}

/// The same of a reply whose content is not wanted.
fn done(addr: &str, reply: RemotingCommand) -> Result<()> {
    expect_success(addr, reply).map(|_| ())
}

fn refusal(addr: &str, reply: RemotingCommand) -> Error {
    Error::MQBroker {
        code: reply.code,
        remark: reply.remark.unwrap_or_default(),
        broker_addr: addr.to_owned(),
    }
}

fn header_of<H: CommandCustomHeader>(addr: &str, reply: &RemotingCommand) -> Result<H> {
    reply
        .decode_header()
        .map_err(|error| Error::command(addr, error))
}
