"""Groups of Java and Rust members: who joins, leaves and is killed, and what each must own then."""

import bisect
import contextlib
import hashlib
import json
import time

from probes import PROBE_SECONDS, Member, Probe
from targets import Failure, cluster

# A Java member may be deaf for 30 s after its start: a heartbeat asked for while another is under way is skipped.
SETTLE_SECONDS = 75
CONSUMER_LIST = 38
MESSAGES, MESSAGES_A_SECOND = 10_000, 1_000


def averagely(queues, ids, client_id):
    """Java's AllocateMessageQueueAveragely: consecutive runs, the first `remainder` members one longer."""
    index, (share, remainder) = ids.index(client_id), divmod(len(queues), len(ids))
    first = index * share + min(index, remainder)
    return queues[first:first + share + (index < remainder)]


def by_circle(queues, ids, client_id):
    """Java's AllocateMessageQueueAveragelyByCircle: dealt out one by one."""
    return queues[ids.index(client_id)::len(ids)]


def point(text):
    return int.from_bytes(hashlib.md5(text.encode()).digest()[:4], "big")


def consistent_hash(topic):
    """Java's AllocateMessageQueueConsistentHash with its 10 points a member."""
    def allocate(queues, ids, client_id):
        ring = {point(f"{cid}-{i}"): cid for cid in ids for i in range(10)}
        points = sorted(ring)

        def owner(queue):
            broker, _, number = queue.partition("#")
            place = point(f"MessageQueue [topic={topic}, brokerName={broker}, queueId={number}]")
            return ring[points[bisect.bisect_left(points, place) % len(points)]]

        return [queue for queue in queues if owner(queue) == client_id]
    return allocate


def strategy(name, topic):
    return {"AVG": averagely, "AVG_BY_CIRCLE": by_circle, "CONSISTENT_HASH": consistent_hash(topic)}[name]


class Group:
    """The running members of one group, the messages sent to it, and everyone who was ever a member."""

    def __init__(self, suite, topic, queues, allocate, **options):
        self.suite, self.topic, self.queues, self.allocate = suite, topic, queues, allocate
        self.options = options | {"topic": topic, "group": suite.name("g_" + topic)}
        self.members, self.everyone = {}, []

    def join(self, *names):
        for name in names:
            language = name.rstrip("0123456789")
            self.members[name] = Member(self.suite, language, name, **self.options)
            self.everyone.append(self.members[name])

    def leave(self, *names):
        for name in names:
            self.members.pop(name).leave()

    def kill(self, *names):
        for name in names:
            self.members.pop(name).kill()

    def wait_settled(self, what):
        """Waits until every member owns what the strategy gives it among the ids that each broker lists. Returns the seconds
        until the brokers listed them all, until each Rust member owned its queues, and until each member did."""
        began, listed_after, rust_after = time.monotonic(), None, None
        while True:
            listed = [self.client_ids(port) for port in self.suite.target.broker_ports]
            owned = {name: member.queues() for name, member in self.members.items()}
            expected = self.expected_owners(listed)
            if expected is not None:
                now = time.monotonic() - began
                listed_after = now if listed_after is None else listed_after
                wrong = {name for name, queues in expected.items() if (owned[name] or set()) != queues}
                if rust_after is None and not any(name.startswith("rust") for name in wrong):
                    rust_after = now
                if not wrong:
                    return listed_after, rust_after, now
            ended = [member.label + ": " + member.summary() for member in self.members.values() if member.ended]
            if ended:
                raise Failure(f"{what}: a member ended: {'; '.join(ended)}")
            if time.monotonic() - began > SETTLE_SECONDS:
                raise Failure(f"{what}: not settled after {SETTLE_SECONDS} s\n  owned    {readable(owned)}\n"
                              f"  expected {readable(expected)}\n  listed by the brokers {listed}")
            with Probe.changed:
                Probe.changed.wait(0.1)

    def client_ids(self, broker_port):
        with contextlib.suppress(OSError, ValueError):
            header, body = cluster.ask(broker_port, CONSUMER_LIST, consumerGroup=self.options["group"])
            if header["code"] == 0:
                return sorted(json.loads(body)["consumerIdList"])
        return []

    def expected_owners(self, listed):
        """Owner name to queues, or None while the brokers do not list exactly these members."""
        ids = listed[0]
        if any(other != ids for other in listed) or len(ids) != len(self.members):
            return None
        owners = {client_id.partition("@")[2].partition("#")[0]: client_id for client_id in ids}
        if set(owners) != set(self.members):
            return None
        result = {name: set(self.allocate(self.queues, ids, client_id)) for name, client_id in owners.items()}
        assert sorted(queue for part in result.values() for queue in part) == self.queues
        return result

    def wait_received(self, sent):
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            missing = set(sent) - {event["msgId"] for member in self.everyone for event in member.of("got")}
            if not missing:
                return
            if time.monotonic() > deadline:
                where = sorted({f"{sent[m]['broker']}#{sent[m]['queueId']}@{sent[m]['offset']}" for m in missing})
                raise Failure(f"{len(missing)} of {len(sent)} messages did not arrive: {', '.join(where[:12])}")
            with Probe.changed:
                Probe.changed.wait(0.3)

    def received(self):
        return [event for member in self.everyone for event in member.of("got")]


class Sender:
    """Sends until it is stopped, so that messages are under way whenever something changes."""

    def __init__(self, suite, topic, language="rust", rate=MESSAGES_A_SECOND):
        self.probe = Probe(suite, language, "produce", topic=topic, n=10**9, size=36, tag="TagA", rate=rate, stdin="true",
                           group=suite.name("p_" + topic))

    def check(self):
        if self.probe.ended:
            raise Failure(f"sending ended too soon: {self.probe.summary()}")

    def stop(self, at_least=MESSAGES):
        """Stops once it has sent so many, and returns what was sent, by message id."""
        deadline = time.monotonic() + PROBE_SECONDS
        while len(self.probe.of("sent")) < at_least:
            self.check()
            if time.monotonic() > deadline:
                raise Failure(f"only {len(self.probe.of('sent'))} messages were sent; {self.probe.summary()}")
            time.sleep(0.1)
        self.probe.process.stdin.close()
        sent = self.probe.finish().of("sent")
        bad = [event for event in sent if event["status"] != "SEND_OK"]
        if bad:
            raise Failure(f"not stored well: {bad[:3]}")
        return {event["msgId"]: event for event in sent}


def check_arrived(sent, got, receiver):
    """Every message sent is among those got, each from the place where it was stored, and nothing else is. Returns how many
    came more than once."""
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


def readable(owners):
    if owners is None:
        return "unknown while the brokers list others than the running members"
    return {name: sorted(queues) if queues is not None else "nothing said yet" for name, queues in owners.items()}
