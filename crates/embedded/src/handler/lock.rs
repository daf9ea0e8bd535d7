use rocketmq_protocol::RemotingCommand;
use rocketmq_protocol::body::{
    JsonBody, LockBatchRequestBody, LockBatchResponseBody, UnlockBatchRequestBody,
};

use super::Answer;
use crate::answers::success;
use crate::broker::Broker;

/// LOCK_BATCH_MQ (41): the client gets what it can have.
pub(super) fn lock_batch(broker: &Broker, request: &RemotingCommand) -> Answer {
    let body = LockBatchRequestBody::from_command(request)?;
    let LockBatchRequestBody {
        client_id,
        consumer_group,
        mq_set,
        ..
    } = body;
    let live_time = broker.config().lock_max_live_time;
    let locked = broker
        .locks
        .try_lock_batch(&consumer_group, mq_set, &client_id, live_time);
    let body = LockBatchResponseBody {
        lock_ok_mq_set: locked,
    };
    Ok(success(request).with_body(body.to_json()?))
}

/// UNLOCK_BATCH_MQ (42): what is not the client's stays locked, which it is not told.
pub(super) fn unlock_batch(broker: &Broker, request: &RemotingCommand) -> Answer {
    let body = UnlockBatchRequestBody::from_command(request)?;
    broker
        .locks
        .unlock_batch(&body.consumer_group, &body.mq_set, &body.client_id);
    Ok(success(request))
}
