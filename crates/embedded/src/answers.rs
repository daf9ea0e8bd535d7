//! Answers that the name server and brokers give alike.

use rocketmq_protocol::{CodecError, RemotingCommand, response_code};

/// What Java's servers put behind some remarks (Java `FAQUrl#suggestTodo`).
pub(crate) fn see_faq(remark: impl Into<String>) -> String {
    let mut remark = remark.into();
    remark
        .push_str("\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details.");
    remark
}

/// It was done; the answer has no header.
pub(crate) fn success(request: &RemotingCommand) -> RemotingCommand {
    RemotingCommand::response(request, response_code::SUCCESS, None)
}

/// The code is none that this server knows.
pub(crate) fn not_supported(request: &RemotingCommand) -> RemotingCommand {
    log::debug!("request code {} is not supported", request.code);
    let remark = format!(" request type {} not supported", request.code);
    let code = response_code::REQUEST_CODE_NOT_SUPPORTED;
    RemotingCommand::response(request, code, Some(remark))
}

/// The request cannot be read.
pub(crate) fn refused(request: &RemotingCommand, error: &CodecError) -> RemotingCommand {
    log::debug!("request code {}: {error}", request.code);
    let code = response_code::SYSTEM_ERROR;
    RemotingCommand::response(request, code, Some(error.to_string()))
}
