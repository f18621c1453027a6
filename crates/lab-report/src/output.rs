//! What the program leaves behind: text on the terminal, files that are whole or not there.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Where a result goes, opened before anything is measured, so that a place that cannot
/// be written is known at once.
#[derive(Debug)]
pub enum Target {
    /// Standard output.
    Stdout,
    /// A file, written beside its place and moved there when it is whole.
    File(tempfile::NamedTempFile, PathBuf),
    /// A pipe or a device, which a move would replace.
    Stream(File),
}

impl Target {
    /// Opens `path`; `-` is standard output.
    ///
    /// # Errors
    /// Why nothing can be written there.
    pub fn open(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Stdout);
        }
        match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(found) if !found.is_file() => {
                return File::options().write(true).open(path).map(Self::Stream);
            }
            // A file that may not be written is not replaced behind its owner's back.
            Ok(_) => drop(File::options().append(true).open(path)?),
            Err(_) => {}
        }
        // A link is followed: it stays a link, and what it points to is replaced.
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        if !folder.is_dir() {
            let what = format!("there is no folder {}", folder.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, what));
        }
        // The kind says it all; the name of a temporary file would only distract.
        let temp = new_file(folder).map_err(|error| io::Error::from(error.kind()))?;
        Ok(Self::File(temp, path))
    }

    /// Writes the whole result.
    ///
    /// # Errors
    /// Why it could not be written; its place is then as it was before.
    pub fn write(self, content: &[u8]) -> io::Result<()> {
        self.write_with(|out| out.write_all(content))
    }

    /// Writes the whole result piece by piece, which need not be in memory at once.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_with(
        self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        match self {
            Self::Stdout => {
                let mut content = Vec::new();
                write(&mut content)?;
                print(&content)
            }
            Self::Stream(stream) => {
                let mut out = BufWriter::new(stream);
                write(&mut out)?;
                out.flush()
            }
            Self::File(mut temp, path) => {
                let mut out = BufWriter::new(&mut temp);
                write(&mut out)?;
                out.flush()?;
                drop(out);
                temp.as_file().sync_all()?;
                temp.persist(path).map(drop).map_err(|error| error.error)
            }
        }
    }
}

/// Makes the folder of `--out` where it is not there.
///
/// # Errors
/// A sentence that says why it cannot be.
pub fn folder(out: &Path) -> Result<(), String> {
    folder_of("--out", out)
}

/// The same of another flag.
///
/// # Errors
/// As [`folder`].
pub fn folder_of(flag: &str, out: &Path) -> Result<(), String> {
    if out.exists() && !out.is_dir() {
        let out = out.display();
        return Err(format!("{flag} {out}: it is a file; a folder is needed"));
    }
    std::fs::create_dir_all(out).map_err(|error| unwritable_folder(flag, out, &error))
}

/// Why nothing can be left in the folder of `--out`, as a sentence.
pub fn unwritable(out: &Path, error: &io::Error) -> String {
    unwritable_folder("--out", out, error)
}

/// The same of another flag.
pub fn unwritable_folder(flag: &str, out: &Path, error: &io::Error) -> String {
    format!(
        "{flag} {}: the folder cannot be written: {error}",
        out.display()
    )
}

/// Opens the file of `flag`, for what goes beside the text that the command prints.
///
/// # Errors
/// A sentence that says why nothing can be written there.
pub fn open_beside(flag: &str, path: &Path) -> Result<Target, String> {
    if path == Path::new("-") {
        return Err(format!(
            "{flag} -: standard output is for what the command prints; name a file"
        ));
    }
    Target::open(path).map_err(|error| unwritable_file(flag, path, &error))
}

/// Whether what is left at one path would take the place of what is left at the other: they may
/// be spelled differently, and need not be there yet.
pub fn is_same_place(one: &Path, other: &Path) -> bool {
    place(one) == place(other)
}

/// The one spelling of a path, as far as the system knows it.
fn place(path: &Path) -> PathBuf {
    if let Ok(known) = path.canonicalize() {
        return known;
    }
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return path.to_owned();
    };
    let folder = match folder == Path::new("") {
        true => Path::new("."),
        false => folder,
    };
    match folder.canonicalize() {
        Ok(known) => known.join(name),
        Err(_) => path.to_owned(),
    }
}

/// Why nothing can be left in the file of `flag`, as a sentence.
pub fn unwritable_file(flag: &str, path: &Path, error: &io::Error) -> String {
    format!("{flag} {}: it cannot be written: {error}", path.display())
}

/// A temporary file with the permissions that any new file has.
fn new_file(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.prefix(".corelay-").tempfile_in(folder)
}

/// Prints to standard output. A reader that has gone away (`| head`) is no error.
///
/// # Errors
/// Why nothing could be printed.
fn print(content: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(content).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Prints a text to standard output.
///
/// # Errors
/// A sentence that says why not.
pub fn say(text: &str) -> Result<(), String> {
    print(text.as_bytes()).map_err(|error| format!("standard output cannot be written: {error}"))
}

/// A bar on the terminal's standard error while something longer than a second runs;
/// nothing where there is no terminal.
pub fn progress(steps: u64, expected: std::time::Duration) -> indicatif::ProgressBar {
    if expected <= std::time::Duration::from_secs(1) {
        return indicatif::ProgressBar::hidden();
    }
    let style =
        indicatif::ProgressStyle::with_template("{msg:12} {bar:32} {percent:>3}%  {eta} left");
    indicatif::ProgressBar::new(steps).with_style(style.expect("the template is well-formed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_whole_or_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.json");
        std::fs::write(&path, "old").unwrap();
        let target = Target::open(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        drop(target);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        // Whoever has the old file open reads it to its end: the place is taken by a move.
        let other = folder.path().join("other name");
        std::fs::hard_link(&path, &other).unwrap();
        Target::open(&path).unwrap().write(b"new").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "old");
        // No temporary file is left.
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn places_that_cannot_be_written_are_known_at_once() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Target::open(folder.path()).is_err());
        assert!(Target::open(&folder.path().join("no/such/folder.json")).is_err());
    }

    #[test]
    fn a_place_has_many_spellings() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir(path("inner")).unwrap();
        // Once while nothing is there yet, once with the file.
        for _ in 0..2 {
            for same in ["x", "./x", "inner/../x"] {
                assert!(is_same_place(&path(same), &path("x")), "{same}");
            }
            for other in ["y", "inner/x", "none/x"] {
                assert!(!is_same_place(&path(other), &path("x")), "{other}");
            }
            std::fs::write(path("x"), "").unwrap();
        }
        assert!(is_same_place(Path::new("./x"), Path::new("x")));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(path("x"), path("link")).unwrap();
            assert!(is_same_place(&path("link"), &path("x")));
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link_and_a_device_a_device() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        std::fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        Target::open(&link).unwrap().write(b"new").unwrap();
        assert_eq!(std::fs::read_to_string(&real).unwrap(), "new");
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(matches!(
            Target::open(Path::new("/dev/null")),
            Ok(Target::Stream(_))
        ));
    }
}
