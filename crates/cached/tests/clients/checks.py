"""Checks of a client, and the line that closes its run."""

import sys
import time

# A wait that takes so long is a hang, in seconds.
HANG = 60


class Checks:
    def __init__(self, name):
        self.name = name
        self.done = 0

    def equal(self, found, wanted, what):
        if found != wanted:
            self.fail(f"{what}: {shown(found)} instead of {shown(wanted)}")
        self.done += 1

    def true(self, found, what):
        self.equal(bool(found), True, what)

    def raises(self, error, call, what):
        try:
            result = call()
        except error:
            self.done += 1
            return
        self.fail(f"{what}: {shown(result)} instead of an error")

    def wait_until(self, is_so, what):
        end = time.monotonic() + HANG
        while not is_so():
            if time.monotonic() > end:
                self.fail(f"not within {HANG} s: {what}")
            time.sleep(0.02)
        self.done += 1

    def fail(self, why):
        print(f"{self.name}: {why}")
        sys.exit(1)

    def close(self):
        print(f"{self.name}: {self.done} checks passed")


def shown(value):
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}… ({len(text)} characters)"


def parts(parts):
    """Runs the part that the command line names: PROGRAM PORT PART."""
    port, part = int(sys.argv[1]), sys.argv[2]
    parts[part](port)
