"""What users of pymemcache do: PORT text | hash | stats | many."""

import threading

import pymemcache
from pymemcache.client.base import Client, PooledClient
from pymemcache.client.hash import HashClient
from pymemcache.client.retrying import RetryingClient
from pymemcache.exceptions import (
    MemcacheClientError,
    MemcacheIllegalInputError,
    MemcacheServerError,
    MemcacheUnknownCommandError,
)
from pymemcache.serde import pickle_serde

from checks import HANG, Checks, parts

VERSION = pymemcache.__version__
WAIT = {"connect_timeout": HANG, "timeout": HANG}


def text(port):
    checks = Checks(f"pymemcache {VERSION}, text")
    for client in (
        Client(("127.0.0.1", port), no_delay=True, **WAIT),
        PooledClient(("127.0.0.1", port), max_pool_size=4, **WAIT),
        RetryingClient(Client(("127.0.0.1", port), **WAIT), attempts=2),
    ):
        every_call(checks, client)
        errors(checks, client)
    values(checks, port)
    checks.close()


def every_call(checks, client):
    equal = checks.equal
    client.flush_all(noreply=False)
    equal(client.get("a"), None, "get of nothing")
    equal(client.get("a", default=5), 5, "get of nothing with a default")
    equal(client.set("a", "1", noreply=False), True, "set")
    equal(client.get("a"), b"1", "get")
    equal(client.add("a", "2", noreply=False), False, "add of a key that is there")
    equal(client.add("b", "2", noreply=False), True, "add")
    equal(client.replace("c", "3", noreply=False), False, "replace of nothing")
    equal(client.replace("b", "3", noreply=False), True, "replace")
    equal(client.append("b", "4", noreply=False), True, "append")
    equal(client.prepend("b", "2", noreply=False), True, "prepend")
    equal(client.append("c", "4", noreply=False), False, "append to nothing")
    equal(client.get("b"), b"234", "get of what was joined")

    equal(client.set_many({"d": "4", "e": "5"}, noreply=False), [], "set_many")
    wanted = {"a": b"1", "d": b"4", "e": b"5"}
    equal(client.get_many(["a", "d", "nothing", "e"]), wanted, "get_many")
    equal(client.get_many([]), {}, "get_many of no keys")
    equal(client.delete_many(["d", "e"], noreply=False), True, "delete_many")
    equal(client.get_many(["d", "e"]), {}, "get_many of what was deleted")

    value, cas = client.gets("a")
    equal(value, b"1", "gets")
    equal(client.gets("nothing"), (None, None), "gets of nothing")
    equal(client.cas("a", "2", cas), True, "cas")
    equal(client.cas("a", "3", cas), False, "cas with an old number")
    equal(client.cas("nothing", "3", cas), None, "cas of nothing")
    equal(client.get("a"), b"2", "get after cas")
    many = client.gets_many(["a", "b"])
    equal({key: value for key, (value, _) in many.items()}, {"a": b"2", "b": b"234"}, "gets_many")

    equal(client.incr("nothing", 1), None, "incr of nothing")
    equal(client.set("n", "9", noreply=False), True, "set of a number")
    equal(client.incr("n", 1), 10, "incr")
    equal(client.decr("n", 3), 7, "decr")
    equal(client.decr("n", 100), 0, "decr below zero")
    equal(client.set("n", str(2**64 - 1), noreply=False), True, "set of the largest number")
    equal(client.incr("n", 2), 1, "incr beyond the largest number")

    equal(client.touch("a", 100, noreply=False), True, "touch")
    equal(client.touch("nothing", 100, noreply=False), False, "touch of nothing")
    equal(client.delete("a", noreply=False), True, "delete")
    equal(client.delete("a", noreply=False), False, "delete of nothing")

    # Without answers; a later one shows that all were done.
    for n in range(300):
        client.set(f"quiet{n}", str(n), noreply=True)
    client.incr("quiet7", 3, noreply=True)
    client.decr("quiet8", 3, noreply=True)
    client.append("quiet9", "x", noreply=True)
    client.touch("quiet10", 1000, noreply=True)
    client.delete("quiet11", noreply=True)
    found = client.get_many([f"quiet{n}" for n in range(300)])
    wanted = {f"quiet{n}": str(n).encode() for n in range(300) if n != 11}
    wanted.update({"quiet7": b"10", "quiet8": b"5", "quiet9": b"9x"})
    equal(found, wanted, "get_many after commands without answers")

    # An expiry that has passed, one that comes, and a date.
    client.set("over", "x", expire=-1, noreply=False)
    equal(client.get("over"), None, "get of an item that expired at once")
    client.set("late", "x", expire=2_000_000_000, noreply=False)
    equal(client.get("late"), b"x", "get of an item with a date")
    client.set("soon", "x", expire=1, noreply=False)
    checks.wait_until(lambda: client.get("soon") is None, "an item expires after a second")

    equal(client.flush_all(noreply=False), True, "flush_all")
    equal(client.get_many(["b", "quiet1"]), {}, "get_many after flush_all")
    checks.true(client.version().startswith(b"1.6"), "version")


def errors(checks, client):
    client.set("word", "x", noreply=False)
    checks.raises(MemcacheClientError, lambda: client.incr("word", 1), "incr of a word")
    checks.raises(MemcacheClientError, lambda: client.touch("word", "soon", noreply=False), "touch")
    big = b"x" * 1_100_000
    checks.raises(MemcacheServerError, lambda: client.set("big", big, noreply=False), "too large")
    checks.equal(client.get("big"), None, "get of what was too large")
    checks.raises(MemcacheIllegalInputError, lambda: client.get("k" * 251), "key too long")
    checks.raises(MemcacheIllegalInputError, lambda: client.get("a b"), "key with a space")
    checks.equal(client.get("word"), b"x", "get after errors")


def values(checks, port):
    client = Client(("127.0.0.1", port), allow_unicode_keys=True, **WAIT)
    everything = bytes(range(256)) * 20
    for length in [0, 1, 2, 1000, 5120, 100_000, 1_000_000]:
        value = (everything * (length // 5120 + 1))[:length]
        client.set("bytes", value, noreply=False)
        checks.equal(client.get("bytes"), value, f"a value of {length} bytes")
    for value in [b"\r\n", b"END\r\n", b"\r\nEND\r\n", b"VALUE a 0 1\r\nx\r\n", b"\0", b"\x80"]:
        client.set("odd", value, noreply=False)
        checks.equal(client.get("odd"), value, "a value that looks like an answer")
    for key in ["schlüssel", "ключ", "鍵" * 80, "!", "k" * 250, "\x7f"]:
        client.set(key, key.encode(), noreply=False)
        checks.equal(client.get_many([key]), {key: key.encode()}, f"the key {key[:20]}")
    pickled = Client(("127.0.0.1", port), serde=pickle_serde, **WAIT)
    things = {"text": "ä\r\n", "list": [1, {"x": None}], "number": 7, "bytes": b"\0\xff"}
    pickled.set_many(things, noreply=False)
    checks.equal(pickled.get_many(list(things)), things, "values that were pickled")
    # A hundred megabytes in one answer.
    client.set_many({f"large{n}": everything * 190 for n in range(20)}, noreply=False)
    for _ in range(5):
        found = client.get_many([f"large{n}" for n in range(20)])
        checks.equal(len(found), 20, "the number of large values")
        checks.true(all(value == everything * 190 for value in found.values()), "large values")


def hash_client(port):
    """One server of a HashClient; the tests of several are in cluster.py."""
    checks = Checks(f"pymemcache {VERSION}, HashClient")
    for pooled in (False, True):
        client = HashClient([("127.0.0.1", port)], use_pooling=pooled, **WAIT)
        client.flush_all()
        things = {f"key{n}": f"value{n}".encode() for n in range(500)}
        checks.equal(client.set_many(things, noreply=False), [], "set_many")
        checks.equal(client.get_many(list(things)), things, "get_many")
        value, cas = client.gets("key1")
        checks.equal(client.cas("key1", "x", cas), True, "cas")
        checks.equal(client.cas("key1", "x", cas), False, "cas with an old number")
        client.set("n", "1", noreply=False)
        checks.equal(client.incr("n", 4), 5, "incr")
        checks.equal(client.delete_many(["key1", "key2"]), True, "delete_many")
        checks.equal(client.get_many(["key1", "key2", "key3"]), {"key3": b"value3"}, "get_many")
    checks.close()


def stats(port):
    checks = Checks(f"pymemcache {VERSION}, stats")
    client = Client(("127.0.0.1", port), **WAIT)
    client.set("a", "1", noreply=False)
    before = client.stats()
    client.get_many(["a", "nothing"])
    client.set("b", "1", noreply=False)
    after = client.stats()
    for name, more in [(b"get_hits", 1), (b"get_misses", 1), (b"cmd_set", 1), (b"curr_items", 1)]:
        checks.equal(after[name] - before[name], more, f"stats of {name.decode()}")
    checks.equal(after[b"version"][:3], b"1.6", "stats of version")
    checks.true(after[b"curr_connections"] >= 1, "stats of curr_connections")
    checks.true(after[b"limit_maxbytes"] > 0, "stats of limit_maxbytes")
    checks.true(client.stats("settings"), "stats settings")
    checks.raises(MemcacheUnknownCommandError, lambda: client.stats("bogus"), "stats of a bogus word")
    checks.close()


def many(port):
    """Many threads: each sees its own values, and together they count right."""
    checks = Checks(f"pymemcache {VERSION}, 16 threads")
    client = PooledClient(("127.0.0.1", port), max_pool_size=16, **WAIT)
    client.set("sum", "0", noreply=False)
    client.set("cas", "0", noreply=False)
    wrong = []

    def work(thread):
        for n in range(60):
            key, value = f"key{thread}", f"{thread} {n}".encode()
            client.set(key, value, noreply=n % 2 == 0)
            # A pool may use another connection for the get, so only an answered set counts.
            if n % 2 and client.get(key) != value:
                wrong.append(value)
            client.incr("sum", 1)
            while True:
                old, number = client.gets("cas")
                if client.cas("cas", str(int(old) + 1), number):
                    break

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    checks.equal(wrong, [], "values of other threads")
    checks.equal(client.get("sum"), b"960", "a sum by incr")
    checks.equal(client.get("cas"), b"960", "a sum by cas")
    checks.close()


parts({"text": text, "hash": hash_client, "stats": stats, "many": many})
