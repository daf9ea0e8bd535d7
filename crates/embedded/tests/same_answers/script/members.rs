//! Members, what is asked of them and what they are told, and requests without content.

use std::fmt::Write;
use std::time::Duration;

use rocketmq_protocol::body::*;
use rocketmq_protocol::header::*;
use rocketmq_protocol::request_code::*;
use rocketmq_protocol::*;

use super::{Compare, Script};
use crate::raw_client::*;

impl Script {
    pub(super) fn members(&mut self) {
        self.title("members");
        let topic = self.name("T");
        let group = self.name("g");
        let mut data = heartbeat_data("c1", &group, &[&topic]);
        data.producer_data_set = vec![ProducerData {
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
        let stats = GetTopicStatsInfoRequestHeader { topic };
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
    pub(super) fn ask_stats(&mut self, what: &str, request: RemotingCommand) {
        let mut answer = self.broker.call(request);
        let mut json: serde_json::Value = json::from_slice("body", answer.body_bytes()).unwrap();
        for rate in ["topicPutTps", "consumeTps"] {
            if let Some(rate) = json.get_mut(rate) {
                *rate = "RATE".into();
            }
        }
        answer.body = Some(json.to_string().into());
        self.note(what, &answer, Compare::All);
    }

    /// Requests that the broker hands on to a client.
    pub(super) fn calls(&mut self, group: &str) {
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

    pub(super) fn hand_on(&mut self, admin: &mut RawClient, opaque: i32, what: &str) {
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

    /// Which notes come before the answer to a request.
    pub(super) fn notes_before(&mut self, what: &str, request: RemotingCommand) {
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

    pub(super) fn notes(&mut self) {
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
    pub(super) fn nonsense(&mut self) {
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
}
