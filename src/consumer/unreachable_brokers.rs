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

    /// A pull has been answered.
    pub(super) fn note_answer(&self, request: &mut PullRequest) {
        if std::mem::take(&mut request.failures) > 0
            && self.0.lock().remove(request.mq.broker_name())
        {
            log::info!("broker {} answers pulls again", request.mq.broker_name());
        }
    }
}
