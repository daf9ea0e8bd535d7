import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
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
 * The published Java client as the other side of an interoperability check: {@code produce} or {@code consume},
 * then options as key=value words. It writes one JSON object a line; see README.md for both lists.
 */
public final class Probe {
    private static final Map<String, String> OPTIONS = new HashMap<>();

    public static void main(String[] words) {
        try {
            for (int i = 1; i < words.length; i++) {
                int equals = words[i].indexOf('=');
                OPTIONS.put(words[i].substring(0, equals), words[i].substring(equals + 1));
            }
            switch (words[0]) {
                case "produce": produce(); break;
                case "consume": consume(); break;
                default: throw new IllegalArgumentException(words[0]);
            }
            System.exit(0);
        } catch (Throwable cause) {
            say("{\"error\":" + quoted(cause.toString()) + "}");
            System.exit(1);
        }
    }

    private static void produce() throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer(text("group", "probe_p"));
        producer.setNamesrvAddr(text("ns", "127.0.0.1:9876"));
        producer.setUseTLS(flag("tls"));
        producer.setPollNameServerInterval(number("poll", 30_000));
        producer.start();
        CountDownLatch finished = new CountDownLatch(1);
        if (flag("stdin")) {
            endWithStandardInput(finished);
        }
        int count = number("n", 10);
        long began = System.nanoTime();
        for (int i = 0; i < count; i++) {
            if (finished.await(waitBefore(i, began), TimeUnit.NANOSECONDS)) {
                break;
            }
            Message message = new Message(text("topic", "T8"), text("tag", "A"), "k" + i, body(i, number("size", 20)));
            if (OPTIONS.containsKey("prop")) {
                message.putUserProperty("a", "" + i);
            }
            SendResult result = producer.send(message);
            say("{\"sent\":" + i + ",\"status\":\"" + result.getSendStatus() + "\",\"broker\":"
                + quoted(result.getMessageQueue().getBrokerName()) + ",\"queueId\":" + result.getMessageQueue().getQueueId()
                + ",\"offset\":" + result.getQueueOffset() + ",\"msgId\":" + quoted(result.getMsgId()) + "}");
        }
        producer.shutdown();
    }

    /** Nanoseconds until message number {@code i} is due, at so many a second as {@code rate} says. */
    private static long waitBefore(int i, long began) {
        int rate = number("rate", 0);
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
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(text("group", "probe_c"));
        consumer.setNamesrvAddr(text("ns", "127.0.0.1:9876"));
        consumer.setUseTLS(flag("tls"));
        consumer.setInstanceName(text("instance", "probe" + ProcessHandle.current().pid()));
        consumer.setPollNameServerInterval(number("poll", 30_000));
        consumer.setMaxReconsumeTimes(number("max", -1));
        consumer.setConsumeFromWhere(ConsumeFromWhere.valueOf(text("from", "CONSUME_FROM_FIRST_OFFSET")));
        if (text("model", "").equals("BROADCASTING")) {
            consumer.setMessageModel(MessageModel.BROADCASTING);
        }
        switch (text("strategy", "AVG")) {
            case "AVG": break;
            case "AVG_BY_CIRCLE": consumer.setAllocateMessageQueueStrategy(new AllocateMessageQueueAveragelyByCircle()); break;
            case "CONSISTENT_HASH": consumer.setAllocateMessageQueueStrategy(new AllocateMessageQueueConsistentHash()); break;
            default: throw new IllegalArgumentException("strategy=" + text("strategy", ""));
        }
        String topic = text("topic", "T8");
        if (OPTIONS.containsKey("sql")) {
            consumer.subscribe(topic, MessageSelector.bySql(text("sql", "")));
        } else {
            consumer.subscribe(topic, text("sub", "*"));
        }
        Listener listener = new Listener(number("fail", 0), number("n", Integer.MAX_VALUE));
        if (text("mode", "concurrently").equals("orderly")) {
            consumer.registerMessageListener((MessageListenerOrderly) listener::orderly);
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) listener::concurrently);
        }
        consumer.setMessageQueueListener((of, all, divided) -> say(assigned(of, divided)));
        consumer.start();
        if (flag("stdin")) {
            endWithStandardInput(listener.finished);
        }
        listener.finished.await(number("ms", 10_000), TimeUnit.MILLISECONDS);
        Thread.sleep(number("linger", 0));
        consumer.shutdown();
        say("{\"done\":" + listener.got.get() + "}");
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
                    say("{\"failed\":" + quoted(message.getKeys()) + ",\"reconsume\":" + message.getReconsumeTimes() + "}");
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
            say("{\"got\":" + number + ",\"broker\":" + quoted(message.getBrokerName())
                + ",\"queueId\":" + message.getQueueId() + ",\"offset\":" + message.getQueueOffset()
                + ",\"key\":" + quoted(message.getKeys()) + ",\"tag\":" + quoted(message.getTags())
                + ",\"len\":" + message.getBody().length + ",\"reconsume\":" + message.getReconsumeTimes()
                + ",\"msgId\":" + quoted(message.getMsgId())
                + ",\"body\":" + quoted(body.length() > 40 ? body.substring(0, 40) : body) + "}");
            if (number >= wanted) {
                finished.countDown();
            }
        }
    }

    private static String assigned(String topic, Set<MessageQueue> queues) {
        TreeSet<String> names = new TreeSet<>();
        for (MessageQueue queue : queues) {
            names.add(quoted(queue.getBrokerName() + "#" + queue.getQueueId()));
        }
        return "{\"assigned\":" + quoted(topic) + ",\"queues\":" + names + "}";
    }

    private static String text(String key, String otherwise) {
        return OPTIONS.getOrDefault(key, otherwise);
    }

    private static int number(String key, int otherwise) {
        return OPTIONS.containsKey(key) ? Integer.parseInt(OPTIONS.get(key)) : otherwise;
    }

    private static boolean flag(String key) {
        return text(key, "false").equals("true");
    }

    private static String quoted(String text) {
        if (text == null) {
            return "null";
        }
        StringBuilder json = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                json.append('\\').append(c);
            } else if (c < ' ') {
                json.append(String.format("\\u%04x", (int) c));
            } else {
                json.append(c);
            }
        }
        return json.append('"').toString();
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
