//! Names of the first kind of namespaces: `ns%topic`, `%RETRY%ns%group` (Java `NamespaceUtil`).

use std::borrow::Cow;

use rocketmq_protocol::mix_all::{DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX};
use rocketmq_protocol::{MessageQueue, validators};

const SEPARATOR: char = '%';
const SYSTEM_TOPIC_PREFIX: &str = "rmq_sys_";
const SYSTEM_GROUP_PREFIX: &str = "CID_RMQ_SYS_";
/// Java `TopicValidator#SYSTEM_TOPIC_SET`.
const SYSTEM_TOPICS: [&str; 12] = [
    "TBW102",
    "SCHEDULE_TOPIC_XXXX",
    "BenchmarkTest",
    "RMQ_SYS_TRANS_HALF_TOPIC",
    "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC",
    "RMQ_SYS_TRACE_TOPIC",
    "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC",
    "TRANS_CHECK_MAX_TIME_TOPIC",
    "SELF_TEST_TOPIC",
    "OFFSET_MOVED_EVENT",
    "CHECKPOINT_TOPIC",
];

/// The namespace of a client, or none: then every name stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Namespace(Option<String>);

impl Namespace {
    /// An empty name is none.
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self(Some(name.into()).filter(|name| !name.is_empty()))
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// The instance that an endpoint of the form `MQ_INST_<a>_<b>.<rest>` names (Java
    /// `NameServerAddressUtils#parseInstanceIdFromEndpoint`).
    pub(crate) fn of_endpoint(addr: &str) -> Option<&str> {
        let (instance, _) = addr.split_once('.')?;
        let rest = instance.strip_prefix("MQ_INST_")?;
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        // Two words joined by an underscore, and words may hold underscores too.
        let joined = rest
            .get(1..rest.len().saturating_sub(1))
            .is_some_and(|inner| inner.contains('_'));
        (joined && rest.chars().all(is_word)).then_some(instance)
    }

    /// What the name may not be; the same characters as in topics, without the separator.
    pub(crate) fn problem(&self) -> Option<String> {
        let name = self.name()?;
        let problem = if name.contains(SEPARATOR) {
            "it contains %, which stands between namespace and name".to_owned()
        } else {
            validators::check_topic(name).err()?.to_string()
        };
        Some(format!("namespace {name:?}: {problem}"))
    }

    /// The name as servers know it. Names of the system, and those that are wrapped already, stay.
    pub(crate) fn wrap<'a>(&self, resource: &'a str) -> Cow<'a, str> {
        let Some(namespace) = self.name() else {
            return Cow::Borrowed(resource);
        };
        let (prefix, rest) = split_prefix(resource);
        if resource.is_empty() || is_system_resource(resource) || strip(rest, namespace).is_some() {
            return Cow::Borrowed(resource);
        }
        Cow::Owned(format!("{prefix}{namespace}{SEPARATOR}{rest}"))
    }

    /// The name as users know it; one of another namespace stays.
    pub(crate) fn unwrap<'a>(&self, resource: &'a str) -> Cow<'a, str> {
        let (prefix, rest) = split_prefix(resource);
        match self.name().and_then(|namespace| strip(rest, namespace)) {
            Some(rest) if !is_system_resource(resource) => Cow::Owned(format!("{prefix}{rest}")),
            _ => Cow::Borrowed(resource),
        }
    }

    pub(crate) fn wrap_queue(&self, mq: &MessageQueue) -> MessageQueue {
        with_topic(mq, self.wrap(mq.topic()))
    }

    pub(crate) fn unwrap_queue(&self, mq: &MessageQueue) -> MessageQueue {
        with_topic(mq, self.unwrap(mq.topic()))
    }
}

fn with_topic(mq: &MessageQueue, topic: Cow<'_, str>) -> MessageQueue {
    match topic {
        Cow::Borrowed(_) => mq.clone(),
        Cow::Owned(topic) => MessageQueue::new(topic, mq.broker_name(), mq.queue_id()),
    }
}

fn split_prefix(resource: &str) -> (&str, &str) {
    for prefix in [RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX] {
        if let Some(rest) = resource.strip_prefix(prefix) {
            return (prefix, rest);
        }
    }
    ("", resource)
}

fn strip<'a>(rest: &'a str, namespace: &str) -> Option<&'a str> {
    rest.strip_prefix(namespace)?.strip_prefix(SEPARATOR)
}

fn is_system_resource(resource: &str) -> bool {
    SYSTEM_TOPICS.contains(&resource)
        || resource.starts_with(SYSTEM_TOPIC_PREFIX)
        || resource.starts_with(SYSTEM_GROUP_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_wrapped_behind_the_prefixes_of_retries() {
        let ns = Namespace::new("ns");
        assert_eq!(ns.wrap("topic"), "ns%topic");
        assert_eq!(ns.wrap("%RETRY%group"), "%RETRY%ns%group");
        assert_eq!(ns.wrap("%DLQ%group"), "%DLQ%ns%group");
        assert_eq!(ns.wrap("nsx%topic"), "ns%nsx%topic", "of another namespace");
    }

    /// apache/rocketmq-client-go#933, #945 (PR#944), apache/rocketmq#6326: tables that had the bare
    /// name did not find what came under the wrapped one. Whatever is wrapped is wrapped once, and
    /// comes back as it was.
    #[test]
    fn b119_there_is_one_wrapped_form_of_each_name() {
        let ns = Namespace::new("NS");
        for (plain, wrapped) in [
            ("T", "NS%T"),
            ("%RETRY%G", "%RETRY%NS%G"),
            ("%DLQ%G", "%DLQ%NS%G"),
            ("TBW102", "TBW102"),
        ] {
            assert_eq!(ns.wrap(plain), wrapped);
            assert_eq!(ns.wrap(wrapped), wrapped);
            assert_eq!(ns.unwrap(wrapped), plain);
            assert_eq!(Namespace::new("").wrap(plain), plain);
        }
    }

    #[test]
    fn wrapping_twice_is_wrapping_once() {
        let ns = Namespace::new("ns");
        for name in ["topic", "%RETRY%group", "%DLQ%group"] {
            let once = ns.wrap(name).into_owned();
            assert_eq!(ns.wrap(&once), once);
            assert_eq!(ns.unwrap(&once), name);
            assert_eq!(ns.unwrap(name), name);
        }
    }

    #[test]
    fn names_of_the_system_belong_to_no_namespace() {
        let ns = Namespace::new("ns");
        for name in [
            "TBW102",
            "rmq_sys_anything",
            "CID_RMQ_SYS_TRANS",
            "RMQ_SYS_TRACE_TOPIC",
            "",
        ] {
            assert_eq!(ns.wrap(name), name);
        }
    }

    #[test]
    fn without_a_namespace_and_of_another_one_names_stay() {
        let none = Namespace::new("");
        assert_eq!(none, Namespace::default());
        assert_eq!(none.wrap("%RETRY%g"), "%RETRY%g");
        assert_eq!(none.unwrap("ns%t"), "ns%t");
        assert_eq!(Namespace::new("ns").unwrap("other%t"), "other%t");
        assert_eq!(Namespace::new("ns").unwrap("nsother%t"), "nsother%t");
    }

    #[test]
    fn an_endpoint_names_its_instance() {
        let of = Namespace::of_endpoint;
        assert_eq!(of("MQ_INST_123_abc.mq.example:80"), Some("MQ_INST_123_abc"));
        assert_eq!(of("MQ_INST_1_2_3.x:80"), Some("MQ_INST_1_2_3"));
        for addr in [
            "10.0.0.1:9876",
            "MQ_INST_12.x:80",
            "MQ_INST__.x:80",
            "MQ_INST_a-b_c.x:1",
            "MQ_INST_a_b:1",
        ] {
            assert_eq!(of(addr), None, "{addr}");
        }
    }

    #[test]
    fn a_namespace_has_the_characters_of_a_topic() {
        assert_eq!(Namespace::new("MQ_INST_1_a").problem(), None);
        assert_eq!(Namespace::default().problem(), None);
        assert!(Namespace::new("a%b").problem().unwrap().contains('%'));
        assert!(Namespace::new("a b").problem().is_some());
    }

    #[test]
    fn queues_change_their_topic_only() {
        let ns = Namespace::new("ns");
        let mq = MessageQueue::new("t", "b", 3);
        assert_eq!(ns.wrap_queue(&mq), MessageQueue::new("ns%t", "b", 3));
        assert_eq!(ns.unwrap_queue(&ns.wrap_queue(&mq)), mq);
    }
}
