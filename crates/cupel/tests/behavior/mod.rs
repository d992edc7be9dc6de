//! Behavior that vectors cannot express: custom strategies and collectors, identity, extreme
//! numbers, streams, and determinism.

mod collectors;
mod contracts;
mod determinism;
mod extremes;
mod large;
mod pipeline;
mod scorers;
#[cfg(feature = "stream")]
mod streaming;

use std::sync::{Arc, Mutex};

use chrono::{DateTime, TimeDelta, Utc};
use cupel::{
    ChronologicalPlacer, CompositeScorer, ContextBudget, ContextItem, ContextItemBuilder,
    ContextKind, CountConstrainedKnapsackSlice, CountQuotaEntry, CountQuotaSlice, CupelError,
    DiagnosticTraceCollector, FrequencyScorer, GreedySlice, KindScorer, KnapsackSlice,
    OverflowStrategy, Placer, PolicyBuilder, PriorityScorer, QuotaEntry, QuotaSlice, RecencyScorer,
    ReflexiveScorer, ScaledScorer, ScarcityBehavior, ScoredItem, ScoredRef, Scorer, Selection,
    SelectionReport, Slicer, UShapedPlacer,
};
use cupel_conformance::testing::Random;

fn item(content: &str, tokens: i64) -> ContextItem {
    build(ContextItem::builder(content, tokens))
}

/// An item that [`ReflexiveScorer`] scores as `hint`, for hints in `[0, 1]`.
fn hinted(content: &str, tokens: i64, hint: f64) -> ContextItem {
    build(ContextItem::builder(content, tokens).future_relevance_hint(hint))
}

fn pinned(content: &str, tokens: i64) -> ContextItem {
    build(ContextItem::builder(content, tokens).pinned(true))
}

fn build(builder: ContextItemBuilder) -> ContextItem {
    builder.build().expect("the content is not empty")
}

fn kind(name: &str) -> ContextKind {
    ContextKind::new(name).expect("the name is not empty")
}

/// A budget whose ceiling is its goal.
fn budget(tokens: i64) -> ContextBudget {
    ContextBudget::builder(tokens)
        .build()
        .expect("not negative")
}

fn scored(content: &str, tokens: i64, score: f64) -> ScoredItem {
    ScoredItem {
        item: item(content, tokens),
        score,
    }
}

fn contents(items: &[ContextItem]) -> Vec<&str> {
    items.iter().map(ContextItem::content).collect()
}

fn included(report: &SelectionReport) -> Vec<&str> {
    let items = report.included.iter();
    items.map(|included| included.item.content()).collect()
}

fn excluded(report: &SelectionReport) -> Vec<&str> {
    let items = report.excluded.iter();
    items.map(|excluded| excluded.item.content()).collect()
}

/// Hints as scores, greedy, and the merged order as the final order where nothing has a timestamp.
fn policy() -> PolicyBuilder {
    PolicyBuilder::new()
        .scorer(ReflexiveScorer)
        .slicer(GreedySlice)
        .placer(ChronologicalPlacer)
}

const STRATEGIES: [OverflowStrategy; 3] = [
    OverflowStrategy::Throw,
    OverflowStrategy::Truncate,
    OverflowStrategy::Proceed,
];

/// Policies of built-in strategies in every combination; none of them reads metadata.
fn policies() -> Vec<PolicyBuilder> {
    let quotas = [
        ("Document", 10.0, 60.0),
        ("own", 20.0, 20.0),
        ("none", 5.0, 9.0),
    ];
    let quotas = quotas.map(|(name, require, cap)| QuotaEntry::new(kind(name), require, cap));
    let quotas: Vec<_> = quotas.into_iter().map(Result::unwrap).collect();
    let counts = [("document", 1, 2), ("Memory", 0, 1), ("Own", 2, 3)];
    let counts = counts.map(|(name, require, cap)| CountQuotaEntry::new(kind(name), require, cap));
    let counts: Vec<_> = counts.into_iter().map(Result::unwrap).collect();
    let knapsack = KnapsackSlice::new(1).unwrap();
    let degrade = ScarcityBehavior::Degrade;
    let shared = QuotaSlice::new(quotas.clone(), GreedySlice).unwrap();
    let packed = CountConstrainedKnapsackSlice::new(counts.clone(), knapsack, degrade).unwrap();
    let slicers: [Arc<dyn Slicer>; 6] = [
        Arc::new(GreedySlice),
        Arc::new(knapsack),
        Arc::new(shared.clone()),
        Arc::new(CountQuotaSlice::new(counts.clone(), GreedySlice, degrade).unwrap()),
        Arc::new(CountQuotaSlice::new(counts, shared, degrade).unwrap()),
        Arc::new(QuotaSlice::new(quotas, packed).unwrap()),
    ];
    let scorer = CompositeScorer::builder()
        .add(RecencyScorer, 1.0)
        .add(ReflexiveScorer, 2.0)
        .add(ScaledScorer::new(FrequencyScorer), 0.3)
        .add(PriorityScorer, 0.7)
        .add(KindScorer::with_default_weights(), 1.0);
    let scorer: Arc<dyn Scorer> = Arc::new(scorer.build().unwrap());
    let placers: [Arc<dyn Placer>; 2] = [Arc::new(UShapedPlacer), Arc::new(ChronologicalPlacer)];
    let mut policies = Vec::new();
    for slicer in slicers {
        for placer in &placers {
            for strategy in STRATEGIES {
                for deduplication in [true, false] {
                    policies.push(
                        PolicyBuilder::new()
                            .scorer(scorer.clone())
                            .slicer(slicer.clone())
                            .placer(placer.clone())
                            .overflow_strategy(strategy)
                            .deduplication(deduplication),
                    );
                }
            }
        }
    }
    policies
}

/// The contents of the window, or the error: the same from every entry point.
fn outcome(
    policy: PolicyBuilder,
    items: &[ContextItem],
    budget: &ContextBudget,
) -> Result<Vec<String>, CupelError> {
    let names = |window: Vec<ContextItem>| owned(&contents(&window));
    let policy = policy.build().expect("the policy is complete");
    let window = policy.run(items, budget).map(names);
    let mut collector = DiagnosticTraceCollector::default();
    let traced = policy.run_traced(items, budget, &mut collector).map(names);
    assert_eq!(traced, window, "a traced run");
    let dry = policy.dry_run(items, budget);
    assert_eq!(
        dry.map(|report| owned(&included(&report))),
        window,
        "a dry run"
    );
    let indices = policy.run_indices(items, budget);
    let indices = indices.map(|window| window.iter().map(|&i| items[i].clone()).collect());
    assert_eq!(indices.map(names), window, "a run by positions");
    window
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

/// What holds for every report, finished or not.
fn check_consistent(report: &SelectionReport) {
    let entries = report.included.len() + report.excluded.len();
    assert_eq!(report.total_candidates, entries);
    let included = report.included.iter().map(|included| &included.item);
    let excluded = report.excluded.iter().map(|excluded| &excluded.item);
    let tokens: i128 = included
        .chain(excluded)
        .map(|i| i128::from(i.tokens()))
        .sum();
    let tokens = tokens.clamp(i64::MIN.into(), i64::MAX.into());
    assert_eq!(i128::from(report.total_tokens_considered), tokens);
    for pair in report.excluded.windows(2) {
        let (before, after) = (pair[0].score, pair[1].score);
        assert!(before >= after || after.is_nan(), "{before} before {after}");
    }
}

/// A report without its wall-clock times: what two runs over the same input have in common.
fn timeless(mut report: SelectionReport) -> SelectionReport {
    for event in &mut report.events {
        event.duration_ms = 0.0;
    }
    report
}

/// Noon on the first of January 2026, and so many hours later.
fn at(hours: i64) -> DateTime<Utc> {
    let noon = DateTime::from_timestamp(1_767_268_800, 0).expect("in range");
    noon + TimeDelta::hours(hours)
}

/// What strategies and observers have seen while a run was under way.
struct Seen<T>(Arc<Mutex<Vec<T>>>);

impl<T> Seen<T> {
    fn nothing() -> Self {
        Self(Arc::new(Mutex::new(Vec::new())))
    }

    fn push(&self, value: T) {
        self.0.lock().expect("no thread panicked").push(value);
    }

    /// Everything seen since the last call.
    fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.0.lock().expect("no thread panicked"))
    }
}

impl<T> Clone for Seen<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// A scorer that writes `score` only.
struct Score<F>(F);

impl<F: Fn(&ContextItem, &[ContextItem]) -> f64 + Send + Sync> Scorer for Score<F> {
    fn score(&self, item: &ContextItem, all_items: &[ContextItem]) -> f64 {
        (self.0)(item, all_items)
    }
}

fn score_by(
    score: impl Fn(&ContextItem, &[ContextItem]) -> f64 + Send + Sync + 'static,
) -> impl Scorer + 'static {
    Score(score)
}

/// A scorer that overrides `score_all`.
struct ScoreAll<F>(F);

impl<F> Scorer for ScoreAll<F>
where
    F: Fn(&[ContextItem]) -> Result<Vec<f64>, CupelError> + Send + Sync,
{
    fn score(&self, _item: &ContextItem, _all_items: &[ContextItem]) -> f64 {
        unreachable!("a run asks for the whole batch")
    }

    fn score_all(&self, items: &[ContextItem]) -> Result<Vec<f64>, CupelError> {
        (self.0)(items)
    }
}

fn score_all_by(
    score_all: impl Fn(&[ContextItem]) -> Result<Vec<f64>, CupelError> + Send + Sync + 'static,
) -> impl Scorer + 'static {
    ScoreAll(score_all)
}

/// A slicer that writes `slice` only.
struct Slice<F>(F);

impl<F> Slicer for Slice<F>
where
    F: Fn(&[ScoredItem], &ContextBudget) -> Result<Vec<ContextItem>, CupelError> + Send + Sync,
{
    fn slice(
        &self,
        sorted: &[ScoredItem],
        budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        (self.0)(sorted, budget)
    }
}

fn slice_by(
    slice: impl Fn(&[ScoredItem], &ContextBudget) -> Result<Vec<ContextItem>, CupelError>
    + Send
    + Sync
    + 'static,
) -> impl Slicer + 'static {
    Slice(slice)
}

/// A slicer that overrides `select`.
struct Select<F>(F);

impl<F> Slicer for Select<F>
where
    F: Fn(&[ScoredRef<'_>], &ContextBudget) -> Result<Selection, CupelError> + Send + Sync,
{
    fn slice(
        &self,
        _sorted: &[ScoredItem],
        _budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        unreachable!("a run asks for ranks")
    }

    fn select(
        &self,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        (self.0)(ranked, budget)
    }
}

fn select_by(
    select: impl Fn(&[ScoredRef<'_>], &ContextBudget) -> Result<Selection, CupelError>
    + Send
    + Sync
    + 'static,
) -> impl Slicer + 'static {
    Select(select)
}

/// Returns a slicer that keeps every item at any budget.
fn everything() -> impl Slicer + 'static {
    select_by(|ranked, _| Ok(Selection::keep((0..ranked.len()).collect())))
}

/// A placer that writes `place` only.
struct Place<F>(F);

impl<F: Fn(&[ScoredItem]) -> Vec<ContextItem> + Send + Sync> Placer for Place<F> {
    fn place(&self, items: &[ScoredItem]) -> Vec<ContextItem> {
        (self.0)(items)
    }
}

fn place_by(
    place: impl Fn(&[ScoredItem]) -> Vec<ContextItem> + Send + Sync + 'static,
) -> impl Placer + 'static {
    Place(place)
}

/// A placer that overrides `arrange`.
struct Arrange<F>(F);

impl<F> Placer for Arrange<F>
where
    F: Fn(&[ScoredRef<'_>]) -> Result<Vec<usize>, CupelError> + Send + Sync,
{
    fn place(&self, _items: &[ScoredItem]) -> Vec<ContextItem> {
        unreachable!("a run asks for positions")
    }

    fn arrange(&self, items: &[ScoredRef<'_>]) -> Result<Vec<usize>, CupelError> {
        (self.0)(items)
    }
}

fn arrange_by(
    arrange: impl Fn(&[ScoredRef<'_>]) -> Result<Vec<usize>, CupelError> + Send + Sync + 'static,
) -> impl Placer + 'static {
    Arrange(arrange)
}

/// Random items and runs.
trait RandomRuns {
    /// Returns up to eleven items, some of them pinned, negative or copies, and a budget for them.
    fn run(&mut self) -> (Vec<ContextItem>, ContextBudget);

    /// Returns an item with every field.
    fn item(&mut self, content: &str) -> ContextItem;
}

impl RandomRuns for Random {
    fn run(&mut self) -> (Vec<ContextItem>, ContextBudget) {
        let mut items = Vec::new();
        for _ in 0..self.below(12) {
            let content = self.below(8).to_string();
            let item = self.item(&content);
            items.push(match self.below(8) {
                0 => build(item.to_builder().pinned(true)),
                1 => build(ContextItem::builder(content, -1)),
                _ => item,
            });
        }
        let max = self.pick(&[0, 20, 100, 300]);
        let budget = ContextBudget::builder(max)
            .target_tokens(max - max / self.pick(&[3, 4, 1_000]))
            .output_reserve(max / self.pick(&[8, 1_000]))
            .reserved_slot(kind("Own"), self.pick(&[0, 0, 7]))
            .safety_margin_percent(self.pick(&[0.0, 0.0, 7.5]));
        (items, budget.build().expect("within its rules"))
    }

    fn item(&mut self, content: &str) -> ContextItem {
        let tags = ["a", "A", "b", "c", "D", "d", ""];
        let kinds = ["Message", "Document", "document", "Memory", "Own"];
        let hints = [
            0.0,
            -0.0,
            0.25,
            0.3,
            0.5,
            0.9,
            1.0,
            7.0,
            -1.0,
            f64::NAN,
            f64::INFINITY,
        ];
        let trusts = ["0.1", "0.85", "1", "-3", "high", "", "NaN", "inf", "1e-3"];
        let tokens = self.pick(&[0, 1, 2, 5, 10, 10, 40, 100]);
        let mut builder = ContextItem::builder(content, tokens).kind(kind(self.pick(&kinds)));
        for _ in 0..self.below(5) {
            builder = builder.tag(self.pick(&tags));
        }
        if self.below(3) > 0 {
            builder = builder.timestamp(at(self.pick(&[-48, -24, -1, 0, 0, 3])));
        }
        if self.below(3) > 0 {
            builder = builder.priority(self.pick(&[i64::MIN, -1, 0, 0, 5, i64::MAX]));
        }
        if self.below(4) > 0 {
            builder = builder.future_relevance_hint(self.pick(&hints));
        }
        if self.below(2) > 0 {
            builder = builder.meta("cupel:trust", self.pick(&trusts));
        }
        if self.below(2) > 0 {
            builder = builder.meta("cupel:priority", self.pick(&["high", "low", "HIGH"]));
        }
        build(builder)
    }
}
