//! Name rules that clients and brokers check alike (Java `Validators`, `TopicValidator`).

use std::fmt;

/// The longest topic name, in characters.
pub const TOPIC_MAX_LENGTH: usize = 127;
/// The longest group name, in characters.
pub const GROUP_MAX_LENGTH: usize = 120;

/// Topics that brokers use themselves and nobody may send to.
const NOT_SENDABLE: [&str; 8] = [
    "SCHEDULE_TOPIC_XXXX",
    "RMQ_SYS_TRANS_HALF_TOPIC",
    "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC",
    "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC",
    "TRANS_CHECK_MAX_TIME_TOPIC",
    "SELF_TEST_TOPIC",
    "OFFSET_MOVED_EVENT",
];

/// Why a name is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// Nothing but white space.
    Blank,
    /// More characters than allowed.
    TooLong {
        /// The most that are allowed.
        max: usize,
    },
    /// A character outside `% | - _ 0-9 a-z A-Z`.
    IllegalCharacter {
        /// The first one.
        character: char,
    },
    /// A topic that only brokers write.
    NotSendable,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blank => f.write_str("the name is blank"),
            Self::TooLong { max } => write!(f, "the name is longer than {max} characters"),
            Self::IllegalCharacter { character } => write!(
                f,
                "the name contains {character:?}; allowed are % | - _ 0-9 a-z A-Z"
            ),
            Self::NotSendable => f.write_str("only brokers write to this topic"),
        }
    }
}

impl std::error::Error for NameError {}

/// Checks a topic's name.
///
/// # Errors
/// The first rule that the name breaks.
pub fn check_topic(name: &str) -> Result<(), NameError> {
    check(name, TOPIC_MAX_LENGTH)
}

/// Checks a group's name.
///
/// # Errors
/// The first rule that the name breaks.
pub fn check_group(name: &str) -> Result<(), NameError> {
    check(name, GROUP_MAX_LENGTH)
}

/// Checks that a topic is not one that only brokers write.
///
/// # Errors
/// [`NameError::NotSendable`].
pub fn check_sendable(topic: &str) -> Result<(), NameError> {
    if NOT_SENDABLE.contains(&topic) {
        Err(NameError::NotSendable)
    } else {
        Ok(())
    }
}

fn check(name: &str, max: usize) -> Result<(), NameError> {
    if name.chars().all(char::is_whitespace) {
        return Err(NameError::Blank);
    }
    if let Some(character) = name
        .chars()
        .find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '%' | '|' | '-' | '_')))
    {
        return Err(NameError::IllegalCharacter { character });
    }
    if name.len() > max {
        Err(NameError::TooLong { max })
    } else {
        Ok(())
    }
}
