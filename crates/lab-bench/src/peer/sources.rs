//! The sources of the programs, from `crates/lab-bench/peers`.

/// The files of a program: each one's path in the build folder, and its text.
pub(super) type Files = &'static [(&'static str, &'static str)];

/// Lists files as `"path in the build folder" = "path in peers/"`.
macro_rules! files {
    ($($to:literal = $from:literal),* $(,)?) => {
        &[$(($to, include_str!(concat!("../../peers/", $from)))),*]
    };
}

/// The program for Tokio. Its manifest is not called `Cargo.toml` in the repository, because cargo
/// leaves folders with such a file out of the surrounding package.
pub(super) const TOKIO: Files = files! {
    "tokio/Cargo.toml" = "tokio/manifest.toml",
    "tokio/Cargo.lock" = "tokio/manifest.lock",
    "tokio/src/main.rs" = "tokio/src/main.rs",
    "frame/frame.rs" = "frame/frame.rs",
};

/// The program for may.
pub(super) const MAY: Files = files! {
    "may/Cargo.toml" = "may/manifest.toml",
    "may/Cargo.lock" = "may/manifest.lock",
    "may/src/main.rs" = "may/src/main.rs",
    "frame/frame.rs" = "frame/frame.rs",
};

/// The program for Go.
pub(super) const GO: Files = files! {
    "go/go.mod" = "go/go.mod",
    "go/main.go" = "go/main.go",
    "go/frame.go" = "go/frame.go",
    "go/pin.s" = "go/pin.s",
};

/// The program for Boost.Fiber.
pub(super) const BOOST: Files = files! {
    "boost/main.cpp" = "boost/main.cpp",
    "boost/probe.cpp" = "boost/probe.cpp",
    "cpp/benches.hpp" = "cpp/benches.hpp",
    "cpp/frame.hpp" = "cpp/frame.hpp",
};

/// The program for libfibre.
pub(super) const LIBFIBRE: Files = files! {
    "libfibre/main.cpp" = "libfibre/main.cpp",
    "libfibre/probe.cpp" = "libfibre/probe.cpp",
    "cpp/benches.hpp" = "cpp/benches.hpp",
    "cpp/frame.hpp" = "cpp/frame.hpp",
};

#[cfg(test)]
mod tests {
    use super::*;

    fn text(files: Files, path: &str) -> &'static str {
        files.iter().find(|(to, _)| *to == path).expect(path).1
    }

    /// Compares the versions in program texts, which cannot ask for them, with the manifests.
    #[test]
    fn programs_name_the_pinned_versions() {
        for (name, files) in [("tokio", TOKIO), ("may", MAY)] {
            let main = text(files, &format!("{name}/src/main.rs"));
            let (_, after) = main.split_once("version: \"").unwrap();
            let (version, _) = after.split_once('"').unwrap();
            let manifest = text(files, &format!("{name}/Cargo.toml"));
            let pinned = manifest.lines().find(|line| line.starts_with(name));
            let pinned = pinned.expect("it depends on it");
            assert!(
                pinned.contains(&format!("\"={version}\"")),
                "{name} {version} is not what is pinned: {pinned}"
            );
        }
    }

    /// Tests that no manifest around the build folder can change a program's settings.
    #[test]
    fn manifests_are_workspaces_of_their_own() {
        for (path, files) in [("tokio/Cargo.toml", TOKIO), ("may/Cargo.toml", MAY)] {
            assert!(text(files, path).lines().any(|line| line == "[workspace]"));
        }
    }
}
