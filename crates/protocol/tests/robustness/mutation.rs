//! Mutants of valid input.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;

use bytes::{Bytes, BytesMut};
use rocketmq_protocol::body::{
    GetConsumerListByGroupResponseBody, HeartbeatData, JsonBody, TopicRouteData,
};
use rocketmq_protocol::compression::{CompressionType, MAX_DECOMPRESSED_LENGTH};
use rocketmq_protocol::header::{
    PullMessageRequestHeader, PullMessageResponseHeader, SendMessageRequestHeader,
    SendMessageRequestHeaderV2, SendMessageResponseHeader,
};
use rocketmq_protocol::{
    FrameDecoder, MAX_FRAME_LENGTH, OffsetMessageId, RemotingCommand, SerializeType, StoredMessage,
    StoredMessages, SubscriptionData, decode_properties, encode_properties, java_string_hash, json,
    sys_flag, validators,
};

use crate::{KINDS, command, ends, frame, frugal, route, stored, wire};

/// SplitMix64: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        const ODD_NUMBERS: [i32; 9] = [
            -1,
            0,
            1,
            7,
            0x7F,
            0x7FFF,
            i32::MAX,
            i32::MIN,
            MAX_FRAME_LENGTH as i32,
        ];
        const ODD_TEXTS: [&[u8]; 14] = [
            b"\"",
            b"\\",
            b"{",
            b"}",
            b"[",
            b"]",
            b":",
            b",",
            b"null",
            b"{{",
            b"\x01",
            b"\x02",
            b"99999999999",
            b"\xF0\x9F",
        ];
        let at = self.below(bytes.len());
        let length = self.below(bytes.len() - at).min(64);
        match self.below(8) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << self.below(8),
            1 if !bytes.is_empty() => bytes[at] = self.next() as u8,
            2 if bytes.len() >= at + 4 => {
                let number = ODD_NUMBERS[self.below(ODD_NUMBERS.len())];
                bytes[at..at + 4].copy_from_slice(&number.to_be_bytes());
            }
            3 => bytes.truncate(at),
            4 => drop(bytes.drain(at..at + length)),
            5 => {
                let again = bytes[at..at + length].to_vec();
                let place = self.below(bytes.len());
                bytes.splice(place..place, again);
            }
            6 => {
                let text = ODD_TEXTS[self.below(ODD_TEXTS.len())];
                bytes.splice(at..at, text.iter().copied());
            }
            _ => bytes.extend((0..length).map(|_| self.next() as u8)),
        }
    }
}

/// Feeds mutants of valid inputs, several mutations on top of each other, to `consume`.
fn mutate_all(valid: Vec<Vec<u8>>, mutants: u64, consume: fn(&[u8], &mut Random)) {
    ends(move |at| {
        for seed in 0..mutants {
            at.store(seed, Ordering::Relaxed);
            let mut random = Random(seed);
            let mut bytes = valid[random.below(valid.len())].clone();
            for _ in 0..=random.below(4) {
                random.mutate(&mut bytes);
            }
            let run = AssertUnwindSafe(|| consume(&bytes, &mut random));
            if let Err(panic) = catch_unwind(run) {
                eprintln!("mutant {seed}: {}", bytes.escape_ascii());
                resume_unwind(panic);
            }
        }
    });
}

fn compressed(kind: CompressionType) -> StoredMessage {
    let body = b"compressible ".repeat(40);
    StoredMessage {
        sys_flag: sys_flag::COMPRESSED | kind.flag(),
        body: kind.compress(&body, 5).unwrap(),
        ..stored(b"")
    }
}

#[test]
fn mutated_frames_are_read_or_refused() {
    let one = |form| frame(&command(form));
    let valid = vec![
        one(SerializeType::Json),
        one(SerializeType::RocketMq),
        [one(SerializeType::RocketMq), one(SerializeType::Json)].concat(),
    ];
    mutate_all(valid, 20_000, |bytes, random| {
        frugal(bytes.len(), || {
            let mut decoder = FrameDecoder::default();
            let mut rest = bytes;
            let mut commands = 0;
            while !rest.is_empty() {
                let (now, later) = rest.split_at(1 + random.below(rest.len()));
                decoder.extend(now);
                rest = later;
                loop {
                    match decoder.next_command() {
                        Ok(Some(command)) => {
                            commands += 1;
                            read_headers(&command);
                        }
                        Ok(None) => break,
                        Err(_) => return,
                    }
                }
            }
            assert!(commands <= bytes.len() / 8);
            assert!(decoder.pending() <= bytes.len());
        });
    });
}

fn read_headers(command: &RemotingCommand) {
    let _ = command.decode_header::<SendMessageRequestHeader>();
    let _ = command.decode_header::<SendMessageResponseHeader>();
    let _ = command.decode_header::<PullMessageRequestHeader>();
    let _ = command.decode_header::<PullMessageResponseHeader>();
    if let Ok(SendMessageRequestHeaderV2(header)) = command.decode_header() {
        decode_properties(header.properties.as_deref().unwrap_or_default());
        let _ = validators::check_topic(&header.topic);
        let _ = SubscriptionData::build(&header.topic, &header.producer_group, 0);
    }
    let mut again = BytesMut::new();
    command.encode(&mut again).unwrap();
}

#[test]
fn mutated_stored_messages_are_read_or_refused() {
    let plain = wire(&stored(b"hello"));
    let long_topic = wire(&StoredMessage {
        topic: "t".repeat(200),
        ..stored(b"")
    });
    let valid = vec![plain.clone(), long_topic, plain.repeat(3)];
    mutate_all(valid, 20_000, |bytes, _| {
        let bytes = Bytes::copy_from_slice(bytes);
        frugal(bytes.len(), || {
            let _ = StoredMessage::decode(bytes.clone());
        });
        assert!(StoredMessages::new(bytes.clone()).count() <= 1 + bytes.len() / 8);
    });
}

#[test]
fn mutated_compressed_messages_are_read_or_refused() {
    let valid = KINDS.map(|kind| wire(&compressed(kind))).to_vec();
    mutate_all(valid, 4_000, |bytes, _| {
        // A checksum of 0 is not compared, so that what is mutated reaches the decoder.
        let mut bytes = bytes.to_vec();
        if let Some(checksum) = bytes.get_mut(8..12) {
            checksum.fill(0);
        }
        let length = bytes.len();
        assert!(StoredMessages::new(bytes.into()).count() <= 1 + length / 8);
    });
}

#[test]
fn mutated_compressed_bodies_are_expanded_or_refused() {
    let valid = KINDS.map(|kind| compressed(kind).body.to_vec()).to_vec();
    mutate_all(valid, 4_000, |bytes, _| {
        for kind in KINDS {
            if let Ok(body) = kind.decompress(bytes) {
                assert!(body.len() <= MAX_DECOMPRESSED_LENGTH);
            }
        }
    });
}

#[test]
fn mutated_json_bodies_are_read_or_refused() {
    let heartbeat = br#"{"clientID":"c","consumerDataSet":[{"groupName":"g","subscriptionDataSet":[{"codeSet":[1],"tagsSet":["a"],"topic":"t"}]}]}"#;
    let valid = vec![
        route().to_json().unwrap(),
        br#"{"brokerDatas":[{"brokerAddrs":{0:"a",1:"b"},"brokerName":"n"}],"orderTopicConf":"b:3;c:4","queueDatas":[{"brokerName":"n","perm":6,"writeQueueNums":4}]}"#.to_vec(),
        br#"{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"t"}:5,{"brokerName":"b","queueId":1,"topic":"t"}:6}}"#.to_vec(),
        heartbeat.to_vec(),
        br#"{"consumerIdList":["a","b"]}"#.to_vec(),
    ];
    mutate_all(valid, 20_000, |bytes, _| {
        let route = frugal(bytes.len(), || {
            let _ = json::from_slice::<serde_json::Value>("x", bytes);
            let _ = HeartbeatData::from_json(bytes);
            let _ = GetConsumerListByGroupResponseBody::from_json(bytes);
            TopicRouteData::from_json(bytes)
        });
        if let Ok(route) = route {
            assert!(route.publish_queues("t").0.len() <= 1 << 20);
            assert!(route.subscribe_queues("t").len() <= 1 << 20);
        }
    });
}

#[test]
fn mutated_texts_are_read() {
    let valid = vec![
        b"KEYS\x01k1\x02x\x01y\x02WAIT\x01true\x02".to_vec(),
        b"0A00000200002A9F0000000000000004".to_vec(),
        b"TagA || TagB||\xE6\xBC\xA2".to_vec(),
    ];
    mutate_all(valid, 20_000, |bytes, _| {
        let text = String::from_utf8_lossy(bytes);
        let properties = frugal(bytes.len(), || decode_properties(&text));
        assert_eq!(
            decode_properties(&encode_properties(&properties)),
            properties
        );
        if let Some(id) = OffsetMessageId::parse(&text) {
            assert_eq!(id.to_string(), text.to_ascii_uppercase());
        }
        if let Ok(data) = SubscriptionData::build("t", &text, 0) {
            assert!(data.tags_set.iter().all(|tag| data.matches_tag(Some(tag))));
            assert!(
                data.tags_set
                    .iter()
                    .all(|tag| data.code_set.contains(&java_string_hash(tag)))
            );
        }
        let _ = validators::check_group(&text);
    });
}
