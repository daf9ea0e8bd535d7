//! Frames over TCP: who is connected, which call waits for which reply.
//!
//! Knows commands, not topics or groups. One [`EventLoop`] serves all connections of a manager; it
//! reads, completes calls, and writes only what a calling thread could not write itself.

mod connection;
mod event_loop;
mod mio_remoting_client;
mod request_processor;
mod response_future;

pub(crate) use event_loop::EventLoop;
pub(crate) use mio_remoting_client::{ChannelEventListener, MioRemotingClient, PendingCall};
pub(crate) use request_processor::RequestProcessor;
