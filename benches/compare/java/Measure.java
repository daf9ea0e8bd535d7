import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import java.util.function.BooleanSupplier;

/** Clocks, and the line of results, made field by field. */
final class Measure {
    /** Wall time and the processor time of this process, from a moment on. */
    static final class Stopwatch {
        private final double cpuBegun = cpuSeconds();
        private final long begun = System.nanoTime();

        double wall() {
            return (System.nanoTime() - begun) / 1e9;
        }

        double cpu() {
            return cpuSeconds() - cpuBegun;
        }

        private static double cpuSeconds() {
            try {
                String stat = Files.readString(Path.of("/proc/self/stat"));
                String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
                return (Long.parseLong(fields[11]) + Long.parseLong(fields[12])) / 100.0;
            } catch (IOException error) {
                throw new IllegalStateException(error);
            }
        }
    }

    static final class Line {
        private final StringBuilder text = new StringBuilder();

        Line(String workload) {
            text.append("{\"workload\":\"").append(workload).append('"');
        }

        Line text(String name, String value) {
            return field(name, '"' + value + '"');
        }

        Line count(String name, long value) {
            return field(name, "" + value);
        }

        Line number(String name, double value) {
            return field(name, String.format(Locale.ROOT, "%.4f", value));
        }

        Line times(Stopwatch watch) {
            return number("wall_s", watch.wall()).number("cpu_s", watch.cpu());
        }

        /** Percentiles of times in nanoseconds. */
        Line percentiles(long[] nanos) {
            long[] sorted = nanos.clone();
            Arrays.sort(sorted);
            String[] names = {"p50_us", "p99_us", "p999_us", "max_us"};
            double[] parts = {0.5, 0.99, 0.999, 1};
            for (int at = 0; at < names.length && sorted.length > 0; at++) {
                long value = sorted[Math.min(sorted.length - 1, (int) (sorted.length * parts[at]))];
                field(names[at], String.format(Locale.ROOT, "%.1f", value / 1e3));
            }
            return this;
        }

        void print() throws IOException {
            number("rss_peak_mib", status("VmHWM") / 1024);
            System.out.println("RESULT " + text + "}");
            System.out.flush();
        }

        private Line field(String name, String value) {
            text.append(",\"").append(name).append("\":").append(value);
            return this;
        }
    }

    /** A number of /proc/self/status. */
    static double status(String name) throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith(name + ":")) {
                return Double.parseDouble(line.replaceAll("[^0-9]", ""));
            }
        }
        return 0;
    }

    /** Looks every millisecond whether something has come true; the seconds until then, or -1 after the limit. */
    static double secondsUntil(long begun, int limitSeconds, BooleanSupplier isTrue) throws InterruptedException {
        while (!isTrue.getAsBoolean()) {
            if (System.nanoTime() - begun > limitSeconds * 1_000_000_000L) {
                return -1;
            }
            Thread.sleep(1);
        }
        return secondsSince(begun);
    }

    static double secondsSince(long begun) {
        return (System.nanoTime() - begun) / 1e9;
    }

    private Measure() {
    }
}
