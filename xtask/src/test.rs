//! `cargo xtask test`: every check and test that must pass before a change lands.
//! `cargo xtask release`: the slow checks of what users download, before a release.

use std::process::Command;
use std::time::Instant;

use crate::{package, process, read_toml, root};

/// What a step needs beyond Rust, and the flag that skips it.
#[derive(Clone, Copy, PartialEq)]
enum Needs {
    Nothing,
    Valgrind,
    Chromium,
    Clients,
    Node,
    Python,
}

impl Needs {
    fn flag(self) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::Valgrind => Some("--no-bench"),
            Self::Chromium => Some("--no-browser"),
            Self::Clients => Some("--no-clients"),
            Self::Node => Some("--no-wasm"),
            Self::Python => Some("--no-python"),
        }
    }
}

/// The hint for a command that shows its own errors.
const FAILED: &str = "see the messages above";

/// Random cases per property where the same tests run again in another build.
pub(crate) const FEW_CASES: &str = "100";

type Step = (&'static str, Needs, fn() -> Result<(), String>);

const STEPS: &[Step] = &[
    ("formatting", Needs::Nothing, || cargo("fmt --all --check")),
    ("lints", Needs::Nothing, || {
        cargo("clippy --workspace --all-targets --all-features -- -D warnings")
    }),
    ("documentation", Needs::Nothing, || {
        let mut doc = process::cargo("doc --workspace --all-features --no-deps".split(' '));
        process::run(doc.env("RUSTDOCFLAGS", "-D warnings"), FAILED)
    }),
    ("tests", Needs::Nothing, || {
        cargo("test --workspace --all-features")
    }),
    ("each feature alone", Needs::Nothing, || {
        each_feature("clippy", "--all-targets -- -D warnings")
    }),
    ("example", Needs::Nothing, || {
        let example = process::built("--example first_run", "debug/examples/first_run")?;
        process::run(&mut Command::new(example), FAILED)
    }),
    ("instruction counts", Needs::Valgrind, || {
        crate::bench::run(&["--check"])
    }),
    ("page", Needs::Chromium, crate::browser::test),
    ("clients", Needs::Clients, crate::clients::test),
    ("wasm", Needs::Node, crate::wasm::test),
    ("python", Needs::Python, crate::python::test),
];

const RELEASE_STEPS: &[Step] = &[
    ("tests with each feature alone", Needs::Nothing, || {
        each_feature("test", "--lib --test suite")
    }),
    ("packed crates", Needs::Nothing, package::run),
    ("minimum Rust version", Needs::Nothing, check_msrv),
];

/// Runs all steps but those that a flag skips.
pub(crate) fn run(flags: &[&str]) -> Result<(), String> {
    run_steps(STEPS, flags)
}

/// Tests each feature alone, the packed crates, and the minimum Rust version.
pub(crate) fn release() -> Result<(), String> {
    run_steps(RELEASE_STEPS, &[])
}

fn run_steps(steps: &[Step], flags: &[&str]) -> Result<(), String> {
    let known: Vec<&str> = steps.iter().filter_map(|step| step.1.flag()).collect();
    if let Some(unknown) = flags.iter().find(|flag| !known.contains(flag)) {
        let known = known.join(", ");
        return Err(format!("unknown flag `{unknown}`; expected one of {known}"));
    }
    for (name, needs, step) in steps {
        let flag = needs.flag();
        if flag.is_some_and(|flag| flags.contains(&flag)) {
            println!("\n{name}: skipped");
            continue;
        }
        println!("\n{name}");
        #[expect(
            clippy::disallowed_methods,
            reason = "a command may print how long it took"
        )]
        let start = Instant::now();
        step().map_err(|error| match flag {
            Some(flag) => format!("{name}: {error}\nTo skip this step, pass `{flag}`."),
            None => format!("{name}: {error}"),
        })?;
        println!("{name}: ok after {} s", start.elapsed().as_secs());
    }
    Ok(())
}

fn cargo(arguments: &str) -> Result<(), String> {
    process::run(&mut process::cargo(arguments.split(' ')), FAILED)
}

/// Runs a cargo command for the libraries, with no feature and with each feature alone. In the workspace
/// build, feature unification hides a missing dependency.
fn each_feature(command: &str, arguments: &str) -> Result<(), String> {
    for package in ["cupel", "cupel-chat", "cupel-app", "cupel-eval"] {
        let manifest = read_toml(&root().join(format!("crates/{package}/Cargo.toml")))?;
        let features = manifest["features"].as_table().into_iter().flatten();
        let features = features.map(|(feature, _)| feature.as_str());
        for feature in features.chain([""]) {
            println!("{package}, feature {feature:?}");
            let only = format!("--package {package} --no-default-features --features={feature}");
            let line = format!("{command} {only} {arguments}");
            let mut cargo = process::cargo(line.split(' '));
            process::run(cargo.env("CUPEL_CASES", FEW_CASES), FAILED)?;
        }
    }
    Ok(())
}

/// Checks the workspace with the compiler that `rust-version` names.
fn check_msrv() -> Result<(), String> {
    let manifest = read_toml(&root().join("Cargo.toml"))?;
    let version = manifest["workspace"]["package"]["rust-version"].as_str();
    let version = version.ok_or("Cargo.toml has no rust-version")?;
    let hint = format!("install Rust {version} with `rustup toolchain install {version}`");
    let check = "check --workspace --all-features --target-dir target/msrv";
    if !process::succeeds(&mut process::cargo_of(version, "--version")) {
        eprintln!("installing Rust {version}");
        let mut rustup = Command::new("rustup");
        let install = rustup.args(["toolchain", "install", "--profile", "minimal", version]);
        process::run(install, &hint)?;
    }
    process::run(&mut process::cargo_of(version, check), FAILED)
}
