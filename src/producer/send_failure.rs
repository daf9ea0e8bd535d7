use std::fmt;

use rocketmq_protocol::Message;

use crate::error::Error;

/// A send that failed, with what was moved into it: a [`Message`], or those of a batch.
///
/// [`Error::may_have_been_stored`] tells whether sending the message again may make a second one.
/// With `?` it becomes its [`Error`].
///
/// # Java
/// The exception that `SendCallback#onException` is given.
#[derive(Debug, Clone, PartialEq)]
pub struct SendFailure<M = Message>(Box<(Error, M)>);

impl<M> SendFailure<M> {
    pub(super) fn new(error: Error, message: M) -> Self {
        Self(Box::new((error, message)))
    }

    /// Why it failed.
    pub fn error(&self) -> &Error {
        &self.0.0
    }

    /// What was to be sent, as it was.
    pub fn message(&self) -> &M {
        &self.0.1
    }

    /// What was to be sent, to send it again.
    pub fn into_message(self) -> M {
        self.0.1
    }

    /// Both.
    pub fn into_parts(self) -> (Error, M) {
        *self.0
    }
}

impl<M> From<SendFailure<M>> for Error {
    fn from(failure: SendFailure<M>) -> Self {
        failure.0.0
    }
}

impl<M> fmt::Display for SendFailure<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error().fmt(f)
    }
}

impl<M: fmt::Debug> std::error::Error for SendFailure<M> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error().source()
    }
}
