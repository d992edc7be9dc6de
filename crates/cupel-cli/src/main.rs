//! The command `cupel`.

use std::process::ExitCode;

fn main() -> ExitCode {
    cupel_cli::main(std::env::args_os()).into()
}
