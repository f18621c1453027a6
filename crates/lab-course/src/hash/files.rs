//! The files of the exercise: the project that `--init` writes, and the programs that check and
//! measure an answer.
//!
//! Manifests are not called `Cargo.toml` in this repository, because cargo leaves a folder with
//! that file out of the package around it.

/// Files of a project: the path and the content of each.
pub(crate) type Files = &'static [(&'static str, &'static str)];

/// The project that `--init` writes.
pub(crate) const START: Files = &[
    ("Cargo.toml", MANIFEST),
    ("README.md", include_str!("start/README.md")),
    ("src/lib.rs", include_str!("start/lib.rs")),
    ("tests/table.rs", include_str!("start/tests.rs")),
];

/// The manifest of an answer.
pub(crate) const MANIFEST: &str = include_str!("start/manifest.toml");

/// The reference answer.
pub(crate) const REFERENCE: &str = include_str!("reference.rs");

/// The lab's own answers: a name and a source.
pub(crate) const OWN: [(&str, &str); 2] = [
    ("start", include_str!("start/lib.rs")),
    ("reference", REFERENCE),
];

/// The manifest of the programs, with names in braces to fill in.
pub(crate) const HARNESS_MANIFEST: &str = include_str!("harness/manifest.toml");

/// The manifest of the answer as it is checked, with names in braces to fill in.
pub(crate) const CHECKED_MANIFEST: &str = include_str!("harness/checked.toml");

/// The lines that put the harness's `std` and `core` in place of the real ones, as the dependencies
/// of an answer whose manifest lies `up` from the folder of the harness.
pub(crate) fn points(up: &str) -> String {
    ["std", "core"]
        .map(|name| {
            format!("{name} = {{ package = \"corelay-hash-{name}\", path = \"{up}/{name}\" }}\n")
        })
        .concat()
}

macro_rules! files {
    ($($krate:literal: $($name:literal)*;)*) => {
        &[$(
            (
                concat!($krate, "/Cargo.toml"),
                include_str!(concat!("harness/", $krate, "/manifest.toml")),
            ),
            $((
                concat!($krate, "/src/", $name, ".rs"),
                include_str!(concat!("harness/", $krate, "/", $name, ".rs")),
            ),)*
        )*]
    };
}

/// The crates that check a table, whichever.
pub(crate) const CRATES: Files = files! {
    "turns": "lib" "dice" "path" "policy" "turns";
    "std": "lib" "atomics" "condvar" "mutex" "rwlock";
    "core": "lib";
    "check": "lib" "alone" "bulk" "crew" "explain" "fresh" "growth" "histories" "keys" "messages"
        "plan" "quiet" "record" "rounds" "table" "watch";
};

/// The program that checks the answer.
pub(crate) const CHECK: &str = include_str!("harness/check/main.rs");

/// The program that measures the answer.
pub(crate) const SCALE: &str = include_str!("harness/scale.rs");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_not_given_away() {
        for (path, text) in START {
            assert!(!text.contains("Stripe"), "{path}");
        }
        assert!(REFERENCE.contains("struct Stripe"));
        assert!(include_str!("start/lib.rs").contains("The big lock."));
    }
}
