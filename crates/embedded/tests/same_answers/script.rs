//! Questions to a name server and a broker, and their answers as text.
//!
//! What differs from run to run (addresses, times, ids, names made for the run) is replaced by
//! words, and sets are sorted.

use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rocketmq_protocol::body::{
    ClusterInfo, JsonBody, LockBatchRequestBody, MessageModel, SubscriptionGroupConfig,
};
use rocketmq_protocol::header::*;
use rocketmq_protocol::request_code::*;
use rocketmq_protocol::{
    Message, MessageQueue, RemotingCommand, StoredMessages, encode_batch, encode_properties,
    sys_flag,
};

use crate::raw_client::{
    LIMIT, RawClient, heartbeat_data, pull_header, pull_request, send_header, send_request,
};

pub(crate) struct Script {
    names: RawClient,
    broker: RawClient,
    broker_addr: String,
    suffix: String,
    text: String,
}

/// How much of an answer is compared.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Compare {
    All,
    /// Texts of refusals that this broker words for itself.
    NoRemark,
    /// Bodies and counts that depend on what else the broker has.
    CodeOnly,
}

impl Script {
    pub(crate) fn run(namesrv: &str) -> String {
        let mut names = RawClient::connect(namesrv);
        let info = names.call(RemotingCommand::request_without_header(
            GET_BROKER_CLUSTER_INFO,
        ));
        let info = ClusterInfo::from_command(&info).unwrap();
        let broker_addr = info.broker_addr_table["broker-a"].broker_addrs[&0].clone();
        let nanos = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_nanos();
        let mut script = Self {
            broker: RawClient::connect(&broker_addr),
            names,
            broker_addr,
            suffix: format!("_{nanos}"),
            text: String::new(),
        };
        script.topics();
        script.sends();
        script.offsets();
        script.pulls();
        script.locks();
        script.groups();
        script.resets();
        script.members();
        script.name_server();
        script.notes();
        script.nonsense();
        script.deleted();
        script.text
    }

    fn name(&self, name: &str) -> String {
        format!("{name}{}", self.suffix)
    }

    fn title(&mut self, title: &str) {
        writeln!(self.text, "# {title}").unwrap();
    }

    fn ask(&mut self, what: &str, request: RemotingCommand) -> RemotingCommand {
        self.ask_for(what, request, Compare::All)
    }

    fn ask_for(&mut self, what: &str, request: RemotingCommand, how: Compare) -> RemotingCommand {
        let answer = self.broker.call(request);
        self.note(what, &answer, how);
        answer
    }

    fn ask_names(&mut self, what: &str, request: RemotingCommand, how: Compare) {
        let answer = self.names.call(request);
        self.note(what, &answer, how);
    }

    fn note(&mut self, what: &str, answer: &RemotingCommand, how: Compare) {
        let mut line = format!("{what}: {}", answer.code);
        if how != Compare::CodeOnly {
            if let Some(remark) = answer.remark.as_ref().filter(|_| how == Compare::All) {
                // With code 0 it carries no meaning, and Java leaves words of its own there.
                if answer.code != 0 || remark.starts_with("Offset has") {
                    write!(line, " {remark:?}").unwrap();
                }
            }
            let mut fields: Vec<_> = answer.ext_fields.iter().collect();
            fields.sort_unstable();
            for (name, value) in fields {
                write!(line, " {name}={value}").unwrap();
            }
            self.note_body(answer, &mut line);
        }
        let line = self.plain(&line);
        writeln!(self.text, "{line}").unwrap();
    }

    fn note_body(&self, answer: &RemotingCommand, line: &mut String) {
        let Some(body) = &answer.body else { return };
        if body.first() == Some(&b'{') {
            let json: serde_json::Value =
                rocketmq_protocol::json::from_slice("body", body).unwrap();
            write!(line, " {}", sorted(json)).unwrap();
            return;
        }
        for message in StoredMessages::new(body.clone()) {
            let message = message.unwrap();
            let properties = message.properties();
            let properties: Vec<_> = properties.iter().map(|(k, v)| format!("{k}={v}")).collect();
            write!(
                line,
                "\n  {}#{}@{} flag={} sys={} times={} body={:?} {}",
                message.topic(),
                message.queue_id(),
                message.queue_offset(),
                message.flag(),
                message.sys_flag(),
                message.reconsume_times(),
                String::from_utf8_lossy(message.body()),
                properties.join(" ")
            )
            .unwrap();
        }
    }

    /// Without what differs from run to run.
    fn plain(&self, line: &str) -> String {
        let mut plain = line
            .replace(&self.suffix, "")
            .replace(&self.broker_addr, "BROKER");
        for client in [&self.broker, &self.names] {
            let addr = client.stream().local_addr().unwrap().to_string();
            plain = plain.replace(&addr, "CLIENT");
        }
        let mut out = String::new();
        let mut digits = String::new();
        let flush = |digits: &mut String, out: &mut String| {
            // 13 digits are milliseconds since 1970; 32 or 56 an id.
            match digits.len() {
                13 if digits.bytes().all(|b| b.is_ascii_digit()) => out.push_str("TIME"),
                32 | 56 => out.push_str("ID"),
                _ => out.push_str(digits),
            }
            digits.clear();
        };
        for character in plain.chars() {
            if character.is_ascii_digit() || matches!(character, 'A'..='F') {
                digits.push(character);
            } else {
                flush(&mut digits, &mut out);
                out.push(character);
            }
        }
        flush(&mut digits, &mut out);
        out
    }

    fn create(&self, topic: &str, read: i32, write: i32, perm: i32) -> RemotingCommand {
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

    fn topic_config(&self, topic: &str) -> RemotingCommand {
        let topic = self.name(topic);
        RemotingCommand::request(GET_TOPIC_CONFIG, &GetTopicConfigRequestHeader { topic })
    }

    fn route(&self, topic: &str) -> RemotingCommand {
        let header = GetRouteInfoRequestHeader {
            topic: self.name(topic),
            accept_standard_json_only: None,
        };
        RemotingCommand::request(GET_ROUTEINFO_BY_TOPIC, &header)
    }

    fn topics(&mut self) {
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

    fn send(&self, topic: &str, queue_id: i32, body: &str) -> RemotingCommand {
        let mut message = Message::new(self.name(topic), body.as_bytes().to_vec()).with_tags("A");
        message.put_property("UNIQ_KEY", "0123456789ABCDEF0123456789ABCDEF");
        send_request(queue_id, &message)
    }

    fn sends(&mut self) {
        self.title("sends");
        for number in 0..3 {
            self.ask("send", self.send("T", 0, &format!("m{number}")));
        }
        self.ask_for(
            "queue out of range",
            self.send("T", 9, "x"),
            Compare::NoRemark,
        );
        self.ask("read only is stored", self.send("R", 0, "x"));
        let mut unknown = self.send("Unknown", 0, "x");
        unknown.ext_fields.set("c", "none");
        self.ask("unknown topic", unknown);
        let batch = |script: &Self, topic: String| {
            let messages: Vec<_> = (0..3)
                .map(|number| {
                    let body = format!("b{number}").into_bytes();
                    let mut message = Message::new(topic.clone(), body).with_tags("B");
                    message.put_property("WAIT", "true");
                    message.set_flag(number);
                    message
                })
                .collect();
            let mut header = send_header(1, &Message::new(topic, b"x".as_slice()));
            header.batch = Some(true);
            header.properties = Some(encode_properties(
                &[("WAIT".to_owned(), "true".to_owned())].into(),
            ));
            let _ = script;
            RemotingCommand::request(SEND_BATCH_MESSAGE, &SendMessageRequestHeaderV2(header))
                .with_body(encode_batch(&messages).unwrap())
        };
        self.ask("batch", batch(self, self.name("T")));
        self.ask("batch again", batch(self, self.name("T")));
        let retry = format!("%RETRY%{}", self.name("g"));
        self.ask("batch to a retry topic", batch(self, retry));
        let mut cut = batch(self, self.name("T"));
        cut.body = cut.body.map(|body| body.slice(..body.len() - 1));
        self.ask_for("batch that is cut", cut, Compare::CodeOnly);
        let header = pull_header(&self.name("T"), 1, 0);
        self.ask("what became of the batches", pull_request(&header));
        let header = pull_header(&self.name("T"), 0, 0);
        self.ask("what became of the messages", pull_request(&header));
    }

    fn query(
        &self,
        group: &str,
        topic: &str,
        queue_id: i32,
        zero: Option<bool>,
    ) -> RemotingCommand {
        let header = QueryConsumerOffsetRequestHeader {
            consumer_group: self.name(group),
            topic: self.name(topic),
            queue_id,
            set_zero_if_not_found: zero,
            broker_name: None,
        };
        RemotingCommand::request(QUERY_CONSUMER_OFFSET, &header)
    }

    fn update(&self, group: &str, topic: &str, queue_id: i32, offset: i64) -> RemotingCommand {
        let header = UpdateConsumerOffsetRequestHeader {
            consumer_group: self.name(group),
            topic: self.name(topic),
            queue_id,
            commit_offset: offset,
            broker_name: None,
        };
        RemotingCommand::request(UPDATE_CONSUMER_OFFSET, &header)
    }

    fn offsets(&mut self) {
        self.title("offsets");
        self.ask(
            "none, but the first message is there",
            self.query("fresh", "T", 0, None),
        );
        self.ask(
            "none, and 0 not wanted",
            self.query("fresh", "T", 0, Some(false)),
        );
        self.ask("none of an empty queue", self.query("fresh", "T", 2, None));
        self.ask(
            "none of an unknown topic",
            self.query("fresh", "Unknown", 0, None),
        );
        self.ask(
            "commit of an unknown group",
            self.update("fresh", "T", 0, 1),
        );
        let data = heartbeat_data("c1", &self.name("g"), &[&self.name("T")]);
        let heartbeat =
            RemotingCommand::request_without_header(HEART_BEAT).with_body(data.to_json().unwrap());
        self.ask("heartbeat", heartbeat);
        self.ask("commit", self.update("g", "T", 0, 2));
        self.ask("committed", self.query("g", "T", 0, None));
        self.ask(
            "commit of an unknown topic",
            self.update("g", "Unknown", 0, 2),
        );
        for (what, queue_id) in [("queue", 0), ("empty queue", 2), ("no queue", 99)] {
            let topic = self.name("T");
            let max = GetMaxOffsetRequestHeader {
                topic: topic.clone(),
                queue_id,
                ..GetMaxOffsetRequestHeader::default()
            };
            let min = GetMinOffsetRequestHeader {
                topic: topic.clone(),
                queue_id,
                broker_name: None,
            };
            let earliest = GetEarliestMsgStoretimeRequestHeader {
                topic: topic.clone(),
                queue_id,
                broker_name: None,
            };
            self.ask(
                &format!("max of {what}"),
                RemotingCommand::request(GET_MAX_OFFSET, &max),
            );
            self.ask(
                &format!("min of {what}"),
                RemotingCommand::request(GET_MIN_OFFSET, &min),
            );
            self.ask(
                &format!("earliest of {what}"),
                RemotingCommand::request(GET_EARLIEST_MSG_STORETIME, &earliest),
            );
            for (timestamp, boundary) in [(0, None), (i64::MAX / 2, None), (0, Some("UPPER"))] {
                let search = SearchOffsetRequestHeader {
                    topic: topic.clone(),
                    queue_id,
                    timestamp,
                    boundary_type: boundary.map(str::to_owned),
                    ..SearchOffsetRequestHeader::default()
                };
                self.ask(
                    &format!("search {timestamp} {boundary:?} in {what}"),
                    RemotingCommand::request(SEARCH_OFFSET_BY_TIMESTAMP, &search),
                );
            }
        }
    }

    fn pull(
        &mut self,
        what: &str,
        topic: &str,
        change: impl FnOnce(&mut PullMessageRequestHeader),
    ) -> RemotingCommand {
        let mut header = pull_header(&self.name(topic), 0, 0);
        header.consumer_group = self.name("g");
        header.sub_version = 1;
        change(&mut header);
        self.ask(what, pull_request(&header))
    }

    fn pulls(&mut self) {
        self.title("pulls");
        self.pull("found", "T", |h| h.max_msg_nums = 1);
        self.pull("at the end", "T", |h| h.queue_offset = 3);
        self.pull("behind the end", "T", |h| h.queue_offset = 4);
        self.pull("before the start", "T", |h| h.queue_offset = -1);
        self.pull("empty queue", "T", |h| h.queue_id = 2);
        self.pull("empty queue behind its end", "T", |h| {
            h.queue_id = 2;
            h.queue_offset = 5;
        });
        self.pull("other tags", "T", |h| h.subscription = Some("X".to_owned()));
        self.pull("separators", "T", |h| {
            h.subscription = Some("||".to_owned())
        });
        self.pull("SQL", "T", |h| {
            h.subscription = Some("a > 1".to_owned());
            h.expression_type = Some("SQL92".to_owned());
        });
        self.pull("unknown topic", "Unknown", |_| {});
        self.pull("may not be read", "W", |_| {});
        self.pull("subscribed", "T", |h| h.sys_flag = 0);
        self.pull("newer than the heartbeat", "T", |h| {
            h.sys_flag = 0;
            h.sub_version = 2;
        });
        self.pull("not subscribed", "R", |h| h.sys_flag = 0);
        let group = self.name("nobody");
        self.pull("group without members", "T", |h| {
            h.sys_flag = 0;
            h.consumer_group = group;
        });
        self.pull("group with a name too long", "T", |h| {
            h.consumer_group = "x".repeat(121);
        });
        let mut header = pull_header(&self.name("T"), 9, 0);
        header.consumer_group = self.name("g");
        self.ask_for(
            "queue out of range",
            pull_request(&header),
            Compare::NoRemark,
        );
        self.pull("with a commit", "T", |h| {
            h.sys_flag |= sys_flag::PULL_COMMIT_OFFSET;
            h.commit_offset = 1;
            h.max_msg_nums = 1;
        });
        self.ask("committed by the pull", self.query("g", "T", 0, None));
    }

    fn lock(&self, code: i32, client: &str, queues: &[i32]) -> RemotingCommand {
        let body = LockBatchRequestBody {
            client_id: client.to_owned(),
            consumer_group: self.name("g"),
            mq_set: queues
                .iter()
                .map(|id| MessageQueue::new(self.name("T"), "broker-a", *id))
                .collect(),
            only_this_broker: false,
        };
        RemotingCommand::request_without_header(code).with_body(body.to_json().unwrap())
    }

    fn locks(&mut self) {
        self.title("locks");
        self.ask("a locks", self.lock(LOCK_BATCH_MQ, "a", &[0, 1]));
        self.ask("b locks", self.lock(LOCK_BATCH_MQ, "b", &[0, 1, 2]));
        self.ask("a locks again", self.lock(LOCK_BATCH_MQ, "a", &[0, 1, 2]));
        self.ask("b unlocks", self.lock(UNLOCK_BATCH_MQ, "b", &[0, 1]));
        self.ask("b locks", self.lock(LOCK_BATCH_MQ, "b", &[0, 1]));
        self.ask("a unlocks", self.lock(UNLOCK_BATCH_MQ, "a", &[0]));
        self.ask("b locks", self.lock(LOCK_BATCH_MQ, "b", &[0, 1]));
        self.ask("nothing", self.lock(LOCK_BATCH_MQ, "b", &[]));
        let ends = |script: &mut Self| {
            for topic in ["%RETRY%", "%DLQ%"] {
                let header = GetMaxOffsetRequestHeader {
                    topic: format!("{topic}{}", script.name("g")),
                    queue_id: 0,
                    ..GetMaxOffsetRequestHeader::default()
                };
                script.ask(
                    &format!("messages in {topic}"),
                    RemotingCommand::request(GET_MAX_OFFSET, &header),
                );
            }
        };
        let retry = format!("%RETRY%{}", self.name("g"));
        let message = Message::new(retry, b"again".as_slice());
        self.ask("send to the retry topic", send_request(0, &message));
        ends(self);
        self.ask("all unlocked", self.lock(UNLOCK_BATCH_MQ, "a", &[0, 1]));
        self.ask("all unlocked", self.lock(UNLOCK_BATCH_MQ, "b", &[0, 1, 2]));
        self.ask("send to the retry topic", send_request(0, &message));
        ends(self);
    }

    fn group(&self, change: impl FnOnce(&mut SubscriptionGroupConfig)) -> RemotingCommand {
        let mut config = SubscriptionGroupConfig::new(self.name("g"));
        change(&mut config);
        RemotingCommand::request_without_header(UPDATE_AND_CREATE_SUBSCRIPTIONGROUP)
            .with_body(config.to_json().unwrap())
    }

    fn group_config(&self, group: &str) -> RemotingCommand {
        let group = self.name(group);
        let header = GetSubscriptionGroupConfigRequestHeader { group };
        RemotingCommand::request(GET_SUBSCRIPTIONGROUP_CONFIG, &header)
    }

    /// What an answer consists of, whatever else the broker has.
    fn shape(&mut self, what: &str, code: i32) {
        let answer = self
            .broker
            .call(RemotingCommand::request_without_header(code));
        let fields: Vec<_> = answer.ext_fields.iter().map(|(name, _)| name).collect();
        let json: serde_json::Value =
            rocketmq_protocol::json::from_slice("body", answer.body_bytes()).unwrap();
        let json = json.as_object().unwrap();
        let mut keys: Vec<_> = json.keys().cloned().collect();
        keys.sort_unstable();
        writeln!(self.text, "{what}: {} {fields:?} {keys:?}", answer.code).unwrap();
    }

    fn groups(&mut self) {
        self.title("groups");
        self.ask("as the heartbeat made it", self.group_config("g"));
        self.ask(
            "may not consume",
            self.group(|config| config.consume_enable = false),
        );
        self.pull("pull", "T", |_| {});
        self.ask(
            "may not broadcast",
            self.group(|config| {
                config.consume_broadcast_enable = false;
                config.group_sys_flag = 5;
                config.retry_max_times = 0;
            }),
        );
        self.ask("settings", self.group_config("g"));
        let mut data = heartbeat_data("c1", &self.name("g"), &[&self.name("T")]);
        data.consumer_data_set[0].message_model = MessageModel::Broadcasting;
        let heartbeat = |data: &rocketmq_protocol::body::HeartbeatData| {
            RemotingCommand::request_without_header(HEART_BEAT).with_body(data.to_json().unwrap())
        };
        self.ask("broadcasting heartbeat", heartbeat(&data));
        self.pull("pull by the heartbeat", "T", |h| h.sys_flag = 0);
        self.pull("pull with a subscription", "T", |h| h.max_msg_nums = 1);
        data.consumer_data_set[0].message_model = MessageModel::Clustering;
        self.ask("clustering heartbeat", heartbeat(&data));
        let found = self.pull("pull by the heartbeat", "T", |h| {
            h.sys_flag = 0;
            h.max_msg_nums = 1;
        });
        let body = found.body.unwrap();
        let message = StoredMessages::new(body).next().unwrap().unwrap();
        let origin = self.name("T");
        let back = |offset, group: String| {
            let header = ConsumerSendMsgBackRequestHeader {
                offset,
                group,
                delay_level: 1,
                origin_topic: Some(origin.clone()),
                ..ConsumerSendMsgBackRequestHeader::default()
            };
            RemotingCommand::request(CONSUMER_SEND_MSG_BACK, &header)
        };
        let offset = message.commit_log_offset();
        self.ask(
            "given back by a group without retries",
            back(offset, self.name("g")),
        );
        let dlq = format!("%DLQ%{}", self.name("g"));
        self.ask("dead letters", pull_request(&pull_header(&dlq, 0, 0)));
        self.ask(
            "no retry queues",
            self.group(|config| config.retry_queue_nums = 0),
        );
        self.ask("given back", back(offset, self.name("g")));
        self.ask("given back by nobody", back(offset, "x".repeat(121)));
        self.shape("all groups", GET_ALL_SUBSCRIPTIONGROUP_CONFIG);
        self.shape("all topics", GET_ALL_TOPIC_CONFIG);
        let list = format!(
            r#"{{"groupConfigList":[{{"groupName":"{}"}}]}}"#,
            self.name("listed")
        );
        let list =
            RemotingCommand::request_without_header(UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST)
                .with_body(list);
        self.ask("a list of groups", list);
        self.ask("one of the list", self.group_config("listed"));
        self.ask_for(
            "bad name",
            self.group(|config| config.group_name = "a b".to_owned()),
            Compare::NoRemark,
        );
        let delete = DeleteSubscriptionGroupRequestHeader {
            group_name: self.name("g"),
            clean_offset: Some(true),
        };
        self.ask(
            "delete with offsets",
            RemotingCommand::request(DELETE_SUBSCRIPTIONGROUP, &delete),
        );
        self.ask(
            "offset of a deleted group",
            self.query("g", "T", 0, Some(false)),
        );
        self.ask("commit of a deleted group", self.update("g", "T", 0, 1));
        self.ask("asking creates it anew", self.group_config("g"));
        self.ask("commit", self.update("g", "T", 0, 1));
    }

    fn reset(
        &self,
        topic: &str,
        group: &str,
        queue_id: i32,
        offset: Option<i64>,
    ) -> RemotingCommand {
        let header = ResetOffsetRequestHeader {
            topic: self.name(topic),
            group: self.name(group),
            timestamp: -1,
            is_force: false,
            queue_id: Some(queue_id),
            offset,
            broker_name: None,
        };
        RemotingCommand::request(INVOKE_BROKER_TO_RESET_OFFSET, &header)
    }

    fn resets(&mut self) {
        self.title("resets");
        self.ask("one queue", self.reset("T", "g", 0, Some(2)));
        self.ask("offset is the target", self.query("g", "T", 0, None));
        self.ask("a commit is ignored", self.update("g", "T", 0, 1));
        self.ask("offset is the target", self.query("g", "T", 0, None));
        self.pull("the pull hears of it", "T", |h| h.queue_offset = 1);
        self.ask("offset after the pull", self.query("g", "T", 0, None));
        self.pull("the next pull does not", "T", |h| h.queue_offset = 2);
        self.ask("a commit counts again", self.update("g", "T", 0, 3));
        self.ask("offset", self.query("g", "T", 0, None));
        self.ask("all queues to the end", self.reset("T", "g", -1, None));
        self.pull("the pull's commit wins", "T", |h| {
            h.sys_flag |= sys_flag::PULL_COMMIT_OFFSET;
            h.commit_offset = 1;
        });
        self.ask("offset", self.query("g", "T", 0, None));
        self.ask("out of range", self.reset("T", "g", 0, Some(9)));
        self.ask("one behind the end", self.reset("T", "g", 0, Some(4)));
        self.pull("the pull hears of it", "T", |h| h.queue_offset = 1);
        self.ask("unknown topic", self.reset("Unknown", "g", 0, Some(0)));
        self.ask("unknown group", self.reset("T", "stranger", 0, Some(0)));
    }

    fn members(&mut self) {
        self.title("members");
        let topic = self.name("T");
        let group = self.name("g");
        let mut data = heartbeat_data("c1", &group, &[&topic]);
        data.producer_data_set = vec![rocketmq_protocol::body::ProducerData {
            group_name: self.name("pg"),
        }];
        let heartbeat =
            RemotingCommand::request_without_header(HEART_BEAT).with_body(data.to_json().unwrap());
        self.ask("heartbeat", heartbeat);
        let consumers = |group: String| {
            let header = GetConsumerConnectionListRequestHeader {
                consumer_group: group,
            };
            RemotingCommand::request(GET_CONSUMER_CONNECTION_LIST, &header)
        };
        let producers = |group: String| {
            let header = GetProducerConnectionListRequestHeader {
                producer_group: group,
            };
            RemotingCommand::request(GET_PRODUCER_CONNECTION_LIST, &header)
        };
        self.ask("consumers", consumers(group.clone()));
        self.ask("consumers of nobody", consumers(self.name("nobody")));
        self.ask("producers", producers(self.name("pg")));
        self.ask("producers of nobody", producers(self.name("nobody")));
        let stats = GetTopicStatsInfoRequestHeader {
            topic: topic.clone(),
        };
        self.ask_stats(
            "topic stats",
            RemotingCommand::request(GET_TOPIC_STATS_INFO, &stats),
        );
        let stats = GetTopicStatsInfoRequestHeader {
            topic: self.name("Unknown"),
        };
        self.ask(
            "topic stats of an unknown topic",
            RemotingCommand::request(GET_TOPIC_STATS_INFO, &stats),
        );
        for of in [None, Some(self.name("T")), Some(self.name("R"))] {
            let stats = GetConsumeStatsRequestHeader {
                consumer_group: group.clone(),
                topic: of.clone(),
                topic_list: None,
            };
            let what = format!("consume stats of {of:?}");
            self.ask_stats(&what, RemotingCommand::request(GET_CONSUME_STATS, &stats));
        }
        self.calls(&group);
        let leave = UnregisterClientRequestHeader {
            client_id: "c1".to_owned(),
            producer_group: Some(self.name("pg")),
            consumer_group: Some(group.clone()),
        };
        self.ask("leave", RemotingCommand::request(UNREGISTER_CLIENT, &leave));
        self.ask("consumers", consumers(group));
        self.ask("producers", producers(self.name("pg")));
    }

    /// Rates are what this broker does not measure.
    fn ask_stats(&mut self, what: &str, request: RemotingCommand) {
        let mut answer = self.broker.call(request);
        let mut json: serde_json::Value =
            rocketmq_protocol::json::from_slice("body", answer.body_bytes()).unwrap();
        for rate in ["topicPutTps", "consumeTps"] {
            if let Some(rate) = json.get_mut(rate) {
                *rate = "RATE".into();
            }
        }
        answer.body = Some(json.to_string().into());
        self.note(what, &answer, Compare::All);
    }

    /// Requests that the broker hands on to a client.
    fn calls(&mut self, group: &str) {
        let running = |client: &str| {
            let header = GetConsumerRunningInfoRequestHeader {
                consumer_group: group.to_owned(),
                client_id: client.to_owned(),
                jstack_enable: Some(false),
            };
            RemotingCommand::request(GET_CONSUMER_RUNNING_INFO, &header)
        };
        self.ask("running info of nobody", running("c9"));
        let mut admin = RawClient::connect(&self.broker_addr);
        let opaque = admin.send(running("c1"));
        self.hand_on(&mut admin, opaque, "running info");
        let mut header = pull_header(&self.name("T"), 0, 0);
        header.max_msg_nums = 1;
        let found = self.broker.call(pull_request(&header));
        let message = StoredMessages::new(found.body.unwrap())
            .next()
            .unwrap()
            .unwrap();
        let header = ConsumeMessageDirectlyResultRequestHeader {
            consumer_group: group.to_owned(),
            client_id: Some("c1".to_owned()),
            msg_id: Some(message.offset_msg_id().to_owned()),
            topic: Some(self.name("T")),
            ..ConsumeMessageDirectlyResultRequestHeader::default()
        };
        let opaque = admin.send(RemotingCommand::request(CONSUME_MESSAGE_DIRECTLY, &header));
        self.hand_on(&mut admin, opaque, "consume directly");
    }

    fn hand_on(&mut self, admin: &mut RawClient, opaque: i32, what: &str) {
        let request = loop {
            let command = self.broker.next(LIMIT).unwrap();
            if command.code != NOTIFY_CONSUMER_IDS_CHANGED {
                break command;
            }
        };
        assert!(!request.is_response() && !request.is_oneway());
        self.note(&format!("{what}, at the client"), &request, Compare::All);
        let answer = RemotingCommand::response(&request, 0, None);
        self.broker
            .send_as_it_is(answer.with_body(br#"{"said":"by the client"}"#.as_slice()));
        let answer = admin.answer_to(opaque);
        self.note(&format!("{what}, handed back"), &answer, Compare::All);
    }

    fn name_server(&mut self) {
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
        self.ask_names("wipe", wipe.clone(), Compare::CodeOnly);
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
        let list = rocketmq_protocol::body::TopicList::from_command(&answer).unwrap();
        let known = list.topic_list.contains(&self.name("T"));
        writeln!(self.text, "topic list has the topic: {known}").unwrap();
    }

    /// Which notes come before the answer to a request.
    fn notes_before(&mut self, what: &str, request: RemotingCommand) {
        let opaque = self.broker.send(request);
        let mut notes = Vec::new();
        let answer = loop {
            let command = self.broker.next(LIMIT).unwrap();
            if command.is_response() && command.opaque == opaque {
                break command;
            }
            assert_eq!(command.code, NOTIFY_CONSUMER_IDS_CHANGED);
            notes.push(command.ext_fields.get("consumerGroup").unwrap().to_owned());
        };
        let line = self.plain(&format!("{what}: {} after notes {notes:?}", answer.code));
        writeln!(self.text, "{line}").unwrap();
    }

    fn notes(&mut self) {
        self.title("notes");
        // Old ones are out of the way.
        while self.broker.next(Duration::from_millis(200)).is_some() {}
        let heartbeat = |group: &str, topics: &[&str]| {
            RemotingCommand::request_without_header(HEART_BEAT)
                .with_body(heartbeat_data("c1", group, topics).to_json().unwrap())
        };
        let leave = |group: &str| {
            let header = UnregisterClientRequestHeader {
                client_id: "c1".to_owned(),
                producer_group: None,
                consumer_group: Some(group.to_owned()),
            };
            RemotingCommand::request(UNREGISTER_CLIENT, &header)
        };
        let told = self.name("told");
        self.notes_before("joining", heartbeat(&told, &["T"]));
        self.notes_before("staying", heartbeat(&told, &["T"]));
        self.notes_before("another topic", heartbeat(&told, &["T", "U"]));
        self.notes_before("a topic less", heartbeat(&told, &["U"]));
        self.notes_before("leaving", leave(&told));
        let untold = self.name("untold");
        let mut config = SubscriptionGroupConfig::new(untold.clone());
        config.notify_consumer_ids_changed_enable = false;
        config.retry_queue_nums = 2;
        let update = RemotingCommand::request_without_header(UPDATE_AND_CREATE_SUBSCRIPTIONGROUP)
            .with_body(config.to_json().unwrap());
        self.ask("a group that is not told", update);
        self.notes_before("joining", heartbeat(&untold, &["T"]));
        self.notes_before("another topic", heartbeat(&untold, &["U"]));
        let mut retry = self.topic_config("untold");
        retry.ext_fields.set("topic", format!("%RETRY%{untold}"));
        self.ask("its retry topic", retry);
        self.notes_before("leaving", leave(&untold));
    }

    /// Requests without header and body.
    fn nonsense(&mut self) {
        self.title("nonsense");
        for code in [
            SEND_BATCH_MESSAGE,
            LOCK_BATCH_MQ,
            UNLOCK_BATCH_MQ,
            UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
            UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
            DELETE_SUBSCRIPTIONGROUP,
            GET_SUBSCRIPTIONGROUP_CONFIG,
            UPDATE_AND_CREATE_TOPIC,
            DELETE_TOPIC_IN_BROKER,
            GET_TOPIC_CONFIG,
            GET_TOPIC_STATS_INFO,
            GET_CONSUME_STATS,
            GET_CONSUMER_CONNECTION_LIST,
            GET_PRODUCER_CONNECTION_LIST,
            INVOKE_BROKER_TO_RESET_OFFSET,
            GET_CONSUMER_RUNNING_INFO,
            CONSUME_MESSAGE_DIRECTLY,
        ] {
            let request = RemotingCommand::request_without_header(code);
            self.ask_for(&code.to_string(), request, Compare::CodeOnly);
        }
        for code in [
            GET_ROUTEINFO_BY_TOPIC,
            PUT_KV_CONFIG,
            GET_KV_CONFIG,
            DELETE_KV_CONFIG,
            GET_KVLIST_BY_NAMESPACE,
            WIPE_WRITE_PERM_OF_BROKER,
            DELETE_TOPIC_IN_NAMESRV,
            9999,
        ] {
            let request = RemotingCommand::request_without_header(code);
            self.ask_names(&code.to_string(), request, Compare::CodeOnly);
        }
    }

    fn deleted(&mut self) {
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

/// Lists in a fixed order; Java writes sets in any.
fn sorted(json: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match json {
        Value::Array(list) => {
            let mut list: Vec<_> = list.into_iter().map(sorted).collect();
            list.sort_by_key(Value::to_string);
            Value::Array(list)
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| {
                    // A queue as a key, whatever the order of its parts.
                    let queue = serde_json::from_str::<Value>(&key).ok();
                    let key = queue
                        .filter(Value::is_object)
                        .map_or(key, |q| sorted(q).to_string());
                    (key, sorted(value))
                })
                .collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(entries.into_iter().collect())
        }
        other => other,
    }
}
