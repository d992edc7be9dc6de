//! `cargo xtask mutants`: tests the tests with cargo-mutants.
//!
//! A first pass runs the fast integration tests on every mutant. A second pass runs all tests on the
//! mutants that the first one missed. `.cargo/mutants.toml` names the mutated files. A mutant that
//! survives both passes fails the run, unless `xtask/mutants.toml` lists it with a reason.

use std::collections::BTreeMap;
use std::path::Path;

use crate::process::{self, cargo};
use crate::{read, read_toml, root};

/// `xtask/mutants.toml`.
struct Lists {
    /// Tests that the first pass skips because they take more than a second.
    slow_tests: Vec<String>,
    /// Mutants that no test can distinguish from the original, with the reason.
    accepted: BTreeMap<String, String>,
}

impl Lists {
    fn load() -> Result<Self, String> {
        let table = read_toml(&root().join("xtask/mutants.toml"))?;
        let texts = |value: &toml::Value| value.as_str().map(str::to_owned);
        let slow = table["slow_tests"].as_array().into_iter().flatten();
        let accepted = table["accepted"].as_table().into_iter().flatten();
        Ok(Self {
            slow_tests: slow.filter_map(texts).collect(),
            accepted: accepted
                .filter_map(|(name, reason)| Some((name.clone(), texts(reason)?)))
                .collect(),
        })
    }
}

pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let shard = match arguments {
        [] => None,
        ["--shard", shard] => Some(*shard),
        _ => return Err("expected no arguments or `--shard K/N`, with K from 0 to N-1".into()),
    };
    process::install_subcommand("mutants")?;
    let lists = Lists::load()?;

    let mut fast = vec!["--cargo-arg=--test=suite", "--timeout=120", "--", "--"];
    fast.extend(lists.slow_tests.iter().flat_map(|test| ["--skip", test]));
    let first = pass(shard, "10", &fast)?;
    // `--iterate` skips what the first pass caught.
    let all = [
        "--iterate",
        "--cargo-arg=--lib",
        "--cargo-arg=--test=suite",
        "--timeout=900",
    ];
    let second = pass(shard, "200", &all)?;

    let caught = first.caught + second.caught;
    let viable = caught + second.missed.len() + second.timeouts;
    println!(
        "{caught} of {viable} viable mutants caught, {} missed, {} timeouts, {} unviable",
        second.missed.len(),
        second.timeouts,
        first.unviable
    );
    let is_listed = |mutant: &&String| lists.accepted.contains_key(&name(mutant));
    let (listed, unlisted): (Vec<_>, Vec<_>) = second.missed.iter().partition(is_listed);
    println!("{} of the missed are listed with a reason", listed.len());
    if unlisted.is_empty() {
        return Ok(());
    }
    let unlisted: Vec<&str> = unlisted.into_iter().map(String::as_str).collect();
    Err(format!(
        "add a test that fails for each mutant, or list it in xtask/mutants.toml:\n{}",
        unlisted.join("\n")
    ))
}

/// The outcomes of one pass.
struct Outcomes {
    caught: usize,
    missed: Vec<String>,
    timeouts: usize,
    unviable: usize,
}

fn pass(shard: Option<&str>, cases: &str, arguments: &[&str]) -> Result<Outcomes, String> {
    let output = root().join("target/mutants");
    std::fs::create_dir_all(&output).map_err(|error| format!("{}: {error}", output.display()))?;
    // The fixed timeouts replace a baseline run; `cargo xtask test` is the baseline.
    let mut mutants = cargo(["mutants", "--baseline=skip", "--build-timeout=900"]);
    mutants.arg("--output").arg(&output);
    if let Some(shard) = shard {
        mutants.args(["--sharding=round-robin", "--shard", shard]);
    }
    mutants.args(arguments);
    let mutants = mutants.env("CUPEL_CASES", cases).env("RUST_BACKTRACE", "0");
    let status = mutants.status();
    let status = status.map_err(|error| format!("cargo mutants: {error}"))?;
    // 2: mutants were missed; 3: tests timed out.
    if !matches!(status.code(), Some(0 | 2 | 3)) {
        return Err(format!("cargo mutants: {status}"));
    }
    outcomes(&output.join("mutants.out"))
}

fn outcomes(directory: &Path) -> Result<Outcomes, String> {
    let lines = |file: &str| -> Result<Vec<String>, String> {
        let text = read(&directory.join(file))?;
        Ok(text.lines().map(str::to_owned).collect())
    };
    Ok(Outcomes {
        caught: lines("caught.txt")?.len(),
        missed: lines("missed.txt")?,
        timeouts: lines("timeout.txt")?.len(),
        unviable: lines("unviable.txt")?.len(),
    })
}

/// Returns `path: description` of `path:line:column: description`, which survives edits above it.
fn name(mutant: &str) -> String {
    let mut parts = mutant.splitn(4, ':');
    let (path, _, _, description) = (parts.next(), parts.next(), parts.next(), parts.next());
    format!(
        "{}:{}",
        path.unwrap_or_default(),
        description.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_no_line() {
        assert_eq!(
            name("crates/a/src/b.rs:12:34: replace < with <= in C::d"),
            "crates/a/src/b.rs: replace < with <= in C::d"
        );
    }

    #[test]
    fn every_mutated_path_exists() {
        let config = read_toml(&root().join(".cargo/mutants.toml")).unwrap();
        for glob in config["examine_globs"].as_array().unwrap() {
            let path = glob.as_str().unwrap().trim_end_matches("/**/*.rs");
            assert!(root().join(path).exists(), "{glob}");
        }
    }

    #[test]
    fn every_accepted_mutant_is_in_an_existing_file_and_has_a_reason() {
        for (name, reason) in Lists::load().unwrap().accepted {
            let (path, _) = name.split_once(": ").unwrap();
            assert!(root().join(path).is_file(), "{name}");
            assert!(reason.len() > 20, "{name}: {reason}");
        }
    }
}
