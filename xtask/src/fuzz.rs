//! `cargo xtask fuzz SECONDS`: runs every fuzz target under libFuzzer.
//!
//! The bodies of the targets are in `fuzz/src`. An input that fails is copied to
//! `fuzz/regressions/TARGET`, which a test below replays on stable.

use std::path::{Path, PathBuf};

use crate::process::{self, cargo_of};
use crate::{entries, root};

/// Directories with seed inputs of a target, relative to the root.
fn seeds(target: &str) -> &'static [&'static str] {
    match target {
        "chat" | "jsonl" | "shorten" | "windows" | "wire" => &["examples", "examples/shapes"],
        "state" => &["fuzz/seeds/state"],
        "policy" | "request" => &[
            "examples",
            "examples/policies",
            "crates/cupel/src/config/presets",
        ],
        "vector" => &["crates/cupel-conformance/vectors/required/pipeline"],
        _ => &[],
    }
}

pub(crate) fn run(seconds: &str) -> Result<(), String> {
    let seconds: u32 = seconds
        .parse()
        .map_err(|_| format!("invalid SECONDS `{seconds}`: expected a whole number"))?;
    if !process::succeeds(&mut cargo_of("nightly", "--version")) {
        return Err("install a nightly compiler with `rustup toolchain install nightly`".into());
    }
    process::install_subcommand("fuzz")?;
    let mut found = Vec::new();
    for path in entries(&root().join("fuzz/fuzz_targets"))? {
        let target = path.file_stem().unwrap_or_default().to_string_lossy();
        println!("\n{target}");
        found.extend(run_target(&target, seconds)?);
    }
    if found.is_empty() {
        return Ok(());
    }
    Err(format!("failing inputs:\n{}", found.join("\n")))
}

/// Runs one target. Returns the failing inputs, copied to the regressions.
fn run_target(target: &str, seconds: u32) -> Result<Vec<String>, String> {
    let corpus = root().join("fuzz/corpus").join(target);
    let artifacts = root().join("fuzz/artifacts").join(target);
    let before = entries(&artifacts)?;
    std::fs::create_dir_all(&corpus).map_err(|error| format!("{}: {error}", corpus.display()))?;
    // The crates have no `unsafe` code, so a sanitizer has nothing to find.
    let build = format!("fuzz run --sanitizer none --features libfuzzer {target}");
    let mut fuzz = cargo_of("nightly", &build);
    fuzz.arg(&corpus);
    for directory in seeds(target) {
        fuzz.arg(root().join(directory));
    }
    fuzz.arg("--").arg(format!("-max_total_time={seconds}"));
    fuzz.args([
        "-max_len=16384",
        "-timeout=20",
        "-print_final_stats=1",
        "-verbosity=0",
    ]);
    let result = process::run(&mut fuzz, "the target failed");
    let regressions = root().join("fuzz/regressions").join(target);
    let new = entries(&artifacts)?.into_iter();
    let new: Vec<PathBuf> = new.filter(|path| !before.contains(path)).collect();
    if new.is_empty() {
        result?;
    }
    new.iter().map(|path| keep(path, &regressions)).collect()
}

/// Copies a failing input to the regressions.
fn keep(input: &Path, regressions: &Path) -> Result<String, String> {
    let kept = regressions.join(input.file_name().unwrap_or_default());
    std::fs::create_dir_all(regressions)
        .and_then(|()| std::fs::copy(input, &kept))
        .map_err(|error| format!("{}: {error}", kept.display()))?;
    Ok(kept.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_a_file_and_every_file_is_a_target() {
        let files = entries(&root().join("fuzz/fuzz_targets")).unwrap();
        let files = files.iter().filter_map(|path| path.file_stem()?.to_str());
        let targets = cupel_fuzz::TARGETS.iter().map(|(name, _)| *name);
        assert!(files.eq(targets));
    }

    #[test]
    fn every_seed_directory_exists() {
        for (target, _) in cupel_fuzz::TARGETS {
            for directory in seeds(target) {
                assert!(root().join(directory).is_dir(), "{directory}");
            }
        }
    }

    #[test]
    fn seeds_and_regressions_pass() {
        for (target, body) in cupel_fuzz::TARGETS {
            let regressions = root().join("fuzz/regressions").join(target);
            let seeds = seeds(target).iter().map(|directory| root().join(directory));
            for directory in seeds.chain([regressions]) {
                for input in entries(&directory).unwrap() {
                    if input.is_file() {
                        println!("{target}: {}", input.display());
                        body(&std::fs::read(input).unwrap());
                    }
                }
            }
        }
    }
}
