use super::header;

header! {
    /// RECALL_MESSAGE (370): takes back a timer message before its time.
    pub struct RecallMessageRequestHeader {
        /// The group that sent it.
        producer_group: Option<String> => "producerGroup",
        /// Its topic.
        topic: String => "topic",
        /// What the answer to its send held, see [`crate::RecallHandle`].
        recall_handle: String => "recallHandle",
        /// The broker that the client believes it is talking to.
        broker_name: Option<String> => "bname",
    }

    /// The answer to a recall.
    pub struct RecallMessageResponseHeader {
        /// The unique key of the message that will not be delivered.
        msg_id: String => "msgId",
    }
}
