"""What the conversations run on: a real cluster, or the embedded broker's program."""

import pathlib
import subprocess
import sys
import threading
from importlib.machinery import SourceFileLoader

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
cluster = SourceFileLoader("cluster", str(HERE.parent / "real-cluster" / "cluster")).load_module()


# Checks of transactions soon, and messages that can be taken back.
SETTINGS = {"transactionCheckInterval": "1000", "transactionTimeOut": "2000", "recallMessageEnable": "true"}
# On a busy machine a broker shall wait as well, not refuse what has waited for 200 ms.
PATIENCE = {"waitTimeMillsInSendQueue": "10000", "waitTimeMillsInTransactionQueue": "10000", "osPageCacheBusyTimeOutMills": "10000"}


class Failure(Exception):
    """A broken expectation, with what was seen instead."""


class RealTarget:
    """A name server and two masters from the published jars."""

    def __init__(self, work, _options):
        self.nodes = cluster.Cluster(work / "cluster")
        self.namesrv_port, self.broker_ports = 0, []

    def start(self):
        self.namesrv_port = self.nodes.up(ns=0, brokers="broker-a:0,broker-b:0", settings=SETTINGS | PATIENCE)
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
                [self.program, "--namesrv-port", str(self.namesrv_port), "--broker-port", str(first), "--brokers", "2",
                 *(word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}"))],
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


def tail(path, lines=12):
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return ""
