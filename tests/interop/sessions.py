"""Processes of either client that take one command after the other, so that many scenarios share one Java VM."""

import threading
import time

from probes import Probe
from targets import Failure

COMMAND_SECONDS = 90


class Session(Probe):
    """A process that stays until the suite ends."""

    lasting = True

    def __init__(self, suite, language):
        self.commands, self.writing = {}, threading.Lock()
        super().__init__(suite, language, "session")

    def do(self, verb, **options):
        """Begins a command and returns it."""
        with self.writing:
            command = Command(self, len(self.commands) + 1, verb, options)
            self.commands[command.number] = command
            self.write(f"{command.number} {verb} {' '.join(f'{key}={value}' for key, value in options.items())}")
        return command

    def write(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except OSError as error:
            raise Failure(f"{self.label} has ended ({error}); {self.summary()}") from None

    def note(self, event):
        super().note(event)
        if "in" in event:
            self.commands[int(event["in"])].events.append(event)


class Command:
    """One command of a session and the lines that it has written so far."""

    def __init__(self, session, number, verb, options):
        self.session, self.number, self.events = session, number, []
        self.label = f"{session.language} {verb} {' '.join(f'{key}={value}' for key, value in options.items())}"

    def of(self, kind):
        with Probe.changed:
            return [event for event in self.events if kind in event]

    def wait_for(self, condition, what, seconds=COMMAND_SECONDS):
        """Waits until something holds; the command may not fail meanwhile."""
        deadline = time.monotonic() + seconds
        while not condition():
            errors = self.of("error")
            if errors or self.session.ended or time.monotonic() > deadline:
                seen = {kind: len(self.of(kind)) for kind in ("sent", "got", "reply", "checked", "ended")}
                raise Failure(f"{self.label}: no {what} within {seconds} s; {seen}, errors {errors}; {self.session.summary()}")
            time.sleep(0.05)  # lines come by thousands, and each look goes over all of them

    def finish(self):
        """Waits for the end of a command that ends by itself, or was stopped."""
        self.wait_for(lambda: self.of("ended"), "end")
        if self.of("error"):
            raise Failure(f"{self.label}: {self.of('error')}")
        return self


def stop_all(commands):
    """Ends commands that stay, and waits until they have ended."""
    commands = list(commands)
    for command in commands:
        command.session.write(f"stop {command.number}")
    for command in commands:
        command.finish()
