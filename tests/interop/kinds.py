"""Every kind of message from each client to the other: what arrives must be what was sent, and when it should."""

import hashlib
import time
from collections import Counter, defaultdict

from sessions import Session, stop_all
from targets import Failure

COUNT, FEW, SIZE, ASKERS = 1000, 3, 100, 4
KINDS = ("sync", "async", "oneway", "queue", "selector", "batch", "auto")
# Java's names, and the bits 8 to 10 of a message's system flag.
COMPRESSIONS = {"LZ4": 1, "ZSTD": 2, "ZLIB": 3}
COMPRESS_OVER = 4096
DIRECTIONS = (("rust", "java"), ("java", "rust"))


def content(name, number, size=SIZE, **user):
    """What a message of a session must be like."""
    key = f"{name}_{number}"
    return {"key": key, "tag": f"Tag{number % 3}", "flag": number + 1, "len": size, "md5": hashlib.md5(body(key, size)).hexdigest(),
            "user": {"user_number": str(number), "user_word": "Größe €"} | user}


def body(key, size):
    return (f"{key} " * (size // len(key) + 1))[:size].encode()


class Exchange:
    """One client sends to a topic of its own, the other one receives."""

    def __init__(self, suite, kind, sender, receiver, queues=(4, 4), space="", topic=None, **options):
        sessions = suite.sessions()
        self.suite, self.name = suite, f"{sender} to {receiver}"
        self.sender, self.receiver = sessions[sender], sessions[receiver]
        self.topic = topic or suite.name(f"{kind}_{sender}")
        suite.create_topic(f"{space}%{self.topic}" if space else self.topic, *queues)
        self.space = {"space": space} if space else {}
        self.consumer = self.receiver.do("consume", topic=self.topic, group=suite.name(f"g_{kind}_{receiver}"), **self.space, **options)

    def send(self, name, verb="send", by=None, **options):
        """Begins to send messages of that name."""
        by = by or self.sender
        group = {"group": self.suite.name(f"p_{name}_{by.language}")} | options
        return by.do(verb, topic=self.topic, name=name, **self.space, **group)

    def wait_for(self, expected):
        """Waits until every message that is expected, by key, has come, and gives all that came."""
        def missing():
            return expected.keys() - {event["key"] for event in self.consumer.of("got")}
        try:
            self.consumer.wait_for(lambda: not missing(), "arrival of all messages")
        except Failure as failure:
            raise Failure(f"{self.name}: {len(missing())} missing, such as {sorted(missing())[:5]}; {failure}") from None
        return self.consumer.of("got")

    def check(self, got, expected, **fields):
        """Whatever came is expected, and is as it was sent. Says how often each came."""
        for event in got:
            if event["key"] not in expected:
                raise Failure(f"{self.name}: not to be delivered: {event}")
            check_fields(self.name, event, expected[event["key"]] | {"topic": self.topic} | fields)
        return Counter(event["key"] for event in got)


def check_fields(where, event, expected):
    wrong = {field: (event[field], value) for field, value in expected.items() if event[field] != value}
    if wrong:
        raise Failure(f"{where}: message {event['key']}: field (received, expected): {wrong}")


def contents(name, count, size=SIZE):
    return {message["key"]: message for message in (content(name, number, size) for number in range(count))}


def places(command):
    """Where messages were stored, by number; a batch has one place for all and an id for each."""
    stored = {}
    for event in command.of("sent"):
        if event["status"] != "SEND_OK":
            raise Failure(f"{command.label}: not stored well: {event}")
        for number, msg_id in enumerate(event["msgId"].split(","), event["sent"]):
            stored[number] = {"msgId": msg_id} | ({field: event[field] for field in ("broker", "queueId", "offset")}
                                                 if event.get("count", 1) == 1 else {"broker": event["broker"], "queueId": event["queueId"]})
    return stored


def send_kinds(suite):
    """1,000 messages of each kind each way: content, id, and the place where each was stored."""
    exchanges, sends = [Exchange(suite, "kinds", *direction) for direction in DIRECTIONS], {}
    for kind in KINDS:
        for exchange in exchanges:
            sends[exchange, kind] = exchange.send(kind, kind=kind, n=COUNT)
    expected = {key: message for kind in KINDS for key, message in contents(kind, COUNT).items()}
    repeated, queues_of = 0, {}
    for exchange in exchanges:
        counts = exchange.check(exchange.wait_for(expected), expected)
        repeated += sum(counts.values()) - len(counts)
        got = {event["key"]: event for event in exchange.consumer.of("got")}
        for kind in KINDS:
            stored = places(sends[exchange, kind].finish())
            if len(stored) != (0 if kind == "oneway" else COUNT):
                raise Failure(f"{exchange.name}: {len(stored)} results of {kind}")
            for number, place in stored.items():
                check_fields(exchange.name, got[f"{kind}_{number}"], place)
        queues = {(event["broker"], event["queueId"]) for event in got.values()}
        if len(queues) != 8:
            raise Failure(f"{exchange.name}: only {queues} were used")
        orders = {(event["order"], f"{event['broker']}#{event['queueId']}") for event in sends[exchange, "selector"].of("sent")}
        queues_of[exchange.name] = dict(orders)
        if len(orders) != 17 or {order: java_queue(order) for order, _ in orders} != queues_of[exchange.name]:
            raise Failure(f"{exchange.name}: orders went to {sorted(orders)}")
    stop_all(exchange.consumer for exchange in exchanges)
    return f"{len(expected)} messages of {len(KINDS)} kinds each way, {repeated} repeated; {len(orders)} orders in the same queues"


def java_queue(order):
    """Where `SelectMessageQueueByHash` puts an order, of two brokers with four queues each."""
    number = 0
    for letter in order:
        number = (31 * number + ord(letter)) & 0xFFFFFFFF
    index = abs(number - (1 << 32) if number >> 31 else number) % 8
    return f"broker-{'ab'[index // 4]}#{index % 4}"


def delays(suite):
    """Levels and times of their own: none is early. One of two is taken back, by the other client."""
    waits = {"level": {"level": 1}, "in_seconds": {"delay_sec": 2}, "in_millis": {"delay_ms": 2500}, "at": {"after_ms": 2500}}
    least = {"level": 1000, "in_seconds": 2000, "in_millis": 2500, "at": 2500, "recall": 6000}
    # One queue, so that what follows a message that was taken back shows that it does not come.
    exchanges = [Exchange(suite, "delays", *direction, queues=(1,)) for direction in DIRECTIONS]
    sends, recalls = {}, []
    for exchange in exchanges:
        for name, options in waits.items():
            sends[exchange, name] = exchange.send(name, n=FEW, **options)
        sends[exchange, "recall"] = exchange.send("recall", n=2, delay_sec=6)
    for exchange in exchanges:
        first = sends[exchange, "recall"].finish().of("sent")[0]
        recalls.append((first, exchange.receiver.do("recall", topic=exchange.topic, handle=first["handle"], group=suite.name("p_recall"))))
    for first, recall in recalls:
        recalled = recall.finish().of("recalled")[0]["recalled"]
        if recalled != first["msgId"]:
            raise Failure(f"{recall.label}: {recalled} was taken back instead of {first['msgId']}")
    latest = 0
    for exchange in exchanges:
        expected = {key: message for name in waits for key, message in contents(name, FEW).items()}
        expected["recall_1"] = content("recall", 1)
        for event in exchange.wait_for(expected):
            name, _, number = event["key"].rpartition("_")
            sent = sends[exchange, name].finish().of("sent")[int(number)]
            check_fields(exchange.name, event, {"msgId": sent["msgId"]})
            over = event["at"] - sent["at"] - least[name]
            latest = max(latest, over)
            if over < 0:
                raise Failure(f"{exchange.name}: {event['key']} came {-over} ms early")
    time.sleep(0.5)
    for exchange in exchanges:
        exchange.check(exchange.consumer.of("got"), expected)
    stop_all(exchange.consumer for exchange in exchanges)
    return f"{len(expected)} messages each way, the latest {latest} ms after its time; 1 of 2 taken back by the other client"


def compression(suite):
    """Bodies from the threshold on are compressed, by each kind, and what is shorter is not."""
    exchanges, sends = [Exchange(suite, "compressed", *direction) for direction in DIRECTIONS], []
    for exchange in exchanges:
        for kind in COMPRESSIONS:
            sends.append(exchange.send(f"{kind}_over", kind="async", compress=kind, size=COMPRESS_OVER, n=COUNT))
            sends.append(exchange.send(f"{kind}_under", compress=kind, size=COMPRESS_OVER - 1, n=FEW))
    expected, stored = {}, Counter()
    for kind in COMPRESSIONS:
        expected |= contents(f"{kind}_over", COUNT, COMPRESS_OVER) | contents(f"{kind}_under", FEW, COMPRESS_OVER - 1)
    for exchange in exchanges:
        got = exchange.wait_for(expected)
        exchange.check(got, expected)
        for event in got:
            kind, over, _ = event["key"].split("_")
            # Both clients take the bit that says "compressed" out and leave those that say how.
            if event["sysFlag"] != (COMPRESSIONS[kind] << 8 if over == "over" else 0):
                raise Failure(f"{exchange.name}: {event['key']} has the system flag {event['sysFlag']:#x}")
            if (event["stored"] < event["len"]) != (over == "over"):
                raise Failure(f"{exchange.name}: {event['key']} of {event['len']} bytes takes {event['stored']}")
            stored[kind] = max(stored[kind], event["stored"] if over == "over" else 0)
    for send in sends:
        send.finish()
    stop_all(exchange.consumer for exchange in exchanges)
    return f"{COUNT} of each kind each way, {COMPRESS_OVER} bytes stored in at most {dict(stored)}"


def transactions(suite):
    """What is committed arrives, at once or after a check; what is not does not. Another member answers for one that was killed."""
    plans = ["commit"] * 7 + ["rollback", "unknown-commit", "unknown-rollback"]
    victims = {language: Session(suite, language) for language in ("rust", "java")}
    exchanges = [Exchange(suite, "transactions", *direction) for direction in DIRECTIONS]
    groups = {exchange: {"group": suite.name(f"p_survivor_{exchange.sender.language}")} for exchange in exchanges}
    sends = {exchange: exchange.send("plans", "transact", n=COUNT, plans=",".join(plans)) for exchange in exchanges}
    # Brokers must know the survivor before the other one of its group dies.
    survivors = {exchange: exchange.send("survivor", "transact", n=8, **groups[exchange]) for exchange in exchanges}
    for exchange in exchanges:
        survivors[exchange].wait_for(lambda: survivors[exchange].of("all_sent"), "messages of the survivor")
        dying = victims[exchange.receiver.language]
        killed = exchange.send("killed", "transact", by=dying, plans="hang-commit", **groups[exchange])
        killed.wait_for(lambda: killed.of("hanging"), "half message")
        dying.kill()
    expected = {key: message for number in range(COUNT) if plans[number % 10].endswith("commit")
                for key, message in [planned("plans", number, plans[number % 10])]}
    expected |= dict([planned("survivor", number, "commit") for number in range(8)] + [planned("killed", 0, "hang-commit")])
    checks = 0
    for exchange in exchanges:
        send, survivor = sends[exchange], survivors[exchange]
        asked = {f"plans_{number}" for number in range(COUNT) if plans[number % 10].startswith("unknown")}
        send.wait_for(lambda: asked <= {event["checked"] for event in send.of("checked")}, "check of each")
        survivor.wait_for(lambda: {event["checked"] for event in survivor.of("checked")} >= {"killed_0"}, "check of the killed one's")
        got = exchange.wait_for(expected)
        # A broker that asks stores the half message anew, without its flag. It also asks for what was decided a moment ago; if that
        # is committed it is stored twice, as is what it asks for again before it has heard the answer.
        checked = {event["checked"] for event in send.of("checked") + survivor.of("checked")}
        this = {key: message | ({"flag": 0} if key in asked | {"killed_0"} else {}) for key, message in expected.items()}
        for key in checked - asked - {"killed_0"}:
            this.get(key, {}).pop("flag", None)
        repeated = {key for key, times in exchange.check(got, this).items() if times > 1}
        if repeated - checked:
            raise Failure(f"{exchange.name}: repeated, and never asked for: {sorted(repeated - checked)[:5]}")
        ids = {f"plans_{number}": place["msgId"] for number, place in places(send).items()}
        for event in got:
            check_fields(exchange.name, event, {"msgId": ids.get(event["key"], event["msgId"])})
        checks += len(send.of("checked"))
    stop_all([*sends.values(), *survivors.values(), *(exchange.consumer for exchange in exchanges)])
    return f"{COUNT} each way, {checks} checks; either client answered for a killed one of the other kind"


def planned(name, number, plan):
    message = content(name, number, user_plan=plan)
    return message["key"], message


def request_reply(suite):
    """Requests of each client that the other one replies to."""
    exchanges = [Exchange(suite, "questions", *direction, queues=(2, 2), reply="true") for direction in DIRECTIONS]
    names = [f"ask{asker}" for asker in range(ASKERS)]
    asks = {(exchange, name): exchange.send(name, "ask", n=COUNT // ASKERS) for exchange in exchanges for name in names}
    expected = {key: message for name in names for key, message in contents(name, COUNT // ASKERS).items()}
    for (exchange, name), ask in asks.items():
        ask.wait_for(lambda: ask.of("all_sent"), "reply to each request")
        replies = {event["reply"]: event["md5"] for event in ask.of("reply")}
        for number in range(COUNT // ASKERS):
            if replies.get(number) != hashlib.md5(b"re: " + body(f"{name}_{number}", SIZE)).hexdigest():
                raise Failure(f"{exchange.name}: the reply to {name}_{number} is another one's")
    for exchange in exchanges:
        exchange.check(exchange.wait_for(expected), expected)
    stop_all([*asks.values(), *(exchange.consumer for exchange in exchanges)])
    return f"{COUNT} each way, {ASKERS} at a time"


def retries_and_namespaces(suite):
    """Each message fails once and comes again, without a namespace and with one of either kind."""
    exchanges = [Exchange(suite, kind, *direction, queues=(1, 1), fail="true", **options)
                 for direction in DIRECTIONS
                 for kind, options in (("retries", {}), ("space_v1", {"space": "spaceA"}), ("space_v2", {"space2": "spaceB"}))]
    for exchange in exchanges:
        space2 = {"space2": "spaceB"} if "space_v2" in exchange.topic else {}
        exchange.sent = exchange.send("again", n=COUNT // 10, **space2)
    expected = contents("again", COUNT // 10)
    for exchange in exchanges:
        got = exchange.wait_for(expected)
        exchange.check(got, expected, reconsume=1)
        failed = Counter((event["failed"], event["reconsume"]) for event in exchange.consumer.of("failed"))
        if failed != Counter((key, 0) for key in expected):
            raise Failure(f"{exchange.name}: first tries were {failed}")
        ids = {f"again_{number}": place["msgId"] for number, place in places(exchange.sent.finish()).items()}
        for event in got:
            check_fields(exchange.name, event, {"msgId": ids[event["key"]]})
        if exchange.space:
            stored = suite.max_offset(f"spaceA%{exchange.topic}")
            if stored != len(expected):
                raise Failure(f"{exchange.name}: {stored} of {len(expected)} messages are in the namespace's topic")
    stop_all(exchange.consumer for exchange in exchanges)
    return f"{len(expected)} messages without a namespace and in each kind, each way"


def look_ups(suite):
    """Messages of one client found by the other one: by key, by unique key, by the id that tells the place."""
    exchanges = [Exchange(suite, "look_ups", *direction) for direction in DIRECTIONS]
    sends, asked = [exchange.send("found", n=FEW) for exchange in exchanges], defaultdict(list)
    for exchange, send in zip(exchanges, sends):
        for number, event in enumerate(send.finish().of("sent")):
            for verb, what in (("key", f"found_{number}"), ("unique", event["msgId"]), ("id", event["id"])):
                command = exchange.receiver.do(verb, topic=exchange.topic, what=what, group=suite.name(f"p_{verb}_{number}"))
                asked[exchange].append((command, event))
    for exchange, commands in asked.items():
        for command, event in commands:
            found = command.finish().of("found")
            if len(found) != 1:
                raise Failure(f"{command.label}: found {found}")
            place = {field: event[field] for field in ("queueId", "offset")}
            check_fields(command.label, found[0], content("found", event["sent"]) | place | {"topic": exchange.topic})
    stop_all(exchange.consumer for exchange in exchanges)
    return f"{FEW} messages three ways each way"


SCENARIOS = {action.__name__: action for action in
             (send_kinds, delays, compression, transactions, request_reply, retries_and_namespaces, look_ups)}
