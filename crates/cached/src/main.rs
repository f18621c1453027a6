//! The program `corelay-cached`.

use clap::Parser;
use corelay_cached::flags::Flags;
use corelay_cached::server::Server;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    match serve(&Flags::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("corelay-cached: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(flags: &Flags) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    // First, so that whoever finds the port or the number of the process can end it properly.
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(text)?;
    let settings = flags.settings()?;
    let warning = flags.raise_file_limit();
    // Only root may have low ports, so the sockets come before the change of the user.
    let server = Server::bind(settings).map_err(text)?;
    // What may fail comes before the terminal is left, where errors are told.
    let user = flags.user()?;
    let pid_file = flags.pid_file().map(PidFile::create).transpose()?;
    flags.leave_terminal()?;
    if let Some(file) = &pid_file {
        file.write()?;
    }
    if let Some(user) = &user {
        flags.become_user(user)?;
    }
    if let Some(warning) = warning {
        eprintln!("corelay-cached: {warning}");
    }
    if flags.is_verbose() {
        eprintln!("corelay-cached: {server:?}");
    }
    let handle = server.handle();
    // The thread ends with the process.
    std::thread::spawn(move || {
        for _ in signals.forever() {
            let _ = handle.shut_down();
        }
    });
    let served = server.run().map_err(text);
    drop(pid_file);
    served
}

/// A file with the number of the process, which is removed in the end.
struct PidFile<'a>(&'a Path);

impl<'a> PidFile<'a> {
    fn create(path: &'a Path) -> Result<Self, String> {
        std::fs::write(path, "").map_err(|error| format!("-P {}: {error}", path.display()))?;
        Ok(Self(path))
    }

    fn write(&self) -> Result<(), String> {
        std::fs::write(self.0, format!("{}\n", std::process::id()))
            .map_err(|error| format!("-P {}: {error}", self.0.display()))
    }
}

impl Drop for PidFile<'_> {
    fn drop(&mut self) {
        // Another user's folder, perhaps: then it stays.
        let _ = std::fs::remove_file(self.0);
    }
}
