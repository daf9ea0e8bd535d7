//! Every line of the vector files: what the published Java client gives for the same input.
//!
//! The files are in `tests/vectors` of the repository, described by the README there;
//! `ROCKETMQ_VECTORS` names another folder.
#![allow(clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use bytes::{Bytes, BytesMut};
use rocketmq_blocking::rebalance::{
    AllocateMachineRoomNearby, AllocateMessageQueueAveragely,
    AllocateMessageQueueAveragelyByCircle, AllocateMessageQueueByMachineRoom,
    AllocateMessageQueueConsistentHash, AllocateMessageQueueStrategy, MachineRoomResolver,
};
use rocketmq_protocol::acl::{self, SessionCredentials};
use rocketmq_protocol::body::{JsonBody, TopicRouteData};
use rocketmq_protocol::compression::CompressionType;
use rocketmq_protocol::pop::{ExtraInfo, RetryMarker};
use rocketmq_protocol::{
    BatchElement, BatchElements, ExtFields, FrameDecoder, LanguageCode, Message, MessageQueue,
    OffsetMessageId, Properties, RemotingCommand, SerializeType, StoredMessage, StoredMessages,
    SubscriptionData, decode_properties, encode_batch, encode_properties, java_string_hash,
    sys_flag, validators,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Why a line is wrong.
type Wrong = String;

fn folder() -> PathBuf {
    std::env::var_os("ROCKETMQ_VECTORS").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors")),
        PathBuf::from,
    )
}

/// Checks each line of a file and stops at the first wrong one, a panicking one included.
fn check<L: DeserializeOwned>(file: &str, line_is_right: impl Fn(L) -> Result<(), Wrong>) {
    let path = folder().join(file);
    let place = path.display();
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{place}: {error}"));
    let mut lines = 0;
    for line in text.lines() {
        lines += 1;
        let parsed: L = serde_json::from_str(line)
            .unwrap_or_else(|error| panic!("{place}:{lines}: not a vector: {error}"));
        match catch_unwind(AssertUnwindSafe(|| line_is_right(parsed))) {
            Ok(Ok(())) => {}
            Ok(Err(wrong)) => panic!("{place}:{lines}: {wrong}"),
            Err(_) => panic!("{place}:{lines}: the code under test panicked"),
        }
    }
    assert!(lines > 0, "{place}: no lines");
    // Written past the test harness, which swallows what the macros print.
    let mut out = std::io::stdout().lock();
    writeln!(out, "{place}: {lines} lines checked").unwrap_or_else(|error| panic!("{error}"));
}

/// Every file that a test checks; those of `selection` and of traces are in the library.
const FILES: [&str; 17] = [
    "acl_signature.jsonl",
    "allocate.jsonl",
    "batch_message.jsonl",
    "compression.jsonl",
    "frame.jsonl",
    "offset_msg_id.jsonl",
    "pop_extra_info.jsonl",
    "properties.jsonl",
    "route.jsonl",
    "selection.jsonl",
    "stored_message.jsonl",
    "subscription.jsonl",
    "tag_hash.jsonl",
    "trace.jsonl",
    "trace_consume_hook.jsonl",
    "trace_send_hook.jsonl",
    "validators.jsonl",
];

#[test]
fn the_folder_holds_no_file_that_nobody_checks() {
    let folder = folder();
    let place = folder.display();
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{place}: {error}"));
    let found: BTreeSet<String> = entries
        .map(|entry| entry.unwrap_or_else(|error| panic!("{place}: {error}")))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".jsonl"))
        .collect();
    assert_eq!(found, FILES.map(str::to_owned).into(), "{place}");
}

fn same<T: PartialEq + Debug>(what: &str, here: T, java: T) -> Result<(), Wrong> {
    if here == java {
        Ok(())
    } else {
        Err(format!("{what}: here {here:?}, Java {java:?}"))
    }
}

fn fails(what: &'static str) -> impl Fn(rocketmq_protocol::CodecError) -> Wrong {
    move |error| format!("{what}: {error}")
}

/// Bytes written as hexadecimal text.
#[derive(Deserialize, Clone, PartialEq)]
#[serde(try_from = "String")]
struct Hex(Bytes);

impl TryFrom<String> for Hex {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let digits = |pair: &[u8]| {
            let pair = std::str::from_utf8(pair).ok()?;
            u8::from_str_radix(pair, 16).ok()
        };
        text.as_bytes()
            .chunks(2)
            .map(digits)
            .collect::<Option<Vec<u8>>>()
            .filter(|_| text.len() % 2 == 0)
            .map(|bytes| Self(bytes.into()))
            .ok_or_else(|| format!("{text} is not hexadecimal"))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FrameLine {
    serialize: String,
    frame: Hex,
    code: i32,
    language: String,
    language_code: u8,
    version: i32,
    opaque: i32,
    flag: i32,
    remark: Option<String>,
    ext_fields: BTreeMap<String, String>,
    body: Option<Hex>,
}

#[test]
fn frames() {
    check("frame.jsonl", |line: FrameLine| {
        let form = match line.serialize.as_str() {
            "JSON" => SerializeType::Json,
            "ROCKETMQ" => SerializeType::RocketMq,
            other => return Err(format!("unknown form {other}")),
        };
        let decoded = decode_frame(&line.frame.0)?;
        same("header form", decoded.serialize_type, form)?;
        frame_has_fields(&decoded, &line)?;

        let mut command = RemotingCommand::request_without_header(line.code);
        command.language = LanguageCode::from_name(&line.language);
        command.version = line.version;
        command.opaque = line.opaque;
        command.flag = line.flag;
        command.remark.clone_from(&line.remark);
        command.ext_fields = line.ext_fields.clone().into_iter().collect::<ExtFields>();
        command.body = line.body.clone().map(|body| body.0);
        for form in [SerializeType::Json, SerializeType::RocketMq] {
            command.serialize_type = form;
            let mut bytes = BytesMut::new();
            command.encode(&mut bytes).map_err(fails("encoding"))?;
            // Java writes an empty object where there are no fields, here the key is left out.
            if form == decoded.serialize_type && !line.ext_fields.is_empty() {
                same("length of the frame", bytes.len(), line.frame.0.len())?;
            }
            let again = decode_frame(&bytes)?;
            same("header form written", again.serialize_type, form)?;
            frame_has_fields(&again, &line)?;
        }
        Ok(())
    });
}

fn decode_frame(bytes: &[u8]) -> Result<RemotingCommand, Wrong> {
    let mut decoder = FrameDecoder::default();
    decoder.extend(bytes);
    let command = decoder
        .next_command()
        .map_err(fails("decoding"))?
        .ok_or("the frame is not whole")?;
    same("bytes left", decoder.pending(), 0)?;
    Ok(command)
}

fn frame_has_fields(command: &RemotingCommand, line: &FrameLine) -> Result<(), Wrong> {
    let binary = command.serialize_type == SerializeType::RocketMq;
    let remark = line.remark.as_deref();
    same("code", command.code, line.code)?;
    same("language", command.language.name(), line.language.as_str())?;
    same("language code", command.language.code(), line.language_code)?;
    same("version", command.version, line.version)?;
    same("opaque", command.opaque, line.opaque)?;
    same("flag", command.flag, line.flag)?;
    same(
        "remark",
        command.remark.as_deref(),
        remark.filter(|text| !(binary && text.is_empty())),
    )?;
    same(
        "body",
        command.body.as_ref(),
        line.body.as_ref().map(|body| &body.0),
    )?;
    same(
        "number of fields",
        command.ext_fields.len(),
        line.ext_fields.len(),
    )?;
    for (name, value) in &line.ext_fields {
        same(name, command.ext_fields.get(name), Some(value.as_str()))?;
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StoredMessageLine {
    wire: Hex,
    compression: String,
    topic: String,
    flag: i32,
    sys_flag: i32,
    queue_id: i32,
    queue_offset: i64,
    commit_log_offset: i64,
    born_timestamp: i64,
    born_host: String,
    store_timestamp: i64,
    store_host: String,
    reconsume_times: i32,
    prepared_transaction_offset: i64,
    body_crc: u32,
    store_size: usize,
    msg_id: String,
    body: Hex,
    properties: Properties,
}

#[test]
fn stored_messages() {
    check("stored_message.jsonl", |line: StoredMessageLine| {
        let wire = &line.wire.0;
        let stored = StoredMessage::decode(wire.clone()).map_err(fails("decoding"))?;
        same(
            "compressed bit on the wire",
            stored.sys_flag & sys_flag::COMPRESSED != 0,
            line.compression != "none",
        )?;
        let mut again = BytesMut::new();
        stored.encode(&mut again).map_err(fails("encoding"))?;
        same(
            "checksum on the wire",
            &wire[8..12],
            line.body_crc.to_be_bytes().as_slice(),
        )?;
        same("bytes before the checksum", &again[..8], &wire[..8])?;
        same("bytes after the checksum", &again[12..], &wire[12..])?;

        let alone = stored
            .into_message_ext(wire.len())
            .map_err(fails("expanding"))?;
        let twice = Bytes::from([wire.as_ref(), wire.as_ref()].concat());
        let walked: Result<Vec<_>, _> = StoredMessages::new(twice).collect();
        let walked = walked.map_err(fails("walking"))?;
        same("messages of a walk", walked.len(), 2)?;
        for message in walked.iter().chain([&alone]) {
            same("topic", message.topic(), line.topic.as_str())?;
            same("flag", message.flag(), line.flag)?;
            same("sysFlag", message.sys_flag(), line.sys_flag)?;
            same("queueId", message.queue_id(), line.queue_id)?;
            same("queueOffset", message.queue_offset(), line.queue_offset)?;
            same(
                "commitLogOffset",
                message.commit_log_offset(),
                line.commit_log_offset,
            )?;
            same(
                "bornTimestamp",
                message.born_timestamp(),
                line.born_timestamp,
            )?;
            same("bornHost", message.born_host(), address(&line.born_host)?)?;
            same(
                "storeTimestamp",
                message.store_timestamp(),
                line.store_timestamp,
            )?;
            same(
                "storeHost",
                message.store_host(),
                address(&line.store_host)?,
            )?;
            same(
                "reconsumeTimes",
                message.reconsume_times(),
                line.reconsume_times,
            )?;
            same(
                "preparedTransactionOffset",
                message.prepared_transaction_offset(),
                line.prepared_transaction_offset,
            )?;
            same("storeSize", message.store_size(), line.store_size)?;
            same("msgId", message.offset_msg_id(), line.msg_id.as_str())?;
            same("body", message.body(), &line.body.0)?;
            same("properties", message.properties(), &line.properties)?;
        }
        Ok(())
    });
}

fn address(text: &str) -> Result<SocketAddr, Wrong> {
    let (ip, port) = text.split_once('|').ok_or("an address without a bar")?;
    let ip: IpAddr = ip.parse().map_err(|error| format!("{ip}: {error}"))?;
    let port = port.parse().map_err(|error| format!("{port}: {error}"))?;
    Ok(SocketAddr::new(ip, port))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PropertiesLine {
    encoded: Hex,
    decoded: Properties,
}

#[test]
fn properties() {
    check("properties.jsonl", |line: PropertiesLine| {
        let text = std::str::from_utf8(&line.encoded.0).map_err(|error| error.to_string())?;
        same("decoded", decode_properties(text), line.decoded.clone())?;
        let again = decode_properties(&encode_properties(&line.decoded));
        same("encoded and decoded again", again, line.decoded)
    });
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OffsetMessageIdLine {
    ip: IpAddr,
    port: u16,
    offset: i64,
    msg_id: String,
}

#[test]
fn offset_message_ids() {
    check("offset_msg_id.jsonl", |line: OffsetMessageIdLine| {
        let id = OffsetMessageId {
            store_host: SocketAddr::new(line.ip, line.port),
            commit_log_offset: line.offset,
        };
        same("written", id.to_string(), line.msg_id.clone())?;
        same("read", OffsetMessageId::parse(&line.msg_id), Some(id))
    });
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CompressionLine {
    #[serde(rename = "type")]
    kind: String,
    sys_flag_bits: i32,
    compressed: Hex,
    body: Hex,
}

#[test]
fn compression() {
    check("compression.jsonl", |line: CompressionLine| {
        let kind = match line.kind.as_str() {
            "LZ4" => CompressionType::Lz4,
            "ZSTD" => CompressionType::Zstd,
            "ZLIB" => CompressionType::Zlib,
            other => return Err(format!("unknown type {other}")),
        };
        same("type bits", kind.flag(), line.sys_flag_bits)?;
        let named = CompressionType::from_flag(line.sys_flag_bits).map_err(fails("type bits"))?;
        same("type of the bits", named, kind)?;
        let expanded = kind
            .decompress(&line.compressed.0)
            .map_err(fails("Java's bytes"))?;
        if expanded != line.body.0 {
            return Err("Java's bytes expand to another body".to_owned());
        }
        for level in [0, 1, 5, 9] {
            let ours = kind
                .compress(&line.body.0, level)
                .map_err(fails("compressing"))?;
            let expanded = kind.decompress(&ours).map_err(fails("our bytes"))?;
            if expanded != line.body.0 {
                return Err(format!("our bytes of level {level} expand to another body"));
            }
        }
        Ok(())
    });
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TagHashLine {
    s: String,
    hash: i32,
}

#[test]
fn tag_hashes() {
    check("tag_hash.jsonl", |line: TagHashLine| {
        same("hash", java_string_hash(&line.s), line.hash)
    });
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SubscriptionLine {
    expression: Option<String>,
    result: SubscriptionResult,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum SubscriptionResult {
    Error(String),
    #[serde(rename_all = "camelCase")]
    Subscription {
        sub_string: String,
        tags_set: BTreeSet<String>,
        code_set: BTreeSet<i32>,
        expression_type: String,
    },
}

#[test]
fn subscriptions() {
    check("subscription.jsonl", |line: SubscriptionLine| {
        let expression = line.expression.as_deref().unwrap_or_default();
        let here = SubscriptionData::build("T", expression, 7);
        match (line.result, here) {
            (SubscriptionResult::Error(text), Err(_)) if text.starts_with("error:") => Ok(()),
            (SubscriptionResult::Error(text), here) => Err(format!("here {here:?}, Java {text}")),
            (SubscriptionResult::Subscription { .. }, Err(error)) => Err(error.to_string()),
            (
                SubscriptionResult::Subscription {
                    sub_string,
                    tags_set,
                    code_set,
                    expression_type,
                },
                Ok(here),
            ) => {
                same(
                    "expression type",
                    here.expression_type.name(),
                    &expression_type,
                )?;
                same("subString", here.sub_string, sub_string)?;
                same("tags", here.tags_set, tags_set)?;
                same("codes", here.code_set, code_set)?;
                same("topic", here.topic.as_str(), "T")?;
                same("subVersion", here.sub_version, 7)?;
                same("classFilterMode", here.class_filter_mode, false)
            }
        }
    });
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RouteLine {
    topic: String,
    route: String,
    publish: Vec<MessageQueue>,
    order_topic: bool,
    subscribe: Vec<MessageQueue>,
}

#[test]
fn routes() {
    check("route.jsonl", |line: RouteLine| {
        let route = TopicRouteData::from_json(line.route.as_bytes()).map_err(fails("reading"))?;
        let (publish, order_topic) = route.publish_queues(&line.topic);
        same("publish", publish, line.publish)?;
        same("orderTopic", order_topic, line.order_topic)?;
        same(
            "subscribe",
            route.subscribe_queues(&line.topic),
            line.subscribe,
        )?;
        let strict = route.to_json().map_err(fails("writing"))?;
        let again = TopicRouteData::from_json(&strict).map_err(fails("reading again"))?;
        same("read again", again, route)
    });
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct BatchMessageLine {
    messages: Vec<BatchedMessage>,
    batch_body: Hex,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchedMessage {
    flag: i32,
    body: Hex,
    properties: Properties,
}

#[test]
fn batches() {
    check("batch_message.jsonl", |line: BatchMessageLine| {
        let messages: Vec<Message> = line
            .messages
            .iter()
            .map(|message| {
                let properties = message.properties.clone();
                Message::from_parts("T", message.flag, properties, message.body.0.clone())
            })
            .collect();
        let ours = encode_batch(&messages).map_err(fails("encoding"))?;
        same("batch", &ours, &line.batch_body.0)?;
        let elements: Result<Vec<BatchElement>, _> =
            BatchElements::new(line.batch_body.0.clone()).collect();
        let elements = elements.map_err(fails("decoding"))?;
        same("number of elements", elements.len(), line.messages.len())?;
        for (element, java) in elements.into_iter().zip(line.messages) {
            same("flag", element.flag, java.flag)?;
            same("body", element.body, java.body.0)?;
            same("properties", element.properties, java.properties)?;
        }
        Ok(())
    });
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ExtraInfoLine {
    extra_info: String,
    ck_queue_offset: i64,
    pop_time: i64,
    invisible_time: i64,
    revive_qid: i32,
    real_topic: String,
    broker_name: String,
    queue_id: i32,
    queue_offset: i64,
}

#[test]
fn pop_receipts() {
    check("pop_extra_info.jsonl", |line: ExtraInfoLine| {
        let java = ExtraInfo {
            ck_queue_offset: line.ck_queue_offset,
            pop_time: line.pop_time,
            invisible_time: line.invisible_time,
            revive_qid: line.revive_qid,
            retry: RetryMarker::of_topic(&line.real_topic),
            broker_name: line.broker_name,
            queue_id: line.queue_id,
            queue_offset: Some(line.queue_offset),
        };
        let read = ExtraInfo::parse(&line.extra_info).map_err(fails("reading"))?;
        same("real topic", read.real_topic("T", "g"), line.real_topic)?;
        same("written", java.to_string(), line.extra_info)?;
        same("read", read, java)
    });
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SignatureLine {
    access_key: String,
    secret_key: String,
    ext_fields: BTreeMap<String, String>,
    body: Option<Hex>,
    signature: String,
}

#[test]
fn acl_signatures() {
    check("acl_signature.jsonl", |line: SignatureLine| {
        let mut request = RemotingCommand::request_without_header(10);
        let fields = line.ext_fields.iter().rev();
        request.ext_fields = fields
            .filter(|(name, _)| *name != acl::ACCESS_KEY)
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        request.body = line.body.map(|body| body.0);
        let user = SessionCredentials::new(line.access_key, line.secret_key);
        for time in ["signed", "signed once more"] {
            user.sign(&mut request);
            let signature = request.ext_fields.get(acl::SIGNATURE);
            same(time, signature, Some(line.signature.as_str()))?;
        }
        Ok(())
    });
}

/// What a strategy gave one member: queues as `broker#id`, or `error:` and the exception.
#[derive(Deserialize, PartialEq, Debug)]
#[serde(untagged)]
enum Allocated {
    Error(String),
    Queues(Vec<String>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AllocateLine {
    queues: Vec<MessageQueue>,
    cids: Vec<String>,
    virtual_nodes: Option<u32>,
    consumer_idcs: Option<Vec<String>>,
    #[serde(rename = "room")]
    _words_on_rooms: Option<String>,
    result: BTreeMap<String, BTreeMap<String, Allocated>>,
}

/// A room's name ends before the first dash of the broker's name or of the client id.
#[derive(Debug)]
struct BeforeDash;

impl MachineRoomResolver for BeforeDash {
    fn broker_deploy_in(&self, message_queue: &MessageQueue) -> String {
        self.consumer_deploy_in(message_queue.broker_name())
    }

    fn consumer_deploy_in(&self, client_id: &str) -> String {
        client_id.split('-').next().unwrap_or_default().to_owned()
    }
}

fn strategy(
    name: &str,
    line: &AllocateLine,
) -> Result<Box<dyn AllocateMessageQueueStrategy>, Wrong> {
    use {
        AllocateMessageQueueAveragely as Averagely,
        AllocateMessageQueueAveragelyByCircle as ByCircle,
    };
    Ok(match name {
        "AVG" => Box::new(Averagely),
        "AVG_BY_CIRCLE" => Box::new(ByCircle),
        "CONSISTENT_HASH" => {
            let count = line.virtual_nodes.ok_or("no number of virtual nodes")?;
            Box::new(AllocateMessageQueueConsistentHash::with_virtual_nodes(
                count,
            ))
        }
        "MACHINE_ROOM" => {
            let rooms = line.consumer_idcs.clone().ok_or("no rooms")?;
            Box::new(AllocateMessageQueueByMachineRoom::new(rooms))
        }
        "MACHINE_ROOM_NEARBY-AVG" => {
            Box::new(AllocateMachineRoomNearby::new(Averagely, BeforeDash))
        }
        "MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE" => {
            Box::new(AllocateMachineRoomNearby::new(ByCircle, BeforeDash))
        }
        other => return Err(format!("no strategy is called {other}")),
    })
}

#[test]
fn allocations() {
    check("allocate.jsonl", |line: AllocateLine| {
        let strategies: Vec<&str> = line.result.keys().map(String::as_str).collect();
        match line.consumer_idcs {
            Some(_) => same("strategies", strategies.as_slice(), &["MACHINE_ROOM"])?,
            None => same("number of strategies", strategies.len(), 5)?,
        }
        for (name, per_member) in &line.result {
            let strategy = strategy(name, &line)?;
            same("name", strategy.name(), name.as_str())?;
            same("members", per_member.len(), line.cids.len())?;
            for (cid, java) in per_member {
                let here = match strategy.allocate("g", cid, &line.queues, &line.cids) {
                    Ok(mine) => Allocated::Queues(
                        mine.iter()
                            .map(|mq| format!("{}#{}", mq.broker_name(), mq.queue_id()))
                            .collect(),
                    ),
                    Err(_) => Allocated::Error("error:IllegalArgumentException".to_owned()),
                };
                same(&format!("{name} for {cid}"), &here, java)?;
            }
        }
        Ok(())
    });
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ValidatorsLine {
    name: String,
    topic: String,
    send_topic: String,
    group: String,
}

#[test]
fn name_rules() {
    fn verdict(result: Result<(), validators::NameError>) -> &'static str {
        if result.is_ok() { "ok" } else { "error" }
    }
    check("validators.jsonl", |line: ValidatorsLine| {
        let name = line.name.as_str();
        let rule = |what: &str| format!("{what} {name:?}");
        same(
            &rule("topic"),
            verdict(validators::check_topic(name)),
            &line.topic,
        )?;
        same(
            &rule("send to"),
            verdict(validators::check_sendable(name)),
            &line.send_topic,
        )?;
        same(
            &rule("group"),
            verdict(validators::check_group(name)),
            &line.group,
        )
    });
}
