//! `evaluate`: how much of the evidence of questions policies keep.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};

use cupel::config::PolicyConfig;
use cupel_app::{Error, NamedPolicy};
use cupel_chat::{Encoding, parse_budget};
use cupel_eval::{
    Dataset, DatasetError, EvalError, EvalPolicy, Evaluation, EvidenceReport, LINE_FORMAT,
};
use pyo3::prelude::*;
use rayon::ThreadPool;

use crate::error::Fault;
use crate::json::{NotFinite, answer, to_json};
use crate::options::{number_or_text, several};
use crate::policy::read_several;
use crate::signals::Signals;
use crate::strategy::take_raised;
use crate::threads;

/// Measures how much of the evidence of questions is kept.
#[pyfunction]
pub(crate) fn evaluate<'py>(
    py: Python<'py>,
    transcripts: Vec<Bound<'py, PyAny>>,
    policies: &Bound<'py, PyAny>,
    budgets: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    if transcripts.is_empty() {
        return Err(Fault::new("transcripts", "there are no transcripts").into());
    }
    let budgets = several(budgets, "budgets")?.into_iter().map(|budget| {
        let tokens = parse_budget(&number_or_text(&budget, "budgets")?, None);
        tokens.map_err(|error| Fault::new("budgets", error.to_string()).into())
    });
    let budgets = budgets.collect::<PyResult<Vec<i64>>>()?;
    let policies = read_several(policies)?.into_iter();
    let policies: Vec<EvalPolicy> = policies
        .map(|NamedPolicy { name, policy }| EvalPolicy::new(name, policy))
        .collect();
    let mut text = String::new();
    for (position, transcript) in transcripts.iter().enumerate() {
        let name = format!("transcripts[{position}]");
        text.push_str(&to_json(transcript, &name, NotFinite::Text)?);
        text.push('\n');
    }
    // Ctrl-C while a long list was read: no code of Python ran that would have raised.
    py.check_signals()?;
    // Strategies in Python take turns with the GIL. In a pool of one thread, what one raised is found.
    let has_callables = |it: &EvalPolicy| PolicyConfig::of(&it.policy).is_err();
    let threads = policies.iter().any(has_callables).then_some(1);
    let pool = threads::pool(threads).map_err(|fault| Fault::new("", fault.to_string()))?;
    let report = py.detach(|| {
        watched(&pool, |is_stopped| {
            let report = report(&text, &policies, &budgets, is_stopped);
            report.map_err(|fault| Box::new((fault, take_raised())))
        })
    });
    // What a signal handler raised ends the call, whatever the result is.
    if let Some(raised) = take_raised() {
        return Err(raised);
    }
    match report.map_err(|failed| *failed) {
        Err((_, Some(raised))) => Err(raised),
        Err((fault, None)) => Err(fault.into()),
        Ok(report) => answer(py, &report),
    }
}

/// Runs work in a pool while the calling thread looks for signals: Python's handlers run in the main thread only.
fn watched<R: Send>(pool: &ThreadPool, work: impl Send + FnOnce(&AtomicBool) -> R) -> R {
    let is_stopped = AtomicBool::new(false);
    pool.in_place_scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        let is_stopped = &is_stopped;
        scope.spawn(move |_| {
            // The receiver waits for it.
            let _ = sender.send(work(is_stopped));
        });
        let mut signals = Signals::new();
        loop {
            match receiver.recv_timeout(Signals::PERIOD) {
                Ok(result) => return Some(result),
                // The work panicked, and so does the scope.
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {
                    if signals.check().is_break() {
                        is_stopped.store(true, Ordering::Relaxed);
                    }
                }
            }
        }
    })
    .expect("the scope resumes a panic of the work")
}

fn report(
    text: &str,
    policies: &[EvalPolicy],
    budgets: &[i64],
    is_stopped: &AtomicBool,
) -> Result<EvidenceReport, Fault> {
    let dataset = Dataset::parse("transcripts", text, &Encoding::O200k).map_err(invalid)?;
    let evaluation = Evaluation::run(&dataset, policies, budgets, &mut |_| {
        if is_stopped.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    Ok(evaluation.map_err(failed)?.report())
}

/// Returns the path of a transcript; lines count from 1.
fn transcript(line: usize) -> String {
    match line.checked_sub(1) {
        Some(position) => format!("transcripts[{position}]"),
        None => "transcripts".to_owned(),
    }
}

fn invalid(error: DatasetError) -> Fault {
    let mut path = transcript(error.line);
    if !error.path.is_empty() {
        path = format!("{path}.{}", error.path);
    }
    let fault = Fault::new(path, error.problem.to_string());
    match error.problem.suggestion() {
        Some(name) => fault.help(format!("did you mean `{name}`?")),
        None if error.problem.is_about_structure() => {
            fault.help(format!("a transcript: {LINE_FORMAT}"))
        }
        None => fault,
    }
}

fn failed(error: EvalError) -> Fault {
    match error {
        EvalError::Run {
            policy,
            line,
            error,
            ..
        } => Fault::from(Error::from(error)).of(&transcript(line), &policy),
        error => Fault::new("budgets", error.to_string()),
    }
}
