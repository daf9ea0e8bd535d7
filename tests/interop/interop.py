#!/usr/bin/env python3
"""The Java client and this one in the same topics and groups, on the embedded broker or on a real cluster.

Each scenario prints PASS or FAIL with its seconds and, when it failed, the cause. See README.md.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from importlib.machinery import SourceFileLoader

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
cluster = SourceFileLoader("cluster", str(HERE.parent / "real-cluster" / "cluster")).load_module()

# A Java member may be deaf for 30 s after its start: a heartbeat asked for while another is under way is skipped.
SETTLE_SECONDS = 75
PROBE_SECONDS = 120
PROGRAM_SECONDS = 400
BODY_BYTES = 36
CONSUMER_LIST, TOPIC_ROUTE = 38, 105


class Failure(Exception):
    """A broken expectation, with what was seen instead."""


class RealTarget:
    """A name server and two masters from the published jars."""

    def __init__(self, work, _options):
        self.nodes = cluster.Cluster(work / "cluster")
        self.namesrv_port, self.broker_ports = 0, []

    def start(self):
        self.namesrv_port = self.nodes.up(ns=0, brokers="broker-a:0,broker-b:0")
        self.broker_ports = [node["port"] for node in self.nodes.state()["nodes"].values() if node["kind"] == "broker"]

    def stop(self):
        if self.nodes.state_file.exists():
            self.nodes.down()


class EmbeddedTarget:
    """The program of this project that any RocketMQ client can talk to."""

    def __init__(self, work, options):
        self.program, self.log = options.embedded, work / "embedded.err"
        self.namesrv_port, self.broker_ports, self.process = 0, [], None

    def start(self):
        self.namesrv_port = cluster.claim(0, (0,))
        first = cluster.claim(0, (0, 10), {self.namesrv_port})
        self.broker_ports = [first, first + 10]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [self.program, "--namesrv-port", str(self.namesrv_port), "--broker-port", str(first), "--brokers", "2"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True)
        ready = threading.Event()
        threading.Thread(target=self.read_output, args=(ready,), daemon=True).start()
        if not ready.wait(30) or self.process.poll() is not None:
            raise Failure(f"the embedded broker printed no ready line within 30 s:\n{tail(self.log)}")

    def read_output(self, ready):
        for line in self.process.stdout:
            if line.startswith("ready"):
                ready.set()
        ready.set()

    def stop(self):
        if self.process is None:
            return
        crashed = self.process.poll()
        if crashed is not None:
            raise Failure(f"the embedded broker ended by itself with status {crashed}:\n{tail(self.log)}")
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Failure("the embedded broker did not end within 15 s after SIGTERM") from None


class Probe:
    """One running probe process and the JSON lines it has written so far."""

    changed = threading.Condition()
    running = []

    def __init__(self, suite, language, verb, **options):
        self.label = f"{language} {verb}" + (f" {options['instance']}" if "instance" in options else "")
        self.language, self.options, self.events, self.ended = language, options, [], False
        words = [verb, f"ns=127.0.0.1:{suite.target.namesrv_port}", *(f"{key}={value}" for key, value in options.items())]
        suite.processes += 1
        file = f"{suite.processes:03}-{options.get('instance', language)}-{verb}"
        self.stderr, self.transcript = suite.work / f"{file}.err", suite.work / f"{file}.jsonl"
        with open(self.stderr, "wb") as log:
            self.process = subprocess.Popen(suite.command(language, words), cwd=suite.work, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=log, text=True, encoding="utf-8",
                                            env=os.environ | {"PROBE_LOG": str(suite.work / f"{file}.log")})
        Probe.running.append(self)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        with open(self.transcript, "w", encoding="utf-8") as transcript:
            for line in self.process.stdout:
                transcript.write(f"{time.strftime('%H:%M:%S')} {line}")
                if not line.startswith("{"):
                    continue
                with contextlib.suppress(json.JSONDecodeError):  # a killed process may leave half a line
                    event = json.loads(line)
                    with Probe.changed:
                        self.events.append(event)
                        Probe.changed.notify_all()
        with Probe.changed:
            self.ended = True
            Probe.changed.notify_all()

    def of(self, kind):
        with Probe.changed:
            return [event for event in self.events if kind in event]

    def finish(self, seconds=PROBE_SECONDS):
        """Waits for the end of a probe that ends by itself and must have gone well."""
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.label} did not end within {seconds} s; {self.summary()}") from None
        self.reader.join(10)
        if status != 0 or self.of("error"):
            raise Failure(f"{self.label} ended with status {status}; {self.summary()}")
        return self

    def leave(self):
        """A clean shutdown, asked for by closing its standard input."""
        self.process.stdin.close()
        self.finish(60)
        if not self.of("done"):
            raise Failure(f"{self.label} wrote no done line; {self.summary()}")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.reader.join(10)

    def summary(self):
        errors = [event["error"] for event in self.of("error")]
        text = f"sent {len(self.of('sent'))}, got {len(self.of('got'))}, errors {errors}"
        log = tail(self.stderr)
        return text + (f"\n{log}" if log else "")

    @classmethod
    def end_all(cls):
        for probe in cls.running:
            if probe.process.poll() is None:
                probe.process.kill()
                probe.process.wait()
        cls.running.clear()


class Member(Probe):
    """A consumer that stays in its group until it is told to leave."""

    def __init__(self, suite, language, instance, **options):
        super().__init__(suite, language, "consume", instance=instance, n=10**9, ms=10**9, stdin="true", **options)
        self.instance, self.topic = instance, options["topic"]

    def queues(self):
        """The queues of its last `assigned` line, or None before the first."""
        lines = [event for event in self.of("assigned") if event["assigned"] == self.topic]
        return set(lines[-1]["queues"]) if lines else None


class Sender(threading.Thread):
    """Sends bursts until it is stopped, so that messages are under way whenever a group changes."""

    def __init__(self, suite, topic):
        super().__init__(daemon=True)
        self.suite, self.topic, self.sent, self.failure = suite, topic, {}, None
        self.stopping = threading.Event()

    def run(self):
        try:
            while not self.stopping.is_set():
                burst = self.suite.produce("rust", self.topic, 40)
                self.sent |= {event["msgId"]: event for event in burst}
                self.stopping.wait(1)
        except (Failure, OSError) as failure:
            self.failure = failure

    def stop(self):
        self.stopping.set()
        self.join(PROBE_SECONDS)
        if self.failure:
            raise Failure(f"sending while the group changed: {self.failure}")
        return self.sent


class Suite:
    def __init__(self, options, work):
        self.work, self.processes = work, 0
        self.probe, self.quickstart_program = options.probe, options.quickstart
        self.run_id = f"{int(time.time())}_{random.randrange(1000)}"
        self.target = {"real": RealTarget, "embedded": EmbeddedTarget}[options.target](work, options)

    def command(self, language, words):
        if language == "java" or self.probe == "java":
            return cluster.java_command("Probe.java", words, self.work)
        return [self.probe, *words]

    def name(self, kind):
        return f"interop_{kind}_{self.run_id}"

    def produce(self, language, topic, count, tag="TagA"):
        probe = Probe(self, language, "produce", topic=topic, n=count, size=BODY_BYTES, tag=tag,
                      group=self.name(f"p_{language}"))
        sent = probe.finish().of("sent")
        bad = [event for event in sent if event["status"] != "SEND_OK"]
        if len(sent) != count or bad:
            raise Failure(f"{probe.label}: {len(sent)} of {count} sent, not stored well: {bad[:3]}")
        return sent

    def send_and_receive(self, sender, receiver):
        """1,000 messages with tags and keys: each arrives as it was sent, from where it was stored."""
        topic, count = self.name(f"{sender}_to_{receiver}"), 1000
        sent = self.produce(sender, topic, count, "TagA")
        consumer = Probe(self, receiver, "consume", topic=topic, group=self.name(f"g_{receiver}"),
                         instance="only", n=count, ms=SETTLE_SECONDS * 1000)
        got = consumer.finish().of("got")
        repeated = check_arrived({event["msgId"]: event for event in sent}, got, consumer.label)
        for event in got:
            check_content(event, "TagA")
        keys = {event["key"] for event in got}
        if keys != {f"k{i}" for i in range(count)}:
            raise Failure(f"{count - len(keys)} keys are missing")
        return f"{count} messages over {len({(e['broker'], e['queueId']) for e in got})} queues, {repeated} repeated"

    def rust_to_java(self):
        return self.send_and_receive("rust", "java")

    def java_to_rust(self):
        return self.send_and_receive("java", "rust")

    def tag_filter(self):
        """Consumers of two tags get those alone. The third tag is sent first, so that who got the rest has passed it."""
        topic, each = self.name("tags"), 100
        sent = {}
        for tag in ("TagC", "TagA", "TagB"):
            for language in ("rust", "java"):
                for event in self.produce(language, topic, each, tag):
                    sent[event["msgId"]] = event | {"tag": tag}
        wanted = {msg_id: event for msg_id, event in sent.items() if event["tag"] != "TagC"}
        consumers = [
            Probe(self, language, "consume", topic=topic, group=self.name(f"g_tags_{language}"), instance=f"tags_{language}",
                  n=len(wanted), ms=SETTLE_SECONDS * 1000, sub="TagA || TagB")
            for language in ("rust", "java")
        ]
        for consumer in consumers:
            got = consumer.finish().of("got")
            check_arrived(wanted, got, consumer.label)
            for event in got:
                check_content(event, sent[event["msgId"]]["tag"])
        return f"{len(wanted)} of {len(sent)} messages for each"

    def mixed_group(self):
        """Java and Rust members join, leave and are killed: each queue has one owner, the one AVG gives it to."""
        topic, group = self.name("mixed"), self.name("g_mixed")
        self.create_topic(topic, queues_per_broker=4)
        options = {"topic": topic, "group": group, "strategy": "AVG"}
        sender = Sender(self, topic)
        sender.start()
        members, everyone, steps = {}, [], []

        def join(*names):
            for name in names:
                members[name] = Member(self, "java" if name.startswith("java") else "rust", name, **options)
                everyone.append(members[name])

        def leave(name):
            members.pop(name).leave()

        def kill(name):
            members.pop(name).kill()

        try:
            for what, change, names in [
                ("start", join, ["java1", "rust1"]),
                ("join", join, ["java2", "rust2"]),
                ("leave of Rust", leave, ["rust2"]),
                ("leave of Java", leave, ["java2"]),
                ("join again", join, ["java3", "rust3"]),
                ("kill of Java", kill, ["java3"]),
                ("kill of Rust", kill, ["rust3"]),
            ]:
                if sender.failure:
                    sender.stop()
                change(*names)
                known, settled = self.wait_settled(what, topic, group, members)
                steps.append(f"{what} {settled:.1f} s")
                print(f"  {what}: brokers list the {len(members)} members after {known:.1f} s, "
                      f"each queue has its owner after {settled:.1f} s", flush=True)
            sent = sender.stop()
            self.wait_received(sent, everyone)
            for name in list(members):
                leave(name)
        finally:
            sender.stopping.set()
        received = [event for member in everyone for event in member.of("got")]
        repeated = check_arrived(sent, received, "the group")
        return f"{len(sent)} messages, {repeated} repeated; {', '.join(steps)}"

    def quickstart(self):
        """The README's first command, on this target."""
        run = subprocess.run([self.quickstart_program, "--namesrv", f"127.0.0.1:{self.target.namesrv_port}"],
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PROGRAM_SECONDS)
        last = run.stdout.strip().splitlines()[-1:] or [""]
        if run.returncode != 0 or not last[0].startswith("sent=10000 delivered=10000 lost=0 "):
            raise Failure(f"status {run.returncode}:\n{run.stdout}\n{run.stderr}")
        return last[0]

    def rust_tests(self):
        """The integration tests that take any cluster."""
        command = ["cargo", "test", "--locked", "--no-fail-fast"]
        for name in ("consume", "rebalance", "shutdown_in_listener"):
            command += ["--test", name]
        run = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PROGRAM_SECONDS,
                             env={**os.environ, "ROCKETMQ_NAMESRV": f"127.0.0.1:{self.target.namesrv_port}"})
        results = [line for line in run.stdout.splitlines() if line.startswith("test result:")]
        if run.returncode != 0 or not results:
            raise Failure(f"status {run.returncode}:\n{run.stdout[-6000:]}\n{run.stderr[-2000:]}")
        return " ".join(line.removeprefix("test result: ").split(";")[0] for line in results)

    def create_topic(self, topic, queues_per_broker):
        words = ["-c", "DefaultCluster", "-t", topic, "-r", str(queues_per_broker), "-w", str(queues_per_broker)]
        home = self.work / "admin"
        home.mkdir(exist_ok=True)
        printed = cluster.run_admin(cluster.admin_command(["updateTopic", *words], self.target.namesrv_port, home), home)
        deadline = time.monotonic() + 30
        while True:
            _, route = cluster.ask(self.target.namesrv_port, TOPIC_ROUTE, topic=topic)
            counts = re.findall(rb'"readQueueNums":(\d+)', route)
            if counts == [str(queues_per_broker).encode()] * len(self.target.broker_ports):
                return
            if time.monotonic() > deadline:
                raise Failure(f"{topic} was not created, the route is {route!r}; the admin tool said:\n{printed}")
            time.sleep(0.2)

    def wait_settled(self, what, topic, group, members):
        """Waits until every member owns what AVG gives it among the ids that each broker lists."""
        began, seen = time.monotonic(), None
        while True:
            listed = [self.client_ids(port, group) for port in self.target.broker_ports]
            owned = {name: member.queues() for name, member in members.items()}
            expected = expected_owners(listed, members, topic)
            if expected is not None and seen is None:
                seen = time.monotonic() - began
            if expected is not None and owned == expected:
                return seen, time.monotonic() - began
            ended = [member.label + ": " + member.summary() for member in members.values() if member.ended]
            if ended:
                raise Failure(f"{what}: a member ended: {'; '.join(ended)}")
            if time.monotonic() - began > SETTLE_SECONDS:
                raise Failure(f"{what}: not settled after {SETTLE_SECONDS} s\n  owned    {readable(owned)}\n"
                              f"  expected {readable(expected)}\n  listed by the brokers {listed}")
            with Probe.changed:
                Probe.changed.wait(0.3)

    def client_ids(self, broker_port, group):
        with contextlib.suppress(OSError, ValueError):
            header, body = cluster.ask(broker_port, CONSUMER_LIST, consumerGroup=group)
            if header["code"] == 0:
                return sorted(json.loads(body)["consumerIdList"])
        return []

    def wait_received(self, sent, members):
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            missing = set(sent) - {event["msgId"] for member in members for event in member.of("got")}
            if not missing:
                return
            if time.monotonic() > deadline:
                where = sorted({f"{sent[m]['broker']}#{sent[m]['queueId']}@{sent[m]['offset']}" for m in missing})
                raise Failure(f"{len(missing)} of {len(sent)} messages did not arrive: {', '.join(where[:12])}")
            with Probe.changed:
                Probe.changed.wait(0.3)


def expected_owners(listed, members, topic):
    """Owner name to queues, or None while the brokers do not list exactly these members."""
    ids = listed[0]
    if any(other != ids for other in listed) or len(ids) != len(members):
        return None
    owners = {client_id.partition("@")[2].partition("#")[0]: client_id for client_id in ids}
    if set(owners) != set(members):
        return None
    queues = [f"broker-{letter}#{queue}" for letter in "ab" for queue in range(4)]
    result = {name: set(averagely(queues, ids, client_id)) for name, client_id in owners.items()}
    assert sorted(queue for part in result.values() for queue in part) == queues
    return result


def averagely(queues, ids, client_id):
    """Java's AllocateMessageQueueAveragely: consecutive runs, the first `remainder` members one longer."""
    index, (share, remainder) = ids.index(client_id), divmod(len(queues), len(ids))
    first = index * share + min(index, remainder)
    return queues[first:first + share + (index < remainder)]


def check_arrived(sent, got, receiver):
    """Every message sent is among those got, each from the place where it was stored, and nothing else is."""
    ids = [event["msgId"] for event in got]
    missing, foreign = set(sent) - set(ids), set(ids) - set(sent)
    if missing or foreign:
        raise Failure(f"{receiver}: {len(missing)} of {len(sent)} messages missing, {len(foreign)} not asked for, "
                      f"such as {sorted(missing)[:2]} {sorted(foreign)[:2]}")
    for event in got:
        stored = sent[event["msgId"]]
        if any(event[field] != stored[field] for field in ("broker", "queueId", "offset")):
            raise Failure(f"{receiver}: stored as {stored}, received as {event}")
    return len(ids) - len(set(ids))


def check_content(event, tag):
    number = event["key"][1:]
    body = f"m{number} ".ljust(BODY_BYTES, "x")
    expected = {"tag": tag, "key": f"k{number}", "len": BODY_BYTES, "body": body, "reconsume": 0}
    wrong = {field: (event[field], value) for field, value in expected.items() if event[field] != value}
    if wrong:
        raise Failure(f"message {event['msgId']}: field (received, expected): {wrong}")


def readable(owners):
    if owners is None:
        return "unknown while the brokers list others than the running members"
    return {name: sorted(queues) if queues is not None else "nothing said yet" for name, queues in owners.items()}


def tail(path, lines=12):
    with contextlib.suppress(OSError):
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
    return ""


SCENARIOS = {
    "rust_to_java": Suite.rust_to_java,
    "java_to_rust": Suite.java_to_rust,
    "tag_filter": Suite.tag_filter,
    "mixed_group": Suite.mixed_group,
    "quickstart": Suite.quickstart,
    "rust_tests": Suite.rust_tests,
}
# The tests run on an embedded cluster of their own anyway; and Java has no quickstart.
ONLY_REAL, ONLY_RUST = {"rust_tests"}, {"quickstart", "rust_tests"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    target_dir = ROOT / "target" / "release"
    parser.add_argument("--target", choices=["embedded", "real"], required=True)
    parser.add_argument("--probe", default=str(target_dir / "examples" / "probe"),
                        help="this client's probe, or 'java' to let Java play both sides")
    parser.add_argument("--embedded", default=str(target_dir / "rocketmq-embedded"), help="the embedded broker's program")
    parser.add_argument("--quickstart", default=str(target_dir / "examples" / "quickstart"), help="the quickstart example")
    parser.add_argument("--only", help=f"some of {','.join(SCENARIOS)}")
    parser.add_argument("--keep", help="a folder for logs and stores, kept; a temporary one is removed")
    options = parser.parse_args()
    programs = ([options.probe, options.quickstart] if options.probe != "java" else []) + ([options.embedded] if options.target == "embedded" else [])
    for program in programs:
        if shutil.which(program) is None:
            parser.error(f"no program {program}")
    left_out = (ONLY_REAL if options.target == "embedded" else set()) | (ONLY_RUST if options.probe == "java" else set())
    options.only = options.only.split(",") if options.only else [name for name in SCENARIOS if name not in left_out]
    unknown = set(options.only) - set(SCENARIOS)
    if unknown:
        parser.error(f"no scenario {', '.join(unknown)}; there are {', '.join(SCENARIOS)}")
    return options


def timed(name, action, outcomes):
    began = time.monotonic()
    try:
        detail, passed = action() or "", True
    except (Failure, cluster.ClusterError, subprocess.TimeoutExpired, OSError, KeyError, ValueError) as failure:
        detail, passed = f"{type(failure).__name__}: {failure}", False
    Probe.end_all()
    outcomes.append(passed)
    print(f"{'PASS' if passed else 'FAIL'} {name} {time.monotonic() - began:.1f} s {detail}", flush=True)
    return passed


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    work = pathlib.Path(options.keep or tempfile.mkdtemp(prefix="rmq-interop-")).resolve()
    work.mkdir(parents=True, exist_ok=True)
    suite, outcomes = Suite(options, work), []
    try:
        if timed(f"{options.target} starts", suite.target.start, outcomes):
            for name in options.only:
                timed(name, lambda: SCENARIOS[name](suite), outcomes)
    finally:
        Probe.end_all()
        timed(f"{options.target} ends", suite.target.stop, outcomes)
        if not options.keep:
            shutil.rmtree(work, ignore_errors=True)
    print(f"{outcomes.count(True)} passed, {outcomes.count(False)} failed", flush=True)
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
