//! The pipeline: six fixed stages from candidates to a window.
//!
//! The stages are Classify, Score, Deduplicate, Sort, Slice and Place. A [`Policy`], or [`Pipeline`],
//! holds the strategies and runs them. One ledger records the decision about every candidate by
//! its position in the input; the window, [`Decisions`] and the report are all read from it.
//!
//! | to get | call |
//! |---|---|
//! | the window | [`Pipeline::run`] |
//! | the decision about every candidate, by position | [`Pipeline::decide`] |
//! | the explanation of one decision | [`Pipeline::explain`] |
//! | the window at every budget | [`Pipeline::sweep`] |
//!
//! The other entry points are for compatibility with 1.2 or return one of these in another form.

mod chat;
mod classify;
mod decisions;
mod deduplicate;
mod ledger;
mod place;
mod policy;
mod positions;
mod prepared;
mod score;
mod shortened;
mod slice;
mod sort;
mod stages;

#[cfg(feature = "serde")]
pub use chat::{CHAT_SETTINGS, ChatSetting, ChatValue};
pub use chat::{ChatSettings, Shorten, ToolResults};
pub use decisions::{Decision, Decisions};
pub use policy::{Policy, PolicyBuilder};
pub(crate) use prepared::{Choice, PreparedRun};

use self::ledger::Ledger;
use self::prepared::Prepared;
use self::stages::Trace;
use crate::{ContextBudget, ContextItem, CupelError, OverflowEvent, PipelineStage, TraceCollector};

/// The name of [`Policy`] for running it: a pipeline is a policy. It keeps no state between runs and
/// can be shared among threads.
pub type Pipeline = Policy;

/// The name of [`PolicyBuilder`] for a [`Pipeline`].
pub type PipelineBuilder = PolicyBuilder;

/// Runs the six stages and reports each to the collector.
fn execute<'a, C: TraceCollector + ?Sized>(
    policy: &Policy,
    items: &'a [ContextItem],
    budget: &ContextBudget,
    collector: &mut C,
    records_if_untraced: Recording,
) -> Result<Ledger<'a>, CupelError> {
    let mut trace = Trace::start(collector, policy.overflow_observer(), items, budget);
    let recording = if trace.is_enabled() {
        Recording::EveryCandidate
    } else {
        records_if_untraced
    };
    let result = prepare(policy, items, Some(budget), &mut trace)
        .and_then(|prepared| finish(prepared, policy, budget, recording, &mut trace));
    trace.end(&result, budget);
    result
}

/// Which candidates a run writes into its ledger.
#[derive(Clone, Copy)]
enum Recording {
    /// Those in the window, and those excluded before slicing.
    WindowOnly,
    /// All of them.
    EveryCandidate,
}

/// Runs stages 1 to 4, which do not depend on the budget. If one is given, fails early when the pinned
/// items exceed it (CLASSIFY-5); [`finish`] checks again.
fn prepare<'a, C: TraceCollector + ?Sized>(
    policy: &Policy,
    items: &'a [ContextItem],
    budget: Option<&ContextBudget>,
    trace: &mut Trace<'_, C>,
) -> Result<Prepared<'a>, CupelError> {
    let mut ledger = Ledger::new(items)?;

    let stage = trace.enter(PipelineStage::Classify);
    let mut classes = classify::classify(&mut ledger);
    if let Some(budget) = budget {
        classes.pinned_tokens(budget)?;
    }
    let classified = classes.pinned.len() + classes.scoreable.len();
    trace.leave(stage, &ledger, 0..items.len(), classified);

    let stage = trace.enter(PipelineStage::Score);
    score::score(&mut ledger, policy.scorer(), &classes)?;
    let mut candidates = std::mem::take(&mut classes.scoreable);
    trace.leave(stage, &ledger, candidates.iter(), candidates.len());

    let stage = trace.enter(PipelineStage::Deduplicate);
    let copies = if policy.deduplication() {
        deduplicate::deduplicate(&mut ledger, &candidates)
    } else {
        0
    };
    trace.leave(stage, &ledger, candidates.iter(), candidates.len() - copies);
    if copies > 0 {
        candidates.retain(|candidate| !ledger.is_excluded(candidate));
    }

    let prepared = Prepared::new(ledger, classes, candidates);
    // Sort: a trace lists exclusions by rank. Other runs sort only if the slicer needs a ranking.
    if trace.is_enabled() {
        prepared.ranked();
    }
    Ok(prepared)
}

/// Runs stages 5 and 6.
fn finish<'a, C: TraceCollector + ?Sized>(
    prepared: Prepared<'a>,
    policy: &Policy,
    budget: &ContextBudget,
    recording: Recording,
    trace: &mut Trace<'_, C>,
) -> Result<Ledger<'a>, CupelError> {
    let effective = prepared.effective(budget)?;
    let stage = trace.enter(PipelineStage::Slice);
    let sliced = prepared.slice(policy, &effective)?;
    let (mut ledger, pinned, candidates, ranked) = prepared.into_parts();
    let kept = match recording {
        Recording::WindowOnly => {
            ledger.shortened = sliced.shortened;
            sliced.kept
        }
        Recording::EveryCandidate => {
            ledger.kind_quotas = policy.slicer().is_quota();
            sliced.write(&mut ledger, &candidates, &effective, &budget.effective(0))
        }
    };
    drop(candidates);
    if let Some(ranked) = ranked {
        trace.leave(stage, &ledger, ranked.iter(), kept.len());
        trace.record_shortfalls(&ledger);
        ledger.set_ranking(ranked);
    }

    let stage = trace.enter(PipelineStage::Place);
    let mut merged = pinned;
    merged.extend(kept.iter());
    let strategy = policy.overflow_strategy();
    let merge = place::merge(&ledger, &ledger.shortened, &merged, budget, strategy)?;
    if let Some(tokens_over) = merge.tokens_over {
        trace.overflowed(|| {
            let merged = merged
                .iter()
                .map(|&candidate| ledger.item(candidate).clone());
            OverflowEvent::new(tokens_over, merged.collect(), budget.clone())
        });
    }
    place::place(&mut ledger, policy, merge)?;
    let placed = ledger.window().len();
    trace.leave(stage, &ledger, merged.iter().copied(), placed);
    Ok(ledger)
}
