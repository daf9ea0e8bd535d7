import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;

/** Sending: waiting, with callbacks, and in batches. */
final class Sending {
    private interface Call {
        SendResult send(DefaultMQProducer producer) throws Exception;
    }

    static DefaultMQProducer producer(Options options) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("bench_producer");
        producer.setNamesrvAddr(options.namesrv());
        producer.start();
        return producer;
    }

    static void sync(String workload, Options options, int threads, int n, int size) throws Exception {
        byte[] body = body(options, size);
        timed(workload, options, options.number("threads", threads), options.number("n", n), 1,
            options.number("warmup", 2000), producer -> producer.send(new Message(options.topic(), body)));
    }

    static void batches(Options options) throws Exception {
        byte[] body = body(options, 100);
        int batch = options.number("batch", 32);
        timed("send-batch", options, 1, options.number("n", 500_000) / batch, batch, options.number("warmup", 100), producer -> {
            List<Message> messages = new ArrayList<>(batch);
            for (int number = 0; number < batch; number++) {
                messages.add(new Message(options.topic(), body));
            }
            return producer.send(messages);
        });
    }

    private static byte[] body(Options options, int size) {
        byte[] body = new byte[options.number("size", size)];
        Arrays.fill(body, (byte) 'x');
        return body;
    }

    private static void timed(String workload, Options options, int threads, int calls, int messagesPerCall, int warmup, Call call)
            throws Exception {
        DefaultMQProducer producer = producer(options);
        for (int number = 0; number < warmup; number++) {
            call.send(producer);
        }
        long[] nanos = new long[calls];
        AtomicInteger next = new AtomicInteger();
        AtomicInteger errors = new AtomicInteger();
        Runnable work = () -> {
            int number;
            while ((number = next.getAndIncrement()) < calls) {
                long begun = System.nanoTime();
                try {
                    SendResult result = call.send(producer);
                    if (result.getSendStatus() != SendStatus.SEND_OK) {
                        failed(errors, result.getSendStatus());
                    }
                } catch (Exception error) {
                    failed(errors, error);
                }
                nanos[number] = System.nanoTime() - begun;
            }
        };
        Thread[] workers = new Thread[threads];
        Measure.Stopwatch watch = new Measure.Stopwatch();
        for (int at = 0; at < threads; at++) {
            workers[at] = new Thread(work);
            workers[at].start();
        }
        for (Thread worker : workers) {
            worker.join();
        }
        new Measure.Line(workload).count("n", (long) calls * messagesPerCall).times(watch).count("errors", errors.get())
            .percentiles(nanos).print();
        producer.shutdown();
    }

    static void async(Options options) throws Exception {
        DefaultMQProducer producer = producer(options);
        int n = options.number("n", 200_000);
        int window = options.number("window", 1000);
        byte[] body = body(options, 100);
        for (int number = options.number("warmup", 2000); number > 0; number--) {
            producer.send(new Message(options.topic(), body));
        }
        long[] nanos = new long[n];
        AtomicInteger errors = new AtomicInteger();
        Semaphore room = new Semaphore(window);
        Measure.Stopwatch watch = new Measure.Stopwatch();
        for (int at = 0; at < n; at++) {
            room.acquire();
            final int number = at;
            final long begun = System.nanoTime();
            producer.send(new Message(options.topic(), body), new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    nanos[number] = System.nanoTime() - begun;
                    room.release();
                }

                @Override
                public void onException(Throwable error) {
                    failed(errors, error);
                    onSuccess(null);
                }
            });
        }
        room.acquire(window);
        new Measure.Line("send-async").count("n", n).times(watch).count("errors", errors.get()).percentiles(nanos).print();
        producer.shutdown();
    }

    private static void failed(AtomicInteger errors, Object cause) {
        if (errors.getAndIncrement() == 0) {
            System.err.println(cause);
        }
    }

    private Sending() {
    }
}
