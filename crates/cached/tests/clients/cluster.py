"""Three servers, of which one is killed and started again under load, twice.

    cluster.py ketama SERVER...
    cluster.py nutcracker NUTCRACKER CONFIGURATION SERVER...

SERVER... is the command of a server, without its port. The first form has the keys spread by
libmemcached, the second one by twemproxy with that configuration, whose addresses are replaced.

Every key has one writer, so its value is known: the last one that was written. The keys of the
killed server may be missing afterwards, and their requests may fail until it is back. They never
have an older value, and the keys of the other servers notice nothing.
"""

import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

from checks import HANG, Checks

KEYS = 600
THREADS = 3
KILLS = 2
# The requests of each thread in each phase.
PHASE = 600


class Unavailable(Exception):
    """The server of a key does not answer."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port, process):
    end = time.monotonic() + HANG
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=HANG).close()
            return
        except OSError:
            time.sleep(0.02)
    sys.exit(f"port {port} accepts no connection")


class Server:
    def __init__(self, command):
        self.command, self.port = command, free_port()
        self.start()

    def start(self):
        self.process = subprocess.Popen([*self.command, "-p", str(self.port)])
        wait_for(self.port, self.process)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def keys(self):
        """The keys that are here, asked for directly."""
        client = Text(self.port)
        return {key for key in range(KEYS) if client.get(f"key{key}") is not None}


class Text:
    """A client of the text protocol that says which answers are errors."""

    def __init__(self, port):
        self.port, self.stream = port, None

    def ask(self, command):
        if self.stream is None:
            connection = socket.create_connection(("127.0.0.1", self.port), timeout=HANG)
            self.stream = connection.makefile("rwb")
            connection.close()  # once the stream is closed
        self.stream.write(command)
        self.stream.flush()
        return self.line()

    def line(self):
        line = self.stream.readline()
        if line.startswith(b"SERVER_ERROR") or not line.endswith(b"\r\n"):
            # Nothing but a new connection shows that no answer is under way.
            self.stream.close()
            self.stream = None
            raise Unavailable(line.decode().strip() or "the connection was closed")
        return line

    def get(self, key):
        line = self.ask(f"get {key}\r\n".encode())
        if line == b"END\r\n":
            return None
        length = int(line.split()[3])
        value = self.stream.read(length + 2)[:length].decode()
        assert self.line() == b"END\r\n"
        return value

    def set(self, key, value):
        line = self.ask(f"set {key} 0 0 {len(value)}\r\n{value}\r\n".encode())
        assert line == b"STORED\r\n", line


class Ketama:
    """pylibmc with the behaviors of a ketama cluster."""

    def __init__(self, ports):
        import pylibmc

        self.error = pylibmc.Error
        self.client = pylibmc.Client([f"127.0.0.1:{port}" for port in ports])
        self.client.behaviors = {
            "ketama": True,
            "tcp_nodelay": True,
            "retry_timeout": 1,
            "connect_timeout": 1000 * HANG,
            "receive_timeout": 1_000_000 * HANG,
            "send_timeout": 1_000_000 * HANG,
        }

    def ask(self, call, *words):
        try:
            return call(*words)
        except self.error as error:
            raise Unavailable(str(error)) from error

    def get(self, key):
        return self.ask(self.client.get, key)

    def set(self, key, value):
        assert self.ask(self.client.set, key, value)


class Load:
    """Threads that write and read, each its own keys."""

    def __init__(self, checks, connect):
        self.checks = checks
        self.known = {}  # the values that each key may have; None stands for no item
        self.at_risk = set()  # the keys of the server that is being killed
        self.requests = self.failures = 0
        self.problems = []
        self.phases = [0] * THREADS
        self.is_ending = False
        self.failing = set()
        make = lambda number: threading.Thread(target=self.work, args=(number, connect()))
        self.threads = [make(number) for number in range(THREADS)]

    def request(self, client, key, n):
        name = f"key{key}"
        try:
            if n % 3 == 0:
                value = f"{key} {n}"
                # It may have been written, also if there is no answer.
                self.known[key] = self.known.get(key, {None}) | {value}
                client.set(name, value)
                self.known[key] = {value}
                # The server may be killed before the next look.
                if key in self.at_risk:
                    self.known[key].add(None)
            else:
                found = client.get(name)
                if found not in self.known[key]:
                    self.problems.append(f"{name} is {found}, not one of {self.known[key]}")
                if found is not None or key not in self.at_risk:
                    self.known[key] &= {found}
                    if key in self.at_risk:
                        self.known[key].add(None)
            self.failing.discard(key)
        except Unavailable as error:
            self.failures += 1
            self.failing.add(key)
            if key not in self.at_risk:
                self.problems.append(f"{name} of another server: {error}")

    def work(self, number, client):
        try:
            own = list(range(number, KEYS, THREADS))
            n = 0
            while not self.is_ending and not self.problems:
                # Every key is written in every third round, and read in the others.
                key = own[n % len(own)]
                self.request(client, key, n // len(own) + number)
                self.phases[number] += 1
                n += 1
        except Exception as error:
            self.problems.append(f"{type(error).__name__}: {error}")

    def go_on(self):
        """Waits for some more requests of every thread."""
        wanted = [done + PHASE for done in self.phases]
        self.wait(lambda: all(done >= want for done, want in zip(self.phases, wanted)), "requests")

    def wait(self, is_so, what):
        self.checks.wait_until(lambda: is_so() or self.problems, what)
        if self.problems:
            self.checks.fail(self.problems[0])


def main(kind, words):
    checks = Checks(kind)
    proxy = None
    with tempfile.TemporaryDirectory() as folder:
        if kind == "nutcracker":
            program, configuration, *words = words
        servers = [Server(words) for _ in range(3)]
        try:
            if kind == "nutcracker":
                port = free_port()
                text = pathlib.Path(configuration).read_text()
                text = text.replace(":22121", f":{port}")
                for number, server in enumerate(servers):
                    text = text.replace(f":{11211 + number}:", f":{server.port}:")
                path = pathlib.Path(folder, "nutcracker.yml")
                path.write_text(text)
                # Its statistics have a port, too.
                stats = ["-a", "127.0.0.1", "-s", str(free_port())]
                log = ["-o", str(pathlib.Path(folder, "log"))]
                proxy = subprocess.Popen([*program.split(), "-c", str(path), *stats, *log])
                wait_for(port, proxy)
                connect = lambda: Text(port)
            else:
                connect = lambda: Ketama([server.port for server in servers])
            play(checks, servers, Load(checks, connect))
        finally:
            for process in [proxy, *(server.process for server in servers)]:
                if process is not None:
                    process.kill()
                    process.wait()


def play(checks, servers, load):
    for key in range(KEYS):
        load.known[key] = {None}
    for thread in load.threads:
        thread.daemon = True
        thread.start()
    longest = 0
    for kill in range(KILLS):
        load.go_on()
        keys = [server.keys() for server in servers]
        checks.equal(sum(map(len, keys)), KEYS, "the keys on all servers")
        checks.true(min(map(len, keys)) > KEYS // 10, f"keys on each server: {[*map(len, keys)]}")
        victim = servers[kill]
        load.at_risk = keys[kill]
        for key in load.at_risk:
            load.known[key] = load.known[key] | {None}
        load.go_on()
        victim.kill()
        failures = load.failures
        load.go_on()
        load.wait(lambda: load.failures > failures, "requests to the killed server fail")
        begin = time.monotonic()
        victim.start()
        # Every key was asked for, with success.
        load.wait(lambda: not load.failing, "the keys of the killed server are back")
        longest = max(longest, time.monotonic() - begin)
        load.go_on()
        load.at_risk = set()
        load.go_on()
    load.is_ending = True
    for thread in load.threads:
        thread.join()
    if load.problems:
        checks.fail(load.problems[0])
    checks.true(load.failures > 0, "some requests failed")
    print(
        f"{checks.name}: {sum(load.phases)} requests, {load.failures} of which failed while a server "
        f"was down; no wrong value; all keys back after {longest:.1f} s; {checks.done} checks passed"
    )


main(sys.argv[1], sys.argv[2:])
