//! `cargo xtask python`: builds the Python package and tests it.
//! `cargo xtask frameworks`: tests its adapters with the real frameworks and engines.
//! `cargo xtask wheel`: builds the wheel of a release.
//!
//! Environments and wheels are below `target/python` and `target/frameworks`.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::{entries, process, root, target};

/// The hint for a command that shows its own errors.
const FAILED: &str = "see the messages above";

/// Directories whose folders are one environment each.
const ENVIRONMENTS: [&str; 2] = ["tests/frameworks", "tests/engines"];

/// Builds the package, checks its code and its types, and runs its tests.
pub(crate) fn test() -> Result<(), String> {
    let python = tools()?;
    timed("lints", || {
        let lint = |line: &str| {
            let mut cargo = process::cargo(line.split(' '));
            cargo.current_dir(package()).env("PYO3_PYTHON", &python);
            process::run(cargo.env("CARGO_TARGET_DIR", target()), FAILED)
        };
        lint("fmt --check")?;
        lint("clippy --quiet --locked --all-targets -- -D warnings")?;
        for arguments in [
            "-m ruff format --quiet --check . ../../examples/agents",
            "-m ruff check --quiet . ../../examples/agents",
        ] {
            let mut ruff = Command::new(&python);
            ruff.args(arguments.split(' ')).current_dir(package());
            process::run(&mut ruff, "run `ruff format` and `ruff check`")?;
        }
        Ok(())
    })?;
    timed("build", || {
        install(&python, &build_wheel(&python, Build::Dev)?)
    })?;
    timed("tests", || pytest(&python, &package().join("tests")))?;
    timed("blocks of the documents", || write_blocks(&python))?;
    timed("mypy and stubtest", || check_types(&python))?;
    timed("pyright", || pyright(&python))
}

/// Runs the tests of each environment, or of the named one. A failure does not stop the others.
pub(crate) fn frameworks(name: Option<&str>) -> Result<(), String> {
    let mut folders = Vec::new();
    for directory in ENVIRONMENTS {
        for folder in entries(&package().join(directory))? {
            let is_one = folder.is_dir() && file_name(&folder) != "__pycache__";
            if is_one && name.is_none_or(|name| file_name(&folder) == name) {
                folders.push(folder);
            }
        }
    }
    if folders.is_empty() {
        return Err(match name {
            Some(name) => format!("no environment `{name}` in {}", ENVIRONMENTS.join(", ")),
            None => format!("no environments in {}", ENVIRONMENTS.join(", ")),
        });
    }
    let wheel = build_wheel(&tools()?, Build::Dev)?;
    let mut table = String::from("\nenvironment       install s  tests s  result\n");
    let mut failed = Vec::new();
    for folder in folders {
        let name = file_name(&folder).to_string_lossy().into_owned();
        println!("\n{name}");
        let start = now();
        let installed = environment(
            &target().join("frameworks").join(&name),
            &folder.join("requirements.txt"),
        )
        .and_then(|python| install(&python, &wheel).map(|()| python));
        let install_seconds = start.elapsed().as_secs();
        let start = now();
        let result = installed.and_then(|python| {
            pytest(&python, &folder)?;
            check_adapter(&python, &name)
        });
        let test_seconds = start.elapsed().as_secs();
        let verdict = if result.is_ok() { "ok" } else { "FAILED" };
        let _ = writeln!(
            table,
            "{name:16}  {install_seconds:9}  {test_seconds:7}  {verdict}"
        );
        if let Err(error) = result {
            eprintln!("{name}: {error}");
            failed.push(name);
        }
    }
    print!("{table}");
    match failed[..] {
        [] => Ok(()),
        _ => Err(format!("failed: {}", failed.join(", "))),
    }
}

/// Checks the types of an adapter, which needs its framework. Other environments have none.
fn check_adapter(python: &Path, name: &str) -> Result<(), String> {
    let adapter = package().join(format!("python/cupel/{name}.py"));
    if !adapter.exists() {
        return Ok(());
    }
    let mut mypy = Command::new(python);
    mypy.args(["-m", "mypy", "--strict", "--follow-imports=silent"]);
    mypy.args(["--module", &format!("cupel.{name}")]);
    process::run(mypy.current_dir(package()), FAILED)
}

/// Builds the wheel of a release, installs it into a new environment and runs it there.
pub(crate) fn wheel() -> Result<(), String> {
    let wheel = build_wheel(&tools()?, Build::Release)?;
    let fresh = target().join("python-wheel");
    if fresh.exists() {
        let removed = std::fs::remove_dir_all(&fresh);
        removed.map_err(|error| format!("{}: {error}", fresh.display()))?;
    }
    let python = virtual_environment(&fresh)?;
    install(&python, &wheel)?;
    let mut select = Command::new(&python);
    select.args(["-c", "import cupel; print(cupel.presets())"]);
    process::run(&mut select, "the wheel cannot be imported")?;
    let mut command = Command::new(&python);
    command.args(["-m", "cupel", "--version"]);
    process::run(&mut command, "the command of the wheel does not run")?;
    println!("{}", wheel.display());
    Ok(())
}

/// Measures the overhead of the package over the engine, with a release build.
pub(crate) fn bench() -> Result<(), String> {
    let python = tools()?;
    let wheel = build_wheel(&python, Build::Bench)?;
    install(&python, &wheel)?;
    let run = |python: &Path, name: &str| {
        let mut bench = Command::new(python);
        bench.arg(package().join("bench").join(name));
        bench.env("CARGO_TARGET_DIR", target());
        process::run(bench.env("PYO3_PYTHON", python), FAILED)
    };
    let overhead = run(&python, "overhead.py");
    let batches = run(&python, "batches.py");
    let python = environment(
        &target().join("frameworks/langchain"),
        &package().join("tests/frameworks/langchain/requirements.txt"),
    )?;
    install(&python, &wheel)?;
    // A missed limit does not stop the others.
    overhead.and(batches).and(run(&python, "trim.py"))
}

/// Returns the interpreter of the environment with the build tools and the packages of the tests.
fn tools() -> Result<PathBuf, String> {
    let requirements = package().join("tests/requirements.txt");
    environment(&target().join("python"), &requirements)
}

/// Makes a virtual environment with the packages of a requirements file, and returns its interpreter.
pub(crate) fn environment(folder: &Path, requirements: &Path) -> Result<PathBuf, String> {
    let python = virtual_environment(folder)?;
    let mut pip = pip(&python);
    pip.arg("--requirement").arg(requirements);
    process::run(&mut pip, "the packages could not be installed")?;
    Ok(python)
}

/// Makes a virtual environment, and returns its interpreter.
pub(crate) fn virtual_environment(folder: &Path) -> Result<PathBuf, String> {
    let python = folder.join("bin/python");
    if !python.exists() {
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv"]).arg(folder);
        process::run(&mut venv, "install Python 3.11 or later with venv")?;
    }
    Ok(python)
}

fn pip(python: &Path) -> Command {
    let mut pip = Command::new(python);
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]);
    pip
}

#[derive(Clone, Copy)]
enum Build {
    /// For tests: opt-level 1.
    Dev,
    Release,
    /// A release with the engine alone as a function.
    Bench,
}

/// Builds the wheel and returns its path.
fn build_wheel(python: &Path, build: Build) -> Result<PathBuf, String> {
    let (name, flags) = match build {
        Build::Dev => ("python/wheels", ""),
        Build::Release => ("wheels", "--release"),
        Build::Bench => ("python/bench", "--release --features bench"),
    };
    let wheels = target().join(name);
    // Wheels of earlier versions would be found too.
    if wheels.exists() {
        let removed = std::fs::remove_dir_all(&wheels);
        removed.map_err(|error| format!("{}: {error}", wheels.display()))?;
    }
    let mut maturin = Command::new(python);
    maturin.args(["-m", "maturin", "build", "--quiet", "--locked"]);
    maturin
        .args(flags.split_whitespace())
        .arg("--out")
        .arg(&wheels);
    maturin.arg("--interpreter").arg(python);
    maturin.current_dir(package());
    maturin.env("CARGO_TARGET_DIR", target());
    process::run(&mut maturin, FAILED)?;
    match &entries(&wheels)?[..] {
        [wheel] => Ok(wheel.clone()),
        found => Err(format!(
            "{} has {} files, expected one wheel",
            wheels.display(),
            found.len()
        )),
    }
}

fn install(python: &Path, wheel: &Path) -> Result<(), String> {
    let mut pip = pip(python);
    pip.args(["--no-deps", "--force-reinstall"]).arg(wheel);
    process::run(&mut pip, "the wheel could not be installed")
}

/// Runs the tests in a folder. No tests, and a skipped test, are failures.
fn pytest(python: &Path, folder: &Path) -> Result<(), String> {
    let mut pytest = Command::new(python);
    pytest.args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"]);
    pytest.arg(folder).current_dir(package());
    // The tests compare the package with the command.
    pytest.env("CUPEL", process::built("--bin cupel", "debug/cupel")?);
    process::run(&mut pytest, FAILED)
}

/// Returns the folder of the Python blocks of the documents, each a module.
fn blocks() -> PathBuf {
    target().join("python/blocks")
}

fn write_blocks(python: &Path) -> Result<(), String> {
    let mut write = Command::new(python);
    write.arg("tests/blocks.py").arg(blocks());
    process::run(write.current_dir(package()), FAILED)
}

/// Checks the installed package, its tests and the blocks of the documents with mypy, and the stubs against the extension module.
fn check_types(python: &Path) -> Result<(), String> {
    for arguments in [
        "-m mypy --strict --package cupel",
        "-m mypy --strict tests bench",
        "-m mypy.stubtest --mypy-config-file pyproject.toml --allowlist tests/types/stubtest.txt --ignore-unused-allowlist cupel",
    ] {
        let mut check = Command::new(python);
        check.args(arguments.split(' ')).current_dir(package());
        process::run(&mut check, FAILED)?;
    }
    let mut check = Command::new(python);
    check.args(["-m", "mypy", "--strict"]).arg(blocks());
    process::run(check.current_dir(package()), FAILED)
}

/// Checks the package, its tests and the blocks of the documents with pyright.
fn pyright(python: &Path) -> Result<(), String> {
    let folder = target().join("python/types");
    install_node(
        &package().join("tests/types"),
        &folder,
        &["package.json", "package-lock.json"],
    )?;
    // Without paths: those of `pyproject.toml`.
    for paths in [None, Some(blocks())] {
        let mut check = Command::new(folder.join("node_modules/.bin/pyright"));
        check.arg("--warnings").arg("--pythonpath").arg(python);
        process::run(check.args(paths).current_dir(package()), FAILED)?;
    }
    Ok(())
}

/// Copies the files of a Node.js project to a folder and installs its packages there.
pub(crate) fn install_node(from: &Path, to: &Path, names: &[&str]) -> Result<(), String> {
    std::fs::create_dir_all(to).map_err(|error| format!("{}: {error}", to.display()))?;
    for name in names {
        let copied = std::fs::copy(from.join(name), to.join(name));
        copied.map_err(|error| format!("{name}: {error}"))?;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--silent", "--no-audit", "--no-fund"]);
    process::run(npm.current_dir(to), "install Node.js 20 or later with npm")
}

/// Runs one part and prints its time.
fn timed(name: &str, part: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    let start = now();
    part().map_err(|error| format!("{name}: {error}"))?;
    println!("  {name}: {} s", start.elapsed().as_secs());
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "a command may print how long it took"
)]
fn now() -> Instant {
    Instant::now()
}

/// Returns the folder of the Python package.
fn package() -> PathBuf {
    root().join("bindings/python")
}

fn file_name(path: &Path) -> &OsStr {
    path.file_name().unwrap_or_default()
}
