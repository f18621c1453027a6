//! The toolchains that build the programs. They are found on this machine, never downloaded.

use super::Error;
use super::child::{self, Stopped};
use corelay_sync::facade::atomic::AtomicBool;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Longer than any toolchain takes to print its version, even on a busy machine.
const VERSION_LIMIT: Duration = Duration::from_secs(60);

/// A toolchain that builds programs of peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Toolchain {
    Cargo,
    Go,
    /// A C++ compiler and Boost's headers and libraries.
    Boost,
    /// A C++ compiler and a folder with libfibre, which nobody packages: sources, and the library
    /// that `make` has built.
    Libfibre,
}

/// The environment variable that names libfibre's folder.
const LIBFIBRE: &str = "CORELAY_LIBFIBRE";

/// A toolchain that was found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) tool: PathBuf,
    /// The version that the tool prints.
    pub(super) version: String,
}

/// One command of a build.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) command: Command,
    /// A clause for the error if the step fails because something is not installed. `None` if a
    /// failure means that the program itself does not build.
    pub(super) needs: Option<&'static str>,
}

/// The steps of a program's build, and its products.
#[derive(Debug)]
pub(super) struct Recipe {
    pub(super) steps: Vec<Step>,
    /// The program, in the folder of the build.
    pub(super) product: PathBuf,
    /// A file or folder inside the build folder that need not be kept.
    pub(super) leftovers: Option<PathBuf>,
}

impl Toolchain {
    /// Finds the toolchain and its version.
    pub(super) fn find(self) -> Result<Found, Error> {
        let (tools, ask): (Vec<String>, _) = match self {
            Self::Cargo => (vec!["cargo".to_owned()], "-vV"),
            Self::Go => (vec!["go".to_owned()], "version"),
            Self::Boost | Self::Libfibre => {
                let chosen = env::var("CXX").ok().filter(|cxx| !cxx.trim().is_empty());
                let usual = ["c++", "g++", "clang++"].map(str::to_owned);
                (chosen.map_or(usual.to_vec(), |cxx| vec![cxx]), "--version")
            }
        };
        let path = env::var_os("PATH").unwrap_or_default();
        let mut folders: Vec<PathBuf> = env::split_paths(&path).collect();
        folders.extend(self.usual_folder());
        let tool = tools.iter().find_map(|tool| find_in(&folders, tool));
        let tool = tool.ok_or_else(|| Error::NotInstalled(self.missing(&tools)))?;
        let mut version = version(Command::new(&tool).arg(ask))?;
        if self == Self::Libfibre {
            version += &libfibre()?.1;
        }
        Ok(Found { tool, version })
    }

    /// The folder of the tool's own installer, in case it is not in the `PATH`.
    fn usual_folder(self) -> Option<PathBuf> {
        match self {
            Self::Cargo => Some(PathBuf::from(env::var_os("HOME")?).join(".cargo/bin")),
            Self::Go => Some(PathBuf::from("/usr/local/go/bin")),
            Self::Boost | Self::Libfibre => None,
        }
    }

    /// A clause that says what is missing.
    fn missing(self, tools: &[String]) -> String {
        match self {
            Self::Boost | Self::Libfibre => {
                format!("there is no C++ compiler ({})", tools.join(", "))
            }
            Self::Cargo | Self::Go => format!("there is no `{}` in the PATH", tools.join(", ")),
        }
    }

    /// The recipe for the program `name`, whose sources are in `folder`.
    pub(super) fn recipe(self, name: &str, folder: &Path, found: &Found) -> Recipe {
        let home = folder.join(name);
        let command = |args: &[&str]| {
            let mut command = Command::new(&found.tool);
            command.current_dir(&home).args(args).env("LC_ALL", "C");
            command
        };
        let step = |command, needs| Step { command, needs };
        match self {
            Self::Cargo => {
                let host = found.version.lines();
                let host = host.filter_map(|line| line.strip_prefix("host: ")).next();
                let mut fetch = command(&["fetch", "--locked"]);
                if let Some(host) = host {
                    fetch.args(["--target", host]);
                }
                let build = ["build", "--release", "--locked", "--offline"];
                let mut build = command(&build);
                build.args(["--target-dir", "target"]);
                Recipe {
                    steps: vec![
                        step(clean(fetch), Some("its crates could not be downloaded")),
                        step(clean(build), None),
                    ],
                    product: home.join("target/release/peer"),
                    leftovers: Some(home.join("target")),
                }
            }
            Self::Go => {
                let mut build = command(&["build", "-o", "program", "."]);
                build
                    .envs([("GOWORK", "off"), ("GOTOOLCHAIN", "local")])
                    .envs([("GO111MODULE", "on"), ("CGO_ENABLED", "0"), ("GOFLAGS", "")])
                    .env_remove("GOOS")
                    .env_remove("GOARCH");
                Recipe {
                    steps: vec![step(build, None)],
                    product: home.join("program"),
                    leftovers: None,
                }
            }
            Self::Boost | Self::Libfibre => {
                let boost: &[OsString] = &["-lboost_fiber".into(), "-lboost_context".into()];
                let (libraries, missing) = match self {
                    Self::Boost => (
                        boost.to_vec(),
                        "Boost.Fiber's headers and libraries cannot be found",
                    ),
                    _ => (libfibre_flags(), "its library cannot be used"),
                };
                let build = |from: &str, to: &str| {
                    let mut build = command(&["-std=c++17", "-O3", "-DNDEBUG", "-pthread"]);
                    build.args([from, "-o", to]).args(&libraries);
                    build
                };
                Recipe {
                    steps: vec![
                        step(build("probe.cpp", "probe"), Some(missing)),
                        step(build("main.cpp", "program"), None),
                    ],
                    product: home.join("program"),
                    leftovers: Some(home.join("probe")),
                }
            }
        }
    }
}

/// libfibre's library, and what tells it from another one: its path, its length and its time.
///
/// # Errors
/// [`Error::NotInstalled`].
fn libfibre() -> Result<(PathBuf, String), Error> {
    let none = |why: String| Err(Error::NotInstalled(why));
    let Some(folder) = env::var_os(LIBFIBRE).filter(|folder| !folder.is_empty()) else {
        return none(format!("{LIBFIBRE} does not name a folder with libfibre"));
    };
    let folder = PathBuf::from(folder);
    let library = folder.join("src/libfibre.a");
    match library.metadata() {
        Ok(file) if folder.is_absolute() => {
            let made = file.modified().ok();
            let version = format!("{} {} {made:?}", library.display(), file.len());
            Ok((library, version))
        }
        Ok(_) => none(format!("{LIBFIBRE} is no absolute path")),
        Err(error) => none(format!(
            "`make` has not built {}: {error}",
            library.display()
        )),
    }
}

/// The compiler's flags for libfibre. None if it is not there, which `find` has said.
fn libfibre_flags() -> Vec<OsString> {
    let Ok((library, _)) = libfibre() else {
        return Vec::new();
    };
    let mut headers = OsString::from("-I");
    headers.extend(library.parent().map(Path::as_os_str));
    vec![
        "-D__LIBFIBRE__".into(),
        headers,
        library.into(),
        "-lrt".into(),
    ]
}

/// A cargo command without the settings of the workspace from which the lab was started; see
/// `may_inherit`.
///
/// # Errors
/// [`Error::NotInstalled`].
pub fn cargo() -> Result<Command, Error> {
    Ok(clean(Command::new(Toolchain::Cargo.find()?.tool)))
}

/// Removes the environment variables that [`may_inherit`] rejects.
fn clean(mut command: Command) -> Command {
    for (name, _) in env::vars_os() {
        if !may_inherit(&name) {
            command.env_remove(name);
        }
    }
    command
}

/// The path of the tool in the first folder that has it. A tool given as a path is only checked.
fn find_in(folders: &[PathBuf], tool: &str) -> Option<PathBuf> {
    let is_file = |path: &PathBuf| path.is_file();
    if Path::new(tool).components().count() > 1 {
        return Some(PathBuf::from(tool)).filter(is_file);
    }
    let name = format!("{tool}{}", env::consts::EXE_SUFFIX);
    let inside = folders.iter().map(|folder| folder.join(&name));
    inside.filter(|path| path.is_absolute()).find(is_file)
}

/// The output of a command that prints a version.
fn version(command: &mut Command) -> Result<String, Error> {
    // Not in the user's folder, whose settings may name another version.
    command.current_dir(env::temp_dir()).env("LC_ALL", "C");
    let tool = command.get_program().to_string_lossy().into_owned();
    let broken = |why: &str| Err(Error::NotInstalled(format!("`{tool}` does not run: {why}")));
    match child::run(command, VERSION_LIMIT, &AtomicBool::new(false)) {
        Ok(ended) if ended.status.success() => Ok(ended.stdout),
        Ok(ended) => broken(super::decisive_line(&ended.stderr)),
        Err(Stopped::System(error)) => broken(&error.to_string()),
        Err(Stopped::TooLong | Stopped::Interrupted) => broken("it prints no version"),
    }
}

/// Whether the cargo that builds a peer may inherit the environment variable `name`.
///
/// Settings of the workspace from which the lab was started (target folder, flags, wrappers,
/// profiles, the jobserver) are not inherited. Settings that say how the registry is reached and
/// which toolchain is chosen are.
fn may_inherit(name: &OsStr) -> bool {
    const KEPT: [&str; 6] = [
        "CARGO_HOME",
        "CARGO_HTTP_",
        "CARGO_NET_",
        "CARGO_REGISTR",
        "CARGO_SOURCE_",
        "RUSTUP_",
    ];
    const OURS: [&str; 4] = ["CARGO", "RUST", "MAKEFLAGS", "MFLAGS"];
    let name = name.to_string_lossy();
    let starts = |with: &[&str]| with.iter().any(|start| name.starts_with(start));
    starts(&KEPT) || !starts(&OURS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_a_workspace_are_not_inherited() {
        let inherits = |name: &str| may_inherit(OsStr::new(name));
        for name in [
            "CARGO_TARGET_DIR",
            "CARGO_BUILD_TARGET",
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_PROFILE_RELEASE_LTO",
            "CARGO_MANIFEST_DIR",
            "CARGO_MAKEFLAGS",
            "MAKEFLAGS",
            "RUSTFLAGS",
            "RUSTC_WRAPPER",
            "RUSTC_WORKSPACE_WRAPPER",
        ] {
            assert!(!inherits(name), "{name}");
        }
        for name in [
            "PATH",
            "HOME",
            "CARGO_HOME",
            "CARGO_HTTP_PROXY",
            "CARGO_REGISTRIES_MINE_INDEX",
            "RUSTUP_TOOLCHAIN",
            "https_proxy",
        ] {
            assert!(inherits(name), "{name}");
        }
    }

    #[test]
    fn tool_is_searched_in_order() {
        let root = tempfile::tempdir().unwrap();
        let folders = ["a", "b", "c"].map(|name| root.path().join(name));
        let name = format!("tool{}", env::consts::EXE_SUFFIX);
        for folder in &folders {
            std::fs::create_dir(folder).unwrap();
        }
        assert_eq!(find_in(&folders, "tool"), None);
        // A folder with the tool's name is not the tool.
        std::fs::create_dir(folders[0].join(&name)).unwrap();
        for folder in &folders[1..] {
            std::fs::write(folder.join(&name), "").unwrap();
        }
        assert_eq!(find_in(&folders, "tool"), Some(folders[1].join(&name)));
        let whole = folders[2].join(&name);
        assert_eq!(find_in(&[], whole.to_str().unwrap()), Some(whole));
    }

    #[test]
    fn tool_that_does_not_run_is_not_installed() {
        let error = version(&mut Command::new("/nonexistent/go")).unwrap_err();
        assert!(matches!(&error, Error::NotInstalled(why) if why.contains("/nonexistent/go")));
    }

    #[cfg(unix)]
    #[test]
    fn tool_without_a_version_is_not_installed() {
        let mut command = Command::new("sh");
        let error = version(command.args(["-c", "echo no toolchain >&2; exit 1"])).unwrap_err();
        let why = "`sh` does not run: no toolchain".to_owned();
        assert_eq!(error, Error::NotInstalled(why));
    }
}
