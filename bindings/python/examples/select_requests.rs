//! Runs a preset over many requests and prints the seconds, for `bench/batches.py`.
//!
//! Usage: `select_requests DIRECTORY PRESET BUDGET THREADS RUNS`. The directory has one file per column,
//! little-endian: `counts` (`u32`, items per request), `tokens` and `times` (`i64`, microseconds), `offsets` (`i32`)
//! and `texts`. Prints two lines, one pair of wall and CPU seconds per run: items built from the texts and run,
//! and prebuilt items run. CPU time is read from `/proc`, in steps of 10 ms.

use std::error::Error;
use std::time::Instant;

use chrono::DateTime;
use cupel::{ContextBudget, ContextItem, CupelError, Policy};
use rayon::prelude::*;

/// The decision about an item: the columns of `select_batches`.
type Row = (
    usize,
    Option<usize>,
    f64,
    bool,
    Option<&'static str>,
    Option<usize>,
    i64,
);

struct Log {
    /// The first item of each request, and the number of items at the end.
    starts: Vec<usize>,
    tokens: Vec<i64>,
    times: Vec<i64>,
    offsets: Vec<usize>,
    texts: String,
}

impl Log {
    fn read(directory: &str) -> Result<Self, Box<dyn Error>> {
        let file = |name: &str| std::fs::read(format!("{directory}/{name}"));
        let mut starts = vec![0];
        for count in file("counts")?.chunks_exact(4) {
            let count = u32::from_le_bytes(count.try_into()?);
            starts.push(starts[starts.len() - 1] + count as usize);
        }
        let integers = |name: &str| -> Result<Vec<i64>, Box<dyn Error>> {
            let bytes = file(name)?;
            let numbers = bytes.chunks_exact(8);
            numbers
                .map(|number| Ok(i64::from_le_bytes(number.try_into()?)))
                .collect()
        };
        let offsets = file("offsets")?;
        let offsets = offsets.chunks_exact(4).map(|offset| {
            let offset = i32::from_le_bytes(offset.try_into()?);
            Ok::<_, Box<dyn Error>>(usize::try_from(offset)?)
        });
        Ok(Self {
            starts,
            tokens: integers("tokens")?,
            times: integers("times")?,
            offsets: offsets.collect::<Result<_, _>>()?,
            texts: String::from_utf8(file("texts")?)?,
        })
    }

    fn items(&self, request: usize) -> Result<Vec<ContextItem>, CupelError> {
        let items = self.starts[request]..self.starts[request + 1];
        let item = |at: usize| {
            let text = &self.texts[self.offsets[at]..self.offsets[at + 1]];
            let time = DateTime::from_timestamp_micros(self.times[at]).unwrap_or_default();
            ContextItem::builder(text, self.tokens[at])
                .timestamp(time)
                .build()
        };
        items.map(item).collect()
    }
}

fn decide(
    policy: &Policy,
    items: &[ContextItem],
    budget: &ContextBudget,
) -> Result<Vec<Row>, CupelError> {
    let decisions = policy.decide(items, budget)?;
    let row = |at: usize| {
        let inclusion = decisions.inclusion(at).map(|reason| reason.name());
        let reason = inclusion.or_else(|| decisions.exclusion(at).and_then(|why| why.known_name()));
        (
            at,
            decisions.rank(at),
            decisions.score(at),
            inclusion.is_some(),
            reason,
            decisions.position(at),
            decisions.item(at).tokens(),
        )
    };
    Ok((0..items.len()).map(row).collect())
}

/// Returns the CPU seconds of this process so far.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The fields after the name, which may contain spaces; `utime` and `stime` are in ticks of 10 ms (proc(5)).
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}

/// Returns the wall and the CPU seconds of one call.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn seconds<T>(work: impl FnOnce() -> Result<T, CupelError>) -> Result<String, CupelError> {
    let (started, cpu) = (Instant::now(), cpu_seconds());
    work()?;
    let wall = started.elapsed().as_secs_f64();
    Ok(format!("{wall} {}", cpu_seconds() - cpu))
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, preset, budget, threads, runs] = &*arguments else {
        return Err("usage: select_requests DIRECTORY PRESET BUDGET THREADS RUNS".into());
    };
    let log = Log::read(directory)?;
    let policy = Policy::preset(preset)?;
    let budget = ContextBudget::try_from(budget.parse::<i64>()?)?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.parse()?)
        .build()?;
    let requests = log.starts.len() - 1;
    let built: Vec<Vec<ContextItem>> = (0..requests)
        .map(|request| log.items(request))
        .collect::<Result<_, _>>()?;
    let (mut from_texts, mut prebuilt) = (Vec::new(), Vec::new());
    for _ in 0..runs.parse::<usize>()? {
        from_texts.push(seconds(|| {
            pool.install(|| {
                let requests = (0..requests).into_par_iter();
                let rows = requests.map(|request| decide(&policy, &log.items(request)?, &budget));
                rows.collect::<Result<Vec<Vec<Row>>, CupelError>>()
            })
        })?);
        prebuilt.push(seconds(|| {
            pool.install(|| {
                let requests = built.par_iter();
                let rows = requests.map(|items| decide(&policy, items, &budget));
                rows.collect::<Result<Vec<Vec<Row>>, CupelError>>()
            })
        })?);
    }
    println!("{}", from_texts.join(" "));
    println!("{}", prebuilt.join(" "));
    Ok(())
}
