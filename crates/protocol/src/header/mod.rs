//! The custom headers of requests and responses, one file a family.
//!
//! Field names on the wire are Java's. A field of type `Option` is left out when it is `None`; all
//! others are required, and sent always.

mod admin;
mod consumer;
mod heartbeat;
mod lite;
mod name_server;
mod offset;
mod pop;
mod pull;
mod query;
mod recall;
mod reply;
mod route;
mod rpc;
mod send;
mod transaction;

pub use admin::{
    CreateTopicRequestHeader, DeleteSubscriptionGroupRequestHeader,
    DeleteTopicFromNamesrvRequestHeader, DeleteTopicRequestHeader,
    GetSubscriptionGroupConfigRequestHeader, GetTopicConfigRequestHeader,
    GetTopicStatsInfoRequestHeader,
};
pub use consumer::{
    ConsumeMessageDirectlyResultRequestHeader, GetConsumeStatsRequestHeader,
    GetConsumerConnectionListRequestHeader, GetConsumerRunningInfoRequestHeader,
    GetConsumerStatusRequestHeader, GetProducerConnectionListRequestHeader,
    QueryConsumeTimeSpanRequestHeader, ResetOffsetRequestHeader,
};
pub use heartbeat::{
    GetConsumerListByGroupRequestHeader, NotifyConsumerIdsChangedRequestHeader,
    UnregisterClientRequestHeader,
};
pub use lite::{
    NotifyUnsubscribeLiteRequestHeader, PopLiteMessageRequestHeader, PopLiteMessageResponseHeader,
};
pub use name_server::{
    DeleteKVConfigRequestHeader, GetKVConfigRequestHeader, GetKVConfigResponseHeader,
    GetKVListByNamespaceRequestHeader, GetTopicsByClusterRequestHeader, PutKVConfigRequestHeader,
    RegisterBrokerRequestHeader, RegisterBrokerResponseHeader, UnRegisterBrokerRequestHeader,
    WritePermOfBrokerRequestHeader,
};
pub use offset::{
    GetEarliestMsgStoretimeRequestHeader, GetEarliestMsgStoretimeResponseHeader,
    GetMaxOffsetRequestHeader, GetMinOffsetRequestHeader, OffsetResponseHeader,
    QueryConsumerOffsetRequestHeader, SearchOffsetRequestHeader, UpdateConsumerOffsetRequestHeader,
};
pub use pop::{
    AckMessageRequestHeader, ChangeInvisibleTimeRequestHeader, ChangeInvisibleTimeResponseHeader,
    NotificationRequestHeader, NotificationResponseHeader, PeekMessageRequestHeader,
    PollingInfoRequestHeader, PollingInfoResponseHeader, PopMessageRequestHeader,
    PopMessageResponseHeader,
};
pub use pull::{PullMessageRequestHeader, PullMessageResponseHeader};
pub use query::{
    QueryMessageRequestHeader, QueryMessageResponseHeader, UNIQUE_KEY_QUERY,
    ViewMessageRequestHeader,
};
pub use recall::{RecallMessageRequestHeader, RecallMessageResponseHeader};
pub use reply::ReplyMessageRequestHeader;
pub use route::GetRouteInfoRequestHeader;
pub use rpc::RpcRequestHeader;
pub use send::{
    ConsumerSendMsgBackRequestHeader, SendMessageRequestHeader, SendMessageRequestHeaderV2,
    SendMessageResponseHeader,
};
pub use transaction::{CheckTransactionStateRequestHeader, EndTransactionRequestHeader};

use std::str::FromStr;

use crate::{CodecError, ExtFields};

/// A header that travels as text fields of a command (Java `CommandCustomHeader`).
pub trait CommandCustomHeader: Sized {
    /// The Java class name, for errors.
    const NAME: &'static str;

    /// Adds the fields.
    fn encode(&self, fields: &mut ExtFields);

    /// Reads the fields.
    ///
    /// # Errors
    /// [`CodecError::MissingField`] or [`CodecError::BadField`].
    fn decode(fields: &ExtFields) -> Result<Self, CodecError>;
}

/// One field's text form.
trait HeaderField: Sized {
    fn encode(&self, name: &'static str, fields: &mut ExtFields);

    /// The value of a field that is there.
    fn from_text(header: &'static str, field: &'static str, text: &str)
    -> Result<Self, CodecError>;

    fn decode(
        header: &'static str,
        field: &'static str,
        fields: &ExtFields,
    ) -> Result<Self, CodecError> {
        match fields.get(field) {
            Some(text) => Self::from_text(header, field, text),
            None => Self::absent(header, field),
        }
    }

    /// What a field is that is not there.
    fn absent(header: &'static str, field: &'static str) -> Result<Self, CodecError> {
        Err(CodecError::MissingField { header, field })
    }
}

impl HeaderField for String {
    fn encode(&self, name: &'static str, fields: &mut ExtFields) {
        fields.set(name, self.as_str());
    }

    fn from_text(_: &'static str, _: &'static str, text: &str) -> Result<Self, CodecError> {
        Ok(text.to_owned())
    }
}

fn parsed<T: FromStr>(
    header: &'static str,
    field: &'static str,
    text: &str,
) -> Result<T, CodecError> {
    text.parse().map_err(|_| CodecError::BadField {
        header,
        field,
        value: text.to_owned(),
    })
}

macro_rules! integer_field {
    ($($kind:ty),+) => {$(
        impl HeaderField for $kind {
            fn encode(&self, name: &'static str, fields: &mut ExtFields) {
                fields.set(name, itoa::Buffer::new().format(*self));
            }

            fn from_text(
                header: &'static str,
                field: &'static str,
                text: &str,
            ) -> Result<Self, CodecError> {
                parsed(header, field, text)
            }
        }
    )+};
}

integer_field!(i32, i64);

const fn bool_text(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

impl HeaderField for bool {
    fn encode(&self, name: &'static str, fields: &mut ExtFields) {
        fields.set(name, bool_text(*self));
    }

    fn from_text(
        header: &'static str,
        field: &'static str,
        text: &str,
    ) -> Result<Self, CodecError> {
        parsed(header, field, text)
    }
}

impl<T: HeaderField> HeaderField for Option<T> {
    fn encode(&self, name: &'static str, fields: &mut ExtFields) {
        if let Some(value) = self {
            value.encode(name, fields);
        }
    }

    fn from_text(
        header: &'static str,
        field: &'static str,
        text: &str,
    ) -> Result<Self, CodecError> {
        T::from_text(header, field, text).map(Some)
    }

    fn absent(_: &'static str, _: &'static str) -> Result<Self, CodecError> {
        Ok(None)
    }
}

/// Declares a header: its fields, their wire names, and both directions.
macro_rules! header {
    ($(
        $(#[$meta:meta])*
        pub struct $header:ident {
            $($(#[$field_meta:meta])* $field:ident: $kind:ty => $name:literal,)*
        }
    )+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct $header {
            $($(#[$field_meta])* pub $field: $kind,)*
        }

        impl $crate::header::CommandCustomHeader for $header {
            const NAME: &'static str = stringify!($header);

            fn encode(&self, fields: &mut $crate::ExtFields) {
                $($crate::header::HeaderField::encode(&self.$field, $name, fields);)*
            }

            fn decode(fields: &$crate::ExtFields) -> Result<Self, $crate::CodecError> {
                Ok(Self {
                    $($field: $crate::header::HeaderField::decode(
                        stringify!($header), $name, fields,
                    )?,)*
                })
            }
        }
    )+};
}
use header;
