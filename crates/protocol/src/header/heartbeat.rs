use super::header;

header! {
    /// UNREGISTER_CLIENT (35): a client leaves one of its groups.
    pub struct UnregisterClientRequestHeader {
        /// The client.
        client_id: String => "clientID",
        /// The producer group it leaves.
        producer_group: Option<String> => "producerGroup",
        /// The consumer group it leaves.
        consumer_group: Option<String> => "consumerGroup",
    }

    /// GET_CONSUMER_LIST_BY_GROUP (38).
    pub struct GetConsumerListByGroupRequestHeader {
        /// The group whose members are asked for.
        consumer_group: String => "consumerGroup",
    }

    /// NOTIFY_CONSUMER_IDS_CHANGED (40), from a broker: the members of a group changed.
    pub struct NotifyConsumerIdsChangedRequestHeader {
        /// The group that changed.
        consumer_group: String => "consumerGroup",
    }
}
