import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * A process that takes one command a line from standard input: a number, a verb, key=value words. Commands run
 * side by side, and {@code in} of each line that one writes is its number. Those that stay end with
 * {@code stop <number>}, or with standard input.
 */
final class Session {
    /** How long anything may take: only what is broken takes so long. */
    static final int LIMIT = 30_000;

    static void run(Words options) throws Exception {
        // The client of 5.5.0 looks at its queues, routes and heartbeats every 20 or 30 s unless told otherwise.
        System.setProperty("rocketmq.client.rebalance.waitInterval", "1000");
        Map<String, CountDownLatch> ends = new HashMap<>();
        List<Thread> running = new ArrayList<>();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Words.say(Words.object("ready", true));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("stop")) {
                ends.get(words[1]).countDown();
                continue;
            }
            Command command = new Command(words[0], options.text("ns", "127.0.0.1:9876"), new Words(words, 2));
            ends.put(words[0], command.end);
            Thread thread = new Thread(() -> command.carryOut(words[1]), "command-" + words[0]);
            thread.start();
            running.add(thread);
        }
        ends.values().forEach(CountDownLatch::countDown);
        for (Thread thread : running) {
            thread.join();
        }
    }

    /** One line of standard input. */
    static final class Command {
        final Words words;
        final CountDownLatch end = new CountDownLatch(1);
        private final String number;
        private final String namesrv;
        /** Shut down after the last line: each takes up to 3 s, as long as its event thread waits. */
        private final List<Runnable> shutdowns = new ArrayList<>();

        Command(String number, String namesrv, Words words) {
            this.number = number;
            this.namesrv = namesrv;
            this.words = words;
        }

        void carryOut(String verb) {
            try {
                switch (verb) {
                    case "consume": consume(); break;
                    case "send": Sends.send(this); break;
                    case "ask": Sends.ask(this); break;
                    case "transact": Transactions.transact(this); break;
                    case "key": case "unique": case "id": lookUp(verb); break;
                    case "recall": recall(); break;
                    default: throw new IllegalArgumentException(verb + " is no command");
                }
                say("ended", verb);
            } catch (Throwable cause) {
                say("error", cause.toString());
            }
            shutdowns.forEach(Runnable::run);
        }

        void say(Object... pairs) {
            Object[] all = new Object[pairs.length + 2];
            all[0] = "in";
            all[1] = number;
            System.arraycopy(pairs, 0, all, 2, pairs.length);
            Words.say(Words.object(all));
        }

        String topic() {
            return words.text("topic", "T8");
        }

        /** Makes any client one of this command's. */
        <C extends ClientConfig> C set(C client) {
            client.setNamesrvAddr(namesrv);
            client.setPollNameServerInterval(1000);
            client.setHeartbeatBrokerInterval(1000);
            client.setMqClientApiTimeout(LIMIT);
            if (words.has("space")) {
                client.setNamespace(words.text("space", ""));
            }
            if (words.has("space2")) {
                client.setNamespaceV2(words.text("space2", ""));
            }
            if (client instanceof DefaultMQProducer) {
                ((DefaultMQProducer) client).setSendMsgTimeout(LIMIT);
                shutdowns.add(((DefaultMQProducer) client)::shutdown);
            } else {
                shutdowns.add(((DefaultMQPushConsumer) client)::shutdown);
            }
            return client;
        }

        String group() {
            return words.text("group", "session");
        }

        private DefaultMQProducer startedProducer() throws MQClientException {
            DefaultMQProducer producer = set(new DefaultMQProducer(group()));
            producer.start();
            return producer;
        }

        /** Consumes until it is stopped. {@code fail=true}: fails each message once; {@code reply=true}: replies. */
        private void consume() throws Exception {
            DefaultMQProducer replier = words.flag("reply") ? startedProducer() : null;
            DefaultMQPushConsumer consumer = set(new DefaultMQPushConsumer(group()));
            consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
            consumer.subscribe(topic(), "*");
            Set<String> failed = words.flag("fail") ? ConcurrentHashMap.newKeySet() : null;
            AtomicInteger got = new AtomicInteger();
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) ->
                take(messages.get(0), context, failed, got, replier));
            consumer.start();
            end.await();
        }

        private ConsumeConcurrentlyStatus take(MessageExt message, ConsumeConcurrentlyContext context, Set<String> failed,
                AtomicInteger got, DefaultMQProducer replier) {
            if (failed != null && failed.add(message.getMsgId())) {
                say("failed", message.getKeys(), "reconsume", message.getReconsumeTimes());
                context.setDelayLevelWhenNextConsume(1);
                return ConsumeConcurrentlyStatus.RECONSUME_LATER;
            }
            sayDescribed(message, "got", got.incrementAndGet(), "at", System.currentTimeMillis());
            if (replier != null) {
                try {
                    byte[] body = ("re: " + new String(message.getBody(), StandardCharsets.UTF_8)).getBytes(StandardCharsets.UTF_8);
                    replier.send(MessageUtil.createReplyMessage(message, body));
                } catch (Exception cause) {
                    say("error", cause.toString());
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        }

        /** Looks a message up until it is there: brokers write their index a moment later. */
        private void lookUp(String by) throws Exception {
            DefaultMQProducer producer = startedProducer();
            String what = words.text("what", "");
            long deadline = System.currentTimeMillis() + LIMIT;
            List<MessageExt> found = null;
            while (found == null) {
                try {
                    switch (by) {
                        case "key": found = producer.queryMessage(topic(), what, 32, 0, Long.MAX_VALUE).getMessageList(); break;
                        case "unique":
                            found = List.of(producer.getDefaultMQProducerImpl().queryMessageByUniqKey(topic(), what));
                            break;
                        default: found = List.of(producer.viewMessage(topic(), what));
                    }
                } catch (MQClientException | NullPointerException none) {
                    if (System.currentTimeMillis() > deadline) {
                        throw none;
                    }
                    Thread.sleep(100);
                }
            }
            for (MessageExt message : found) {
                sayDescribed(message, "found", by);
            }
        }

        private void recall() throws Exception {
            DefaultMQProducer producer = startedProducer();
            say("recalled", producer.recallMessage(topic(), words.text("handle", "")));
        }

        private void sayDescribed(MessageExt message, Object... more) {
            Map<String, String> user = new TreeMap<>(message.getProperties());
            user.keySet().removeIf(name -> !name.startsWith("user_"));
            Object[] all = {
                "topic", message.getTopic(), "broker", message.getBrokerName(), "queueId", message.getQueueId(),
                "offset", message.getQueueOffset(), "msgId", message.getMsgId(), "key", message.getKeys(),
                "tag", message.getTags(), "flag", message.getFlag(), "user", user, "len", message.getBody().length,
                "md5", md5(message.getBody()), "reconsume", message.getReconsumeTimes(), "sysFlag", message.getSysFlag(),
                "stored", message.getStoreSize(),
            };
            Object[] pairs = new Object[all.length + more.length];
            System.arraycopy(all, 0, pairs, 0, all.length);
            System.arraycopy(more, 0, pairs, all.length, more.length);
            say(pairs);
        }
    }

    static String md5(byte[] body) {
        try {
            return String.format("%032x", new BigInteger(1, MessageDigest.getInstance("MD5").digest(body)));
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private Session() {
    }
}
