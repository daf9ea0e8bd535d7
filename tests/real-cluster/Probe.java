import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;

/**
 * The published Java client as the other side of an interoperability check: {@code produce}, {@code consume} or
 * {@code session}, then options as key=value words. It writes one JSON object a line; see README.md for both lists.
 */
public final class Probe {
    private static Words words;

    public static void main(String[] arguments) {
        try {
            words = new Words(arguments, 1);
            switch (arguments[0]) {
                case "produce": produce(); break;
                case "consume": consume(); break;
                case "session": Session.run(words); break;
                default: throw new IllegalArgumentException(arguments[0]);
            }
            System.exit(0);
        } catch (Throwable cause) {
            Words.say("{\"error\":" + Words.quoted(cause.toString()) + "}");
            System.exit(1);
        }
    }

    private static void produce() throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer(words.text("group", "probe_p"));
        producer.setNamesrvAddr(words.text("ns", "127.0.0.1:9876"));
        producer.setUseTLS(words.flag("tls"));
        producer.setPollNameServerInterval(words.number("poll", 30_000));
        producer.start();
        CountDownLatch finished = new CountDownLatch(1);
        if (words.flag("stdin")) {
            endWithStandardInput(finished);
        }
        int count = words.number("n", 10);
        long began = System.nanoTime();
        for (int i = 0; i < count; i++) {
            if (finished.await(waitBefore(i, began), TimeUnit.NANOSECONDS)) {
                break;
            }
            Message message = new Message(words.text("topic", "T8"), words.text("tag", "A"), "k" + i, body(i, words.number("size", 20)));
            if (words.has("prop")) {
                message.putUserProperty("a", "" + i);
            }
            SendResult result = producer.send(message);
            Words.say("{\"sent\":" + i + ",\"status\":\"" + result.getSendStatus() + "\",\"broker\":"
                + Words.quoted(result.getMessageQueue().getBrokerName()) + ",\"queueId\":" + result.getMessageQueue().getQueueId()
                + ",\"offset\":" + result.getQueueOffset() + ",\"msgId\":" + Words.quoted(result.getMsgId()) + "}");
        }
        producer.shutdown();
    }

    /** Nanoseconds until message number {@code i} is due, at so many a second as {@code rate} says. */
    private static long waitBefore(int i, long began) {
        int rate = words.number("rate", 0);
        return rate == 0 ? 0 : Math.max(0, began + i * 1_000_000_000L / rate - System.nanoTime());
    }

    private static byte[] body(int i, int size) {
        byte[] text = ("m" + i).getBytes(StandardCharsets.UTF_8);
        if (size <= text.length) {
            return text;
        }
        byte[] body = new byte[size];
        Arrays.fill(body, (byte) 'x');
        System.arraycopy(text, 0, body, 0, text.length);
        body[text.length] = ' ';
        return body;
    }

    private static void consume() throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(words.text("group", "probe_c"));
        consumer.setNamesrvAddr(words.text("ns", "127.0.0.1:9876"));
        consumer.setUseTLS(words.flag("tls"));
        consumer.setInstanceName(words.text("instance", "probe" + ProcessHandle.current().pid()));
        consumer.setPollNameServerInterval(words.number("poll", 30_000));
        consumer.setMaxReconsumeTimes(words.number("max", -1));
        consumer.setConsumeFromWhere(ConsumeFromWhere.valueOf(words.text("from", "CONSUME_FROM_FIRST_OFFSET")));
        if (words.text("model", "").equals("BROADCASTING")) {
            consumer.setMessageModel(MessageModel.BROADCASTING);
        }
        switch (words.text("strategy", "AVG")) {
            case "AVG": break;
            case "AVG_BY_CIRCLE": consumer.setAllocateMessageQueueStrategy(new AllocateMessageQueueAveragelyByCircle()); break;
            case "CONSISTENT_HASH": consumer.setAllocateMessageQueueStrategy(new AllocateMessageQueueConsistentHash()); break;
            default: throw new IllegalArgumentException("strategy=" + words.text("strategy", ""));
        }
        String topic = words.text("topic", "T8");
        if (words.has("sql")) {
            consumer.subscribe(topic, MessageSelector.bySql(words.text("sql", "")));
        } else {
            consumer.subscribe(topic, words.text("sub", "*"));
        }
        Listener listener = new Listener(words.number("fail", 0), words.number("n", Integer.MAX_VALUE));
        if (words.text("mode", "concurrently").equals("orderly")) {
            consumer.registerMessageListener((MessageListenerOrderly) listener::orderly);
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) listener::concurrently);
        }
        consumer.setMessageQueueListener((of, all, divided) -> Words.say(assigned(of, divided)));
        consumer.start();
        if (words.flag("stdin")) {
            endWithStandardInput(listener.finished);
        }
        listener.finished.await(words.number("ms", 10_000), TimeUnit.MILLISECONDS);
        Thread.sleep(words.number("linger", 0));
        consumer.shutdown();
        Words.say("{\"done\":" + listener.got.get() + "}");
    }

    private static void endWithStandardInput(CountDownLatch finished) {
        Thread reader = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                    continue;
                }
            } catch (IOException gone) {
                // a pipe that breaks has ended as well
            }
            finished.countDown();
        }, "stdin");
        reader.setDaemon(true);
        reader.start();
    }

    /** Implements neither listener interface: the client takes an object that has the orderly one for orderly. */
    private static final class Listener {
        private final AtomicInteger failuresLeft;
        private final int wanted;
        private final AtomicInteger got = new AtomicInteger();
        private final CountDownLatch finished = new CountDownLatch(1);

        Listener(int failures, int wanted) {
            this.failuresLeft = new AtomicInteger(failures);
            this.wanted = wanted;
        }

        ConsumeConcurrentlyStatus concurrently(List<MessageExt> messages, ConsumeConcurrentlyContext context) {
            if (failuresLeft.getAndDecrement() > 0) {
                for (MessageExt message : messages) {
                    Words.say("{\"failed\":" + Words.quoted(message.getKeys()) + ",\"reconsume\":" + message.getReconsumeTimes() + "}");
                }
                return ConsumeConcurrentlyStatus.RECONSUME_LATER;
            }
            messages.forEach(this::report);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        }

        ConsumeOrderlyStatus orderly(List<MessageExt> messages, ConsumeOrderlyContext context) {
            messages.forEach(this::report);
            return ConsumeOrderlyStatus.SUCCESS;
        }

        private void report(MessageExt message) {
            String body = new String(message.getBody(), StandardCharsets.UTF_8);
            int number = got.incrementAndGet();
            Words.say("{\"got\":" + number + ",\"broker\":" + Words.quoted(message.getBrokerName())
                + ",\"queueId\":" + message.getQueueId() + ",\"offset\":" + message.getQueueOffset()
                + ",\"key\":" + Words.quoted(message.getKeys()) + ",\"tag\":" + Words.quoted(message.getTags())
                + ",\"len\":" + message.getBody().length + ",\"reconsume\":" + message.getReconsumeTimes()
                + ",\"msgId\":" + Words.quoted(message.getMsgId())
                + ",\"body\":" + Words.quoted(body.length() > 40 ? body.substring(0, 40) : body) + "}");
            if (number >= wanted) {
                finished.countDown();
            }
        }
    }

    private static String assigned(String topic, Set<MessageQueue> queues) {
        TreeSet<String> names = new TreeSet<>();
        for (MessageQueue queue : queues) {
            names.add(Words.quoted(queue.getBrokerName() + "#" + queue.getQueueId()));
        }
        return "{\"assigned\":" + Words.quoted(topic) + ",\"queues\":" + names + "}";
    }
}
