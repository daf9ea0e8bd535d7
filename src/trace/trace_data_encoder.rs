//! The text that says what happened.

use std::fmt::{Display, Write};

use super::trace_config::AccessChannel;
use super::trace_context::{TraceBean, TraceContext, TraceType};

/// Ends a field.
const CONTENT_SPLITOR: char = '\u{1}';
/// Ends a record.
const FIELD_SPLITOR: char = '\u{2}';

/// One record, and the keys under which it is to be found (Java `TraceTransferBean`).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) trans_data: String,
    /// The message's id, then its keys.
    pub(crate) trans_key: Vec<String>,
}

/// The records of what happened: one a message around calls of a listener, else one (Java
/// `TraceDataEncoder#encoderFromContextBean`, which joins them).
pub(crate) fn encode(context: &TraceContext, channel: AccessChannel) -> Vec<Record> {
    let several = matches!(
        context.trace_type,
        TraceType::SubBefore | TraceType::SubAfter
    );
    let beans = context.beans.iter();
    beans
        .take(if several { usize::MAX } else { 1 })
        .map(|bean| Record {
            trans_data: record(context, bean, channel),
            trans_key: keys(bean),
        })
        .collect()
}

fn record(context: &TraceContext, bean: &TraceBean, channel: AccessChannel) -> String {
    let mut fields = Fields(String::with_capacity(256));
    let region = context.region_id.as_deref();
    let group = &context.group_name;
    match context.trace_type {
        TraceType::Pub => {
            fields.put("Pub").put(context.time_stamp).or_null(region);
            fields.put(group).put(&bean.topic).put(&bean.msg_id);
            fields.or_null(bean.tags.as_deref());
            fields.or_null(bean.keys.as_deref());
            fields.put(&bean.store_host).put(bean.body_length);
            fields.put(context.cost_time).put(bean.msg_type);
            fields.put(&bean.offset_msg_id).put(context.success);
        }
        TraceType::SubBefore => {
            fields.put("SubBefore").put(context.time_stamp);
            fields.or_null(region).put(group).put(&context.request_id);
            fields.put(&bean.msg_id).put(bean.retry_times);
            fields.or_null(bean.keys.as_deref());
        }
        TraceType::SubAfter => {
            fields.put("SubAfter").put(&context.request_id);
            fields.put(&bean.msg_id).put(context.cost_time);
            fields.put(context.success).or_null(bean.keys.as_deref());
            fields.put(context.context_code);
            match channel {
                AccessChannel::Local => fields.put(context.time_stamp).put(group),
                // The field before it ends all the same.
                AccessChannel::Cloud => fields.put(""),
            };
        }
        TraceType::EndTransaction => {
            fields.put("EndTransaction").put(context.time_stamp);
            fields.or_null(region).put(group).put(&bean.topic);
            fields.put(&bean.msg_id).or_null(bean.tags.as_deref());
            fields.or_null(bean.keys.as_deref());
            fields.put(&bean.store_host).put(bean.msg_type);
            fields.or_null(bean.transaction_id.as_deref());
            fields.put(bean.transaction_state);
            fields.put(bean.from_transaction_check);
        }
        TraceType::Recall => {
            fields.put("Recall").put(context.time_stamp).or_null(region);
            fields.put(group).put(&bean.topic).put(&bean.msg_id);
            fields.put(context.success);
        }
    }
    fields.end()
}

fn keys(bean: &TraceBean) -> Vec<String> {
    let keys = bean.keys.as_deref().unwrap_or_default();
    let keys = keys.split(' ').filter(|key| !key.is_empty());
    let all = std::iter::once(bean.msg_id.as_str()).chain(keys);
    all.map(str::to_owned).collect()
}

struct Fields(String);

impl Fields {
    fn put(&mut self, field: impl Display) -> &mut Self {
        // A String takes everything.
        let _ = write!(self.0, "{field}{CONTENT_SPLITOR}");
        self
    }

    /// What is not there is written as Java writes it.
    fn or_null(&mut self, field: Option<&str>) -> &mut Self {
        self.put(field.unwrap_or("null"))
    }

    fn end(mut self) -> String {
        self.0.pop();
        self.0.push(FIELD_SPLITOR);
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde::Deserialize;

    use super::*;
    use crate::trace::vectors;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    struct Line {
        #[serde(rename = "type")]
        trace_type: String,
        time_stamp: i64,
        region_id: String,
        group_name: String,
        cost_time: i64,
        success: bool,
        request_id: String,
        context_code: i32,
        cloud: bool,
        beans: Vec<Bean>,
        trans_data: String,
        trans_key: BTreeSet<String>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    struct Bean {
        topic: String,
        msg_id: String,
        offset_msg_id: String,
        tags: Option<String>,
        keys: Option<String>,
        store_host: String,
        retry_times: i32,
        body_length: usize,
        msg_type: i32,
        transaction_id: Option<String>,
        transaction_state: String,
        from_transaction_check: bool,
    }

    impl From<Bean> for TraceBean {
        fn from(bean: Bean) -> Self {
            let states = ["COMMIT_MESSAGE", "ROLLBACK_MESSAGE", "UNKNOW"];
            let state = states
                .iter()
                .find(|state| **state == bean.transaction_state);
            Self {
                topic: bean.topic,
                msg_id: bean.msg_id,
                offset_msg_id: bean.offset_msg_id,
                tags: bean.tags,
                keys: bean.keys,
                store_host: bean.store_host,
                retry_times: bean.retry_times,
                body_length: bean.body_length,
                msg_type: bean.msg_type,
                transaction_id: bean.transaction_id,
                transaction_state: state.unwrap(),
                from_transaction_check: bean.from_transaction_check,
            }
        }
    }

    fn type_of(name: &str) -> TraceType {
        match name {
            "Pub" => TraceType::Pub,
            "Recall" => TraceType::Recall,
            "SubBefore" => TraceType::SubBefore,
            "SubAfter" => TraceType::SubAfter,
            "EndTransaction" => TraceType::EndTransaction,
            other => panic!("no type is called {other}"),
        }
    }

    /// The lines of `tests/vectors/trace.jsonl`.
    #[test]
    fn records_are_those_of_java_byte_for_byte() {
        let lines = vectors::check("trace.jsonl", |line: Line| {
            let channel = if line.cloud {
                AccessChannel::Cloud
            } else {
                AccessChannel::Local
            };
            let context = TraceContext {
                trace_type: type_of(&line.trace_type),
                time_stamp: line.time_stamp,
                region_id: Some(line.region_id),
                group_name: line.group_name,
                cost_time: line.cost_time,
                success: line.success,
                request_id: line.request_id,
                context_code: line.context_code,
                beans: line.beans.into_iter().map(TraceBean::from).collect(),
            };
            let records = encode(&context, channel);
            let data: String = records.iter().map(|r| r.trans_data.as_str()).collect();
            assert_eq!(data, line.trans_data);
            let keys: BTreeSet<String> = records.into_iter().flat_map(|r| r.trans_key).collect();
            // An empty key is found by nobody.
            let mut expected = line.trans_key;
            expected.remove("");
            assert_eq!(keys, expected);
        });
        assert!(lines >= 100, "{lines} lines");
    }
}
