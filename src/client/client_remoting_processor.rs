use rocketmq_protocol::header::NotifyConsumerIdsChangedRequestHeader;
use rocketmq_protocol::{RemotingCommand, request_code};

use super::rebalance_service::RebalanceService;
use crate::remoting::{RequestProcessor, not_supported};
use crate::service::ServiceHandle;
use crate::sync::Arc;

/// Answers requests of brokers (Java `ClientRemotingProcessor`).
#[derive(Debug)]
pub(crate) struct ClientRemotingProcessor {
    pub(crate) rebalance_service: Arc<ServiceHandle<RebalanceService>>,
}

impl RequestProcessor for ClientRemotingProcessor {
    fn process_request(&self, addr: &str, request: RemotingCommand) -> Option<RemotingCommand> {
        match request.code {
            request_code::NOTIFY_CONSUMER_IDS_CHANGED => {
                self.notify_consumer_ids_changed(addr, &request);
                None
            }
            code => {
                log::debug!("{addr}: request {code} is not served");
                Some(not_supported(&request))
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
                service.request(&header.consumer_group);
            }
            Err(error) => {
                log::warn!("{addr}: note of changed members: {error}");
                service.request_all();
            }
        }
        self.rebalance_service.wakeup();
    }
}
