"""The workloads: what each is called, how much it does, and which words a peer is given for it."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Workload:
    letter: str
    name: str
    seconds: int
    """After so long a peer is ended and has failed."""
    topic: str = None
    messages: int = None
    size: int = None
    scales: bool = True
    """Whether a quick comparison sends a tenth only."""
    words: tuple = ()
    quick_words: tuple = field(default=None)

    def count(self, quick):
        return self.messages // 10 if self.messages and quick and self.scales else self.messages

    def options(self, quick):
        pairs = {"topic": self.topic, "n": self.count(quick), "size": self.size}
        words = [word for key, value in pairs.items() if value is not None for word in (f"--{key}", str(value))]
        return words + list(self.quick_words if quick and self.quick_words is not None else self.words)


SENT, BACKLOG, QUIET, TIMED = "bench_sent", "bench_backlog", "bench_quiet", "bench_timed"
QUEUES = 8

WORKLOADS = {workload.letter: workload for workload in (
    Workload("A", "send-sync", 120, SENT, 20_000, 1024),
    Workload("B", "send-sync-8", 180, SENT, 100_000, 100),
    Workload("C", "send-async", 180, SENT, 200_000, 100),
    Workload("D", "send-batch", 180, SENT, 500_000, 100),
    # What comes twice comes soon after the end, for which the peer waits outside of the time that is measured.
    Workload("E", "consume", 180, BACKLOG, 500_000, 100, words=("--timeout", "60", "--settle-ms", "500")),
    Workload("F", "rebalance", 700, QUIET, words=("--tries", "5"), quick_words=("--tries", "1")),
    Workload("G", "latency", 60, TIMED, 1000, 100),
    Workload("H", "idle", 90, QUIET, words=("--seconds", "30"), quick_words=("--seconds", "5")),
    Workload("I", "cpu", 240),
    Workload("J", "wakeup", 90, messages=20_000, scales=False),
)}


def chosen(words):
    """Workloads by letters or names, separated by commas."""
    by_name = {workload.name: workload for workload in WORKLOADS.values()}
    return [WORKLOADS[word] if word in WORKLOADS else by_name[word] for word in words.split(",")]
