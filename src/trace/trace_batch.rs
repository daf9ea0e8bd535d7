//! Records put together into messages.

use std::collections::{BTreeMap, BTreeSet};

use rocketmq_protocol::Message;

use super::trace_config::{AccessChannel, TraceConfig};
use super::trace_context::TraceContext;
use super::trace_data_encoder::{Record, encode};

/// The most bytes of a body.
pub(crate) const MAX_MSG_SIZE: usize = 128_000;
/// The most bytes of keys: with the other properties they have to fit into 32,767.
const MAX_KEYS_SIZE: usize = 30_000;
/// Of the trace topics of a cloud, followed by the region.
pub(super) const TRACE_TOPIC_PREFIX: &str = "rmq_sys_TRACE_DATA_";

/// A message to be sent, and how many contexts begin in it.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) message: Message,
    pub(super) contexts: u64,
}

/// The messages that tell of these contexts, one a topic of what is told of (Java
/// `AsyncDataSendTask#sendTraceData`). A context without a region is left out.
///
/// Java adds a record whatever the size, and loses what then is too long.
pub(super) fn batches(contexts: &[TraceContext], config: &TraceConfig) -> Vec<Batch> {
    let mut by_topic: BTreeMap<(&str, String), Vec<Filling>> = BTreeMap::new();
    for context in contexts {
        let (Some(region), Some(first)) = (&context.region_id, context.beans.first()) else {
            continue;
        };
        let trace_topic = match config.access_channel {
            AccessChannel::Local => config.trace_topic.clone(),
            AccessChannel::Cloud => format!("{TRACE_TOPIC_PREFIX}{region}"),
        };
        let filled = by_topic.entry((&first.topic, trace_topic)).or_default();
        for (position, record) in encode(context, config.access_channel).iter().enumerate() {
            if !filled.last().is_some_and(|last| last.has_room_for(record)) {
                filled.push(Filling::default());
            }
            if let Some(last) = filled.last_mut() {
                last.add(record);
                last.contexts += u64::from(position == 0);
            }
        }
    }
    let filled = by_topic.into_iter();
    filled
        .flat_map(|((_, trace_topic), filled)| {
            filled.into_iter().map(move |one| Batch {
                contexts: one.contexts,
                message: Message::new(trace_topic.as_str(), one.data).with_key_list(one.keys),
            })
        })
        .collect()
}

#[derive(Default)]
struct Filling {
    data: String,
    keys: BTreeSet<String>,
    keys_size: usize,
    contexts: u64,
}

impl Filling {
    fn has_room_for(&self, record: &Record) -> bool {
        let keys_size: usize = record.trans_key.iter().map(|key| key.len() + 1).sum();
        self.data.len() + record.trans_data.len() <= MAX_MSG_SIZE
            && self.keys_size + keys_size <= MAX_KEYS_SIZE
    }

    /// Of keys that have no room the first ones are taken: the message's id is one of them.
    fn add(&mut self, record: &Record) {
        self.data.push_str(&record.trans_data);
        for key in &record.trans_key {
            let size = key.len() + 1;
            if self.keys_size + size <= MAX_KEYS_SIZE && self.keys.insert(key.clone()) {
                self.keys_size += size;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::trace_context::{TraceBean, TraceType};
    use super::*;

    fn context(topic: &str, region: Option<&str>, beans: Vec<TraceBean>) -> TraceContext {
        let beans = beans.into_iter();
        TraceContext {
            region_id: region.map(str::to_owned),
            beans: beans
                .map(|bean| TraceBean {
                    topic: topic.to_owned(),
                    ..bean
                })
                .collect(),
            ..TraceContext::new(TraceType::SubBefore, 1, "g".to_owned())
        }
    }

    fn bean(msg_id: &str, keys: &str) -> TraceBean {
        TraceBean {
            msg_id: msg_id.to_owned(),
            keys: Some(keys.to_owned()),
            ..TraceBean::default()
        }
    }

    #[test]
    fn one_message_a_topic_with_all_keys_and_nothing_without_a_region() {
        let contexts = [
            context("A", Some("r"), vec![bean("1", "k1 k2"), bean("2", "k2")]),
            context("B", Some("r"), vec![bean("3", "")]),
            context("A", None, vec![bean("4", "")]),
            context("A", Some("r"), Vec::new()),
            context("A", Some("s"), vec![bean("5", "")]),
        ];
        let batches = batches(&contexts, &TraceConfig::default());
        let keys: Vec<_> = batches.iter().map(|batch| batch.message.keys()).collect();
        assert_eq!(keys, [Some("1 2 5 k1 k2"), Some("3")]);
        let of: Vec<u64> = batches.iter().map(|batch| batch.contexts).collect();
        assert_eq!(of, [2, 1]);
        let body = std::str::from_utf8(batches[0].message.body()).unwrap();
        assert_eq!(body.matches("SubBefore").count(), 3);
        assert_eq!(batches[0].message.topic(), "RMQ_SYS_TRACE_TOPIC");
    }

    #[test]
    fn each_region_of_a_cloud_has_a_topic_of_its_own() {
        let contexts = ["r", "s"].map(|region| context("A", Some(region), vec![bean("1", "")]));
        let config = TraceConfig {
            access_channel: AccessChannel::Cloud,
            ..TraceConfig::default()
        };
        let batches = batches(&contexts, &config);
        let topics: Vec<_> = batches.iter().map(|batch| batch.message.topic()).collect();
        assert_eq!(topics, ["rmq_sys_TRACE_DATA_r", "rmq_sys_TRACE_DATA_s"]);
    }

    #[test]
    fn no_message_is_larger_than_a_broker_takes() {
        let key = "k".repeat(20_000);
        let beans = (0..20).map(|n| bean(&n.to_string(), &format!("{n}{key}")));
        let contexts = [context("A", Some("r"), beans.collect())];
        let batches = batches(&contexts, &TraceConfig::default());
        assert_eq!(batches.len(), 20, "two of these keys have no room");
        assert_eq!(batches.iter().map(|batch| batch.contexts).sum::<u64>(), 1);
        let short = (0..1024).map(|n| bean(&format!("{n:0>200}"), ""));
        let contexts = [context("A", Some("r"), short.collect())];
        let batches = super::batches(&contexts, &TraceConfig::default());
        let mut records = 0;
        for batch in &batches {
            assert!(batch.message.body().len() <= MAX_MSG_SIZE);
            let keys = batch.message.keys().unwrap();
            assert!(keys.len() <= MAX_KEYS_SIZE, "{}", keys.len());
            let body = std::str::from_utf8(batch.message.body()).unwrap();
            records += body.matches("SubBefore").count();
        }
        assert_eq!(records, 1024);
        let huge = context("A", Some("r"), vec![bean("id", &"x".repeat(40_000))]);
        let batches = super::batches(&[huge], &TraceConfig::default());
        assert_eq!(batches[0].message.keys(), Some("id"));
    }
}
