//! Output of the programs: text on the terminal, and files that are written whole or not at all.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The destination of a result. It is opened before anything is measured, so that one that cannot
/// be written is known at once.
#[derive(Debug)]
pub enum Target {
    /// Standard output.
    Stdout,
    /// A file, written to a temporary file beside it and moved into place when complete.
    File(tempfile::NamedTempFile, PathBuf),
    /// A pipe or a device, which a move would replace.
    Stream(File),
}

impl Target {
    /// Opens `path`; `-` is standard output.
    ///
    /// # Errors
    /// The reason that nothing can be written there.
    pub fn open(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Stdout);
        }
        match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(found) if !found.is_file() => {
                return File::options().write(true).open(path).map(Self::Stream);
            }
            // A write-protected file is not replaced.
            Ok(_) => drop(File::options().append(true).open(path)?),
            Err(_) => {}
        }
        // A symbolic link stays; the file that it points to is replaced.
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        if !folder.is_dir() {
            let what = format!("there is no folder {}", folder.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, what));
        }
        // Keeps the error's kind only; the name of a temporary file would be noise.
        let temp = new_file(folder).map_err(|error| io::Error::from(error.kind()))?;
        Ok(Self::File(temp, path))
    }

    /// Writes the whole result.
    ///
    /// # Errors
    /// The reason that it could not be written. The destination is then unchanged.
    pub fn write(self, content: &[u8]) -> io::Result<()> {
        self.write_with(|out| out.write_all(content))
    }

    /// Writes the whole result piece by piece, without holding all of it in memory.
    ///
    /// # Errors
    /// Those of [`write`](Self::write).
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

/// Makes the folder of `--out` if it does not exist.
///
/// # Errors
/// A sentence that says why it cannot be made.
pub fn folder(out: &Path) -> Result<(), String> {
    folder_of("--out", out)
}

/// Makes the folder of the flag `flag` if it does not exist.
///
/// # Errors
/// Those of [`folder`].
pub fn folder_of(flag: &str, out: &Path) -> Result<(), String> {
    if out.exists() && !out.is_dir() {
        let out = out.display();
        return Err(format!("{flag} {out}: it is a file; a folder is needed"));
    }
    std::fs::create_dir_all(out).map_err(|error| unwritable_folder(flag, out, &error))
}

/// Returns a sentence that says why nothing can be written into the folder of `--out`.
pub fn unwritable(out: &Path, error: &io::Error) -> String {
    unwritable_folder("--out", out, error)
}

/// Returns a sentence that says why nothing can be written into the folder of `flag`.
pub fn unwritable_folder(flag: &str, out: &Path, error: &io::Error) -> String {
    format!(
        "{flag} {}: the folder cannot be written: {error}",
        out.display()
    )
}

/// Opens the file of `flag`, for data beside the text that the command prints.
///
/// # Errors
/// A sentence that says why nothing can be written there.
pub fn open_beside(flag: &str, path: &Path) -> Result<Target, String> {
    if path == Path::new("-") {
        return Err(format!(
            "{flag} -: the command itself prints to standard output; name a file"
        ));
    }
    Target::open(path).map_err(|error| unwritable_file(flag, path, &error))
}

/// Whether writing to one path would replace a file at the other. The two may be spelled
/// differently, and need not exist yet.
pub fn is_same_place(one: &Path, other: &Path) -> bool {
    place(one) == place(other)
}

/// Returns the one spelling of a path, as far as the system knows it.
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

/// Returns a sentence that says why the file of `flag` cannot be written.
pub fn unwritable_file(flag: &str, path: &Path, error: &io::Error) -> String {
    format!("{flag} {}: it cannot be written: {error}", path.display())
}

/// Makes a temporary file with the permissions of any new file.
fn new_file(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.prefix(".corelay-").tempfile_in(folder)
}

/// Prints to standard output. A reader that has gone away (`| head`) is no error.
///
/// # Errors
/// The reason that nothing could be printed.
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

/// Makes a progress bar on standard error for work that takes longer than a second. Shows nothing
/// without a terminal.
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
    fn a_file_is_replaced_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.json");
        std::fs::write(&path, "old").unwrap();
        let target = Target::open(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        drop(target);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        // A process that has the old file open reads the old content to its end, because a move
        // took its place.
        let other = folder.path().join("other name");
        std::fs::hard_link(&path, &other).unwrap();
        Target::open(&path).unwrap().write(b"new").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "old");
        // No temporary file is left.
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn unwritable_places_are_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Target::open(folder.path()).is_err());
        assert!(Target::open(&folder.path().join("no/such/folder.json")).is_err());
    }

    #[test]
    fn two_spellings_of_a_path_are_the_same_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir(path("inner")).unwrap();
        // Compares once before the file exists, and once after.
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
