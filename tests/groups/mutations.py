#!/usr/bin/env python3
"""Shows that the property test of groups can fail: breaks the client in three ways, one at a time, in a copy of the sources, and
expects a failing seed each time.

    python3 tests/groups/mutations.py            # 20 seeds for each; the status is not zero when a break was not found
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SEEDS = "20"
# What is broken: the file, the text that is there exactly once, and what takes its place.
MUTATIONS = {
    "a dropped wake-up: who waits for pull requests is not told of one": (
        "src/sync/mailbox.rs", "        drop(inner);\n        self.changed.notify_one();\n        Ok(())", "        drop(inner);\n        Ok(())"),
    "commit before removal: the offset behind all messages is committed while some are in work": (
        "src/consumer/process_queue.rs", "        first_left.or_else(|| self.queue_offset_max.checked_add(1))",
        "        first_left.and(None).or_else(|| self.queue_offset_max.checked_add(1))"),
    "the own id is taken for the first of the list": (
        "src/rebalance/allocate_message_queue_strategy.rs", "    Ok(cid_all.iter().position(|cid| cid == current_cid))",
        "    Ok(cid_all.iter().position(|_| true))"),
}


def run(copy, target):
    return subprocess.run(
        ["cargo", "test", "--release", "--locked", "--test", "groups", "--", "--nocapture"], cwd=copy, capture_output=True, text=True,
        env={**os.environ, "GROUP_SEEDS": SEEDS, "GROUP_PATIENCE_MS": "8000", "CARGO_TARGET_DIR": str(target)})


def main():
    work = pathlib.Path(tempfile.mkdtemp(prefix="group-mutations-"))
    copy, target = work / "copy", ROOT / "target" / "group-mutations"
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, files):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name)
    survivors = 0
    for what, (file, original, broken) in MUTATIONS.items():
        source = (ROOT / file).read_text()
        if source.count(original) != 1:
            sys.exit(f"{file} has {source.count(original)} places for: {what}")
        (copy / file).write_text(source.replace(original, broken))
        outcome = run(copy, target)
        (copy / file).write_text(source)
        found = re.findall(r"^FAILED (seed \d+: .{0,200})", outcome.stdout, re.MULTILINE)
        if outcome.returncode == 0 or not found:
            survivors += 1
            print(f"NOT FOUND {what}\n{outcome.stdout[-800:]}{outcome.stderr[-1500:]}", flush=True)
        else:
            print(f"found: {what}\n  in {len(found)} of {SEEDS} seeds, such as {found[0]}", flush=True)
    shutil.rmtree(work, ignore_errors=True)
    return survivors


if __name__ == "__main__":
    sys.exit(main())
