//! Sends, offsets and pulls.

use rocketmq_protocol::body::*;
use rocketmq_protocol::header::*;
use rocketmq_protocol::request_code::*;
use rocketmq_protocol::*;

use super::{Compare, Script};
use crate::raw_client::*;

impl Script {
    pub(super) fn send(&self, topic: &str, queue_id: i32, body: &str) -> RemotingCommand {
        let mut message = Message::new(self.name(topic), body.as_bytes().to_vec()).with_tags("A");
        message.put_property("UNIQ_KEY", "0123456789ABCDEF0123456789ABCDEF");
        send_request(queue_id, &message)
    }

    pub(super) fn sends(&mut self) {
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

    pub(super) fn query(
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

    pub(super) fn update(
        &self,
        group: &str,
        topic: &str,
        queue_id: i32,
        offset: i64,
    ) -> RemotingCommand {
        let header = UpdateConsumerOffsetRequestHeader {
            consumer_group: self.name(group),
            topic: self.name(topic),
            queue_id,
            commit_offset: offset,
            broker_name: None,
        };
        RemotingCommand::request(UPDATE_CONSUMER_OFFSET, &header)
    }

    pub(super) fn offsets(&mut self) {
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

    pub(super) fn pull(
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

    pub(super) fn pulls(&mut self) {
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
}
