import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Consuming: a backlog, members that come and go, end-to-end latency, and doing nothing. */
final class Consuming {
    private static final int PATIENCE_SECONDS = 60;
    private static final MessageListenerConcurrently IGNORES = (messages, context) -> ConsumeConcurrentlyStatus.CONSUME_SUCCESS;

    private static DefaultMQPushConsumer consumer(Options options, String instance, ConsumeFromWhere from,
            MessageListenerConcurrently listener) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(options.group());
        consumer.setNamesrvAddr(options.namesrv());
        consumer.setInstanceName(instance);
        consumer.setConsumeFromWhere(from);
        consumer.subscribe(options.topic(), "*");
        consumer.registerMessageListener(listener);
        return consumer;
    }

    static void backlog(Options options) throws Exception {
        int n = options.number("n", 500_000);
        AtomicLong got = new AtomicLong();
        AtomicLong first = new AtomicLong();
        CountDownLatch done = new CountDownLatch(1);
        DefaultMQPushConsumer consumer = consumer(options, "consume", ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, (messages, context) -> {
            long now = got.addAndGet(messages.size());
            if (now == messages.size()) {
                first.set(System.nanoTime());
            }
            if (now >= n) {
                done.countDown();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        long begun = System.nanoTime();
        Measure.Stopwatch watch = new Measure.Stopwatch();
        consumer.start();
        boolean allCame = done.await(options.number("timeout", 120), TimeUnit.SECONDS);
        Measure.Line line = new Measure.Line("consume").count("n", got.get()).times(watch)
            .number("first_s", (first.get() - begun) / 1e9).count("errors", allCame ? 0 : 1);
        Thread.sleep(options.number("settle-ms", 0));
        line.count("delivered", got.get()).print();
        consumer.shutdown();
    }

    /** AVG, which tells how many queues of the topic it gave last; the retry topic is divided too. */
    private static final class Watched extends AllocateMessageQueueAveragely {
        private final String topic;
        private volatile int allocated = -1;

        Watched(String topic) {
            this.topic = topic;
        }

        @Override
        public List<MessageQueue> allocate(String group, String client, List<MessageQueue> queues, List<String> clients) {
            List<MessageQueue> own = super.allocate(group, client, queues, clients);
            if (queues.get(0).getTopic().equals(topic)) {
                allocated = own.size();
            }
            return own;
        }
    }

    static void rebalance(Options options) throws Exception {
        int queues = options.number("queues", 8);
        Watched ofStays = new Watched(options.topic());
        DefaultMQPushConsumer stays = consumer(options, "a", ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, IGNORES);
        stays.setAllocateMessageQueueStrategy(ofStays);
        stays.start();
        Measure.secondsUntil(System.nanoTime(), PATIENCE_SECONDS, () -> ofStays.allocated == queues);
        for (int number = 0; number < options.number("tries", 5); number++) {
            Thread.sleep(1000 + number * 137);
            Watched ofComes = new Watched(options.topic());
            DefaultMQPushConsumer comes = consumer(options, "b" + number, ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, IGNORES);
            comes.setAllocateMessageQueueStrategy(ofComes);
            long begun = System.nanoTime();
            comes.start();
            double start = Measure.secondsSince(begun);
            double join = Measure.secondsUntil(begun, PATIENCE_SECONDS,
                () -> ofStays.allocated == queues / 2 && ofComes.allocated == queues / 2);
            Thread.sleep(1000 + number * 171);
            AtomicLong ended = new AtomicLong();
            long left = System.nanoTime();
            Thread ending = new Thread(() -> {
                comes.shutdown();
                ended.set(System.nanoTime());
            });
            ending.start();
            double leave = Measure.secondsUntil(left, PATIENCE_SECONDS, () -> ofStays.allocated == queues);
            ending.join();
            new Measure.Line("rebalance").count("try", number).number("join_s", join).number("leave_s", leave)
                .number("start_s", start).number("shutdown_s", (ended.get() - left) / 1e9)
                .count("errors", (join < 0 ? 1 : 0) + (leave < 0 ? 1 : 0)).print();
        }
        stays.shutdown();
    }

    /** A body is a number, the time of sending, and a nonce, for messages of an earlier run may still come. */
    static void latency(Options options) throws Exception {
        int n = options.number("n", 1000);
        int size = options.number("size", 100);
        long interval = options.number("interval-us", 5000) * 1000L;
        int warmup = options.number("warmup", 200);
        long nonce = System.nanoTime() ^ ProcessHandle.current().pid();
        long[] nanos = new long[n];
        AtomicInteger got = new AtomicInteger();
        DefaultMQPushConsumer consumer = consumer(options, "latency", ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, (messages, context) -> {
            long now = System.nanoTime();
            for (MessageExt message : messages) {
                ByteBuffer body = ByteBuffer.wrap(message.getBody());
                int number = body.getInt();
                long sentAt = body.getLong();
                if (body.getLong() == nonce && number >= 0) {
                    nanos[number] = now - sentAt;
                    got.incrementAndGet();
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        DefaultMQProducer producer = Sending.producer(options);
        Thread.sleep(3000);
        Measure.Stopwatch watch = new Measure.Stopwatch();
        long next = System.nanoTime();
        for (int number = -warmup; number < n; number++) {
            if (number == 0) {
                watch = new Measure.Stopwatch();
            }
            ByteBuffer body = ByteBuffer.allocate(size).putInt(number).putLong(System.nanoTime()).putLong(nonce);
            producer.send(new Message(options.topic(), body.array()));
            next += interval;
            LockSupport.parkNanos(next - System.nanoTime());
        }
        Measure.secondsUntil(System.nanoTime(), 10, () -> got.get() >= n);
        double cpu = watch.cpu();
        new Measure.Line("latency").count("n", got.get()).number("wall_s", n * interval / 1e9).number("cpu_s", cpu)
            .count("errors", n - got.get()).percentiles(nanos).print();
        producer.shutdown();
        consumer.shutdown();
    }

    static void idle(Options options) throws Exception {
        DefaultMQPushConsumer consumer = consumer(options, "idle", ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, IGNORES);
        consumer.start();
        Thread.sleep(5000);
        Measure.Stopwatch watch = new Measure.Stopwatch();
        Thread.sleep(options.number("seconds", 30) * 1000L);
        new Measure.Line("idle").times(watch).number("threads", Measure.status("Threads"))
            .number("rss_mib", Measure.status("VmRSS") / 1024).count("errors", 0).print();
        consumer.shutdown();
    }

    private Consuming() {
    }
}
