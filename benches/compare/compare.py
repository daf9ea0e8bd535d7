#!/usr/bin/env python3
"""RocketMQ clients side by side on one real broker that this program starts and ends. See README.md.

  compare.py                                      this client, raw sockets and Java: all workloads, 3 runs
  compare.py --quick --workloads A,E              a tenth of the messages, one run
  compare.py --peer go=/path/to/a/peer            one more program that takes the same words
  compare.py --json r.json; goals.py r.json       keep the results; compare them with the goals
  compare.py --report r.json                      the table of results that were kept
"""

import argparse
import json
import os
import pathlib
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import peers  # noqa: E402
import table  # noqa: E402
from broker import Broker, cluster, machine_cpu_s  # noqa: E402
from results import Results  # noqa: E402
from workloads import BACKLOG, QUEUES, SENT, WORKLOADS, chosen  # noqa: E402

LOOK_SECONDS = 0.02


class Comparison:
    def __init__(self, options, work):
        self.options, self.work = options, work
        self.broker = Broker(work)
        self.fixture = work / "pull32.bin"
        self.commands, self.rows, self.backlog = {}, [], 0

    def build(self):
        self.java = peers.java(self.work)
        for name in self.options.peers:
            self.commands[name] = peers.BUILT_IN[name](self.work)
        self.commands |= self.options.more
        if peers.OURS not in self.commands:
            self.commands[peers.OURS] = peers.ours(self.work)
        self.prepare("make-fixture", "--fixture", str(self.fixture))

    def prepare(self, *words):
        tell(f"preparing: {words[0]}")
        subprocess.run([*self.java, *words], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def store(self):
        """Makes topics and backlog, and has the broker's code compiled, so that the first peer does not pay for it."""
        for topic in dict.fromkeys([SENT, *(workload.topic for workload in self.options.workloads if workload.topic)]):
            self.broker.make_topic(topic, QUEUES)
        where, part = self.broker.options(), 3 if self.options.quick else 1
        self.prepare("send-sync-8", *where, "--topic", SENT, "--n", str(60_000 // part))
        self.prepare("send-async", *where, "--topic", SENT, "--n", str(200_000 // part))
        for workload in self.options.workloads:
            if workload.topic == BACKLOG:
                # Whole batches, hence some more than are waited for.
                count = -(-workload.count(self.options.quick) // 32) * 32
                self.prepare("send-batch", *where, "--topic", BACKLOG, "--n", str(count), "--warmup", "0")
                self.backlog = self.broker.stored(BACKLOG, QUEUES)
                self.prepare("consume", *where, "--topic", BACKLOG, "--group", "warmup", "--n", str(count))

    def run(self):
        for number in range(self.options.runs):
            names = list(self.commands)
            turn = number % len(names)
            for workload in self.options.workloads:
                for name in names[turn:] + names[:turn]:
                    self.rows += self.run_peer(name, workload, number)
                if self.options.json:
                    self.options.json.write_text(json.dumps(self.rows, indent=0))

    def run_peer(self, name, workload, number):
        group = f"g_{name}_{workload.name}_{number}".replace("-", "_")
        words = [*self.commands[name], workload.name, *self.broker.options(), "--group", group, "--fixture", str(self.fixture),
                 *workload.options(self.options.quick)]
        output, errors = (self.work / f"{name}-{workload.name}-{number}.{kind}" for kind in ("out", "err"))
        broker_cpu, (busy, stolen), begun = self.broker.cpu_s(), machine_cpu_s(), time.monotonic()
        with open(output, "wb") as out, open(errors, "wb") as err:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=os.environ | {"HOME": str(self.work)})
            try:
                status, usage = wait(process, workload.seconds)
            except BaseException:
                process.kill()
                process.wait()
                raise
        elapsed, (busy_after, stolen_after) = time.monotonic() - begun, machine_cpu_s()
        rows = printed(output)
        if process.returncode != 0 or not rows:
            rows.append({"workload": workload.name, "failed": status, "stderr": errors.read_text(errors="replace")[-500:]})
        for row in rows:
            if "delivered" in row:
                row["twice"] = max(0, row["delivered"] - self.backlog)
            row |= {
                "peer": name, "run": number, "total_cpu_s": round(usage.ru_utime + usage.ru_stime, 3),
                "broker_cpu_s": round(self.broker.cpu_s() - broker_cpu, 2), "elapsed_s": round(elapsed, 2),
                "machine_cpu_s": round(busy_after - busy, 2), "steal_s": round(stolen_after - stolen, 2),
            }
        tell(f"run {number} {workload.letter} {workload.name:12} {name:8} {elapsed:6.1f} s")
        return rows


def tell(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def wait(process, seconds):
    """How the process ended, and the processor time it has had; it is killed when its time is up."""
    deadline, ended = time.monotonic() + seconds, "ended with status {}"
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return ended.format(process.returncode), usage
        if time.monotonic() > deadline:
            process.kill()
            ended, deadline = f"not done after {seconds} s", float("inf")
        time.sleep(LOOK_SECONDS)


def printed(output):
    """The results of whole lines; the last line of a peer that was killed may not be one."""
    lines = output.read_text(errors="replace").splitlines()
    return [json.loads(line.removeprefix("RESULT ")) for line in lines if line.startswith("RESULT {") and line.endswith("}")]


def complaints(results):
    """What makes the comparison as a whole fail: peers without a result, and errors that they tell of."""
    for row in results.rows:
        who = f"{row['peer']}, {row['workload']}, run {row['run']}"
        if "failed" in row:
            yield f"{who}: {row['failed']}: {row.get('stderr', '')}"
        elif row.get("errors"):
            yield f"{who}: {row['errors']} errors"


def show(results, workloads):
    all_peers = results.peers()
    print(table.of(results, workloads, "floor" if "floor" in all_peers else all_peers[0]))


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="the peers take turns so often; who begins changes (3)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the messages, one run")
    parser.add_argument("--workloads", type=chosen, default=list(WORKLOADS.values()), metavar="A,B,…", help="letters or names (all)")
    parser.add_argument("--peers", default=",".join(peers.BUILT_IN), metavar="…", help=f"of {', '.join(peers.BUILT_IN)}, or none (all)")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND", help="one more; ours= replaces this client's")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="where to keep the results")
    parser.add_argument("--report", metavar="FILE", help="print the table of results that were kept, and run nothing")
    options = parser.parse_args()
    options.peers = [name for name in options.peers.split(",") if name not in ("", "none")]
    if unknown := set(options.peers) - set(peers.BUILT_IN):
        parser.error(f"no peer {', '.join(sorted(unknown))}: name the program with --peer NAME=COMMAND")
    if any("=" not in word for word in options.peer):
        parser.error("--peer takes NAME=COMMAND")
    options.more = {name: shlex.split(command) for name, _, command in (word.partition("=") for word in options.peer)}
    options.runs = 1 if options.quick else options.runs
    return options


def main():
    options = read_options()
    if options.report:
        show(Results.read(options.report), options.workloads)
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(1))
    work = pathlib.Path(tempfile.mkdtemp(prefix="rmq-compare-"))
    comparison = Comparison(options, work)
    try:
        comparison.build()
        comparison.broker.start()
        comparison.store()
        comparison.run()
    finally:
        comparison.broker.stop()
        shutil.rmtree(work, ignore_errors=True)
    results = Results(comparison.rows)
    print(f"{platform.machine()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} at the end; "
          f"runs: {options.runs}{', a tenth of the messages' if options.quick else ''}; servers on the same processors\n")
    show(results, options.workloads)
    if found := list(complaints(results)):
        raise SystemExit("\n".join(found))


if __name__ == "__main__":
    try:
        main()
    except (cluster.ClusterError, subprocess.CalledProcessError, OSError, ValueError) as error:
        raise SystemExit(f"compare: {error}")
