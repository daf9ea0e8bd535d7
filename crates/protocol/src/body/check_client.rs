use serde::{Deserialize, Serialize};

use super::JsonBody;
use crate::SubscriptionData;

/// A subscription that a broker shall look at before a consumer starts (CHECK_CLIENT_CONFIG, 46).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CheckClientRequestBody {
    /// The client.
    pub client_id: String,
    /// Its group.
    pub group: String,
    /// The subscription.
    pub subscription_data: SubscriptionData,
}

impl JsonBody for CheckClientRequestBody {
    const NAME: &'static str = "CheckClientRequestBody";
}
