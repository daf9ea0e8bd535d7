//! Transactions whose messages say themselves what becomes of them, so that any member of the group can
//! answer for all of them.

use std::any::Any;
use std::sync::{Arc, mpsc};
use std::thread;

use rocketmq_blocking::{LocalTransactionState, Message, MessageExt, TransactionListener};
use serde_json::json;

use crate::sends;
use crate::session::{Command, LIMIT, Outcome, now};

/// `unknown-commit`: unknown at first, and to be committed when a broker asks.
const PLAN: &str = "user_plan";

struct AsPlanned(Arc<Command>);

impl TransactionListener for AsPlanned {
    fn execute_local_transaction(&self, message: &Message, _: &dyn Any) -> LocalTransactionState {
        let plan = message.property(PLAN).unwrap_or_default();
        if plan.starts_with("hang") {
            self.0.say(json!({ "hanging": message.keys() }));
            loop {
                thread::park();
            }
        }
        state(plan.split('-').next())
    }

    fn check_local_transaction(&self, message: &MessageExt) -> LocalTransactionState {
        self.0.say(json!({ "checked": message.keys() }));
        let plan = message.property(PLAN).unwrap_or_default();
        state(plan.split('-').nth(1))
    }
}

fn state(word: Option<&str>) -> LocalTransactionState {
    match word {
        Some("commit") => LocalTransactionState::CommitMessage,
        Some("rollback") => LocalTransactionState::RollbackMessage,
        _ => LocalTransactionState::Unknown,
    }
}

/// Sends `n` messages, message `i` by plan `i` of those in `plans`, and then stays to be asked.
pub(crate) fn transact(command: &Arc<Command>, ended: &mpsc::Receiver<()>) -> Outcome<()> {
    let producer = command
        .producer()
        .transaction_listener(AsPlanned(Arc::clone(command)))
        .build()?;
    producer.start()?;
    let plans: Vec<&str> = command.words.text("plans", "commit").split(',').collect();
    for number in 0..command.words.number("n", 1)? {
        let mut message = sends::message(command, number)?;
        message.put_user_property(PLAN, plans[number % plans.len()])?;
        let began = now();
        let outcome = producer.send_message_in_transaction(&message, &())?;
        let mut line = sends::sent(number, began, &outcome.send_result);
        line["plan"] = json!(plans[number % plans.len()]);
        command.say(line);
    }
    command.say(json!({ "all_sent": true }));
    // Nothing is sent: the channel ends.
    let _ = ended.recv();
    producer.shutdown(LIMIT);
    Ok(())
}
