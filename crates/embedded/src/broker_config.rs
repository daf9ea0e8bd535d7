use std::time::Duration;

/// A broker's settings, as [`ClusterBuilder::configure`](crate::ClusterBuilder::configure) and
/// [`Cluster::configure`](crate::Cluster::configure) hand them out for changing.
///
/// Defaults are those of Apache RocketMQ 5.5.0; each field names Java's key where there is one. A
/// changed period counts from the next time on: one that has begun is waited out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BrokerConfig {
    /// Whether a send to an unknown topic creates it. Default true; Java `autoCreateTopicEnable`.
    /// Whether the template topic TBW102 exists is decided when the cluster is built.
    pub auto_create_topic: bool,
    /// The queues of the template topic, the most that a topic created by a send gets; looked at
    /// when the cluster is built. Default 8; Java `defaultTopicQueueNums`.
    pub default_topic_queue_nums: i32,
    /// Whether heartbeats, pulls and messages given back create their group. Default true; Java
    /// `autoCreateSubscriptionGroup`.
    pub auto_create_subscription_group: bool,
    /// What the broker allows: 4 reading, 2 writing. Without 4 pulls are refused; without 2
    /// messages given back and sends to ordered topics are, and routes no longer show the broker as
    /// writeable. Default 6; Java `brokerPermission`.
    pub broker_permission: i32,
    /// Whether members of a group are told when it changes. Default true; Java
    /// `notifyConsumerIdsChangedEnable`.
    pub notify_consumer_ids_changed: bool,
    /// Whether they are told at once. Otherwise each group's last change is told every
    /// [`notify_period`](Self::notify_period). Default true; Java `realTimeNotifyConsumerChange`.
    pub real_time_notify: bool,
    /// How often changes are told that are not told at once. Default 15 s, fixed in Java.
    pub notify_period: Duration,
    /// After how long without a heartbeat a consumer is taken out of its groups and its connection
    /// closed. The others are not told, as by a real broker. Default 120 s; Java
    /// `channelExpiredTimeout`.
    pub member_expiry: Duration,
    /// The same for producers. Default 120 s, fixed in Java's `ProducerManager`.
    pub producer_expiry: Duration,
    /// How often members are looked at for expiry. Default 10 s, fixed in Java's
    /// `ClientHousekeepingService`.
    pub member_scan: Duration,
    /// After how long without a byte in either direction a connection is closed, which tells the
    /// other members. Looked at when a connection begins. Default 120 s; Java
    /// `serverChannelMaxIdleTimeSeconds`.
    pub server_idle: Duration,
    /// After how long without renewal another client may take over a locked queue. Default 60 s;
    /// Java system property `rocketmq.broker.rebalance.lockMaxLiveTime`.
    pub lock_max_live_time: Duration,
    /// Whether pulls wait as long as they ask for. Otherwise they wait
    /// [`short_polling_time`](Self::short_polling_time). Default true; Java `longPollingEnable`.
    pub long_polling: bool,
    /// How long pulls wait, and how often they are looked at, without long polling. Default 1 s;
    /// Java `shortPollingTimeMills`.
    pub short_polling_time: Duration,
    /// The longest that a pull waits, whatever it asks for. Default `None`: no limit, as in Java.
    pub long_poll_hold: Option<Duration>,
    /// How often waiting pulls are looked at; a pull may overrun its time by so much. Default 5 s,
    /// fixed in Java's `PullRequestHoldService`.
    pub long_poll_sweep: Duration,
    /// Whether the first message of a queue counts as being in memory still, so that the offset of
    /// a new group is 0 and not unknown. Default true; a real broker looks.
    pub first_message_in_memory: bool,
    /// The longest body, in bytes. Default 4,194,304; Java `maxMessageSize`.
    pub max_message_size: usize,
    /// Whether answers to sends ask for traces. Default true; Java `traceOn`.
    pub trace_on: bool,
    /// Whether there is a topic for traces, `RMQ_SYS_TRACE_TOPIC` with one queue; looked at when the
    /// broker is made. Otherwise the first trace makes it, where topics are made by sends. Default
    /// false; Java `traceTopicEnable`.
    pub trace_topic_enable: bool,
    /// How often half messages are looked at that are not decided. Default 30 s; Java
    /// `transactionCheckInterval`.
    pub transaction_check_interval: Duration,
    /// How old a half message must be before its producers are asked, unless the message says how
    /// old (`CHECK_IMMUNITY_TIME_IN_SECONDS`). Default 6 s; Java `transactionTimeOut`.
    pub transaction_time_out: Duration,
    /// How often a half message is asked for before it goes to `TRANS_CHECK_MAX_TIME_TOPIC`. Default
    /// 15; Java `transactionCheckMax`.
    pub transaction_check_max: u32,
    /// Whether half messages are refused. Default false; Java `rejectTransactionMessage`.
    pub reject_transaction_message: bool,
    /// Whether messages with a time of their own are taken. Default true; Java `timerWheelEnable`.
    pub timer_wheel_enable: bool,
    /// The furthest time that a message may have. Default 3 days; Java `timerMaxDelaySec`.
    pub timer_max_delay: Duration,
    /// What such times are rounded to; messages come up to so much late. Default 1 s; Java
    /// `timerPrecisionMs`.
    pub timer_precision: Duration,
    /// Whether messages with a time can be taken back. Default false; Java `recallMessageEnable`.
    pub recall_message_enable: bool,
    /// Whether replies are stored, pushed or not. Default true; Java `storeReplyMessageEnable`.
    pub store_reply_message_enable: bool,
    /// The most messages for a unique key that is looked for. Default 32; Java
    /// `defaultQueryMaxNum`.
    pub default_query_max_num: i32,
    /// The most messages for any key that is looked for. Default 64; Java `maxMsgsNumBatch`.
    pub max_msgs_num_batch: i32,
    /// How often the broker registers with the name server; changed topics are registered at once.
    /// Default 30 s; Java `registerNameServerPeriod`.
    pub register_period: Duration,
    /// How long a client may take to answer a request of the broker. Default 10 s, fixed in Java's
    /// `Broker2Client`.
    pub call_client_timeout: Duration,
}

impl Default for BrokerConfig {
    fn default() -> Self {
        Self {
            auto_create_topic: true,
            default_topic_queue_nums: 8,
            auto_create_subscription_group: true,
            broker_permission: 6,
            notify_consumer_ids_changed: true,
            real_time_notify: true,
            notify_period: Duration::from_secs(15),
            member_expiry: Duration::from_secs(120),
            producer_expiry: Duration::from_secs(120),
            member_scan: Duration::from_secs(10),
            server_idle: Duration::from_secs(120),
            lock_max_live_time: Duration::from_secs(60),
            long_polling: true,
            short_polling_time: Duration::from_secs(1),
            long_poll_hold: None,
            long_poll_sweep: Duration::from_secs(5),
            first_message_in_memory: true,
            max_message_size: 4_194_304,
            trace_on: true,
            trace_topic_enable: false,
            transaction_check_interval: Duration::from_secs(30),
            transaction_time_out: Duration::from_secs(6),
            transaction_check_max: 15,
            reject_transaction_message: false,
            timer_wheel_enable: true,
            timer_max_delay: Duration::from_secs(3 * 24 * 3600),
            timer_precision: Duration::from_secs(1),
            recall_message_enable: false,
            store_reply_message_enable: true,
            default_query_max_num: 32,
            max_msgs_num_batch: 64,
            register_period: Duration::from_secs(30),
            call_client_timeout: Duration::from_secs(10),
        }
    }
}

impl BrokerConfig {
    /// Sets a field by text: by Java's key, or where Java has none, by the field's own name in
    /// Java's spelling (`longPollSweep`). Times are in milliseconds, except
    /// `serverChannelMaxIdleTimeSeconds` and `timerMaxDelaySec`.
    ///
    /// # Errors
    /// A text that names what is wrong: the key, or the value.
    ///
    /// ```
    /// # let cluster = rocketmq_embedded::Cluster::builder().configure(|config| {
    /// config.set_property("lockMaxLiveTime", "2000").unwrap();
    /// assert_eq!(config.lock_max_live_time.as_secs(), 2);
    /// assert!(config.set_property("lockMaxLiveTime", "soon").is_err());
    /// # });
    /// ```
    pub fn set_property(&mut self, key: &str, value: &str) -> Result<(), String> {
        let wrong = || format!("{key} cannot be {value:?}");
        let switch = || value.parse::<bool>().map_err(|_| wrong());
        let number = || value.parse::<i32>().map_err(|_| wrong());
        let count = || value.parse::<u64>().map_err(|_| wrong());
        let millis = || count().map(Duration::from_millis);
        match key {
            "autoCreateTopicEnable" => self.auto_create_topic = switch()?,
            "defaultTopicQueueNums" => self.default_topic_queue_nums = number()?,
            "autoCreateSubscriptionGroup" => self.auto_create_subscription_group = switch()?,
            "brokerPermission" => self.broker_permission = number()?,
            "notifyConsumerIdsChangedEnable" => self.notify_consumer_ids_changed = switch()?,
            "realTimeNotifyConsumerChange" => self.real_time_notify = switch()?,
            "notifyPeriod" => self.notify_period = millis()?,
            "channelExpiredTimeout" => self.member_expiry = millis()?,
            "producerExpiry" => self.producer_expiry = millis()?,
            "memberScan" => self.member_scan = millis()?,
            "serverChannelMaxIdleTimeSeconds" => self.server_idle = Duration::from_secs(count()?),
            "lockMaxLiveTime" => self.lock_max_live_time = millis()?,
            "longPollingEnable" => self.long_polling = switch()?,
            "shortPollingTimeMills" => self.short_polling_time = millis()?,
            "longPollHold" => self.long_poll_hold = Some(millis()?),
            "longPollSweep" => self.long_poll_sweep = millis()?,
            "firstMessageInMemory" => self.first_message_in_memory = switch()?,
            "maxMessageSize" => {
                self.max_message_size = usize::try_from(count()?).map_err(|_| wrong())?;
            }
            "traceOn" => self.trace_on = switch()?,
            "traceTopicEnable" => self.trace_topic_enable = switch()?,
            "transactionCheckInterval" => self.transaction_check_interval = millis()?,
            "transactionTimeOut" => self.transaction_time_out = millis()?,
            "transactionCheckMax" => {
                self.transaction_check_max = u32::try_from(count()?).map_err(|_| wrong())?;
            }
            "rejectTransactionMessage" => self.reject_transaction_message = switch()?,
            "timerWheelEnable" => self.timer_wheel_enable = switch()?,
            "timerMaxDelaySec" => self.timer_max_delay = Duration::from_secs(count()?),
            "timerPrecisionMs" => self.timer_precision = millis()?,
            "recallMessageEnable" => self.recall_message_enable = switch()?,
            "storeReplyMessageEnable" => self.store_reply_message_enable = switch()?,
            "defaultQueryMaxNum" => self.default_query_max_num = number()?,
            "maxMsgsNumBatch" => self.max_msgs_num_batch = number()?,
            "registerNameServerPeriod" => self.register_period = millis()?,
            "callClientTimeout" => self.call_client_timeout = millis()?,
            _ => return Err(format!("there is no setting {key:?}")),
        }
        Ok(())
    }

    /// How often waiting pulls are looked at.
    pub(crate) fn sweep(&self) -> Duration {
        if self.long_polling {
            self.long_poll_sweep
        } else {
            self.short_polling_time
        }
    }

    /// How long a pull waits that asks for so many milliseconds.
    pub(crate) fn hold(&self, asked_millis: i64) -> Duration {
        if !self.long_polling {
            return self.short_polling_time;
        }
        let asked = Duration::from_millis(asked_millis.max(0) as u64);
        self.long_poll_hold
            .map_or(asked, |longest| asked.min(longest))
    }

    /// The periods that must not be zero, or a thread would do nothing else.
    pub(crate) fn periods(&self) -> [(&'static str, Duration); 9] {
        [
            ("notify_period", self.notify_period),
            ("member_scan", self.member_scan),
            ("server_idle", self.server_idle),
            ("short_polling_time", self.short_polling_time),
            ("long_poll_sweep", self.long_poll_sweep),
            ("register_period", self.register_period),
            (
                "transaction_check_interval",
                self.transaction_check_interval,
            ),
            ("timer_precision", self.timer_precision),
            ("call_client_timeout", self.call_client_timeout),
        ]
    }
}

/// A name server's settings, see
/// [`ClusterBuilder::configure_name_server`](crate::ClusterBuilder::configure_name_server).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamesrvConfig {
    /// Whether routes carry the configuration of ordered topics. Default false; Java
    /// `orderMessageEnable`.
    pub order_message_enable: bool,
    /// After how long without a registration a broker is forgotten. Default 120 s, fixed in Java's
    /// `RouteInfoManager`.
    pub broker_expiry: Duration,
    /// How often brokers are looked at for expiry. Default 5 s; Java
    /// `scanNotActiveBrokerInterval`.
    pub broker_scan: Duration,
}

impl Default for NamesrvConfig {
    fn default() -> Self {
        Self {
            order_message_enable: false,
            broker_expiry: Duration::from_secs(120),
            broker_scan: Duration::from_secs(5),
        }
    }
}

/// Settings that are read often and changed seldom.
#[derive(Debug)]
pub(crate) struct Shared<T>(parking_lot::Mutex<std::sync::Arc<T>>);

impl<T: Clone> Shared<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(parking_lot::Mutex::new(std::sync::Arc::new(value)))
    }

    pub(crate) fn get(&self) -> std::sync::Arc<T> {
        std::sync::Arc::clone(&self.0.lock())
    }

    pub(crate) fn set(&self, value: T) {
        *self.0.lock() = std::sync::Arc::new(value);
    }
}
