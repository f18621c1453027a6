"""What users of pylibmc, and so of libmemcached, do: PORT text | binary | stats."""

import pylibmc

from checks import HANG, Checks, parts

BEHAVIORS = {
    "tcp_nodelay": True,
    "cas": True,
    "connect_timeout": 1000 * HANG,
    "receive_timeout": 1_000_000 * HANG,
    "send_timeout": 1_000_000 * HANG,
}


def connect(port, is_binary, **behaviors):
    client = pylibmc.Client(["127.0.0.1:%d" % port], binary=is_binary)
    client.behaviors = {**BEHAVIORS, **behaviors}
    return client


def refused(call):
    """Whether a call says no: the two protocols do so in different ways."""
    try:
        return not call()
    except (pylibmc.NotFound, pylibmc.DataDoesNotExist):
        return True


def every_call(port, is_binary):
    name = "binary" if is_binary else "text"
    checks = Checks(f"pylibmc {pylibmc.__version__}, {name}")
    equal = checks.equal
    client = connect(port, is_binary)
    client.flush_all()
    equal(client.get("a"), None, "get of nothing")
    equal(client.set("a", "1"), True, "set")
    equal(client.get("a"), "1", "get")
    equal(client.add("a", "2"), False, "add of a key that is there")
    equal(client.add("b", "2"), True, "add")
    checks.true(refused(lambda: client.replace("c", "3")), "replace of nothing")
    equal(client.replace("b", "3"), True, "replace")
    client.set("joined", b"3")
    equal(client.append("joined", b"4"), True, "append")
    equal(client.prepend("joined", b"2"), True, "prepend")
    equal(client.get("joined"), b"234", "get of what was joined")
    checks.true(refused(lambda: client.append("nothing", b"4")), "append to nothing")

    # Types of Python's, which are told apart by the client's flags.
    things = {
        "text": "grüße\r\nEND\r\n",
        "bytes": bytes(range(256)),
        "empty": b"",
        "number": 2**40,
        "true": True,
        "thing": {"list": [1, None, 2.5]},
    }
    equal(client.set_multi(things), [], "set_multi")
    equal(client.get_multi(list(things) + ["nothing"]), things, "get_multi")
    prefixed = client.get_multi(["ext", "nothing"], key_prefix="t")
    equal(prefixed, {"ext": things["text"]}, "get_multi with a prefix")
    equal(client.delete_multi(["text", "bytes"]), True, "delete_multi")
    equal(client.get_multi(["text", "bytes"]), {}, "get_multi of what was deleted")

    value, cas = client.gets("a")
    equal(value, "1", "gets")
    equal(client.cas("a", "2", cas), True, "cas")
    equal(client.cas("a", "3", cas), False, "cas with an old number")
    equal(client.get("a"), "2", "get after cas")

    client.set("n", 9)
    equal(client.incr("n"), 10, "incr")
    equal(client.incr("n", 90), 100, "incr by more")
    equal(client.decr("n", 1), 99, "decr")
    checks.raises(pylibmc.NotFound, lambda: client.incr("nothing"), "incr of nothing")
    if not is_binary:  # libmemcached takes the binary protocol's answer for a failure of the server
        client.set("word", "x")
        checks.raises(pylibmc.Error, lambda: client.incr("word"), "incr of a word")
    equal(client.get("n"), 99, "get after an error")

    equal(client.touch("a", 1000), True, "touch")
    checks.true(refused(lambda: client.touch("nothing", 1000)), "touch of nothing")
    equal(client.delete("a"), True, "delete")
    equal(client.delete("a"), False, "delete of nothing")

    for length in [1, 1000, 100_000, 900_000]:
        value = (bytes(range(256)) * (length // 256 + 1))[:length]
        client.set("large", value)
        checks.true(client.get("large") == value, f"a value of {length} bytes")
    text = "compress me " * 50_000
    client.set("compressed", text, min_compress_len=100)
    checks.true(client.get("compressed") == text, "a compressed value")
    checks.raises(pylibmc.TooBig, lambda: client.set("big", b"x" * 1_100_000), "too large")
    equal(client.get("n"), 99, "get after a value that was too large")
    for key in ["schlüssel", "鍵" * 60, "k" * 250]:
        client.set(key, key)
        equal(client.get(key), key, f"the key {key[:20]}")
    if is_binary:
        client.set("a b\r\nc", "spaces")
        equal(client.get("a b\r\nc"), "spaces", "a key with spaces and line ends")

    client.set("soon", "x", time=1)
    checks.wait_until(lambda: client.get("soon") is None, "an item expires after a second")
    equal(client.get("n"), 99, "an item without an expiry stays")

    # Requests that do not wait, and requests without answers.
    for behaviors in [{"no_block": True}, {"_noreply": True}]:
        quiet = connect(port, is_binary, **behaviors)
        for n in range(300):
            quiet.set(f"quiet{n}", n)
        wanted = {f"quiet{n}": n for n in range(300)}
        found = {}

        def all_there():
            found.update(quiet.get_multi(list(wanted)))
            return len(found) == len(wanted)

        checks.wait_until(all_there, f"items that were set with {behaviors}")
        equal(found, wanted, f"items that were set with {behaviors}")
        for n in range(300):
            quiet.delete(f"quiet{n}")
        checks.wait_until(lambda: not quiet.get_multi(list(wanted)), f"deletes with {behaviors}")
        quiet.disconnect_all()

    # Several clients of libmemcached at once, and a hash of its own for one server.
    pool = pylibmc.ClientPool()
    pool.fill(connect(port, is_binary, ketama=True, hash="md5"), 4)
    with pool.reserve() as one, pool.reserve() as two:
        one.set("shared", 1)
        equal(two.incr("shared"), 2, "incr by another client")
    equal(client.flush_all(), True, "flush_all")
    equal(client.get_multi(["n", "b"]), {}, "get_multi after flush_all")
    checks.close()


def stats(port):
    checks = Checks(f"pylibmc {pylibmc.__version__}, stats")
    client = connect(port, False)
    client.set("a", "1")
    before = dict(client.get_stats()[0][1])
    client.get_multi(["a", "nothing"])
    after = dict(client.get_stats()[0][1])
    for name in ["get_hits", "get_misses"]:
        checks.equal(int(after[name]) - int(before[name]), 1, f"stats of {name}")
    checks.true(client.get_stats("settings"), "stats settings")
    checks.close()


parts(
    {
        "text": lambda port: every_call(port, False),
        "binary": lambda port: every_call(port, True),
        "stats": stats,
    }
)
