import java.io.ByteArrayOutputStream;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import org.apache.rocketmq.common.UtilAll;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;

/** The body of a pull's reply: 32 messages of 1 KiB, for the peers to decode. */
final class Fixture {
    static void write(Options options) throws Exception {
        ByteArrayOutputStream reply = new ByteArrayOutputStream();
        for (int number = 0; number < 32; number++) {
            reply.write(MessageDecoder.encode(message(number), false));
        }
        Files.write(Path.of(options.text("fixture", "pull32.bin")), reply.toByteArray());
    }

    private static MessageExt message(int number) {
        byte[] body = new byte[1024];
        new Random(number).nextBytes(body);
        MessageExt message = new MessageExt();
        message.setTopic("bench_topic");
        message.setBody(body);
        message.setTags("TagA");
        message.setKeys("key-" + number);
        message.setWaitStoreMsgOK(true);
        MessageAccessor.putProperty(message, "UNIQ_KEY", String.format("7F000001000018B4AAC2%012X", number));
        MessageAccessor.putProperty(message, "CLUSTER", "DefaultCluster");
        message.setQueueId(number % 8);
        message.setQueueOffset(1000 + number);
        message.setCommitLogOffset(1_000_000L + number * 1300L);
        message.setBornTimestamp(1_700_000_000_000L + number);
        message.setStoreTimestamp(1_700_000_000_001L + number);
        message.setBornHost(new InetSocketAddress("127.0.0.1", 40_000));
        message.setStoreHost(new InetSocketAddress("127.0.0.1", 20_911));
        message.setBodyCRC(UtilAll.crc32(body));
        return message;
    }

    private Fixture() {
    }
}
