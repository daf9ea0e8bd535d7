use super::header;

header! {
    /// GET_ROUTEINFO_BY_TOPIC (105), to a name server.
    pub struct GetRouteInfoRequestHeader {
        /// The topic asked for.
        topic: String => "topic",
        /// Whether the answer must be strict JSON whatever the version of the request.
        accept_standard_json_only: Option<bool> => "acceptStandardJsonOnly",
    }
}
