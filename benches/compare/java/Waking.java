import java.util.Arrays;
import java.util.concurrent.locks.LockSupport;
import org.apache.rocketmq.common.ServiceThread;

/** How long a parked service thread takes to run after it is woken. */
final class Waking {
    private static final int WARMUP = 2000;

    private static final class Waiter extends ServiceThread {
        private final long[] nanos;
        private volatile long wokenAt;
        private volatile int seen;

        Waiter(int times) {
            nanos = new long[times];
        }

        @Override
        public String getServiceName() {
            return "waiter";
        }

        @Override
        public void run() {
            while (!isStopped()) {
                waitForRunning(60_000);
                long took = System.nanoTime() - wokenAt;
                if (seen < nanos.length) {
                    nanos[seen] = took;
                    seen++;
                }
            }
        }
    }

    static void serviceThread(Options options) throws Exception {
        int n = options.number("n", 20_000);
        Waiter waiter = new Waiter(n + WARMUP);
        waiter.start();
        Thread.sleep(100);
        Measure.Stopwatch watch = new Measure.Stopwatch();
        for (int number = 0; number < n + WARMUP; number++) {
            if (number == WARMUP) {
                watch = new Measure.Stopwatch();
            }
            waiter.wokenAt = System.nanoTime();
            waiter.wakeup();
            while (waiter.seen <= number) {
                LockSupport.parkNanos(20_000);
            }
            LockSupport.parkNanos(50_000);
        }
        new Measure.Line("wakeup").text("name", "ServiceThread").count("n", n).number("cpu_s", watch.cpu()).count("errors", 0)
            .percentiles(Arrays.copyOfRange(waiter.nanos, WARMUP, n + WARMUP)).print();
        waiter.shutdown();
    }

    private Waking() {
    }
}
