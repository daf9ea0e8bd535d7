//! Frames over TCP: who is connected, which call waits for which reply.
//!
//! Knows commands, not topics or groups. One [`EventLoop`] serves all connections of a manager: it
//! connects, writes what a calling thread could not write itself, and reads while no caller that waits
//! for a reply does ([`reader_role`]).

#[cfg(not(loom))]
mod acl_client_rpc_hook;
mod channel_table;
#[cfg(not(loom))]
mod connection;
#[cfg(not(loom))]
mod event_loop;
#[cfg(not(loom))]
mod mio_remoting_client;
#[cfg(not(loom))]
mod name_servers;
#[cfg(not(loom))]
mod permits;
mod reader_role;
#[cfg(test)]
#[cfg(unix)]
#[cfg(not(loom))]
mod reader_tests;
#[cfg(test)]
#[cfg(not(loom))]
mod reports;
#[cfg(not(loom))]
mod request_processor;
mod response_future;
#[cfg(not(loom))]
pub(crate) mod rpc_hook;
#[cfg(not(loom))]
mod socks5;
#[cfg(not(loom))]
mod top_addressing;

#[cfg(not(loom))]
pub use acl_client_rpc_hook::AclClientRPCHook;
#[cfg(not(loom))]
pub(crate) use event_loop::EventLoop;
#[cfg(not(loom))]
pub(crate) use mio_remoting_client::{
    ChannelEventListener, MioRemotingClient, PendingCall, not_supported,
};
#[cfg(not(loom))]
pub(crate) use request_processor::RequestProcessor;
#[cfg(not(loom))]
pub(crate) use top_addressing::TopAddressing;
