use rocketmq_protocol::header::{
    QueryMessageRequestHeader, QueryMessageResponseHeader, UNIQUE_KEY_QUERY,
    ViewMessageRequestHeader,
};
use rocketmq_protocol::{
    CodecError, MessageExt, RemotingCommand, StoredMessages, request_code, response_code,
};

use super::{MQClientApi, expect_success, header_of};
use crate::client::QueryResult;
use crate::error::{Error, Result};
use crate::sync::Deadline;

impl MQClientApi {
    /// What a broker has under a key; `None` when that is nothing. `callback` runs once.
    pub(crate) fn query_message_async(
        &self,
        addr: &str,
        header: &QueryMessageRequestHeader,
        unique: bool,
        deadline: Deadline,
        callback: impl FnOnce(Result<Option<QueryResult>>) + Send + 'static,
    ) {
        let mut request = RemotingCommand::request(request_code::QUERY_MESSAGE, header);
        request.ext_fields.set(UNIQUE_KEY_QUERY, unique.to_string());
        self.ask_async(addr, request, deadline, found_in, callback);
    }

    /// The message at an offset of a broker's log.
    pub(crate) fn view_message(
        &self,
        addr: &str,
        topic: &str,
        offset: i64,
        deadline: Deadline,
    ) -> Result<MessageExt> {
        let header = ViewMessageRequestHeader {
            topic: Some(topic.to_owned()),
            offset,
        };
        let request = RemotingCommand::request(request_code::VIEW_MESSAGE_BY_ID, &header);
        let addr = &*self.vip(addr);
        let reply = self.remoting.invoke_sync(addr, request, deadline)?;
        let reply = expect_success(addr, reply)?;
        let mut messages = StoredMessages::new(reply.body.unwrap_or_default());
        let message = messages.next().unwrap_or(Err(CodecError::Truncated {
            what: "stored message",
        }));
        message.map_err(|error| Error::command(addr, error))
    }
}

/// A message that cannot be read is told of and left out.
fn found_in(addr: &str, reply: RemotingCommand) -> Result<Option<QueryResult>> {
    if reply.code == response_code::QUERY_NOT_FOUND {
        return Ok(None);
    }
    let reply = expect_success(addr, reply)?;
    let header: QueryMessageResponseHeader = header_of(addr, &reply)?;
    let messages = StoredMessages::new(reply.body.unwrap_or_default());
    let messages = messages.filter_map(|message| match message {
        Ok(message) => Some(message),
        Err(error) => {
            log::warn!("{addr}: a message that was found by key cannot be read: {error}");
            None
        }
    });
    Ok(Some(QueryResult {
        messages: messages.collect(),
        index_last_update_timestamp: header.index_last_update_timestamp,
    }))
}
