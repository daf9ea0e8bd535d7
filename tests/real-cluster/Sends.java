import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.common.compression.CompressionType;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;

/** All ways to send, and requests that wait for a reply. */
final class Sends {
    /** How many asynchronous sends are under way at most, and how many messages are in a batch. */
    private static final int AT_ONCE = 100;
    private static final int BATCH = 50;

    /** A message that the other side can tell whole from its number. */
    static Message message(Session.Command command, int number) {
        Words words = command.words;
        String key = words.text("name", "m") + "_" + number;
        int size = words.number("size", 100);
        byte[] body = (key + " ").repeat(size / key.length() + 1).getBytes(StandardCharsets.UTF_8);
        Message message = new Message(command.topic(), "Tag" + number % 3, key, Arrays.copyOf(body, size));
        message.setFlag(number + 1);
        message.putUserProperty("user_number", "" + number);
        message.putUserProperty("user_word", "Gr\u00f6\u00dfe \u20ac");
        if (words.has("level")) {
            message.setDelayTimeLevel(words.number("level", 0));
        }
        if (words.has("delay_sec")) {
            message.setDelayTimeSec(words.number("delay_sec", 0));
        }
        if (words.has("delay_ms")) {
            message.setDelayTimeMs(words.number("delay_ms", 0));
        }
        if (words.has("after_ms")) {
            message.setDeliverTimeMs(System.currentTimeMillis() + words.number("after_ms", 0));
        }
        return message;
    }

    static void send(Session.Command command) throws Exception {
        Words words = command.words;
        String kind = words.text("kind", "sync");
        DefaultMQProducer producer = command.set(new DefaultMQProducer(command.group()));
        producer.setAutoBatch(kind.equals("auto"));
        if (words.has("compress")) {
            producer.setCompressType(CompressionType.valueOf(words.text("compress", "")));
            producer.setCompressLevel(words.number("compress_level", 5));
        }
        producer.start();
        int count = words.number("n", 10);
        List<MessageQueue> queues = kind.equals("queue") ? producer.fetchPublishMessageQueues(command.topic()) : null;
        for (int i = 0; i < count; i++) {
            long began = System.currentTimeMillis();
            switch (kind) {
                case "sync":
                    command.say(sent(i, began, producer.send(message(command, i))));
                    break;
                case "async": case "auto": {
                    int end = Math.min(count, i + AT_ONCE);
                    sendWave(command, producer, i, end);
                    i = end - 1;
                    break;
                }
                case "oneway":
                    producer.sendOneway(message(command, i));
                    break;
                case "queue":
                    command.say(sent(i, began, producer.send(message(command, i), queues.get(i % queues.size()))));
                    break;
                case "selector": {
                    String order = "order-" + i % 17;
                    SendResult result = producer.send(message(command, i), new SelectMessageQueueByHash(), order);
                    command.say(sent(i, began, result, "order", order));
                    break;
                }
                case "batch": {
                    List<Message> batch = new ArrayList<>();
                    for (int j = i; j < Math.min(count, i + BATCH); j++) {
                        batch.add(message(command, j));
                    }
                    command.say(sent(i, began, producer.send(batch), "count", batch.size()));
                    i += batch.size() - 1;
                    break;
                }
                default: throw new IllegalArgumentException("kind=" + kind);
            }
        }
    }

    /** Sends so many side by side, and waits for all of them. */
    private static void sendWave(Session.Command command, DefaultMQProducer producer, int first, int end) throws Exception {
        CountDownLatch left = new CountDownLatch(end - first);
        AtomicReference<Throwable> failure = new AtomicReference<>();
        for (int i = first; i < end; i++) {
            int number = i;
            long began = System.currentTimeMillis();
            producer.send(message(command, number), new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    command.say(sent(number, began, result));
                    left.countDown();
                }

                @Override
                public void onException(Throwable cause) {
                    failure.set(cause);
                    left.countDown();
                }
            });
        }
        if (!left.await(Session.LIMIT, TimeUnit.MILLISECONDS) || failure.get() != null) {
            throw new IllegalStateException(left.getCount() + " callbacks are missing", failure.get());
        }
    }

    static Object[] sent(int number, long began, SendResult result, Object... more) {
        Object[] all = {
            "sent", number, "at", began, "status", result.getSendStatus(), "broker", result.getMessageQueue().getBrokerName(),
            "queueId", result.getMessageQueue().getQueueId(), "offset", result.getQueueOffset(), "msgId", result.getMsgId(),
            "id", result.getOffsetMsgId(), "handle", result.getRecallHandle(),
        };
        Object[] pairs = Arrays.copyOf(all, all.length + more.length);
        System.arraycopy(more, 0, pairs, all.length, more.length);
        return pairs;
    }

    /** Sends requests one after the other, writes what came back, and stays. */
    static void ask(Session.Command command) throws Exception {
        DefaultMQProducer producer = command.set(new DefaultMQProducer(command.group()));
        producer.start();
        for (int i = 0; i < command.words.number("n", 10); i++) {
            byte[] reply = producer.request(message(command, i), Session.LIMIT).getBody();
            command.say("reply", i, "len", reply.length, "md5", Session.md5(reply));
        }
        command.say("all_sent", true);
        command.end.await();
    }

    private Sends() {
    }
}
