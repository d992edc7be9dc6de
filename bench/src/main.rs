//! Measures cupel and its peers. Run it as `cargo xtask bench`; README.md explains the table.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command prints to its terminal"
)]
#![cfg_attr(
    not(all(feature = "full", feature = "parallel")),
    allow(dead_code, reason = "each build uses a part")
)]

mod allocator;
#[cfg(feature = "full")]
mod attempt;
#[cfg(feature = "full")]
mod bars;
mod check;
mod counts;
mod generator;
mod instructions;
#[cfg(feature = "full")]
mod knapsack;
#[cfg(feature = "full")]
mod measure;
mod ours;
#[cfg(any(feature = "full", feature = "parallel"))]
mod parallel;
#[cfg(feature = "full")]
mod peer;
mod recipe;
#[cfg(feature = "full")]
mod report;
#[cfg(feature = "full")]
mod stages;
mod table;

use std::process::ExitCode;

const USAGE: &str = "\
Usage: cupel-bench [--quick | --check] [--bars 1,2,3]

  --quick  smaller sizes, fewer rounds, no Python: under three minutes
  --check  counts only, against limits.toml; fails if a limit is exceeded
  --bars   only these bars; without it also the rows without a bar
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        ["count", ref rest @ ..] => instructions::run_child(rest),
        #[cfg(feature = "full")]
        ["attempt", ref rest @ ..] => attempt::run_child(rest),
        #[cfg(feature = "parallel")]
        ["parallel", ref rest @ ..] => parallel::run_child(rest),
        _ => {
            let Some(options) = Options::parse(&arguments) else {
                eprint!("{USAGE}");
                return ExitCode::from(2);
            };
            run(&options)
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("cupel-bench: {message}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Default)]
struct Options {
    is_quick: bool,
    is_check: bool,
    /// Empty means all.
    bars: Vec<u8>,
}

impl Options {
    fn parse(arguments: &[&str]) -> Option<Self> {
        let mut options = Self::default();
        let mut arguments = arguments.iter();
        while let Some(&argument) = arguments.next() {
            match argument {
                "--quick" => options.is_quick = true,
                "--check" => options.is_check = true,
                "--bars" => {
                    let bars = arguments.next()?.split(',').map(str::parse);
                    options.bars = bars.collect::<Result<_, _>>().ok()?;
                }
                _ => return None,
            }
        }
        Some(options)
    }

    fn wants(&self, bar: u8) -> bool {
        self.bars.is_empty() || self.bars.contains(&bar)
    }
}

fn run(options: &Options) -> Result<(), String> {
    if options.is_check {
        return check::run(|bar| options.wants(bar));
    }
    #[cfg(feature = "full")]
    {
        measure_all(options)
    }
    #[cfg(not(feature = "full"))]
    {
        Err("built for --check alone; build with --features full to measure".to_owned())
    }
}

#[cfg(feature = "full")]
fn measure_all(options: &Options) -> Result<(), String> {
    let session = bars::Session {
        is_quick: options.is_quick,
    };
    let mut rows = Vec::new();
    for group in bars::GROUPS {
        if group.bars.iter().any(|bar| options.wants(*bar)) {
            let numbers: Vec<String> = group.bars.iter().map(u8::to_string).collect();
            eprintln!("bar {}: {}", numbers.join(", "), group.what);
            rows.extend((group.measure)(session));
        }
    }
    rows.retain(|row: &table::Row| row.bar.is_some_and(|bar| options.wants(bar)));
    rows.sort_by_key(|row| row.bar);
    let mut tables = vec![("bars", rows)];
    if options.bars.is_empty() {
        eprintln!("beyond the bars");
        tables.push(("beyond the bars", bars::beyond(session)));
        eprintln!("stages");
        tables.push(("stages", stages::rows(session)));
    }
    println!("{}", report::machine_line());
    for (name, rows) in &tables {
        println!("\n## {name}\n\n{}", table::render(rows));
    }
    println!("{}", table::summary(&tables[0].1));
    report::write(options.is_quick, &tables)
}
