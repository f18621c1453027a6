//! The programs' sources, as they lie in `crates/lab-bench/peers`.

/// Where a file goes in the folder of the build, and what is in it.
pub(super) type Files = &'static [(&'static str, &'static str)];

macro_rules! files {
    ($($to:literal = $from:literal),* $(,)?) => {
        &[$(($to, include_str!(concat!("../../peers/", $from)))),*]
    };
}

/// Manifests are not called `Cargo.toml` at home: cargo leaves a folder that has one out of
/// the package around it.
pub(super) const TOKIO: Files = files! {
    "tokio/Cargo.toml" = "tokio/manifest.toml",
    "tokio/Cargo.lock" = "tokio/manifest.lock",
    "tokio/src/main.rs" = "tokio/src/main.rs",
    "frame/frame.rs" = "frame/frame.rs",
};

pub(super) const MAY: Files = files! {
    "may/Cargo.toml" = "may/manifest.toml",
    "may/Cargo.lock" = "may/manifest.lock",
    "may/src/main.rs" = "may/src/main.rs",
    "frame/frame.rs" = "frame/frame.rs",
};

pub(super) const GO: Files = files! {
    "go/go.mod" = "go/go.mod",
    "go/main.go" = "go/main.go",
    "go/frame.go" = "go/frame.go",
    "go/pin.s" = "go/pin.s",
};

pub(super) const BOOST: Files = files! {
    "boost/main.cpp" = "boost/main.cpp",
    "boost/frame.hpp" = "boost/frame.hpp",
    "boost/probe.cpp" = "boost/probe.cpp",
};

#[cfg(test)]
mod tests {
    use super::*;

    fn text(files: Files, path: &str) -> &'static str {
        files.iter().find(|(to, _)| *to == path).expect(path).1
    }

    /// A program says its runtime's version, which it cannot ask for.
    #[test]
    fn programs_name_the_versions_that_manifests_pin() {
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

    /// Or the folder in which it is built would have a say in its settings.
    #[test]
    fn manifests_are_workspaces_of_their_own() {
        for (path, files) in [("tokio/Cargo.toml", TOKIO), ("may/Cargo.toml", MAY)] {
            assert!(text(files, path).lines().any(|line| line == "[workspace]"));
        }
    }
}
