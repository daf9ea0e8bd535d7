import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.function.Supplier;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.client.impl.producer.TopicPublishInfo;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageQueue;

/** What needs no broker: dividing queues, decoding a pull's reply, choosing a queue. */
final class Computing {
    private static final int ROUNDS = 5;
    private static final long ROUND_NANOS = 300_000_000L;
    private static final long WARMUP_NANOS = 1_500_000_000L;

    /** Results go here, so that the compiler cannot leave the work out. */
    private static volatile Object sink;

    static void all(Options options) throws Exception {
        for (int queues : new int[] {1000, 10_000}) {
            allocate(queues);
        }
        decode(Files.readAllBytes(Path.of(options.text("fixture", "pull32.bin"))));
        select();
    }

    private static void measure(String name, int per, Supplier<Object> operation) throws Exception {
        round(WARMUP_NANOS, operation);
        double[] nanos = new double[ROUNDS];
        for (int number = 0; number < ROUNDS; number++) {
            nanos[number] = round(ROUND_NANOS, operation) / per;
        }
        Arrays.sort(nanos);
        new Measure.Line("cpu").text("name", name).number("ns", nanos[ROUNDS / 2]).number("min_ns", nanos[0]).count("errors", 0).print();
    }

    private static double round(long atLeast, Supplier<Object> operation) {
        long begun = System.nanoTime();
        long times = 0;
        long took;
        do {
            sink = operation.get();
            times++;
            took = System.nanoTime() - begun;
        } while (took < atLeast);
        return took / (double) times;
    }

    private static void allocate(int count) throws Exception {
        List<MessageQueue> queues = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            queues.add(new MessageQueue("bench_topic", "broker-" + number % 10, number / 10));
        }
        List<String> members = new ArrayList<>();
        for (int number = 0; number < 1000; number++) {
            members.add("10.0." + number / 256 + "." + number % 256 + "@" + (1000 + number * 7) + "#" + number);
        }
        String me = members.get(500);
        Collections.shuffle(queues, new Random(1));
        Collections.shuffle(members, new Random(2));
        measure("avg-" + count, 1, () -> divide(new AllocateMessageQueueAveragely(), me, queues, members));
        measure("hash-" + count, 1, () -> divide(new AllocateMessageQueueConsistentHash(), me, queues, members));
    }

    private static Object divide(AllocateMessageQueueStrategy strategy, String me, List<MessageQueue> queues, List<String> members) {
        List<MessageQueue> sortedQueues = new ArrayList<>(queues);
        List<String> sortedMembers = new ArrayList<>(members);
        Collections.sort(sortedQueues);
        Collections.sort(sortedMembers);
        return strategy.allocate("g", me, sortedQueues, sortedMembers);
    }

    private static void decode(byte[] reply) throws Exception {
        int count = MessageDecoder.decodesBatch(ByteBuffer.wrap(reply), true, true, true).size();
        measure("decode", count, () -> MessageDecoder.decodesBatch(ByteBuffer.wrap(reply), true, true, true));
    }

    private static void select() throws Exception {
        final int times = 1000;
        TopicPublishInfo info = new TopicPublishInfo();
        for (int id = 0; id < 8; id++) {
            info.getMessageQueueList().add(new MessageQueue("bench_topic", "broker-a", id));
        }
        measure("round-robin", times, () -> {
            Object last = null;
            for (int number = 0; number < times; number++) {
                last = info.selectOneMessageQueue();
            }
            return last;
        });
    }

    private Computing() {
    }
}
