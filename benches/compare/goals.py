#!/usr/bin/env python3
"""How the results of compare.py stand beside the goals. A report: its status says nothing of them.

  goals.py FILE.json             a Markdown table
  goals.py FILE.json --json      the same for programs
"""

import argparse
import json
import statistics
import sys
from dataclasses import asdict, dataclass

sys.dont_write_bytecode = True
from results import Results  # noqa: E402
from table import markdown, number, spread  # noqa: E402

OURS, FLOOR, BEST = "ours", "floor", "the best other client"
# Whoever is the best is not known until all of these have run.
CLIENTS = ("java", "go", "rust", "cpp")
HOLDS, MISSED, NOT_MEASURED = "holds", "missed", "not measured"


@dataclass(frozen=True)
class Goal:
    letter: str
    workload: str
    what: str
    figure: str
    limit: float
    against: str = None
    """A peer or BEST, whose figure the limit is a multiple of."""
    name: str = None
    rival_name: str = None
    at_least: bool = False
    is_total: bool = False
    """The sum over all runs counts, not the median."""
    absent: str = None
    """Why no result may have the figure."""

    def text(self):
        return f"{self.what} {'≥' if self.at_least else '≤'} {self.limit:,g}{f' × {self.against}' if self.against else ''}"

    def is_met(self, value):
        return value >= self.limit if self.at_least else value <= self.limit


CPU = "CPU per message"
GOALS = (
    Goal("A", "send-sync", CPU, "cpu", 1.5, FLOOR),
    Goal("A", "send-sync", "p50", "p50_us", 1.2, FLOOR),
    Goal("B", "send-sync-8", CPU, "cpu", 1.4, FLOOR),
    Goal("B", "send-sync-8", "p99", "p99_us", 1, BEST),
    Goal("C", "send-async", CPU, "cpu", 4, FLOOR),
    Goal("C", "send-async", "rate", "rate", 0.7, FLOOR, at_least=True),
    Goal("C", "send-async", "failed sends", "errors", 0, is_total=True),
    Goal("D", "send-batch", CPU, "cpu", 2.5, FLOOR),
    Goal("D", "send-batch", "rate", "rate", 0.75, FLOOR, at_least=True),
    Goal("E", "consume", CPU, "cpu", 5, FLOOR),
    Goal("E", "consume", "time per message", "time", 2, FLOOR),
    Goal("E", "consume", "time to the first message", "first_s", 1, "go"),
    Goal("E", "consume", "delivered twice", "twice", 0, is_total=True, absent="nobody counted"),
    Goal("F", "rebalance", "join", "join_s", 1.5, "go"),
    Goal("F", "rebalance", "leave", "leave_s", 1.5, "go"),
    Goal("F", "rebalance", "redelivered", "redelivered", 0, is_total=True, absent="no messages here: see tests/figures"),
    Goal("G", "latency", "p50", "p50_us", 1, BEST),
    Goal("G", "latency", CPU, "cpu", 0.5, BEST),
    Goal("H", "idle", "CPU", "cpu_s", 1, BEST),
    Goal("H", "idle", "memory", "rss_mib", 1, BEST),
    Goal("H", "idle", "threads", "threads", 12),
    Goal("I", "cpu", "AVG, 1,000 queues", "ns", 0.25, BEST, "avg-1000"),
    Goal("I", "cpu", "AVG, 10,000 queues", "ns", 0.25, BEST, "avg-10000"),
    Goal("I", "cpu", "consistent hashing, 1,000 queues", "ns", 0.1, BEST, "hash-1000"),
    Goal("I", "cpu", "consistent hashing, 10,000 queues", "ns", 0.1, BEST, "hash-10000"),
    Goal("I", "cpu", "decoding a message, ns", "ns", 100, None, "decode"),
    # Java took 379 ns on the machine for which 100 ns were set, once its compiler had settled: the best round.
    Goal("I", "cpu", "decoding a message, best round", "min_ns", 0.26, "java", "decode"),
    Goal("I", "cpu", "choosing a queue, with a copy of it", "ns", 0.5, "java", "round-robin"),
    Goal("I", "cpu", "choosing a queue, as Java without a copy", "ns", 0.5, "java", "round-robin-borrowed", "round-robin"),
    Goal("J", "wakeup", "waking a service thread, p50", "p50_us", 1.1, FLOOR, "ServiceThread", "futex"),
)


@dataclass(frozen=True)
class Judgement:
    letter: str
    goal: str
    verdict: str
    measured: str
    value: float
    runs: int
    note: str


def judge(results, goal):
    if OURS not in results.peers(goal.workload):
        return judgement(goal, [], [f"{goal.workload} was not run"])
    return judge_beside(results, goal) if goal.against else judge_alone(results, goal)


def judge_alone(results, goal):
    values = list(results.by_run(OURS, goal.workload, goal.figure, goal.name).values())
    missing = [goal.absent or "the figure is missing"] if not values else []
    return judgement(goal, values, missing + troubles(results, goal), is_open=has_failed(results, goal))


def judge_beside(results, goal):
    ran = results.peers(goal.workload)
    rivals = [peer for peer in ran if peer != FLOOR and not peer.startswith(OURS)] if goal.against == BEST else [goal.against]
    absent = [peer for peer in (CLIENTS if goal.against == BEST else rivals) if peer not in ran]
    with_figure = [peer for peer in rivals if results.by_run(peer, goal.workload, goal.figure, goal.rival_name or goal.name)]
    notes = [f"against {', '.join(with_figure)}"] if goal.against == BEST and with_figure else []
    notes += [f"not run: {', '.join(absent)}"] if absent else []
    values = list(results.ratios(OURS, rivals, goal.workload, goal.figure, goal.name, goal.rival_name).values())
    missing = ["the figure is missing"] if not values and not absent else []
    return judgement(goal, values, notes + missing + troubles(results, goal), is_open=bool(absent) or has_failed(results, goal))


def has_failed(results, goal):
    return bool(results.failures(OURS, goal.workload))


def troubles(results, goal):
    """What makes figures of this client doubtful."""
    failed = results.failures(OURS, goal.workload)
    errors = sum(row.get("errors", 0) for row in results.of(OURS, goal.workload))
    return ([f"runs that failed: {len(failed)}, {failed[0]['failed']}"] if failed else []) + \
        ([f"{errors} errors"] if errors and goal.figure != "errors" else [])


def judgement(goal, values, notes, is_open=False):
    """`is_open`: that the values meet the goal is not all that there is to know, so they can only miss it."""
    if not values:
        return Judgement(goal.letter, goal.text(), NOT_MEASURED, "", None, 0, "; ".join(notes))
    value = sum(values) if goal.is_total else statistics.median(values)
    measured = number(value, 0) if goal.is_total else spread(values) + (" ×" if goal.against else "")
    verdict = MISSED if not goal.is_met(value) else NOT_MEASURED if is_open else HOLDS
    if verdict == NOT_MEASURED:
        notes = ["holds so far", *notes]
    return Judgement(goal.letter, goal.text(), verdict, measured, value, len(values), "; ".join(notes))


def report(judgements):
    counts = ", ".join(f"{sum(each.verdict == verdict for each in judgements)} {verdict}" for verdict in (HOLDS, MISSED, NOT_MEASURED))
    rows = [(each.letter, each.goal, each.measured, each.runs or "", each.verdict, each.note) for each in judgements]
    return f"{counts}\n\n{markdown([('', 'goal', 'measured', 'runs', 'verdict', 'note'), *rows])}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    try:
        results = Results.read(options.file)
    except (OSError, ValueError) as error:
        raise SystemExit(f"goals: {error}") from None
    judgements = [judge(results, goal) for goal in GOALS]
    print(json.dumps([asdict(each) for each in judgements], indent=1) if options.json else report(judgements))


if __name__ == "__main__":
    main()
