//! Progress, and observers that stop a call.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cupel::config::PolicyConfig;
use cupel::{ChronologicalPlacer, ContextItem, Policy, RankSlice, Scorer};
use cupel_chat::Heuristic;
use cupel_eval::{
    Axis, Billing, EvalError, EvalPolicy, Evaluation, Grid, Method, Objective, Progress,
    ReplayError, Stopped, TuneError, Tuning, parse_runs, replay, unobserved,
};

use crate::{dataset, later, lines};

const TRANSCRIPTS: usize = 2_000;

/// Counts the items that it scores.
struct Counting(Arc<AtomicUsize>);

impl Scorer for Counting {
    fn score(&self, _item: &ContextItem, _all: &[ContextItem]) -> f64 {
        self.0.fetch_add(1, Ordering::Relaxed);
        0.0
    }
}

/// Stops at the first call.
fn stop(progress: Progress) -> ControlFlow<()> {
    assert!(progress.done < progress.total, "{progress:?}");
    ControlFlow::Break(())
}

#[test]
fn a_stopped_evaluation_runs_no_more_transcripts() {
    let questions = dataset("questions", &lines(TRANSCRIPTS));
    let scored = |observe: &mut dyn FnMut(Progress) -> ControlFlow<()>| {
        let count = Arc::new(AtomicUsize::new(0));
        let policy = Policy::new(Counting(count.clone()), RankSlice, ChronologicalPlacer);
        let result = Evaluation::run(&questions, &[EvalPolicy::new("p", policy)], &[5], observe);
        (result.map(|_| ()), count.load(Ordering::Relaxed))
    };
    let (all, every_item) = scored(&mut unobserved);
    assert_eq!((all, every_item), (Ok(()), 2 * TRANSCRIPTS));
    let (stopped, few) = scored(&mut stop);
    assert_eq!(stopped, Err(EvalError::Stopped(Stopped)));
    assert!(0 < few && few < every_item, "{few} of {every_item}");
}

#[test]
fn progress_ascends_to_the_total() {
    let questions = dataset("questions", &lines(100));
    let mut seen = Vec::new();
    let evaluation = Evaluation::run(&questions, &[later()], &[5], &mut |progress| {
        seen.push(progress);
        ControlFlow::Continue(())
    });
    evaluation.expect("an evaluation");
    assert!(seen.windows(2).all(|pair| pair[0].done < pair[1].done));
    let last = seen.last().expect("progress");
    assert_eq!((last.done, last.total), (100, 100));
}

#[test]
fn a_search_and_a_replay_are_stopped() {
    let start: PolicyConfig = serde_json::from_str(
        r#"{"scorer": {"type": "scaled", "inner": {"type": "recency"}}, "slicer": {"type": "knapsack", "bucket_size": 1}}"#,
    )
    .expect("a policy");
    let axis = Axis {
        path: "slicer.bucket_size".to_owned(),
        values: vec![1.into(), 2.into()],
    };
    let (train, report) = (
        dataset("train", &lines(TRANSCRIPTS)),
        dataset("report", &crate::line("x", 0)),
    );
    let tuning = Tuning {
        start: &start,
        grid: &Grid::new(vec![axis]).expect("a grid"),
        objective: Objective::Items,
        budgets: &[5],
        train: &train,
        report: &report,
        baselines: &[later()],
    };
    let stopped = Err(TuneError::Eval(EvalError::Stopped(Stopped)));
    assert_eq!(tuning.run(&mut stop), stopped);

    let run = r#"{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}"#;
    let runs = format!("{run}\n").repeat(TRANSCRIPTS);
    let runs = parse_runs(&runs, "", None).expect("runs");
    let billing = Billing::default();
    let replayed = replay(
        &runs,
        &[Method::Suffix],
        &[5],
        &billing,
        &Heuristic,
        &mut stop,
    );
    assert_eq!(replayed, Err(ReplayError::Stopped(Stopped)));
}
