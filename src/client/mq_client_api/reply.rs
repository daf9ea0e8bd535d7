use rocketmq_protocol::header::SendMessageRequestHeader;
use rocketmq_protocol::request_code;

/// The encoded property by which a message is a reply (`MSG_TYPE`).
const REPLY_PROPERTY: &str = "MSG_TYPE\u{1}reply";
const PROPERTY_SEPARATOR: char = '\u{2}';

/// The code under which a single message goes: that of replies if it is one, since brokers push
/// those to whoever waits (Java `MQClientAPIImpl#sendMessage`).
pub(super) fn send_code(header: &SendMessageRequestHeader) -> i32 {
    let properties = header.properties.as_deref().unwrap_or_default();
    let is_reply = properties
        .split(PROPERTY_SEPARATOR)
        .any(|property| property == REPLY_PROPERTY);
    if is_reply {
        request_code::SEND_REPLY_MESSAGE_V2
    } else {
        request_code::SEND_MESSAGE_V2
    }
}
