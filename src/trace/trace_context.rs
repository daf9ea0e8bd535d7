/// What happened (Java `TraceType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TraceType {
    /// A message was sent.
    Pub,
    /// A message was taken back.
    Recall,
    /// A listener is about to be called.
    SubBefore,
    /// A listener has returned.
    SubAfter,
    /// The end of a transaction was told.
    EndTransaction,
}

/// One thing that happened (Java `TraceContext`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TraceContext {
    pub(crate) trace_type: TraceType,
    /// Milliseconds since 1970.
    pub(crate) time_stamp: i64,
    /// `None` when the broker has not named its region: then nothing is written.
    pub(crate) region_id: Option<String>,
    pub(crate) group_name: String,
    /// In milliseconds, of one message on average.
    pub(crate) cost_time: i64,
    pub(crate) success: bool,
    /// Joins what was before a call of the listener with what was after.
    pub(crate) request_id: String,
    pub(crate) context_code: i32,
    pub(crate) beans: Vec<TraceBean>,
}

impl TraceContext {
    /// Something that went well and took no time.
    pub(crate) fn new(trace_type: TraceType, time_stamp: i64, group_name: String) -> Self {
        Self {
            trace_type,
            time_stamp,
            region_id: None,
            group_name,
            cost_time: 0,
            success: true,
            request_id: String::new(),
            context_code: 0,
            beans: Vec::new(),
        }
    }
}

/// One of the messages it happened to (Java `TraceBean`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TraceBean {
    pub(crate) topic: String,
    pub(crate) msg_id: String,
    pub(crate) offset_msg_id: String,
    pub(crate) tags: Option<String>,
    pub(crate) keys: Option<String>,
    pub(crate) store_host: String,
    pub(crate) retry_times: i32,
    pub(crate) body_length: usize,
    pub(crate) msg_type: i32,
    pub(crate) transaction_id: Option<String>,
    pub(crate) transaction_state: &'static str,
    pub(crate) from_transaction_check: bool,
}
