use rocketmq_protocol::header::{
    GetEarliestMsgStoretimeRequestHeader, GetEarliestMsgStoretimeResponseHeader,
    GetMaxOffsetRequestHeader, GetMinOffsetRequestHeader, OffsetResponseHeader,
    QueryConsumerOffsetRequestHeader, SearchOffsetRequestHeader, UpdateConsumerOffsetRequestHeader,
};
use rocketmq_protocol::{MessageQueue, RemotingCommand, request_code, response_code};

use super::{MQClientApi, done, expect_success, header_of};
use crate::error::{Error, Result};
use crate::remoting::PendingCall;
use crate::sync::Deadline;

/// A queue of which something is asked, at the broker that holds it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueAt<'a> {
    pub(crate) addr: &'a str,
    pub(crate) mq: &'a MessageQueue,
}

impl QueueAt<'_> {
    fn topic(&self) -> String {
        self.mq.topic().to_owned()
    }

    fn broker_name(&self) -> Option<String> {
        Some(self.mq.broker_name().to_owned())
    }
}

impl MQClientApi {
    /// The group's offset; [`Error::OffsetNotFound`] when the broker has none. `callback` runs once.
    pub(crate) fn query_consumer_offset_async(
        &self,
        at: QueueAt<'_>,
        group: &str,
        deadline: Deadline,
        callback: impl FnOnce(Result<i64>) + Send + 'static,
    ) {
        let header = QueryConsumerOffsetRequestHeader {
            consumer_group: group.to_owned(),
            topic: at.topic(),
            queue_id: at.mq.queue_id(),
            set_zero_if_not_found: None,
            broker_name: at.broker_name(),
        };
        let request = RemotingCommand::request(request_code::QUERY_CONSUMER_OFFSET, &header);
        let not_found = Error::OffsetNotFound {
            group: group.to_owned(),
            mq: at.mq.clone(),
        };
        let read = move |addr: &str, reply: RemotingCommand| match reply.code {
            response_code::QUERY_NOT_FOUND => Err(not_found),
            _ => offset_in(addr, reply),
        };
        self.ask_async(at.addr, request, deadline, read, callback);
    }

    /// The offset after the queue's last message.
    pub(crate) fn max_offset_async(
        &self,
        at: QueueAt<'_>,
        deadline: Deadline,
        callback: impl FnOnce(Result<i64>) + Send + 'static,
    ) {
        let request = max_offset_request(at);
        self.ask_async(at.addr, request, deadline, offset_in, callback);
    }

    /// [`max_offset_async`](Self::max_offset_async), waiting for the answer.
    pub(crate) fn max_offset(&self, at: QueueAt<'_>, deadline: Deadline) -> Result<i64> {
        self.offset(at.addr, max_offset_request(at), deadline)
    }

    /// The queue's smallest offset.
    pub(crate) fn min_offset(&self, at: QueueAt<'_>, deadline: Deadline) -> Result<i64> {
        let header = GetMinOffsetRequestHeader {
            topic: at.topic(),
            queue_id: at.mq.queue_id(),
            broker_name: at.broker_name(),
        };
        let request = RemotingCommand::request(request_code::GET_MIN_OFFSET, &header);
        self.offset(at.addr, request, deadline)
    }

    fn offset(&self, addr: &str, request: RemotingCommand, deadline: Deadline) -> Result<i64> {
        let addr = self.vip(addr);
        offset_in(&addr, self.remoting.invoke_sync(&addr, request, deadline)?)
    }

    /// When the queue's first message was stored, in milliseconds since 1970.
    pub(crate) fn earliest_msg_store_time(
        &self,
        at: QueueAt<'_>,
        deadline: Deadline,
    ) -> Result<i64> {
        let header = GetEarliestMsgStoretimeRequestHeader {
            topic: at.topic(),
            queue_id: at.mq.queue_id(),
            broker_name: at.broker_name(),
        };
        let request = RemotingCommand::request(request_code::GET_EARLIEST_MSG_STORETIME, &header);
        let addr = &*self.vip(at.addr);
        let reply = self.remoting.invoke_sync(addr, request, deadline)?;
        let reply = expect_success(addr, reply)?;
        header_of::<GetEarliestMsgStoretimeResponseHeader>(addr, &reply)
            .map(|header| header.timestamp)
    }

    /// The offset of a time in milliseconds since 1970.
    pub(crate) fn search_offset(
        &self,
        at: QueueAt<'_>,
        search: SearchFor,
        deadline: Deadline,
    ) -> Result<i64> {
        self.offset(at.addr, search_request(at, search), deadline)
    }

    /// The first offset stored at or after a time in milliseconds since 1970.
    pub(crate) fn search_offset_async(
        &self,
        at: QueueAt<'_>,
        timestamp: i64,
        deadline: Deadline,
        callback: impl FnOnce(Result<i64>) + Send + 'static,
    ) {
        let search = SearchFor {
            timestamp,
            boundary: "LOWER",
        };
        let request = search_request(at, search);
        self.ask_async(at.addr, request, deadline, offset_in, callback);
    }

    /// Stores the group's offset, without an answer.
    pub(crate) fn update_consumer_offset_oneway(
        &self,
        at: QueueAt<'_>,
        group: &str,
        offset: i64,
    ) -> Result<()> {
        self.remoting
            .invoke_oneway(&self.vip(at.addr), update_request(at, group, offset))
    }

    /// Stores the group's offset; `callback` runs once, when the broker has it or will not have it.
    pub(crate) fn update_consumer_offset_async(
        &self,
        at: QueueAt<'_>,
        group: &str,
        (offset, deadline): (i64, Deadline),
        callback: impl FnOnce(Result<()>) + Send + 'static,
    ) {
        let request = update_request(at, group, offset);
        self.ask_async(at.addr, request, deadline, done, callback);
    }

    /// Begins to store the group's offset with an answer.
    pub(crate) fn start_update_consumer_offset(
        &self,
        at: QueueAt<'_>,
        group: &str,
        offset: i64,
    ) -> Result<PendingCall> {
        self.remoting
            .start_call(&self.vip(at.addr), update_request(at, group, offset))
    }

    /// Waits for the answer to [`start_update_consumer_offset`](Self::start_update_consumer_offset).
    pub(crate) fn finish_update_consumer_offset(
        call: PendingCall,
        deadline: Deadline,
    ) -> Result<()> {
        let addr = call.addr().to_owned();
        done(&addr, call.wait(deadline)?)
    }
}

/// A time in milliseconds since 1970, and which of its two neighbours is meant: `LOWER` or `UPPER`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SearchFor {
    pub(crate) timestamp: i64,
    pub(crate) boundary: &'static str,
}

fn search_request(at: QueueAt<'_>, search: SearchFor) -> RemotingCommand {
    let header = SearchOffsetRequestHeader {
        topic: at.topic(),
        queue_id: at.mq.queue_id(),
        timestamp: search.timestamp,
        boundary_type: Some(search.boundary.to_owned()),
        broker_name: at.broker_name(),
        ..SearchOffsetRequestHeader::default()
    };
    RemotingCommand::request(request_code::SEARCH_OFFSET_BY_TIMESTAMP, &header)
}

fn max_offset_request(at: QueueAt<'_>) -> RemotingCommand {
    let header = GetMaxOffsetRequestHeader {
        topic: at.topic(),
        queue_id: at.mq.queue_id(),
        committed: None,
        broker_name: at.broker_name(),
    };
    RemotingCommand::request(request_code::GET_MAX_OFFSET, &header)
}

fn update_request(at: QueueAt<'_>, group: &str, offset: i64) -> RemotingCommand {
    let header = UpdateConsumerOffsetRequestHeader {
        consumer_group: group.to_owned(),
        topic: at.topic(),
        queue_id: at.mq.queue_id(),
        commit_offset: offset,
        broker_name: at.broker_name(),
    };
    RemotingCommand::request(request_code::UPDATE_CONSUMER_OFFSET, &header)
}

fn offset_in(addr: &str, reply: RemotingCommand) -> Result<i64> {
    let reply = expect_success(addr, reply)?;
    header_of::<OffsetResponseHeader>(addr, &reply).map(|header| header.offset)
}
