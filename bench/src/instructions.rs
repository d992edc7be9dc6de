//! Instruction counts: this program runs itself under callgrind.
//!
//! The parent starts `valgrind … cupel-bench count SIDE N SCORER ENTRY…`. The child builds items and
//! pipeline once and calls each entry point a few times, all but the first within
//! [`measured_section`], where callgrind collects. It writes one file per entry point when
//! [`one_case`] returns. Each scorer has a process of its own, so that its heap is fresh.

use std::path::Path;
use std::process::Command;

use crate::generator::Population;
use crate::ours;
#[cfg(feature = "full")]
use crate::peer;
use crate::recipe::{BUDGET, Entry, Scoring, Side};

/// Counts are means, because a randomly seeded hash map varies by a few instructions.
const REPEATS: usize = 3;

/// One entry point of a pipeline with one scorer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Case(pub(crate) Scoring, pub(crate) Entry);

/// Counts the instructions of one call per case, on a population of `count`, in any order.
pub(crate) fn count(side: Side, count: usize, cases: &[Case]) -> Result<Vec<(Case, f64)>, String> {
    let directory = std::env::temp_dir().join(format!("cupel-bench-{}", std::process::id()));
    std::fs::create_dir_all(&directory).map_err(|error| format!("temporary files: {error}"))?;
    let file = directory.join("out");
    let counts = Scoring::ALL.into_iter().map(|scoring| {
        let entries = cases.iter().filter(|case| case.0 == scoring);
        let entries: Vec<Entry> = entries.map(|case| case.1).collect();
        let counts = run_valgrind(side, count, scoring, &entries, &file)?;
        let counted = entries.into_iter().zip(counts);
        Ok(counted.map(move |(entry, count)| (Case(scoring, entry), count)))
    });
    let counts: Result<Vec<_>, String> = counts.collect();
    // A directory left behind among temporary files does no harm.
    let _ = std::fs::remove_dir_all(&directory);
    Ok(counts?.into_iter().flatten().collect())
}

/// Returns one count per entry point.
fn run_valgrind(
    side: Side,
    count: usize,
    scoring: Scoring,
    entries: &[Entry],
    file: &Path,
) -> Result<Vec<f64>, String> {
    if entries.is_empty() {
        return Ok(Vec::new());
    }
    let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let output = Command::new("valgrind")
        .args(["--quiet", "--tool=callgrind"])
        .arg("--toggle-collect=*measured_section*")
        .arg("--dump-after=*one_case*")
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(program)
        .args(["count", side.name(), &count.to_string(), scoring.name()])
        .args(entries.iter().map(|entry| entry.name()))
        .output()
        .map_err(|error| {
            format!("valgrind, which counts instructions, cannot be started ({error}); install it")
        })?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let last = errors.lines().last().unwrap_or_default();
        return Err(format!("valgrind ended with {}: {last}", output.status));
    }
    (1..=entries.len())
        .map(|part| {
            let dump = std::fs::read_to_string(format!("{}.{part}", file.display()));
            let dump = dump.map_err(|error| format!("a count is missing: {error}"))?;
            let total = dump.lines().find_map(|line| line.strip_prefix("totals: "));
            let total: Option<f64> = total.and_then(|total| total.trim().parse().ok());
            let total = total.ok_or_else(|| "a count has no total".to_owned())?;
            Ok(total / REPEATS as f64)
        })
        .collect()
}

/// Runs in the child: `SIDE N SCORER ENTRY…`.
pub(crate) fn run_child(arguments: &[&str]) -> Result<(), String> {
    let usage = || "count needs SIDE N SCORER ENTRY…".to_owned();
    let [side, count, scoring, entries @ ..] = arguments else {
        return Err(usage());
    };
    let side = Side::named(side).ok_or_else(usage)?;
    let population = Population::new(count.parse().map_err(|_| usage())?);
    let scoring = Scoring::named(scoring).ok_or_else(usage)?;
    let entries: Option<Vec<Entry>> = entries.iter().map(|name| Entry::named(name)).collect();
    let entries = entries.ok_or_else(usage)?;
    /// The same code for either library.
    macro_rules! count_with {
        ($library:ident) => {{
            let items = $library::items(&population);
            let budget = $library::budget(BUDGET);
            let pipeline = $library::pipeline(scoring);
            for entry in entries {
                let call = || $library::call(&pipeline, entry, &items, &budget);
                one_case(&mut || done(call().is_ok()));
            }
        }};
    }
    match side {
        Side::Ours => count_with!(ours),
        #[cfg(feature = "full")]
        Side::Peer => count_with!(peer),
    }
    Ok(())
}

fn done(is_ok: bool) {
    assert!(std::hint::black_box(is_ok), "a run failed");
}

#[inline(never)]
fn one_case(call: &mut dyn FnMut()) {
    call();
    measured_section(call);
    std::hint::black_box(());
}

#[inline(never)]
fn measured_section(call: &mut dyn FnMut()) {
    for _ in 0..REPEATS {
        call();
    }
    // Prevents a tail call, whose return callgrind would not see here.
    std::hint::black_box(());
}
