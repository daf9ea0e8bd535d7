//! Topics at the broker and at the name server, and what else that stores.

use std::fmt::Write;
use std::time::Duration;

use rocketmq_protocol::body::*;
use rocketmq_protocol::header::*;
use rocketmq_protocol::request_code::*;
use rocketmq_protocol::*;

use super::{Compare, Script};
use crate::raw_client::*;

impl Script {
    pub(super) fn create(&self, topic: &str, read: i32, write: i32, perm: i32) -> RemotingCommand {
        let header = CreateTopicRequestHeader {
            topic: self.name(topic),
            default_topic: "TBW102".to_owned(),
            read_queue_nums: read,
            write_queue_nums: write,
            perm,
            topic_filter_type: Some("SINGLE_TAG".to_owned()),
            topic_sys_flag: Some(0),
            order: Some(false),
            attributes: None,
            force: None,
        };
        RemotingCommand::request(UPDATE_AND_CREATE_TOPIC, &header)
    }

    pub(super) fn topic_config(&self, topic: &str) -> RemotingCommand {
        let topic = self.name(topic);
        RemotingCommand::request(GET_TOPIC_CONFIG, &GetTopicConfigRequestHeader { topic })
    }

    pub(super) fn route(&self, topic: &str) -> RemotingCommand {
        let header = GetRouteInfoRequestHeader {
            topic: self.name(topic),
            accept_standard_json_only: None,
        };
        RemotingCommand::request(GET_ROUTEINFO_BY_TOPIC, &header)
    }

    pub(super) fn topics(&mut self) {
        self.title("topics");
        self.ask("create", self.create("T", 4, 4, 6));
        self.ask("config", self.topic_config("T"));
        self.ask("config of an unknown topic", self.topic_config("Unknown"));
        self.ask_names("route", self.route("T"), Compare::All);
        self.ask_names("no route", self.route("Unknown"), Compare::All);
        self.ask("write only", self.create("W", 1, 1, 2));
        self.ask("read only", self.create("R", 1, 1, 4));
        self.ask("more readers than writers", self.create("Wide", 4, 2, 6));
        let mut bad = self.create("T", 1, 1, 6);
        bad.ext_fields.set("topic", "a b");
        self.ask_for("bad name", bad, Compare::NoRemark);
        let mut system = self.create("T", 1, 1, 6);
        system.ext_fields.set("topic", "TBW102");
        self.ask("system topic", system);
        let mut attributes = self.create("Fifo", 1, 1, 6);
        attributes
            .ext_fields
            .set("attributes", "+message.type=FIFO");
        self.ask("attributes", attributes);
        self.ask("config with attributes", self.topic_config("Fifo"));
        let mut unknown = self.create("Odd", 1, 1, 6);
        unknown.ext_fields.set("attributes", "+colour=red");
        self.ask_for("unknown attribute", unknown, Compare::NoRemark);
        self.ask(
            "unknown code",
            RemotingCommand::request_without_header(9999),
        );
    }

    pub(super) fn name_server(&mut self) {
        self.title("name server");
        let namespace = self.name("N");
        let put = PutKVConfigRequestHeader {
            namespace: namespace.clone(),
            key: "k".to_owned(),
            value: "v".to_owned(),
        };
        let get = RemotingCommand::request(
            GET_KV_CONFIG,
            &GetKVConfigRequestHeader {
                namespace: namespace.clone(),
                key: "k".to_owned(),
            },
        );
        let list = RemotingCommand::request(
            GET_KVLIST_BY_NAMESPACE,
            &GetKVListByNamespaceRequestHeader {
                namespace: namespace.clone(),
            },
        );
        let all = Compare::All;
        self.ask_names("no value", get.clone(), all);
        self.ask_names("no values", list.clone(), all);
        self.ask_names("put", RemotingCommand::request(PUT_KV_CONFIG, &put), all);
        self.ask_names("value", get.clone(), all);
        self.ask_names("values", list.clone(), all);
        let delete = DeleteKVConfigRequestHeader {
            namespace,
            key: "k".to_owned(),
        };
        self.ask_names(
            "delete",
            RemotingCommand::request(DELETE_KV_CONFIG, &delete),
            all,
        );
        self.ask_names("no value", get, all);
        self.ask_names("empty namespace", list, all);
        let broker = |name: &str| WritePermOfBrokerRequestHeader {
            broker_name: name.to_owned(),
        };
        let wipe = RemotingCommand::request(WIPE_WRITE_PERM_OF_BROKER, &broker("broker-a"));
        let add = RemotingCommand::request(ADD_WRITE_PERM_OF_BROKER, &broker("broker-a"));
        let wipe_none = RemotingCommand::request(WIPE_WRITE_PERM_OF_BROKER, &broker("broker-x"));
        self.ask_names("wipe of an unknown broker", wipe_none, all);
        self.ask_names("wipe", wipe, Compare::CodeOnly);
        self.ask_names("route", self.route("T"), all);
        self.ask("a topic is changed", self.create("Wide", 3, 2, 6));
        self.ask_names("route of the changed one", self.route("Wide"), all);
        self.ask_names("route of another", self.route("T"), all);
        self.ask_names("add", add, Compare::CodeOnly);
        self.ask_names("route of a write only topic", self.route("W"), all);
        self.ask_names("route", self.route("T"), all);
        let info = RemotingCommand::request_without_header(GET_BROKER_CLUSTER_INFO);
        self.ask_names("cluster", info, all);
        let topics = RemotingCommand::request_without_header(GET_ALL_TOPIC_LIST_FROM_NAMESERVER);
        let answer = self.names.call(topics);
        let list = TopicList::from_command(&answer).unwrap();
        let known = list.topic_list.contains(&self.name("T"));
        writeln!(self.text, "topic list has the topic: {known}").unwrap();
    }

    pub(super) fn deleted(&mut self) {
        self.title("fewer queues, no topic");
        self.ask("commit", self.update("g", "T", 0, 1));
        self.ask("fewer queues", self.create("T", 1, 1, 6));
        self.ask_for("send beyond", self.send("T", 1, "x"), Compare::NoRemark);
        let beyond = pull_request(&pull_header(&self.name("T"), 1, 0));
        self.ask_for("pull beyond", beyond.clone(), Compare::NoRemark);
        self.ask_names("route", self.route("T"), Compare::All);
        self.ask("more queues", self.create("T", 4, 4, 6));
        self.ask("what was there is back", beyond);
        let delete = RemotingCommand::request(
            DELETE_TOPIC_IN_BROKER,
            &DeleteTopicRequestHeader {
                topic: self.name("T"),
            },
        );
        self.ask("delete", delete.clone());
        self.ask("delete again", delete);
        self.ask("config", self.topic_config("T"));
        self.pull("pull", "T", |_| {});
        let mut send = self.send("T", 0, "x");
        send.ext_fields.set("c", "none");
        self.ask("send", send);
        self.ask("offset", self.query("g", "T", 0, None));
        self.ask_names("the route is still there", self.route("T"), Compare::All);
        let delete = DeleteTopicFromNamesrvRequestHeader {
            topic: self.name("T"),
            cluster_name: None,
        };
        let delete = RemotingCommand::request(DELETE_TOPIC_IN_NAMESRV, &delete);
        self.ask_names("delete at the name server", delete, Compare::All);
        self.ask_names("no route", self.route("T"), Compare::All);
        self.ask("create anew", self.create("T", 2, 2, 6));
        self.pull("it is empty", "T", |_| {});
        // Nothing more came to this connection but notes.
        while let Some(command) = self.broker.next(Duration::from_millis(1)) {
            assert_eq!(command.code, NOTIFY_CONSUMER_IDS_CHANGED);
        }
    }
}
