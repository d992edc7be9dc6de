//! `cargo xtask mutants`: tests the tests with mutated code.
//!
//! cargo-mutants lists the mutants of the files that `.cargo/mutants.toml` names. All of them are
//! compiled into one build (mutant schemata: Untch, Offutt and Harrold 1993), so that a mutant costs
//! the run of a few tests instead of a build. A mutant runs the tests that reach its function, shortest
//! first, until one fails; tests of more than 3 s of processor time are skipped. A mutant that survives
//! fails the command, unless `accepted.toml` lists it with a reason.
//!
//! `--switched` runs the mutants of this build, `--alone` the few that need a build each: constants, and
//! functions that return an opaque type.
//!
//! Properties have 10 random cases. `CUPEL_CASES=100 cargo xtask mutants --missed` runs the survivors again
//! with more.

mod list;
mod runner;
mod schemata;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread::ScopedJoinHandle;
use std::time::Instant;

use crate::{process, read, read_toml, root};
use list::Mutant;
use runner::{TestSuite, Verdict};
use schemata::Schemata;
use tree::Tree;

pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let choice = Choice::parse(arguments)?;
    process::install_subcommand("mutants")?;
    let accepted = accepted()?;
    let mutants = choice.of(list::mutants()?)?;
    let tree = Tree::copy()?;

    let mut start = now();
    let mut schemata = Schemata::new(&mutants)?;
    let unviable = tree.check(&mut schemata, &mutants)?;
    let binaries = tree.build()?.ok_or("the unmutated tests do not build")?;
    println!(
        "{} mutants in one build: {:.0?}",
        mutants.len(),
        start.elapsed()
    );

    start = now();
    let suite = TestSuite::trace(&binaries)?;
    println!("{} tests traced: {:.0?}", suite.len(), start.elapsed());

    let mut outcomes = Outcomes::default();
    let mut switched = Vec::new();
    let mut alone = Vec::new();
    for mutant in &mutants {
        if unviable.contains(&mutant.id) {
            outcomes.add(mutant, Verdict::Unviable);
        } else if let Some(function) = schemata.function_of(mutant) {
            switched.push((mutant, function));
        } else {
            alone.push(mutant);
        }
    }
    let queue = Mutex::new(switched.into_iter());
    let shared = Mutex::new(&mut outcomes);
    let next = || queue.lock().ok()?.next();
    let work = || -> Result<(), String> {
        while let Some((mutant, function)) = next() {
            let verdict = suite.run_reaching(function, mutant.id)?;
            let mut outcomes = shared.lock().map_err(|error| error.to_string())?;
            outcomes.add(mutant, verdict);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let mut ends = workers.into_iter().map(ScopedJoinHandle::join);
        ends.try_for_each(|end| end.map_err(|_| "a worker panicked")?)
    })?;
    println!("{} mutants with a build of their own", alone.len());
    outcomes.write()?;
    if !alone.is_empty() {
        tree.write_originals(&schemata)?;
    }
    for mutant in alone {
        let verdict = tree.with_mutant(&schemata, mutant, || suite.run_all())?;
        outcomes.add(mutant, verdict);
        // The builds take hours; what is known so far is kept.
        outcomes.write()?;
    }
    outcomes.judge(&accepted, matches!(choice, Choice::All))
}

/// The mutants to run.
enum Choice<'a> {
    All,
    /// Mutants with this text in their name.
    Only(&'a str),
    /// This number at random, of those that need no build of their own.
    Sample(usize),
    /// Those that need a build of their own, or those that need none.
    Alone(bool),
    /// Those that the last run missed.
    Missed,
}

impl<'a> Choice<'a> {
    fn parse(arguments: &[&'a str]) -> Result<Self, String> {
        match arguments {
            [] => Ok(Self::All),
            ["--only", text] => Ok(Self::Only(text)),
            ["--alone"] => Ok(Self::Alone(true)),
            ["--switched"] => Ok(Self::Alone(false)),
            ["--missed"] => Ok(Self::Missed),
            ["--sample", count] => {
                let count = count.parse();
                Ok(Self::Sample(
                    count.map_err(|error| format!("--sample: {error}"))?,
                ))
            }
            _ => Err(
                "expected `--only TEXT`, a part of a mutant's name, `--sample COUNT`, `--switched`, `--alone` or `--missed`"
                    .into(),
            ),
        }
    }

    fn of(&self, mut mutants: Vec<Mutant>) -> Result<Vec<Mutant>, String> {
        match *self {
            Self::All => {}
            Self::Only(text) => mutants.retain(|mutant| mutant.name.contains(text)),
            Self::Sample(count) => {
                mutants.retain(Mutant::has_schemata);
                let seed = RandomState::new();
                mutants.sort_by_cached_key(|mutant| seed.hash_one(mutant.id));
                mutants.truncate(count);
            }
            Self::Alone(is_alone) => mutants.retain(|mutant| mutant.has_schemata() != is_alone),
            Self::Missed => {
                let missed = read(&list_of(Verdict::Missed))?;
                let missed: BTreeSet<&str> = missed.lines().collect();
                mutants.retain(|mutant| missed.contains(mutant.name.as_str()));
            }
        }
        Ok(mutants)
    }
}

/// Returns the patterns of mutants that no test can distinguish from the original, with the reasons.
fn accepted() -> Result<BTreeMap<String, String>, String> {
    let table = read_toml(&root().join("xtask/src/mutants/accepted.toml"))?;
    let reasons = table.into_iter().map(|(name, reason)| {
        let reason = reason.as_str().ok_or("a reason is a string")?.to_owned();
        Ok((name, reason))
    });
    reasons.collect()
}

/// The names of the mutants by verdict, and the counts per directory.
#[derive(Default)]
struct Outcomes {
    names: BTreeMap<Verdict, BTreeSet<String>>,
    counts: BTreeMap<String, BTreeMap<Verdict, usize>>,
}

impl Outcomes {
    fn add(&mut self, mutant: &Mutant, verdict: Verdict) {
        if matches!(verdict, Verdict::Missed | Verdict::Timeout) {
            println!("{verdict}: {} ({})", mutant.position(), mutant.id);
        }
        self.names
            .entry(verdict)
            .or_default()
            .insert(mutant.name.clone());
        *self
            .counts
            .entry(mutant.directory())
            .or_default()
            .entry(verdict)
            .or_default() += 1;
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.names.get(&verdict).map_or(0, BTreeSet::len)
    }

    /// Writes one list per verdict to `target/mutants`.
    fn write(&self) -> Result<(), String> {
        for verdict in Verdict::ALL {
            let names = self.names.get(&verdict).into_iter().flatten();
            let lines: Vec<&str> = names.map(String::as_str).collect();
            write(&list_of(verdict), &lines.join("\n"))?;
        }
        Ok(())
    }

    /// Prints the counts. Fails for a survivor without a reason and, if all mutants ran, for a
    /// reason without a survivor.
    fn judge(&self, accepted: &BTreeMap<String, String>, is_complete: bool) -> Result<(), String> {
        for (directory, counts) in &self.counts {
            let counts = Verdict::ALL
                .map(|verdict| format!("{} {verdict}", counts.get(&verdict).copied().unwrap_or(0)));
            println!("{directory}: {}", counts.join(", "));
        }
        let empty = BTreeSet::new();
        let missed = self.names.get(&Verdict::Missed).unwrap_or(&empty);
        let (listed, unlisted): (Vec<_>, Vec<_>) = missed
            .iter()
            .partition(|name| accepted.keys().any(|pattern| matches(pattern, name)));
        let detected = self.count(Verdict::Caught) + self.count(Verdict::Timeout);
        let viable = detected + missed.len();
        println!(
            "{detected} of {viable} viable mutants caught ({:.1} %), {} of them by a timeout; {} missed, {} listed with a reason; {} unviable",
            100.0 * detected as f64 / viable.max(1) as f64,
            self.count(Verdict::Timeout),
            missed.len(),
            listed.len(),
            self.count(Verdict::Unviable),
        );
        let lines = |names: Vec<&String>| {
            names
                .into_iter()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join("\n")
        };
        if !unlisted.is_empty() {
            return Err(format!(
                "add a test that fails for each mutant, or list it in xtask/src/mutants/accepted.toml:\n{}",
                lines(unlisted)
            ));
        }
        // A mutant that is only slower survives on one machine and exceeds its time on another.
        let slow = self.names.get(&Verdict::Timeout).unwrap_or(&empty);
        let is_used = |pattern: &str| missed.union(slow).any(|name| matches(pattern, name));
        let stale: Vec<_> = accepted
            .keys()
            .filter(|pattern| !is_used(pattern))
            .collect();
        if is_complete && !stale.is_empty() {
            return Err(format!(
                "these mutants do not survive; remove them from xtask/src/mutants/accepted.toml:\n{}",
                lines(stale)
            ));
        }
        Ok(())
    }
}

/// Returns whether a name has the pieces of a pattern between `...`, in order.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once("...") {
        None => name == pattern,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|end| {
            let ends = end.char_indices().map(|(index, _)| &end[index..]);
            ends.chain([""]).any(|end| matches(rest, end))
        }),
    }
}

#[expect(clippy::disallowed_methods, reason = "a command may measure itself")]
fn now() -> Instant {
    Instant::now()
}

/// Returns the file with the names of the mutants that have a verdict.
fn list_of(verdict: Verdict) -> PathBuf {
    directory().join(format!("{verdict}.txt"))
}

/// Returns the directory of all files that this command writes.
fn directory() -> PathBuf {
    crate::target().join("mutants")
}

/// Writes a file unless it has this text, so that cargo does not build it again.
fn write(path: &std::path::Path, text: &str) -> Result<(), String> {
    if std::fs::read_to_string(path).is_ok_and(|before| before == text) {
        return Ok(());
    }
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for (name, reason) in accepted().unwrap() {
            let (path, _) = name.split_once(": ").unwrap();
            assert!(root().join(path).is_file(), "{name}");
            assert!(reason.len() > 20, "{name}: {reason}");
        }
    }

    #[test]
    fn a_survivor_needs_a_reason_and_a_reason_needs_a_survivor() {
        let mutant = |name: &str| Mutant {
            name: name.to_owned(),
            file: "crates/a/src/b.rs".to_owned(),
            ..Mutant::default()
        };
        let mut outcomes = Outcomes::default();
        outcomes.add(&mutant("equivalent"), Verdict::Missed);
        outcomes.add(&mutant("killed"), Verdict::Caught);
        outcomes.add(&mutant("slow"), Verdict::Timeout);
        let reasons = |names: &[&str]| -> BTreeMap<String, String> {
            names
                .iter()
                .map(|name| ((*name).to_owned(), String::new()))
                .collect()
        };
        assert!(
            outcomes
                .judge(&reasons(&[]), true)
                .unwrap_err()
                .ends_with("\nequivalent")
        );
        assert_eq!(outcomes.judge(&reasons(&["equivalent"]), true), Ok(()));
        assert_eq!(outcomes.judge(&reasons(&["eq...len..."]), true), Ok(()));
        let slow = reasons(&["equivalent", "slow"]);
        assert_eq!(outcomes.judge(&slow, true), Ok(()));
        assert!(outcomes.judge(&reasons(&["eq...x..."]), true).is_err());
        let stale = reasons(&["equivalent", "killed"]);
        assert!(
            outcomes
                .judge(&stale, true)
                .unwrap_err()
                .ends_with("\nkilled")
        );
        assert_eq!(outcomes.judge(&stale, false), Ok(()));
    }
}
