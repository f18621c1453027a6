//! Modules of a crate form layers, and import from their own and lower ones only.
//!
//! A crate that wants this has a `layers.toml`, the lowest layer first. The top-level modules
//! of one layer may use each other:
//!
//! ```toml
//! layers = [["error", "metrics"], ["wire"], ["client", "lane"]]
//! ```
//!
//! The rule looks at paths from `crate::` and those by which `super::` leaves a module. A name that
//! `lib.rs` re-exports counts as the module that has it. Code under `#[cfg(test)]` and files
//! `tests.rs` are free.

use super::Finding;
use crate::source::Code;
use crate::workspace::{self, Member, Workspace};
use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const FILE: &str = "layers.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Map {
    layers: Vec<Vec<String>>,
}

pub(super) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for member in workspace.members()? {
        let path = member.dir.join(FILE);
        if path.is_file() {
            let shown = workspace.shown(&path);
            let map = toml::from_str(&workspace::read(&path)?).with_context(|| shown.clone())?;
            for (place, what) in check_crate(&member, &map)? {
                let place = place.map_or(shown.clone(), |(file, line)| {
                    format!("{}:{line}", workspace.shown(&file))
                });
                findings.push(Finding::error(place, what));
            }
        }
    }
    Ok(findings)
}

/// A place in the source, or none for the map itself, and what is wrong there.
type Complaint = (Option<(PathBuf, usize)>, String);

fn check_crate(member: &Member, map: &Map) -> Result<BTreeSet<Complaint>> {
    let mut complaints = BTreeSet::new();
    let exports = exports(member)?;
    let mut heights = BTreeMap::new();
    for (height, modules) in map.layers.iter().enumerate() {
        heights.extend(modules.iter().map(|module| (module.as_str(), height)));
    }
    if heights.len() < map.layers.iter().map(Vec::len).sum() {
        complaints.insert((None, "a module is in two layers; keep one".to_owned()));
    }
    let mut unseen: BTreeSet<&str> = heights.keys().copied().collect();
    for path in member.sources()? {
        let parts = module_path(path.strip_prefix(member.dir.join("src"))?);
        let (Some(own), false) = (parts.first(), path.ends_with("tests.rs")) else {
            continue;
        };
        unseen.remove(own.as_str());
        let Some(height) = heights.get(own.as_str()) else {
            complaints.insert((None, format!("the module {own} is in no layer; add it")));
            continue;
        };
        for mention in Code::shipped(&path)?.mentions() {
            let name = from_root(&mention.path, parts.len());
            let module = name.map(|name| exports.get(name).map_or(name, String::as_str));
            let other = module.and_then(|module| heights.get(module));
            if other.is_some_and(|other| other > height) {
                let module = module.unwrap_or_default();
                let what = format!(
                    "{own} uses {module}, which is in a higher layer; move the shared part down, \
                     or hand it down as a value"
                );
                complaints.insert((Some((path.clone(), mention.line)), what));
            }
        }
    }
    let gone = |module| (None, format!("there is no module {module}; remove it"));
    complaints.extend(unseen.into_iter().map(gone));
    Ok(complaints)
}

/// The modules that a file of `src/` is in: `a/mod.rs` and `a.rs` give `a`.
fn module_path(file: &Path) -> Vec<String> {
    let path = file.with_extension("");
    let parts = path.iter().map(|part| part.to_string_lossy().into_owned());
    parts
        .filter(|part| !["lib", "main", "mod"].contains(&part.as_str()))
        .collect()
}

/// The name in the crate's root that a path begins with. `depth` modules are around it.
fn from_root(path: &str, depth: usize) -> Option<&str> {
    let mut names = path.split("::");
    let first = names.next()?;
    let supers = path.split("::").take_while(|name| *name == "super").count();
    if first != "crate" && supers < depth {
        return None;
    }
    names.find(|name| *name != "super")
}

/// The names that `lib.rs` re-exports, with their modules.
fn exports(member: &Member) -> Result<BTreeMap<String, String>> {
    let mut exports = BTreeMap::new();
    let lib = member.dir.join("src/lib.rs");
    if !lib.is_file() {
        return Ok(exports);
    }
    let mentions = Code::shipped(&lib)?.mentions();
    for import in mentions.iter().filter(|mention| mention.is_import) {
        let path = import
            .path
            .split("::")
            .skip_while(|p| ["crate", "self"].contains(p));
        let path: Vec<&str> = path.collect();
        if let [module, .., name] = path[..] {
            exports.insert(name.to_owned(), module.to_owned());
        }
    }
    Ok(exports)
}

#[cfg(test)]
mod tests {
    use super::super::assert_finds;
    use super::*;

    const LIB: &str = "mod error; mod wire; mod client;\npub use client::{Client, Reply as R};\n";

    #[track_caller]
    fn wire(source: &str, wanted: &[&str]) {
        let map = "layers = [[\"error\"], [\"wire\", \"pace\"], [\"client\"]]";
        let files = [
            ("crates/locks/layers.toml", map),
            ("crates/locks/src/lib.rs", LIB),
            ("crates/locks/src/error.rs", ""),
            ("crates/locks/src/pace.rs", "use crate::wire::Word;"),
            ("crates/locks/src/wire/word.rs", source),
            (
                "crates/locks/src/wire/tests.rs",
                "use crate::client::Client;",
            ),
            (
                "crates/locks/src/client/mod.rs",
                "use crate::{error::E, wire::word};",
            ),
        ];
        assert_finds(check, &files, wanted);
    }

    #[test]
    fn a_module_uses_its_own_and_lower_layers() {
        wire("use crate::{error::Error, pace};\nuse super::ring;", &[]);
        wire(
            "// crate::client\n#[cfg(test)]\nmod tests { use crate::client; }",
            &[],
        );
        wire(
            "use std::client::Client;\nclient::run();\npub(crate) fn f() {}",
            &[],
        );
    }

    #[test]
    fn each_use_of_a_higher_layer_is_found() {
        let wanted =
            "crates/locks/src/wire/word.rs:2: wire uses client, which is in a higher layer";
        for source in [
            "\nuse crate::client::Client;",
            "\nuse crate::{error, client as c};",
            "\nfn f() { crate::client::run() }",
            "\nm! { $crate::client::run() }",
            "\nuse super::super::client;",
            "\nuse crate::Client;",
            "\nfn f(reply: crate::Reply) {}",
        ] {
            wire(source, &[wanted]);
        }
    }

    #[test]
    fn the_map_names_each_module_once() {
        let finds = |map: &str, wanted: &[_]| {
            let files = [
                ("crates/locks/layers.toml", map),
                ("crates/locks/src/wire.rs", ""),
                ("crates/locks/src/ring/a.rs", ""),
                ("crates/locks/src/ring/b.rs", ""),
            ];
            assert_finds(check, &files, wanted);
        };
        finds("layers = [[\"wire\"], [\"ring\"]]", &[]);
        let wanted = "crates/locks/layers.toml: the module ring is in no layer";
        finds("layers = [[\"wire\"]]", &[wanted]);
        let gone = "layers = [[\"wire\", \"ring\"], [\"gone\"]]";
        finds(gone, &["crates/locks/layers.toml: there is no module gone"]);
        finds(
            "layers = [[\"wire\", \"ring\"], [\"wire\"]]",
            &["is in two layers"],
        );
    }

    #[test]
    fn a_crate_without_a_map_is_free() {
        let source = "use crate::anything::at::all;";
        assert_finds(check, &[("crates/locks/src/wire.rs", source)], &[]);
    }
}
