use bytes::Bytes;
use rocketmq_protocol::header::{
    ConsumerSendMsgBackRequestHeader, SendMessageRequestHeader, SendMessageResponseHeader,
};
use rocketmq_protocol::{RemotingCommand, request_code, response_code};

use super::reply::send_code;
use super::{MQClientApi, done, header_of, refusal};
use crate::error::Result;
use crate::sync::{Arc, Deadline};

/// What a broker says of a message that it stored.
#[derive(Debug, Clone)]
pub(crate) struct SendReply {
    /// 0, or one of the three codes that tell how safely it is stored.
    pub(crate) code: i32,
    pub(crate) header: SendMessageResponseHeader,
    pub(crate) region_id: Option<String>,
    pub(crate) trace_on: bool,
}

/// One attempt to send a message: what all its attempts have in common, and where this one goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SendRequest<'a> {
    /// Its own queue and broker do not count.
    pub(crate) header: &'a SendMessageRequestHeader,
    pub(crate) queue_id: i32,
    pub(crate) broker_name: &'a str,
    pub(crate) body: &'a Bytes,
}

impl SendRequest<'_> {
    fn command(&self) -> RemotingCommand {
        let code = if self.header.batch == Some(true) {
            request_code::SEND_BATCH_MESSAGE
        } else {
            send_code(self.header)
        };
        let mut request =
            RemotingCommand::request_without_header(code).with_body(self.body.clone());
        let fields = &mut request.ext_fields;
        self.header
            .encode_v2_for(self.queue_id, self.broker_name, fields);
        request
    }
}

impl MQClientApi {
    /// Sends a message with the short header names, as Java does by default; a batch under its own
    /// code.
    pub(crate) fn send_message(
        &self,
        addr: &str,
        message: &SendRequest<'_>,
        deadline: Deadline,
    ) -> Result<SendReply> {
        let addr = &*self.vip(addr);
        let request = message.command();
        let reply = self.remoting.invoke_sync(addr, request, deadline)?;
        send_reply(addr, reply)
    }

    /// [`send_message`](Self::send_message) without waiting; `completion` runs once, on the thread that
    /// finds the outcome: it must not block.
    pub(crate) fn send_message_async(
        &self,
        addr: &Arc<str>,
        message: &SendRequest<'_>,
        deadline: Deadline,
        completion: impl FnOnce(Result<SendReply>) + Send + 'static,
    ) {
        let addr = self.vip_of_shared(addr);
        let from = Arc::clone(&addr);
        let request = message.command();
        self.remoting
            .invoke_async_in_place(&addr, request, deadline, move |outcome| {
                completion(outcome.and_then(|reply| send_reply(&from, reply)));
            });
    }

    /// [`send_message`](Self::send_message) without an answer.
    pub(crate) fn send_message_oneway(&self, addr: &str, message: &SendRequest<'_>) -> Result<()> {
        let request = message.command();
        self.remoting.invoke_oneway(&self.vip(addr), request)
    }

    /// Gives a message back to its broker for a later try, and waits until the broker has it.
    pub(crate) fn consumer_send_message_back(
        &self,
        addr: &str,
        header: &ConsumerSendMsgBackRequestHeader,
        deadline: Deadline,
    ) -> Result<()> {
        let request = RemotingCommand::request(request_code::CONSUMER_SEND_MSG_BACK, header);
        let addr = &*self.vip(addr);
        done(addr, self.remoting.invoke_sync(addr, request, deadline)?)
    }

    /// The same without waiting; `callback` runs once.
    pub(crate) fn consumer_send_message_back_async(
        &self,
        addr: &str,
        header: &ConsumerSendMsgBackRequestHeader,
        deadline: Deadline,
        callback: impl FnOnce(Result<()>) + Send + 'static,
    ) {
        let request = RemotingCommand::request(request_code::CONSUMER_SEND_MSG_BACK, header);
        self.ask_async(addr, request, deadline, done, callback);
    }
}

fn send_reply(addr: &str, reply: RemotingCommand) -> Result<SendReply> {
    match reply.code {
        response_code::SUCCESS
        | response_code::FLUSH_DISK_TIMEOUT
        | response_code::FLUSH_SLAVE_TIMEOUT
        | response_code::SLAVE_NOT_AVAILABLE => Ok(SendReply {
            code: reply.code,
            header: header_of(addr, &reply)?,
            region_id: reply
                .ext_fields
                .get("MSG_REGION")
                .filter(|region| !region.is_empty())
                .map(str::to_owned),
            trace_on: reply.ext_fields.get("TRACE_ON") != Some("false"),
        }),
        _ => Err(refusal(addr, reply)),
    }
}
