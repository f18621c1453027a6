//! What the Rust peers share: flags, the clock and the watch of a run, random numbers, and
//! the line of JSON at the end.
//!
//! Programs differ in how they wait and switch, and in nothing else: the bodies of the five
//! benchmarks are written out in each `main.rs`.

use std::fmt::Write as _;
use std::process::exit;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How long a run may go without progress, or take to end once *stop* is set.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many times *stop* posts each semaphore of churn.
pub const LAST_POSTS: usize = 10_000;

/// Who runs it.
pub struct Peer {
    pub name: &'static str,
    /// As the manifest pins it.
    pub version: &'static str,
    /// What the reader of a figure should know.
    pub note: &'static str,
}

/// What to run, from the flags.
#[derive(Clone, Debug)]
pub struct Plan {
    pub bench: String,
    pub processors: usize,
    /// t: fibres, and for cycle rings.
    pub fibres: usize,
    /// Zero: by iterations.
    pub secs: f64,
    /// Per fibre; for transfer in all. `u64::MAX`: by time, as churn and locality always are:
    /// fibres that leave would strand those that stay.
    pub iterations: u64,
    pub ring: usize,
    pub semaphores: usize,
    pub spots: usize,
    pub words: usize,
    pub touches: usize,
    pub share: bool,
    pub parking: bool,
    pub seed: u64,
}

impl Plan {
    /// From the command line; says what is wrong with it, and ends.
    pub fn from_args() -> Plan {
        Self::parse(std::env::args().skip(1)).unwrap_or_else(|why| {
            eprintln!("{why}");
            exit(2)
        })
    }

    fn parse(mut args: impl Iterator<Item = String>) -> Result<Plan, String> {
        let mut plan = Plan {
            bench: String::new(),
            processors: 1,
            fibres: 0,
            secs: 0.0,
            iterations: u64::MAX,
            ring: 5,
            semaphores: 0,
            spots: 0,
            words: 2,
            touches: 2,
            share: false,
            parking: true,
            seed: 1,
        };
        while let Some(flag) = args.next() {
            let value = args.next().ok_or(format!("{flag} has no value"))?;
            let bad = || format!("{flag} does not take {value:?}");
            let count = || value.parse::<usize>().map_err(|_| bad());
            match flag.as_str() {
                "--bench" => plan.bench = value,
                "--processors" => plan.processors = count()?,
                "--fibres" => plan.fibres = count()?,
                "--secs" => plan.secs = value.parse().map_err(|_| bad())?,
                "--iterations" => plan.iterations = value.parse().map_err(|_| bad())?,
                "--ring" => plan.ring = count()?,
                "--semaphores" => plan.semaphores = count()?,
                "--spots" => plan.spots = count()?,
                "--words" => plan.words = count()?,
                "--touches" => plan.touches = count()?,
                "--seed" => plan.seed = value.parse().map_err(|_| bad())?,
                "--share" => plan.share = either(&value, "on", "off").ok_or_else(bad)?,
                "--flavour" => plan.parking = either(&value, "park", "yield").ok_or_else(bad)?,
                _ => return Err(format!("there is no flag {flag}")),
            }
        }
        plan.complete()?;
        Ok(plan)
    }

    /// Fills in what was left out and refuses what cannot run.
    fn complete(&mut self) -> Result<(), String> {
        let (p, t) = (self.processors, self.fibres);
        let timed = self.secs > 0.0;
        let endless = matches!(self.bench.as_str(), "churn" | "locality");
        if p < 1 || t < 1 {
            return Err("--processors and --fibres have to be at least 1".into());
        }
        if timed == (self.iterations != u64::MAX) || self.iterations == 0 {
            return Err("give --secs or --iterations, above 0, and not both".into());
        }
        if endless && !timed {
            return Err(format!("{} takes --secs", self.bench));
        }
        match self.bench.as_str() {
            "cycle" if self.ring < 1 => Err("a ring has at least 1 fibre".into()),
            "cycle" | "yield" => Ok(()),
            "churn" => {
                if self.semaphores == 0 {
                    self.semaphores = (t / 2).max(1);
                }
                if t < self.semaphores + p {
                    let s = self.semaphores;
                    return Err(format!("churn needs {s} + {p} fibres or more, and has {t}"));
                }
                Ok(())
            }
            "locality" => {
                if self.spots == 0 {
                    self.spots = t.saturating_sub(p);
                }
                if self.spots < 1 || self.spots >= t || self.words < 1 {
                    return Err("locality needs words, and fewer spots than fibres".into());
                }
                Ok(())
            }
            "transfer" if p < 2 => Err("transfer needs 2 processors or more".into()),
            "transfer" if t < 2 => Err("transfer needs 2 fibres or more".into()),
            "transfer" if timed => Err("transfer takes --iterations".into()),
            "transfer" => Ok(()),
            other => Err(format!("there is no benchmark {other:?}")),
        }
    }

    /// How many fibres run.
    pub fn crew(&self) -> usize {
        match self.bench.as_str() {
            "cycle" => self.ring * self.fibres,
            _ => self.fibres,
        }
    }
}

fn either(value: &str, yes: &str, no: &str) -> Option<bool> {
    (value == yes || value == no).then_some(value == yes)
}

/// On a pair of cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
pub struct Aligned<T>(pub T);

impl<T> std::ops::Deref for Aligned<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

/// What one fibre, or one processor, did. It alone writes here, so adding is a load and a
/// store: Relaxed, for counts order nothing, and the final ones are read after `left` is 0.
#[derive(Default)]
#[repr(align(128))]
pub struct Tally {
    pub operations: AtomicU64,
    pub migrations: AtomicU64,
    pub data_migrations: AtomicU64,
    pub rechecks: AtomicU64,
}

/// Adds one to a count of one writer, and returns the sum.
#[inline]
pub fn add_one(count: &AtomicU64) -> u64 {
    let sum = count.load(Ordering::Relaxed) + 1;
    count.store(sum, Ordering::Relaxed);
    sum
}

/// One run: when it began and ended, who still runs, what was done.
pub struct Run {
    pub plan: Plan,
    pub tallies: Box<[Tally]>,
    /// Operations by processor, where a fibre knows it anyway: in locality.
    pub by_processor: Box<[Tally]>,
    /// Transfer's lead_idx; elsewhere zero.
    pub leads: Aligned<AtomicU64>,
    stop: Aligned<AtomicBool>,
    /// Fibres that run, and one more until the end is noted.
    left: Aligned<AtomicUsize>,
    /// When and at which CPU time the fibres were let go; set before that.
    began: OnceLock<(Instant, f64)>,
    wall_ns: AtomicU64,
    cpu_ns: AtomicU64,
}

impl Run {
    pub fn new(plan: Plan) -> Arc<Run> {
        let crew = plan.crew();
        let tallies = |n| (0..n).map(|_| Tally::default()).collect();
        Arc::new(Run {
            tallies: tallies(crew),
            by_processor: tallies(plan.processors),
            leads: Aligned::default(),
            stop: Aligned::default(),
            left: Aligned(AtomicUsize::new(crew + 1)),
            began: OnceLock::new(),
            wall_ns: AtomicU64::new(0),
            cpu_ns: AtomicU64::new(0),
            plan,
        })
    }

    /// Counts an operation; whether it was this fibre's last.
    #[inline]
    pub fn counted(&self, fibre: usize) -> bool {
        let count = add_one(&self.tallies[fibre].operations);
        self.stopped() || count >= self.plan.iterations
    }

    /// Relaxed: the flag carries nothing.
    #[inline]
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// A fibre ends. The last one stops the clock of a run by iterations.
    pub fn leave(&self) {
        // AcqRel: pairs with the Acquire in `watch`, which then reads the tallies.
        if self.left.fetch_sub(1, Ordering::AcqRel) == 2 {
            self.stamp();
            // Release: as above, with the stamp.
            self.left.fetch_sub(1, Ordering::Release);
        }
    }

    /// Notes when the run ended; only the first note counts.
    pub fn stamp(&self) {
        let (began, cpu_began) = self.began.get().expect("nobody ends before the start");
        let wall = began.elapsed().as_nanos() as u64;
        let first = (self.wall_ns).compare_exchange(0, wall, Ordering::Relaxed, Ordering::Relaxed);
        if first.is_ok() {
            let cpu = ((cpu_s() - cpu_began) * 1e9) as u64;
            self.cpu_ns.store(cpu, Ordering::Relaxed);
        }
    }

    /// The main thread: lets the fibres `go`, looks every 100 ms (a run by iterations, every
    /// 5), sets *stop*, lets `end` wake who waits, waits for all to leave, and reports.
    pub fn watch(&self, peer: &Peer, go: impl FnOnce(), end: impl FnOnce()) {
        let (began, _) = *self.began.get_or_init(|| (Instant::now(), cpu_s()));
        go();
        let timed = self.plan.secs > 0.0;
        let look = Duration::from_millis(if timed { 100 } else { 5 });
        let until = Duration::from_secs_f64(self.plan.secs);
        let (mut seen, mut since) = (u64::MAX, Instant::now());
        while self.left.load(Ordering::Acquire) > 0 {
            let left = until.saturating_sub(began.elapsed());
            std::thread::sleep(if timed { left.min(look) } else { look });
            if timed && began.elapsed() >= until {
                break;
            }
            let done = self.done();
            if done != seen {
                (seen, since) = (done, Instant::now());
            } else if since.elapsed() > PATIENCE && self.plan.bench == "transfer" {
                // A result: some fibre never ran. The leader spins, so this cannot be stopped,
                // unless it is through, and only the end did not reach all.
                self.stamp();
                let through = self.leads.load(Ordering::Relaxed) > self.plan.iterations;
                self.report(peer, through);
                exit(0);
            } else if since.elapsed() > PATIENCE {
                self.give_up("made no progress");
            }
        }
        if timed {
            self.stamp();
        }
        self.stop.store(true, Ordering::Relaxed);
        end();
        let since = Instant::now();
        while self.left.load(Ordering::Acquire) > 0 {
            std::thread::sleep(Duration::from_millis(1));
            if since.elapsed() > PATIENCE {
                self.give_up("did not end once it was told to stop");
            }
        }
        self.report(peer, true);
    }

    fn done(&self) -> u64 {
        let operations = |tally: &Tally| tally.operations.load(Ordering::Relaxed);
        self.leads.load(Ordering::Relaxed) + self.tallies.iter().map(operations).sum::<u64>()
    }

    fn give_up(&self, what: &str) -> ! {
        let left = self.left.load(Ordering::Relaxed) - 1;
        let (bench, secs) = (&self.plan.bench, PATIENCE.as_secs());
        eprintln!("{bench} {what} within {secs} s: {left} fibres are left");
        exit(3)
    }

    fn report(&self, peer: &Peer, completed: bool) {
        let Peer {
            name,
            version,
            note,
        } = peer;
        let plan = &self.plan;
        let column = |tallies: &[Tally], of: fn(&Tally) -> &AtomicU64| -> Vec<u64> {
            let read = |tally| of(tally).load(Ordering::Relaxed);
            tallies.iter().map(read).collect()
        };
        let per_fibre = column(&self.tallies, |tally| &tally.operations);
        let per_processor = column(&self.by_processor, |tally| &tally.operations);
        let sum = |of| column(&self.tallies, of).iter().sum::<u64>();
        let (locality, transfer) = (plan.bench == "locality", plan.bench == "transfer");
        let given = |known: bool, value: String| if known { value } else { "null".into() };
        let mut line = String::new();
        let _ = write!(
            line,
            r#"{{"peer":"{name}","version":"{version}","bench":"{}","processors":{},"fibres":{},"#,
            plan.bench,
            plan.processors,
            plan.crew()
        );
        let _ = write!(
            line,
            r#""operations":{},"wall_s":{},"cpu_s":{},"completed":{completed},"#,
            per_fibre.iter().sum::<u64>(),
            self.wall_ns.load(Ordering::Relaxed) as f64 * 1e-9,
            self.cpu_ns.load(Ordering::Relaxed) as f64 * 1e-9,
        );
        let _ = write!(
            line,
            r#""per_processor":{},"fibre_migrations":{},"data_migrations":{},"rechecks":{},"#,
            given(locality, format!("{per_processor:?}")),
            given(locality, sum(|tally| &tally.migrations).to_string()),
            given(locality, sum(|tally| &tally.data_migrations).to_string()),
            given(transfer, sum(|tally| &tally.rechecks).to_string()),
        );
        let _ = write!(line, r#""per_fibre":{per_fibre:?},"note":"{note}"}}"#);
        println!("{line}");
    }
}

/// CPU time of the whole process, in seconds.
fn cpu_s() -> f64 {
    // SAFETY: zeros are a valid `rusage`.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is there to be written to.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// Marsaglia's xorshift64; the same in all programs.
pub struct Random(u64);

impl Random {
    /// Of one fibre: splitmix64 of seed and number, so that neighbours differ.
    pub fn new(seed: u64, fibre: usize) -> Random {
        let mut z = (seed.wrapping_add(fibre as u64 + 1)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Random((z ^ (z >> 31)) | 1)
    }

    /// Below `n`.
    #[inline]
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

thread_local! {
    static PROCESSOR: std::cell::Cell<usize> = const { std::cell::Cell::new(usize::MAX) };
}

/// Which of the runtime's threads this is, by the order in which they first asked.
///
/// Never inlined: a fibre may be on another thread after a switch, and the compiler may keep
/// a thread-local's address over it.
#[inline(never)]
pub fn processor(processors: usize) -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    PROCESSOR.with(|mine| {
        if mine.get() == usize::MAX {
            // Relaxed: the number only has to be unique. Threads besides the runtime's
            // processors run no fibres.
            mine.set(NEXT.fetch_add(1, Ordering::Relaxed) % processors);
        }
        mine.get()
    })
}

/// An array of locality: the words, and the processor that touched them last.
#[repr(align(128))]
pub struct Data {
    pub words: Box<[AtomicU64]>,
    pub last: AtomicUsize,
}

impl Data {
    pub fn new(words: usize) -> Data {
        Data {
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
            last: AtomicUsize::new(usize::MAX),
        }
    }

    /// Adds one to random words. Relaxed: with sharing, several fibres may have one array,
    /// and losing an increment is part of the benchmark.
    #[inline]
    pub fn touch(&self, touches: usize, random: &mut Random) {
        for _ in 0..touches {
            add_one(&self.words[random.below(self.words.len())]);
        }
    }
}

/// Step 5 of locality: who migrated, fibre or data. Returns the processor of now.
pub fn count_migrations(run: &Run, fibre: usize, before: usize, data: &Data) -> usize {
    let now = processor(run.plan.processors);
    add_one(&run.by_processor[now].operations);
    if now != before {
        add_one(&run.tallies[fibre].migrations);
    }
    let last = data.last.load(Ordering::Relaxed);
    if last != now {
        data.last.store(now, Ordering::Relaxed);
        if last != usize::MAX {
            add_one(&run.tallies[fibre].data_migrations);
        }
    }
    now
}
