//! What is done to every request and seen of every answer.

use std::fmt;

use rocketmq_protocol::{LanguageCode, RemotingCommand, SerializeType};

use crate::client_config::ClientConfig;
use crate::error::{Error, Result};
use crate::service::catch_panic;
use crate::sync::Arc;

/// Sees every request of a client before it is sent, and may change it, and sees the answers; for
/// signatures, tracing, counting.
///
/// Give it to a builder with `rpc_hook`. It is called for requests to brokers and to name servers, of
/// all clients that share the instance. A request that is sent again, because a server said good-bye
/// for instance, passes it again.
///
/// Before it come the fields of `namespace_v2` and `enable_stream_request_type`, after it those of
/// `zone_name` and `zone_mode`.
///
/// # Panics
/// A panic in [`do_before_request`](Self::do_before_request) fails the request with
/// [`MQClient`](crate::Error::MQClient); one in
/// [`do_after_response`](Self::do_after_response) is logged.
///
/// # Java
/// `RPCHook`. Java's hooks also see the requests of brokers to the client, and their answers; these
/// do not.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// use rocketmq_blocking::{DefaultMQProducer, Message, RPCHook, RemotingCommand};
/// use rocketmq_embedded::Cluster;
///
/// #[derive(Default)]
/// struct Counter(AtomicUsize);
///
/// impl RPCHook for Counter {
///     fn do_before_request(&self, _: &str, request: &mut RemotingCommand) {
///         request.ext_fields.set("tenant", "a");
///     }
///
///     fn do_after_response(&self, _: &str, _: &RemotingCommand, _: &RemotingCommand) {
///         self.0.fetch_add(1, Ordering::Relaxed);
///     }
/// }
///
/// let cluster = Cluster::builder().start()?;
/// cluster.create_topic("T", 1)?;
/// let hook = Arc::new(Counter::default());
/// let producer = DefaultMQProducer::builder("p")
///     .namesrv_addr(&cluster.namesrv_addr())
///     .rpc_hook(hook.clone())
///     .build()?;
/// producer.start()?;
/// producer.send(&Message::new("T", "m"))?;
/// // At least the route and the send.
/// assert!(hook.0.load(Ordering::Relaxed) >= 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait RPCHook: Send + Sync {
    /// Called with the request as it is about to be sent to `remote_addr`, on the thread that sends
    /// it: that of a user's call, or one of the library's, which must not be held up. It may be under
    /// a lock of the client, so it must not call the client. A panic fails the request, which is not
    /// sent, with an [`MQClient`](crate::Error::MQClient) error that names its code and server.
    fn do_before_request(&self, remote_addr: &str, request: &mut RemotingCommand);

    /// Called with an answer of whatever code and the request that it is for, before the caller has
    /// it; not for one-way requests, not when no answer came, and not with a server's good-bye, which
    /// has the request sent again. A panic is logged, and the answer counts. Default: nothing.
    fn do_after_response(
        &self,
        remote_addr: &str,
        request: &RemotingCommand,
        response: &RemotingCommand,
    ) {
        let _ = (remote_addr, request, response);
    }
}

/// A hook among the settings: equal to its clones and to nothing else.
#[derive(Clone)]
pub(crate) struct RpcHookRef(Arc<dyn RPCHook>);

impl RpcHookRef {
    pub(crate) fn new(hook: Arc<dyn RPCHook>) -> Self {
        Self(hook)
    }
}

impl PartialEq for RpcHookRef {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for RpcHookRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RPCHook({:p})", self.0)
    }
}

/// All that is done to a request, in Java's order: language and form, the namespace
/// (`NamespaceRpcHook`), the kind of request (`StreamTypeRPCHook`), the user's hook, the zone
/// (`DynamicalExtFieldRPCHook`).
#[derive(Debug, Clone)]
pub(crate) struct RpcHooks {
    language: LanguageCode,
    serialize_type: SerializeType,
    namespace_v2: Option<String>,
    stream_request_type: bool,
    user: Option<RpcHookRef>,
    zone_name: Option<String>,
    zone_mode: Option<String>,
}

impl From<&ClientConfig> for RpcHooks {
    fn from(config: &ClientConfig) -> Self {
        Self {
            language: config.language,
            serialize_type: config.serialize_type.clone().unwrap_or_default(),
            namespace_v2: config.namespace_v2.clone(),
            stream_request_type: config.enable_stream_request_type,
            user: config.rpc_hook.clone(),
            zone_name: config.zone_name.clone(),
            zone_mode: config.zone_mode.clone(),
        }
    }
}

impl RpcHooks {
    /// Whether one of them is the user's, which may take its time.
    pub(super) fn has_user(&self) -> bool {
        self.user.is_some()
    }

    /// Makes a request ready to be sent, for the first time or once more.
    pub(super) fn before_request(&self, addr: &str, request: &mut RemotingCommand) -> Result<()> {
        request.language = self.language;
        request.serialize_type = self.serialize_type;
        if let Some(namespace) = &self.namespace_v2 {
            request.ext_fields.set("nsd", "true");
            request.ext_fields.set("ns", namespace.as_str());
        }
        if self.stream_request_type {
            request.ext_fields.set("ReqT", "0");
        }
        if let Some(user) = &self.user {
            let code = request.code;
            catch_panic(|| user.0.do_before_request(addr, request)).map_err(|said| {
                Error::MQClient {
                    code: None,
                    reason: format!(
                        "the RPC hook panicked before request {code} to {addr}: {said}"
                    ),
                    source: None,
                }
            })?;
        }
        for (name, value) in [
            ("__ZONE_NAME", &self.zone_name),
            ("__ZONE_MODE", &self.zone_mode),
        ] {
            if let Some(value) = value {
                request.ext_fields.set(name, value.as_str());
            }
        }
        Ok(())
    }

    /// Shows an answer to the user's hook.
    pub(super) fn after_response(
        &self,
        addr: &str,
        request: &RemotingCommand,
        response: &RemotingCommand,
    ) {
        let Some(user) = &self.user else { return };
        let shown = catch_panic(|| user.0.do_after_response(addr, request, response));
        if let Err(said) = shown {
            log::error!(
                "the RPC hook panicked after the answer to request {} from {addr}: {said}",
                request.code
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Signer;

    impl RPCHook for Signer {
        fn do_before_request(&self, addr: &str, request: &mut RemotingCommand) {
            let seen: Vec<&str> = request
                .ext_fields
                .iter()
                .map(|(name, _)| name)
                .filter(|name| *name != "seen")
                .collect();
            let seen = format!("{addr} {}", seen.join(","));
            request.ext_fields.set("seen", seen);
        }
    }

    struct Panics;

    impl RPCHook for Panics {
        fn do_before_request(&self, _: &str, _: &mut RemotingCommand) {
            panic!("on purpose");
        }

        fn do_after_response(&self, _: &str, _: &RemotingCommand, _: &RemotingCommand) {
            panic!("on purpose");
        }
    }

    fn hooks(hook: Arc<dyn RPCHook>) -> RpcHooks {
        RpcHooks::from(&ClientConfig {
            namespace_v2: Some("n".into()),
            enable_stream_request_type: true,
            rpc_hook: Some(RpcHookRef::new(hook)),
            zone_name: Some("z".into()),
            zone_mode: Some("true".into()),
            ..ClientConfig::default()
        })
    }

    #[test]
    fn the_user_sees_namespace_and_kind_but_not_the_zone() {
        let mut request = RemotingCommand::request_without_header(10);
        let hooks = hooks(Arc::new(Signer));
        hooks.before_request("b:1", &mut request).unwrap();
        let all: Vec<_> = request.ext_fields.iter().collect();
        assert_eq!(
            all,
            [
                ("nsd", "true"),
                ("ns", "n"),
                ("ReqT", "0"),
                ("seen", "b:1 nsd,ns,ReqT"),
                ("__ZONE_NAME", "z"),
                ("__ZONE_MODE", "true"),
            ]
        );
        hooks.before_request("b:2", &mut request).unwrap();
        assert_eq!(
            request.ext_fields.get("seen"),
            Some("b:2 nsd,ns,ReqT,__ZONE_NAME,__ZONE_MODE"),
            "a request that is sent again passes again, with what it has by now"
        );
    }

    #[test]
    fn without_settings_only_the_language_is_said() {
        let mut request = RemotingCommand::request_without_header(10);
        let config = ClientConfig {
            language: LanguageCode::Cpp,
            zone_name: None,
            zone_mode: None,
            ..ClientConfig::default()
        };
        let hooks = RpcHooks::from(&config);
        hooks.before_request("b:1", &mut request).unwrap();
        assert!(request.ext_fields.is_empty());
        assert_eq!(request.language, LanguageCode::Cpp);
    }

    #[test]
    fn a_panic_before_is_an_error_and_one_after_is_none() {
        let hooks = hooks(Arc::new(Panics));
        let mut request = RemotingCommand::request_without_header(10);
        let error = hooks.before_request("b:1", &mut request).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("panicked before request 10 to b:1")
        );
        assert!(!error.may_have_been_stored());
        let response = RemotingCommand::response(&request, 0, None);
        hooks.after_response("b:1", &request, &response);
    }

    #[test]
    fn a_hook_equals_its_clones_only() {
        let hook: Arc<dyn RPCHook> = Arc::new(Signer);
        let a = RpcHookRef::new(Arc::clone(&hook));
        assert_eq!(a, RpcHookRef::new(hook));
        assert_ne!(a, RpcHookRef::new(Arc::new(Signer)));
    }
}
