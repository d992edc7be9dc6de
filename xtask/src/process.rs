//! Runs other programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Returns a command for the cargo that started this one, in the root of the repository.
pub(crate) fn cargo<S: AsRef<str>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(crate::root());
    for argument in arguments {
        command.arg(argument.as_ref());
    }
    command
}

/// Returns a command for the cargo of another toolchain.
pub(crate) fn cargo_of(toolchain: &str, arguments: &str) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", toolchain, "cargo"]);
    command.args(arguments.split(' '));
    command.current_dir(crate::root());
    command
}

/// Runs a command that must succeed. The hint says what to do when it fails.
pub(crate) fn run(command: &mut Command, hint: &str) -> Result<(), String> {
    let line = line(command);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{line}`: {status}; {hint}")),
        Err(error) => Err(format!("`{line}`: {error}; {hint}")),
    }
}

/// Builds a program of the workspace and returns its path, which is given relative to cargo's target directory. It
/// has the features of the tests, so that nothing is built twice.
pub(crate) fn built(program: &str, path: &str) -> Result<PathBuf, String> {
    let build = format!("build --quiet --workspace --all-features {program}");
    run(&mut cargo(build.split(' ')), "see the messages above")?;
    Ok(crate::target().join(path))
}

/// Returns whether a program starts and succeeds, without its output.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Runs a command and returns its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let line = line(command);
    let output = command.output();
    let output = output.map_err(|error| format!("`{line}`: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let message = String::from_utf8_lossy(&output.stderr);
        Err(format!("`{line}`: {}\n{message}", output.status))
    }
}

fn line(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or_default();
    let words = [program].into_iter().chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

/// Installs a Debian package, unless `is_present`.
pub(crate) fn install(
    package: &str,
    is_present: impl Fn() -> bool,
    hint: &str,
) -> Result<(), String> {
    if is_present() {
        return Ok(());
    }
    eprintln!("installing {package}");
    let apt = |arguments: &str| {
        let mut apt = Command::new("apt-get");
        apt.args(arguments.split(' '));
        succeeds(apt.env("DEBIAN_FRONTEND", "noninteractive"))
    };
    let install = format!("install --yes --quiet {package}");
    let is_installed = apt(&install) || apt("update --quiet") && apt(&install);
    if is_installed && is_present() {
        Ok(())
    } else {
        Err(format!(
            "{package} is missing and could not be installed; {hint}"
        ))
    }
}

/// Installs a cargo subcommand from crates.io, unless it is present.
pub(crate) fn install_subcommand(name: &str) -> Result<(), String> {
    if succeeds(&mut cargo([name, "--version"])) {
        return Ok(());
    }
    let package = format!("cargo-{name}");
    eprintln!("installing {package}");
    let hint = format!("install it with `cargo install {package}`");
    run(&mut cargo(["install", "--locked", &package]), &hint)
}
