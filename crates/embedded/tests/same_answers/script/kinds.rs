//! Transactions, messages with a time of their own, replies, messages by key.

use std::time::{SystemTime, UNIX_EPOCH};

use rocketmq_protocol::body::*;
use rocketmq_protocol::header::*;
use rocketmq_protocol::request_code::*;
use rocketmq_protocol::*;

use super::{Compare, Script};
use crate::raw_client::*;

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since.as_millis() as i64
}

/// A half message of an age, and its unique key.
fn half(script: &Script, number: u32, born: i64, more: &[(&str, &str)]) -> RemotingCommand {
    let mut message = Message::new(script.name("X"), format!("half {number}").into_bytes());
    let group = script.name("tpg");
    for (name, value) in [
        ("UNIQ_KEY", key(number).as_str()),
        ("TRAN_MSG", "true"),
        ("PGROUP", group.as_str()),
    ]
    .into_iter()
    .chain(more.iter().copied())
    {
        message.put_property(name, value);
    }
    let mut header = send_header(0, &message);
    header.sys_flag = sys_flag::TRANSACTION_PREPARED;
    header.born_timestamp = born;
    header.producer_group = group;
    RemotingCommand::request(SEND_MESSAGE_V2, &SendMessageRequestHeaderV2(header))
        .with_body(message.body().clone())
}

fn key(number: u32) -> String {
    format!("0123456789ABCDEF0123456789AB{number:04}")
}

impl Script {
    /// Notes an answer without the fields that differ from broker to broker.
    fn note_without(&mut self, what: &str, mut answer: RemotingCommand, fields: &[&str]) {
        for field in fields {
            if answer.ext_fields.get(field).is_some() {
                answer.ext_fields.set(field, "SOME");
            }
        }
        self.note(what, &answer, Compare::All);
    }

    fn new_topic(&mut self, topic: &str) {
        let header = CreateTopicRequestHeader {
            topic: self.name(topic),
            default_topic: "TBW102".to_owned(),
            read_queue_nums: 1,
            write_queue_nums: 1,
            perm: 6,
            topic_filter_type: Some("SINGLE_TAG".to_owned()),
            topic_sys_flag: Some(0),
            order: Some(false),
            ..CreateTopicRequestHeader::default()
        };
        self.ask(
            "new topic",
            RemotingCommand::request(UPDATE_AND_CREATE_TOPIC, &header),
        );
    }

    fn send_half(&mut self, what: &str, request: RemotingCommand) -> EndTransactionRequestHeader {
        let answer = self.broker.call(request);
        let sent: SendMessageResponseHeader = answer.decode_header().unwrap();
        let id = OffsetMessageId::parse(&sent.msg_id).unwrap();
        self.note_without(what, answer, &["queueOffset"]);
        EndTransactionRequestHeader {
            topic: Some(self.name("X")),
            producer_group: self.name("tpg"),
            tran_state_table_offset: sent.queue_offset,
            commit_log_offset: id.commit_log_offset,
            commit_or_rollback: sys_flag::TRANSACTION_COMMIT,
            from_transaction_check: Some(false),
            msg_id: sent.transaction_id.clone().unwrap(),
            transaction_id: sent.transaction_id,
            broker_name: Some("broker-a".to_owned()),
        }
    }

    fn end(&mut self, what: &str, header: &EndTransactionRequestHeader) {
        self.ask(what, RemotingCommand::request(END_TRANSACTION, header));
    }

    fn what_is_in(&mut self, topic: &str) {
        let mut header = pull_header(&self.name(topic), 0, 0);
        header.consumer_group = self.name("g");
        self.ask("what is there", pull_request(&header));
    }

    pub(super) fn transactions(&mut self) {
        self.title("transactions");
        self.new_topic("X");
        self.produce_as("tpg");
        let request = half(self, 1, now(), &[]);
        let first = self.send_half("half message", request);
        self.what_is_in("X");
        let wrong_group = EndTransactionRequestHeader {
            producer_group: "other".to_owned(),
            ..first.clone()
        };
        self.end("end by another group", &wrong_group);
        let wrong_offset = EndTransactionRequestHeader {
            tran_state_table_offset: first.tran_state_table_offset + 1,
            ..first.clone()
        };
        self.end("end of another offset", &wrong_offset);
        self.end("commit", &first);
        self.what_is_in("X");
        self.end("commit again", &first);
        self.what_is_in("X");

        let request = half(self, 2, now(), &[]);
        let second = EndTransactionRequestHeader {
            commit_or_rollback: sys_flag::TRANSACTION_ROLLBACK,
            ..self.send_half("half message", request)
        };
        self.end("rollback", &second);
        let request = half(
            self,
            3,
            now() - 60_000,
            &[("CHECK_IMMUNITY_TIME_IN_SECONDS", "30")],
        );
        let late = self.send_half("half message that is too old", request);
        self.end("commit that comes late", &late);
        let request = half(self, 4, now(), &[("DELAY", "1")]);
        let delayed = self.send_half("half message with a delay", request);
        self.end("commit of it", &delayed);

        let request = half(self, 5, now() - 60_000, &[("KEYS", "a b")]);
        let fifth = self.send_half("half message that is asked for", request);
        let check = loop {
            let command = self.broker.next(LIMIT).unwrap();
            let is_it = command.ext_fields.get("msgId") == Some(&fifth.msg_id);
            if command.code == CHECK_TRANSACTION_STATE && is_it {
                break command;
            }
        };
        assert!(check.is_oneway());
        let header: CheckTransactionStateRequestHeader = check.decode_header().unwrap();
        let body = StoredMessage::decode(check.body.clone().unwrap()).unwrap();
        assert_eq!(body.queue_offset, header.tran_state_table_offset);
        assert_eq!(body.commit_log_offset, header.commit_log_offset);
        let mut shown = check;
        shown.body = None;
        self.note_without("check", shown, &["commitLogOffset", "tranStateTableOffset"]);
        let text = format!(
            "{}#{} sys={} prepared={} {:?}",
            body.topic,
            body.queue_id,
            body.sys_flag,
            body.prepared_transaction_offset,
            decode_properties(&body.properties)
        );
        let line = self.plain(&text);
        self.title(&line);
        let answer = EndTransactionRequestHeader {
            tran_state_table_offset: header.tran_state_table_offset,
            commit_log_offset: header.commit_log_offset,
            from_transaction_check: Some(true),
            ..fifth
        };
        self.end("commit after a check", &answer);
        self.what_is_in("X");
        let leave = UnregisterClientRequestHeader {
            client_id: "c1".to_owned(),
            producer_group: Some(self.name("tpg")),
            consumer_group: None,
        };
        self.ask("leave", RemotingCommand::request(UNREGISTER_CLIENT, &leave));
        // A check may be under way to the member that has left.
        let rest = std::time::Duration::from_millis(300);
        while let Some(check) = self.broker.next(rest) {
            assert_eq!(check.code, CHECK_TRANSACTION_STATE);
        }
    }

    fn produce_as(&mut self, group: &str) {
        let data = HeartbeatData {
            client_id: "c1".to_owned(),
            producer_data_set: vec![ProducerData {
                group_name: self.name(group),
            }],
            ..HeartbeatData::default()
        };
        let heartbeat = RemotingCommand::request_without_header(HEART_BEAT);
        self.ask("producer", heartbeat.with_body(data.to_json().unwrap()));
    }

    fn timer(&self, number: u32, properties: &[(&str, String)]) -> RemotingCommand {
        let mut message = Message::new(self.name("Y"), format!("timer {number}").into_bytes());
        message.put_property("UNIQ_KEY", key(number));
        for (name, value) in properties {
            message.put_property(name, value.clone());
        }
        send_request(0, &message)
    }

    /// Sends, and shows what the recall handle says.
    fn send_timer(&mut self, what: &str, request: RemotingCommand) -> Option<String> {
        let mut answer = self.broker.call(request);
        let handle = answer.ext_fields.get("recallHandle").map(str::to_owned);
        if let Some(handle) = &handle {
            let handle = RecallHandle::parse(handle).unwrap();
            assert_eq!(handle.deliver_millis % 1000, 1);
            let text = format!(
                "{} {} {}",
                handle.topic, handle.broker_name, handle.uniq_key
            );
            answer.ext_fields.set("recallHandle", text);
        }
        self.note_without(what, answer, &["queueOffset"]);
        handle
    }

    fn recall(&mut self, what: &str, topic: &str, handle: &str, how: Compare) {
        let header = RecallMessageRequestHeader {
            producer_group: Some("pg".to_owned()),
            topic: self.name(topic),
            recall_handle: handle.to_owned(),
            broker_name: Some("broker-a".to_owned()),
        };
        self.ask_for(what, RemotingCommand::request(RECALL_MESSAGE, &header), how);
    }

    pub(super) fn timers(&mut self) {
        self.title("messages with a time");
        self.new_topic("Y");
        let delay = |millis: i64| ("TIMER_DELAY_MS", millis.to_string());
        let word = ("TIMER_DELAY_SEC", "soon".to_owned());
        self.send_timer("no time", self.timer(1, &[word]));
        let days = ("TIMER_DELAY_SEC", (3 * 24 * 3600 + 5).to_string());
        self.send_timer("too far", self.timer(2, &[days]));
        self.send_timer("past", self.timer(3, &[delay(0)]));
        let far = ("TIMER_DELIVER_MS", (now() + 60_000).to_string());
        let handle = self.send_timer("in a minute", self.timer(4, &[far]));
        let handle = handle.unwrap();
        self.recall("taken back", "Y", &handle, Compare::All);
        self.recall("taken back again", "Y", &handle, Compare::All);
        self.recall("of another topic", "X", &handle, Compare::All);
        self.recall("of no topic", "Unknown", &handle, Compare::All);
        self.recall("by nonsense", "Y", "nonsense", Compare::NoRemark);
        let old = RecallHandle {
            deliver_millis: 1,
            ..RecallHandle::parse(&handle).unwrap()
        };
        self.recall("too late", "Y", &old.to_string(), Compare::All);
        let level = ("DELAY", "1".to_owned());
        self.send_timer("with a level", self.timer(5, &[level, delay(60_000)]));
        self.send_timer("soon", self.timer(6, &[delay(2500)]));
        self.send_timer("sooner", self.timer(7, &[delay(1200)]));
        let mut header = pull_header(&self.name("Y"), 0, 0);
        header.consumer_group = self.name("g");
        wait_until("the messages are there", || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            let answer = self.broker.call(pull_request(&header));
            answer.code == 0 && pull_answer(&answer).0.max_offset == 4
        });
        // Which of a level and a time is first depends on where in a second they are sent.
        let answer = self.broker.call(pull_request(&header));
        let (_, mut messages) = pull_answer(&answer);
        messages.sort_by_key(|message| message.msg_id().to_owned());
        for message in messages {
            let mut text = format!("{} ", String::from_utf8_lossy(message.body()));
            for (name, value) in message.properties() {
                text.push_str(&format!("{name}={value} "));
            }
            let line = self.plain(text.trim_end());
            self.title(&line);
        }
    }

    pub(super) fn replies(&mut self) {
        self.title("replies");
        self.produce_as("rpg");
        let mut replier = RawClient::connect(&self.broker_addr);
        let reply = |client: Option<&str>| {
            let mut message = Message::new("DefaultCluster_REPLY_TOPIC", b"answer".as_slice());
            message.put_property("UNIQ_KEY", key(9));
            message.put_property("MSG_TYPE", "reply");
            message.put_property("CORRELATION_ID", "7");
            if let Some(client) = client {
                message.put_property("REPLY_TO_CLIENT", client);
            }
            let mut header = send_header(0, &message);
            header.reconsume_times = Some(0);
            header.unit_mode = Some(false);
            let header = SendMessageRequestHeaderV2(header);
            RemotingCommand::request(SEND_REPLY_MESSAGE_V2, &header)
                .with_body(message.body().clone())
        };
        let answer = replier.call(reply(None));
        self.note_without("to nobody", answer, &["queueOffset"]);
        let answer = replier.call(reply(Some("c9")));
        self.note_without("to a client that is not there", answer, &["queueOffset"]);
        for (what, code) in [("answered", 0), ("refused by the client", 1)] {
            let opaque = replier.send(reply(Some("c1")));
            let push = loop {
                let command = self.broker.next(LIMIT).unwrap();
                if command.code == PUSH_REPLY_MESSAGE_TO_CLIENT {
                    break command;
                }
            };
            assert!(!push.is_oneway());
            let mut shown = push.clone();
            let header: ReplyMessageRequestHeader = push.decode_header().unwrap();
            let properties = decode_properties(header.properties.as_deref().unwrap());
            shown
                .ext_fields
                .set("properties", format!("{properties:?}"));
            let body = shown.body.take().unwrap();
            assert_eq!(&body[..], b"answer");
            assert_eq!(
                header.born_host,
                replier.stream().local_addr().unwrap().to_string()
            );
            self.note_without(what, shown, &["bornHost"]);
            self.broker
                .send_as_it_is(RemotingCommand::response(&push, code, None));
            let answer = replier.answer_to(opaque);
            self.note_without(what, answer, &["queueOffset"]);
        }
    }

    pub(super) fn queries(&mut self) {
        self.title("queries");
        self.new_topic("Z");
        let mut ids = Vec::new();
        for (number, keys) in [(11, "k1"), (12, " k1  k2 "), (13, "k2"), (14, "k1 k1")] {
            let mut message = Message::new(self.name("Z"), format!("z{number}").into_bytes());
            message.put_property("UNIQ_KEY", key(number));
            message.put_property("KEYS", keys);
            let sent = self.broker.produce(0, &message);
            ids.push(OffsetMessageId::parse(&sent.msg_id).unwrap());
        }
        let query = |script: &Self, key: &str, max: i32, end: i64| QueryMessageRequestHeader {
            topic: script.name("Z"),
            key: key.to_owned(),
            max_num: max,
            begin_timestamp: 0,
            end_timestamp: end,
            ..QueryMessageRequestHeader::default()
        };
        let request = |header: &QueryMessageRequestHeader, unique: bool| {
            let mut request = RemotingCommand::request(QUERY_MESSAGE, header);
            request.ext_fields.set(UNIQUE_KEY_QUERY, unique.to_string());
            request
        };
        let last = query(self, &key(14), 1, i64::MAX);
        wait_until("the index is written", || {
            self.broker.call(request(&last, true)).code == 0
        });
        for (what, header, unique) in [
            ("by key", query(self, "k1", 32, i64::MAX), false),
            ("by the second key", query(self, "k2", 32, i64::MAX), false),
            ("the last one", query(self, "k1", 1, i64::MAX), false),
            ("by all keys", query(self, "k1 k1", 32, i64::MAX), false),
            ("by unique key", query(self, &key(12), 1, i64::MAX), true),
            (
                "by unique key as a key",
                query(self, &key(12), 1, i64::MAX),
                false,
            ),
            ("by no key", query(self, "k9", 32, i64::MAX), false),
            ("before all", query(self, "k1", 32, 1000), false),
        ] {
            let answer = self.broker.call(request(&header, unique));
            self.note_without(what, answer, &["indexLastUpdatePhyoffset"]);
        }
        let mut view = ViewMessageRequestHeader {
            topic: Some(self.name("Z")),
            offset: ids[1].commit_log_offset,
        };
        self.ask("by id", RemotingCommand::request(VIEW_MESSAGE_BY_ID, &view));
        view.offset = i64::MAX / 2;
        self.ask_for(
            "by no id",
            RemotingCommand::request(VIEW_MESSAGE_BY_ID, &view),
            Compare::NoRemark,
        );
    }
}
