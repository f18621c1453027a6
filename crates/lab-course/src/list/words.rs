//! The sentences about the ladder's figures. Each is chosen by the figures that it speaks of.

use super::job::Pages;
use super::show::apart;
use corelay_lab_measure::schema::Mode;
use corelay_lab_report::plot::{grouped, percent, significant};
use corelay_lab_report::words::{count, times};
use std::cmp::Ordering;

/// Ratio below which a difference is not pointed out.
const NOTICEABLE: f64 = 1.1;

/// Compares `a` with `b`: they are equal if neither is noticeably more.
pub(crate) fn compare(a: f64, b: f64) -> Ordering {
    match a / b {
        ratio if ratio >= NOTICEABLE => Ordering::Greater,
        ratio if ratio <= NOTICEABLE.recip() => Ordering::Less,
        _ => Ordering::Equal,
    }
}

/// One list under one lock: how many times as fast the threads are as one.
pub(super) fn biglock(threads: usize, speed_up: f64) -> String {
    let threads = count(threads as u64, "thread", "threads");
    match compare(speed_up, 1.0) {
        Ordering::Less => format!(
            "With {threads} `biglock` does {} of what it does with one: the list's head, the lock and \
             the newest node move from core to core with each insertion, and a thread that waits long \
             enough sleeps and has to be woken. More threads make it slower, not merely no faster.",
            percent(speed_up)
        ),
        Ordering::Equal => format!(
            "With {threads} `biglock` does {} what it does with one: one thread at a time inserts \
             under the lock, whatever the number of threads.",
            times(speed_up)
        ),
        Ordering::Greater => format!(
            "With {threads} `biglock` does {} what it does with one, although one thread at a time \
             inserts under the lock: the threads share the work outside it, which makes nodes and \
             touches their memory.",
            times(speed_up)
        ),
    }
}

/// A list for each thread, with nodes made while inserting and before.
pub(super) fn preallocated(partitioned: f64, preallocated: f64) -> String {
    let both = format!(
        "From `partitioned` to `preallocated` ({} to {} Mops) only one thing has changed: the nodes are \
         made before.",
        significant(partitioned),
        significant(preallocated)
    );
    let what = match compare(preallocated, partitioned) {
        Ordering::Greater => "The difference is what making them costs.",
        Ordering::Equal => "That makes no difference here: something else takes the time.",
        Ordering::Less => "That is slower here.",
    };
    format!("{both} {what} `corelay lab why` counts the page faults of both.")
}

/// Bytes between the heads of two threads' lists, and the throughput at each.
pub(super) fn padding(all: &[(usize, f64)], pages: Option<Pages>, mode: Mode) -> Option<String> {
    let least = all.iter().min_by_key(|(padding, _)| *padding)?;
    let best = all.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let worst = all.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    if compare(best.1, least.1).is_gt() {
        return Some(format!(
            "False sharing: no thread ever touches another one's list, and yet {} between their heads \
             make the same program {} as fast as {}. The heads were in one cache line, which each \
             insertion takes from the other core.",
            apart(best.0),
            times(best.1 / least.1),
            apart(least.0)
        ));
    }
    if compare(worst.1, least.1).is_lt() {
        return Some(format!(
            "False sharing cannot be seen here: {} between the heads make the program {} as fast as {}.",
            apart(worst.0),
            times(worst.1 / least.1),
            apart(least.0)
        ));
    }
    let why = match (pages, mode) {
        (Some(Pages::Untouched), _) => {
            "With --pages untouched, page faults take most of the time: `corelay lab why` counts them."
        }
        (_, Mode::Unknown) => {
            "Threads that take turns on one CPU do not share lines at the same time."
        }
        _ => "The threads' lines do not wait for each other, or something else takes the time.",
    };
    Some(format!(
        "False sharing cannot be seen here: padding changes nothing. {why}"
    ))
}

/// The fewest and the most parts that the keys are cut into, and the throughput at each, with a
/// neighbour on the first CPU.
pub(super) fn parts(few: (usize, f64), many: (usize, f64)) -> String {
    let both = format!(
        "Stragglers: with a neighbour on one CPU, {} parts give {} Mops and {} give {}.",
        grouped(few.0 as u64),
        significant(few.1),
        grouped(many.0 as u64),
        significant(many.1)
    );
    let what = match compare(many.1, few.1) {
        Ordering::Greater => {
            "With as many parts as threads all wait for the slowest; with more, a slow thread takes \
             fewer of them."
        }
        Ordering::Equal => {
            "More parts make no difference here: what they save in waiting for the slow thread, if \
             anything, they cost."
        }
        Ordering::Less => {
            "More parts are slower here: each has to be fetched and has a list of its own to be joined, \
             which costs more than waiting for the slow thread."
        }
    };
    format!("{both} {what} `corelay lab timeline` draws it.")
}

/// A list for each CPU under a lock, beside a list for each thread in one line, and in lines of its
/// own.
pub(super) fn percpu(percpu: f64, balanced: f64, padded: f64) -> String {
    let what = match compare(percpu, balanced) {
        Ordering::Greater => format!(
            "`percpu`, a list for each CPU, is {} as fast as `balanced`: no CPU writes another one's line.",
            times(percpu / balanced)
        ),
        Ordering::Equal => {
            "`percpu`, a list for each CPU, is as fast as `balanced`: what it saves in shared lines, if \
             anything, its locks cost."
                .to_owned()
        }
        Ordering::Less => format!(
            "`percpu`, a list for each CPU, is only {} as fast as `balanced`: its locks cost more than shared \
             lines.",
            times(percpu / balanced)
        ),
    };
    let beside = match compare(percpu, padded) {
        Ordering::Less => format!(
            "Padding is the better cure here, {} as fast: a thread of a program may be moved to another CPU \
             between its look at the CPU and the insertion, so each list needs a lock, which nobody else wants \
             and which costs something all the same.",
            times(padded / percpu)
        ),
        _ => "It costs no more than padding here, though each list has a lock: a thread may be moved to another \
              CPU between its look at the CPU and the insertion."
            .to_owned(),
    };
    format!("{what} {beside}")
}

/// Nodes from a pool beside nodes from the system's allocator.
pub(super) fn pool(pool: f64, system: f64) -> String {
    let ratio = times(pool / system);
    let same = "the same program, with nodes from a pool for their one size instead of a general allocator";
    match compare(pool, system) {
        Ordering::Greater => format!(
            "`pool` is {ratio} as fast as `system`: {same}. Unlike the array of `preallocated`, a pool can \
             free each node by itself."
        ),
        Ordering::Equal => format!(
            "`pool` is as fast as `system` ({ratio}): {same}. The allocator is not what takes the time \
             here."
        ),
        Ordering::Less => format!("`pool` is only {ratio} as fast as `system`: {same}."),
    }
}

/// One list that a thread owns, beside one list under a lock, and the lists of all threads apart.
pub(super) fn delegated(delegated: f64, biglock: f64, split: Option<f64>) -> String {
    let ratio = times(delegated / biglock);
    let what = match compare(delegated, biglock) {
        Ordering::Greater => format!(
            "`delegated` keeps the one list and still does {ratio} what `biglock` does: the list stays in \
             the cache of its owner, and only nodes travel."
        ),
        Ordering::Equal => format!(
            "`delegated` keeps the one list and does as much as `biglock` ({ratio}): sending the nodes \
             costs as much as moving the list."
        ),
        Ordering::Less => format!(
            "`delegated` keeps the one list and does only {ratio} what `biglock` does: sending each node to \
             the owner costs more than moving the list."
        ),
    };
    match split {
        Some(split) if compare(split, delegated).is_gt() => {
            format!("{what} If the structure can be split, splitting it is faster.")
        }
        _ => what,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sentence_says_what_its_figures_say() {
        let holds = |text: &str, word: &str| assert!(text.contains(word), "{word}: {text}");
        holds(&biglock(2, 0.3), "slower, not merely");
        holds(&biglock(2, 1.0), "one thread at a time");
        holds(&biglock(2, 1.7), "although");
        holds(&preallocated(30.0, 400.0), "what making them costs");
        holds(&preallocated(30.0, 30.0), "no difference");
        holds(&preallocated(30.0, 20.0), "slower here");
        let (few, many) = (
            parts((2, 900.0), (128, 1200.0)),
            parts((2, 1200.0), (128, 800.0)),
        );
        holds(&few, "takes fewer of them");
        holds(&many, "More parts are slower here");
        assert!(!many.contains("takes fewer"), "{many}");
        holds(&parts((2, 1000.0), (128, 1001.0)), "no difference");
        let dear = percpu(120.0, 60.0, 600.0);
        holds(&dear, "2.0");
        holds(&dear, "better cure");
        holds(&percpu(60.0, 60.0, 62.0), "no more than padding");
        let slow = percpu(30.0, 60.0, 20.0);
        holds(&slow, "cost more than shared lines");
        assert!(!slow.contains("better cure"), "{slow}");
        holds(&pool(800.0, 75.0), "can free each node");
        holds(&pool(75.0, 75.0), "not what takes the time");
        holds(&pool(50.0, 75.0), "only 0.67");
        holds(&delegated(40.0, 7.0, Some(800.0)), "splitting it is faster");
        holds(&delegated(40.0, 40.0, Some(30.0)), "as much as `biglock`");
        let loses = delegated(4.0, 40.0, Some(3.0));
        holds(&loses, "only 0.10");
        assert!(!loses.contains("splitting"), "{loses}");
    }

    #[test]
    fn padding_blames_what_is_to_blame() {
        let told = |mops: [f64; 3], pages, mode| {
            let all: Vec<_> = [0, 64, 4096].into_iter().zip(mops).collect();
            padding(&all, pages, mode).unwrap()
        };
        let seen = told([400.0, 1200.0, 1200.0], None, Mode::Near);
        assert!(seen.contains("from the other core"), "{seen}");
        let costs = told([400.0, 390.0, 200.0], None, Mode::Near);
        assert!(
            costs.contains("4 KiB between the heads make the program 0.50"),
            "{costs}"
        );
        let level = [400.0, 410.0, 405.0];
        let faults = told(level, Some(Pages::Untouched), Mode::Near);
        assert!(
            faults.contains("page faults") && !faults.contains("one CPU"),
            "{faults}"
        );
        let turns = told(level, Some(Pages::Touched), Mode::Unknown);
        assert!(turns.contains("one CPU"), "{turns}");
        let other = told(level, Some(Pages::Touched), Mode::Far);
        assert!(
            !other.contains("one CPU") && !other.contains("fault"),
            "{other}"
        );
        assert_eq!(padding(&[], None, Mode::Near), None);
    }
}
