import java.util.HashMap;
import java.util.Map;

/** Pairs of --key value that follow the workload. */
final class Options {
    private final Map<String, String> values = new HashMap<>();

    Options(String[] words) {
        for (int at = 1; at + 1 < words.length; at += 2) {
            values.put(words[at].replaceFirst("^--", ""), words[at + 1]);
        }
    }

    String text(String key, String absent) {
        return values.getOrDefault(key, absent);
    }

    int number(String key, int absent) {
        return Integer.parseInt(text(key, "" + absent));
    }

    String namesrv() {
        return text("namesrv", "127.0.0.1:9876");
    }

    String topic() {
        return text("topic", "bench");
    }

    String group() {
        return text("group", "bench_group");
    }
}
