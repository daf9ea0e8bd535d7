import java.util.concurrent.locks.LockSupport;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Transactions whose messages say themselves what becomes of them, so that any member of the group can answer for
 * all of them.
 */
final class Transactions implements TransactionListener {
    /** {@code unknown-commit}: unknown at first, and to be committed when a broker asks. */
    private static final String PLAN = "user_plan";
    private final Session.Command command;

    private Transactions(Session.Command command) {
        this.command = command;
    }

    @Override
    public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
        String plan = message.getUserProperty(PLAN);
        if (plan.startsWith("hang")) {
            command.say("hanging", message.getKeys());
            while (true) {
                LockSupport.park();
            }
        }
        return state(plan.split("-")[0]);
    }

    @Override
    public LocalTransactionState checkLocalTransaction(MessageExt message) {
        command.say("checked", message.getKeys());
        String[] plan = message.getUserProperty(PLAN).split("-");
        return state(plan[plan.length - 1]);
    }

    private static LocalTransactionState state(String word) {
        switch (word) {
            case "commit": return LocalTransactionState.COMMIT_MESSAGE;
            case "rollback": return LocalTransactionState.ROLLBACK_MESSAGE;
            default: return LocalTransactionState.UNKNOW;
        }
    }

    /** Sends {@code n} messages, message {@code i} by plan {@code i} of those in {@code plans}, and then stays to be asked. */
    static void transact(Session.Command command) throws Exception {
        TransactionMQProducer producer = command.set(new TransactionMQProducer(command.group()));
        producer.setTransactionListener(new Transactions(command));
        producer.start();
        String[] plans = command.words.text("plans", "commit").split(",");
        for (int i = 0; i < command.words.number("n", 1); i++) {
            Message message = Sends.message(command, i);
            message.putUserProperty(PLAN, plans[i % plans.length]);
            long began = System.currentTimeMillis();
            SendResult result = producer.sendMessageInTransaction(message, null);
            command.say(Sends.sent(i, began, result, "plan", plans[i % plans.length]));
        }
        command.say("all_sent", true);
        command.end.await();
    }
}
