//! [`Policy`]: the strategies of a run.

use std::fmt;
use std::sync::Arc;

use super::chat::ChatSettings;
use super::prepared::Prepared;
use super::{Decisions, Recording, execute};
use crate::{
    ContextBudget, ContextItem, CupelError, DiagnosticTraceCollector, NullTraceCollector,
    OverflowEvent, OverflowStrategy, Placer, Query, Scorer, SelectionReport, Slicer,
    TraceCollector, TraceDetailLevel,
};

/// Selects and orders the items of a context window within a budget: scorer, slicer and placer,
/// deduplication and overflow strategy.
///
/// [`Pipeline`](crate::Pipeline) is another name of this type. It keeps no state between runs and can be
/// shared among threads. Cloning it is cheap and shares the strategies.
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
pub struct Policy {
    scorer: Arc<dyn Scorer>,
    slicer: Arc<dyn Slicer>,
    placer: Arc<dyn Placer>,
    settings: Settings,
}

/// What a policy has beside its strategies.
#[derive(Clone)]
struct Settings {
    deduplication: bool,
    overflow_strategy: OverflowStrategy,
    overflow_observer: Option<OverflowObserver>,
    chat: ChatSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            deduplication: true,
            overflow_strategy: OverflowStrategy::default(),
            overflow_observer: None,
            chat: ChatSettings::default(),
        }
    }
}

/// Called with each accepted overflow.
type OverflowObserver = Arc<dyn Fn(&OverflowEvent) + Send + Sync>;

impl Policy {
    /// Creates a policy with defaults for everything but the strategies.
    pub fn new(
        scorer: impl Scorer + 'static,
        slicer: impl Slicer + 'static,
        placer: impl Placer + 'static,
    ) -> Self {
        Self {
            scorer: Arc::new(scorer),
            slicer: Arc::new(slicer),
            placer: Arc::new(placer),
            settings: Settings::default(),
        }
    }

    /// Creates a builder.
    pub fn builder() -> PolicyBuilder {
        PolicyBuilder::new()
    }

    /// Creates a builder with the settings of this policy.
    ///
    /// ```
    /// use cupel::{ChronologicalPlacer, GreedySlice, GroupSlice, Policy, RecencyScorer};
    ///
    /// let policy = Policy::new(RecencyScorer, GreedySlice, ChronologicalPlacer);
    /// let grouped = policy.to_builder().map_slicer(GroupSlice::new).deduplication(false).build()?;
    /// assert!(policy.deduplication() && !grouped.deduplication());
    /// # Ok::<(), cupel::CupelError>(())
    /// ```
    pub fn to_builder(&self) -> PolicyBuilder {
        PolicyBuilder {
            scorer: Some(self.scorer.clone()),
            slicer: Some(self.slicer.clone()),
            placer: Some(self.placer.clone()),
            settings: self.settings.clone(),
        }
    }

    /// Returns the scorer.
    pub fn scorer(&self) -> &dyn Scorer {
        &*self.scorer
    }

    /// Returns whether the scorer needs a query and has none; see [`with_query`](Self::with_query).
    pub fn needs_query(&self) -> bool {
        self.scorer.with_query(&Query::default()).is_some()
    }

    /// Returns this policy for a query: scorers that need one and have none get it.
    pub fn with_query(&self, query: impl Into<Query>) -> Self {
        let mut policy = self.clone();
        if let Some(scorer) = self.scorer.with_query(&query.into()) {
            policy.scorer = scorer;
        }
        policy
    }

    /// Returns the slicer.
    pub fn slicer(&self) -> &dyn Slicer {
        &*self.slicer
    }

    /// Returns the placer.
    pub fn placer(&self) -> &dyn Placer {
        &*self.placer
    }

    /// Returns whether duplicates are dropped.
    pub fn deduplication(&self) -> bool {
        self.settings.deduplication
    }

    /// Returns what happens if the selection exceeds the target.
    pub fn overflow_strategy(&self) -> OverflowStrategy {
        self.settings.overflow_strategy
    }

    /// Returns how a chat is treated.
    pub fn chat(&self) -> &ChatSettings {
        &self.settings.chat
    }

    /// Returns the function that is called with each accepted overflow.
    pub(super) fn overflow_observer(&self) -> Option<&dyn Fn(&OverflowEvent)> {
        self.settings
            .overflow_observer
            .as_ref()
            .map(|observer| &**observer as &dyn Fn(&OverflowEvent))
    }

    /// Returns the policy, which is this value itself: [`Pipeline`](crate::Pipeline) is another name of
    /// the type.
    pub fn policy(&self) -> &Self {
        self
    }

    /// Runs the policy and returns the window: the selected items in order, shortened ones as their
    /// views.
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
        self.run_traced(items, budget, &mut NullTraceCollector)
    }

    /// Runs the policy and returns the window as positions in `items`. [`decide`](Self::decide) also tells
    /// which of them are shortened.
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
        let mut collector = NullTraceCollector;
        let ledger = execute(self, items, budget, &mut collector, Recording::WindowOnly)?;
        Ok(ledger.into_window())
    }

    /// Runs the policy, calls the hooks of `collector`, and returns the window.
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
        let ledger = execute(self, items, budget, collector, Recording::WindowOnly)?;
        let window = ledger.window().iter();
        Ok(window.map(|&it| ledger.item(it).clone()).collect())
    }

    /// Runs the policy and returns the decision about every candidate: window, scores and reasons
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
        self.decide_traced(items, budget, &mut NullTraceCollector)
    }

    /// Runs the policy, calls the hooks of `collector`, and returns the decision about every
    /// candidate.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    ///
    /// ```
    /// use cupel::*;
    ///
    /// let policy = Policy::new(ReflexiveScorer, GreedySlice, ChronologicalPlacer);
    /// let items = [ContextItem::builder("hello", 2).build()?];
    /// let mut collector = DiagnosticTraceCollector::new(TraceDetailLevel::Stage);
    /// let budget = ContextBudget::with_target(9, 9)?;
    /// let decisions = policy.decide_traced(&items, &budget, &mut collector)?;
    /// assert_eq!(decisions.window(), [0]);
    /// assert_eq!(collector.into_report().included.len(), 1);
    /// # Ok::<(), CupelError>(())
    /// ```
    pub fn decide_traced<'a, C: TraceCollector + ?Sized>(
        &self,
        items: &'a [ContextItem],
        budget: &ContextBudget,
        collector: &mut C,
    ) -> Result<Decisions<'a>, CupelError> {
        let ledger = execute(self, items, budget, collector, Recording::EveryCandidate)?;
        Ok(Decisions::new(ledger, self, budget))
    }

    /// Runs the policy once per budget and returns the decisions in order. Scores and deduplicates
    /// once. The overflow observer is not called.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run), for the first budget that fails.
    ///
    /// ```
    /// use cupel::*;
    ///
    /// let policy = Policy::new(ReflexiveScorer, GreedySlice, ChronologicalPlacer);
    /// let items = [ContextItem::builder("hello", 2).build()?];
    /// let budgets = [ContextBudget::with_target(1, 1)?, ContextBudget::with_target(9, 9)?];
    /// let decisions = policy.decide_each(&items, &budgets)?;
    /// assert!(decisions[0].window().is_empty());
    /// assert_eq!(decisions[1].window(), [0]);
    /// # Ok::<(), CupelError>(())
    /// ```
    pub fn decide_each<'a>(
        &self,
        items: &'a [ContextItem],
        budgets: &[ContextBudget],
    ) -> Result<Vec<Decisions<'a>>, CupelError> {
        let prepared = Prepared::of(self, items)?;
        let decisions = budgets.iter().map(|budget| prepared.decide(self, budget));
        decisions.collect()
    }

    /// Runs the policy and returns the report, for compatibility with 1.2.
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
        let mut collector = DiagnosticTraceCollector::new(TraceDetailLevel::Item);
        execute(
            self,
            items,
            budget,
            &mut collector,
            Recording::EveryCandidate,
        )?;
        Ok(collector.into_report())
    }

    /// Runs another policy and returns the report, for compatibility with 1.2. This policy is not used.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn dry_run_with_policy(
        &self,
        items: &[ContextItem],
        budget: &ContextBudget,
        policy: &Self,
    ) -> Result<SelectionReport, CupelError> {
        policy.dry_run(items, budget)
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Policy");
        fields
            .field("scorer", &self.scorer)
            .field("slicer", &self.slicer)
            .field("placer", &self.placer);
        self.settings.print(&mut fields)
    }
}

/// Builds a [`Policy`] from a scorer, a slicer and a placer.
///
/// ```
/// use cupel::{GreedySlice, PolicyBuilder, RecencyScorer};
///
/// let error = PolicyBuilder::new()
///     .scorer(RecencyScorer)
///     .slicer(GreedySlice)
///     .build()
///     .unwrap_err();
/// assert_eq!(error.to_string(), "invalid pipeline configuration: placer is required");
/// ```
#[derive(Clone, Default)]
pub struct PolicyBuilder {
    scorer: Option<Arc<dyn Scorer>>,
    slicer: Option<Arc<dyn Slicer>>,
    placer: Option<Arc<dyn Placer>>,
    settings: Settings,
}

impl PolicyBuilder {
    /// Creates a builder without strategies. Deduplication is on, and an overflow is an error.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the scorer.
    pub fn scorer(mut self, scorer: impl Scorer + 'static) -> Self {
        self.scorer = Some(Arc::new(scorer));
        self
    }

    /// Sets the slicer.
    pub fn slicer(mut self, slicer: impl Slicer + 'static) -> Self {
        self.slicer = Some(Arc::new(slicer));
        self
    }

    /// Replaces the slicer by a decorator of it. Does nothing if no slicer is set.
    pub fn map_slicer<S: Slicer + 'static>(
        mut self,
        wrap: impl FnOnce(Arc<dyn Slicer>) -> S,
    ) -> Self {
        self.slicer = self
            .slicer
            .map(|slicer| Arc::new(wrap(slicer)) as Arc<dyn Slicer>);
        self
    }

    /// Sets the placer.
    pub fn placer(mut self, placer: impl Placer + 'static) -> Self {
        self.placer = Some(Arc::new(placer));
        self
    }

    /// Sets whether duplicates are dropped. Defaults to `true`.
    pub fn deduplication(mut self, enabled: bool) -> Self {
        self.settings.deduplication = enabled;
        self
    }

    /// Sets what happens if the selection exceeds the target. Defaults to
    /// [`OverflowStrategy::Throw`].
    pub fn overflow_strategy(mut self, strategy: OverflowStrategy) -> Self {
        self.settings.overflow_strategy = strategy;
        self
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
    pub fn on_overflow(
        mut self,
        observer: impl Fn(&OverflowEvent) + Send + Sync + 'static,
    ) -> Self {
        self.settings.overflow_observer = Some(Arc::new(observer));
        self
    }

    /// Sets how a chat is treated.
    pub fn chat(mut self, chat: ChatSettings) -> Self {
        self.settings.chat = chat;
        self
    }

    /// Builds the policy.
    ///
    /// # Errors
    ///
    /// [`CupelError::PipelineConfig`] names the first of scorer, slicer and placer that is missing.
    pub fn build(self) -> Result<Policy, CupelError> {
        let missing = |name: &str| CupelError::PipelineConfig(format!("{name} is required"));
        Ok(Policy {
            scorer: self.scorer.ok_or_else(|| missing("scorer"))?,
            slicer: self.slicer.ok_or_else(|| missing("slicer"))?,
            placer: self.placer.ok_or_else(|| missing("placer"))?,
            settings: self.settings,
        })
    }
}

impl Settings {
    /// Prints the settings after the strategies; those of a chat only if they are not the defaults, and no
    /// overflow observer, which is a closure.
    fn print(&self, fields: &mut fmt::DebugStruct<'_, '_>) -> fmt::Result {
        fields
            .field("deduplication", &self.deduplication)
            .field("overflow_strategy", &self.overflow_strategy);
        if self.chat != ChatSettings::default() {
            fields.field("chat", &self.chat);
        }
        fields.finish()
    }
}

fn or_false<T: fmt::Debug>(strategy: Option<&T>) -> &dyn fmt::Debug {
    strategy.map_or(&false, |strategy| strategy as &dyn fmt::Debug)
}

/// Shows the name of each strategy, or `false` if it is not set.
impl fmt::Debug for PolicyBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("PolicyBuilder");
        fields
            .field("scorer", or_false(self.scorer.as_ref()))
            .field("slicer", or_false(self.slicer.as_ref()))
            .field("placer", or_false(self.placer.as_ref()));
        self.settings.print(&mut fields)
    }
}
