//! The C programs: how they are compiled and what they must say.

use super::{DIR, Installed};
use crate::process::{self, Ended};
use crate::steps::Verdict;
use crate::workspace::{self, Workspace};
use anyhow::{Context, Result, bail};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A program that is still running then hangs.
const LIMIT: Duration = Duration::from_secs(180);

/// A program, below the crate's folder.
struct Program {
    name: &'static str,
    /// C, or a page with a program on it.
    source: &'static str,
    /// Command lines, the exit code and a part of what is printed then.
    runs: &'static [(&'static [&'static str], i32, &'static str)],
}

const PROGRAMS: &[Program] = &[
    Program {
        name: "errors",
        source: "tests/c/errors.c",
        runs: &[(&[], 0, " checks, 0 failures")],
    },
    Program {
        name: "exit",
        source: "tests/c/exit.c",
        runs: &[
            (&["callback"], 37, "exits"),
            (&["function"], 37, "exits"),
            (&["thread"], 37, "exits"),
            (&["main"], 37, "exits"),
            (&["return"], 0, "returns"),
        ],
    },
    Program {
        name: "guide",
        source: "../../docs/guide/from-c.md",
        runs: &[(&[], 0, "4000 hits")],
    },
    Program {
        name: "fetch_add",
        source: "examples/fetch_add.c",
        runs: &[
            (&["1", "1", "1024", "0.2"], 0, ": right"),
            (&["2", "3", "5", "0.2"], 0, ": right"),
            (&["0"], 2, "SERVERS"),
            (&["1", "1", "1", "never"], 2, "SECONDS"),
        ],
    },
];

/// Which library a program is linked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linked {
    Shared,
    Static,
    /// The static one, in a program that lies at fixed addresses.
    Fixed,
}

impl Linked {
    fn name(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Static => "static",
            Self::Fixed => "fixed",
        }
    }
}

/// A way to build and start every program.
pub(crate) struct Way<'a> {
    pub(crate) linked: Linked,
    /// Flags for the compiler.
    pub(crate) flags: &'a [&'a str],
    /// The words of a command that starts the program.
    pub(crate) under: &'a [String],
}

/// Compiles every program in each way into `dir`, and runs it.
pub(crate) fn try_all(
    workspace: &Workspace,
    installed: &Installed,
    ways: &[Way<'_>],
    dir: &Path,
) -> Result<Verdict> {
    let mut complaints = 0;
    for program in PROGRAMS {
        for way in ways {
            let path = compile(workspace, installed, program, way, dir)?;
            for (args, code, says) in program.runs {
                let ended = start(&path, args, way.under)?;
                let line = format!("capi: `{} {}`", path.display(), args.join(" "));
                if ended.code == Some(*code) && ended.output.contains(says) {
                    println!("{line}: as it should");
                } else {
                    complaints += 1;
                    let (how, output) = (ended.how(), ended.output);
                    println!("{line} must end with {code} and say `{says}`, not: {how}\n{output}");
                }
            }
        }
    }
    let builds = PROGRAMS.len() * ways.len();
    let note = format!("{builds} builds of C programs, {complaints} complaints");
    println!("capi: {note}");
    Ok(Verdict::of(complaints == 0, note))
}

fn compile(
    workspace: &Workspace,
    installed: &Installed,
    program: &Program,
    way: &Way<'_>,
    dir: &Path,
) -> Result<PathBuf> {
    let (name, linked) = (program.name, way.linked.name());
    let to = dir.join(format!("{name}-{linked}"));
    let mut source = workspace.root.join(DIR).join(program.source);
    if program.source.ends_with(".md") {
        let page = workspace::read(&source)?;
        source = dir.join(format!("{name}.c"));
        let program = on_page(&page).context("there is no program on the page")?;
        std::fs::write(&source, program)?;
    }
    let mut command = compiler(dir);
    command.args(way.flags).arg(&source).arg("-o").arg(&to);
    if way.linked == Linked::Fixed {
        command.args(["-fno-pie", "-no-pie"]);
    }
    command.args(library(installed, way.linked)?);
    compiled(command)?;
    Ok(to)
}

/// Compiles the guide's program as C++ and runs it.
pub(crate) fn try_as_cpp(workspace: &Workspace, installed: &Installed, dir: &Path) -> Result<()> {
    let page = workspace.root.join("docs/guide/from-c.md");
    let page = workspace::read(&page)?;
    let program = on_page(&page).context("there is no program on the page")?;
    let (source, to) = (dir.join("guide.cpp"), dir.join("guide-cpp"));
    std::fs::write(&source, program)?;
    let mut command = process::program(std::env::var_os("CXX").unwrap_or("c++".into()), dir);
    command.args([
        "-std=c++11",
        "-O2",
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Werror",
    ]);
    command.arg(&source).arg("-o").arg(&to);
    command.args(library(installed, Linked::Shared)?);
    compiled(command)?;
    let ended = start(&to, &[], &[])?;
    if !(ended.good() && ended.output.contains("4000 hits")) {
        bail!(
            "the guide's program as C++: {}\n{}",
            ended.how(),
            ended.output
        );
    }
    println!("capi: the guide's program is C++, too");
    Ok(())
}

/// The program on a page.
fn on_page(page: &str) -> Option<&str> {
    let (_, program) = page.split_once("\n```c\n")?;
    Some(program.split_once("```\n")?.0)
}

/// The C compiler, strict.
pub(crate) fn compiler(dir: &Path) -> Command {
    let mut command = process::program(std::env::var_os("CC").unwrap_or("cc".into()), dir);
    command.args(["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-O2", "-g"]);
    command.args(["-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
    command
}

/// Runs a compiler to its end; what it says is an error.
pub(crate) fn compiled(command: Command) -> Result<()> {
    let what = process::shown(&command);
    let ended = process::capture(command, Some(LIMIT))
        .context("compilers of C (and, for the long runs, C++) are needed")?;
    if !ended.good() {
        bail!("`{what}`: {}\n{}", ended.how(), ended.output);
    }
    Ok(())
}

/// The flags that find header and library. pkg-config says those of the shared library, if
/// there is a pkg-config.
fn library(installed: &Installed, linked: Linked) -> Result<Vec<OsString>> {
    let include = OsString::from(format!("-I{}", installed.include.display()));
    let lib = &installed.lib;
    if linked != Linked::Shared {
        let system = installed.system.iter().map(OsString::from);
        let archive = lib.join("libcorelay.a").into_os_string();
        return Ok([include, archive].into_iter().chain(system).collect());
    }
    let run_path = OsString::from(format!("-Wl,-rpath,{}", lib.display()));
    let mut asked = process::program("pkg-config", lib);
    asked.args(["--cflags", "--libs", "corelay"]);
    asked.env("PKG_CONFIG_PATH", lib.join("pkgconfig"));
    let Ok(ended) = process::capture(asked, Some(LIMIT)) else {
        println!("capi: no pkg-config: corelay.pc is not tried");
        let path = OsString::from(format!("-L{}", lib.display()));
        return Ok(vec![include, path, "-lcorelay".into(), run_path]);
    };
    if !ended.good() {
        bail!("pkg-config: {}", ended.output);
    }
    let flags = ended.output.split_whitespace().map(OsString::from);
    Ok(flags.chain([run_path]).collect())
}

/// Runs a compiled program by the words of `under`.
pub(crate) fn start(path: &Path, args: &[&str], under: &[String]) -> Result<Ended> {
    let dir = path.parent().context("a program lies in a folder")?;
    let own = path.as_os_str();
    let mut words = under.iter().map(OsStr::new).chain([own]);
    let mut command = process::program(words.next().unwrap_or(own), dir);
    command.args(words).args(args);
    process::capture(command, Some(LIMIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_a_program() {
        let page = "# Page\n```sh\ncc\n```\n\n```c\nint main(void) {}\n```\nEnd.\n";
        assert_eq!(on_page(page), Some("int main(void) {}\n"));
        assert_eq!(on_page("no program"), None);
    }
}
