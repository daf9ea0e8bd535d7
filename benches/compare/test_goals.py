#!/usr/bin/env python3
"""What goals.py says of made-up results."""

import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import goals  # noqa: E402
import table  # noqa: E402
from goals import BEST, HOLDS, MISSED, NOT_MEASURED, Goal, judge  # noqa: E402
from results import Results  # noqa: E402
from workloads import WORKLOADS  # noqa: E402


def row(peer, run=0, workload="send-sync", **figures):
    return {"peer": peer, "run": run, "workload": workload, "errors": 0, **figures}


def judged(goal, *rows):
    return judge(Results(list(rows)), goal)


CPU = Goal("A", "send-sync", "CPU", "cpu", 1.5, "floor")
P99 = Goal("B", "send-sync", "p99", "p99_us", 1, BEST)
ALL = [row(peer, p99_us=us) for peer, us in (("java", 90), ("go", 50), ("rust", 70), ("cpp", 60), ("floor", 10))]


class Judging(unittest.TestCase):
    def test_ratios_are_of_one_run_and_their_median_counts(self):
        # The machine is ten times slower in the second run, which no ratio shows; the third has no floor.
        found = judged(CPU, *(row(peer, run, n=10, cpu_s=cpu * slower) for run, slower in ((0, 1), (1, 10)) for peer, cpu in
                              (("floor", 2), ("ours", 2.5 + run))), row("ours", 2, n=10, cpu_s=1000))
        self.assertEqual((found.value, found.runs, found.verdict), (1.5, 2, HOLDS))

    def test_figures_are_per_message(self):
        self.assertEqual(judged(CPU, row("floor", n=10, cpu_s=1), row("ours", n=20, cpu_s=4)).value, 2)

    def test_a_limit_from_below(self):
        rate = Goal("C", "send-sync", "rate", "rate", 0.7, "floor", at_least=True)
        floor = row("floor", n=10, wall_s=1)
        self.assertEqual(judged(rate, floor, row("ours", n=10, wall_s=1.25)).verdict, HOLDS)
        self.assertEqual(judged(rate, floor, row("ours", n=10, wall_s=2)).verdict, MISSED)

    def test_the_best_client_is_neither_the_floor_nor_a_build_of_this_one(self):
        found = judged(P99, *ALL, row("ours", p99_us=50), row("ours-before", p99_us=1))
        self.assertEqual((found.value, found.verdict), (1, HOLDS))
        self.assertEqual(judged(P99, *ALL, row("ours", p99_us=51)).verdict, MISSED)

    def test_beside_some_clients_a_goal_can_only_be_missed(self):
        found = judged(P99, ALL[0], row("ours", p99_us=50))
        self.assertEqual(found.verdict, NOT_MEASURED)
        self.assertEqual(found.note, "holds so far; against java; not run: go, rust, cpp")
        self.assertEqual(judged(P99, ALL[0], row("ours", p99_us=91)).verdict, MISSED)

    def test_a_client_that_lacks_a_workload_has_been_asked(self):
        found = judged(P99, *ALL[:3], row("cpp", unsupported=1), row("ours", p99_us=50))
        self.assertEqual((found.verdict, found.note), (HOLDS, "against java, go, rust"))

    def test_who_was_not_run_is_told(self):
        self.assertEqual(judged(CPU, row("ours", n=1, cpu_s=1)).note, "not run: floor")
        self.assertEqual(judged(CPU, row("floor", n=1, cpu_s=1)).note, "send-sync was not run")
        self.assertEqual(judged(CPU, row("floor", n=1), row("ours", n=1, cpu_s=1)).note, "the figure is missing")

    def test_a_run_that_failed_leaves_no_goal_held(self):
        found = judged(CPU, row("floor", n=1, cpu_s=1), row("ours", n=1, cpu_s=1), row("ours", 1, failed="not done after 9 s"))
        self.assertEqual(found.verdict, NOT_MEASURED)
        self.assertIn("not done after 9 s", found.note)

    def test_errors_are_added_up(self):
        goal = Goal("C", "send-sync", "failed sends", "errors", 0, is_total=True)
        self.assertEqual(judged(goal, row("ours"), row("ours", 1)).verdict, HOLDS)
        found = judged(goal, row("ours"), row("ours", 1, errors=2), row("ours", 2))
        self.assertEqual((found.value, found.verdict), (2, MISSED))

    def test_what_never_happened_took_for_ever(self):
        goal = Goal("F", "send-sync", "join", "join_s", 1.5, "go")
        found = judged(goal, row("go", join_s=1), row("ours", join_s=-1))
        self.assertEqual((found.value, found.verdict), (math.inf, MISSED))

    def test_lines_of_a_workload_are_told_apart_by_their_names(self):
        goal = Goal("I", "send-sync", "choosing", "ns", 0.5, "java", "borrowed", "plain")
        found = judged(goal, row("java", name="plain", ns=10), row("java", name="other", ns=1), row("ours", name="borrowed", ns=4),
                       row("ours", name="plain", ns=9))
        self.assertEqual((found.value, found.verdict), (0.4, HOLDS))

    def test_nothing_takes_no_more_than_nothing(self):
        goal = Goal("H", "send-sync", "CPU", "cpu_s", 1, "go")
        self.assertEqual(judged(goal, row("go", cpu_s=0), row("ours", cpu_s=0)).verdict, HOLDS)
        self.assertEqual(judged(goal, row("go", cpu_s=0), row("ours", cpu_s=0.1)).verdict, MISSED)


class Goals(unittest.TestCase):
    def test_each_is_of_a_workload_that_there_is(self):
        for goal in goals.GOALS:
            self.assertEqual(WORKLOADS[goal.letter].name, goal.workload)
        self.assertEqual({goal.letter for goal in goals.GOALS}, set(WORKLOADS))


class Table(unittest.TestCase):
    def test_it_has_a_line_for_each_name_and_for_who_failed(self):
        results = Results([row("floor", workload="cpu", name="decode", ns=2), row("ours", workload="cpu", failed="ended with status 1")])
        lines = table.of(results, [WORKLOADS["I"]], "floor").splitlines()
        self.assertEqual(len(lines), 4)
        self.assertIn("I cpu decode", lines[2])
        self.assertIn("FAILED: ended with status 1", lines[3])


class Program(unittest.TestCase):
    def run_on(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "r.json"
            path.write_text(text)
            program = pathlib.Path(__file__).with_name("goals.py")
            return subprocess.run([sys.executable, program, path], capture_output=True, text=True, env=os.environ | {"PYTHONUTF8": "1"})

    def test_a_missed_goal_is_no_failure_and_an_unreadable_file_is_one(self):
        missed = self.run_on(json.dumps([row("floor", n=1, cpu_s=1), row("ours", n=1, cpu_s=9)]))
        self.assertEqual(missed.returncode, 0, missed.stderr)
        self.assertIn("| 9.00 × | 1 | missed |", missed.stdout)
        for text in ("", "{}", "[1]", '[{"peer": "ours"}]'):
            self.assertEqual(self.run_on(text).returncode, 1, text)


if __name__ == "__main__":
    unittest.main()
