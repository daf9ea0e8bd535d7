//! Locks, groups' settings and resets.

use std::fmt::Write;

use rocketmq_protocol::body::*;
use rocketmq_protocol::header::*;
use rocketmq_protocol::request_code::*;
use rocketmq_protocol::*;

use super::{Compare, Script};
use crate::raw_client::*;

impl Script {
    pub(super) fn lock(&self, code: i32, client: &str, queues: &[i32]) -> RemotingCommand {
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

    pub(super) fn locks(&mut self) {
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

    pub(super) fn group(
        &self,
        change: impl FnOnce(&mut SubscriptionGroupConfig),
    ) -> RemotingCommand {
        let mut config = SubscriptionGroupConfig::new(self.name("g"));
        change(&mut config);
        RemotingCommand::request_without_header(UPDATE_AND_CREATE_SUBSCRIPTIONGROUP)
            .with_body(config.to_json().unwrap())
    }

    pub(super) fn group_config(&self, group: &str) -> RemotingCommand {
        let group = self.name(group);
        let header = GetSubscriptionGroupConfigRequestHeader { group };
        RemotingCommand::request(GET_SUBSCRIPTIONGROUP_CONFIG, &header)
    }

    /// What an answer consists of, whatever else the broker has.
    pub(super) fn shape(&mut self, what: &str, code: i32) {
        let answer = self
            .broker
            .call(RemotingCommand::request_without_header(code));
        let fields: Vec<_> = answer.ext_fields.iter().map(|(name, _)| name).collect();
        let json: serde_json::Value = json::from_slice("body", answer.body_bytes()).unwrap();
        let json = json.as_object().unwrap();
        let mut keys: Vec<_> = json.keys().cloned().collect();
        keys.sort_unstable();
        writeln!(self.text, "{what}: {} {fields:?} {keys:?}", answer.code).unwrap();
    }

    pub(super) fn groups(&mut self) {
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
        let heartbeat = |data: &HeartbeatData| {
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

    pub(super) fn reset(
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

    pub(super) fn resets(&mut self) {
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
}
