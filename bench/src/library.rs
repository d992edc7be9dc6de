//! The same code for both libraries: `api` is ours or the published crate.

use std::collections::HashMap;

use chrono::{DateTime, Duration, Utc};

use super::api::{
    ChronologicalPlacer, CompositeScorer, ContextBudget, ContextItem, ContextItemBuilder,
    ContextKind, CupelError, DecayCurve, DecayScorer, DiagnosticTraceCollector, FrequencyScorer,
    GreedySlice, KindScorer, NullTraceCollector, Pipeline, PipelineBuilder, PriorityScorer,
    RecencyScorer, ScaledScorer, Scorer, SelectionReport, TagScorer, TimeProvider,
    TraceDetailLevel,
};
use crate::generator::{Candidate, NOW_MILLISECONDS, Population};
use crate::recipe::{Entry, Scoring};

/// Returns all candidates of a population as items of this library.
pub(crate) fn items(population: &Population) -> Vec<ContextItem> {
    population
        .candidates()
        .map(|candidate| finish(builder(candidate)))
        .collect()
}

/// Returns an item before its last build step. The original token count, which no stage reads, holds the
/// position, which identifies an item without its text.
pub(crate) fn builder(candidate: Candidate) -> ContextItemBuilder {
    let kind = match candidate.kind {
        0 => ContextKind::message(),
        1 => ContextKind::document(),
        2 => ContextKind::tool_output(),
        3 => ContextKind::memory(),
        _ => ContextKind::system_prompt(),
    };
    let tags = candidate.tags.iter().map(|&tag| tag_name(tag)).collect();
    let position = i64::try_from(candidate.index).unwrap_or(i64::MAX);
    let mut builder = ContextItemBuilder::new(candidate.content, candidate.tokens)
        .kind(kind)
        .tags(tags)
        .original_tokens(position)
        .pinned(candidate.pinned);
    if let Some(milliseconds) = candidate.timestamp_milliseconds {
        builder = builder.timestamp(time(milliseconds));
    }
    if let Some(priority) = candidate.priority {
        builder = builder.priority(priority);
    }
    builder
}

pub(crate) fn finish(builder: ContextItemBuilder) -> ContextItem {
    builder.build().expect("generated texts are not empty")
}

pub(crate) fn budget(tokens: i64) -> ContextBudget {
    ContextBudget::new(tokens, tokens, 0, HashMap::new(), 0.0).expect("a valid budget")
}

/// Returns a pipeline with the greedy slicer and the chronological placer, otherwise at the defaults.
pub(crate) fn pipeline(scoring: Scoring) -> Pipeline {
    finished(builder_of_pipeline(scoring))
}

pub(super) fn builder_of_pipeline(scoring: Scoring) -> PipelineBuilder {
    Pipeline::builder()
        .scorer(scorer(scoring))
        .slicer(Box::new(GreedySlice))
        .placer(Box::new(ChronologicalPlacer))
}

pub(super) fn finished(builder: PipelineBuilder) -> Pipeline {
    builder.build().expect("a complete pipeline")
}

pub(crate) fn scorer(scoring: Scoring) -> Box<dyn Scorer> {
    match scoring {
        Scoring::Recency => Box::new(RecencyScorer),
        Scoring::Priority => Box::new(PriorityScorer),
        Scoring::Kind => Box::new(KindScorer::with_default_weights()),
        Scoring::Tag => {
            let weights = (0..10).map(|tag| (tag_name(tag * 5), 1.0 / (tag + 1) as f64));
            Box::new(TagScorer::new(weights.collect()).expect("positive weights"))
        }
        Scoring::Frequency => Box::new(FrequencyScorer),
        Scoring::Composite => {
            let parts = [Scoring::Recency, Scoring::Priority, Scoring::Kind];
            let parts = parts.into_iter().map(scorer).zip([0.5, 0.3, 0.2]);
            Box::new(CompositeScorer::new(parts.collect()).expect("positive weights"))
        }
        Scoring::Scaled => Box::new(ScaledScorer::new(scorer(Scoring::Recency))),
        Scoring::ScaledTwice => Box::new(ScaledScorer::new(scorer(Scoring::Scaled))),
        Scoring::Decay => {
            let curve = DecayCurve::exponential(Duration::hours(72)).expect("a positive half-life");
            Box::new(DecayScorer::new(Box::new(Fixed), curve, 0.1).expect("a score in range"))
        }
    }
}

/// Makes one call and drops its result.
pub(crate) fn call(
    pipeline: &Pipeline,
    entry: Entry,
    items: &[ContextItem],
    budget: &ContextBudget,
) -> Result<usize, CupelError> {
    match entry {
        Entry::Run => Ok(pipeline.run(items, budget)?.len()),
        Entry::Null => {
            #[allow(
                clippy::default_constructed_unit_structs,
                reason = "the published type cannot be written as a value"
            )]
            let mut collector = NullTraceCollector::default();
            Ok(pipeline.run_traced(items, budget, &mut collector)?.len())
        }
        Entry::Decide => super::decide(pipeline, items, budget),
        Entry::Report => Ok(report(pipeline, items, budget)?.included.len()),
        Entry::DryRun => Ok(pipeline.dry_run(items, budget)?.included.len()),
    }
}

/// Returns the report of a run, with stage events and without item events.
pub(crate) fn report(
    pipeline: &Pipeline,
    items: &[ContextItem],
    budget: &ContextBudget,
) -> Result<SelectionReport, CupelError> {
    let mut collector = DiagnosticTraceCollector::new(TraceDetailLevel::Stage);
    pipeline.run_traced(items, budget, &mut collector)?;
    Ok(collector.into_report())
}

/// Returns the positions of items in their population.
pub(crate) fn positions(items: &[ContextItem]) -> Vec<usize> {
    let position = |item: &ContextItem| {
        let position = item.original_tokens().expect("generated items have one");
        usize::try_from(position).unwrap_or(usize::MAX)
    };
    items.iter().map(position).collect()
}

/// Returns a ranked list of items with only a score and tokens.
pub(crate) fn scored(instance: &[(f64, i64)]) -> Vec<super::api::ScoredItem> {
    let item = |(rank, &(score, tokens)): (usize, &(f64, i64))| {
        let position = i64::try_from(rank).unwrap_or(i64::MAX);
        let builder = ContextItemBuilder::new(format!("item {rank}"), tokens);
        super::api::ScoredItem {
            item: finish(builder.original_tokens(position)),
            score,
        }
    };
    instance.iter().enumerate().map(item).collect()
}

fn tag_name(tag: usize) -> String {
    format!("tag-{tag:02}")
}

fn time(milliseconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(milliseconds).expect("a time of this age")
}

/// A fixed clock.
struct Fixed;

impl TimeProvider for Fixed {
    fn now(&self) -> DateTime<Utc> {
        time(NOW_MILLISECONDS)
    }
}
