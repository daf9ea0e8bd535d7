"""The peers that belong to the comparison: how each is built, and the command that runs it."""

import os
import pathlib
import subprocess

from broker import cluster

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OURS = "ours"
# What only servers and administrators need. A client that saw the broker's jar would take its set-up of logs.
NOT_OF_CLIENTS = tuple(f"rocketmq-{name}-" for name in (
    "auth", "broker", "container", "controller", "filter", "namesrv", "proxy", "srvutil", "store", "tiered-store", "tools"))


def target_dir():
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()


def cargo_build(folder, target, *words):
    subprocess.run(["cargo", "build", "--release", "--locked", "--quiet", *words], cwd=folder, check=True,
                   env=os.environ | {"CARGO_TARGET_DIR": str(target)})
    return target / "release"


def ours(_work):
    return [str(cargo_build(ROOT, target_dir(), "--example", "bench_peer") / "examples" / "bench_peer")]


def floor(_work):
    return [str(cargo_build(HERE / "floor", target_dir() / "compare") / "floor")]


def java(work):
    """The published client with its own and the machine's default settings."""
    cluster.jars()
    jars = [jar for jar in sorted(cluster.LIB.glob("*.jar")) if not jar.name.startswith(NOT_OF_CLIENTS)]
    path = [cluster.compiled(HERE / "java" / "Bench.java"), *jars]
    return ["java", "-cp", ":".join(map(str, path)), f"-Duser.home={work}", "-Drocketmq.client.logLevel=ERROR", "Bench"]


BUILT_IN = {"floor": floor, "java": java}
