use super::header;

header! {
    /// QUERY_MESSAGE (12): finds messages by key. Whether the key is a unique one is said by the
    /// field [`UNIQUE_KEY_QUERY`] of the command.
    pub struct QueryMessageRequestHeader {
        /// The messages' topic.
        topic: String => "topic",
        /// The key.
        key: String => "key",
        /// The most messages wanted; a broker has limits of its own.
        max_num: i32 => "maxNum",
        /// The earliest store time in milliseconds since 1970.
        begin_timestamp: i64 => "beginTimestamp",
        /// The latest store time in milliseconds since 1970.
        end_timestamp: i64 => "endTimestamp",
        /// `K` for a key, `U` for a unique key, `T` for a tag.
        index_type: Option<String> => "indexType",
        /// Where an earlier answer ended.
        last_key: Option<String> => "lastKey",
        /// The broker that the client believes it is talking to.
        broker_name: Option<String> => "bname",
    }

    /// The answer to a query by key.
    pub struct QueryMessageResponseHeader {
        /// Until when the index reaches, in milliseconds since 1970.
        index_last_update_timestamp: i64 => "indexLastUpdateTimestamp",
        /// Until which commit-log offset it reaches.
        index_last_update_phyoffset: i64 => "indexLastUpdatePhyoffset",
    }

    /// VIEW_MESSAGE_BY_ID (33).
    pub struct ViewMessageRequestHeader {
        /// The message's topic.
        topic: Option<String> => "topic",
        /// The message's commit-log offset.
        offset: i64 => "offset",
    }
}

/// The field of a query's command that says whether the key is a unique one, `true` or `false`
/// (Java `MixAll.UNIQUE_MSG_QUERY_FLAG`).
pub const UNIQUE_KEY_QUERY: &str = "_UNIQUE_KEY_QUERY";
