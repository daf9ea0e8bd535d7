use super::header;

header! {
    /// The fields that any request may carry beside its own header (Java `RpcRequestHeader`); add
    /// them with [`RemotingCommand::with_header`](crate::RemotingCommand::with_header).
    pub struct RpcRequestHeader {
        /// The namespace (Java `namespaceV2`).
        namespace: Option<String> => "ns",
        /// Whether the other fields carry the namespace already.
        namespaced: Option<bool> => "nsd",
        /// The broker that the client believes it is talking to.
        broker_name: Option<String> => "bname",
        /// Whether no answer is wanted. A hint: the command's own flag decides.
        oneway: Option<bool> => "oway",
        /// Whether the queue is one of a static topic.
        logical: Option<bool> => "lo",
    }
}
