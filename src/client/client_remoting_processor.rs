use bytes::Bytes;
use rocketmq_protocol::body::{GetConsumerStatusBody, JsonBody, ResetOffsetBody};
use rocketmq_protocol::header::{
    ConsumeMessageDirectlyResultRequestHeader, GetConsumerRunningInfoRequestHeader,
    GetConsumerStatusRequestHeader, NotifyConsumerIdsChangedRequestHeader,
    ResetOffsetRequestHeader,
};
use rocketmq_protocol::{
    CodecError, MessageExt, RemotingCommand, StoredMessages, request_code, response_code,
};

use super::MQConsumerInner;
use super::group_registry::ConsumerTable;
use super::rebalance_service::RebalanceService;
use crate::remoting::{RequestProcessor, not_supported};
use crate::service::ServiceHandle;
use crate::sync::Arc;

/// Answers requests of brokers (Java `ClientRemotingProcessor`).
#[derive(Debug)]
pub(crate) struct ClientRemotingProcessor {
    pub(crate) rebalance_service: Arc<ServiceHandle<RebalanceService>>,
    pub(crate) consumers: Arc<ConsumerTable>,
}

/// Why a request gets no other answer than a failure.
enum Refusal {
    Malformed(CodecError),
    UnknownGroup(String),
}

impl From<CodecError> for Refusal {
    fn from(error: CodecError) -> Self {
        Self::Malformed(error)
    }
}

type Answer = Result<Vec<u8>, Refusal>;

impl RequestProcessor for ClientRemotingProcessor {
    fn process_request(&self, addr: &str, request: RemotingCommand) -> Option<RemotingCommand> {
        let answer = match request.code {
            request_code::NOTIFY_CONSUMER_IDS_CHANGED => {
                self.notify_consumer_ids_changed(addr, &request);
                return None;
            }
            request_code::RESET_CONSUMER_CLIENT_OFFSET => {
                match self.reset_offset(addr, &request) {
                    Ok(()) => {}
                    Err(refusal) => log::warn!("{addr}: reset of offsets: {}", refusal.text()),
                }
                return None;
            }
            request_code::GET_CONSUMER_STATUS_FROM_CLIENT => self.consumer_status(&request),
            request_code::GET_CONSUMER_RUNNING_INFO => self.consumer_running_info(&request),
            request_code::CONSUME_MESSAGE_DIRECTLY => self.consume_message_directly(&request),
            code => {
                log::debug!("{addr}: request {code} is not served");
                return Some(not_supported(&request));
            }
        };
        Some(match answer {
            Ok(body) => {
                RemotingCommand::response(&request, response_code::SUCCESS, None).with_body(body)
            }
            Err(refusal) => {
                let remark = Some(refusal.text());
                RemotingCommand::response(&request, response_code::SYSTEM_ERROR, remark)
            }
        })
    }
}

impl Refusal {
    fn text(&self) -> String {
        match self {
            Self::Malformed(error) => error.to_string(),
            Self::UnknownGroup(group) => {
                format!("The Consumer Group <{group}> not exist in this consumer")
            }
        }
    }
}

impl ClientRemotingProcessor {
    /// A note names its group, and only that one is looked at (Java wakes all groups of the
    /// process). A note that names none, or one that is unknown here, wakes all.
    fn notify_consumer_ids_changed(&self, addr: &str, request: &RemotingCommand) {
        let service = self.rebalance_service.service();
        match request.decode_header::<NotifyConsumerIdsChangedRequestHeader>() {
            Ok(header) => {
                log::info!(
                    "{addr}: the members of group {} changed",
                    header.consumer_group
                );
                service.request_told_by(&header.consumer_group, addr);
            }
            Err(error) => {
                log::warn!("{addr}: note of changed members: {error}");
                service.request_all();
            }
        }
        self.rebalance_service.wakeup();
    }

    fn consumer(&self, group: &str) -> Result<Arc<dyn MQConsumerInner>, Refusal> {
        let consumer = self.consumers.get(group);
        consumer.ok_or_else(|| Refusal::UnknownGroup(group.to_owned()))
    }

    /// Java `ClientRemotingProcessor#resetOffset`; what is told for queues of other topics than the
    /// one that is named is passed over.
    fn reset_offset(&self, addr: &str, request: &RemotingCommand) -> Result<(), Refusal> {
        let header: ResetOffsetRequestHeader = request.decode_header()?;
        let mut offsets = ResetOffsetBody::from_command(request)?.offset_table;
        offsets.retain(|mq, _| mq.topic() == header.topic);
        log::info!(
            "{addr}: group {}, topic {}: offsets are reset: {offsets:?}",
            header.group,
            header.topic
        );
        self.consumer(&header.group)?.reset_offset(&offsets);
        Ok(())
    }

    /// Java `ClientRemotingProcessor#getConsumeStatus`, which answers for unknown groups too.
    fn consumer_status(&self, request: &RemotingCommand) -> Answer {
        let header: GetConsumerStatusRequestHeader = request.decode_header()?;
        let consumer = self.consumers.get(&header.group);
        let offsets = consumer.map(|consumer| consumer.consumer_status(&header.topic));
        let body = GetConsumerStatusBody {
            message_queue_table: offsets.unwrap_or_default().into(),
            ..GetConsumerStatusBody::default()
        };
        Ok(body.to_json()?)
    }

    /// Java `ClientRemotingProcessor#getConsumerRunningInfo`. Stacks of threads are not told.
    fn consumer_running_info(&self, request: &RemotingCommand) -> Answer {
        let header: GetConsumerRunningInfoRequestHeader = request.decode_header()?;
        let consumer = self.consumer(&header.consumer_group)?;
        Ok(consumer.consumer_running_info().to_json()?)
    }

    /// Java `ClientRemotingProcessor#consumeMessageDirectly`.
    fn consume_message_directly(&self, request: &RemotingCommand) -> Answer {
        let header: ConsumeMessageDirectlyResultRequestHeader = request.decode_header()?;
        let consumer = self.consumer(&header.consumer_group)?;
        let mut message = only_message(request.body.clone().unwrap_or_default())?;
        let queue_id = message.queue_id();
        message.set_queue(header.broker_name.unwrap_or_default().into(), queue_id);
        Ok(consumer.consume_message_directly(message).to_json()?)
    }
}

fn only_message(body: Bytes) -> Result<MessageExt, CodecError> {
    let mut messages = StoredMessages::new(body);
    messages.next().unwrap_or(Err(CodecError::Truncated {
        what: "stored message",
    }))
}
