//! Questions to a name server and a broker, and their answers as text.
//!
//! What differs from run to run (addresses, times, ids, names made for the run) is replaced by
//! words, and sets are sorted.

mod groups;
mod kinds;
mod members;
mod messages;
mod topics;

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use rocketmq_protocol::body::{ClusterInfo, JsonBody};
use rocketmq_protocol::request_code::GET_BROKER_CLUSTER_INFO;
use rocketmq_protocol::{RemotingCommand, StoredMessages, json};

use crate::raw_client::RawClient;

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
        script.transactions();
        script.timers();
        script.replies();
        script.queries();
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
            let json: serde_json::Value = json::from_slice("body", body).unwrap();
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
