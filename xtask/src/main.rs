//! Checks and generators of the repository, run as `cargo xtask`.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command writes to its terminal"
)]

mod architecture;
mod bench;
mod browser;
mod clients;
mod coverage;
mod dist;
mod fuzz;
mod licenses;
mod markdown;
mod mutants;
mod names;
mod package;
mod process;
mod python;
mod python_types;
mod schema;
mod test;
mod tidy;
mod wasm;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
Usage: cargo xtask COMMAND

Commands:
  test          Runs every check and test: [--no-bench] [--no-browser] [--no-clients] [--no-python] [--no-wasm]
  release       Tests each feature alone, the packed crates and the minimum Rust version
  dist          Builds, installs and runs all that a Linux machine can build of a release: [NAME...]
  package       Packs every crate, then builds and tests the packed crates
  fuzz          Runs every fuzz target for SECONDS each: SECONDS
  mutants       Tests the tests with mutated code:
                [--only TEXT | --sample COUNT | --switched | --alone | --missed]
  browser       Tests the pages of `cupel explain --html` in Chromium
  clients       Parses fitted chats with the types of the providers' clients
  python        Builds and tests the Python package
  frameworks    Tests its adapters with the real frameworks and engines: [NAME]
  wasm          Fits a chat with a WebAssembly module in Node.js
  wheel         Builds the wheel of a release into target/wheels
  screenshot    Writes docs/images/explain-*.png, screenshots of such a page
  coverage      Writes spec/coverage.md: the vectors and tests that prove each requirement
  schema        Writes what follows from tables: the JSON Schemas, and the types of Python
  licenses      Writes the notices of the crates and vocabularies in each artifact
  bench         Compares the library with its peers: [--quick] [--check] [--bars 1,2,3]
  bench-python  Measures the overhead of the Python package over the engine
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        ["test", ref flags @ ..] => test::run(flags),
        ["release"] => test::release(),
        ["dist", ref names @ ..] => dist::run(names),
        ["package"] => package::run(),
        ["fuzz", seconds] => fuzz::run(seconds),
        ["mutants", ref rest @ ..] => mutants::run(rest),
        ["browser"] => browser::test(),
        ["clients"] => clients::test(),
        ["python"] => python::test(),
        ["frameworks"] => python::frameworks(None),
        ["frameworks", name] => python::frameworks(Some(name)),
        ["wheel"] => python::wheel(),
        ["wasm"] => wasm::test(),
        ["bench-python"] => python::bench(),
        ["screenshot"] => browser::screenshots(),
        ["coverage"] => coverage::write(),
        ["licenses"] => licenses::write(),
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

/// Returns the root of the repository.
fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_owned()
}

/// Returns cargo's target directory, which all workspaces of the repository share.
fn target() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    target.map_or_else(|| root().join("target"), PathBuf::from)
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn read_toml(path: &Path) -> Result<toml::Table, String> {
    read(path)?
        .parse()
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the directories of the published crates, sorted.
fn crates() -> Result<Vec<PathBuf>, String> {
    entries(&root().join("crates"))
}

/// Returns the entries of a directory, sorted; none if it does not exist.
fn entries(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let fault = |error| format!("{}: {error}", directory.display());
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(directory).map_err(fault)?;
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.map(|entry| entry.path()).map_err(fault))
        .collect::<Result<_, _>>()?;
    paths.sort();
    Ok(paths)
}

/// Returns all files below `directory` with the extension, sorted.
fn files_below(directory: &Path, extension: &str) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for path in entries(directory)? {
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() {
            if !["target", "node_modules", "corpus", "artifacts"]
                .iter()
                .any(|skip| name == *skip)
            {
                found.extend(files_below(&path, extension)?);
            }
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    Ok(found)
}
