//! A sharded map beside its rivals: two threads, batches of 32 keys, millions of keys a second.
//!
//! | rival | what it is |
//! |---|---|
//! | sharded | `ShardedMap` on a flat team of two: one request for each shard of a batch |
//! | dashmap | `DashMap`, which has a lock for each of its shards, and no batches |
//! | buckets | a chained table with a `std` mutex for each bucket, on a cache line of its own |
//! | mutexes | a `std` mutex for each of two maps of `std`, taken for a batch's keys once |
//!
//! All hash by `std`'s `RandomState`, and then by `foldhash`'s. Rivals take turns, block by block, so
//! that whatever else the machine does affects all of them. Blocks in which a thread was preempted
//! do not count. Each rival's counters are checked at its end.
//!
//! Before and after a block the two threads measure the round trip of a cache line between their
//! CPUs. A block is *near* if both round trips are at most twice the shortest usual one, *far* if
//! neither is, and does not count otherwise.
//!
//! `cargo run --release -p corelay-structures --example sharded_speed` runs all cases, in at most
//! three minutes. With a rival, `std` or `fold`, `update` or `get`, a number of keys, `uniform` or
//! `zipf`, and a number of batches, it runs one block of that case, for callgrind.

use corelay_delegate::{Team, Trustees};
use corelay_structures::sharded::ShardedMap;
use corelay_sync::CachePadded;
use dashmap::DashMap;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::hint::{black_box, spin_loop};
use std::process::exit;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const THREADS: usize = 2;
const BATCH: usize = 32;
/// Turns of each rival in a case.
const ROUNDS: usize = 151;
/// The time after which a case has no more rounds.
const LIMIT: Duration = Duration::from_secs(9);
/// Batches of each thread in a block, with few keys: a millisecond or two. An eighth of it with
/// many.
const BLOCK: usize = 800;
/// Tries to run a block without preemption.
const TRIES: usize = 4;
/// Round trips of a probe.
const TRIPS: u32 = 300;
/// Keys that each thread draws, and then takes in turn.
const DRAWN: usize = 1 << 18;

#[derive(Clone, Copy, PartialEq)]
enum Operation {
    Update,
    Get,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Update => "update",
            Self::Get => "get",
        }
    }
}

/// A hasher that all rivals can have.
trait Hasher: BuildHasher + Clone + Default + Send + Sync + 'static {}
impl<B: BuildHasher + Clone + Default + Send + Sync + 'static> Hasher for B {}

/// A map of all keys, with a count for each.
trait Rival: Sync {
    fn new(keys: usize) -> Self;
    /// Adds 1 to the counts of the keys, or reads them, and returns the sum of what it found.
    fn batch(&self, operation: Operation, keys: &[u64]) -> u64;
    /// The sum of all counts.
    fn sum(&self) -> u64;
    /// Does a thread's part of the other's work, if it has one, between two looks at something.
    fn serve(&self) {
        spin_loop();
    }
    /// Runs `work` on every thread, with its number.
    fn run(&self, work: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|s| {
            for thread in 0..THREADS {
                s.spawn(move || {
                    pin(thread);
                    work(thread);
                });
            }
        });
    }
}

fn add(n: &mut u64) -> u64 {
    *n += 1;
    *n
}

struct Sharded<B> {
    map: ShardedMap<u64, u64, B>,
    team: Team,
}

impl<B: Hasher> Rival for Sharded<B> {
    fn new(keys: usize) -> Self {
        let team = Trustees::flat(THREADS).pin(0..THREADS);
        let team = team.start().unwrap_or_else(|why| {
            eprintln!("{why}");
            exit(1)
        });
        let map = ShardedMap::with_hasher(&team, B::default());
        map.insert_many((0..keys as u64).map(|key| (key, 0)));
        Self { map, team }
    }

    fn batch(&self, operation: Operation, keys: &[u64]) -> u64 {
        let found = match operation {
            Operation::Update => self.map.update_many(keys, add),
            Operation::Get => self.map.get_many(keys),
        };
        found.into_iter().flatten().sum()
    }

    fn sum(&self) -> u64 {
        let mut sum = 0;
        self.map.for_each(|_, n| sum += n);
        sum
    }

    fn serve(&self) {
        corelay_delegate::poll();
    }

    fn run(&self, work: &(dyn Fn(usize) + Sync)) {
        self.team.run(|me| work(me.number()));
    }
}

impl<B: Hasher> Rival for DashMap<u64, u64, B> {
    fn new(keys: usize) -> Self {
        (0..keys as u64).map(|key| (key, 0)).collect()
    }

    fn batch(&self, operation: Operation, keys: &[u64]) -> u64 {
        let one = |key| match operation {
            Operation::Update => self.get_mut(key).map(|mut n| add(&mut n)),
            Operation::Get => self.get(key).map(|n| *n),
        };
        keys.iter().filter_map(one).sum()
    }

    fn sum(&self) -> u64 {
        self.iter().map(|entry| *entry).sum()
    }
}

#[repr(align(64))]
struct Bucket(Mutex<Vec<(u64, u64)>>);

struct Buckets<B> {
    buckets: Vec<Bucket>,
    hasher: B,
}

impl<B: Hasher> Buckets<B> {
    fn bucket(&self, key: u64) -> &Mutex<Vec<(u64, u64)>> {
        &self.buckets[self.hasher.hash_one(key) as usize & (self.buckets.len() - 1)].0
    }
}

impl<B: Hasher> Rival for Buckets<B> {
    fn new(keys: usize) -> Self {
        let buckets = (0..keys.next_power_of_two()).map(|_| Bucket(Mutex::default()));
        let all = Self {
            buckets: buckets.collect(),
            hasher: B::default(),
        };
        for key in 0..keys as u64 {
            all.bucket(key).lock().unwrap().push((key, 0));
        }
        all
    }

    fn batch(&self, operation: Operation, keys: &[u64]) -> u64 {
        let one = |&key: &u64| {
            let mut bucket = self.bucket(key).lock().unwrap();
            let entry = bucket.iter_mut().find(|entry| entry.0 == key);
            entry.map(|(_, n)| match operation {
                Operation::Update => add(n),
                Operation::Get => *n,
            })
        };
        keys.iter().filter_map(one).sum()
    }

    fn sum(&self) -> u64 {
        let of_bucket =
            |bucket: &Bucket| -> u64 { bucket.0.lock().unwrap().iter().map(|(_, n)| n).sum() };
        self.buckets.iter().map(of_bucket).sum()
    }
}

struct Mutexes<B> {
    shards: [Mutex<HashMap<u64, u64, B>>; THREADS],
    hasher: B,
}

impl<B: Hasher> Mutexes<B> {
    fn place(&self, key: u64) -> usize {
        (self.hasher.hash_one(key) >> 40) as usize % THREADS
    }
}

impl<B: Hasher> Rival for Mutexes<B> {
    fn new(keys: usize) -> Self {
        let all = Self {
            shards: Default::default(),
            hasher: B::default(),
        };
        for key in 0..keys as u64 {
            all.shards[all.place(key)].lock().unwrap().insert(key, 0);
        }
        all
    }

    fn batch(&self, operation: Operation, keys: &[u64]) -> u64 {
        let mut groups: [Vec<u64>; THREADS] = Default::default();
        for &key in keys {
            groups[self.place(key)].push(key);
        }
        let mut sum = 0;
        for (group, shard) in groups.iter().zip(&self.shards) {
            let mut shard = shard.lock().unwrap();
            for key in group {
                sum += match operation {
                    Operation::Update => shard.get_mut(key).map_or(0, add),
                    Operation::Get => shard.get(key).copied().unwrap_or(0),
                };
            }
        }
        sum
    }

    fn sum(&self) -> u64 {
        let of_shard =
            |shard: &Mutex<HashMap<_, u64, B>>| -> u64 { shard.lock().unwrap().values().sum() };
        self.shards.iter().map(of_shard).sum()
    }
}

/// Pins this thread. A machine with one CPU has all threads on that.
fn pin(cpu: usize) {
    if let Err(why) = corelay_topology::pin_current_thread(cpu) {
        eprintln!("not pinned: {why}");
    }
}

/// The keys that a thread draws, of `0..keys`: each equally often, or by Zipf's law with 0.99.
fn draw(keys: usize, zipf: bool, thread: usize) -> Vec<u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(thread as u64 + 1);
    // SplitMix64.
    let mut random = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    if !zipf {
        return (0..DRAWN).map(|_| random() % keys as u64).collect();
    }
    let mut sum = 0.0;
    let weights = (1..=keys).map(|rank| {
        sum += (rank as f64).powf(-0.99);
        sum
    });
    let sums: Vec<f64> = weights.collect();
    let all = sums[keys - 1];
    let rank = |x: f64| sums.partition_point(|&sum| sum < x).min(keys - 1) as u64;
    (0..DRAWN)
        .map(|_| rank(random() as f64 / u64::MAX as f64 * all))
        .collect()
}

/// How often the system has taken the CPU away from this thread so far.
fn preemptions() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
    line.and_then(|n| n.trim().parse().ok()).unwrap_or(0)
}

/// Waits until all threads are here. It spins: a thread that sleeps would go on later.
fn meet(arrived: &AtomicUsize, spin: impl Fn()) {
    arrived.fetch_add(1, Ordering::AcqRel);
    while arrived.load(Ordering::Acquire) < THREADS {
        spin();
    }
}

/// The time of a round trip between the two threads, in nanoseconds. Each has a line to write to.
fn round_trip(lines: &[CachePadded<AtomicU32>; THREADS], thread: usize, trips: u32) -> f64 {
    let (own, other) = (&lines[thread], &lines[1 - thread]);
    let begun = Instant::now();
    for n in 1..=trips {
        if thread == 0 {
            own.store(n, Ordering::Release);
        }
        while other.load(Ordering::Acquire) < n {
            spin_loop();
        }
        own.store(n, Ordering::Release);
    }
    begun.elapsed().as_nanos() as f64 / f64::from(trips)
}

/// The part of a case that all rivals have in common.
struct Case {
    operation: Operation,
    /// The keys of each thread.
    drawn: Vec<Vec<u64>>,
    /// The batches of each thread in a block.
    batches: usize,
    /// The round trips of a probe.
    trips: u32,
}

impl Case {
    fn new(operation: Operation, keys: usize, zipf: bool, batches: usize, trips: u32) -> Self {
        let drawn = (0..THREADS).map(|thread| draw(keys, zipf, thread));
        Self {
            operation,
            drawn: drawn.collect(),
            batches,
            trips,
        }
    }
}

/// A block without preemption.
struct Sample {
    /// Millions of keys a second of both threads.
    rate: f64,
    /// Round trips before and after, in nanoseconds.
    trips: [f64; 2],
}

/// Runs a block. Returns `None` if a thread was preempted: then the threads have not worked at the
/// same time.
fn block<R: Rival>(rival: &R, case: &Case) -> Option<Sample> {
    let meetings: [AtomicUsize; 3] = Default::default();
    let lines: [[CachePadded<AtomicU32>; THREADS]; 2] = Default::default();
    let threads = Mutex::new(Vec::new());
    rival.run(&|thread| {
        let mut keys = case.drawn[thread].chunks_exact(BATCH).cycle();
        meet(&meetings[0], spin_loop);
        let before = preemptions();
        let trip = round_trip(&lines[0], thread, case.trips);
        meet(&meetings[1], spin_loop);
        let begun = Instant::now();
        for _ in 0..case.batches {
            if let Some(keys) = keys.next() {
                black_box(rival.batch(case.operation, keys));
            }
        }
        let time = begun.elapsed();
        meet(&meetings[2], || rival.serve());
        let trips = [trip, round_trip(&lines[1], thread, case.trips)];
        let sample = (preemptions() == before).then_some((time, trips));
        threads.lock().unwrap().push(sample);
    });
    let threads: Option<Vec<_>> = threads.into_inner().unwrap().into_iter().collect();
    let (time, trips) = threads?.into_iter().max_by_key(|(time, _)| *time)?;
    let keys = (case.batches * BATCH * THREADS) as f64;
    Some(Sample {
        rate: keys / time.as_secs_f64() / 1e6,
        trips,
    })
}

/// A rival with the blocks that it has run.
struct Run<R> {
    name: &'static str,
    rival: R,
    /// Batches of each thread, those of blocks that do not count included.
    batches: usize,
    samples: Vec<Sample>,
}

impl<R: Rival> Run<R> {
    fn new(name: &'static str, keys: usize) -> Self {
        Self {
            name,
            rival: R::new(keys),
            batches: 0,
            samples: Vec::new(),
        }
    }

    fn block(&mut self, case: &Case) {
        for _ in 0..TRIES {
            let sample = block(&self.rival, case);
            self.batches += case.batches;
            if let Some(sample) = sample {
                self.samples.push(sample);
                return;
            }
        }
    }

    /// Checks the counts, and returns the samples.
    fn end(self, case: &Case) -> (&'static str, Vec<Sample>) {
        let updates = match case.operation {
            Operation::Update => self.batches * BATCH * THREADS,
            Operation::Get => 0,
        };
        assert_eq!(self.rival.sum(), updates as u64, "updates were lost");
        (self.name, self.samples)
    }
}

/// The quartiles of values, the median in the middle. NaN if there are none.
fn quartiles(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    [1, 2, 3].map(|n| values.get(last * n / 4).copied().unwrap_or(f64::NAN))
}

/// The samples of all rivals in one case.
struct Row {
    /// The words that name the case.
    case: String,
    rivals: [(&'static str, Vec<Sample>); 4],
}

/// Runs a case with all rivals.
fn compare<B: Hasher>(hasher: &str, operation: Operation, keys: usize, law: &str) -> Row {
    let batches = if keys > 1_000 { BLOCK / 8 } else { BLOCK };
    let case = Case::new(operation, keys, law == "zipf", batches, TRIPS);
    let mut sharded = Run::<Sharded<B>>::new("sharded", keys);
    let mut dashmap = Run::<DashMap<u64, u64, B>>::new("dashmap", keys);
    let mut buckets = Run::<Buckets<B>>::new("buckets", keys);
    let mut mutexes = Run::<Mutexes<B>>::new("mutexes", keys);
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        sharded.block(&case);
        dashmap.block(&case);
        buckets.block(&case);
        mutexes.block(&case);
        if begun.elapsed() > LIMIT {
            break;
        }
    }
    Row {
        case: format!("{:6} {keys:8} {law:8} {hasher:5}", operation.name()),
        rivals: [
            sharded.end(&case),
            dashmap.end(&case),
            buckets.end(&case),
            mutexes.end(&case),
        ],
    }
}

/// Prints the lines of one mode: of the samples for which `counts` is true of both round trips.
fn print_mode(row: &Row, mode: &str, counts: impl Fn(f64) -> bool) {
    let samples = |at: usize| {
        let all = row.rivals[at].1.iter();
        all.filter(|sample| sample.trips.iter().all(|trip| counts(*trip)))
    };
    let rates = |at| quartiles(samples(at).map(|sample| sample.rate));
    let [_, ours, _] = rates(0);
    for (at, (rival, _)) in row.rivals.iter().enumerate() {
        let blocks = samples(at).count();
        print!("{} {mode:5} {rival:8} {blocks:6}", row.case);
        if blocks == 0 {
            println!("  not seen");
            continue;
        }
        let [low, median, high] = rates(at);
        let [_, trip, _] = quartiles(samples(at).flat_map(|sample| sample.trips));
        let ratio = ours / median;
        println!(" {low:7.1} {median:7.1} {high:7.1} {ratio:7.2} {trip:8.0}");
    }
}

fn compare_all() {
    let mut rows = Vec::new();
    for operation in [Operation::Update, Operation::Get] {
        for keys in [16, 1_000_000] {
            for law in ["uniform", "zipf"] {
                eprintln!("{} {keys} {law} …", operation.name());
                rows.push(compare::<RandomState>("std", operation, keys, law));
                let fold = compare::<foldhash::fast::RandomState>("fold", operation, keys, law);
                rows.push(fold);
            }
        }
    }
    let samples = rows
        .iter()
        .flat_map(|row| row.rivals.iter().flat_map(|(_, all)| all));
    let mut trips: Vec<_> = samples.flat_map(|sample| sample.trips).collect();
    trips.sort_by(f64::total_cmp);
    // One in twenty may be shorter: now and then both threads are on one core.
    let usual = trips.get(trips.len() / 20).copied().unwrap_or(f64::NAN);
    println!(
        "{THREADS} threads, batches of {BATCH}; up to {ROUNDS} blocks of each rival in turn.\n\
         low, median, high: quartiles of millions of keys a second, both threads together.\n\
         ratio: the median of sharded by that of the rival in the same mode.\n\
         trip: median round trip between the CPUs, in ns; near is at most {:.0}.\n\n\
         call       keys law      hash  mode  rival    blocks     low  median    high   ratio     trip",
        2.0 * usual
    );
    for row in &rows {
        print_mode(row, "near", |trip| trip <= 2.0 * usual);
        print_mode(row, "far", |trip| trip > 2.0 * usual);
    }
}

/// Runs one block of one rival, whether or not it is preempted, and checks the counts.
fn once<R: Rival>(case: &Case, keys: usize) {
    let mut run = Run::<R>::new("", keys);
    block(&run.rival, case);
    run.batches = case.batches;
    run.end(case);
}

fn once_with<B: Hasher>(rival: &str, case: &Case, keys: usize) {
    match rival {
        "sharded" => once::<Sharded<B>>(case, keys),
        "dashmap" => once::<DashMap<u64, u64, B>>(case, keys),
        "buckets" => once::<Buckets<B>>(case, keys),
        "mutexes" => once::<Mutexes<B>>(case, keys),
        other => misuse("a rival, sharded, dashmap, buckets or mutexes", other),
    }
}

fn misuse(wanted: &str, given: &str) -> ! {
    eprintln!(
        "{given:?} is not {wanted}.\nGive nothing for all cases, or for one block: \
         RIVAL std|fold update|get KEYS uniform|zipf BATCHES"
    );
    exit(2)
}

/// A number of keys or batches.
fn number(text: &str) -> usize {
    match text.parse() {
        Ok(n @ 1..=100_000_000) => n,
        _ => misuse("a number from 1 to 100,000,000", text),
    }
}

fn main() {
    let args: Vec<_> = std::env::args().skip(1).collect();
    if args.is_empty() {
        if std::thread::available_parallelism().is_ok_and(|n| n.get() < THREADS) {
            eprintln!("two threads that wait for each other by spinning need two CPUs");
            exit(1);
        }
        return compare_all();
    }
    let [rival, hasher, operation, keys, law, batches] = &args[..] else {
        misuse("a list of six arguments", &args.join(" "))
    };
    let operation = match operation.as_str() {
        "update" => Operation::Update,
        "get" => Operation::Get,
        other => misuse("a call, update or get", other),
    };
    let zipf = match law.as_str() {
        "zipf" => true,
        "uniform" => false,
        other => misuse("a law, uniform or zipf", other),
    };
    let keys = number(keys);
    let case = Case::new(operation, keys, zipf, number(batches), 0);
    match hasher.as_str() {
        "std" => once_with::<RandomState>(rival, &case, keys),
        "fold" => once_with::<foldhash::fast::RandomState>(rival, &case, keys),
        other => misuse("a hasher, std or fold", other),
    }
}
