//! The derived and automatic traits of every type.

use std::error::Error;
use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::panic::{RefUnwindSafe, UnwindSafe};

use cupel::*;

/// Compiles only if each type implements the bounds.
macro_rules! implement {
    ($($bounds:path),+: $($name:ident),+ $(,)?) => {{
        fn check<T: $($bounds +)+>() {}
        $(check::<$name>();)+
    }};
}

#[test]
fn model_types_have_their_derives() {
    implement!(Debug, Clone, Error: CupelError);
    implement!(Debug, Clone, PartialEq: ContextBudget, ContextItem);
    implement!(Debug: ContextItemBuilder);
    implement!(Debug, Clone, Default, PartialEq, Eq, Hash, Display: ContextKind, ContextSource);
    implement!(Debug, Clone, PartialEq, Eq, Error: ParseContextKindError);
    implement!(Debug, Clone, Copy, Default, PartialEq, Eq, Hash: OverflowStrategy);
    implement!(Debug, Clone: ScoredItem);
}

#[test]
fn diagnostic_types_have_their_derives() {
    implement!(Debug, Clone, Copy, PartialEq, Eq, Hash: PipelineStage);
    implement!(Debug, Clone, Copy, PartialEq, Eq: InclusionReason, TraceDetailLevel);
    implement!(
        Debug, Clone, PartialEq: CountRequirementShortfall, TraceEvent, OverflowEvent,
        ExclusionReason, IncludedItem, ExcludedItem, SelectionReport,
    );
    implement!(Debug, Clone: StageTraceSnapshot);
    implement!(Debug, Clone, Copy, Default: NullTraceCollector);
    implement!(Debug: DiagnosticTraceCollector);
}

#[test]
fn strategies_have_their_derives() {
    implement!(
        Debug, Clone, Copy: RecencyScorer, PriorityScorer, FrequencyScorer, ReflexiveScorer,
    );
    implement!(Debug, Clone: KindScorer, TagScorer, MetadataTrustScorer, MetadataKeyScorer);
    implement!(Debug: CompositeScorer, ScaledScorer);
    implement!(
        Debug, Clone, Copy, PartialEq, Eq, Hash, Default: GreedySlice, ChronologicalPlacer,
        UShapedPlacer,
    );
    implement!(Debug, Clone, Copy, PartialEq, Eq, Hash: KnapsackSlice);
    implement!(Debug, Clone: QuotaEntry, CountQuotaEntry, CountConstrainedKnapsackSlice);
    implement!(Debug, Clone, Copy, Default: ScarcityBehavior);
    implement!(Debug: CountQuotaSlice);
    implement!(Debug, Clone, Copy, PartialEq: QuotaConstraintMode);
    implement!(Debug, Clone, PartialEq: QuotaConstraint);
}

#[test]
fn pipeline_and_analytics_types_have_their_derives() {
    implement!(Debug: Pipeline, PipelineBuilder, Policy, PolicyBuilder);
    implement!(Default: PolicyBuilder);
    implement!(
        Debug, Clone, PartialEq: KindQuotaUtilization, PolicySensitivityDiffEntry,
        PolicySensitivityReport,
    );
    implement!(Debug, Clone, Copy, PartialEq, Eq: ItemStatus);
}

#[test]
fn the_strategies_implement_their_traits() {
    implement!(
        Scorer: RecencyScorer, PriorityScorer, FrequencyScorer, ReflexiveScorer, KindScorer,
        TagScorer, MetadataTrustScorer, MetadataKeyScorer, CompositeScorer, ScaledScorer,
        DecayScorer,
    );
    implement!(
        Slicer: GreedySlice, KnapsackSlice, QuotaSlice, CountQuotaSlice,
        CountConstrainedKnapsackSlice,
    );
    implement!(QuotaPolicy: QuotaSlice, CountQuotaSlice, CountConstrainedKnapsackSlice);
    implement!(Placer: ChronologicalPlacer, UShapedPlacer);
    implement!(TimeProvider: SystemTimeProvider);
    implement!(TraceCollector: NullTraceCollector, DiagnosticTraceCollector);
}

// A collector may hold a callback bound to its thread, so it stays on that thread.
#[test]
fn every_type_but_the_collector_crosses_threads() {
    implement!(
        Send, Sync, Unpin: CupelError, ContextBudget, ContextItem, ContextItemBuilder,
        ContextKind, ContextSource, OverflowStrategy, ParseContextKindError, ScoredItem,
        CountRequirementShortfall, ExcludedItem, ExclusionReason, IncludedItem, InclusionReason,
        NullTraceCollector, OverflowEvent, PipelineStage, SelectionReport, StageTraceSnapshot,
        TraceDetailLevel, TraceEvent, Pipeline, PipelineBuilder, Policy, PolicyBuilder,
        ChronologicalPlacer, UShapedPlacer, CompositeScorer, DecayCurve, DecayScorer,
        FrequencyScorer, KindScorer, MetadataKeyScorer, MetadataTrustScorer, PriorityScorer,
        RecencyScorer, ReflexiveScorer, ScaledScorer, SystemTimeProvider, TagScorer,
        CountConstrainedKnapsackSlice, CountQuotaEntry, CountQuotaSlice, GreedySlice,
        KnapsackSlice, QuotaConstraint, QuotaConstraintMode, QuotaEntry, QuotaSlice,
        ScarcityBehavior, ItemStatus, KindQuotaUtilization, PolicySensitivityDiffEntry,
        PolicySensitivityReport,
    );
    implement!(Unpin: DiagnosticTraceCollector);
}

// The types that hold strategies or callbacks are left out.
#[test]
fn plain_data_survives_a_caught_panic() {
    implement!(
        UnwindSafe, RefUnwindSafe: CupelError, ContextBudget, ContextItem, ContextItemBuilder,
        ContextKind, ContextSource, OverflowStrategy, ParseContextKindError, ScoredItem,
        CountRequirementShortfall, ExcludedItem, ExclusionReason, IncludedItem, InclusionReason,
        NullTraceCollector, OverflowEvent, PipelineStage, SelectionReport, StageTraceSnapshot,
        TraceDetailLevel, TraceEvent, ChronologicalPlacer, UShapedPlacer, DecayCurve,
        FrequencyScorer, KindScorer, MetadataKeyScorer, MetadataTrustScorer, PriorityScorer,
        RecencyScorer, ReflexiveScorer, SystemTimeProvider, TagScorer,
        CountConstrainedKnapsackSlice, CountQuotaEntry, GreedySlice, KnapsackSlice,
        QuotaConstraint, QuotaConstraintMode, QuotaEntry, ScarcityBehavior, ItemStatus,
        KindQuotaUtilization, PolicySensitivityDiffEntry, PolicySensitivityReport,
    );
}

// proves: DECAY-17
#[test]
fn strategy_traits_require_what_threads_need() {
    fn crosses_threads<T: Send + Sync + ?Sized>() {}

    crosses_threads::<dyn Scorer>();
    crosses_threads::<dyn Slicer>();
    crosses_threads::<dyn Placer>();
    crosses_threads::<dyn TimeProvider>();
}

/// `<T as NotClone<_>>::check` is ambiguous, so does not compile, once `T` implements `Clone`.
trait NotClone<Marker> {
    fn check() {}
}
impl<T> NotClone<()> for T {}
impl<T: Clone> NotClone<u8> for T {}

// proves: DECAY-18
#[test]
fn a_decay_scorer_is_not_cloned_and_the_system_clock_takes_no_room() {
    <DecayScorer as NotClone<_>>::check();
    assert_eq!(size_of::<SystemTimeProvider>(), 0);
    let _: SystemTimeProvider = SystemTimeProvider;
}
