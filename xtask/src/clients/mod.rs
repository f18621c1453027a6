//! `cargo xtask clients`: the cache server with the clients that people use, and with twemproxy.
//!
//! The programs are in `crates/cached/tests/clients`. Their clients are installed below the build folder,
//! each by the tool of its language. One that cannot be installed here is named with the reason; one
//! that is installed must pass.
//!
//! | module | idea |
//! |---|---|
//! | `tools` | installs clients |
//! | `server` | starts a server |

mod server;
mod tools;

use crate::process::{self, seconds};
use crate::steps::Verdict;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use server::Server;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tools::Tools;

/// The programs.
const PROGRAMS: &str = "crates/cached/tests/clients";
/// The configuration that the guide shows.
const NUTCRACKER: &str = "docs/guide/cached/nutcracker.yml";

/// A part that runs longer hangs.
const LIMIT: Duration = Duration::from_secs(300);

/// The tool that installs a client, with the name of the package.
#[derive(Clone, Copy, Debug)]
enum Source {
    Python(&'static str),
    Go,
    Node,
    /// A program of a Debian package, and the option that chooses a part.
    Debian(&'static str),
    /// The same, in front of several servers.
    Proxy(&'static str),
}

/// A client, with the parts that it is asked to do, each on a server of its own.
struct Client {
    name: &'static str,
    source: Source,
    /// The file in [`PROGRAMS`], or the program itself.
    program: &'static str,
    parts: &'static [&'static str],
}

const CLIENTS: &[Client] = &[
    Client {
        name: "pymemcache",
        source: Source::Python("pymemcache"),
        program: "with_pymemcache.py",
        parts: &["text", "hash", "many", "stats"],
    },
    Client {
        name: "pylibmc",
        source: Source::Python("pylibmc"),
        program: "with_pylibmc.py",
        parts: &["text", "binary", "stats"],
    },
    Client {
        name: "python-binary-memcached",
        source: Source::Python("python-binary-memcached"),
        program: "with_bmemcached.py",
        parts: &["binary", "stats"],
    },
    Client {
        name: "gomemcache",
        source: Source::Go,
        program: "go",
        parts: &["text"],
    },
    Client {
        name: "memjs",
        source: Source::Node,
        program: "node",
        parts: &["binary", "stats"],
    },
    Client {
        name: "memccapable",
        source: Source::Debian("libmemcached-tools"),
        program: "memccapable",
        parts: &["text", "binary"],
    },
    Client {
        name: "pylibmc",
        source: Source::Python("pylibmc"),
        program: "cluster.py",
        parts: &["ketama"],
    },
    Client {
        name: "nutcracker",
        source: Source::Proxy("nutcracker"),
        program: "cluster.py",
        parts: &["nutcracker"],
    },
];

/// The options of `cargo xtask clients`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// The command of another server, to see whether the programs are right:
    /// 'memcached -u root -l 127.0.0.1 -U 0'
    #[arg(long)]
    server: Option<String>,
}

/// Runs every part of every client that can be installed.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<Verdict> {
    let server = command(workspace, options)?;
    let mut tools = Tools::new(workspace);
    let (mut passed, mut failed, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for client in CLIENTS {
        let program = match tools.install(client) {
            Ok(program) => program,
            Err(error) => {
                let why = format!("{} ({error:#})", client.name);
                println!("not installed: {why}");
                missing.push(why);
                continue;
            }
        };
        for part in client.parts {
            let name = format!("{} {part}", client.name);
            if try_part(workspace, client, part, &program, &server)? {
                passed.push(name);
            } else {
                failed.push(name);
            }
        }
    }
    let mut note = format!("passed: {}", list(&passed));
    for (what, names) in [("FAILED", failed.as_slice()), ("not installed", &missing)] {
        if !names.is_empty() {
            note += &format!("; {what}: {}", list(names));
        }
    }
    Ok(Verdict::of(failed.is_empty(), note))
}

fn list(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    }
}

/// The command of a server, without its port.
fn command(workspace: &Workspace, options: &Options) -> Result<Vec<String>> {
    if let Some(server) = &options.server {
        return Ok(server.split_whitespace().map(str::to_owned).collect());
    }
    let build = workspace.cargo("build --locked --package corelay-cached");
    if !process::pass_on(build, None)?.good() {
        bail!("the server was not built");
    }
    let path = workspace.target.join("debug/corelay-cached");
    let path = path
        .to_str()
        .context("the build folder's name is no text")?;
    Ok([path, "-t", "3"].map(str::to_owned).to_vec())
}

/// Runs a part of a client. Returns whether it passed.
fn try_part(
    workspace: &Workspace,
    client: &Client,
    part: &str,
    program: &Installed,
    server: &[String],
) -> Result<bool> {
    let mut command = program.command(workspace);
    let is_cluster = client.program == "cluster.py";
    let running = if is_cluster {
        command.arg(part);
        if let Source::Proxy(_) = client.source {
            command.arg(&program.proxy);
            command.arg(workspace.root.join(NUTCRACKER));
        }
        command.args(server);
        None
    } else {
        let running = Server::start(server)?;
        let port = running.port.to_string();
        match client.source {
            Source::Debian(_) => command.args([
                "-h",
                "127.0.0.1",
                "-p",
                &port,
                &format!("-{}", memccapable(part)),
            ]),
            _ => command.args([&port, part]),
        };
        Some(running)
    };
    let ended = process::capture(command, Some(LIMIT))?;
    drop(running);
    let last = ended.output.lines().last().unwrap_or_default();
    if ended.good() {
        println!("{} {part}: {last} ({})", client.name, seconds(ended.time));
    } else {
        println!("{}\n{} {part}: {}", ended.output, client.name, ended.how());
    }
    Ok(ended.good())
}

/// The option of memccapable for a protocol.
fn memccapable(part: &str) -> char {
    if part == "binary" { 'b' } else { 'a' }
}

/// A client that is there.
struct Installed {
    /// The words before the arguments.
    words: Vec<PathBuf>,
    /// Variables for it.
    variables: Vec<(&'static str, PathBuf)>,
    /// The command of the proxy, for programs that want one.
    proxy: String,
}

impl Installed {
    fn command(&self, workspace: &Workspace) -> Command {
        let mut command = process::program(&self.words[0], &workspace.root);
        command.args(&self.words[1..]);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_shows_the_configuration_that_is_tested() {
        let root = Workspace::find().unwrap().root;
        let text = |path: &str| crate::workspace::read(&root.join(path)).unwrap();
        let shown = format!("```yaml\n{}```", text(NUTCRACKER));
        assert!(text("docs/guide/cached.md").contains(&shown));
    }
}
