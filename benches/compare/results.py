"""Rows of results, one for each line that a peer printed, and what can be said of them.

Machines drift, in processor seconds too. So a figure of one peer is compared with another's of the same run only, and
what is told of several runs is the median of these ratios.
"""

import json
import math
import statistics

PER_MESSAGE = {
    "cpu": lambda row: row["cpu_s"] / row.get("n", 1),
    "time": lambda row: row["wall_s"] / row.get("n", 1),
    "rate": lambda row: row["n"] / row["wall_s"],
}


class Results:
    def __init__(self, rows):
        self.rows = rows

    @classmethod
    def read(cls, path):
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)
        if not isinstance(rows, list) or not all(isinstance(row, dict) and {"peer", "workload", "run"} <= row.keys() for row in rows):
            raise ValueError(f"{path} is not a list of results")
        return cls(rows)

    def peers(self, workload=None):
        """Who was run, in the order of the first results."""
        return list(dict.fromkeys(row["peer"] for row in self.rows if workload in (None, row["workload"])))

    def of(self, peer, workload, name=None):
        """Rows with figures; `name` is given for workloads that print several lines."""
        return [row for row in self.rows
                if row["peer"] == peer and row["workload"] == workload and name in (None, row.get("name"))
                and "failed" not in row and "unsupported" not in row]

    def failures(self, peer, workload):
        return [row for row in self.rows if row["peer"] == peer and row["workload"] == workload and "failed" in row]

    def by_run(self, peer, workload, figure, name=None):
        """The figure of each run that has it; of several tries in a run their median. What never happened took for ever."""
        values = {}
        for row in self.of(peer, workload, name):
            try:
                value = PER_MESSAGE[figure](row) if figure in PER_MESSAGE else row[figure]
            except (KeyError, ZeroDivisionError):
                continue
            values.setdefault(row["run"], []).append(math.inf if value < 0 else value)
        return {run: statistics.median(of_run) for run, of_run in values.items()}

    def ratios(self, peer, rivals, workload, figure, name=None, rival_name=None):
        """The peer's figure divided by the smallest one of the rivals, for each run that has both."""
        own = self.by_run(peer, workload, figure, name)
        theirs = [self.by_run(rival, workload, figure, rival_name or name) for rival in rivals]
        ratios = {}
        for run, value in own.items():
            of_rivals = [values[run] for values in theirs if run in values]
            if of_rivals:
                ratios[run] = quotient(value, min(of_rivals))
        return ratios


def quotient(value, by):
    if by:
        return value / by
    return math.inf if value else 1.0
