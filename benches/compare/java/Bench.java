/**
 * The published Java client as a peer of the comparison: the words, workloads and lines of results are those of
 * examples/bench_peer. Needs Linux, for it reads /proc.
 */
public final class Bench {
    public static void main(String[] words) throws Exception {
        Options options = new Options(words);
        String workload = words[0];
        switch (workload) {
            case "send-sync" -> Sending.sync(workload, options, 1, 20_000, 1024);
            case "send-sync-8" -> Sending.sync(workload, options, 8, 100_000, 100);
            case "send-async" -> Sending.async(options);
            case "send-batch" -> Sending.batches(options);
            case "consume" -> Consuming.backlog(options);
            case "rebalance" -> Consuming.rebalance(options);
            case "latency" -> Consuming.latency(options);
            case "idle" -> Consuming.idle(options);
            case "cpu" -> Computing.all(options);
            case "wakeup" -> Waking.serviceThread(options);
            case "make-fixture" -> Fixture.write(options);
            default -> System.out.println("RESULT {\"workload\":\"" + workload + "\",\"unsupported\":1}");
        }
        // Threads of the client that outlive its shutdown would keep the process.
        System.exit(0);
    }

    private Bench() {
    }
}
