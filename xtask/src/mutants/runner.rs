//! Runs tests on mutants.

use std::collections::BTreeSet;
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::directory;
use crate::process;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    Caught,
    Timeout,
    Missed,
    Unviable,
}

impl Verdict {
    pub(super) const ALL: [Self; 4] = [Self::Caught, Self::Timeout, Self::Missed, Self::Unviable];
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Caught => "caught",
            Self::Timeout => "timeout",
            Self::Missed => "missed",
            Self::Unviable => "unviable",
        })
    }
}

/// The processor time in seconds above which a test is not run on mutants, per 10 random cases.
const SLOW: u64 = 3;

/// Returns the number of random cases per property: the environment variable `CUPEL_CASES`, or 10.
fn cases() -> u64 {
    let cases = std::env::var("CUPEL_CASES").ok();
    cases.and_then(|cases| cases.parse().ok()).unwrap_or(10)
}

/// The tests, shortest first.
pub(super) struct TestSuite {
    tests: Vec<Test>,
}

/// A test executable. Tests read files relative to the directory of their package.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Binary {
    pub(super) path: PathBuf,
    pub(super) package: PathBuf,
}

struct Test {
    binary: Binary,
    name: String,
    time: Duration,
    reached: BTreeSet<usize>,
}

impl TestSuite {
    /// Runs every test alone on the original code, and records its time and the functions it reaches.
    pub(super) fn trace(binaries: &[Binary]) -> Result<Self, String> {
        let mut tests = Vec::new();
        let reached = directory().join("reached.txt");
        for binary in binaries {
            let list =
                process::output(Command::new(&binary.path).args(["--list", "--format=terse"]))?;
            for name in list.lines().filter_map(|line| line.strip_suffix(": test")) {
                super::write(&reached, "")?;
                let mut command = command(binary, &[name], SLOW * cases().div_ceil(10));
                command
                    .env("CUPEL_MUTANT", "trace")
                    .env("CUPEL_REACHED", &reached);
                let start = super::now();
                if !process::succeeds(&mut command) {
                    println!("skipped: {name} fails without a mutant, or takes too long");
                    continue;
                }
                let time = start.elapsed();
                let numbers = crate::read(&reached)?;
                let numbers = numbers.lines().filter_map(|line| line.parse().ok());
                tests.push(Test {
                    binary: binary.clone(),
                    name: name.to_owned(),
                    time,
                    reached: numbers.collect(),
                });
            }
        }
        tests.sort_by_key(|test| test.time);
        Ok(Self { tests })
    }

    pub(super) fn len(&self) -> usize {
        self.tests.len()
    }

    /// Runs the tests that reach a function.
    pub(super) fn run_reaching(&self, function: usize, mutant: u32) -> Result<Verdict, String> {
        let tests = self
            .tests
            .iter()
            .filter(|test| test.reached.contains(&function));
        run(&tests.collect::<Vec<_>>(), mutant)
    }

    /// Runs all tests.
    pub(super) fn run_all(&self) -> Result<Verdict, String> {
        run(&self.tests.iter().collect::<Vec<_>>(), 0)
    }
}

/// Runs tests until one fails, in batches of growing length.
fn run(mut tests: &[&Test], mutant: u32) -> Result<Verdict, String> {
    let mut limit = Duration::from_millis(100);
    while !tests.is_empty() {
        let mut time = Duration::ZERO;
        let fits = |test: &&&Test| {
            time += test.time;
            time <= limit
        };
        let count = tests.iter().take_while(fits).count().max(1);
        let (batch, rest) = tests.split_at(count);
        let binaries: BTreeSet<&Binary> = batch.iter().map(|test| &test.binary).collect();
        for binary in binaries {
            let batch = batch.iter().filter(|test| test.binary == *binary);
            let time: Duration = batch.clone().map(|test| test.time).sum();
            let names: Vec<&str> = batch.map(|test| test.name.as_str()).collect();
            let mut command = command(binary, &names, 5 * time.as_secs() + 3);
            let status = command.env("CUPEL_MUTANT", mutant.to_string()).status();
            let status = status.map_err(|error| format!("{}: {error}", binary.path.display()))?;
            match (status.code(), status.signal()) {
                (Some(0), _) => {}
                // SIGKILL and SIGXCPU; 124 is the exit code of `timeout`.
                (Some(124 | 137 | 152), _) | (_, Some(9 | 24)) => return Ok(Verdict::Timeout),
                _ => return Ok(Verdict::Caught),
            }
        }
        tests = rest;
        limit *= 4;
    }
    Ok(Verdict::Missed)
}

/// Returns a command that runs tests, with limits for a mutant that does not terminate: processor time in
/// seconds, and 4 GB of memory.
fn command(binary: &Binary, tests: &[&str], limit: u64) -> Command {
    let mut command = Command::new("timeout");
    let limits = format!("ulimit -t {limit}; ulimit -v 4000000; exec \"$@\"");
    command.args(["900", "sh", "-c", &limits, "sh"]);
    command.arg(&binary.path).current_dir(&binary.package);
    command.args(["--exact", "--test-threads=1"]).args(tests);
    command.env("CUPEL_CASES", cases().to_string());
    // A failure is not made smaller.
    command
        .env("PROPTEST_MAX_SHRINK_ITERS", "0")
        .env("PROPTEST_RNG_SEED", "1")
        .env("RUST_BACKTRACE", "0");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}
