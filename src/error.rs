//! What can go wrong, in the words of a user: what failed, where, and what to do.

use std::fmt;
use std::time::Duration;

use rocketmq_protocol::{CodecError, MessageQueue, response_code};

use crate::service::ServiceState;

/// The result of a call of this library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Numbers that Java puts into its `MQClientException` for failures the client finds itself
/// (Java `ClientErrorCode`).
pub mod client_error_code {
    /// No broker could be connected.
    pub const CONNECT_BROKER_EXCEPTION: i32 = 10_001;
    /// A broker did not answer in time.
    pub const ACCESS_BROKER_TIMEOUT: i32 = 10_002;
    /// A broker is not in the route.
    pub const BROKER_NOT_EXIST_EXCEPTION: i32 = 10_003;
    /// No name server address is known.
    pub const NO_NAME_SERVER_EXCEPTION: i32 = 10_004;
    /// No route of the topic is known.
    pub const NOT_FOUND_TOPIC_EXCEPTION: i32 = 10_005;
    /// A request message got no reply in time.
    pub const REQUEST_TIMEOUT_EXCEPTION: i32 = 10_006;
    /// A message is no request that can be replied to.
    pub const CREATE_REPLY_MESSAGE_EXCEPTION: i32 = 10_007;
}

/// Why a call failed. The variants are the exceptions of the Java client, so that what is written
/// about those holds here; what Java says by an `MQClientException` without a code about the client's
/// state, its settings or a message has a variant of its own.
///
/// Its text names the server, topic or queue, and the cause underneath. After a failed send,
/// [`may_have_been_stored`](Self::may_have_been_stored) says whether sending again may store the
/// message twice, and [`is_retryable`](Self::is_retryable) whether it may help; if not, something
/// must be changed first: a setting, the message, a permission.
///
/// Cloning is cheap enough to give each of several waiting callers the same reason.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use rocketmq_blocking::{DefaultMQProducer, Message};
///
/// // Nobody listens at port 1.
/// let producer = DefaultMQProducer::builder("shop").namesrv_addr("127.0.0.1:1").build()?;
/// producer.start()?;
/// let error = producer.send(&Message::new("Orders", "one book")).unwrap_err();
/// assert!(error.is_retryable());
/// assert!(!error.may_have_been_stored());
/// assert_eq!(error.broker_code(), None); // no server has answered
/// producer.shutdown(Duration::from_secs(5));
/// # Ok::<(), rocketmq_blocking::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// The client itself cannot go on (Java `MQClientException`).
    MQClient {
        /// A number of [`client_error_code`], a broker's response code, or none where Java gives
        /// none. It is in the text as `(code …)`.
        code: Option<i32>,
        /// What failed, with topic, queue and brokers.
        reason: String,
        /// What failed underneath.
        source: Option<Box<Self>>,
    },
    /// A broker answered with an error (Java `MQBrokerException`).
    MQBroker {
        /// The response code, see [`response_code`].
        code: i32,
        /// The broker's words.
        remark: String,
        /// The broker.
        broker_addr: String,
    },
    /// A server could not be connected (Java `RemotingConnectException`).
    RemotingConnect {
        /// The server.
        addr: String,
        /// Why.
        reason: String,
    },
    /// The connection broke before the answer came (Java `RemotingSendRequestException`).
    RemotingSendRequest {
        /// The server.
        addr: String,
        /// Why.
        reason: String,
        /// Whether bytes of the request may have reached the server.
        written: bool,
    },
    /// No answer came in time (Java `RemotingTimeoutException`).
    RemotingTimeout {
        /// The server.
        addr: String,
        /// How long was waited.
        timeout: Duration,
    },
    /// The time of the whole call was used up before an attempt could be made (Java
    /// `RemotingTooMuchRequestException`).
    RemotingTooMuchRequest {
        /// What was being tried.
        reason: String,
    },
    /// An answer cannot be read (Java `RemotingCommandException`).
    RemotingCommand {
        /// The server.
        addr: String,
        /// What is wrong with the bytes.
        source: CodecError,
    },
    /// The broker has no offset of the group for the queue (Java `OffsetNotFoundException`).
    OffsetNotFound {
        /// The group.
        group: String,
        /// The queue.
        mq: MessageQueue,
    },
    /// The client is not in a state that allows the call.
    ServiceState {
        /// What was called on what.
        operation: String,
        /// The state it is in.
        state: ServiceState,
    },
    /// Settings are out of range or contradict each other; all of them are listed.
    InvalidConfig {
        /// One sentence a setting.
        problems: Vec<String>,
    },
    /// The message breaks a rule that the broker would refuse it for.
    InvalidMessage {
        /// The message's topic.
        topic: String,
        /// The rule.
        reason: String,
    },
}

impl Error {
    pub(crate) fn client(code: i32, reason: impl Into<String>) -> Self {
        Self::MQClient {
            code: Some(code),
            reason: reason.into(),
            source: None,
        }
    }

    pub(crate) fn command(addr: &str, source: CodecError) -> Self {
        Self::RemotingCommand {
            addr: addr.to_owned(),
            source,
        }
    }

    /// The response code, when a broker or name server gave one, also underneath other errors.
    pub fn broker_code(&self) -> Option<i32> {
        match self {
            Self::MQBroker { code, .. } => Some(*code),
            Self::MQClient {
                source: Some(source),
                ..
            } => source.broker_code(),
            _ => None,
        }
    }

    /// Whether the same call may succeed if it is made again, perhaps a little later.
    ///
    /// True for everything that lies in the network or in the present state of a broker; false for
    /// what the caller must change first: settings, a message, a missing permission.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::RemotingConnect { .. }
            | Self::RemotingSendRequest { .. }
            | Self::RemotingTimeout { .. }
            | Self::RemotingTooMuchRequest { .. } => true,
            Self::MQBroker { code, .. } => matches!(
                *code,
                response_code::SYSTEM_ERROR
                    | response_code::SYSTEM_BUSY
                    | response_code::SERVICE_NOT_AVAILABLE
                    | response_code::FLOW_CONTROL
                    | response_code::GO_AWAY
                    | response_code::TOPIC_NOT_EXIST
            ),
            Self::MQClient { code, source, .. } => match source {
                Some(source) => source.is_retryable(),
                None => matches!(
                    *code,
                    Some(
                        client_error_code::CONNECT_BROKER_EXCEPTION
                            | client_error_code::ACCESS_BROKER_TIMEOUT
                            | client_error_code::BROKER_NOT_EXIST_EXCEPTION
                            | client_error_code::NOT_FOUND_TOPIC_EXCEPTION
                    )
                ),
            },
            Self::RemotingCommand { .. }
            | Self::OffsetNotFound { .. }
            | Self::ServiceState { .. }
            | Self::InvalidConfig { .. }
            | Self::InvalidMessage { .. } => false,
        }
    }

    /// Whether the message may have been stored although the send failed.
    ///
    /// A connect failure never reached a broker, a broker that answers with an error has not stored
    /// the message, and where no broker was found nothing was sent, however the name server failed.
    /// A time-out, a connection that broke after bytes were written, and an answer that cannot be
    /// read leave it open: whoever sends again must expect a duplicate. After several attempts any
    /// one of them may be the reason, and this looks at the one that is most in doubt.
    pub fn may_have_been_stored(&self) -> bool {
        match self {
            Self::RemotingTimeout { .. } | Self::RemotingCommand { .. } => true,
            Self::RemotingSendRequest { written, .. } => *written,
            Self::MQClient {
                code:
                    Some(
                        client_error_code::NOT_FOUND_TOPIC_EXCEPTION
                        | client_error_code::BROKER_NOT_EXIST_EXCEPTION
                        | client_error_code::NO_NAME_SERVER_EXCEPTION,
                    ),
                ..
            } => false,
            Self::MQClient {
                source: Some(source),
                ..
            } => source.may_have_been_stored(),
            _ => false,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MQClient {
                code,
                reason,
                source,
            } => {
                f.write_str(reason)?;
                if let Some(code) = code {
                    write!(f, " (code {code})")?;
                }
                if let Some(source) = source {
                    write!(f, ": {source}")?;
                }
                Ok(())
            }
            Self::MQBroker {
                code,
                remark,
                broker_addr,
            } => write!(
                f,
                "{broker_addr} answered {} ({code}): {remark}",
                response_code::name(*code)
            ),
            Self::RemotingConnect { addr, reason } => {
                write!(f, "cannot connect to {addr}: {reason}")
            }
            Self::RemotingSendRequest { addr, reason, .. } => {
                write!(f, "the request to {addr} failed: {reason}")
            }
            Self::RemotingTimeout { addr, timeout } => {
                write!(f, "no answer from {addr} within {} ms", timeout.as_millis())
            }
            Self::RemotingTooMuchRequest { reason } => f.write_str(reason),
            Self::RemotingCommand { addr, source } => {
                write!(f, "the answer of {addr} cannot be read: {source}")
            }
            Self::OffsetNotFound { group, mq } => {
                write!(f, "the broker has no offset of group {group} for {mq}")
            }
            Self::ServiceState { operation, state } => {
                let hint = match state {
                    ServiceState::CreateJust => "call start first",
                    ServiceState::Running => "it runs already",
                    ServiceState::ShutdownAlready => "it has ended, build a new one",
                    ServiceState::StartFailed => {
                        "its start is under way, or has failed: then build a new one"
                    }
                };
                write!(f, "{operation} is not possible in state {state}: {hint}")
            }
            Self::InvalidConfig { problems } => {
                write!(f, "invalid settings: {}", problems.join("; "))
            }
            Self::InvalidMessage { topic, reason } => {
                write!(f, "message for topic {topic:?} refused: {reason}")
            }
        }
    }
}

/// What caused an error is part of its text, and in its fields; so `source` gives nothing, which would
/// print it twice.
impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_attempts(source: Error) -> Error {
        Error::MQClient {
            code: None,
            reason: "send failed".into(),
            source: Some(source.into()),
        }
    }

    #[test]
    fn only_what_reached_a_broker_may_have_been_stored() {
        let addr = || "127.0.0.1:1".to_owned();
        let reason = || "reset".to_owned();
        let connect = Error::RemotingConnect {
            addr: addr(),
            reason: reason(),
        };
        let timeout = Error::RemotingTimeout {
            addr: addr(),
            timeout: Duration::from_secs(3),
        };
        let unsent = Error::RemotingSendRequest {
            addr: addr(),
            reason: reason(),
            written: false,
        };
        let sent = Error::RemotingSendRequest {
            addr: addr(),
            reason: reason(),
            written: true,
        };
        let answered = Error::MQBroker {
            code: response_code::SYSTEM_BUSY,
            remark: reason(),
            broker_addr: addr(),
        };
        assert!(!connect.may_have_been_stored());
        assert!(!unsent.may_have_been_stored());
        assert!(!answered.may_have_been_stored());
        assert!(sent.may_have_been_stored());
        assert!(timeout.may_have_been_stored());
        assert!(after_attempts(timeout).may_have_been_stored());
        assert_eq!(
            after_attempts(answered).broker_code(),
            Some(response_code::SYSTEM_BUSY)
        );
    }

    #[test]
    fn the_text_names_server_and_cause() {
        let error = after_attempts(Error::RemotingConnect {
            addr: "10.0.0.1:10911".into(),
            reason: "connection refused".into(),
        });
        assert_eq!(
            error.to_string(),
            "send failed: cannot connect to 10.0.0.1:10911: connection refused"
        );
        assert!(error.is_retryable());
    }
}
