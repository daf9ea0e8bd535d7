#!/usr/bin/env python3
"""The Java client and this one in the same topics and groups, on the embedded broker or on a real cluster.

Each scenario prints PASS or FAIL with its seconds and, when it failed, the cause. See README.md.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import kinds  # noqa: E402
from groups import SETTLE_SECONDS, Group, Sender, averagely, check_arrived, strategy  # noqa: E402
from probes import Probe  # noqa: E402
from sessions import Session  # noqa: E402
from targets import EmbeddedTarget, Failure, RealTarget, cluster  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PROGRAM_SECONDS = 400
BODY_BYTES = 36
MAX_OFFSET, TOPIC_ROUTE = 30, 105


class Suite:
    def __init__(self, options, work):
        self.work, self.processes = work, 0
        self.probe, self.quickstart_program = options.probe, options.quickstart
        self.run_id = f"{int(time.time())}_{random.randrange(1000)}"
        self.running_sessions = {}
        self.target = {"real": RealTarget, "embedded": EmbeddedTarget}[options.target](work, options)

    def command(self, language, words):
        if language == "java" or self.probe == "java":
            return cluster.java_command("Probe.java", words, self.work)
        return [self.probe, *words]

    def sessions(self):
        """A session of each client; one that has ended, as after a failure, is followed by another one."""
        for language in ("rust", "java"):
            if language not in self.running_sessions or self.running_sessions[language].process.poll() is not None:
                self.running_sessions[language] = Session(self, language)
        for session in self.running_sessions.values():
            session.wait_for(lambda: session.of("ready"), SETTLE_SECONDS, "ready line")
        return self.running_sessions

    def end_sessions(self):
        for session in self.running_sessions.values():
            session.process.stdin.close()
            session.finish()

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
        for name in ("consume", "message_admin", "rebalance", "request_reply", "shutdown_in_listener", "transactions"):
            command += ["--test", name]
        run = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PROGRAM_SECONDS,
                             env={**os.environ, "ROCKETMQ_NAMESRV": f"127.0.0.1:{self.target.namesrv_port}"})
        results = [line for line in run.stdout.splitlines() if line.startswith("test result:")]
        if run.returncode != 0 or not results:
            raise Failure(f"status {run.returncode}:\n{run.stdout[-6000:]}\n{run.stderr[-2000:]}")
        return " ".join(line.removeprefix("test result: ").split(";")[0] for line in results)

    def admin(self, *words):
        home = self.work / "admin"
        home.mkdir(exist_ok=True)
        return cluster.run_admin(cluster.admin_command(list(words), self.target.namesrv_port, home), home)

    def create_topic(self, topic, *queues_of_broker, with_admin_tool=False):
        """Makes a topic with so many queues on each broker, or resizes it, and returns the queues in their order."""
        answers = []
        for port, queues in zip(self.target.broker_ports, queues_of_broker):
            if with_admin_tool:  # it takes seconds
                answers.append(self.admin("updateTopic", "-b", f"127.0.0.1:{port}", "-t", topic, "-r", str(queues), "-w", str(queues)))
            else:
                answers.append(cluster.make_topic(port, topic, queues))
        expected = {f"broker-{letter}": queues for letter, queues in zip("ab", queues_of_broker)}
        deadline = time.monotonic() + 30
        while True:
            header, body = cluster.ask(self.target.namesrv_port, TOPIC_ROUTE, topic=topic)
            known = {data["brokerName"]: data["readQueueNums"] for data in json.loads(body)["queueDatas"]} if header["code"] == 0 else {}
            if known == expected:
                return [f"{broker}#{queue}" for broker, queues in expected.items() for queue in range(queues)]
            if time.monotonic() > deadline:
                raise Failure(f"{topic} was not created, the route is {body!r} and the answers were {answers}")
            time.sleep(0.2)

    def max_offset(self, topic, queue=0):
        """The sum over the brokers."""
        total = 0
        for port in self.target.broker_ports:
            header, _ = cluster.ask(port, MAX_OFFSET, topic=topic, queueId=str(queue))
            total += int(header["extFields"]["offset"]) if header["code"] == 0 else 0
        return total


def mixed_group(name, *queues_of_broker):
    """Java and Rust members join, leave and are killed: each queue has one owner, the one the strategy gives it to."""
    def scenario(suite):
        topic = suite.name(f"mixed_{name}_{sum(queues_of_broker)}")
        queues = suite.create_topic(topic, *queues_of_broker)
        group = Group(suite, topic, queues, strategy(name, topic), strategy=name)
        sender, steps, slowest = Sender(suite, topic), [], 0
        for what, change, names in [
            ("start", group.join, ["java1", "rust1"]),
            ("join", group.join, ["java2", "rust2"]),
            ("leave of Rust", group.leave, ["rust2"]),
            ("leave of Java", group.leave, ["java2"]),
            ("join again", group.join, ["java3", "rust3"]),
            ("kill of Java", group.kill, ["java3"]),
            ("kill of Rust", group.kill, ["rust3"]),
        ]:
            sender.check()
            change(*names)
            known, rust, settled = group.wait_settled(what)
            slowest = max(slowest, rust - known)
            steps.append(f"{what} {settled:.1f} s")
            print(f"  {what}: brokers list the {len(group.members)} members after {known:.1f} s, each queue of a Rust member "
                  f"has its owner after {rust:.1f} s, each queue after {settled:.1f} s", flush=True)
        sent = sender.stop()
        group.wait_received(sent)
        group.leave(*list(group.members))
        repeated = check_arrived(sent, group.received(), "the group")
        return (f"{len(sent)} messages, {repeated} repeated; slowest Rust side {slowest:.1f} s after the lists; "
                f"{', '.join(steps)}")
    return scenario


def group_of_three(language):
    """Three members of one language, one after the other, and back to one."""
    def scenario(suite):
        topic = suite.name(f"three_{language}")
        queues = suite.create_topic(topic, 4, 4)
        group, sender = Group(suite, topic, queues, averagely), Sender(suite, topic, language)
        for change, number in [(group.join, 1), (group.join, 2), (group.join, 3), (group.leave, 1), (group.leave, 3)]:
            change(f"{language}{number}")
            group.wait_settled(f"{change.__name__} of {number}")
        sent = sender.stop(at_least=1000)
        group.wait_received(sent)
        group.leave(f"{language}2")
        return f"{len(sent)} messages, {check_arrived(sent, group.received(), 'the group')} repeated"
    return scenario


def retry_to_dlq(language):
    """A message that fails, and fails again when its delay is over, goes to the dead letters and holds nothing up."""
    def scenario(suite):
        topic, count = suite.name(f"dlq_{language}"), 5
        suite.create_topic(topic, 2, 2)
        options = {"topic": topic, "group": suite.name(f"g_dlq_{language}"), "instance": f"dlq_{language}"}
        suite.produce(language, topic, count)
        began = time.monotonic()
        consumer = Probe(suite, language, "consume", n=10**9, ms=10**9, stdin="true", fail=10**9, max=1, poll=3000, **options)
        dead_letters = f"%DLQ%{options['group']}"
        consumer.wait_for(lambda: suite.max_offset(dead_letters) == count, SETTLE_SECONDS, f"{count} dead letters")
        took = time.monotonic() - began
        consumer.leave()
        times = sorted((event["failed"], event["reconsume"]) for event in consumer.of("failed"))
        expected = sorted((f"k{i}", again) for i in range(count) for again in (0, 1))
        if times != expected:
            raise Failure(f"tries were {times}")
        return f"{count} messages, 2 tries each, {took:.1f} s"
    return scenario


def offsets_kept(language):
    """A member that comes back begins where it stopped."""
    def scenario(suite):
        topic, first, second = suite.name(f"kept_{language}"), 100, 50
        suite.create_topic(topic, 4, 4)
        options = {"topic": topic, "group": suite.name(f"g_kept_{language}"), "instance": f"kept_{language}"}
        received = []
        for count in (first, second):
            sent = suite.produce(language, topic, count)
            consumer = Probe(suite, language, "consume", n=count, ms=SETTLE_SECONDS * 1000, linger=500, **options).finish()
            repeated = check_arrived({event["msgId"]: event for event in sent}, consumer.of("got"), consumer.label)
            if repeated:
                raise Failure(f"{repeated} of {count} messages came twice")
            received.append(len(consumer.of("got")))
        return f"{received[0]}, then {received[1]} messages"
    return scenario


def resize(suite):
    """A topic grows and shrinks under its consumers: queues that are new are worked on, those that went are left."""
    topic = suite.name("resize")
    group = Group(suite, topic, suite.create_topic(topic, 2, 2, with_admin_tool=True), averagely, poll=3000)
    sender = Sender(suite, topic, rate=200)
    group.join("rust1", "rust2")  # a Java member looks at its queues 20 s later only
    group.wait_settled("start")
    steps = []
    for sizes in ((4, 4), (2, 2)):
        group.queues = suite.create_topic(topic, *sizes)
        steps.append(f"{sum(sizes)} queues {group.wait_settled(f'{sizes} queues')[2]:.1f} s")
        sender.check()
    # The sender may still hold the route of eight queues, and what it sends there stays there until they are back.
    group.queues = suite.create_topic(topic, 4, 4)
    group.wait_settled("grown again")
    sent = sender.stop(at_least=1000)
    group.wait_received(sent)
    group.leave("rust1", "rust2")
    return f"{len(sent)} messages, {check_arrived(sent, group.received(), 'the group')} repeated; {', '.join(steps)}"


def broker_restart(suite):
    """One of two brokers is killed and comes back: the other one's queues are worked on all the while, and nothing is lost."""
    topic = suite.name("restart")
    group = Group(suite, topic, suite.create_topic(topic, 4, 4), averagely, poll=3000)
    sender = Sender(suite, topic, rate=200)
    group.join("rust1", "rust2")
    group.wait_settled("start")
    suite.target.nodes.kill("broker-b")
    killed_at, before = time.monotonic(), len(sender.probe.of("sent"))
    sender.probe.wait_for(lambda: len(sender.probe.of("sent")) > before + 400, SETTLE_SECONDS, "sends while a broker is dead")
    suite.target.nodes.start("broker-b")
    down = time.monotonic() - killed_at
    settled = group.wait_settled("restart")[1]
    sent = sender.stop(at_least=1000)
    group.wait_received(sent)
    group.leave("rust1", "rust2")
    received = group.received()
    foreign = {event["msgId"] for event in received} - set(sent)
    # A send that the dying broker had stored and not answered is tried again: the first copy is there as well, under the same id.
    return (f"{len(sent)} messages, {len(received) - len(set(e['msgId'] for e in received))} repeated, {len(foreign)} not "
            f"confirmed; broker down {down:.1f} s, settled {settled:.1f} s after")


def check_content(event, tag):
    number = event["key"][1:]
    body = f"m{number} ".ljust(BODY_BYTES, "x")
    expected = {"tag": tag, "key": f"k{number}", "len": BODY_BYTES, "body": body, "reconsume": 0}
    wrong = {field: (event[field], value) for field, value in expected.items() if event[field] != value}
    if wrong:
        raise Failure(f"message {event['msgId']}: field (received, expected): {wrong}")


SCENARIOS = {
    "rust_to_java": Suite.rust_to_java,
    "java_to_rust": Suite.java_to_rust,
    "tag_filter": Suite.tag_filter,
    **{f"mixed_{name.lower()}_{sum(queues)}": mixed_group(name, *queues)
       for name in ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH") for queues in ((4, 4), (4, 3))},
    **{f"{kind.__name__}_{language}": kind(language)
       for kind in (group_of_three, retry_to_dlq, offsets_kept) for language in ("java", "rust")},
    "resize": resize,
    "broker_restart": broker_restart,
    "quickstart": Suite.quickstart,
    **{name: scenario for name, scenario in kinds.SCENARIOS.items() if name != "transactions"},
    "rust_tests": Suite.rust_tests,
    # Last: a real broker that has checked so many goes on checking with a whole core, and members that start then find no answer in time.
    "transactions": kinds.SCENARIOS["transactions"],
}
# The program has one process for all its brokers; the tests run on an embedded cluster of their own anyway; Java has no quickstart.
ONLY_REAL, ONLY_RUST = {"rust_tests", "broker_restart"}, {"quickstart", "rust_tests"}


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
    Probe.end_all(lasting=not passed)
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
            if any(probe.lasting for probe in Probe.running):
                timed("sessions end", suite.end_sessions, outcomes)
    finally:
        Probe.end_all()
        timed(f"{options.target} ends", suite.target.stop, outcomes)
        if not options.keep:
            shutil.rmtree(work, ignore_errors=True)
    print(f"{outcomes.count(True)} passed, {outcomes.count(False)} failed", flush=True)
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
