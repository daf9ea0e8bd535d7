
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.function.IntConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** The published Java client in a group whose members come and go; see README.md for the words and the lines. */
public final class Churn {
    private static final Map<String, String> WORDS = new HashMap<>();
    private static final Set<String> SEEN = Collections.newSetFromMap(new ConcurrentHashMap<>());
    private static final AtomicLong AGAIN = new AtomicLong();
    private static final AtomicLong ALL = new AtomicLong();

    public static void main(String[] words) {
        try {
            for (int i = 1; i < words.length; i++) {
                int equals = words[i].indexOf('=');
                WORDS.put(words[i].substring(0, equals), words[i].substring(equals + 1));
            }
            switch (words[0]) {
                case "churn": churn(); break;
                case "stay": stay(); break;
                default: throw new IllegalArgumentException("churn or stay, not " + words[0]);
            }
            System.exit(0);
        } catch (Throwable cause) {
            System.out.println("{\"error\":\"" + cause.toString().replace('"', '\'') + "\"}");
            System.exit(1);
        }
    }

    /** A member, and how many queues its strategy gave it last. */
    private static final class Member {
        final AtomicInteger allocated = new AtomicInteger(-1);
        final DefaultMQPushConsumer client = new DefaultMQPushConsumer(text("group", "churn"));

        Member(String instance, IntConsumer changed) throws Exception {
            client.setNamesrvAddr(text("ns", "127.0.0.1:9876"));
            client.setInstanceName(instance);
            client.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
            client.setAllocateMessageQueueStrategy(new AllocateMessageQueueAveragely() {
                @Override
                public List<MessageQueue> allocate(String group, String me, List<MessageQueue> queues, List<String> ids) {
                    List<MessageQueue> mine = super.allocate(group, me, queues, ids);
                    if (queues.get(0).getTopic().equals(text("topic", "T8")) && allocated.getAndSet(mine.size()) != mine.size()) {
                        changed.accept(mine.size());
                    }
                    return mine;
                }
            });
            client.subscribe(text("topic", "T8"), "*");
            long work = number("work_us", 0) * 1000L;
            client.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                messages.forEach(Churn::note);
                if (work > 0) {
                    java.util.concurrent.locks.LockSupport.parkNanos(work);
                }
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
    }

    private static void note(MessageExt message) {
        ALL.incrementAndGet();
        if (!SEEN.add(message.getBrokerName() + "#" + message.getQueueId() + "@" + message.getQueueOffset())) {
            AGAIN.incrementAndGet();
        }
    }

    private static void churn() throws Exception {
        int queues = number("queues", 8);
        int pause = number("pause_ms", 1500);
        Member first = new Member("a", n -> { });
        first.client.start();
        until(System.nanoTime(), () -> first.allocated.get() == queues);
        for (int k = 0; k < number("tries", 5); k++) {
            Thread.sleep(pause);
            long before = AGAIN.get();
            Member second = new Member("b" + k, n -> { });
            long began = System.nanoTime();
            second.client.start();
            double join = until(began, () -> first.allocated.get() == queues / 2 && second.allocated.get() == queues / 2);
            Thread.sleep(pause);
            long between = AGAIN.get();
            began = System.nanoTime();
            CountDownLatch ended = new CountDownLatch(1);
            new Thread(() -> {
                second.client.shutdown();
                ended.countDown();
            }).start();
            double leave = until(began, () -> first.allocated.get() == queues);
            ended.await();
            Thread.sleep(pause);
            System.out.printf("{\"join_ms\":%.1f,\"leave_ms\":%.1f,\"again_join\":%d,\"again_leave\":%d}%n",
                join, leave, between - before, AGAIN.get() - between);
        }
        first.client.shutdown();
        System.out.println("{\"done\":" + ALL.get() + "}");
    }

    private static void stay() throws Exception {
        Member member = new Member(text("instance", "a"), queues ->
            System.out.printf("{\"allocated\":%d,\"at_ms\":%.1f}%n", queues, System.currentTimeMillis() * 1.0));
        member.client.start();
        while (System.in.read() >= 0) {
            continue;
        }
        member.client.shutdown();
        System.out.println("{\"done\":" + ALL.get() + "}");
    }

    /** Milliseconds since then once a condition holds. */
    private static double until(long began, BooleanSupplier condition) throws InterruptedException {
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - began > 60_000_000_000L) {
                throw new IllegalStateException("not settled within 60 s");
            }
            java.util.concurrent.locks.LockSupport.parkNanos(200_000);
        }
        return (System.nanoTime() - began) / 1e6;
    }

    private static String text(String key, String otherwise) {
        return WORDS.getOrDefault(key, otherwise);
    }

    private static int number(String key, int otherwise) {
        return WORDS.containsKey(key) ? Integer.parseInt(WORDS.get(key)) : otherwise;
    }
}
