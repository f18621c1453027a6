//! The folders of the exercise: the start that `--init` writes, the rules for a reader's project,
//! and the folder in which programs are built.

use super::files::{
    CHECK, CHECKED_MANIFEST, CRATES, Files, HARNESS_MANIFEST, MANIFEST, OWN, SCALE, START, points,
};
use super::run::{Limited, first_error};
use corelay_lab_bench::peer::child::End;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Writes the start of the exercise into a folder, which is made if it is not there.
///
/// ```
/// let folder = tempfile::tempdir()?;
/// corelay_lab_course::hash::init(folder.path()).unwrap();
/// assert!(folder.path().join("src/lib.rs").is_file());
/// let again = corelay_lab_course::hash::init(folder.path()).unwrap_err();
/// assert!(again.contains("not empty"));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// A sentence that says why not. Nothing that is in the folder is touched.
pub fn init(folder: &Path) -> Result<(), String> {
    let refused = |why: &str| Err(format!("--init {}: {why}", folder.display()));
    if folder.exists() && !folder.is_dir() {
        return refused("it is a file; a folder is needed");
    }
    let unwritable = |error: io::Error| refused(&format!("it cannot be written: {error}"));
    if let Err(error) = fs::create_dir_all(folder) {
        return unwritable(error);
    }
    match fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
        Ok(false) => {}
        Ok(true) => return refused("the folder is not empty; name a new one"),
        Err(error) => return unwritable(error),
    }
    write(START, folder).or_else(unwritable)
}

pub(super) fn write(files: Files, folder: &Path) -> io::Result<()> {
    for (path, text) in files {
        put(&folder.join(path), text)?;
    }
    Ok(())
}

pub(super) fn put(path: &Path, text: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, text)
}

/// An answer to the exercise: a cargo project that is a library.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The name for sentences, as the user gave it.
    pub(crate) shown: String,
    package: String,
    folder: PathBuf,
    library: Library,
}

/// The source and the settings from which the library of an answer is built.
#[derive(Clone, Debug)]
pub(super) struct Library {
    pub(super) source: PathBuf,
    pub(super) edition: String,
    pub(super) features: BTreeMap<String, Vec<String>>,
}

impl Library {
    /// Returns the manifest with which the library is checked. It stands `up` from the folder of
    /// the harness, and puts points in the locks of `std` if `has_points`.
    pub(super) fn checked(&self, name: &str, up: &str, has_points: bool) -> String {
        let features: Vec<String> = self
            .features
            .iter()
            .map(|(name, of)| {
                format!(
                    "{} = {}\n",
                    quoted(name),
                    serde_json::Value::from(of.clone())
                )
            })
            .collect();
        CHECKED_MANIFEST
            .replace("corelay-hash-checked", name)
            .replace("{edition}", &quoted(&self.edition))
            .replace(
                "{source}",
                &quoted(self.source.to_str().unwrap_or_default()),
            )
            .replace("{features}", &features.concat())
            .replace(
                "{std}",
                &if has_points {
                    points(up)
                } else {
                    String::new()
                },
            )
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The part of cargo's description of a project that matters here.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
    targets: Vec<Target>,
    #[serde(default)]
    features: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    #[serde(default)]
    src_path: PathBuf,
    #[serde(default)]
    edition: String,
}

impl Target {
    fn is_library(&self) -> bool {
        self.kind.iter().any(|kind| kind == "lib" || kind == "rlib")
    }
}

impl Answer {
    /// Reads the project in the folder of `--check`.
    ///
    /// # Errors
    /// A sentence that says what the project lacks.
    pub(crate) fn of(folder: &Path, limited: &Limited<'_>) -> Result<Self, String> {
        let shown = folder.display().to_string();
        let refused = |why: String| format!("--check {shown}: {why}");
        if !folder.exists() {
            return Err(refused("there is no such folder".to_owned()));
        }
        if !folder.is_dir() {
            let why = "it is a file; the folder of a cargo project is needed";
            return Err(refused(why.to_owned()));
        }
        let unread = |error: io::Error| refused(format!("it cannot be read: {error}"));
        let folder = folder.canonicalize().map_err(unread)?;
        let manifest = folder.join("Cargo.toml");
        if !manifest.is_file() {
            return Err(refused(format!(
                "it holds no Cargo.toml; `corelay lab hash --init {shown}-new` writes a project \
                 to begin with"
            )));
        }
        let package = package(&manifest, limited)?.map_err(refused)?;
        // `suited` has found it.
        let library = package.targets.into_iter().find(Target::is_library);
        let library = library.ok_or_else(|| refused("it has no library".to_owned()))?;
        let answer = Self {
            shown: shown.clone(),
            package: package.name,
            folder,
            library: Library {
                source: library.src_path,
                edition: library.edition,
                features: package.features,
            },
        };
        match answer.folder.to_str() {
            Some(_) => Ok(answer),
            None => Err(refused("its path is not valid UTF-8".to_owned())),
        }
    }

    /// Writes one of the lab's own answers into a folder.
    fn own(name: &str, package: &str, text: &str, folder: PathBuf) -> io::Result<Self> {
        // The harness's own answers belong to its workspace. The others need none.
        let manifest = MANIFEST.replace("\"table\"", &format!("\"{package}\""));
        let manifest = manifest.replace("\n[workspace]\n", "\n");
        put(&folder.join("Cargo.toml"), &manifest)?;
        put(&folder.join("src/lib.rs"), text)?;
        Ok(Self {
            shown: name.to_owned(),
            package: package.to_owned(),
            library: Library {
                source: folder.join("src/lib.rs"),
                edition: "2024".to_owned(),
                features: BTreeMap::new(),
            },
            folder,
        })
    }
}

/// Reads the package of a manifest. The inner error says why the package is no answer.
fn package(manifest: &Path, limited: &Limited<'_>) -> Result<Result<Package, String>, String> {
    let mut cargo = limited.cargo()?;
    cargo
        .args(["metadata", "--no-deps", "--offline"])
        .args(["--format-version", "1", "--manifest-path"])
        .arg(manifest);
    let said = limited.watch(&mut cargo)?;
    match said.end {
        End::Ended(status) if status.success() => {}
        End::Ended(_) => {
            let why = first_error(&said.stderr).replace('\n', " ");
            return Ok(Err(format!("cargo refuses its Cargo.toml: {why}")));
        }
        _ => return Ok(Err("`cargo metadata` on it does not end".to_owned())),
    }
    let read: Metadata = serde_json::from_str(&said.stdout)
        .map_err(|error| format!("the output of `cargo metadata` cannot be parsed: {error}"))?;
    let is_it = |package: &Package| package.manifest_path == manifest;
    let Some(package) = read.packages.into_iter().find(is_it) else {
        return Ok(Err("its Cargo.toml names no package".to_owned()));
    };
    Ok(suited(package))
}

fn suited(package: Package) -> Result<Package, String> {
    let is_used = |dependency: &&Dependency| dependency.kind.as_deref() != Some("dev");
    if let Some(first) = package.dependencies.iter().find(is_used) {
        let name = &first.name;
        return Err(format!(
            "it depends on `{name}`, and the exercise is for the standard library alone"
        ));
    }
    let has = |kind: &str| {
        let mut kinds = package.targets.iter().flat_map(|target| &target.kind);
        kinds.any(|is| is == kind)
    };
    if has("custom-build") {
        return Err("it has a build script, which the exercise does not allow".to_owned());
    }
    if !package.targets.iter().any(Target::is_library) {
        return Err("it has no library: there is no src/lib.rs".to_owned());
    }
    Ok(package)
}

/// The folder in which the programs are built and run. It is deleted with this value.
#[derive(Debug)]
pub(crate) struct Workshop {
    folder: tempfile::TempDir,
}

impl Workshop {
    /// Makes the folder and writes the programs into it.
    ///
    /// # Errors
    /// A sentence that says why the folder could not be made.
    pub(crate) fn open() -> Result<Self, String> {
        let open = || {
            let folder = tempfile::Builder::new().prefix("corelay-hash-").tempdir()?;
            let harness = folder.path().join("harness");
            write(CRATES, &harness)?;
            put(&harness.join("src/check.rs"), CHECK)?;
            put(&harness.join("src/scale.rs"), SCALE)?;
            for (name, text) in OWN {
                let package = format!("corelay-hash-{name}");
                let place = folder.path().join("harness").join(name);
                Answer::own(name, &package, text, place)?;
            }
            fs::create_dir(folder.path().join("left"))?;
            Ok(Self { folder })
        };
        open().map_err(|error: io::Error| {
            let place = std::env::temp_dir();
            format!(
                "cannot make the check's folder in {}: {error}; set TMPDIR to another place",
                place.display()
            )
        })
    }

    /// Writes the lab's own answers, the start and the reference, to be checked like any other.
    ///
    /// # Errors
    /// A sentence that says why they could not be written.
    pub(crate) fn own(&self) -> Result<[Answer; 2], String> {
        // These are copies: one package cannot be two dependencies of the harness.
        let own = |(name, text): (&str, &str)| {
            let place = self.folder.path().join("own").join(name);
            Answer::own(name, &format!("table-{name}"), text, place).map_err(unwritable)
        };
        let [start, reference] = OWN;
        Ok([own(start)?, own(reference)?])
    }

    /// Makes `answer` the one that the programs know as `yours`, and as `checked`. The latter has
    /// points in its locks if `has_points`.
    ///
    /// # Errors
    /// A sentence that says why it could not be written.
    pub(crate) fn take(&self, answer: &Answer, has_points: bool) -> Result<(), String> {
        let path = answer.folder.to_str().unwrap_or_default();
        let manifest = HARNESS_MANIFEST.replace("{name}", &quoted(&answer.package));
        let manifest = manifest.replace("{path}", &quoted(path));
        let checked = answer
            .library
            .checked("corelay-hash-checked", "..", has_points);
        let write = || {
            put(&self.harness().join("Cargo.toml"), &manifest)?;
            put(&self.harness().join("checked/Cargo.toml"), &checked)
        };
        write().map_err(unwritable)
    }

    /// Returns the folder of the programs' cargo project.
    pub(crate) fn harness(&self) -> PathBuf {
        self.folder.path().join("harness")
    }

    /// Returns the path of a program that was built.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
        self.target().join("release").join(name)
    }

    /// Returns the folder in which cargo builds.
    pub(crate) fn target(&self) -> PathBuf {
        self.folder.path().join("target")
    }

    /// Returns the folder in which programs leave their findings.
    pub(crate) fn left(&self) -> PathBuf {
        self.folder.path().join("left")
    }
}

fn unwritable(error: io::Error) -> String {
    format!("the check's folder cannot be written: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each project breaks one rule of the exercise that cargo itself accepts.
    #[test]
    fn a_project_that_breaks_a_rule_is_refused() {
        let package = |dependencies: &str, kinds: &str| {
            let text = format!(
                r#"{{"name":"table","manifest_path":"/t/Cargo.toml",
                    "dependencies":[{dependencies}],"targets":[{{"kind":[{kinds}]}}]}}"#
            );
            suited(serde_json::from_str(&text).unwrap()).map(|package| package.name)
        };
        assert_eq!(package("", "\"lib\""), Ok("table".to_owned()));
        let dev = r#"{"name":"rand","kind":"dev"}"#;
        assert!(package(dev, "\"lib\"").is_ok());
        let used = r#"{"name":"dashmap","kind":null}"#;
        assert!(package(used, "\"lib\"").unwrap_err().contains("`dashmap`"));
        let built = r#"{"name":"cc","kind":"build"}"#;
        assert!(package(built, "\"lib\"").is_err());
        assert!(package("", "\"bin\"").unwrap_err().contains("no library"));
        let script = package("", "\"lib\",\"custom-build\"").unwrap_err();
        assert!(script.contains("build script"));
    }
}
