//! `corelay lab list`: the ladder of lists, from one big lock to threads that do not disturb each
//! other.

use super::step::{INTERRUPTED, Size, StepFlags};
use crate::cli::list::{List, Numbers, secs};
use corelay_lab_compare::COMMIT;
use corelay_lab_course::list::ballpark;
use corelay_lab_course::list::climb::Seconds;
use corelay_lab_course::list::flags::{self, Flags};
use corelay_lab_course::list::job::Pages;
use corelay_lab_course::list::ladder::{PARTS_OF_A_THREAD, Plan};
use corelay_lab_course::list::nodes::HEAD;
use corelay_lab_course::list::rungs::{self, RUNGS, Rung};
use corelay_lab_course::list::show::QUESTION;
use corelay_lab_course::shown::Shown;
use corelay_lab_measure::host::Host;
use corelay_lab_measure::measure::memory::available_bytes;
use corelay_lab_measure::measure::rig::Rig;
use corelay_lab_report::exit::Exit;
use corelay_lab_report::output;
use corelay_topology::Order;
use std::time::Duration;

/// The most keys of a thread. Lists with more would not fit into a machine's memory.
pub(super) const MOST_KEYS: u64 = 1 << 28;

/// The largest number that `--threads` takes. A larger one is a typing error.
const MOST_THREADS: u64 = 1024;

/// The default of `--padding`.
const PADDINGS: &str = "0,64,128,4096";

/// The default of `--flags`.
const ALL_FLAGS: &str = "none,p,pm,pl,pa,pml,pma,pla,pmla";

/// Returns the usual number of keys that each thread inserts.
pub(super) const fn usual_keys(size: Size) -> u64 {
    match size {
        Size::Usual => 1_000_000,
        Size::Small => 10_000,
    }
}

/// Returns the usual number of samples of each rung at each point.
pub(super) const fn usual_samples(size: Size) -> u64 {
    match size {
        Size::Usual => 5,
        Size::Small => 1,
    }
}

/// Step 2: insert keys into lists: from one big lock to threads that do not disturb each other (L1–L6)
///
/// Each rung of the ladder removes one reason why two threads are not twice as fast as one; the
/// tables say how much it gains. Every list is checked after every run: it has each key once, and
/// all links in both directions.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Args {
    #[arg(long, value_name = "LIST", value_parser = rungs, help = variants_help())]
    variants: Option<Rungs>,

    /// Run combinations of the ladder's parts instead of its rungs, and say what each part gains with
    /// all else equal: p (a list for each thread), m (nodes made before), l (keys in parts) and a (room
    /// between the heads), as in pm,pml,pl; or none [default if no LIST is given: none, and all with p]
    #[arg(long, value_name = "LIST", num_args = 0..=1, default_missing_value = ALL_FLAGS,
          value_parser = flags, conflicts_with_all = ["variants", "parts", "padding", "source"])]
    flags: Option<Combinations>,

    /// Numbers of threads [default: powers of two below the number of CPUs, and that number]
    #[arg(long, allow_negative_numbers = true, value_name = "LIST", value_parser = threads)]
    threads: Option<List>,

    /// Keys that each thread inserts
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = usual_keys(Size::Usual),
          value_parser = iterations)]
    iterations: u64,

    /// Insert for about so many seconds in each run, instead of a number of keys; a run whose keys do
    /// not fit into the memory fills its lists several times
    #[arg(long, allow_negative_numbers = true, value_name = "S", value_parser = secs,
          conflicts_with = "iterations")]
    secs: Option<f64>,

    /// Parts that the keys are cut into, at least one for each thread; swept with the most threads
    /// [default: 1, 2, 4, 16 and 64 for each thread]
    #[arg(long, allow_negative_numbers = true, value_name = "LIST", value_parser = parts)]
    parts: Option<List>,

    /// Bytes between the heads of two lists: 0 or powers of two; swept with the most threads
    #[arg(long, allow_negative_numbers = true, value_name = "LIST", default_value = PADDINGS,
          value_parser = paddings)]
    padding: List,

    /// Memory that is touched before the timed phase
    #[arg(long, value_enum, default_value_t)]
    pages: Before,

    /// Samples of each rung at each point
    #[arg(long, alias = "rounds", allow_negative_numbers = true, value_name = "N", default_value_t = usual_samples(Size::Usual),
          value_parser = crate::cli::list::number(1..=1000))]
    samples: u64,

    /// Your guess of the ballpark, in Mops: the keys that `biglock` inserts with one thread, in millions
    /// per second [default: the step asks]
    #[arg(long, allow_negative_numbers = true, value_name = "MOPS", value_parser = guess,
          conflicts_with_all = ["flags", "source"])]
    guess: Option<f64>,

    /// Print the source code of all rungs, or of one, and run nothing
    #[arg(long, value_name = "RUNG", num_args = 0..=1, default_missing_value = "all")]
    source: Option<String>,

    #[command(flatten)]
    step: StepFlags,
}

fn guess(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(mops) if mops > 0.0 && mops.is_finite() => Ok(mops),
        _ => Err("a guess is a number of million keys per second, more than 0".to_owned()),
    }
}

#[derive(Clone, Debug)]
struct Combinations(Vec<Flags>);

fn flags(text: &str) -> Result<Combinations, String> {
    let mut all = Vec::new();
    for name in text.split(',') {
        let flags = name.trim().parse()?;
        if !all.contains(&flags) {
            all.push(flags);
        }
    }
    Ok(Combinations(all))
}

/// The memory that is touched before the timed phase, as the command line names it.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum Before {
    /// Keys, arrays and pools; an allocator takes memory from the system during the timed phase
    #[default]
    Touched,
    /// Nothing: the timed phase makes the keys and touches all pages for the first time
    Untouched,
    /// Everything: each thread has allocated and freed as many nodes before
    Recycled,
}

impl From<Before> for Pages {
    fn from(before: Before) -> Self {
        match before {
            Before::Touched => Self::Touched,
            Before::Untouched => Self::Untouched,
            Before::Recycled => Self::Recycled,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Rungs(pub(super) Vec<&'static Rung>);

/// Returns the help of `--variants`, with the rungs of this build.
pub(super) fn variants_help() -> String {
    format!("Rungs to run, of {} [default: all]", rungs::names())
}

/// Parses the name of one rung.
pub(super) fn named_rung(text: &str) -> Result<&'static Rung, String> {
    rungs::named(text)
}

pub(super) fn rungs(text: &str) -> Result<Rungs, String> {
    let mut rungs: Vec<&'static Rung> = Vec::new();
    for name in text.split(',').map(str::trim) {
        let rung = rungs::named(name)?;
        if !rungs.iter().any(|known| known.name == rung.name) {
            rungs.push(rung);
        }
    }
    Ok(Rungs(rungs))
}

fn list(text: &str, bounds: std::ops::RangeInclusive<u64>) -> Result<List, String> {
    let word = None;
    Numbers { bounds, word }.list(text)
}

fn threads(text: &str) -> Result<List, String> {
    list(text, 1..=MOST_THREADS)
}

fn parts(text: &str) -> Result<List, String> {
    list(text, 1..=MOST_KEYS)
}

pub(super) fn iterations(text: &str) -> Result<u64, String> {
    crate::cli::list::number(1..=MOST_KEYS)(text)
}

fn paddings(text: &str) -> Result<List, String> {
    let all = list(text, 0..=1 << 20)?;
    match all
        .0
        .iter()
        .find(|&&n| n != 0 && (!n.is_power_of_two() || n < HEAD as u64))
    {
        Some(wrong) => Err(format!(
            "{wrong} is neither 0 nor a power of two of at least {HEAD}, the size of a head"
        )),
        None => Ok(all),
    }
}

pub(super) fn run(args: &Args) -> Result<Exit, String> {
    if let Some(name) = &args.source {
        return sources(name);
    }
    let host = Host::look(COMMIT);
    let plan = args.plan(&host)?;
    let shown = match &args.flags {
        Some(Combinations(flags)) => combine(flags, &plan, &host)?,
        None => measure(&plan, args.guess, &args.step, &host)?,
    };
    match shown {
        Some(shown) => args.step.print(&shown),
        None => Ok(Exit::Interrupted),
    }
}

/// Runs the step with its defaults, as a part of the whole course.
pub(super) fn step(host: &Host, flags: &StepFlags, size: Size) -> Result<Shown, String> {
    let args = Args {
        variants: None,
        threads: None,
        iterations: usual_keys(size),
        secs: None,
        parts: None,
        padding: paddings(PADDINGS)?,
        pages: Before::default(),
        samples: usual_samples(size),
        guess: None,
        source: None,
        flags: None,
        step: flags.clone(),
    };
    measure(&args.plan(host)?, None, flags, host)?.ok_or_else(|| INTERRUPTED.to_owned())
}

/// Asks for the guesses and measures. Returns `None` if Ctrl-C came before every point had a sample.
fn measure(
    plan: &Plan,
    guessed: Option<f64>,
    flags: &StepFlags,
    host: &Host,
) -> Result<Option<Shown>, String> {
    let ballpark = match (guessed, has_lone_biglock(plan)) {
        (Some(_), false) => {
            return Err(
                "--guess is of `biglock` with one thread; add it to --variants and 1 to --threads"
                    .to_owned(),
            );
        }
        (Some(mops), true) => {
            let mut guess = ballpark::QUESTION.unasked();
            guess.guessed = Some(mops);
            Some(guess)
        }
        (None, true) => Some(flags.ask(ballpark::QUESTION)?),
        (None, false) => None,
    };
    let guess = flags.ask(QUESTION)?;
    let ladder = run_all(
        plan.most(),
        plan.runs(),
        plan.seconds,
        host,
        |rig, cpus, tick| plan.measure(rig, cpus, tick),
    )?;
    Ok(ladder.map(|ladder| ladder.shown(ballpark, guess)))
}

/// Whether the plan has the rung and the thread of the ballpark's question.
fn has_lone_biglock(plan: &Plan) -> bool {
    plan.threads.contains(&1) && plan.rungs.iter().any(|rung| rung.name == "biglock")
}

/// Measures combinations of the ladder's parts. Returns `None` if Ctrl-C came too soon.
fn combine(flags: &[Flags], plan: &Plan, host: &Host) -> Result<Option<Shown>, String> {
    let plan = flags::Plan {
        flags: flags.to_vec(),
        threads: plan.threads.clone(),
        share: plan.share,
        seconds: plan.seconds,
        pages: plan.pages,
        rounds: plan.rounds,
    };
    let combined = run_all(
        plan.most(),
        plan.runs(),
        plan.seconds,
        host,
        |rig, cpus, tick| plan.measure(rig, cpus, tick),
    )?;
    Ok(combined.map(flags::Combined::shown))
}

/// Lets `measure` do so many runs on the CPUs of so many threads, beside a progress bar.
fn run_all<T>(
    threads: usize,
    runs: usize,
    seconds: Option<Seconds>,
    host: &Host,
    measure: impl FnOnce(&mut Rig, &[Option<usize>], &mut dyn FnMut(&str)) -> T,
) -> Result<T, String> {
    let order = Order::default();
    let mut rig = host.rig(&order, 2.min(host.machine.cpus))?;
    let placement = host.place(&order, threads)?;
    let run = match seconds {
        // Lists are also made, checked and freed, which takes about as long.
        Some(seconds) => Duration::from_secs_f64(2.0 * seconds.secs),
        None => Duration::from_millis(100),
    };
    let bar = output::progress(runs as u64, run * runs as u32);
    let measured = measure(&mut rig, placement.cpus(), &mut |name: &str| {
        bar.set_message(name.to_owned());
        bar.inc(1);
    });
    bar.finish_and_clear();
    rig.save();
    Ok(measured)
}

fn sources(name: &str) -> Result<Exit, String> {
    let chosen: Vec<&Rung> = match name {
        "all" => RUNGS.iter().collect(),
        name => vec![rungs::named(name).map_err(|error| format!("--source: {error}"))?],
    };
    for rung in chosen {
        output::say(&format!(
            "// {}: {}\n{}\n",
            rung.name, rung.idea, rung.source
        ))?;
    }
    Ok(Exit::Fine)
}

impl Args {
    fn plan(&self, host: &Host) -> Result<Plan, String> {
        let threads: Vec<usize> = match &self.threads {
            Some(list) => {
                let mut all: Vec<usize> = list.0.iter().map(|&n| n as usize).collect();
                all.sort_unstable();
                all
            }
            None => usual_threads(host.machine.cpus),
        };
        let most = threads.last().copied().unwrap_or(1);
        let seconds = self.secs.map(|secs| Seconds {
            secs,
            most_keys: most_keys(most),
        });
        let keys = match seconds {
            Some(seconds) => seconds.most_keys as u64,
            None => most as u64 * self.iterations,
        };
        if seconds.is_none() && PARTS_OF_A_THREAD as u64 > self.iterations {
            return Err(format!(
                "--iterations {} is less than the {PARTS_OF_A_THREAD} parts that the keys of a thread are \
                 cut into; give at least {PARTS_OF_A_THREAD}",
                self.iterations
            ));
        }
        let parts = match &self.parts {
            Some(list) => list.0.iter().map(|&n| n as usize).collect(),
            None => {
                let mut usual = Plan::usual_parts(most);
                usual.retain(|&parts| parts as u64 <= keys);
                usual
            }
        };
        if let Some(few) = parts.iter().find(|&&parts| parts < most) {
            return Err(format!(
                "--parts {few} is less than --threads {most}; give at least {most}, so that each thread \
                 has work"
            ));
        }
        if let Some(many) = parts.iter().find(|&&parts| parts as u64 > keys) {
            return Err(format!(
                "--parts {many} is more than the {keys} keys; give at most {keys}"
            ));
        }
        if seconds.is_none() {
            check_memory(keys, self.iterations)?;
        }
        Ok(Plan {
            rungs: match &self.variants {
                Some(Rungs(rungs)) => rungs.clone(),
                None => RUNGS.iter().collect(),
            },
            threads,
            share: match seconds {
                Some(_) => PARTS_OF_A_THREAD,
                None => self.iterations as usize,
            },
            seconds,
            parts,
            paddings: self.padding.0.iter().map(|&n| n as usize).collect(),
            pages: self.pages.into(),
            rounds: self.samples as usize,
        })
    }
}

/// Memory for each key: the key, a node with its allocator's overhead, and the bit of the check,
/// for which a byte is counted.
const BYTES_OF_A_KEY: u64 = 8 + 64 + 1;

/// Returns the most keys that `threads` threads insert at once in a run of seconds: half of the
/// memory that is available holds them.
fn most_keys(threads: usize) -> usize {
    let known = available_bytes().map(|available| available / 2 / BYTES_OF_A_KEY);
    let most = known.unwrap_or(usual_keys(Size::Usual) * threads as u64);
    let least = (PARTS_OF_A_THREAD * threads) as u64;
    most.clamp(least, MOST_KEYS.max(least)) as usize
}

/// Checks that `keys` keys fit into the memory that is available.
///
/// # Errors
/// A sentence that names `--iterations`.
pub(super) fn check_memory(keys: u64, iterations: u64) -> Result<(), String> {
    let (needed, gib) = (keys * BYTES_OF_A_KEY, |n: u64| {
        n as f64 / f64::from(1 << 30)
    });
    match available_bytes() {
        Some(available) if needed > available / 10 * 9 => Err(format!(
            "--iterations {iterations}: {keys} keys would take {:.1} GiB, and only {:.1} GiB are \
             available; give fewer",
            gib(needed),
            gib(available)
        )),
        _ => Ok(()),
    }
}

/// Returns the powers of two below `cpus`, then `cpus`.
pub(super) fn usual_threads(cpus: usize) -> Vec<usize> {
    let mut threads: Vec<usize> = std::iter::successors(Some(1), |n| Some(2 * n))
        .take_while(|&n| n < cpus)
        .collect();
    threads.push(cpus.max(1));
    threads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_double_up_to_the_cpus() {
        for (cpus, threads) in [
            (1, vec![1]),
            (2, vec![1, 2]),
            (6, vec![1, 2, 4, 6]),
            (8, vec![1, 2, 4, 8]),
        ] {
            assert_eq!(usual_threads(cpus), threads);
        }
    }

    #[test]
    fn paddings_are_powers_of_two() {
        assert_eq!(paddings("0,32,4096").unwrap().0, [0, 32, 4096]);
        for wrong in ["1", "16", "100", "64,96", "x", ""] {
            assert!(paddings(wrong).is_err(), "{wrong}");
        }
    }
}
