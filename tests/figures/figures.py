#!/usr/bin/env python3
"""How fast a group settles, and how many messages come twice, for this client, Java's and Go's in one run. See README.md."""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "interop"))
from targets import EmbeddedTarget, RealTarget, cluster  # noqa: E402

QUEUES = 8
RATE = 2_000
BACKLOG = 120_000
LINE_SECONDS = 90


class Run:
    def __init__(self, options, work):
        self.options, self.work = options, work
        self.target = {"real": RealTarget, "embedded": EmbeddedTarget}[options.target](work, options)
        self.programs = {"rust": [options.churn], "java": None, "go": [str(work / "churn-go")]}
        self.figures = {}

    def build_go(self):
        subprocess.run(["go", "build", "-o", str(self.work / "churn-go"), "."], cwd=HERE / "go", check=True)

    def command(self, language, verb, **options):
        words = [verb, f"ns=127.0.0.1:{self.target.namesrv_port}", *(f"{key}={value}" for key, value in options.items())]
        if language == "java":
            return cluster.java_command(str(HERE / "Churn.java"), words, self.work)
        return [*self.programs[language], *words]

    def start(self, language, verb, **options):
        log = open(self.work / f"{language}.err", "ab")
        return subprocess.Popen(self.command(language, verb, **options), cwd=self.work, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=log, text=True)

    def topic(self, name):
        for port in self.target.broker_ports:
            header, _ = cluster.make_topic(port, name, 4)
            assert header["code"] == 0, header
        return name

    def send(self, topic, **options):
        words = ["produce", f"ns=127.0.0.1:{self.target.namesrv_port}", f"topic={topic}", "size=100",
                 *(f"{key}={value}" for key, value in options.items())]
        return subprocess.Popen([self.options.probe, *words], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)

    def add(self, language, kind, value):
        self.figures.setdefault(kind, {}).setdefault(language, []).append(value)

    def churn(self, language, kind, topic, group, **options):
        process = self.start(language, "churn", topic=topic, group=group, queues=QUEUES, **options)
        lines = [json.loads(line) for line in process.stdout if line.startswith("{")]
        process.wait()
        if not lines or "done" not in lines[-1]:
            raise SystemExit(f"{language}: {lines[-1:]}; see {self.work}/{language}.err")
        for line in lines[:-1]:
            for figure in ("join_ms", "leave_ms", "again_join", "again_leave"):
                self.add(language, f"{kind} {figure}", line[figure])

    def quiet(self, language, number):
        """Nothing is sent: the time until everyone has its queues."""
        self.churn(language, "quiet", self.topic(f"quiet_{language}"), f"quiet_{language}_{number}", tries=self.options.tries)

    def steady(self, language, number):
        topic = self.topic(f"steady_{language}")
        sender = self.send(topic, n=10**9, rate=RATE, stdin="true")
        self.churn(language, "2,000/s", topic, f"steady_{language}_{number}", tries=self.options.tries)
        sender.stdin.close()
        sender.wait()

    def backlog(self, language, number):
        """Each member has 20 threads that take 8 ms for a message: about 2,500 a second of a backlog that lasts."""
        topic = self.topic(f"backlog_{language}_{number}")
        senders = [self.send(topic, n=BACKLOG // 4) for _ in range(4)]
        for sender in senders:
            sender.wait()
        self.churn(language, "backlog", topic, f"backlog_{language}_{number}", tries=self.options.tries, pause_ms=700, work_us=8000)

    def killed(self, language, number):
        """Two processes; from kill -9 of one until the other one has all queues."""
        topic = self.topic(f"killed_{language}")
        for k in range(self.options.tries):
            group = f"killed_{language}_{number}_{k}"
            members = [self.start(language, "stay", topic=topic, group=group, instance=name) for name in ("a", "b")]
            for member in members:
                self.wait_allocated(member, QUEUES // 2, language)
            time.sleep(1.5)
            at = time.time() * 1000
            members[1].kill()
            self.add(language, "killed settle_ms", self.wait_allocated(members[0], QUEUES, language) - at)
            members[1].wait()
            members[0].kill()
            members[0].wait()

    def wait_allocated(self, member, queues, language):
        deadline = time.monotonic() + LINE_SECONDS
        for line in member.stdout:
            event = json.loads(line) if line.startswith("{") else {}
            if event.get("allocated") == queues:
                return event["at_ms"]
            if "error" in event or time.monotonic() > deadline:
                break
        raise SystemExit(f"{language}: never had {queues} queues; see {self.work}/{language}.err")

    def table(self):
        languages = self.options.clients
        rows = [["", *languages], ["---"] * (len(languages) + 1)]
        for kind, by_language in self.figures.items():
            row = [kind]
            for language in languages:
                values = by_language.get(language, [])
                row.append(f"{statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f}, {len(values)})" if values else "")
            rows.append(row)
        return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    release = ROOT / "target" / "release"
    parser.add_argument("--target", choices=["real", "embedded"], default="real")
    parser.add_argument("--clients", default="rust,java,go")
    parser.add_argument("--kinds", default="quiet,steady,backlog,killed")
    parser.add_argument("--rounds", type=int, default=4, help="the clients take turns so often")
    parser.add_argument("--tries", type=int, default=5, help="joins and leaves in a round")
    parser.add_argument("--churn", default=str(release / "examples" / "churn"))
    parser.add_argument("--probe", default=str(release / "examples" / "probe"))
    parser.add_argument("--embedded", default=str(release / "rocketmq-embedded"))
    parser.add_argument("--json", help="a file for the raw figures")
    options = parser.parse_args()
    options.clients, kinds = options.clients.split(","), options.kinds.split(",")
    work = pathlib.Path(tempfile.mkdtemp(prefix="rmq-figures-"))
    run = Run(options, work)
    if "go" in options.clients:
        run.build_go()
    run.target.start()
    try:
        for kind in kinds:
            for number in range(options.rounds):
                turn = number % len(options.clients)
                for language in options.clients[turn:] + options.clients[:turn]:
                    getattr(run, kind)(language, number)
        print(f"medians (smallest to largest, how many), load {os.getloadavg()[0]:.1f}, {options.target} cluster\n\n{run.table()}")
        if options.json:
            pathlib.Path(options.json).write_text(json.dumps(run.figures, indent=1))
    finally:
        run.target.stop()
    shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
