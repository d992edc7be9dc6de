//! The library on all cores (feature `rayon`). A second build of this program runs with one thread and
//! with one thread per core. Times are wall times: CPU time would count all threads.

#[cfg(feature = "full")]
pub(crate) use parent::rows;

#[cfg(feature = "full")]
mod parent {
    use std::process::Command;
    use std::time::Duration;

    use crate::attempt::{Answer, answer};
    use crate::bars::Session;
    use crate::counts::short;
    use crate::table::{Figure, Row, Unit};

    /// Names the second build; `cargo xtask bench` sets it.
    const VARIABLE: &str = "CUPEL_BENCH_PARALLEL";

    pub(crate) fn rows(session: Session) -> Vec<Row> {
        let large = if session.is_quick { 100_000 } else { 1_000_000 };
        vec![
            row(
                format!("composite run on all cores, N={}, wall time", short(large)),
                ["run", &large.to_string()],
            ),
            row(
                "10k composite runs of N=100 on all cores, wall time".to_owned(),
                ["many", "10000"],
            ),
        ]
    }

    fn row(what: String, words: [&str; 2]) -> Row {
        let row = Row::new(None, what).checked("same window");
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let measured = |threads| {
            let answer = ask(words, threads)?;
            Ok::<(f64, u64), String>((answer.get("seconds")?, answer.get("digest")?))
        };
        let ((one, one_window), (all, all_windows)) = match (measured(1), measured(cores)) {
            (Ok(one), Ok(all)) => (one, all),
            (Err(reason), _) | (_, Err(reason)) => return row.not_measured(reason),
        };
        if one_window != all_windows {
            return row.missed("another window than with one thread");
        }
        let threads = format!("{cores} threads");
        row.peer(Figure::noted(one, Unit::Seconds, "ours, 1 thread"))
            .ours(Figure::noted(all, Unit::Seconds, threads))
            .measured(one / all, Unit::Times)
    }

    fn ask(words: [&str; 2], threads: usize) -> Result<Answer, String> {
        let program = std::env::var_os(VARIABLE);
        let program = program.ok_or("needs the second build of `cargo xtask bench`")?;
        let mut command = Command::new(program);
        command.arg("parallel").args(words);
        command.env("RAYON_NUM_THREADS", threads.to_string());
        answer(&mut command, Duration::from_secs(120))
    }
}

/// Runs in the child: `run N` or `many REQUESTS`.
#[cfg(feature = "parallel")]
pub(crate) fn run_child(words: &[&str]) -> Result<(), String> {
    use crate::generator::Population;
    use crate::ours;
    use crate::recipe::{BUDGET, Scoring};

    let (pipeline, budget) = (ours::pipeline(Scoring::Composite), ours::budget(BUDGET));
    let number = |word: &str| word.parse().map_err(|_| format!("not a number: {word}"));
    // Many requests come from several users, which share no items.
    let (users, count, requests) = match words {
        ["run", count] => (1, number(count)?, 1),
        ["many", requests] => (100, 100, number(requests)?),
        _ => return Err("parallel needs `run N` or `many REQUESTS`".to_owned()),
    };
    let population = Population::new(count);
    let users: Vec<_> = (0..users).map(|_| ours::items(&population)).collect();
    let in_turn = users.iter().cycle().take(requests);
    let requests: Vec<(&[cupel::ContextItem], _)> =
        in_turn.map(|items| (&items[..], &budget)).collect();
    let mut windows = Vec::new();
    let mut times = Vec::new();
    for _ in 0..9 {
        windows.clear();
        #[expect(
            clippy::disallowed_methods,
            reason = "several threads are measured by wall time"
        )]
        let since = std::time::Instant::now();
        windows = match requests[..] {
            [(items, budget)] => vec![pipeline.run(items, budget)],
            _ => run_each(&pipeline, &requests),
        };
        times.push(since.elapsed());
    }
    let windows: Result<Vec<_>, _> = windows.into_iter().collect();
    let windows = windows.map_err(|error| error.to_string())?;
    let digest = crate::recipe::digest(&ours::positions(&windows.concat()));
    times.sort_unstable();
    println!(
        "digest={digest}\nseconds={}",
        times[times.len() / 2].as_secs_f64()
    );
    Ok(())
}

/// Runs the requests on all cores, each core a part of them.
#[cfg(feature = "parallel")]
fn run_each(
    pipeline: &cupel::Pipeline,
    requests: &[(&[cupel::ContextItem], &cupel::ContextBudget)],
) -> Vec<Result<Vec<cupel::ContextItem>, cupel::CupelError>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let parts = requests.chunks(requests.len().div_ceil(cores).max(1));
    std::thread::scope(|scope| {
        let run = |part: &[(&[cupel::ContextItem], &cupel::ContextBudget)]| {
            let windows = part.iter().map(|(items, budget)| pipeline.run(items, budget));
            windows.collect::<Vec<_>>()
        };
        let threads: Vec<_> = parts.map(|part| scope.spawn(move || run(part))).collect();
        let windows = threads.into_iter().map(|thread| thread.join().expect("a run does not panic"));
        windows.flatten().collect()
    })
}
