//! The program `corelay`: measures, on the reader's own machine, which way of sharing wins.
//!
//! | module | idea |
//! |---|---|
//! | [`cli`] | flags, bad input, exit codes |
//! | [`reach`] | the project's targets |

#![deny(unsafe_code)]

mod cli;
mod reach;

fn main() -> std::process::ExitCode {
    cli::main()
}
