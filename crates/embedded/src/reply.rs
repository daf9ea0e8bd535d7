use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rocketmq_protocol::RemotingCommand;

use crate::connection::Connection;
use crate::control::Controls;
use crate::control_action::AnswerEdit;
use crate::timer::Timer;

/// Where the answer to a request goes, and what a control wants done to it on its way.
pub(crate) struct Reply {
    connection: Arc<Connection>,
    oneway: bool,
    change: Option<AnswerChange>,
}

/// What becomes of an answer.
pub(crate) enum AnswerChange {
    Lose,
    Delay(Arc<Timer>, Duration),
    Hold(Arc<Controls>, u64),
    Close,
    Replace(i32, Option<String>),
    Edit(AnswerEdit),
}

impl Reply {
    pub(crate) const fn new(
        connection: Arc<Connection>,
        oneway: bool,
        change: Option<AnswerChange>,
    ) -> Self {
        Self {
            connection,
            oneway,
            change,
        }
    }

    /// The connection that the request came on.
    pub(crate) const fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// Sends the answer, unless none is wanted. What a control wants of a connection happens to
    /// requests without an answer, too.
    pub(crate) fn send(self, mut response: RemotingCommand) {
        match self.change {
            Some(AnswerChange::Lose) => return,
            Some(AnswerChange::Close) => {
                self.connection.close();
                return;
            }
            _ if self.oneway => return,
            Some(AnswerChange::Delay(timer, time)) => {
                let connection = self.connection;
                timer.schedule(time, move || {
                    connection.send(response);
                });
                return;
            }
            Some(AnswerChange::Hold(controls, id)) => {
                let connection = self.connection;
                controls.hold(
                    id,
                    Box::new(move || {
                        connection.send(response);
                    }),
                );
                return;
            }
            Some(AnswerChange::Replace(code, remark)) => {
                response.code = code;
                response.remark = remark;
                response.ext_fields = rocketmq_protocol::ExtFields::new();
                response.body = None;
            }
            Some(AnswerChange::Edit(edit)) => {
                let opaque = response.opaque;
                edit.apply(&mut response);
                response.opaque = opaque;
            }
            None => {}
        }
        self.connection.send(response);
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("connection", &self.connection)
            .field("oneway", &self.oneway)
            .field("changed", &self.change.is_some())
            .finish()
    }
}
