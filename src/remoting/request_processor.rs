use std::fmt;

use rocketmq_protocol::RemotingCommand;

/// Answers requests that a server sends over a client's connection (Java `NettyRequestProcessor`).
///
/// Runs on the pool for replies and requests, never on the event loop. A user's callback that it
/// calls may block; other requests then go on in the pool's other threads.
pub(crate) trait RequestProcessor: Send + Sync + fmt::Debug {
    /// Serves one request from `addr`. `None` writes no answer; a one-way request gets none in any
    /// case.
    fn process_request(&self, addr: &str, request: RemotingCommand) -> Option<RemotingCommand>;
}
