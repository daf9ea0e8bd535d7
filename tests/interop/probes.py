"""Probe processes of either client, and the lines they write."""

import contextlib
import json
import os
import subprocess
import threading
import time

from targets import Failure, tail

PROBE_SECONDS = 120


class Probe:
    """One running probe process and the JSON lines it has written so far."""

    changed = threading.Condition()
    running = []
    lasting = False

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
                        self.note(event)
                        Probe.changed.notify_all()
        with Probe.changed:
            self.ended = True
            Probe.changed.notify_all()

    def note(self, event):
        self.events.append(event)

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

    def wait_for(self, condition, seconds, what):
        """Waits until something holds while this probe runs."""
        deadline = time.monotonic() + seconds
        while not condition():
            if self.ended or time.monotonic() > deadline:
                raise Failure(f"{self.label}: no {what} within {seconds} s; {self.summary()}")
            with Probe.changed:
                Probe.changed.wait(0.2)

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
    def end_all(cls, lasting=True):
        """Kills those that still run, the lasting ones only if told so."""
        for probe in [probe for probe in cls.running if lasting or not probe.lasting]:
            if probe.process.poll() is None:
                probe.process.kill()
                probe.process.wait()
            cls.running.remove(probe)


class Member(Probe):
    """A consumer that stays in its group until it is told to leave."""

    def __init__(self, suite, language, instance, **options):
        super().__init__(suite, language, "consume", instance=instance, n=10**9, ms=10**9, stdin="true", **options)
        self.instance, self.topic = instance, options["topic"]

    def queues(self):
        """The queues of its last `assigned` line, or None before the first."""
        lines = [event for event in self.of("assigned") if event["assigned"] == self.topic]
        return set(lines[-1]["queues"]) if lines else None
