//! What an attempt's outcome means: for its broker, and for the send.

use std::collections::BTreeSet;
use std::time::Duration;

use super::send_result::{SendResult, SendStatus};
use crate::error::{Error, Result};
use crate::latency::FaultUpdate;

/// The settings that decide whether there is another attempt.
#[derive(Debug, Clone)]
pub(super) struct RetryPolicy {
    /// The longest attempt, while another one is possible.
    pub(super) send_msg_max_timeout_per_request: Option<Duration>,
    pub(super) retry_another_broker_when_not_store_ok: bool,
    pub(super) retry_response_codes: BTreeSet<i32>,
}

/// What a send does after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// The message is stored, and that is the result.
    Return,
    /// Another broker is tried, if an attempt is left.
    Retry,
    /// The error is the result: another broker would not do better.
    Fail,
}

/// Java's five catch arms of `DefaultMQProducerImpl#sendDefaultImpl` as one table, for synchronous
/// and asynchronous sends.
///
/// | outcome | isolation | reachable | next |
/// |---|---|---|---|
/// | stored | no | yes | return |
/// | stored less safely, `retry_another_broker_when_not_store_ok` | no | yes | retry, else return |
/// | client error | no | yes | retry |
/// | remoting error, detector on | yes | no | retry |
/// | remoting error, detector off | yes | yes | retry |
/// | broker error, code in `retry_response_codes` | yes | no | retry |
/// | broker error, other code | yes | no | fail |
/// | nothing was sent for want of time or permits | – | – | fail |
///
/// Java's asynchronous sends are not tried again after a broker's error, and update nothing then.
pub(super) fn judge(
    outcome: &Result<SendResult>,
    detector_on: bool,
    policy: &RetryPolicy,
) -> (FaultUpdate, Next) {
    match outcome {
        Ok(result) => {
            let again = result.send_status != SendStatus::SendOk
                && policy.retry_another_broker_when_not_store_ok;
            (GOOD, if again { Next::Retry } else { Next::Return })
        }
        Err(Error::RemotingTooMuchRequest { .. }) => (FaultUpdate::None, Next::Fail),
        Err(
            Error::RemotingConnect { .. }
            | Error::RemotingSendRequest { .. }
            | Error::RemotingTimeout { .. }
            | Error::RemotingCommand { .. },
        ) => {
            let update = FaultUpdate::Of {
                isolation: true,
                reachable: !detector_on,
            };
            (update, Next::Retry)
        }
        Err(Error::MQBroker { code, .. }) => {
            let update = FaultUpdate::Of {
                isolation: true,
                reachable: false,
            };
            let again = policy.retry_response_codes.contains(code);
            (update, if again { Next::Retry } else { Next::Fail })
        }
        Err(_) => (GOOD, Next::Retry),
    }
}

/// What a send without an answer says of its broker: as [`judge`] has it, with `Ok` for stored.
pub(super) fn judge_oneway(
    outcome: &Result<()>,
    detector_on: bool,
    policy: &RetryPolicy,
) -> FaultUpdate {
    match outcome {
        Ok(()) => GOOD,
        Err(error) => judge(&Err(error.clone()), detector_on, policy).0,
    }
}

const GOOD: FaultUpdate = FaultUpdate::Of {
    isolation: false,
    reachable: true,
};

#[cfg(test)]
mod tests {
    use rocketmq_protocol::{CodecError, MessageQueue, response_code};

    use super::*;
    use crate::error::client_error_code;

    fn stored(send_status: SendStatus) -> Result<SendResult> {
        Ok(SendResult {
            send_status,
            msg_id: "id".to_owned(),
            offset_msg_id: "offset id".to_owned(),
            message_queue: MessageQueue::new("t", "a", 0),
            queue_offset: 0,
            region_id: "r".to_owned(),
            trace_on: true,
            transaction_id: None,
            recall_handle: None,
        })
    }

    fn answered(code: i32) -> Result<SendResult> {
        Err(Error::MQBroker {
            code,
            remark: String::new(),
            broker_addr: "a:1".to_owned(),
        })
    }

    fn remoting_errors() -> Vec<Result<SendResult>> {
        let addr = || "a:1".to_owned();
        let reason = || "why".to_owned();
        vec![
            Err(Error::RemotingConnect {
                addr: addr(),
                reason: reason(),
            }),
            Err(Error::RemotingSendRequest {
                addr: addr(),
                reason: reason(),
                written: true,
            }),
            Err(Error::RemotingTimeout {
                addr: addr(),
                timeout: Duration::from_secs(3),
            }),
            Err(Error::RemotingCommand {
                addr: addr(),
                source: CodecError::Truncated { what: "header" },
            }),
        ]
    }

    fn policy(retry_another_broker_when_not_store_ok: bool) -> RetryPolicy {
        RetryPolicy {
            send_msg_max_timeout_per_request: None,
            retry_another_broker_when_not_store_ok,
            retry_response_codes: BTreeSet::from([response_code::SYSTEM_BUSY]),
        }
    }

    /// Isolation, reachable, and what comes next.
    fn of(isolation: bool, reachable: bool, next: Next) -> (FaultUpdate, Next) {
        let update = FaultUpdate::Of {
            isolation,
            reachable,
        };
        (update, next)
    }

    #[test]
    fn the_rows_of_the_table() {
        use Next::{Fail, Retry, Return};
        for detector in [false, true] {
            for patient in [false, true] {
                let judge = |outcome| judge(&outcome, detector, &policy(patient));
                assert_eq!(judge(stored(SendStatus::SendOk)), of(false, true, Return));
                let less_safely = if patient { Retry } else { Return };
                for status in [
                    SendStatus::FlushDiskTimeout,
                    SendStatus::FlushSlaveTimeout,
                    SendStatus::SlaveNotAvailable,
                ] {
                    assert_eq!(judge(stored(status)), of(false, true, less_safely));
                }
                let no_master = client_error_code::BROKER_NOT_EXIST_EXCEPTION;
                assert_eq!(
                    judge(Err(Error::client(no_master, "no master"))),
                    of(false, true, Retry)
                );
                for error in remoting_errors() {
                    assert_eq!(judge(error), of(true, !detector, Retry));
                }
                assert_eq!(
                    judge(answered(response_code::SYSTEM_BUSY)),
                    of(true, false, Retry)
                );
                assert_eq!(
                    judge(answered(response_code::MESSAGE_ILLEGAL)),
                    of(true, false, Fail)
                );
                let too_much = Err(Error::RemotingTooMuchRequest {
                    reason: "no permit".to_owned(),
                });
                assert_eq!(judge(too_much), (FaultUpdate::None, Fail));
            }
        }
    }
}
