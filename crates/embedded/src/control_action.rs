use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rocketmq_protocol::RemotingCommand;

/// What happens to a request in place of being processed and answered.
///
/// The first ones act before the request is processed, so that it never is or is later; the others
/// let it be processed and change its answer. Of notes that a broker sends to clients
/// (NOTIFY_CONSUMER_IDS_CHANGED, 40) only [`Delay`](Self::Delay), [`Hold`](Self::Hold),
/// [`Twice`](Self::Twice) and [`Close`](Self::Close) mean something; all others drop the note.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ControlAction {
    /// It is processed after this time. Other requests of the same connection are not held up.
    Delay(Duration),
    /// It is processed when [`ControlHandle::release`](crate::ControlHandle::release) says so, or [`ControlHandle::lift`](crate::ControlHandle::lift).
    Hold,
    /// It is processed twice, as if the client had sent it twice, and answered once.
    Twice,
    /// It is never processed and never answered.
    Drop,
    /// The connection it came on is closed.
    Close,
    /// It is not processed but answered with this code and remark.
    Respond(i32, Option<String>),
    /// It is not processed but answered with this command, under the request's own opaque.
    Answer(RemotingCommand),
    /// It is processed but not answered: the client cannot know that it took effect.
    LoseAnswer,
    /// It is processed at once and answered after this time.
    DelayAnswer(Duration),
    /// It is processed at once and answered when [`ControlHandle::release`](crate::ControlHandle::release) says so.
    HoldAnswer,
    /// It is processed; then its connection is closed without an answer.
    CloseAfter,
    /// It is processed but answered with this code and remark, whatever became of it.
    RespondAfter(i32, Option<String>),
    /// It is processed, and its answer changed; see [`ControlAction::edit_answer`].
    EditAnswer(AnswerEdit),
}

impl ControlAction {
    /// The request is processed, and its answer changed by this before it is sent.
    pub fn edit_answer(edit: impl Fn(&mut RemotingCommand) + Send + Sync + 'static) -> Self {
        Self::EditAnswer(AnswerEdit(Arc::new(edit)))
    }
}

/// A change to answers; made by [`ControlAction::edit_answer`]. Equal to its clones only.
#[derive(Clone)]
pub struct AnswerEdit(Arc<dyn Fn(&mut RemotingCommand) + Send + Sync>);

impl AnswerEdit {
    pub(crate) fn apply(&self, answer: &mut RemotingCommand) {
        (self.0)(answer);
    }
}

impl fmt::Debug for AnswerEdit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnswerEdit")
    }
}

impl PartialEq for AnswerEdit {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for AnswerEdit {}

/// How many requests a control acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlTimes {
    /// The next one.
    Once,
    /// The next so many.
    Times(u32),
    /// All, until [`ControlHandle::lift`](crate::ControlHandle::lift).
    UntilLifted,
}

/// Which servers a control watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlScope {
    /// The name server and all brokers.
    Cluster,
    /// The name server.
    NameServer,
    /// The broker of this name.
    Broker(String),
}

/// Which server asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerName<'a> {
    NameServer,
    Broker(&'a str),
}

impl ControlScope {
    pub(crate) fn holds(&self, server: ServerName<'_>) -> bool {
        match self {
            Self::Cluster => true,
            Self::NameServer => server == ServerName::NameServer,
            Self::Broker(name) => server == ServerName::Broker(name),
        }
    }
}
