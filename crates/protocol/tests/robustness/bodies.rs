//! JSON bodies.

use rocketmq_protocol::body::{BrokerData, QueueData};
use rocketmq_protocol::json;

use crate::{alone, ends, frugal, route};

#[test]
fn a_route_is_believed_a_bounded_number_of_queues() {
    ends(|_| {
        let mut conf = route();
        conf.order_topic_conf = Some("b:65536;".repeat(1000));
        assert_eq!(conf.publish_queues("t").0.len(), 1 << 20);
        let mut many = route();
        for number in 0..50_000 {
            let name = format!("broker-{number}");
            many.broker_datas.push(BrokerData {
                broker_name: name.clone(),
                broker_addrs: [(0, String::new())].into(),
                ..BrokerData::default()
            });
            many.queue_datas.push(QueueData {
                broker_name: name,
                perm: 6,
                read_queue_nums: if number < 20 { i32::MAX } else { -1 },
                write_queue_nums: if number < 20 { i32::MAX } else { 1 },
                ..QueueData::default()
            });
        }
        assert_eq!(many.publish_queues("t").0.len(), 1 << 20);
        assert_eq!(many.subscribe_queues("t").len(), 1 << 20);
    });
}

#[test]
fn object_keys_swell_a_text_by_a_bounded_factor() {
    let _alone = alone();
    let quotes = "\"\":1,".repeat(5_000);
    for levels in 0..6 {
        let mut text = format!("{{{quotes}\"a\":1}}");
        for _ in 0..levels {
            text = format!("{{{text}:1}}");
        }
        frugal(text.len(), || {
            let _ = json::from_slice::<serde_json::Value>("x", text.as_bytes());
        });
    }
}
