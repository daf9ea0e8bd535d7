use bytes::Bytes;
use rocketmq_protocol::header::{PullMessageRequestHeader, PullMessageResponseHeader};
use rocketmq_protocol::{RemotingCommand, request_code, response_code};

use super::{MQClientApi, header_of, refusal};
use crate::error::Result;
use crate::sync::{Arc, Deadline};

/// A broker's answer to a pull, on one of the four codes that have a header.
#[derive(Debug)]
pub(crate) struct PullReply {
    /// 0 found, 19 nothing new, 20 nothing that matches, 21 offset moved.
    pub(crate) code: i32,
    pub(crate) header: PullMessageResponseHeader,
    /// Stored messages, one after the other.
    pub(crate) body: Bytes,
}

impl MQClientApi {
    /// Pulls messages; `completion` runs once, with an error for every code but 0, 19, 20 and 21, on the
    /// thread that finds the outcome: it must not block.
    pub(crate) fn pull_message_async(
        &self,
        addr: &str,
        header: &PullMessageRequestHeader,
        deadline: Deadline,
        completion: impl FnOnce(Result<PullReply>) + Send + 'static,
    ) {
        let request = RemotingCommand::request(request_code::PULL_MESSAGE, header);
        let addr: Arc<str> = addr.into();
        let from = Arc::clone(&addr);
        self.remoting
            .invoke_async_in_place(&addr, request, deadline, move |outcome| {
                completion(outcome.and_then(|reply| match reply.code {
                    response_code::SUCCESS
                    | response_code::PULL_NOT_FOUND
                    | response_code::PULL_RETRY_IMMEDIATELY
                    | response_code::PULL_OFFSET_MOVED => Ok(PullReply {
                        code: reply.code,
                        header: header_of(&from, &reply)?,
                        body: reply.body.unwrap_or_default(),
                    }),
                    _ => Err(refusal(&from, reply)),
                }));
            });
    }
}
