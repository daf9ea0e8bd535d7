use std::env;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rocketmq_blocking::{DefaultMQProducer, MQClientManager};
use rocketmq_embedded::Cluster;

use super::wait_until;

/// The servers of a test: embedded ones, or those of the name server in `ROCKETMQ_NAMESRV`.
pub(crate) struct Target {
    namesrv: String,
    embedded: Option<Cluster>,
}

impl Target {
    /// Starts an embedded cluster of so many brokers, unless a real one is to be used, whose number
    /// of brokers is what it is.
    pub(crate) fn start(brokers: usize) -> Self {
        if let Ok(namesrv) = env::var("ROCKETMQ_NAMESRV") {
            return Self {
                namesrv,
                embedded: None,
            };
        }
        let cluster = Cluster::builder().brokers(brokers).start().unwrap();
        Self {
            namesrv: cluster.namesrv_addr(),
            embedded: Some(cluster),
        }
    }

    pub(crate) fn namesrv(&self) -> &str {
        &self.namesrv
    }

    /// The embedded cluster, for what only it can be asked.
    pub(crate) fn embedded(&self) -> Option<&Cluster> {
        self.embedded.as_ref()
    }

    /// Creates a topic on all brokers, and waits until the name server knows it. Returns how many
    /// queues it has.
    pub(crate) fn create_topic(&self, topic: &str, queues_per_broker: u16) -> usize {
        let admin = DefaultMQProducer::builder("test_admin")
            .client_manager(&MQClientManager::new())
            .namesrv_addr(&self.namesrv)
            .build()
            .unwrap();
        admin.start().unwrap();
        admin
            .create_topic("TBW102", topic, queues_per_broker.into())
            .unwrap();
        let mut queues = 0;
        wait_until("the name server knows the new topic", || {
            queues = admin
                .fetch_publish_message_queues(topic)
                .map_or(0, |queues| queues.len());
            queues > 0
        });
        admin.shutdown(Duration::from_secs(5));
        queues
    }
}

/// A name that no other test, and no earlier run on the same cluster, has used.
pub(crate) fn unique(name: &str) -> String {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    format!("{name}_{}_{number}", now.as_millis())
}
