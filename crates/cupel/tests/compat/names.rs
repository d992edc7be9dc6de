//! Every path by which a public name is reached.

use std::convert::identity;

/// Each type by its module path, at the root and through the glob; evaluates to their number.
macro_rules! types {
    ($($module:ident: $($name:ident),+;)+) => {{
        use cupel::*;
        $($(
            let _: fn($name) -> cupel::$name = identity;
            let _: fn(cupel::$name) -> cupel::$module::$name = identity;
        )+)+
        [$($(stringify!($name)),+),+].len()
    }};
}

/// Each trait by its module path, at the root and through the glob; evaluates to their number.
macro_rules! traits {
    ($($module:ident: $($name:ident),+;)+) => {{
        use cupel::*;
        $($(
            let _: fn(&dyn $name) -> &dyn cupel::$name = |same| same;
            let _: fn(&dyn cupel::$name) -> &dyn cupel::$module::$name = |same| same;
        )+)+
        [$($(stringify!($name)),+),+].len()
    }};
}

/// Each function by its module path, at the root and through the glob;
/// evaluates to their number.
macro_rules! functions {
    ($($name:ident: $signature:ty;)+) => {{
        use cupel::*;
        $(
            let _: $signature = $name;
            let _: $signature = cupel::$name;
            let _: $signature = cupel::analytics::$name;
        )+
        [$(stringify!($name)),+].len()
    }};
}

/// A comparison of variants with owned labels.
type Comparison<V> = fn(
    &[cupel::ContextItem],
    &cupel::ContextBudget,
    &[(String, &V)],
) -> Result<cupel::PolicySensitivityReport, cupel::CupelError>;

#[test]
fn sixty_seven_names_are_at_the_root_and_in_their_module() {
    let types = types! {
        analytics: ItemStatus, KindQuotaUtilization, PolicySensitivityDiffEntry,
            PolicySensitivityReport;
        diagnostics: CountRequirementShortfall, DiagnosticTraceCollector, ExcludedItem,
            ExclusionReason, IncludedItem, InclusionReason, NullTraceCollector, OverflowEvent,
            PipelineStage, SelectionReport, StageTraceSnapshot, TraceDetailLevel, TraceEvent;
        error: CupelError;
        model: ContextBudget, ContextItem, ContextItemBuilder, ContextKind, ContextSource,
            OverflowStrategy, ParseContextKindError, ScoredItem;
        pipeline: Pipeline, PipelineBuilder, Policy, PolicyBuilder;
        placer: ChronologicalPlacer, UShapedPlacer;
        scorer: CompositeScorer, DecayCurve, DecayScorer, FrequencyScorer, KindScorer,
            MetadataKeyScorer, MetadataTrustScorer, PriorityScorer, RecencyScorer,
            ReflexiveScorer, ScaledScorer, SystemTimeProvider, TagScorer;
        slicer: CountConstrainedKnapsackSlice, CountQuotaEntry, CountQuotaSlice, GreedySlice,
            KnapsackSlice, QuotaConstraint, QuotaConstraintMode, QuotaEntry, QuotaSlice,
            ScarcityBehavior;
    };
    let traits = traits! {
        diagnostics: TraceCollector;
        placer: Placer;
        scorer: Scorer, TimeProvider;
        slicer: QuotaPolicy, Slicer;
    };
    let functions = functions! {
        budget_utilization: fn(&SelectionReport, &ContextBudget) -> f64;
        kind_diversity: fn(&SelectionReport) -> usize;
        timestamp_coverage: fn(&SelectionReport) -> f64;
        quota_utilization:
            fn(&SelectionReport, &dyn QuotaPolicy, &ContextBudget) -> Vec<KindQuotaUtilization>;
        policy_sensitivity: Comparison<Policy>;
        policy_sensitivity_from_pipelines: Comparison<Pipeline>;
    };
    assert_eq!((types, traits, functions), (55, 6, 6));
}

#[test]
fn the_collectors_have_a_third_path() {
    use cupel::diagnostics::trace_collector;

    let _: fn(trace_collector::TraceDetailLevel) -> cupel::TraceDetailLevel = identity;
    let _: fn(trace_collector::NullTraceCollector) -> cupel::NullTraceCollector = identity;
    let _: fn(trace_collector::DiagnosticTraceCollector) -> cupel::DiagnosticTraceCollector =
        identity;
    let _: fn(&dyn trace_collector::TraceCollector) -> &dyn cupel::TraceCollector = |same| same;
}

#[test]
fn the_eight_modules_come_with_the_glob() {
    use cupel::*;

    let _: fn(&SelectionReport) -> usize = analytics::kind_diversity;
    let _: Option<diagnostics::PipelineStage> = None;
    let _: Option<diagnostics::trace_collector::TraceDetailLevel> = None;
    let _: Option<error::CupelError> = None;
    let _: Option<model::ContextItem> = None;
    let _: Option<pipeline::Pipeline> = None;
    let _: placer::UShapedPlacer = placer::UShapedPlacer;
    let _: scorer::RecencyScorer = scorer::RecencyScorer;
    let _: slicer::GreedySlice = slicer::GreedySlice;
}
