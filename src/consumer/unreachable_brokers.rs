use std::collections::BTreeSet;

use super::pull_request::PullRequest;
use crate::error::Error;
use crate::sync::Mutex;

/// Tells once of a broker that cannot be reached, and not once for each of its queues.
#[derive(Debug, Default)]
pub(super) struct UnreachableBrokers(Mutex<BTreeSet<String>>);

impl UnreachableBrokers {
    /// Logs that a pull has failed. What is told of before is told of for those who look closer.
    pub(super) fn note_failure(&self, request: &PullRequest, error: &Error) {
        let unreachable = matches!(
            error,
            Error::RemotingConnect { .. }
                | Error::RemotingSendRequest { .. }
                | Error::RemotingTimeout { .. }
        );
        let mq = &request.mq;
        if request.failures > 0 {
            log::debug!("pulling {mq} once more: {error}");
        } else if !unreachable {
            log::warn!("pulling {mq}: {error}");
        } else if self.0.lock().insert(mq.broker_name().to_owned()) {
            log::warn!("pulling {mq}, and all queues of its broker: {error}");
        } else {
            log::debug!("pulling {mq}: {error}");
        }
    }

    /// A pull has been answered. It need not be one that has failed before: the queues of a broker that
    /// is gone are given up, and come back with new requests.
    pub(super) fn note_answer(&self, request: &mut PullRequest) {
        request.failures = 0;
        if self.0.lock().remove(request.mq.broker_name()) {
            log::info!("broker {} answers pulls again", request.mq.broker_name());
        }
    }
}

#[cfg(test)]
mod tests {
    use rocketmq_protocol::MessageQueue;

    use super::*;
    use crate::consumer::process_queue::ProcessQueue;
    use crate::sync::{Arc, Clock, Weak};

    fn request() -> PullRequest {
        PullRequest {
            consumer: Weak::new(),
            mq: MessageQueue::new("t", "b", 0),
            process_queue: Arc::new(ProcessQueue::new(Clock::manual())),
            next_offset: None,
            suggested_broker_id: 0,
            failures: 0,
        }
    }

    #[test]
    fn a_broker_that_answers_a_new_request_is_told_of_when_it_is_gone_again() {
        let brokers = UnreachableBrokers::default();
        let error = Error::RemotingConnect {
            addr: "a:1".to_owned(),
            reason: "refused".to_owned(),
        };
        brokers.note_failure(&request(), &error);
        assert!(brokers.0.lock().contains("b"));
        brokers.note_answer(&mut request());
        assert!(brokers.0.lock().is_empty());
    }
}
