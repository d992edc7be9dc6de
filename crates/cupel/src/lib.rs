#![doc = "placeholder"]

pub mod analytics;
pub mod diagnostics;
pub mod error;
pub mod model;
pub mod pipeline;
pub mod placer;
pub mod scorer;
pub mod slicer;
#[cfg(feature = "serde")]
mod wire;

pub use analytics::{
    ItemStatus, KindQuotaUtilization, PolicySensitivityDiffEntry, PolicySensitivityReport,
    budget_utilization, kind_diversity, policy_sensitivity, policy_sensitivity_from_pipelines,
    quota_utilization, timestamp_coverage,
};
pub use diagnostics::{
    CountRequirementShortfall, DiagnosticTraceCollector, ExcludedItem, ExclusionReason,
    IncludedItem, InclusionReason, NullTraceCollector, OverflowEvent, PipelineStage,
    SelectionReport, StageTraceSnapshot, TraceCollector, TraceDetailLevel, TraceEvent, UnknownName,
    UnknownReason, Value,
};
pub use error::{ContractViolation, CupelError, StrategyRole};
pub use model::{
    ContextBudget, ContextBudgetBuilder, ContextItem, ContextItemBuilder, ContextKind,
    ContextSource, OverflowStrategy, ParseContextKindError, ScoredItem, ScoredRef,
};
pub use pipeline::{Pipeline, PipelineBuilder, Policy, PolicyBuilder};
pub use placer::{ChronologicalPlacer, Placer, UShapedPlacer};
pub use scorer::{
    CompositeScorer, CompositeScorerBuilder, DecayCurve, DecayScorer, FrequencyScorer, KindScorer,
    MetadataKeyScorer, MetadataTrustScorer, PriorityScorer, ProductScorer, RecencyScorer,
    ReflexiveScorer, ScaledScorer, Scorer, SystemTimeProvider, TagComparison, TagScorer,
    TimeProvider,
};
#[cfg(feature = "stream")]
pub use slicer::StreamSlice;
pub use slicer::{
    CountConstrainedKnapsackSlice, CountQuotaEntry, CountQuotaSlice, GreedySlice, KnapsackSlice,
    QuotaConstraint, QuotaConstraintMode, QuotaEntry, QuotaPolicy, QuotaSlice, Refusal,
    ScarcityBehavior, Selection, Slicer,
};
