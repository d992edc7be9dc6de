//! From data to strategies.

use super::{
    ConfigError, ConfigErrorKind, CurveConfig, KnapsackConfig, PlacerConfig, PolicyConfig,
    ScorerConfig, ScorerEntry, SlicerConfig, StepWindow,
};
use crate::{
    ChronologicalPlacer, CompositeScorer, CountConstrainedKnapsackSlice, CountQuotaSlice,
    CupelError, DecayCurve, DecayScorer, FrequencyScorer, GreedySlice, GroupSlice, KindScorer,
    KnapsackSlice, MetadataKeyScorer, MetadataTrustScorer, Placer, Policy, PriorityScorer,
    ProductScorer, QuotaSlice, RankSlice, RecencyScorer, ReflexiveScorer, ScaledScorer, Scorer,
    Slicer, SystemTimeProvider, TagComparison, TagScorer, TimeProvider, UShapedPlacer,
};

impl PolicyConfig {
    /// The policy that this describes.
    ///
    /// # Errors
    ///
    /// [`ConfigErrorKind::Invalid`] with the path of the part that its constructor refused.
    pub fn build(&self) -> Result<Policy, ConfigError> {
        let scorer = self.scorer.build().map_err(|e| e.within("scorer"))?;
        let slicer = self.slicer.build().map_err(|e| e.within("slicer"))?;
        Policy::builder()
            .scorer(scorer)
            .slicer(slicer)
            .placer(self.placer.build())
            .deduplication(self.deduplication)
            .overflow_strategy(self.overflow_strategy)
            .build()
            .map_err(ConfigError::invalid)
    }
}

impl ScorerConfig {
    /// The scorer that this describes.
    ///
    /// # Errors
    ///
    /// As [`PolicyConfig::build`].
    pub fn build(&self) -> Result<Box<dyn Scorer>, ConfigError> {
        Ok(match self {
            Self::Recency => Box::new(RecencyScorer),
            Self::Priority => Box::new(PriorityScorer),
            Self::Kind { weights } => {
                let weights = weights.iter().map(|(kind, weight)| (kind.clone(), *weight));
                Box::new(KindScorer::from_weights(weights).map_err(invalid_in("weights"))?)
            }
            Self::Tag {
                tag_weights,
                ignore_case,
            } => {
                let weights = tag_weights
                    .iter()
                    .map(|(tag, weight)| (tag.clone(), *weight));
                let comparison = if *ignore_case {
                    TagComparison::IgnoreAsciiCase
                } else {
                    TagComparison::Ordinal
                };
                let scorer = TagScorer::from_weights(weights, comparison);
                Box::new(scorer.map_err(invalid_in("tag_weights"))?)
            }
            Self::Frequency => Box::new(FrequencyScorer),
            Self::Reflexive => Box::new(ReflexiveScorer),
            Self::Composite { entries } => {
                let entry = |entry: &ScorerEntry| {
                    let scorer = entry.scorer.build().map_err(|e| e.within("scorer"))?;
                    Ok((scorer, entry.weight))
                };
                let entries = all("entries", entries, entry)?;
                Box::new(CompositeScorer::new(entries).map_err(invalid_in("entries"))?)
            }
            Self::Scaled { inner } => {
                let inner = inner.build().map_err(|e| e.within("inner"))?;
                Box::new(ScaledScorer::new(inner))
            }
            Self::Decay {
                curve,
                null_timestamp_score,
                reference_time,
            } => {
                let clock: Box<dyn TimeProvider + Send + Sync> = match reference_time {
                    Some(time) => Box::new(*time),
                    None => Box::new(SystemTimeProvider),
                };
                let curve = curve.build().map_err(|e| e.within("curve"))?;
                let scorer = DecayScorer::new(clock, curve, *null_timestamp_score);
                Box::new(scorer.map_err(refused(
                    "null_timestamp_score",
                    "null_timestamp_score must be from 0 to 1",
                ))?)
            }
            Self::MetadataTrust { default_score } => {
                let scorer = MetadataTrustScorer::new(*default_score);
                Box::new(scorer.map_err(refused(
                    "default_score",
                    "default_score must be from 0 to 1",
                ))?)
            }
            Self::MetadataKey { key, value, boost } => {
                let scorer = MetadataKeyScorer::new(key, value, *boost);
                Box::new(scorer.map_err(invalid_in("boost"))?)
            }
            Self::Product { scorers } => {
                let scorers = all("scorers", scorers, Self::build)?;
                Box::new(ProductScorer::new(scorers).map_err(invalid_in("scorers"))?)
            }
        })
    }
}

impl CurveConfig {
    /// The curve that this describes.
    ///
    /// # Errors
    ///
    /// As [`PolicyConfig::build`].
    pub fn build(&self) -> Result<DecayCurve, ConfigError> {
        let window = |max_age| {
            let curve = DecayCurve::window(max_age);
            curve.map_err(refused("max_age", "max_age must be longer than 0"))
        };
        match self {
            Self::Exponential { half_life } => {
                let curve = DecayCurve::exponential(*half_life);
                curve.map_err(refused("half_life", "half_life must be longer than 0"))
            }
            Self::Window { max_age } => window(*max_age),
            Self::Step { windows } => {
                all("windows", windows, |step| window(step.max_age))?;
                let pair = |window: &StepWindow| (window.max_age, window.score);
                let windows = windows.iter().map(pair).collect();
                DecayCurve::step(windows).map_err(invalid_in("windows"))
            }
        }
    }
}

impl SlicerConfig {
    /// The slicer that this describes.
    ///
    /// # Errors
    ///
    /// As [`PolicyConfig::build`].
    pub fn build(&self) -> Result<Box<dyn Slicer>, ConfigError> {
        let inner = |inner: &Self| inner.build().map_err(|e| e.within("inner"));
        Ok(match self {
            Self::Greedy => Box::new(GreedySlice),
            Self::Rank => Box::new(RankSlice),
            Self::Knapsack(knapsack) => Box::new(knapsack.build()?),
            Self::Quota {
                quotas,
                inner: within,
            } => {
                let slicer = QuotaSlice::new(quotas.clone(), inner(within)?);
                Box::new(slicer.map_err(invalid_in("quotas"))?)
            }
            Self::CountQuota {
                entries,
                scarcity,
                inner: within,
            } => {
                let within = inner(within)?;
                let has_knapsack = within.is_knapsack();
                let slicer = CountQuotaSlice::new(entries.clone(), within, *scarcity);
                Box::new(slicer.map_err(|error| {
                    if has_knapsack {
                        refused("inner", NO_KNAPSACK)(error)
                    } else {
                        invalid_in("entries")(error)
                    }
                })?)
            }
            Self::CountConstrainedKnapsack {
                entries,
                scarcity,
                knapsack,
            } => {
                let knapsack = knapsack.build()?;
                let slicer =
                    CountConstrainedKnapsackSlice::new(entries.clone(), knapsack, *scarcity);
                Box::new(slicer.map_err(invalid_in("entries"))?)
            }
            Self::Group {
                score,
                inner: within,
            } => Box::new(GroupSlice::new(inner(within)?).with_score(*score)),
        })
    }
}

impl KnapsackConfig {
    /// The knapsack that this describes.
    ///
    /// # Errors
    ///
    /// As [`PolicyConfig::build`].
    pub fn build(&self) -> Result<KnapsackSlice, ConfigError> {
        let slicer = KnapsackSlice::new(self.bucket_size).map_err(invalid_in("bucket_size"))?;
        match (self.cell_limit, self.memory_limit) {
            (None, None) => Ok(slicer),
            (Some(cells), None) => Ok(slicer.cell_limit(cells)),
            (None, Some(bytes)) => Ok(slicer.memory_limit(bytes)),
            (Some(_), Some(_)) => Err(ConfigError::new(
                ConfigErrorKind::Invalid,
                "there is a cell_limit too; leave one of them out",
            )
            .within("memory_limit")),
        }
    }
}

impl PlacerConfig {
    /// The placer that this describes.
    pub fn build(&self) -> Box<dyn Placer> {
        match self {
            Self::Chronological => Box::new(ChronologicalPlacer),
            Self::UShaped => Box::new(UShapedPlacer),
        }
    }
}

const NO_KNAPSACK: &str = "count_quota takes no knapsack inside; choose greedy, or count_constrained_knapsack in place of count_quota";

/// A constructor's refusal of what stands in `field`, in the words of documents.
fn refused(field: &'static str, message: &'static str) -> impl Fn(CupelError) -> ConfigError {
    move |error| {
        let error = ConfigError::invalid(error).within(field);
        error.with_message(message.to_owned())
    }
}

/// A constructor's refusal of what stands in `field`.
fn invalid_in(field: &'static str) -> impl Fn(CupelError) -> ConfigError {
    move |error| ConfigError::invalid(error).within(field)
}

/// One part after the other, each error with its place in the list `field`.
fn all<A, B>(
    field: &str,
    list: &[A],
    build: impl Fn(&A) -> Result<B, ConfigError>,
) -> Result<Vec<B>, ConfigError> {
    let parts = list.iter().enumerate();
    parts
        .map(|(index, part)| build(part).map_err(|e| e.within(index).within(field)))
        .collect()
}
