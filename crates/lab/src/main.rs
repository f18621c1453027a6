//! The program `corelay`; everything is in the library.

fn main() -> std::process::ExitCode {
    corelay_lab::cli::main()
}
