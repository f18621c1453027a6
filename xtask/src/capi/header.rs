//! `corelay.h`, as cbindgen writes it from the Rust source.

use super::DIR;
use crate::steps::Verdict;
use crate::tidy::Finding;
use crate::workspace::Workspace;
use anyhow::{Context, Result, anyhow};
use std::fs;

/// The sources, in the order in which they are in the header.
const SOURCES: &[&str] = &["status.rs", "servers.rs", "delegate.rs", "client.rs"];

const HEADER: &str = "crates/capi/include/corelay.h";

/// Rust's words, and C's.
const WORDS: &[(&str, &str)] = &[
    ("# Safety", "The caller's duties:"),
    // Variants have their enum's name before them; the library's is enough.
    ("CORELAY_STATUS_", "CORELAY_"),
];

/// Writes the header.
pub(crate) fn write(workspace: &Workspace) -> Result<Verdict> {
    let path = workspace.root.join(HEADER);
    let written = fs::write(&path, generate(workspace)?);
    written.with_context(|| format!("cannot write {}", path.display()))?;
    println!("{HEADER} is written");
    Ok(Verdict::of(true, ""))
}

/// Finds a header that is not what the source says.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    if !workspace.root.join(DIR).is_dir() {
        return Ok(Vec::new());
    }
    let header = fs::read_to_string(workspace.root.join(HEADER)).unwrap_or_default();
    let wanted = generate(workspace)?;
    if header == wanted {
        return Ok(Vec::new());
    }
    let same = header.lines().zip(wanted.lines());
    let line = same.take_while(|(found, wanted)| found == wanted).count() + 1;
    let what = "is not what the source says: run `cargo xtask header`";
    Ok(vec![Finding::error(format!("{HEADER}:{line}"), what)])
}

fn generate(workspace: &Workspace) -> Result<String> {
    let dir = workspace.root.join(DIR);
    let config = cbindgen::Config::from_file(dir.join("cbindgen.toml"))
        .map_err(|error| anyhow!("cbindgen.toml: {error}"))?;
    let builder = cbindgen::Builder::new().with_config(config);
    let builder = SOURCES.iter().fold(builder, |builder, source| {
        builder.with_src(dir.join("src").join(source))
    });
    let mut header = Vec::new();
    builder.generate()?.write(&mut header);
    let header = String::from_utf8(header)?;
    let replaced = |header: String, (rust, c): &(&str, &str)| header.replace(rust, c);
    Ok(WORDS.iter().fold(header, replaced))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "/// Says.\n///\n/// # Safety\n/// Duties.\n#[repr(C)]\n\
        pub enum Status { Ok = 0 }\n\
        #[unsafe(no_mangle)]\npub extern \"C\" fn corelay_now() -> Status { Status::Ok }\n";
    const CONFIG: &str = "language = \"C\"\n[export.rename]\n\"Status\" = \"corelay_status\"\n\
        [enum]\nrename_variants = \"QualifiedScreamingSnakeCase\"\n";

    #[test]
    fn a_header_is_written_and_kept() {
        let (_dir, workspace) = crate::workspace::fake(&[
            ("crates/capi/cbindgen.toml", CONFIG),
            ("crates/capi/src/status.rs", STATUS),
            ("crates/capi/src/servers.rs", ""),
            ("crates/capi/src/delegate.rs", ""),
            ("crates/capi/src/client.rs", ""),
            (HEADER, "old\n"),
        ]);
        let found = check(&workspace).unwrap();
        assert!(
            found[0]
                .to_string()
                .starts_with(&format!("{HEADER}:1: is not"))
        );
        write(&workspace).unwrap();
        assert_eq!(check(&workspace).unwrap(), []);

        let path = workspace.root.join(HEADER);
        let header = fs::read_to_string(&path).unwrap();
        for wanted in [
            "CORELAY_OK = 0",
            "corelay_now(void)",
            "The caller's duties:",
        ] {
            assert!(header.contains(wanted), "{wanted} is not in\n{header}");
        }
        fs::write(&path, header.replace("corelay_now", "corelay_then")).unwrap();
        assert_eq!(check(&workspace).unwrap().len(), 1);
    }
}
