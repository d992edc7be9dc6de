//! `cargo xtask test`: everything that has to hold before a change lands.

use std::process::Command;
use std::time::Instant;

/// Every step: the words after `cargo`, and whether warnings of the documentation count as errors.
const STEPS: &[(&str, bool)] = &[
    ("fmt --all --check", false),
    (
        "clippy --workspace --all-targets --all-features -- -D warnings",
        false,
    ),
    ("clippy --package cupel --all-targets -- -D warnings", false),
    (
        "clippy --package cupel --features serde -- -D warnings",
        false,
    ),
    ("doc --workspace --all-features --no-deps", true),
    ("test --workspace --all-features", false),
    ("test --package cupel", false),
    ("run --quiet --package cupel --example first_run", false),
    ("xtask bench --check", false),
    ("run --quiet --package xtask -- browser", false),
];

pub(crate) fn run() -> Result<(), String> {
    for (step, docs) in STEPS {
        println!("\n$ cargo {step}");
        #[expect(
            clippy::disallowed_methods,
            reason = "a command may tell how long it took"
        )]
        let since = Instant::now();
        let mut command = Command::new(env!("CARGO"));
        command.args(step.split(' ')).current_dir(crate::root());
        if *docs {
            command.env("RUSTDOCFLAGS", "-D warnings");
        }
        let status = command
            .status()
            .map_err(|error| format!("cargo {step}: {error}"))?;
        if !status.success() {
            return Err(format!("`cargo {step}` failed"));
        }
        println!("ok after {} s", since.elapsed().as_secs());
    }
    Ok(())
}
