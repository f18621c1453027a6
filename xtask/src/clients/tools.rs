//! The tools that install clients, each below the build folder.

use super::{Client, Installed, PROGRAMS, Source};
use crate::deep::debian;
use crate::process;
use crate::workspace::{self, Workspace};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// An installation that takes longer waits for something that does not come.
const LIMIT: Duration = Duration::from_secs(150);

/// The tools, and what was installed already.
pub(super) struct Tools<'a> {
    workspace: &'a Workspace,
    programs: PathBuf,
    /// The folder of all that is installed.
    home: PathBuf,
    /// Python in an environment of its own, or the reason why there is none.
    python: Option<Result<PathBuf, String>>,
}

impl<'a> Tools<'a> {
    pub(super) fn new(workspace: &'a Workspace) -> Self {
        Self {
            workspace,
            programs: workspace.root.join(PROGRAMS),
            home: workspace.target.join("clients"),
            python: None,
        }
    }

    /// Installs a client, unless it is there.
    ///
    /// # Errors
    /// The language or its registry is missing.
    pub(super) fn install(&mut self, client: &Client) -> Result<Installed> {
        fs::create_dir_all(&self.home)?;
        let program = self.programs.join(client.program);
        let plain = |words: Vec<PathBuf>| Installed {
            words,
            variables: Vec::new(),
            proxy: String::new(),
        };
        match client.source {
            Source::Python(package) => {
                let python = self.python()?;
                self.pip(&python, package)?;
                Ok(python_program(python, program))
            }
            Source::Go => Ok(plain(vec![self.go(&program)?])),
            Source::Node => {
                let modules = self.npm(&program)?;
                let words = vec!["node".into(), program.join("main.js")];
                let variables = vec![("NODE_PATH", modules)];
                Ok(Installed {
                    variables,
                    ..plain(words)
                })
            }
            Source::Debian(package) => {
                let words = debian::command(self.workspace, package, client.program)?;
                Ok(plain(words.split(' ').map(PathBuf::from).collect()))
            }
            Source::Proxy(package) => {
                let python = self.python()?;
                let proxy = debian::command(self.workspace, package, package)?;
                Ok(Installed {
                    proxy,
                    ..python_program(python, program)
                })
            }
        }
    }

    fn python(&mut self) -> Result<PathBuf> {
        let home = self.home.join("python");
        let python = home.join("bin/python");
        let root = &self.workspace.root;
        let made = self.python.get_or_insert_with(|| {
            if python.is_file() {
                return Ok(python);
            }
            let mut make = process::program("python3", root);
            make.args(["-m", "venv"]).arg(&home);
            match finish(make, "python3") {
                Ok(()) => Ok(python),
                Err(error) => {
                    // Half of an environment would be taken for a whole one.
                    let _ = fs::remove_dir_all(&home);
                    Err(format!("{error:#}"))
                }
            }
        });
        made.clone().map_err(anyhow::Error::msg)
    }

    /// Installs a package in its version of `requirements.txt`, which has those of what it needs, too.
    fn pip(&self, python: &Path, package: &str) -> Result<()> {
        let versions = self.programs.join("requirements.txt");
        let text = workspace::read(&versions)?;
        let mut lines = text.lines();
        let wanted = lines.find(|line| line.split("==").next() == Some(package));
        let wanted = wanted.with_context(|| format!("{} lacks {package}", versions.display()))?;
        let mut pip = process::program(python, &self.workspace.root);
        pip.args(["-m", "pip", "install", "--quiet", "--retries", "1"]);
        pip.args(["--disable-pip-version-check", "--constraint"]);
        pip.arg(versions).arg(wanted);
        finish(pip, "pip")
    }

    fn go(&self, dir: &Path) -> Result<PathBuf> {
        let program = self.home.join("with_gomemcache");
        let mut go = process::program("go", dir);
        go.args(["build", "-o"]).arg(&program).arg(".");
        // Not another compiler than the one that is here.
        go.env("GOTOOLCHAIN", "local")
            .env("GOFLAGS", "-mod=readonly -buildvcs=false");
        finish(go, "go")?;
        Ok(program)
    }

    /// Installs the packages of a folder's `package.json`. Returns the folder of all modules.
    fn npm(&self, dir: &Path) -> Result<PathBuf> {
        let home = self.home.join("node");
        fs::create_dir_all(&home)?;
        fs::copy(dir.join("package.json"), home.join("package.json"))?;
        let mut npm = process::program("npm", &home);
        npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund"]);
        npm.args(["--no-package-lock", "--prefer-offline", "--fetch-retries=1"]);
        npm.arg("--loglevel=error");
        finish(npm, "npm")?;
        Ok(home.join("node_modules"))
    }
}

fn python_program(python: PathBuf, program: PathBuf) -> Installed {
    Installed {
        words: vec![python, program],
        // Nothing is written beside the programs.
        variables: vec![("PYTHONDONTWRITEBYTECODE", "1".into())],
        proxy: String::new(),
    }
}

/// Runs an installer. The error is the first line that names one, or the last line.
fn finish(command: Command, name: &str) -> Result<()> {
    if !Path::new(command.get_program()).is_absolute() && !process::is_installed(name) {
        bail!("there is no {name}");
    }
    println!("{}", process::shown(&command));
    let ended = process::capture(command, Some(LIMIT))?;
    if ended.good() {
        return Ok(());
    }
    bail!("{name}: {}: {}", ended.how(), reason(&ended.output))
}

fn reason(output: &str) -> &str {
    let lines = || output.lines().map(str::trim);
    let is_error = |line: &&str| {
        let line = line.to_lowercase();
        line.contains("error") && !line.starts_with("warning")
    };
    let error = lines().find(is_error);
    let last = || lines().rfind(|line| !line.is_empty());
    error.or_else(last).unwrap_or_default()
}

#[test]
fn the_reason_of_an_installer_is_its_first_error() {
    let npm = "npm error code ECONNREFUSED\nnpm error A complete log is in x\n";
    assert_eq!(reason(npm), "npm error code ECONNREFUSED");
    assert_eq!(
        reason("WARNING: an error, again\nERROR: none found\n"),
        "ERROR: none found"
    );
    assert_eq!(
        reason("go: cannot find main module\n\n"),
        "go: cannot find main module"
    );
}
