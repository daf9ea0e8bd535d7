use rocketmq_protocol::acl::SessionCredentials;
use rocketmq_protocol::{RemotingCommand, SerializeType};

use super::rpc_hook::RPCHook;

/// Signs every request with a user's key, as brokers with access control want it.
///
/// Brokers answer an unsigned or badly signed request with code 16 (`NO_PERMISSION`); a one-way one
/// is dropped. The signature covers all fields that the request has at the time; zones are added later
/// and do not go together with it. Clients share an instance only if they have clones of one hook.
///
/// # Java
/// `AclClientRPCHook`
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use rocketmq_blocking::{AclClientRPCHook, DefaultMQProducer, SessionCredentials};
///
/// let hook = Arc::new(AclClientRPCHook::new(SessionCredentials::new("user", "secret key")));
/// let producer = DefaultMQProducer::builder("p")
///     .namesrv_addr("127.0.0.1:9876")
///     .rpc_hook(hook)
///     .build()?;
/// # Ok::<(), rocketmq_blocking::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AclClientRPCHook {
    credentials: SessionCredentials,
}

impl AclClientRPCHook {
    /// Signs as this user.
    pub fn new(credentials: SessionCredentials) -> Self {
        Self { credentials }
    }
}

impl RPCHook for AclClientRPCHook {
    fn do_before_request(&self, _remote_addr: &str, request: &mut RemotingCommand) {
        if request.serialize_type == SerializeType::RocketMq {
            // A server reads an empty value of a binary header as none, and then signs the word null.
            request.ext_fields = request
                .ext_fields
                .iter()
                .filter(|(_, value)| !value.is_empty())
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect();
        }
        self.credentials.sign(request);
    }
}

#[cfg(test)]
mod tests {
    use rocketmq_protocol::acl;

    use super::*;

    #[test]
    fn a_request_is_signed_as_it_is_and_again_as_it_is_then() {
        let hook = AclClientRPCHook::new(SessionCredentials::new("user", "key"));
        let mut request = RemotingCommand::request_without_header(10).with_body("body");
        request.ext_fields.set("topic", "T");
        for value in ["1", "2"] {
            request.ext_fields.set("queueId", value);
            hook.do_before_request("b:1", &mut request);
            let signed = acl::signature(&request.ext_fields, b"body", "key");
            assert_eq!(request.ext_fields.get(acl::SIGNATURE), Some(&*signed));
            assert_eq!(request.ext_fields.get(acl::ACCESS_KEY), Some("user"));
        }
    }

    #[test]
    fn empty_values_of_a_binary_header_are_left_out() {
        let hook = AclClientRPCHook::new(SessionCredentials::new("user", "key"));
        let mut request = RemotingCommand::request_without_header(10);
        request.ext_fields.set("properties", "");
        let mut binary = request.clone();
        binary.serialize_type = SerializeType::RocketMq;
        hook.do_before_request("b:1", &mut request);
        hook.do_before_request("b:1", &mut binary);
        assert_eq!(request.ext_fields.get("properties"), Some(""));
        assert_eq!(binary.ext_fields.get("properties"), None);
        assert!(binary.ext_fields.get(acl::SIGNATURE).is_some());
    }
}
