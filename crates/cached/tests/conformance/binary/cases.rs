//! Cases of the binary protocol.

use super::packet::{Cas, Packet, op};

/// A case: its name and its requests.
pub(crate) struct BinaryCase {
    pub(crate) name: String,
    pub(crate) packets: Vec<Packet>,
    /// Whether the server waits for more input in the end.
    pub(crate) open: bool,
}

/// A time that is past: the end of January 1970. Times are unsigned, so there is no -1.
const PAST: u32 = 2_592_001;

fn get(key: &str) -> Packet {
    Packet::new(op::GET).key(key)
}

fn set(key: &str, value: &str) -> Packet {
    Packet::new(op::SET)
        .key(key)
        .stored(0xdead_beef, 0)
        .value(value)
}

fn add(cases: &mut Vec<BinaryCase>, name: &str, packets: Vec<Packet>) {
    let name = format!("binary: {name}");
    assert!(
        cases.iter().all(|case| case.name != name),
        "{name} is there already"
    );
    cases.push(BinaryCase {
        name,
        packets,
        open: false,
    });
}

fn add_open(cases: &mut Vec<BinaryCase>, name: &str, packets: Vec<Packet>) {
    add(cases, name, packets);
    cases.last_mut().expect("it was added").open = true;
}

/// All cases.
pub(crate) fn all() -> Vec<BinaryCase> {
    let mut cases = Vec::new();
    retrieval(&mut cases);
    storage(&mut cases);
    counting(&mut cases);
    others(&mut cases);
    malformed(&mut cases);
    cases
}

fn retrieval(cases: &mut Vec<BinaryCase>) {
    for (name, code) in [
        ("get", op::GET),
        ("getq", op::GETQ),
        ("getk", op::GETK),
        ("getkq", op::GETKQ),
    ] {
        let ask = |key: &str| Packet::new(code).key(key).opaque(77);
        add(
            cases,
            &format!("{name} hit"),
            vec![set("a", "value"), ask("a")],
        );
        add(cases, &format!("{name} miss"), vec![ask("a"), ask("b")]);
        add(
            cases,
            &format!("{name} hit of nothing"),
            vec![set("a", ""), ask("a")],
        );
        let large = "x".repeat(100_000);
        add(
            cases,
            &format!("{name} large"),
            vec![set("a", &large), ask("a"), ask("a")],
        );
        add(
            cases,
            &format!("{name} without key"),
            vec![Packet::new(code)],
        );
        add(
            cases,
            &format!("{name} with extras"),
            vec![set("a", "x"), ask("a").extras([0; 4])],
        );
        add(
            cases,
            &format!("{name} with value"),
            vec![set("a", "x"), ask("a").value("v")],
        );
        let with_cas = ask("a").cas(Cas::Is(5));
        add(
            cases,
            &format!("{name} with cas"),
            vec![set("a", "x"), with_cas],
        );
        for length in [250, 251, 300] {
            let key = "k".repeat(length);
            let name = format!("{name} key of {length} bytes");
            add(cases, &name, vec![ask(&key), get("a")]);
        }
        let binary = [0, 1, 32, 13, 10, 255];
        let keys = vec![set("a", "x"), Packet::new(code).key(binary), ask("a")];
        add(cases, &format!("{name} of a binary key"), keys);
    }
    for (name, code) in [
        ("gat", op::GAT),
        ("gatq", op::GATQ),
        ("gatk", op::GATK),
        ("gatkq", op::GATKQ),
    ] {
        let ask = |key: &str| Packet::new(code).key(key).timed(100).opaque(78);
        add(
            cases,
            &format!("{name} hit"),
            vec![set("a", "value"), ask("a")],
        );
        add(cases, &format!("{name} miss"), vec![ask("a"), ask("b")]);
        let past = ask("a").timed(PAST);
        add(
            cases,
            &format!("{name} to the past"),
            vec![set("a", "x"), past, get("a")],
        );
        let bare = Packet::new(code).key("a");
        add(
            cases,
            &format!("{name} without time"),
            vec![set("a", "x"), bare],
        );
        add(
            cases,
            &format!("{name} without key"),
            vec![Packet::new(code).timed(1)],
        );
        let long = "k".repeat(251);
        add(
            cases,
            &format!("{name} key of 251 bytes"),
            vec![ask(&long), get("a")],
        );
    }
    let many = (0..20).map(|n| Packet::new(op::GETKQ).key(format!("k{}", n % 3)).opaque(n));
    let mut packets = vec![set("k1", "one"), set("k2", "two")];
    packets.extend(many);
    packets.push(Packet::new(op::NOOP).opaque(99));
    add(cases, "multi-get with getkq and noop", packets);
}

fn storage(cases: &mut Vec<BinaryCase>) {
    for (name, code) in [
        ("set", op::SET),
        ("setq", op::SETQ),
        ("add", op::ADD),
        ("addq", op::ADDQ),
        ("replace", op::REPLACE),
        ("replaceq", op::REPLACEQ),
    ] {
        let put = |value: &str| {
            Packet::new(code)
                .key("a")
                .stored(5, 0)
                .value(value)
                .opaque(9)
        };
        add(
            cases,
            &format!("{name} of a new key"),
            vec![put("new"), get("a")],
        );
        add(
            cases,
            &format!("{name} of an old key"),
            vec![set("a", "old"), put("new"), get("a")],
        );
        add(
            cases,
            &format!("{name} of nothing"),
            vec![set("a", "old"), put(""), get("a")],
        );
        let cas = |cas| vec![set("a", "old"), put("new").cas(cas), get("a")];
        add(cases, &format!("{name} with cas"), cas(Cas::Nth(1, 0)));
        add(
            cases,
            &format!("{name} with a wrong cas"),
            cas(Cas::Nth(1, 1000)),
        );
        let missing = vec![put("new").cas(Cas::Is(3)), get("a")];
        add(cases, &format!("{name} of a new key with cas"), missing);
        let large = "x".repeat(1_100_000);
        add(
            cases,
            &format!("{name} too large"),
            vec![set("a", "old"), put(&large), get("a")],
        );
        let bare = Packet::new(code).key("a").value("12345678");
        add_open(cases, &format!("{name} without extras"), vec![bare]);
        let keyless = Packet::new(code).stored(0, 0).value("x");
        add_open(cases, &format!("{name} without key"), vec![keyless]);
        for length in [250, 251] {
            let long = Packet::new(code)
                .key("k".repeat(length))
                .stored(0, 0)
                .value("x");
            add_open(
                cases,
                &format!("{name} key of {length} bytes"),
                vec![long, get("a")],
            );
        }
        let expired = put("gone").stored(5, PAST);
        add(
            cases,
            &format!("{name} with a time in the past"),
            vec![set("a", "x"), expired, get("a")],
        );
    }
    for (name, code) in [
        ("append", op::APPEND),
        ("appendq", op::APPENDQ),
        ("prepend", op::PREPEND),
        ("prependq", op::PREPENDQ),
    ] {
        let put = |value: &str| Packet::new(code).key("a").value(value).opaque(9);
        add(
            cases,
            &format!("{name} to a missing key"),
            vec![put("x"), get("a")],
        );
        add(
            cases,
            &format!("{name} to an old key"),
            vec![set("a", "old"), put("x"), get("a")],
        );
        add(
            cases,
            &format!("{name} of nothing"),
            vec![set("a", "old"), put(""), get("a")],
        );
        let cas = |cas| vec![set("a", "old"), put("x").cas(cas), get("a")];
        add(cases, &format!("{name} with cas"), cas(Cas::Nth(1, 0)));
        add(
            cases,
            &format!("{name} with a wrong cas"),
            cas(Cas::Nth(1, 1000)),
        );
        add_open(
            cases,
            &format!("{name} with extras"),
            vec![put("x").stored(0, 0)],
        );
        let large = "x".repeat(1_100_000);
        add(
            cases,
            &format!("{name} too large"),
            vec![set("a", "old"), put(&large), get("a")],
        );
    }
    for (name, code) in [("delete", op::DELETE), ("deleteq", op::DELETEQ)] {
        let ask = || Packet::new(code).key("a").opaque(9);
        add(
            cases,
            &format!("{name} of a missing key"),
            vec![ask(), get("a")],
        );
        add(
            cases,
            &format!("{name} of an old key"),
            vec![set("a", "x"), ask(), get("a"), ask()],
        );
        let cas = |cas| vec![set("a", "x"), ask().cas(cas), get("a")];
        add(cases, &format!("{name} with cas"), cas(Cas::Nth(1, 0)));
        add(
            cases,
            &format!("{name} with a wrong cas"),
            cas(Cas::Nth(1, 1000)),
        );
        add_open(cases, &format!("{name} with extras"), vec![ask().timed(0)]);
        add_open(
            cases,
            &format!("{name} with a value"),
            vec![ask().value("x")],
        );
        add_open(
            cases,
            &format!("{name} without key"),
            vec![Packet::new(code)],
        );
    }
}

fn counting(cases: &mut Vec<BinaryCase>) {
    for (name, code) in [
        ("increment", op::INCREMENT),
        ("incrementq", op::INCREMENTQ),
        ("decrement", op::DECREMENT),
        ("decrementq", op::DECREMENTQ),
    ] {
        let count = |delta| Packet::new(code).key("a").counted(delta, 100, 0).opaque(9);
        let never = |delta| Packet::new(code).key("a").counted(delta, 100, u32::MAX);
        let plain = Packet::new(op::SET).key("a").stored(0, 0);
        let number = |text: &str| plain.clone().value(text);
        add(
            cases,
            &format!("{name} of a missing key"),
            vec![never(1), get("a")],
        );
        add(cases, &format!("{name} creates"), vec![count(1), get("a")]);
        add(
            cases,
            &format!("{name} creates and counts"),
            vec![count(1), count(7), count(7)],
        );
        add(
            cases,
            &format!("{name} of a number"),
            vec![number("50"), count(7), get("a")],
        );
        add(
            cases,
            &format!("{name} by 0"),
            vec![number("50"), count(0), get("a")],
        );
        add(
            cases,
            &format!("{name} beyond"),
            vec![number("9"), count(u64::MAX), get("a")],
        );
        let largest = number("18446744073709551615");
        add(
            cases,
            &format!("{name} of the largest"),
            vec![largest, count(1), get("a")],
        );
        add(
            cases,
            &format!("{name} of a word"),
            vec![number("abc"), count(1), get("a")],
        );
        add(
            cases,
            &format!("{name} of nothing"),
            vec![number(""), count(1), get("a")],
        );
        let with = |cas| vec![number("50"), count(7).cas(cas), get("a")];
        add(cases, &format!("{name} with cas"), with(Cas::Nth(1, 0)));
        add(
            cases,
            &format!("{name} with a wrong cas"),
            with(Cas::Nth(1, 1000)),
        );
        let bare = Packet::new(code).key("a");
        add_open(cases, &format!("{name} without extras"), vec![bare]);
        let short = Packet::new(code).key("a").stored(0, 1);
        add_open(cases, &format!("{name} with short extras"), vec![short]);
        add_open(
            cases,
            &format!("{name} with a value"),
            vec![count(1).value("5")],
        );
        let long = Packet::new(code).key("k".repeat(251)).counted(1, 1, 0);
        add_open(cases, &format!("{name} key of 251 bytes"), vec![long]);
    }
}

fn others(cases: &mut Vec<BinaryCase>) {
    add(cases, "noop", vec![Packet::new(op::NOOP).opaque(u32::MAX)]);
    add_open(
        cases,
        "noop with a key",
        vec![Packet::new(op::NOOP).key("a")],
    );
    add_open(
        cases,
        "noop with extras",
        vec![Packet::new(op::NOOP).timed(1)],
    );
    add_open(
        cases,
        "noop with a value",
        vec![Packet::new(op::NOOP).value("a")],
    );
    add(cases, "version", vec![Packet::new(op::VERSION)]);
    add_open(
        cases,
        "version with a key",
        vec![Packet::new(op::VERSION).key("a")],
    );
    add(cases, "quit", vec![Packet::new(op::QUIT), get("a")]);
    add(cases, "quitq", vec![Packet::new(op::QUITQ), get("a")]);
    add_open(
        cases,
        "quit with a key",
        vec![Packet::new(op::QUIT).key("a")],
    );
    let answered = vec![set("a", "x"), get("a"), Packet::new(op::QUIT)];
    add(cases, "quit after answers", answered);
    add(
        cases,
        "quitq after answers",
        vec![set("a", "x"), Packet::new(op::QUITQ)],
    );
    for (name, code) in [("flush", op::FLUSH), ("flushq", op::FLUSHQ)] {
        let flush = || Packet::new(code).opaque(5);
        add(cases, name, vec![set("a", "x"), flush(), get("a")]);
        add(
            cases,
            &format!("{name} with 0"),
            vec![set("a", "x"), flush().timed(0), get("a")],
        );
        for delay in [1, 100] {
            add(
                cases,
                &format!("{name} with {delay}"),
                vec![set("a", "x"), flush().timed(delay), get("a")],
            );
        }
        add(
            cases,
            &format!("{name} then set"),
            vec![flush(), set("a", "x"), get("a")],
        );
        add_open(cases, &format!("{name} with a key"), vec![flush().key("a")]);
        add_open(
            cases,
            &format!("{name} with long extras"),
            vec![flush().stored(0, 0)],
        );
    }
    let touch = |time| Packet::new(op::TOUCH).key("a").timed(time);
    add(cases, "touch", vec![set("a", "x"), touch(100), get("a")]);
    let latest = touch(u32::MAX);
    add(
        cases,
        "touch with the latest time",
        vec![set("a", "x"), latest, get("a")],
    );
    add(cases, "touch of a missing key", vec![touch(100), get("a")]);
    add(
        cases,
        "touch to the past",
        vec![set("a", "x"), touch(PAST), get("a")],
    );
    add_open(
        cases,
        "touch without time",
        vec![Packet::new(op::TOUCH).key("a")],
    );
    add_open(cases, "touch with a value", vec![touch(1).value("x")]);
    let long = Packet::new(op::TOUCH).key("k".repeat(251)).timed(1);
    add_open(cases, "touch key of 251 bytes", vec![long]);
    let verbosity = Packet::new(op::VERBOSITY).timed(0);
    add_open(cases, "verbosity", vec![verbosity]);
    let stat = |key: &str| Packet::new(op::STAT).key(key);
    add(cases, "stat reset", vec![stat("reset")]);
    add(cases, "stat of an unknown group", vec![stat("bogus")]);
    add(
        cases,
        "stat detail",
        vec![stat("detail"), stat("detail on"), stat("detail off")],
    );
    add_open(cases, "stat with extras", vec![stat("reset").timed(0)]);
    for (name, code) in [
        ("sasl mechanisms", op::SASL_MECHS),
        ("sasl auth", op::SASL_AUTH),
        ("sasl step", op::SASL_STEP),
    ] {
        add_open(cases, name, vec![Packet::new(code), get("a")]);
        let plain = Packet::new(code).key("PLAIN").value("\0name\0secret");
        add_open(
            cases,
            &format!("{name} with a mechanism"),
            vec![plain, get("a")],
        );
    }
    for code in [0x1f, 0x25, 0x30, 0x3d, 0x40, 0x48, 0x51, 0x7f, 0x80, 0xff] {
        let name = format!("unknown code {code:02x}");
        add_open(cases, &name, vec![Packet::new(code), get("a")]);
        let name = format!("unknown code {code:02x} with a body");
        let body = Packet::new(code).key("abc").timed(1).value("xyz");
        add_open(cases, &name, vec![set("a", "x"), body, get("a")]);
    }
    let mut many = Vec::new();
    for n in 0..50 {
        many.push(
            Packet::new(op::SETQ)
                .key(format!("k{n}"))
                .stored(n, 0)
                .value("x")
                .opaque(n),
        );
    }
    for n in 0..60 {
        many.push(Packet::new(op::GETQ).key(format!("k{n}")).opaque(n));
    }
    add(cases, "quiet sets and gets in a row", many);
    let each = [
        op::GET,
        op::SET,
        op::ADD,
        op::REPLACE,
        op::DELETE,
        op::APPEND,
        op::PREPEND,
        op::GETK,
    ];
    let all = each.map(|code| match code {
        op::SET | op::ADD | op::REPLACE => set("a", "x"),
        op::APPEND | op::PREPEND => Packet::new(code).key("a").value("y"),
        _ => Packet::new(code).key("a"),
    });
    add(cases, "each command in a row", all.to_vec());
}

fn malformed(cases: &mut Vec<BinaryCase>) {
    for magic in [0x00, 0x7f, 0x81, 0xff] {
        // The answer to the first is awaited: memcached may not have sent it when it closes.
        let wrong = get("a").cas(Cas::Nth(1, 0)).magic(magic);
        let packets = vec![set("a", "x"), wrong, get("a")];
        add(cases, &format!("magic {magic:02x}"), packets);
    }
    add(
        cases,
        "text after binary",
        vec![get("a").tail(b"get a\r\nversion\r\n\r\n\r\n\r\n\r\n")],
    );
    let types = vec![
        set("a", "x").data_type(1),
        get("a").data_type(0xff),
        get("a"),
    ];
    add(cases, "data types", types);
    add(
        cases,
        "vbuckets",
        vec![set("a", "x").vbucket(7), get("a").vbucket(0xffff)],
    );
    for (name, packet) in [
        ("get with key length 0", get("a").key_length(0)),
        (
            "get with key length beyond the body",
            get("a").key_length(100),
        ),
        ("get with body length 0", get("a").body_length(0)),
        ("get with extras length 1", get("a").extras_length(1)),
        ("get with extras length 255", get("a").extras_length(255)),
        ("get with a body of 2^31", get("a").body_length(1 << 31)),
        ("get with a body of 2^32-1", get("a").body_length(u32::MAX)),
        ("set with key length 0", set("a", "x").key_length(0)),
        (
            "set with key length beyond the body",
            set("a", "x").key_length(100),
        ),
        ("set with body length 0", set("a", "x").body_length(0)),
        ("set with body length 9", set("a", "x").body_length(9)),
        (
            "set with a body of 2^31",
            set("a", "x").body_length(1 << 31),
        ),
        (
            "set with a body of 2^32-1",
            set("a", "x").body_length(u32::MAX),
        ),
        ("set with extras length 0", set("a", "x").extras_length(0)),
        ("set with extras length 4", set("a", "x").extras_length(4)),
        (
            "set with a body that ends early",
            set("a", "x").body_length(1000),
        ),
        (
            "noop with a body that ends early",
            Packet::new(op::NOOP).body_length(10),
        ),
        (
            "delete with body length 0",
            Packet::new(op::DELETE).key("a").body_length(0),
        ),
        ("increment with key length 0", {
            Packet::new(op::INCREMENT)
                .key("a")
                .counted(1, 1, 0)
                .key_length(0)
        }),
    ] {
        add_open(cases, name, vec![packet]);
    }
    add_open(
        cases,
        "a header that ends early",
        vec![get("a"), {
            Packet::new(op::GET).key_length(1).body_length(1)
        }],
    );
}
