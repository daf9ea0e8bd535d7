import java.util.HashMap;
import java.util.Map;
import java.util.stream.Stream;

/** The key=value words of a command, and lines of JSON. */
final class Words {
    private final Map<String, String> values = new HashMap<>();

    /** Takes the words from number {@code first} on. */
    Words(String[] words, int first) {
        for (int i = first; i < words.length; i++) {
            int equals = words[i].indexOf('=');
            if (equals < 0) {
                throw new IllegalArgumentException(words[i] + " is not key=value");
            }
            values.put(words[i].substring(0, equals), words[i].substring(equals + 1));
        }
    }

    boolean has(String key) {
        return values.containsKey(key);
    }

    String text(String key, String otherwise) {
        return values.getOrDefault(key, otherwise);
    }

    int number(String key, int otherwise) {
        return has(key) ? Integer.parseInt(values.get(key)) : otherwise;
    }

    boolean flag(String key) {
        return text(key, "false").equals("true");
    }

    /** An object of names and values in turn; what is neither number, boolean, map nor null is a text. */
    static String object(Object... pairs) {
        StringBuilder json = new StringBuilder("{");
        for (int i = 0; i < pairs.length; i += 2) {
            json.append(i == 0 ? "" : ",").append(quoted((String) pairs[i])).append(':').append(value(pairs[i + 1]));
        }
        return json.append('}').toString();
    }

    private static String value(Object value) {
        if (value == null || value instanceof Number || value instanceof Boolean) {
            return String.valueOf(value);
        }
        if (value instanceof Map) {
            return object(((Map<?, ?>) value).entrySet().stream()
                .flatMap(entry -> Stream.of(entry.getKey(), entry.getValue())).toArray());
        }
        return quoted(value.toString());
    }

    static String quoted(String text) {
        if (text == null) {
            return "null";
        }
        StringBuilder json = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                json.append('\\').append(c);
            } else if (c < ' ' || c > '~') {
                json.append(String.format("\\u%04x", (int) c));
            } else {
                json.append(c);
            }
        }
        return json.append('"').toString();
    }

    static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
