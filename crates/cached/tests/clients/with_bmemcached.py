"""What users of python-binary-memcached do: PORT binary | stats."""

from importlib.metadata import version

import bmemcached
from bmemcached.exceptions import MemcachedException

from checks import HANG, Checks, parts

NAME = f"python-binary-memcached {version('python-binary-memcached')}"


def connect(port):
    return bmemcached.Client((f"127.0.0.1:{port}",), socket_timeout=HANG)


def binary(port):
    checks = Checks(f"{NAME}, binary")
    equal = checks.equal
    client = connect(port)
    client.flush_all()
    equal(client.get("a"), None, "get of nothing")
    equal(client.get("a", 5), 5, "get of nothing with a default")
    equal(client.set("a", "1"), True, "set")
    equal(client.get("a"), "1", "get")
    equal(client.add("a", "2"), False, "add of a key that is there")
    equal(client.add("b", "2"), True, "add")
    equal(client.replace("c", "3"), False, "replace of nothing")
    equal(client.replace("b", "3"), True, "replace")
    value, cas = client.gets("a")
    equal(value, "1", "gets")
    equal(client.cas("a", "2", cas), True, "cas")
    equal(client.cas("a", "3", cas), False, "cas with an old number")
    things = {
        "text": "grüße\r\n",
        "bytes": bytes(range(256)),
        "empty": "",
        "number": 2**40,
        "thing": {"list": [1, None, 2.5]},
        "key with spaces\r\n": "x",
        "large": b"x" * 900_000,
    }
    equal(client.set_multi(things), [], "set_multi")
    equal(client.get_multi(list(things) + ["nothing"]), things, "get_multi")
    equal(client.delete_multi(["text", "bytes"]), True, "delete_multi")
    equal(client.get_multi(["text", "bytes"]), {}, "get_multi of what was deleted")
    many = {f"key{n}": n for n in range(1000)}
    equal(client.set_multi(many), [], "set_multi of many")
    equal(client.get_multi(list(many)), many, "get_multi of many")

    equal(client.incr("n", 5, default=10), 10, "incr of nothing with a default")
    equal(client.incr("n", 5), 15, "incr")
    equal(client.decr("n", 20), 0, "decr below zero")
    equal(client.delete("a"), True, "delete")
    equal(client.get("a"), None, "get of what was deleted")
    equal(client.delete("a"), True, "delete of nothing")
    big = b"x" * 1_100_000
    checks.raises(MemcachedException, lambda: client.set("big", big, compress_level=0), "too large")
    equal(client.get("b"), "3", "get after an error")
    client.set("soon", "x", time=1)
    checks.wait_until(lambda: client.get("soon") is None, "an item expires after a second")
    equal(client.flush_all(), True, "flush_all")
    equal(client.get("b"), None, "get after flush_all")
    client.disconnect_all()
    checks.close()


def stats(port):
    checks = Checks(f"{NAME}, stats")
    client = connect(port)
    name = f"127.0.0.1:{port}"
    before = client.stats()[name]
    client.set("a", "1")
    client.get("a")
    client.get("nothing")
    after = client.stats()[name]
    for field in ["get_hits", "get_misses", "cmd_set"]:
        more = int(after[field]) - int(before[field])
        checks.equal(more, 1, f"stats of {field}")
    checks.close()


parts({"binary": binary, "stats": stats})
