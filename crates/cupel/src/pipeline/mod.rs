//! The pipeline: six fixed stages from candidates to a window.
//!
//! The stages are Classify, Score, Deduplicate, Sort, Slice and Place. A [`Policy`] holds the
//! strategies, and a [`Pipeline`] runs them. One ledger records the decision about every candidate by
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

use std::fmt;

pub use chat::{ChatSettings, Shorten};
pub use decisions::{Decision, Decisions};
pub use policy::{Policy, PolicyBuilder};
pub(crate) use prepared::{Choice, PreparedRun};

use self::ledger::Ledger;
use self::prepared::Prepared;
use self::stages::{EventLog, Trace};
use crate::{
    ContextBudget, ContextItem, CupelError, OverflowEvent, OverflowStrategy, PipelineStage, Placer,
    Scorer, SelectionReport, Slicer, TraceCollector,
};

/// Selects and orders the items of a context window within a budget.
///
/// A pipeline is a [`Policy`]. It keeps no state between runs and can be shared among threads.
///
/// ```
/// use cupel::*;
///
/// let pipeline = Pipeline::builder()
///     .scorer(ReflexiveScorer)
///     .slicer(GreedySlice)
///     .placer(UShapedPlacer)
///     .build()?;
/// let items = [
///     ContextItem::builder("Be brief.", 3).pinned(true).build()?,
///     ContextItem::builder("What is in the box?", 6).future_relevance_hint(0.9).build()?,
///     ContextItem::builder("An old story", 40).future_relevance_hint(0.2).build()?,
/// ];
/// let window = pipeline.run(&items, &ContextBudget::with_target(20, 20)?)?;
/// let contents: Vec<_> = window.iter().map(ContextItem::content).collect();
/// assert_eq!(contents, ["Be brief.", "What is in the box?"]);
/// # Ok::<(), CupelError>(())
/// ```
#[derive(Clone)]
pub struct Pipeline {
    policy: Policy,
}

impl Pipeline {
    /// Creates a builder.
    pub fn builder() -> PipelineBuilder {
        PipelineBuilder::default()
    }

    /// Creates a pipeline with defaults for everything but the strategies.
    pub fn new(
        scorer: impl Scorer + 'static,
        slicer: impl Slicer + 'static,
        placer: impl Placer + 'static,
    ) -> Self {
        Policy::new(scorer, slicer, placer).into()
    }

    /// Returns the policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Runs the pipeline and returns the window: the selected items in order.
    ///
    /// # Errors
    ///
    /// [`CupelError::PinnedExceedsBudget`] if the pinned items alone exceed the window;
    /// [`CupelError::Overflow`] under [`OverflowStrategy::Throw`]; the errors of the strategies, and
    /// [`CupelError::Contract`] for a strategy that breaks its contract.
    pub fn run(
        &self,
        items: &[ContextItem],
        budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        self.policy.run(items, budget)
    }

    /// Runs the pipeline and returns the window as positions in `items`.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    ///
    /// ```
    /// use cupel::*;
    ///
    /// let pipeline = Pipeline::new(ReflexiveScorer, GreedySlice, UShapedPlacer);
    /// let items = [
    ///     ContextItem::builder("dull", 5).future_relevance_hint(0.1).build()?,
    ///     ContextItem::builder("bright", 5).future_relevance_hint(0.9).build()?,
    /// ];
    /// let window = pipeline.run_indices(&items, &ContextBudget::with_target(10, 10)?)?;
    /// assert_eq!(window, [1, 0]);
    /// # Ok::<(), CupelError>(())
    /// ```
    pub fn run_indices(
        &self,
        items: &[ContextItem],
        budget: &ContextBudget,
    ) -> Result<Vec<usize>, CupelError> {
        self.policy.run_indices(items, budget)
    }

    /// Runs the pipeline, calls the hooks of `collector`, and returns the window.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    ///
    /// ```
    /// use cupel::*;
    ///
    /// let pipeline = Pipeline::new(RecencyScorer, GreedySlice, ChronologicalPlacer);
    /// let items = [ContextItem::builder("hello", 2).build()?];
    /// let budget = ContextBudget::with_target(10, 10)?;
    /// let mut collector = DiagnosticTraceCollector::new(TraceDetailLevel::Stage);
    /// let window = pipeline.run_traced(&items, &budget, &mut collector)?;
    /// let stages: Vec<_> = collector.into_report().events.iter().map(|e| e.stage.name()).collect();
    /// assert_eq!(stages, ["Classify", "Score", "Deduplicate", "Slice", "Place"]);
    /// assert_eq!(window[0].content(), "hello");
    /// # Ok::<(), CupelError>(())
    /// ```
    pub fn run_traced<C: TraceCollector + ?Sized>(
        &self,
        items: &[ContextItem],
        budget: &ContextBudget,
        collector: &mut C,
    ) -> Result<Vec<ContextItem>, CupelError> {
        self.policy.run_traced(items, budget, collector)
    }

    /// Runs the pipeline and returns the decision about every candidate: window, scores and reasons
    /// by position in `items`. Costs little more than [`run`](Self::run) and copies no item.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    ///
    /// ```
    /// use cupel::*;
    ///
    /// let pipeline = Pipeline::new(ReflexiveScorer, GreedySlice, ChronologicalPlacer);
    /// let items = [
    ///     ContextItem::builder("long", 90).future_relevance_hint(0.3).build()?,
    ///     ContextItem::builder("short", 20).future_relevance_hint(0.9).build()?,
    /// ];
    /// let decisions = pipeline.decide(&items, &ContextBudget::with_target(100, 100)?)?;
    /// assert_eq!(decisions.window(), [1]);
    /// assert_eq!(
    ///     decisions.exclusion(0),
    ///     Some(ExclusionReason::BudgetExceeded { item_tokens: 90, available_tokens: 80 }),
    /// );
    /// # Ok::<(), CupelError>(())
    /// ```
    pub fn decide<'a>(
        &self,
        items: &'a [ContextItem],
        budget: &ContextBudget,
    ) -> Result<Decisions<'a>, CupelError> {
        self.policy.decide(items, budget)
    }

    /// Runs the pipeline and returns the report, for compatibility with 1.2.
    ///
    /// The report owns its items and has an event per excluded item. [`decide`](Self::decide) returns
    /// the same decisions by position, without events.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn dry_run(
        &self,
        items: &[ContextItem],
        budget: &ContextBudget,
    ) -> Result<SelectionReport, CupelError> {
        self.policy.dry_run(items, budget)
    }

    /// Runs another policy and returns the report, for compatibility with 1.2. The pipeline's own
    /// policy is not used; see [`Policy::decide`].
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn dry_run_with_policy(
        &self,
        items: &[ContextItem],
        budget: &ContextBudget,
        policy: &Policy,
    ) -> Result<SelectionReport, CupelError> {
        policy.dry_run(items, budget)
    }
}

impl From<Policy> for Pipeline {
    fn from(policy: Policy) -> Self {
        Self { policy }
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.policy.debug(f, "Pipeline")
    }
}

/// Builds a [`Pipeline`] from a scorer, a slicer and a placer.
///
/// ```
/// use cupel::{GreedySlice, Pipeline, RecencyScorer};
///
/// let error = Pipeline::builder()
///     .scorer(RecencyScorer)
///     .slicer(GreedySlice)
///     .build()
///     .unwrap_err();
/// assert_eq!(error.to_string(), "invalid pipeline configuration: placer is required");
/// ```
#[derive(Clone, Default)]
pub struct PipelineBuilder(PolicyBuilder);

impl PipelineBuilder {
    /// Sets the scorer.
    pub fn scorer(self, scorer: impl Scorer + 'static) -> Self {
        Self(self.0.scorer(scorer))
    }

    /// Sets the slicer.
    pub fn slicer(self, slicer: impl Slicer + 'static) -> Self {
        Self(self.0.slicer(slicer))
    }

    /// Sets the placer.
    pub fn placer(self, placer: impl Placer + 'static) -> Self {
        Self(self.0.placer(placer))
    }

    /// Sets whether duplicates are dropped. Defaults to `true`.
    pub fn deduplication(self, enabled: bool) -> Self {
        Self(self.0.deduplication(enabled))
    }

    /// Sets what happens if the selection exceeds the target. Defaults to
    /// [`OverflowStrategy::Throw`].
    pub fn overflow_strategy(self, strategy: OverflowStrategy) -> Self {
        Self(self.0.overflow_strategy(strategy))
    }

    /// Sets a function that is called with each overflow that [`OverflowStrategy::Proceed`] accepts.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicI64, Ordering};
    /// use cupel::*;
    ///
    /// static OVER: AtomicI64 = AtomicI64::new(0);
    /// let pipeline = Pipeline::builder()
    ///     .scorer(RecencyScorer)
    ///     .slicer(GreedySlice)
    ///     .placer(ChronologicalPlacer)
    ///     .overflow_strategy(OverflowStrategy::Proceed)
    ///     .on_overflow(|event| OVER.store(event.tokens_over_budget, Ordering::Relaxed))
    ///     .build()?;
    /// let items = [ContextItem::builder("pinned", 70).pinned(true).build()?];
    /// pipeline.run(&items, &ContextBudget::with_target(100, 50)?)?;
    /// assert_eq!(OVER.load(Ordering::Relaxed), 20);
    /// # Ok::<(), CupelError>(())
    /// ```
    pub fn on_overflow(self, observer: impl Fn(&OverflowEvent) + Send + Sync + 'static) -> Self {
        Self(self.0.on_overflow(observer))
    }

    /// Builds the pipeline.
    ///
    /// # Errors
    ///
    /// [`CupelError::PipelineConfig`] names the first of scorer, slicer and placer that is missing.
    pub fn build(self) -> Result<Pipeline, CupelError> {
        self.0.build().map(Pipeline::from)
    }
}

impl fmt::Debug for PipelineBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.debug(f, "PipelineBuilder")
    }
}

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
