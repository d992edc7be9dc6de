//! `cargo xtask bench`: builds and runs the benchmarks, a workspace of their own in `bench/`.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Passes its arguments on; `bench/README.md` describes them.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    install_valgrind();
    let mut command = cargo("run");
    if !arguments.contains(&"--check") {
        command.args(["--features", "full"]);
        command.env("CUPEL_BENCH_PARALLEL", build_parallel()?);
    }
    finish(command.arg("--").args(arguments))
}

/// Builds the benchmarks a second time, with the library on all cores.
fn build_parallel() -> Result<PathBuf, String> {
    let target = crate::root().join("bench/target/parallel");
    let mut command = cargo("build");
    command.args(["--features", "parallel", "--target-dir"]);
    finish(command.arg(&target))?;
    Ok(target.join("release/cupel-bench"))
}

fn cargo(verb: &str) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args([verb, "--release", "--quiet", "--manifest-path"]);
    command.arg(crate::root().join("bench/Cargo.toml"));
    command
}

fn finish(command: &mut Command) -> Result<(), String> {
    let status = command.status();
    let status = status.map_err(|error| format!("cargo: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("the benchmarks ended with {status}"))
    }
}

/// Instructions are counted by valgrind. Where it is missing and can be installed, it is.
fn install_valgrind() {
    let succeeds = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).stdout(Stdio::null());
        command
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    if succeeds("valgrind", &["--version"]) {
        return;
    }
    eprintln!("installing valgrind, which counts instructions");
    let install = || succeeds("apt-get", &["install", "--yes", "valgrind"]);
    let is_installed = install() || succeeds("apt-get", &["update"]) && install();
    if !is_installed {
        eprintln!("that failed: install valgrind by hand (it takes root and a source of packages)");
    }
}
