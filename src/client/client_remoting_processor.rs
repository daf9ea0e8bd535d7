use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use rocketmq_protocol::body::{GetConsumerStatusBody, JsonBody, ResetOffsetBody};
use rocketmq_protocol::header::{
    CheckTransactionStateRequestHeader, ConsumeMessageDirectlyResultRequestHeader,
    GetConsumerRunningInfoRequestHeader, GetConsumerStatusRequestHeader,
    NotifyConsumerIdsChangedRequestHeader, ReplyMessageRequestHeader, ResetOffsetRequestHeader,
};
use rocketmq_protocol::{
    CodecError, MessageExt, RemotingCommand, StoredMessage, StoredMessages, decode_properties,
    encode_properties, property, request_code, response_code,
};

use super::group_registry::{ConsumerTable, ProducerTable};
use super::rebalance_service::RebalanceService;
use super::{MQConsumerInner, RequestFutureHolder, TransactionCheck};
use crate::remoting::{RequestProcessor, not_supported};
use crate::service::ServiceHandle;
use crate::sync::{Arc, system_time_millis};

/// Answers requests of brokers (Java `ClientRemotingProcessor`).
#[derive(Debug)]
pub(crate) struct ClientRemotingProcessor {
    pub(crate) rebalance_service: Arc<ServiceHandle<RebalanceService>>,
    pub(crate) consumers: Arc<ConsumerTable>,
    pub(crate) producers: Arc<ProducerTable>,
    pub(crate) request_futures: Arc<RequestFutureHolder>,
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
            request_code::CHECK_TRANSACTION_STATE => {
                if let Err(error) = self.check_transaction_state(addr, &request) {
                    log::warn!("{addr}: check of a transaction: {error}");
                }
                return None;
            }
            request_code::PUSH_REPLY_MESSAGE_TO_CLIENT => {
                let answer = self.receive_reply_message(addr, request.clone());
                answer.map(|()| Vec::new()).map_err(Refusal::Malformed)
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

    /// Java `ClientRemotingProcessor#checkTransactionState`: the message says which group sent it,
    /// and the producer of that group alone is asked.
    fn check_transaction_state(
        &self,
        addr: &str,
        request: &RemotingCommand,
    ) -> Result<(), CodecError> {
        let header: CheckTransactionStateRequestHeader = request.decode_header()?;
        let mut message = only_message(request.body.clone().unwrap_or_default())?;
        let queue_id = message.queue_id();
        let broker_name = header.broker_name.as_deref().unwrap_or_default();
        message.set_queue(broker_name.into(), queue_id);
        let group = message
            .property(property::PRODUCER_GROUP)
            .unwrap_or_default();
        match self.producers.get(group) {
            Some(producer) => producer.check_transaction_state(TransactionCheck {
                addr: addr.to_owned(),
                header,
                message,
            }),
            None => log::warn!(
                "{addr}: check of a transaction of group {group:?}, which has no producer here"
            ),
        }
        Ok(())
    }

    /// Java `ClientRemotingProcessor#receiveReplyMessage`. A reply that nobody waits for any more is
    /// taken as well: who sent it cannot know.
    fn receive_reply_message(
        &self,
        addr: &str,
        request: RemotingCommand,
    ) -> Result<(), CodecError> {
        let header: ReplyMessageRequestHeader = request.decode_header()?;
        let mut properties = decode_properties(header.properties.as_deref().unwrap_or_default());
        let arrived = system_time_millis().to_string();
        properties.insert(property::REPLY_MESSAGE_ARRIVE_TIME.to_owned(), arrived);
        let unknown = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
        let body = request.body.unwrap_or_default();
        let size = body.len();
        let reply = StoredMessage {
            queue_id: header.queue_id,
            flag: header.flag,
            queue_offset: 0,
            commit_log_offset: 0,
            sys_flag: header.sys_flag,
            born_timestamp: header.born_timestamp,
            born_host: header.born_host.parse().unwrap_or(unknown),
            store_timestamp: header.store_timestamp,
            store_host: header.store_host.parse().unwrap_or(unknown),
            reconsume_times: header.reconsume_times.unwrap_or(0),
            prepared_transaction_offset: 0,
            body,
            topic: header.topic,
            properties: encode_properties(&properties),
        };
        let reply = reply.into_message_ext(size)?;
        let id = reply.property(property::CORRELATION_ID).unwrap_or_default();
        let id = id.to_owned();
        if !self.request_futures.complete(&id, Ok(reply)) {
            log::warn!("{addr}: nobody waits for the reply with correlation id {id:?}");
        }
        Ok(())
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
