import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONWriter;
import java.io.IOException;
import java.io.PrintWriter;
import java.lang.reflect.Field;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import org.apache.rocketmq.acl.common.AclUtils;
import org.apache.rocketmq.client.AccessChannel;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.Validators;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.client.hook.ConsumeMessageContext;
import org.apache.rocketmq.client.hook.SendMessageContext;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.client.impl.producer.TopicPublishInfo;
import org.apache.rocketmq.client.latency.MQFaultStrategy;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.trace.AsyncTraceDispatcher;
import org.apache.rocketmq.client.trace.TraceBean;
import org.apache.rocketmq.client.trace.TraceContext;
import org.apache.rocketmq.client.trace.TraceDataEncoder;
import org.apache.rocketmq.client.trace.TraceDispatcher;
import org.apache.rocketmq.client.trace.TraceTransferBean;
import org.apache.rocketmq.client.trace.TraceType;
import org.apache.rocketmq.client.trace.hook.ConsumeMessageTraceHookImpl;
import org.apache.rocketmq.client.trace.hook.SendMessageTraceHookImpl;
import org.apache.rocketmq.common.compression.CompressionType;
import org.apache.rocketmq.common.compression.CompressorFactory;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageClientIDSetter;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.common.message.MessageType;
import org.apache.rocketmq.common.sysflag.MessageSysFlag;
import org.apache.rocketmq.remoting.protocol.LanguageCode;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.SerializeType;
import org.apache.rocketmq.remoting.protocol.filter.FilterAPI;
import org.apache.rocketmq.remoting.protocol.header.ExtraInfoUtil;
import org.apache.rocketmq.remoting.protocol.heartbeat.SubscriptionData;
import org.apache.rocketmq.remoting.protocol.route.BrokerData;
import org.apache.rocketmq.remoting.protocol.route.QueueData;
import org.apache.rocketmq.remoting.protocol.route.TopicRouteData;

/**
 * Runs functions of the published Java client over random and over odd inputs and writes what they give, one JSON
 * object a line; ../vectors/README.md tells what the files bind.
 *
 * <p>Words: the folder to write to, and the seed.
 */
public class Vectors {
    private static final String WORD = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    private static final String[] SIGNS = {
        "a", "Z", "9", " ", "é", "漢", "字", "😀", "\"", "\\", "/", "\t", "|", "&", "=", ",", "{", "}", "ü", "\n"};

    private static final String[] TRACE_TAGS = {null, "", "t", "标签"};
    private static final String[] TRACE_KEYS = {null, "", "k", "k1 k2", "a  b", " a", "a ", "订单-1"};

    private final Path folder;
    private final Random random;
    private final List<Map<String, Object>> lines = new ArrayList<>();

    private Vectors(Path folder, long seed) {
        this.folder = folder;
        this.random = new Random(seed);
    }

    public static void main(String[] words) throws Exception {
        Path folder = Paths.get(words[0]);
        Files.createDirectories(folder);
        Vectors vectors = new Vectors(folder, Long.parseLong(words[1]));
        vectors.allocations();
        vectors.storedMessages();
        vectors.batches();
        vectors.properties();
        vectors.offsetMessageIds();
        vectors.compression();
        vectors.frames();
        vectors.tagHashes();
        vectors.subscriptions();
        vectors.signatures();
        vectors.nameRules();
        vectors.routes();
        vectors.popReceipts();
        vectors.selections();
        vectors.traces();
        vectors.traceHooks();
    }

    private void allocations() throws Exception {
        for (int i = 0; i < 400; i++) {
            allocationsByRoomBeforeDash();
        }
        for (int i = 0; i < 100; i++) {
            allocationsByMachineRoom();
        }
        write("allocate");
    }

    private void allocationsByRoomBeforeDash() {
        String[] rooms = {"r1", "r2", "r3"};
        String topic = "T" + word(8);
        Set<MessageQueue> queueSet = new TreeSet<>();
        for (int brokers = 1 + below(4); brokers > 0; brokers--) {
            String broker = rooms[below(3)] + "-broker" + (random.nextBoolean() ? "" : "-") + word(3);
            addQueues(queueSet, topic, broker, below(9));
        }
        List<MessageQueue> queues = new ArrayList<>(queueSet);
        Set<String> members = new TreeSet<>();
        for (int count = 1 + below(12); members.size() < count; ) {
            members.add(rooms[below(2)] + "-10.0." + below(3) + "." + below(255) + "@" + below(99_999) + "#"
                + (random.nextLong() & Long.MAX_VALUE));
        }
        List<String> cids = new ArrayList<>(members);
        int virtualNodes = 1 + below(20);
        AllocateMachineRoomNearby.MachineRoomResolver beforeDash = new AllocateMachineRoomNearby.MachineRoomResolver() {
            @Override
            public String brokerDeployIn(MessageQueue queue) {
                return queue.getBrokerName().split("-")[0];
            }

            @Override
            public String consumerDeployIn(String clientId) {
                return clientId.split("-")[0];
            }
        };
        Map<String, Object> result = new LinkedHashMap<>();
        for (AllocateMessageQueueStrategy strategy : List.of(
                new AllocateMessageQueueAveragely(),
                new AllocateMessageQueueAveragelyByCircle(),
                new AllocateMessageQueueConsistentHash(virtualNodes),
                new AllocateMachineRoomNearby(new AllocateMessageQueueAveragely(), beforeDash),
                new AllocateMachineRoomNearby(new AllocateMessageQueueAveragelyByCircle(), beforeDash))) {
            result.put(strategy.getName(), perMember(strategy, queues, cids));
        }
        line("queues", plain(queues), "cids", cids, "virtualNodes", virtualNodes, "result", result);
    }

    private void allocationsByMachineRoom() {
        String topic = "T" + word(5);
        Set<MessageQueue> queueSet = new TreeSet<>();
        int brokers = 1 + below(4);
        for (int number = 0; number < brokers; number++) {
            String room = below(4) == 0 ? "" : "r" + below(3) + "@";
            addQueues(queueSet, topic, room + "b" + number, below(6));
        }
        List<MessageQueue> queues = new ArrayList<>(queueSet);
        List<String> cids = new ArrayList<>();
        int members = 1 + below(6);
        for (int number = 0; number < members; number++) {
            cids.add("c" + number);
        }
        Set<String> rooms = new TreeSet<>(Arrays.asList("r0", "r2"));
        AllocateMessageQueueByMachineRoom strategy = new AllocateMessageQueueByMachineRoom();
        strategy.setConsumeridcs(rooms);
        line("queues", plain(queues), "cids", cids, "consumerIdcs", rooms,
            "result", object(strategy.getName(), perMember(strategy, queues, cids)));
    }

    private static Map<String, Object> perMember(AllocateMessageQueueStrategy strategy, List<MessageQueue> queues,
            List<String> cids) {
        Map<String, Object> result = new LinkedHashMap<>();
        for (String cid : cids) {
            result.put(cid, orError(() -> {
                List<String> names = new ArrayList<>();
                for (MessageQueue queue : strategy.allocate("g", cid, queues, cids)) {
                    names.add(queue.getBrokerName() + "#" + queue.getQueueId());
                }
                return names;
            }));
        }
        return result;
    }

    private static void addQueues(Set<MessageQueue> queues, String topic, String broker, int count) {
        for (int id = 0; id < count; id++) {
            queues.add(new MessageQueue(topic, broker, id));
        }
    }

    private void storedMessages() throws Exception {
        CompressionType[] types = {null, CompressionType.ZLIB, CompressionType.LZ4, CompressionType.ZSTD};
        for (int i = 0; i < 200; i++) {
            // Java encodes topics of up to 127 bytes only: one-byte lengths.
            MessageExt message = new MessageExt();
            message.setTopic(below(10) == 0 ? "x".repeat(100 + below(27)) : "T" + word(20));
            message.setQueueId(below(16));
            message.setFlag(random.nextInt());
            message.setQueueOffset(random.nextLong() & Long.MAX_VALUE);
            message.setCommitLogOffset(random.nextLong() & Long.MAX_VALUE);
            message.setBornTimestamp(1_700_000_000_000L + below(1_000_000_000));
            message.setStoreTimestamp(1_700_000_000_000L + below(1_000_000_000));
            message.setReconsumeTimes(below(20));
            message.setPreparedTransactionOffset(below(1_000_000));
            boolean v6 = below(4) == 0;
            message.setBornHost(new InetSocketAddress(address(v6), 1 + below(65_535)));
            message.setStoreHost(new InetSocketAddress(address(v6), 1 + below(65_535)));
            int flags = below(8) == 0 ? MessageSysFlag.TRANSACTION_PREPARED_TYPE : 0;
            if (v6) {
                flags |= MessageSysFlag.BORNHOST_V6_FLAG | MessageSysFlag.STOREHOSTADDRESS_V6_FLAG;
            }
            CompressionType type = types[below(types.length)];
            if (type != null) {
                flags |= MessageSysFlag.COMPRESSED_FLAG | type.getCompressionFlag();
            }
            message.setSysFlag(flags);
            byte[] body = signs(60).getBytes(StandardCharsets.UTF_8);
            message.setBody(type == null ? body : CompressorFactory.getCompressor(type).compress(body, 5));
            Map<String, String> properties = new HashMap<>();
            for (int count = below(5); count > 0; count--) {
                properties.put(word(8), "v" + signs(8).replace("\t", ""));
            }
            if (random.nextBoolean()) {
                properties.put("UNIQ_KEY", word(20).toUpperCase());
            }
            MessageAccessor.setProperties(message, properties);
            byte[] wire = MessageDecoder.encode(message, false);
            describe(wire, type);
        }
        write("stored_message");
    }

    private void describe(byte[] wire, CompressionType type) {
        MessageExt message = MessageDecoder.decode(ByteBuffer.wrap(wire), true, true);
        if (message == null) {
            throw new IllegalStateException("Java does not read what it wrote: " + hex(wire));
        }
        Map<String, String> properties = message.getProperties();
        line("wire", hex(wire), "compression", type == null ? "none" : type.name(),
            "topic", message.getTopic(), "flag", message.getFlag(), "sysFlag", message.getSysFlag(),
            "queueId", message.getQueueId(), "queueOffset", message.getQueueOffset(),
            "commitLogOffset", message.getCommitLogOffset(), "bornTimestamp", message.getBornTimestamp(),
            "bornHost", host((InetSocketAddress) message.getBornHost()),
            "storeTimestamp", message.getStoreTimestamp(),
            "storeHost", host((InetSocketAddress) message.getStoreHost()),
            "reconsumeTimes", message.getReconsumeTimes(),
            "preparedTransactionOffset", message.getPreparedTransactionOffset(),
            "bodyCrc", message.getBodyCRC(), "storeSize", message.getStoreSize(), "msgId", message.getMsgId(),
            "body", hex(message.getBody() == null ? new byte[0] : message.getBody()),
            "properties", new TreeMap<>(properties == null ? new HashMap<>() : properties));
    }

    private void batches() throws Exception {
        for (int i = 0; i < 60; i++) {
            List<Message> messages = new ArrayList<>();
            List<Object> described = new ArrayList<>();
            for (int count = 1 + below(5); count > 0; count--) {
                // One property at most, so that there is one order only; the constructor's own are replaced.
                Message message = new Message("T", signs(20).getBytes(StandardCharsets.UTF_8));
                message.setFlag(below(1000));
                Map<String, String> properties = new HashMap<>();
                if (random.nextBoolean()) {
                    properties.put("TAGS", word(5));
                }
                MessageAccessor.setProperties(message, properties);
                messages.add(message);
                described.add(object("flag", message.getFlag(), "body", hex(message.getBody()),
                    "properties", properties));
            }
            line("messages", described, "batchBody", hex(MessageDecoder.encodeMessages(messages)));
        }
        write("batch_message");
    }

    private void properties() throws Exception {
        for (int i = 0; i < 60; i++) {
            Map<String, String> properties = new LinkedHashMap<>();
            for (int count = below(5); count > 0; count--) {
                properties.put(word(8), below(5) == 0 ? "" : signs(8));
            }
            decodedProperties(MessageDecoder.messageProperties2String(properties));
        }
        for (String odd : new String[] {
            "", "\u0002", "a\u0001", "a\u0001b", "\u0001b\u0002", "a\u0001b\u0002\u0002c\u0001d",
            "a\u0001b\u0001c\u0002", "a\u0002b\u0001c\u0002", "x\u0001y\u0002x\u0001z\u0002"}) {
            decodedProperties(odd);
        }
        write("properties");
    }

    private void decodedProperties(String text) {
        line("encoded", hex(text.getBytes(StandardCharsets.UTF_8)),
            "decoded", orError(() -> MessageDecoder.string2messageProperties(text)));
    }

    private void offsetMessageIds() throws Exception {
        for (int i = 0; i < 30; i++) {
            InetSocketAddress host = new InetSocketAddress(address(i % 2 == 1), 1 + below(65_535));
            long offset = random.nextLong() & Long.MAX_VALUE;
            line("ip", host.getAddress().getHostAddress(), "port", host.getPort(), "offset", offset,
                "msgId", MessageDecoder.createMessageId(host, offset));
        }
        write("offset_msg_id");
    }

    private void compression() throws Exception {
        int[] levels = {1, 5, 9};
        for (CompressionType type : CompressionType.values()) {
            for (int i = 0; i < 8; i++) {
                byte[] body = new byte[below(5000)];
                for (int at = 0; at < body.length; at++) {
                    body[at] = (byte) (below(4) == 0 ? below(256) : at / 7 % 64);
                }
                byte[] compressed = CompressorFactory.getCompressor(type).compress(body, levels[below(3)]);
                line("type", type.name(), "sysFlagBits", type.getCompressionFlag(), "compressed", hex(compressed),
                    "body", hex(body));
            }
        }
        write("compression");
    }

    private void frames() throws Exception {
        LanguageCode[] languages = LanguageCode.values();
        for (int i = 0; i < 120; i++) {
            SerializeType form = i % 2 == 0 ? SerializeType.JSON : SerializeType.ROCKETMQ;
            int code = below(400);
            RemotingCommand command = RemotingCommand.createRequestCommand(code, null);
            command.setSerializeTypeCurrentRPC(form);
            command.setOpaque(random.nextInt());
            command.setVersion(below(600));
            command.setLanguage(languages[below(languages.length)]);
            if (random.nextBoolean()) {
                command.markResponseType();
            }
            if (below(3) == 0) {
                command.markOnewayRPC();
            }
            if (random.nextBoolean()) {
                command.setRemark(signs(15));
            }
            HashMap<String, String> fields = new HashMap<>();
            for (int count = below(6); count > 0; count--) {
                fields.put(word(8), signs(10) + "x");
            }
            command.setExtFields(fields);
            byte[] body = below(3) == 0 ? new byte[0] : signs(50).getBytes(StandardCharsets.UTF_8);
            command.setBody(body.length == 0 ? null : body);
            ByteBuffer encoded = command.encode();
            byte[] frame = new byte[encoded.remaining()];
            encoded.get(frame);
            line("serialize", form.name(), "frame", hex(frame), "code", code, "language", command.getLanguage().name(),
                "languageCode", command.getLanguage().getCode() & 0xFF, "version", command.getVersion(),
                "opaque", command.getOpaque(), "flag", command.getFlag(), "remark", command.getRemark(),
                "extFields", new TreeMap<>(fields), "body", body.length == 0 ? null : hex(body));
        }
        write("frame");
    }

    private void tagHashes() throws Exception {
        for (int i = 0; i < 60; i++) {
            String text = i == 0 ? "" : signs(12) + word(6);
            line("s", text, "hash", text.hashCode());
        }
        write("tag_hash");
    }

    private void subscriptions() throws Exception {
        List<String> expressions = new ArrayList<>(Arrays.asList("*", "", null, "A", "A||B", "A || B", "  A||  ||B ",
            "||", "A|B", "A||A", "*||A", " * ", "A||B||", "тег||标签"));
        for (int i = 0; i < 20; i++) {
            expressions.add(word(4) + (random.nextBoolean() ? " || " : "||") + word(4));
        }
        for (String expression : expressions) {
            line("expression", expression, "result", orError(() -> {
                SubscriptionData data = FilterAPI.buildSubscriptionData("T", expression);
                return object("subString", data.getSubString(), "tagsSet", new TreeSet<>(data.getTagsSet()),
                    "codeSet", new TreeSet<>(data.getCodeSet()), "expressionType", data.getExpressionType());
            }));
        }
        write("subscription");
    }

    private void signatures() throws Exception {
        for (int i = 0; i < 40; i++) {
            String accessKey = word(12);
            String secretKey = word(24);
            TreeMap<String, String> fields = new TreeMap<>();
            for (int count = 1 + below(6); count > 0; count--) {
                fields.put(word(10), signs(8));
            }
            fields.put("AccessKey", accessKey);
            byte[] body = random.nextBoolean() ? null : signs(30).getBytes(StandardCharsets.UTF_8);
            byte[] values = String.join("", fields.values()).getBytes(StandardCharsets.UTF_8);
            line("accessKey", accessKey, "secretKey", secretKey, "extFields", fields,
                "body", body == null ? null : hex(body),
                "signature", AclUtils.calSignature(AclUtils.combineBytes(values, body), secretKey));
        }
        write("acl_signature");
    }

    private void nameRules() throws Exception {
        List<String> names = new ArrayList<>(Arrays.asList("abc", "a b", "a.b", "%RETRY%g", "a|b", "TBW102", "a-b_C",
            "主题", "", " ", "RMQ_SYS_TRANS_HALF_TOPIC", "SCHEDULE_TOPIC_XXXX", "a$b", "%DLQ%x", "a/b", "rmq_sys_x",
            "OFFSET_MOVED_EVENT", "a,b"));
        for (int length : new int[] {119, 120, 121, 127, 128, 254, 255, 256}) {
            names.add("g".repeat(length));
        }
        for (String name : names) {
            line("name", name, "topic", verdict(() -> Validators.checkTopic(name)),
                "sendTopic", verdict(() -> Validators.isNotAllowedSendTopic(name)),
                "group", verdict(() -> Validators.checkGroup(name)));
        }
        write("validators");
    }

    private void routes() throws Exception {
        int[] permissions = {6, 6, 6, 4, 2, 0, 7};
        for (int i = 0; i < 120; i++) {
            String topic = "T" + word(6);
            List<BrokerData> brokers = new ArrayList<>();
            List<QueueData> queues = new ArrayList<>();
            Set<String> used = new HashSet<>();
            int count = below(5);
            for (int number = 0; number < count; number++) {
                String name = "broker-" + word(3);
                if (!used.add(name)) {
                    continue;
                }
                HashMap<Long, String> addresses = new HashMap<>();
                if (below(4) != 0) {
                    addresses.put(0L, "10.0.0." + number + ":10911");
                }
                int replicas = below(3);
                for (int replica = 1; replica <= replicas; replica++) {
                    addresses.put((long) replica, "10.0.1." + number + ":" + (10_911 + replica));
                }
                // A queue's broker may be missing among the brokers.
                if (below(6) != 0) {
                    brokers.add(new BrokerData("c1", name, addresses));
                }
                QueueData queue = new QueueData();
                queue.setBrokerName(name);
                queue.setPerm(permissions[below(permissions.length)]);
                queue.setReadQueueNums(below(6));
                queue.setWriteQueueNums(below(6));
                queues.add(queue);
            }
            Collections.shuffle(queues, random);
            TopicRouteData route = new TopicRouteData();
            route.setBrokerDatas(brokers);
            route.setQueueDatas(queues);
            route.setFilterServerTable(new HashMap<>());
            if (below(5) == 0) {
                route.setOrderTopicConf("broker-x:3;broker-y:2");
            }
            String text = new String(route.encode(), StandardCharsets.UTF_8);
            TopicRouteData read = TopicRouteData.decode(text.getBytes(StandardCharsets.UTF_8), TopicRouteData.class);
            TopicPublishInfo publish = MQClientInstance.topicRouteData2TopicPublishInfo(topic, read);
            Set<MessageQueue> subscribe = MQClientInstance.topicRouteData2TopicSubscribeInfo(topic, read);
            line("topic", topic, "route", text, "publish", plain(publish.getMessageQueueList()),
                "orderTopic", publish.isOrderTopic(), "subscribe", plain(new TreeSet<>(subscribe)));
        }
        write("route");
    }

    private void popReceipts() throws Exception {
        String[] topics = {"T", "%RETRY%g_T", "%RETRY%g+T"};
        for (int i = 0; i < 40; i++) {
            long start = random.nextInt() & Integer.MAX_VALUE;
            String receipt = ExtraInfoUtil.buildExtraInfo(start, 1_700_000_000_000L + below(99_999_999),
                60_000 + below(1000), below(8), topics[below(3)], "broker-a", below(8), start + below(32));
            String[] parts = ExtraInfoUtil.split(receipt);
            line("extraInfo", receipt, "ckQueueOffset", ExtraInfoUtil.getCkQueueOffset(parts),
                "popTime", ExtraInfoUtil.getPopTime(parts), "invisibleTime", ExtraInfoUtil.getInvisibleTime(parts),
                "reviveQid", ExtraInfoUtil.getReviveQid(parts),
                "realTopic", ExtraInfoUtil.getRealTopic(parts, "T", "g"),
                "brokerName", ExtraInfoUtil.getBrokerName(parts), "queueId", ExtraInfoUtil.getQueueId(parts),
                "queueOffset", ExtraInfoUtil.getQueueOffset(parts));
        }
        write("pop_extra_info");
    }

    /**
     * Picks of a producer's queue selection. Time passes by moving the time at which brokers are free again; a random
     * place is read back from the index, whose random numbers are this program's.
     */
    private void selections() throws Exception {
        for (int i = 0; i < 100; i++) {
            TopicPublishInfo info = new TopicPublishInfo();
            List<String> shape = new ArrayList<>();
            for (int number = 0, brokers = 1 + below(4); number < brokers; number++) {
                String broker = String.valueOf((char) ('a' + number));
                int count = 1 + below(6);
                shape.add(broker + count);
                for (int id = 0; id < count; id++) {
                    info.getMessageQueueList().add(new MessageQueue("t", broker, id));
                }
            }
            MQFaultStrategy strategy = new MQFaultStrategy(new ClientConfig(), name -> name, (endpoint, timeout) -> true);
            Object index = info.getSendWhichQueue();
            set(index, "random", random);
            int start = below(3) == 0 ? Integer.MAX_VALUE - below(40) : random.nextInt();
            place(index).set(start);
            boolean latency = i % 3 != 0;
            strategy.setSendLatencyFaultEnable(latency);
            List<Object> steps = new ArrayList<>();
            for (int picks = 0; picks < 100; ) {
                String broker = String.valueOf((char) ('a' + below(shape.size())));
                int kind = below(10);
                if (kind < 3) {
                    long[] latencies = {20, 549, 550, 1800, 3000, 5000, 15_000};
                    long took = latencies[below(latencies.length)];
                    boolean isolation = below(3) == 0;
                    boolean reachable = below(3) != 0;
                    strategy.updateFaultItem(broker, took, isolation, reachable);
                    steps.add(object("update", broker, "took", took, "isolation", isolation, "reachable", reachable));
                } else if (kind == 3) {
                    long passed = 1000L * (1 + below(8));
                    pass(strategy, passed);
                    steps.add(object("pass", passed));
                } else if (kind == 4 && below(4) == 0) {
                    latency = !latency;
                    strategy.setSendLatencyFaultEnable(latency);
                    steps.add(object("latency", latency));
                } else {
                    picks += picks(info, strategy, below(2) == 0 ? null : broker, steps);
                }
            }
            line("brokers", shape, "start", start, "latency", i % 3 != 0, "steps", steps);
        }
        write("selection");
    }

    private void traces() throws Exception {
        for (int i = 0; i < 200; i++) {
            TraceType type = TraceType.values()[i % TraceType.values().length];
            TraceContext context = new TraceContext();
            context.setTraceType(type);
            context.setTimeStamp(1_700_000_000_000L + below(1_000_000_000));
            context.setRegionId(below(4) == 0 ? "DefaultRegion" : word(10));
            context.setGroupName(word(20));
            context.setCostTime(below(5000));
            context.setSuccess(random.nextBoolean());
            context.setContextCode(below(5));
            context.setAccessChannel(below(3) == 0 ? AccessChannel.CLOUD : AccessChannel.LOCAL);
            boolean several = type == TraceType.SubBefore || type == TraceType.SubAfter;
            List<Object> beans = new ArrayList<>();
            context.setTraceBeans(new ArrayList<>());
            for (int count = several ? 1 + below(4) : 1; count > 0; count--) {
                TraceBean bean = traceBean();
                context.getTraceBeans().add(bean);
                beans.add(object("topic", bean.getTopic(), "msgId", bean.getMsgId(), "offsetMsgId",
                    bean.getOffsetMsgId(), "tags", bean.getTags(), "keys", bean.getKeys(), "storeHost",
                    bean.getStoreHost(), "retryTimes", bean.getRetryTimes(), "bodyLength", bean.getBodyLength(),
                    "msgType", bean.getMsgType().ordinal(), "transactionId", bean.getTransactionId(),
                    "transactionState", bean.getTransactionState().name(), "fromTransactionCheck",
                    bean.isFromTransactionCheck()));
            }
            TraceTransferBean encoded = TraceDataEncoder.encoderFromContextBean(context);
            line("type", type.name(), "timeStamp", context.getTimeStamp(), "regionId", context.getRegionId(),
                "groupName", context.getGroupName(), "costTime", context.getCostTime(), "success",
                context.isSuccess(), "requestId", context.getRequestId(), "contextCode", context.getContextCode(),
                "cloud", context.getAccessChannel() == AccessChannel.CLOUD, "beans", beans,
                "transData", encoded.getTransData(), "transKey", new TreeSet<>(encoded.getTransKey()));
        }
        write("trace");
    }

    private TraceBean traceBean() {
        TraceBean bean = new TraceBean();
        bean.setTopic(word(20));
        bean.setMsgId(MessageClientIDSetter.createUniqID());
        bean.setOffsetMsgId(word(32));
        bean.setTags(oneOf(TRACE_TAGS));
        bean.setKeys(oneOf(TRACE_KEYS));
        bean.setStoreHost("10.1.2." + below(256) + ":" + below(65_536));
        bean.setRetryTimes(below(17));
        bean.setBodyLength(below(5_000_000));
        bean.setMsgType(MessageType.values()[below(MessageType.values().length)]);
        bean.setTransactionId(below(4) == 0 ? null : bean.getMsgId());
        bean.setTransactionState(LocalTransactionState.values()[below(3)]);
        bean.setFromTransactionCheck(random.nextBoolean());
        return bean;
    }

    private void traceHooks() throws Exception {
        List<TraceContext> appended = new ArrayList<>();
        AsyncTraceDispatcher dispatcher =
            new AsyncTraceDispatcher("group", TraceDispatcher.Type.PRODUCE, 10, "TraceTopic", null) {
                @Override
                public boolean append(Object context) {
                    return appended.add((TraceContext) context);
                }
            };
        SendMessageTraceHookImpl sends = new SendMessageTraceHookImpl(dispatcher);
        for (int i = 0; i < 60; i++) {
            Message message = new Message(below(10) == 0 ? "TraceTopic" + word(2) : word(20), new byte[below(5000)]);
            MessageAccessor.setProperties(message, traceProperties());
            SendMessageContext context = new SendMessageContext();
            context.setProducerGroup(word(20));
            context.setBrokerAddr("10.1.2." + below(256) + ":" + below(65_536));
            context.setMessage(message);
            context.setMsgType(MessageType.values()[below(MessageType.values().length)]);
            sends.sendMessageBefore(context);
            SendResult result = null;
            if (below(6) != 0) {
                result = new SendResult(SendStatus.values()[below(2) * below(4)], MessageClientIDSetter.createUniqID(),
                    word(32), new MessageQueue(message.getTopic(), "b", 0), 0);
                result.setRegionId(word(10));
                result.setTraceOn(below(6) != 0);
            }
            context.setSendResult(result);
            sends.sendMessageAfter(context);
            line("group", context.getProducerGroup(), "topic", message.getTopic(), "bodyLength",
                message.getBody().length, "properties", message.getProperties(), "brokerAddr",
                context.getBrokerAddr(), "msgType", context.getMsgType().ordinal(),
                "sendStatus", result == null ? null : result.getSendStatus().name(), "msgId",
                result == null ? null : result.getMsgId(), "offsetMsgId", result == null ? null
                : result.getOffsetMsgId(), "regionId", result == null ? null : result.getRegionId(), "traceOn",
                result == null ? null : result.isTraceOn(), "records", timeless(appended));
        }
        write("trace_send_hook");
        ConsumeMessageTraceHookImpl calls = new ConsumeMessageTraceHookImpl(dispatcher);
        for (int i = 0; i < 60; i++) {
            ConsumeMessageContext context = new ConsumeMessageContext();
            context.setConsumerGroup(word(20));
            context.setMsgList(new ArrayList<>());
            context.setProps(new HashMap<>());
            context.setAccessChannel(AccessChannel.LOCAL);
            List<Object> shown = new ArrayList<>();
            for (int count = 1 + below(3); count > 0; count--) {
                MessageExt message = new MessageExt();
                message.setTopic(word(20));
                Map<String, String> properties = traceProperties();
                if (below(5) != 0) {
                    properties.put("MSG_REGION", word(10));
                }
                if (below(3) != 0) {
                    properties.put("TRACE_ON", below(4) == 0 ? "false" : "true");
                }
                MessageAccessor.setProperties(message, properties);
                message.setMsgId(MessageClientIDSetter.createUniqID());
                message.setReconsumeTimes(below(17));
                context.getMsgList().add(message);
                shown.add(object("topic", message.getTopic(), "msgId", message.getMsgId(), "reconsumeTimes",
                    message.getReconsumeTimes(), "properties", properties));
            }
            calls.consumeMessageBefore(context);
            String[] types = {"SUCCESS", "TIME_OUT", "EXCEPTION", "FAILED"};
            context.getProps().put("ConsumeContextType", types[below(4)]);
            context.setSuccess(random.nextBoolean());
            calls.consumeMessageAfter(context);
            line("group", context.getConsumerGroup(), "messages", shown, "success", context.isSuccess(),
                "returnType", context.getProps().get("ConsumeContextType"), "records", timeless(appended));
        }
        write("trace_consume_hook");
    }

    /** What would be sent of each context, without time and request id; a context without a region is not sent. */
    private static List<String> timeless(List<TraceContext> contexts) {
        List<String> records = new ArrayList<>();
        for (TraceContext context : contexts) {
            if (context.getRegionId() == null) {
                continue;
            }
            context.setTimeStamp(0);
            context.setCostTime(0);
            context.setRequestId("request");
            if (context.getAccessChannel() == null) {
                context.setAccessChannel(AccessChannel.LOCAL);
            }
            records.add(TraceDataEncoder.encoderFromContextBean(context).getTransData());
        }
        contexts.clear();
        return records;
    }

    private Map<String, String> traceProperties() {
        Map<String, String> properties = new TreeMap<>();
        String tags = oneOf(TRACE_TAGS);
        if (tags != null) {
            properties.put("TAGS", tags);
        }
        String keys = oneOf(TRACE_KEYS);
        if (keys != null) {
            properties.put("KEYS", keys);
        }
        return properties;
    }

    private String oneOf(String[] texts) {
        return texts[below(texts.length)];
    }

    private int picks(TopicPublishInfo info, MQFaultStrategy strategy, String last, List<Object> steps)
        throws Exception {
        boolean reset = last != null && below(3) == 0;
        int count = 1 + below(12);
        StringBuilder picks = new StringBuilder();
        Integer place = null;
        if (reset && strategy.isSendLatencyFaultEnable()) {
            info.resetIndex();
            place = place(info.getSendWhichQueue()).get();
        }
        for (int pick = 0; pick < count; pick++) {
            MessageQueue queue = strategy.selectOneMessageQueue(info, last, false);
            picks.append(Character.forDigit(info.getMessageQueueList().indexOf(queue), 36));
        }
        steps.add(object("last", last, "place", place, "picks", picks.toString()));
        return count;
    }

    private static void pass(MQFaultStrategy strategy, long millis) throws Exception {
        Object tolerance = field(strategy, "latencyFaultTolerance").get(strategy);
        for (Object item : ((Map<?, ?>) field(tolerance, "faultItemTable").get(tolerance)).values()) {
            Field start = field(item, "startTimestamp");
            start.setLong(item, start.getLong(item) - millis);
        }
    }

    @SuppressWarnings("unchecked")
    private static ThreadLocal<Integer> place(Object index) throws Exception {
        return (ThreadLocal<Integer>) field(index, "threadLocalIndex").get(index);
    }

    private static void set(Object object, String name, Object value) throws Exception {
        field(object, name).set(object, value);
    }

    private static Field field(Object object, String name) throws Exception {
        Field field = object.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field;
    }

    private void line(Object... pairs) {
        lines.add(object(pairs));
    }

    private void write(String name) throws IOException {
        try (PrintWriter out = new PrintWriter(Files.newBufferedWriter(folder.resolve(name + ".jsonl")))) {
            for (Object line : lines) {
                out.println(JSON.toJSONString(line, JSONWriter.Feature.WriteMapNullValue,
                    JSONWriter.Feature.LargeObject));
            }
        }
        System.out.println(name + " " + lines.size());
        lines.clear();
    }

    private int below(int bound) {
        return random.nextInt(bound);
    }

    private String word(int longest) {
        StringBuilder word = new StringBuilder();
        for (int length = 1 + below(longest); length > 0; length--) {
            word.append(WORD.charAt(below(WORD.length())));
        }
        return word.toString();
    }

    private String signs(int longest) {
        StringBuilder text = new StringBuilder();
        for (int length = below(longest + 1); length > 0; length--) {
            text.append(SIGNS[below(SIGNS.length)]);
        }
        return text.toString();
    }

    private InetAddress address(boolean v6) throws Exception {
        return InetAddress.getByName(v6 ? "2001:db8::" + Integer.toHexString(below(65_536))
            : "10." + below(256) + ".3." + below(256));
    }

    private static String host(InetSocketAddress host) {
        return host.getAddress().getHostAddress() + "|" + host.getPort();
    }

    private static Map<String, Object> object(Object... pairs) {
        Map<String, Object> object = new LinkedHashMap<>();
        for (int at = 0; at < pairs.length; at += 2) {
            object.put((String) pairs[at], pairs[at + 1]);
        }
        return object;
    }

    private static List<Object> plain(Collection<MessageQueue> queues) {
        List<Object> list = new ArrayList<>();
        for (MessageQueue queue : queues) {
            list.add(object("topic", queue.getTopic(), "brokerName", queue.getBrokerName(),
                "queueId", queue.getQueueId()));
        }
        return list;
    }

    private static String hex(byte[] bytes) {
        StringBuilder digits = new StringBuilder();
        for (byte each : bytes) {
            digits.append(String.format("%02x", each));
        }
        return digits.toString();
    }

    private static Object orError(Callable<Object> function) {
        try {
            return function.call();
        } catch (Exception e) {
            return "error:" + e.getClass().getSimpleName();
        }
    }

    private static String verdict(Check check) {
        try {
            check.run();
            return "ok";
        } catch (Exception e) {
            return "error";
        }
    }

    private interface Check {
        void run() throws Exception;
    }
}
