//! Work in a child process, with a time limit and a heap of its own.
//!
//! `cupel-bench attempt ARGUMENTS` is the child; it answers in lines of `name=value`.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

use crate::allocator::counted;
use crate::bars::{Session, duplicates, selection};
use crate::generator::Population;
use crate::knapsack::Class;
use crate::measure::{Plan, Timing, alone, continued, duel, timed};
use crate::recipe::{BUDGET, Scoring, Side, digest};
use crate::{ours, peer};

/// The answer of a child.
pub(crate) struct Answer(BTreeMap<String, String>);

impl Answer {
    pub(crate) fn get<T: FromStr>(&self, name: &str) -> Result<T, String> {
        let value = self.0.get(name).and_then(|value| value.parse().ok());
        value.ok_or_else(|| format!("the child's answer has no {name}"))
    }

    pub(crate) fn timing(&self) -> Result<Timing, String> {
        let (seconds, rounds) = (self.get("seconds")?, self.get("rounds")?);
        Ok(Timing { seconds, rounds })
    }
}

/// Measures a run with the greedy slicer and the chronological placer: time and window.
pub(crate) fn run(
    side: Side,
    scoring: Scoring,
    number: usize,
    limit: Duration,
) -> Result<Answer, String> {
    let number = number.to_string();
    attempt(&["run", side.name(), scoring.name(), &number], limit)
}

/// Measures our knapsack at a bucket of 1: time, memory and selection.
pub(crate) fn knapsack(
    class: Class,
    number: usize,
    target: i64,
    limit: Duration,
) -> Result<Answer, String> {
    let (number, target) = (number.to_string(), target.to_string());
    attempt(&["knapsack", class.name(), &number, &target], limit)
}

/// Measures our knapsack and a pass over a fresh table, in turns. Only a process with a small heap gets
/// fresh memory for the table.
pub(crate) fn table_pass(
    class: Class,
    number: usize,
    target: i64,
    session: Session,
) -> Result<Answer, String> {
    let (number, target) = (number.to_string(), target.to_string());
    let mode = if session.is_quick { "quick" } else { "full" };
    let limit = Duration::from_secs(120);
    attempt(&["table", class.name(), &number, &target, mode], limit)
}

/// Measures the cost of deduplication; see [`duplicates`].
pub(crate) fn deduplication(number: usize, rounds: usize) -> Result<Answer, String> {
    let (number, rounds) = (number.to_string(), rounds.to_string());
    let limit = Duration::from_secs(300);
    attempt(&["deduplication", &number, &rounds], limit)
}

fn attempt(words: &[&str], limit: Duration) -> Result<Answer, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    answer(Command::new(program).arg("attempt").args(words), limit)
}

/// Runs a command and returns its answer, or an error at the limit.
#[expect(clippy::disallowed_methods, reason = "the limit is wall time")]
pub(crate) fn answer(command: &mut Command, limit: Duration) -> Result<Answer, String> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let since = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            break status;
        }
        if since.elapsed() >= limit {
            // The child may have ended by itself a moment ago.
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("did not finish in {} s", limit.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let (mut answer, mut errors) = (String::new(), String::new());
    if let (Some(mut stdout), Some(mut stderr)) = (child.stdout.take(), child.stderr.take()) {
        // `Answer::get` reports missing output.
        let _ = stdout.read_to_string(&mut answer);
        let _ = stderr.read_to_string(&mut errors);
    }
    if !status.success() {
        let reason = errors.lines().last().unwrap_or("failed without a reason");
        return Err(reason.trim_start_matches("cupel-bench: ").to_owned());
    }
    let pairs = answer.lines().filter_map(|line| line.split_once('='));
    let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Ok(Answer(pairs.collect()))
}

/// Runs in the child.
pub(crate) fn run_child(words: &[&str]) -> Result<(), String> {
    match words {
        ["run", side, scoring, number] => {
            let side = Side::named(side).ok_or("no such side")?;
            let scoring = Scoring::named(scoring).ok_or("no such scorer")?;
            run_pipeline(side, scoring, &Population::new(parse(number)?))
        }
        ["knapsack", class, number, target] => {
            let class = Class::named(class).ok_or("no such class")?;
            run_knapsack(class, parse(number)?, parse(target)?)
        }
        ["table", class, number, target, mode] => {
            let class = Class::named(class).ok_or("no such class")?;
            let is_quick = *mode == "quick";
            let plan = Session { is_quick }.plan();
            pass_table(plan, class, parse(number)?, parse(target)?)
        }
        ["deduplication", number, rounds] => {
            let costs = duplicates::costs(parse(number)?, parse(rounds)?)?;
            println!("reading={}\nbuilding={}", costs.reading, costs.building);
            println!("finding={}", costs.finding);
            Ok(())
        }
        _ => Err("no such attempt".to_owned()),
    }
}

fn run_pipeline(side: Side, scoring: Scoring, population: &Population) -> Result<(), String> {
    /// The same code for either library.
    macro_rules! run_with {
        ($library:ident) => {{
            let items = $library::items(population);
            let budget = $library::budget(BUDGET);
            let pipeline = $library::pipeline(scoring);
            let (timing, window) = alone(Plan::FULL, || pipeline.run(&items, &budget));
            let window = window.map_err(|error| error.to_string())?;
            (timing, $library::positions(&window))
        }};
    }
    let (timing, window) = match side {
        Side::Ours => run_with!(ours),
        Side::Peer => run_with!(peer),
    };
    print_timing(timing);
    println!(
        "digest={}",
        digest(&selection::comparable(population, &window))
    );
    Ok(())
}

fn run_knapsack(class: Class, number: usize, target: i64) -> Result<(), String> {
    use cupel::Slicer as _;

    let scored = ours::scored(&class.instance(number));
    let (slicer, budget) = (ours::knapsack(1), ours::budget(target));
    let slice = || slicer.slice(&scored, &budget);
    let (first, (chosen, usage)) = timed(|| counted(slice));
    let chosen = chosen.map_err(|_| "refused")?;
    print_timing(continued(Plan::QUICK, first, slice));
    println!("digest={}", digest(&ours::positions(&chosen)));
    println!("peak={}", usage.peak);
    Ok(())
}

fn pass_table(plan: Plan, class: Class, number: usize, target: i64) -> Result<(), String> {
    use cupel::Slicer as _;

    let scored = ours::scored(&class.instance(number));
    let (slicer, budget) = (ours::knapsack(1), ours::budget(target));
    let words = number * usize::try_from(target).unwrap_or(0) / 64;
    let mut chosen = Vec::new();
    let duel = duel(
        plan,
        || {
            let mut table = vec![0_u64; words];
            table.fill(black_box(0x5555));
            black_box(&mut table);
            table
                .iter()
                .fold(0_u64, |sum, word| sum.wrapping_add(*word))
        },
        || slicer.slice(&scored, &budget),
        |_, ours| {
            chosen = ours::positions(ours.as_ref().map_err(|_| "refused")?);
            Ok(())
        },
    )?;
    print_timing(duel.second);
    println!("digest={}\npass={}", digest(&chosen), duel.first.seconds);
    Ok(())
}

fn print_timing(timing: Timing) {
    println!("seconds={}\nrounds={}", timing.seconds, timing.rounds);
}

fn parse<T: FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("not a number: {word}"))
}
