"""The real broker that the peers take turns on, and what is stored there before."""

import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "interop"))
from targets import PATIENCE, cluster  # noqa: E402

TOPIC_ROUTE, MAX_OFFSET = 105, 30
ROUTE_SECONDS = 30
# Files large enough that none has to be made every few seconds.
SETTINGS = {"mappedFileSizeCommitLog": "268435456", "mappedFileSizeConsumeQueue": "6000000"}
TICKS = os.sysconf("SC_CLK_TCK")


class Broker:
    def __init__(self, work):
        self.nodes = cluster.Cluster(work / "cluster")
        self.namesrv_port = self.port = self.pid = None

    def start(self):
        self.namesrv_port = self.nodes.up(ns=0, brokers="broker-a:0", settings=SETTINGS | PATIENCE)
        node = self.nodes.node("broker-a")
        self.port, self.pid = node["port"], node["pid"]

    def stop(self):
        if self.nodes.state_file.exists():
            self.nodes.down()

    def options(self):
        return ["--namesrv", f"127.0.0.1:{self.namesrv_port}", "--broker", f"127.0.0.1:{self.port}"]

    def make_topic(self, topic, queues):
        """Returns once the name server knows the topic: a peer that comes too soon would be given another one's queues."""
        answer, _ = cluster.make_topic(self.port, topic, queues)
        deadline = time.monotonic() + ROUTE_SECONDS
        while True:
            header, body = cluster.ask(self.namesrv_port, TOPIC_ROUTE, topic=topic)
            if header["code"] == 0 and [data["readQueueNums"] for data in json.loads(body)["queueDatas"]] == [queues]:
                return
            if time.monotonic() > deadline:
                raise cluster.ClusterError(f"{topic} was not made: {answer}")
            time.sleep(0.1)

    def stored(self, topic, queues):
        """How many messages the queues of a topic have."""
        answers = [cluster.ask(self.port, MAX_OFFSET, topic=topic, queueId=str(queue))[0] for queue in range(queues)]
        return sum(int(header["extFields"]["offset"]) for header in answers)

    def cpu_s(self):
        """Processor time that the broker has had."""
        stat = pathlib.Path(f"/proc/{self.pid}/stat").read_text()
        fields = stat.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


def machine_cpu_s():
    """Busy time of all processors, and how much of it a hypervisor took for others."""
    with open("/proc/stat", encoding="ascii") as stat:
        fields = [int(word) for word in stat.readline().split()[1:9]]
    _, _, _, idle, waiting, _, _, stolen = fields
    return (sum(fields) - idle - waiting) / TICKS, stolen / TICKS
