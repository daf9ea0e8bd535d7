use super::header;

header! {
    /// END_TRANSACTION (37), one-way: what becomes of a half message.
    pub struct EndTransactionRequestHeader {
        /// The message's topic.
        topic: Option<String> => "topic",
        /// The group that sent it.
        producer_group: String => "producerGroup",
        /// The half message's offset in its queue.
        tran_state_table_offset: i64 => "tranStateTableOffset",
        /// The half message's commit-log offset.
        commit_log_offset: i64 => "commitLogOffset",
        /// [`TRANSACTION_COMMIT`](crate::sys_flag::TRANSACTION_COMMIT),
        /// [`TRANSACTION_ROLLBACK`](crate::sys_flag::TRANSACTION_ROLLBACK), or 0 for not known.
        commit_or_rollback: i32 => "commitOrRollback",
        /// Whether a broker asked for it.
        from_transaction_check: Option<bool> => "fromTransactionCheck",
        /// The message's unique key.
        msg_id: String => "msgId",
        /// The transaction's id.
        transaction_id: Option<String> => "transactionId",
        /// The broker that the client believes it is talking to.
        broker_name: Option<String> => "bname",
    }

    /// CHECK_TRANSACTION_STATE (39), from a broker and one-way: what became of a half message? The
    /// body is the message as stored.
    pub struct CheckTransactionStateRequestHeader {
        /// The topic that half messages wait in; the message's own is in the body.
        topic: Option<String> => "topic",
        /// To be echoed in the answer.
        tran_state_table_offset: i64 => "tranStateTableOffset",
        /// To be echoed in the answer.
        commit_log_offset: i64 => "commitLogOffset",
        /// The message's unique key.
        msg_id: Option<String> => "msgId",
        /// The transaction's id.
        transaction_id: Option<String> => "transactionId",
        /// The offset message id of the half message.
        offset_msg_id: Option<String> => "offsetMsgId",
        /// The broker that asks.
        broker_name: Option<String> => "bname",
    }
}
