//! `cargo xtask bench`: builds and runs the benchmarks, a workspace of their own in `bench/`.

use std::path::PathBuf;
use std::process::Command;

use crate::process;

/// Runs the benchmarks with the arguments, which `bench/README.md` describes.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let has_valgrind = || process::succeeds(Command::new("valgrind").arg("--version"));
    let hint =
        "valgrind counts instructions: install it (Debian: `apt-get install valgrind` as root)";
    match process::install("valgrind", has_valgrind, hint) {
        // A full run measures the rest and marks the counts as missing.
        Err(message) if !arguments.contains(&"--check") => eprintln!("{message}"),
        result => result?,
    }
    let mut command = cargo("run");
    if !arguments.contains(&"--check") {
        command.args(["--features", "full"]);
        command.env("CUPEL_BENCH_PARALLEL", build_parallel()?);
    }
    process::run(command.arg("--").args(arguments), FAILED)
}

const FAILED: &str = "see the messages above";

/// Builds the benchmarks a second time, with the feature `rayon` of the library.
fn build_parallel() -> Result<PathBuf, String> {
    let target = crate::root().join("bench/target/parallel");
    let mut command = cargo("build");
    command.args(["--features", "parallel", "--target-dir"]);
    process::run(command.arg(&target), FAILED)?;
    Ok(target.join("release/cupel-bench"))
}

fn cargo(verb: &str) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args([verb, "--release", "--quiet", "--manifest-path"]);
    command.arg(crate::root().join("bench/Cargo.toml"));
    command
}
