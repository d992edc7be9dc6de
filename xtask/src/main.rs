//! Checks and generation, run as `cargo xtask`.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command talks to its terminal"
)]

mod bench;
mod browser;
mod coverage;
mod schema;
mod test;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
Usage: cargo xtask COMMAND

Commands:
  test        runs every check and every test: formatting, lints, docs, all tests
  browser     opens the pages of `cupel explain --html` in Chromium and drives them
  screenshot  writes docs/explain.png, the picture of such a page
  coverage    writes spec/coverage.md: which vector or test proves which requirement
  schema      writes the JSON Schemas of policies and requests to crates/cupel/schema
  bench       measures the library beside its peers: [--quick] [--check] [--bars 1,2,3]
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        ["test"] => test::run(),
        ["browser"] => browser::test(),
        ["screenshot"] => browser::screenshot(),
        ["coverage"] => coverage::write(),
        ["schema"] => schema::write(),
        ["bench", ref rest @ ..] => bench::run(rest),
        ["--help" | "-h"] => {
            print!("{USAGE}");
            Ok(())
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the repository.
fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_owned()
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// All files below `directory` with the given extension, sorted.
fn files_below(directory: &Path, extension: &str) -> Result<Vec<PathBuf>, String> {
    let fault = |error| format!("{}: {error}", directory.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(fault)? {
        let path = entry.map_err(fault)?.path();
        if path.is_dir() {
            let name = path.file_name().unwrap_or_default();
            if name != "target" && name != "node_modules" {
                found.extend(files_below(&path, extension)?);
            }
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
