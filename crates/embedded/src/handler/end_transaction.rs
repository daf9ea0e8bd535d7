use rocketmq_protocol::header::EndTransactionRequestHeader;
use rocketmq_protocol::sys_flag::{TRANSACTION_COMMIT, TRANSACTION_MASK, TRANSACTION_ROLLBACK};
use rocketmq_protocol::{
    CodecError, RemotingCommand, StoredMessage, decode_properties, encode_properties, property,
    response_code,
};

use crate::answers::{refused, success};
use crate::broker::Broker;
use crate::reply::Reply;
use crate::store::now_millis;
use crate::transactions::real_place;

/// END_TRANSACTION (37) (Java `EndTransactionProcessor`). A commit is carried out as often as it
/// comes. What is neither commit nor rollback is not answered, even if an answer is wanted.
pub(super) fn end(broker: &Broker, request: &RemotingCommand, reply: Reply) {
    let header: EndTransactionRequestHeader = match request.decode_header() {
        Ok(header) => header,
        Err(error) => return reply.send(refused(request, &error)),
    };
    let commit = match header.commit_or_rollback {
        TRANSACTION_COMMIT => true,
        TRANSACTION_ROLLBACK => false,
        _ => return,
    };
    let answer = match decide(broker, &header, commit) {
        Ok(Ok(())) => success(request),
        Ok(Err((code, remark))) => RemotingCommand::response(request, code, remark),
        Err(error) => refused(request, &error),
    };
    reply.send(answer);
}

type Refusal = (i32, Option<String>);

fn decide(
    broker: &Broker,
    header: &EndTransactionRequestHeader,
    commit: bool,
) -> Result<Result<(), Refusal>, CodecError> {
    let wrong = |remark: &str| Ok(Err((response_code::SYSTEM_ERROR, Some(remark.to_owned()))));
    let Some(bytes) = broker.store.message_at(header.commit_log_offset) else {
        return wrong("Find prepared transaction message failed");
    };
    let half = StoredMessage::decode(bytes)?;
    let mut properties = decode_properties(&half.properties);
    let immunity = properties.get(property::CHECK_IMMUNITY_TIME_IN_SECONDS);
    if let Some(seconds) = immunity.filter(|_| header.from_transaction_check != Some(true)) {
        let least = broker.config().transaction_time_out.as_millis();
        let immunity = seconds.parse::<u64>().unwrap_or(0);
        let immunity = (u128::from(immunity) * 1000).max(least);
        let age = now_millis().saturating_sub(half.born_timestamp).max(0);
        if age as u128 > immunity {
            let remark = "not set any response code".to_owned();
            return Ok(Err((response_code::ILLEGAL_OPERATION, Some(remark))));
        }
    }
    if properties.get(property::PRODUCER_GROUP) != Some(&header.producer_group) {
        return wrong("The producer group wrong");
    }
    if half.queue_offset != header.tran_state_table_offset {
        return wrong("The transaction state table offset wrong");
    }
    let half_offset = half.queue_offset;
    if commit {
        let Some((topic, queue_id)) = real_place(&properties) else {
            return wrong("the message is no half message");
        };
        for name in [property::REAL_TOPIC, property::REAL_QUEUE_ID] {
            properties.remove(name);
        }
        let committed = StoredMessage {
            properties: encode_properties(&properties),
            topic,
            queue_id,
            sys_flag: half.sys_flag & !TRANSACTION_MASK | TRANSACTION_COMMIT,
            prepared_transaction_offset: header.commit_log_offset,
            ..half
        };
        if let Err(error) = broker.put(committed) {
            let (code, remark) = error.refusal();
            return Ok(Err((code, Some(remark))));
        }
    }
    broker.transactions.decide(half_offset);
    Ok(Ok(()))
}
