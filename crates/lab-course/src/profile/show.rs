//! The output of a profile: the hottest objects and functions, and sentences about them.

use super::Plan;
use super::samples::{Function, KERNEL, Profile};
use crate::printed;
use crate::shown::{Part, Shown};
use corelay_lab_report::plot::{grouped, percent, significant};
use corelay_lab_report::table::grid::Grid;
use corelay_lab_report::words::count;
use serde_json::json;

/// Parts of the names of the kernel's functions that give memory to a process.
const OF_MEMORY: [&str; 12] = [
    "page", "fault", "folio", "mmap", "madvise", "brk", "vma", "anon", "zap", "lru", "pte", "memcg",
];

/// Parts of the names of the kernel's functions that let threads sleep and wake them.
const OF_SLEEP: [&str; 4] = ["futex", "sched", "wake", "switch"];

/// Parts of the names of an allocator's functions in the C library.
const OF_MALLOC: [&str; 5] = ["malloc", "free", "calloc", "chunk", "arena"];

/// Share of the kernel's samples from which a kind of function explains them.
const EXPLAINS: f64 = 0.5;

/// Share of all samples from which the kernel counts as busy.
const BUSY: f64 = 0.1;

fn is_named(function: &Function, parts: &[&str]) -> bool {
    parts.iter().any(|part| function.name.contains(part))
}

impl Plan {
    /// Writes a profile up like a step of the course.
    pub(super) fn shown(&self, profile: &Profile, top: usize) -> Shown {
        let mut shown = Shown::new(
            "profile",
            format!("A profile of `{}` by function", self.rung.name),
        );
        shown.title = shown.title.replace('`', "");
        shown.parts = vec![
            Part::Words(format!(
                "{} inserted {} keys each, again and again for about {} s, in a process that perf sampled by \
                 the kernel's timer (`cpu-clock`). {} samples are of these threads; {} of the main thread, \
                 which makes keys, checks lists and frees nodes, are left out.",
                count(self.threads as u64, "thread", "threads"),
                grouped(self.share as u64),
                significant(self.secs),
                grouped(profile.samples),
                grouped(profile.all - profile.samples)
            )),
            Part::Table(objects(profile)),
            Part::Table(functions(profile, top)),
        ];
        let malloc = profile.share_of(|f| f.object.starts_with("libc") && is_named(f, &OF_MALLOC));
        // Without the kernel's samples a share is not one of the CPU time.
        let printed: Vec<_> = (self.rung.name == "partitioned" && profile.sees_kernel)
            .then(|| printed::malloc(malloc))
            .into_iter()
            .collect();
        shown
            .parts
            .extend(printed::table(&printed).map(Part::Table));
        shown.look_at = vec![kernel(self.rung.name, profile)];
        shown
            .look_at
            .extend(printed.iter().map(|printed| printed.sentence.clone()));
        shown.figures = json!({
            "rung": self.rung.name,
            "threads": self.threads,
            "keys": self.share,
            "profile": profile,
            "kernel": profile.sees_kernel.then(|| kernels_share(profile)),
            "printed": printed,
        });
        shown
    }
}

fn kernels_share(profile: &Profile) -> f64 {
    profile.share_of(|function| function.object == KERNEL)
}

fn objects(profile: &Profile) -> Grid {
    let row = |(object, samples): (&str, u64)| {
        vec![
            object.to_owned(),
            percent(profile.share(samples)),
            grouped(samples),
        ]
    };
    Grid {
        title: "Samples by file; kernel is the kernel with its modules".to_owned(),
        head: ["file", "share", "samples"].map(str::to_owned).to_vec(),
        rows: profile.objects().into_iter().map(row).collect(),
    }
}

fn functions(profile: &Profile, top: usize) -> Grid {
    let row = |function: &Function| {
        vec![
            short(&function.name),
            function.object.clone(),
            percent(profile.share(function.samples)),
            grouped(function.samples),
        ]
    };
    Grid {
        title: format!(
            "The hottest functions, {} of {}",
            grouped(top.min(profile.functions.len()) as u64),
            grouped(profile.functions.len() as u64)
        ),
        head: ["function", "file", "share", "samples"]
            .map(str::to_owned)
            .to_vec(),
        rows: profile.functions.iter().take(top).map(row).collect(),
    }
}

/// The most letters of a function's name in a table.
const LETTERS: usize = 60;

/// Returns the end of a long name: Rust's names begin with the path.
fn short(name: &str) -> String {
    let letters = name.chars().count();
    match letters > LETTERS {
        true => format!(
            "…{}",
            name.chars().skip(letters - LETTERS + 1).collect::<String>()
        ),
        false => name.to_owned(),
    }
}

/// Answers the source's question about the kernel, as far as the samples do.
fn kernel(rung: &str, profile: &Profile) -> String {
    if !profile.sees_kernel {
        return "Why is the kernel busy? perf may not sample it here \
                (/proc/sys/kernel/perf_event_paranoid), so its share is unknown; `corelay lab why` counts page \
                faults and sleeps instead."
            .to_owned();
    }
    let all = kernels_share(profile);
    let place = profile
        .objects()
        .iter()
        .position(|(name, _)| *name == KERNEL);
    let Some(place) = place.filter(|_| all >= BUSY) else {
        return format!(
            "Why is the kernel busy? It is not with `{rung}`: {} of the samples are the kernel's.",
            percent(all)
        );
    };
    let of_kernel = |parts: &[&str]| {
        profile.share_of(|function| function.object == KERNEL && is_named(function, parts)) / all
    };
    let (memory, sleep) = (of_kernel(&OF_MEMORY), of_kernel(&OF_SLEEP));
    let hottest = profile.functions.iter().find(|f| f.object == KERNEL);
    let hottest = hottest.map_or("", |function| &*function.name);
    let why = if memory >= EXPLAINS && memory >= sleep {
        format!(
            "{} of them are in functions that, by their names, give pages of memory: new nodes lie in memory \
             that the process touches for the first time.",
            percent(memory)
        )
    } else if sleep >= EXPLAINS {
        format!(
            "{} of them are in functions that, by their names, let threads sleep and wake them: threads wait \
             for a lock.",
            percent(sleep)
        )
    } else {
        "Neither page faults nor sleeping threads are most of them, by the functions' names; the table says \
         which functions are. A timer's sample that the kernel holds back is counted where it lets it through."
            .to_owned()
    };
    format!(
        "Why is the kernel busy? The source's profile has it second, as [vmlinux]; here it is number {} of the \
         files, with {} of the samples. The hottest of its functions is `{hottest}`. {why}",
        place + 1,
        percent(all)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::rungs;
    use crate::profile::samples::tests::REPORT;

    fn profile() -> Profile {
        Profile::read(REPORT).unwrap()
    }

    fn shown(rung: &str, profile: &Profile) -> String {
        let plan = Plan {
            rung: rungs::named(rung).unwrap(),
            threads: 2,
            share: 1_000,
            secs: 0.5,
        };
        let text = plan.shown(profile, 3).to_string();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_profile_is_told_with_the_kernel_apart() {
        let text = shown("partitioned", &profile());
        for words in [
            "1,000 samples are of these threads; 300 of the main thread",
            "kernel 25 % 250",
            "malloc libc.so.6 41 % 410",
            "3 of 7",
            "number 2 of the files, with 25 % of the samples",
            "`clear_page_erms`",
            "Here, too, more than half: 60 %",
        ] {
            let words = words.replace('`', "");
            assert!(text.contains(&words), "{words} is missing in {text}");
        }
        // The source's figure is of one program, and of the kernel's time, too.
        assert!(!shown("padded", &profile()).contains("more than half"));
        let mut of_user = profile();
        of_user.sees_kernel = false;
        assert!(!shown("partitioned", &of_user).contains("more than half"));
    }

    #[test]
    fn the_kernel_is_blamed_for_what_it_did() {
        let told = |mut profile: Profile, names: [&str; 3]| {
            let mut names = names.into_iter();
            for function in &mut profile.functions {
                if function.object == KERNEL {
                    function.name = names.next().unwrap().to_owned();
                }
            }
            kernel("partitioned", &profile)
        };
        let pages = told(profile(), ["clear_page_erms", "do_anonymous_page", "x"]);
        assert!(pages.contains("pages of memory"), "{pages}");
        let sleeps = told(profile(), ["futex_wake", "try_to_wake_up", "schedule"]);
        assert!(
            sleeps.contains("wake them") && !sleeps.contains("pages"),
            "{sleeps}"
        );
        let other = told(profile(), ["a", "b", "c"]);
        assert!(other.contains("Neither"), "{other}");
        let mut quiet = profile();
        quiet.functions.retain(|function| function.object != KERNEL);
        assert!(kernel("padded", &quiet).contains("It is not with `padded`"));
        quiet.sees_kernel = false;
        assert!(kernel("padded", &quiet).contains("share is unknown"));
    }

    #[test]
    fn the_end_of_a_long_name_is_kept() {
        let name = format!("{}::push", "a".repeat(80));
        assert!(short(&name).starts_with('…') && short(&name).ends_with("::push"));
        assert_eq!(short(&name).chars().count(), LETTERS);
        assert_eq!(short("malloc"), "malloc");
    }
}
