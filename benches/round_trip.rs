//! A synchronous send to a broker of this process and back.

use std::error::Error;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion};
use rocketmq_blocking::{DefaultMQProducer, Message};
use rocketmq_embedded::Cluster;

fn main() -> Result<(), Box<dyn Error>> {
    let mut criterion = Criterion::default()
        .sample_size(30)
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    // It keeps all that it is sent.
    let cluster = Cluster::builder().start()?;
    cluster.create_topic("bench_topic", 8)?;
    let producer = DefaultMQProducer::builder("bench_producer")
        .namesrv_addr(&cluster.namesrv_addr())
        .build()?;
    producer.start()?;
    let mut group = criterion.benchmark_group("round-trip");
    for size in [100, 1024] {
        let message = Message::new("bench_topic", vec![b'x'; size]);
        producer.send(&message)?;
        group.bench_function(BenchmarkId::new("send-sync", size), |bencher| {
            bencher.iter(|| producer.send(&message));
        });
    }
    group.finish();
    producer.shutdown(Duration::from_secs(10));
    cluster.shutdown();
    criterion.final_summary();
    Ok(())
}
