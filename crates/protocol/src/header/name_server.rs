use super::header;

header! {
    /// PUT_KV_CONFIG (100): stores a value with the name server.
    pub struct PutKVConfigRequestHeader {
        /// The key's namespace, `ORDER_TOPIC_CONFIG` for ordered topics.
        namespace: String => "namespace",
        /// The key.
        key: String => "key",
        /// The value.
        value: String => "value",
    }

    /// GET_KV_CONFIG (101).
    pub struct GetKVConfigRequestHeader {
        /// The key's namespace.
        namespace: String => "namespace",
        /// The key.
        key: String => "key",
    }

    /// The answer to GET_KV_CONFIG.
    pub struct GetKVConfigResponseHeader {
        /// The value.
        value: Option<String> => "value",
    }

    /// DELETE_KV_CONFIG (102).
    pub struct DeleteKVConfigRequestHeader {
        /// The key's namespace.
        namespace: String => "namespace",
        /// The key.
        key: String => "key",
    }

    /// GET_KVLIST_BY_NAMESPACE (219).
    pub struct GetKVListByNamespaceRequestHeader {
        /// The namespace.
        namespace: String => "namespace",
    }

    /// GET_TOPICS_BY_CLUSTER (224).
    pub struct GetTopicsByClusterRequestHeader {
        /// The cluster.
        cluster: String => "cluster",
    }

    /// WIPE_WRITE_PERM_OF_BROKER (205) and ADD_WRITE_PERM_OF_BROKER (327).
    pub struct WritePermOfBrokerRequestHeader {
        /// The broker.
        broker_name: String => "brokerName",
    }

    /// REGISTER_BROKER (103), from a broker.
    pub struct RegisterBrokerRequestHeader {
        /// The broker's name.
        broker_name: String => "brokerName",
        /// Its address.
        broker_addr: String => "brokerAddr",
        /// Its cluster.
        cluster_name: String => "clusterName",
        /// Where replicas connect to.
        ha_server_addr: String => "haServerAddr",
        /// Its id; 0 is the master.
        broker_id: i64 => "brokerId",
        /// After how long without a sign of life it counts as gone, in milliseconds.
        heartbeat_timeout_millis: Option<i64> => "heartbeatTimeoutMillis",
        /// Whether a replica may act for a lost master.
        enable_acting_master: Option<bool> => "enableActingMaster",
        /// Whether the body is compressed.
        compressed: bool => "compressed",
        /// The checksum of the body.
        body_crc32: Option<i32> => "bodyCrc32",
    }

    /// The answer to a broker's registration.
    pub struct RegisterBrokerResponseHeader {
        /// Where the master's replicas connect to.
        ha_server_addr: Option<String> => "haServerAddr",
        /// The master's address.
        master_addr: Option<String> => "masterAddr",
    }

    /// UNREGISTER_BROKER (104), from a broker.
    pub struct UnRegisterBrokerRequestHeader {
        /// The broker's name.
        broker_name: String => "brokerName",
        /// Its address.
        broker_addr: String => "brokerAddr",
        /// Its cluster.
        cluster_name: String => "clusterName",
        /// Its id.
        broker_id: i64 => "brokerId",
    }
}
