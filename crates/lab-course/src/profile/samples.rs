//! The report of perf: samples by thread, object and function.

use serde::Serialize;
use std::cmp::Reverse;

/// The names of threads that insert begin so: those of the ladder, and the members of a flat team.
const INSERTERS: [&str; 2] = ["inserter-", "member"];

/// The name that stands for the kernel and its modules.
pub(super) const KERNEL: &str = "kernel";

/// A function and its samples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Function {
    /// The function's name, without the parameters that the compiler adds.
    pub(super) name: String,
    /// The file that the function is in: the program, a library, or [`KERNEL`].
    pub(super) object: String,
    pub(super) samples: u64,
}

/// The samples of the threads that insert.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Profile {
    /// Whether the kernel's own functions were sampled, too.
    pub(super) sees_kernel: bool,
    /// Samples of the threads that insert.
    pub(super) samples: u64,
    /// Samples of all threads.
    pub(super) all: u64,
    /// Functions of the threads that insert, the hottest first.
    pub(super) functions: Vec<Function>,
}

impl Profile {
    /// Reads `perf report --stdio -F sample,comm,dso,sym -t '|'`. Returns `None` if no inserting
    /// thread has a sample.
    pub(super) fn read(text: &str) -> Option<Self> {
        let event = text.lines().find_map(|line| line.split_once("of event '"));
        let event = event.map_or("", |(_, event)| event.trim_end().trim_end_matches('\''));
        // A suffix restricts the event: `u` to the user's functions.
        let sees_kernel = !event
            .rsplit_once(':')
            .is_some_and(|(_, suffix)| suffix.contains('u') && !suffix.contains('k'));
        let mut profile = Self {
            sees_kernel,
            samples: 0,
            all: 0,
            functions: Vec::new(),
        };
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        for (thread, function) in lines.filter_map(line) {
            profile.all += function.samples;
            if INSERTERS.iter().any(|name| thread.starts_with(name)) {
                profile.samples += function.samples;
                profile.add(function);
            }
        }
        profile
            .functions
            .sort_by_key(|function| Reverse(function.samples));
        (profile.samples > 0).then_some(profile)
    }

    /// Adds samples to those of the same function in other threads.
    fn add(&mut self, function: Function) {
        let mut known = self.functions.iter_mut();
        let is_same =
            |f: &&mut Function| (&f.name, &f.object) == (&function.name, &function.object);
        match known.find(is_same) {
            Some(known) => known.samples += function.samples,
            None => self.functions.push(function),
        }
    }

    /// Returns these samples as a share of all of the threads that insert.
    pub(super) fn share(&self, samples: u64) -> f64 {
        samples as f64 / self.samples as f64
    }

    /// Returns the share of the functions that `is_meant` chooses.
    pub(super) fn share_of(&self, is_meant: impl Fn(&Function) -> bool) -> f64 {
        let meant = self.functions.iter().filter(|function| is_meant(function));
        self.share(meant.map(|function| function.samples).sum())
    }

    /// Returns the objects and their samples, the hottest first.
    pub(super) fn objects(&self) -> Vec<(&str, u64)> {
        let mut objects: Vec<(&str, u64)> = Vec::new();
        for function in &self.functions {
            match objects
                .iter_mut()
                .find(|(name, _)| *name == function.object)
            {
                Some((_, samples)) => *samples += function.samples,
                None => objects.push((&function.object, function.samples)),
            }
        }
        objects.sort_by_key(|(_, samples)| Reverse(*samples));
        objects
    }
}

/// Reads a line: samples, thread, object, function. `None` if it is no such line.
fn line(text: &str) -> Option<(&str, Function)> {
    // A function's name may contain the separator.
    let mut fields = text.splitn(4, '|').map(str::trim);
    let samples = fields.next()?.parse().ok()?;
    let (thread, object, function) = (fields.next()?, fields.next()?, fields.next()?);
    // `[k]` marks the kernel and its modules, `[.]` all else.
    let (mark, name) = function.split_once(' ')?;
    let object = match mark {
        "[k]" => KERNEL,
        _ => object,
    };
    let function = Function {
        name: name.trim().to_owned(),
        object: object.to_owned(),
        samples,
    };
    Some((thread, function))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::profile) const REPORT: &str = include_str!("samples.txt");

    #[test]
    fn a_report_of_perf_is_read() {
        let profile = Profile::read(REPORT).unwrap();
        assert!(profile.sees_kernel);
        // The main thread's 300 samples are not of the insertion.
        assert_eq!((profile.samples, profile.all), (1_000, 1_300));
        let hottest = &profile.functions[0];
        assert_eq!((&*hottest.name, hottest.samples), ("malloc", 410));
        // Two threads' samples of one function are one line.
        let push = profile.functions.iter().find(|f| f.name.ends_with("push"));
        assert_eq!(push.unwrap().samples, 140);
        let odd = profile.functions.last().unwrap();
        assert!(odd.name.contains("a|b"), "{odd:?}");
        let objects = [("libc.so.6", 600), (KERNEL, 250), ("corelay", 150)];
        assert_eq!(profile.objects(), objects);
    }

    #[test]
    fn a_user_without_the_kernels_samples_is_told_apart() {
        for (event, sees_kernel) in [
            ("cpu-clock:u", false),
            ("cpu-clock:uhppp", false),
            ("cpu-clock", true),
            ("cpu-clock:ppp", true),
        ] {
            let text = REPORT.replace("'cpu-clock'", &format!("'{event}'"));
            assert_eq!(
                Profile::read(&text).unwrap().sees_kernel,
                sees_kernel,
                "{event}"
            );
        }
        assert_eq!(Profile::read(""), None);
        assert_eq!(
            Profile::read("Error:\nno samples | here | or | there\n"),
            None
        );
    }
}
