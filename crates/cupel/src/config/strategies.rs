//! Every scorer, curve, slicer and placer that a document can name: one row each.
//!
//! A row gives the enum its variant, the registry its fields, ranges, defaults and docs, and the
//! reader, the writer and the builder their arms. The strategy's own file has the constructor that
//! the row names (`from_config`) and the way back (`to_config`).

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};

use super::data::{Data, Fields, as_str, object, unknown_choice};
use super::define::{choice, data_record, family, record};
use super::error::ConfigError;
use super::registry::{
    COUNT, FINITE, Family, Literal, NOT_NEGATIVE, PERCENT, POSITIVE, Record, Role, SHARE, Shape,
    Spec, UNIT, default, optional, required,
};
#[cfg(not(feature = "relevance"))]
use super::relevance::without::{ConversationScorer, NeighborScorer, RelevanceScorer};
use super::relevance::{B, K1, LANGUAGE, NEAR, QUERY, QUESTION, SESSIONS, WIDE};
use super::tree::Node;
use crate::{
    ChoiceSlice, ChronologicalPlacer, CompositeScorer, ContextKind, CountConstrainedKnapsackSlice,
    CountQuotaEntry, CountQuotaSlice, DecayCurve, DecayScorer, DensitySlice, DiversitySlice,
    EmbeddingScorer, FrequencyScorer, FusionMethod, FusionScorer, GreedySlice, GroupScore,
    GroupSlice, KindScorer, KnapsackSlice, LadderSlice, LadderStep, Language, MetadataKeyScorer,
    MetadataTrustScorer, NearDuplicateSlice, NearKernel, OverflowStrategy, Placer, PriorityScorer,
    ProductScorer, Query, QuestionRules, QuotaEntry, QuotaSlice, RankSlice, RawValue,
    RecencyScorer, ReflexiveScorer, ScaledScorer, ScarcityBehavior, Scorer, Similarity, Slicer,
    TagScorer, UShapedPlacer, WideKernel,
};
#[cfg(feature = "relevance")]
use crate::{ConversationScorer, NeighborScorer, RelevanceScorer};

const SCORER: Shape = Shape::Family(Role::Scorer);
const SLICER: Shape = Shape::Family(Role::Slicer);
const A_SCORER_ENTRY: &Shape = &Shape::Record(&SCORER_ENTRY);
const A_STEP_WINDOW: &Shape = &Shape::Record(&STEP_WINDOW);
const A_QUOTA: &Shape = &Shape::Record(&QUOTA);
const A_COUNT_ENTRY: &Shape = &Shape::Record(&COUNT_ENTRY);
const A_LADDER_STEP: &Shape = &Shape::Family(Role::LadderStep);
const INNER_SLICER: Spec = default(SLICER, Literal::Type("greedy"));
const BUCKET_SIZE: Spec = default(Shape::Integer(1, i64::MAX), Literal::Integer(100));
const CELL_LIMIT: Spec = optional(Shape::Integer(50_000_001, i64::MAX));
const MEMORY_LIMIT: Spec = optional(COUNT);
const COUNT_ENTRIES: Spec = required(Shape::Array(A_COUNT_ENTRY, 0));
const SCARCITY: Spec = default(
    Shape::Choice(SCARCITY_BEHAVIORS),
    Literal::String("degrade"),
);

choice!(OverflowStrategy, OVERFLOW_STRATEGIES: "throw" => Throw, "truncate" => Truncate, "proceed" => Proceed);
choice!(ScarcityBehavior, SCARCITY_BEHAVIORS: "degrade" => Degrade, "throw" => Throw);
choice!(FusionMethod, FUSION_METHODS: "sum" => Sum, "reciprocal_rank" => ReciprocalRank, "shares" => Shares);
choice!(Similarity, SIMILARITIES: "shingles" => Shingles, "vectors" => Vectors);
choice!(GroupScore, GROUP_SCORES: "max" => Max, "mean" => Mean, "sum" => Sum);
pub(super) const OVERFLOW: Shape = Shape::Choice(OVERFLOW_STRATEGIES);

family! {
    SCORERS "scorer" "The scorers." =>
    /// A scorer as data: a row of [`registry::SCORERS`](super::registry::SCORERS).
    #[derive(Debug, Clone, PartialEq)]
    ScorerConfig builds Box<dyn Scorer>, Box::new;

    "recency" Recency RecencyScorer
    "Rank by timestamp: the newest item scores 1, the oldest 0."

    "priority" Priority PriorityScorer
    "Rank by priority: the highest scores 1, the lowest 0."

    "kind" Kind KindScorer::from_config
    "The weight of the item's kind, 0 for a kind without one." {
        weights: BTreeMap<ContextKind, f64> = default(Shape::ByKind(&NOT_NEGATIVE), Literal::Weights(&KindScorer::DEFAULT_WEIGHTS)),
            "The weight of each kind.";
    }

    "tag" Tag TagScorer::from_config
    "The weight of the item's tags divided by the weight of all tags." {
        tag_weights: BTreeMap<String, f64> = required(Shape::ByString(&NOT_NEGATIVE)),
            "The weight of each tag, summed in the order of the tags.";
        ignore_case: bool = default(Shape::Bool, Literal::Bool(false)),
            "Whether the case of ASCII letters is ignored.";
    }

    "frequency" Frequency FrequencyScorer
    "The share of the other items that have a tag in common with the item."

    "reflexive" Reflexive ReflexiveScorer
    "The item's own future relevance hint."

    "composite" Composite CompositeScorer::from_config
    "The weighted average of several scorers." {
        entries: Vec<ScorerEntry> = required(Shape::Array(A_SCORER_ENTRY, 1)),
            "The scorers with their weights, at least one.";
    }

    "scaled" Scaled ScaledScorer::from_config
    "Another scorer, rescaled to the range 0 to 1 over all items." {
        inner: Box<ScorerConfig> = required(SCORER),
            "The scorer to rescale.";
    }

    "decay" Decay DecayScorer::from_config
    "A curve over the item's age." {
        curve: CurveConfig = required(Shape::Family(Role::Curve)),
            "How the score falls with age.";
        null_timestamp_score: f64 = default(UNIT, Literal::Number(0.5)),
            "The score of items without a timestamp.";
        reference_time: Option<DateTime<Utc>> = optional(Shape::Time),
            "The time from which ages are counted. Defaults to the time of the run.";
    }

    "metadata_trust" MetadataTrust MetadataTrustScorer::from_config
    "The number in the metadata `cupel:trust`." {
        default_score: f64 = default(UNIT, Literal::Number(0.5)),
            "The score of items without a usable number.";
    }

    "metadata_key" MetadataKey MetadataKeyScorer::from_config
    "The boost if a metadata key has a given value, otherwise 1." {
        key: String = required(Shape::String),
            "The metadata key.";
        value: String = required(Shape::String),
            "The value that gets the boost.";
        boost: f64 = required(POSITIVE),
            "The score on a match, a factor for `product`.";
    }

    "product" Product ProductScorer::from_config
    "The product of several scorers." {
        scorers: Vec<ScorerConfig> = required(Shape::Array(&SCORER, 1)),
            "The factors, at least one.";
    }

    "fusion" Fusion FusionScorer::from_config
    "Several scorers, combined by relative score, by rank or by share of the tokens." {
        entries: Vec<ScorerEntry> = required(Shape::Array(A_SCORER_ENTRY, 1)),
            "The scorers with their weights, at least one.";
        method: FusionMethod = default(Shape::Choice(FUSION_METHODS), Literal::String("sum")),
            "The weighted average of scores divided by their maximum, or of reciprocal ranks, or an order in which each scorer ranks its share of the tokens.";
        k: f64 = default(NOT_NEGATIVE, Literal::Number(60.0)),
            "The constant of `reciprocal_rank`: a larger one favors the first ranks less.";
    }

    "embedding" Embedding EmbeddingScorer::from_config
    "The cosine similarity of the item's vector to the query's." {
        vector: Option<Vec<f64>> = optional(Shape::Array(&FINITE, 1)),
            "The vector of the query; items have theirs in the metadata `cupel:vector`, numbers separated by commas.";
        table: Option<String> = optional(Shape::String),
            "A safetensors file of word vectors, instead of `vector`: texts are compared by the mean of their words.";
        query: Option<Query> = optional(Shape::Query),
            "With a table: a text, or texts with weights. Defaults to the query of the run.";
    }

    "relevance" Relevance RelevanceScorer::from_config
    "The words that the item shares with the query (BM25)." {
        query: Option<Query> = QUERY,
            "The query: a text, or texts with weights. Defaults to the query of the run.";
        language: Language = LANGUAGE,
            "The language of the texts.";
        k1: f64 = K1,
            "How slowly repetitions of a word saturate.";
        b: f64 = B,
            "How much long items are discounted.";
    }

    "neighbor" Neighbor NeighborScorer::from_config
    "Another scorer, whose scores reach the items around." {
        inner: Box<ScorerConfig> = required(SCORER),
            "The scorer whose scores are spread.";
        near: NearKernel = default(Shape::Record(&NEAR), Literal::EmptyObject),
            "How matches reach the items next to them.";
        wide: WideKernel = default(Shape::Record(&WIDE), Literal::EmptyObject),
            "How passages reach their items.";
        sessions: bool = SESSIONS,
            "Whether items of different sessions (metadata `cupel:session`) are not neighbors.";
    }

    "conversation" Conversation ConversationScorer::from_config
    "Relevance of the turns of a conversation to the query: words, neighbors, rules for questions." {
        query: Option<Query> = QUERY,
            "The query: a text, or texts with weights. Defaults to the query of the run.";
        language: Language = LANGUAGE,
            "The language of the texts. The rules for questions apply to English.";
        k1: f64 = K1,
            "How slowly repetitions of a word saturate.";
        b: f64 = B,
            "How much long items are discounted.";
        near: NearKernel = default(Shape::Record(&NEAR), Literal::EmptyObject),
            "How matches reach the items next to them.";
        wide: WideKernel = default(Shape::Record(&WIDE), Literal::EmptyObject),
            "How passages reach their items.";
        sessions: bool = SESSIONS,
            "Whether items of different sessions (metadata `cupel:session`) are not neighbors.";
        question: QuestionRules = default(Shape::Record(&QUESTION), Literal::EmptyObject),
            "How the question is read.";
    }
}

impl ScorerConfig {
    /// Builds the `inner` scorer of another.
    #[expect(
        clippy::boxed_local,
        reason = "a recursive enum is boxed where it nests"
    )]
    pub(crate) fn into_inner(self: Box<Self>) -> Result<Box<dyn Scorer>, ConfigError> {
        self.into_built().map_err(|error| error.within("inner"))
    }
}

record! {
    SCORER_ENTRY "scorer_entry" "A scorer of a composite or a fusion, with its weight." => ScorerEntry {
        scorer: ScorerConfig = required(SCORER),
            "The scorer.";
        weight: f64 = default(POSITIVE, Literal::Number(1.0)),
            "The weight, relative to the other entries.";
    }
}

family! {
    CURVES "curve" "The curves of the decay scorer." =>
    /// A decay curve as data: a row of [`registry::CURVES`](super::registry::CURVES).
    #[derive(Debug, Clone, PartialEq)]
    CurveConfig builds DecayCurve, std::convert::identity;

    "exponential" Exponential DecayCurve::exponential_from_config
    "The score halves with every half-life." {
        half_life: TimeDelta = required(Shape::Duration),
            "The age at which the score is 0.5.";
    }

    "window" Window DecayCurve::window_from_config
    "The score is 1 below an age, 0 from there on." {
        max_age: TimeDelta = required(Shape::Duration),
            "The age at which the score becomes 0.";
    }

    "step" Step DecayCurve::step_from_config
    "The score of the first window longer than the age, otherwise of the last." {
        windows: Vec<StepWindow> = required(Shape::Array(A_STEP_WINDOW, 1)),
            "The windows in order, at least one.";
    }
}

record! {
    STEP_WINDOW "step_window" "A window of a step curve." => StepWindow {
        max_age: TimeDelta = required(Shape::Duration),
            "The age at which the window ends.";
        score: f64 = required(FINITE),
            "The score within the window.";
    }
}

family! {
    SLICERS "slicer" "The slicers." =>
    /// A slicer as data: a row of [`registry::SLICERS`](super::registry::SLICERS).
    #[derive(Debug, Clone, PartialEq)]
    SlicerConfig builds Box<dyn Slicer>, Box::new;

    "greedy" Greedy GreedySlice
    "Items in order of score per token while they fit."

    "rank" Rank RankSlice
    "Items in order of score while they fit."

    "density" Density DensitySlice::from_config
    "Items in order of score divided by a power of the tokens while they fit." {
        exponent: f64 = required(NOT_NEGATIVE),
            "The power of the tokens: 0 is the order of `rank`, 1 that of `greedy`.";
    }

    "diversity" Diversity DiversitySlice::from_config
    "Items by score less their similarity to the items chosen before (maximal marginal relevance)." {
        lambda: f64 = default(UNIT, Literal::Number(0.7)),
            "The weight of the score; that of the similarity is the rest.";
        similarity: Similarity = default(Shape::Choice(SIMILARITIES), Literal::String("shingles")),
            "Word shingles of the contents, or vectors in the metadata `cupel:vector`.";
        shingle_size: usize = default(Shape::Integer(1, 64), Literal::Integer(3)),
            "The words per shingle.";
    }

    "knapsack" Knapsack KnapsackSlice::from_config
    "The set of items with the highest total score (0/1 knapsack)." {
        bucket_size: i64 = BUCKET_SIZE,
            "Tokens per bucket; 1 is exact.";
        cell_limit: Option<u64> = CELL_LIMIT,
            "The most table cells accepted. Defaults to 50,000,000.";
        memory_limit: Option<usize> = MEMORY_LIMIT,
            "Accepts tables of any size that can be solved within this many bytes; excludes `cell_limit`.";
    }

    "quota" Quota QuotaSlice::from_config
    "Percentage shares per kind, filled by an inner slicer." {
        quotas: Vec<QuotaEntry> = required(Shape::Array(A_QUOTA, 0)),
            "The shares: each kind at most once, required shares at most 100 in total.";
        inner: Box<SlicerConfig> = INNER_SLICER,
            "The slicer that fills each share.";
    }

    "count_quota" CountQuota CountQuotaSlice::from_config
    "Item counts per kind; an inner slicer other than knapsack chooses the rest." {
        entries: Vec<CountQuotaEntry> = COUNT_ENTRIES,
            "The counts: each kind at most once.";
        scarcity: ScarcityBehavior = SCARCITY,
            "If a kind has fewer candidates than it requires: take those there are, or fail.";
        inner: Box<SlicerConfig> = INNER_SLICER,
            "The slicer that chooses the rest.";
    }

    "count_constrained_knapsack" CountConstrainedKnapsack CountConstrainedKnapsackSlice::from_config
    "Item counts per kind; a knapsack chooses the rest." {
        entries: Vec<CountQuotaEntry> = COUNT_ENTRIES,
            "The counts: each kind at most once.";
        scarcity: ScarcityBehavior = SCARCITY,
            "If a kind has fewer candidates than it requires: take those there are, or fail.";
        bucket_size: i64 = BUCKET_SIZE,
            "Tokens per bucket; 1 is exact.";
        cell_limit: Option<u64> = CELL_LIMIT,
            "The most table cells accepted. Defaults to 50,000,000.";
        memory_limit: Option<usize> = MEMORY_LIMIT,
            "Accepts tables of any size that can be solved within this many bytes; excludes `cell_limit`.";
    }

    "group" Group GroupSlice::from_config
    "Whole groups of items, named by the metadata `cupel:group`, through an inner slicer." {
        score: GroupScore = default(Shape::Choice(GROUP_SCORES), Literal::String("max")),
            "The score of a group: its best member's, the mean or the sum.";
        inner: Box<SlicerConfig> = INNER_SLICER,
            "The slicer that chooses among the groups.";
    }

    "near_duplicates" NearDuplicates NearDuplicateSlice::from_config
    "No item similar to a better one in the window, and only the newest result of each call (metadata `cupel:call`), through an inner slicer." {
        threshold: f64 = default(SHARE, Literal::Number(0.8)),
            "The least Jaccard similarity of near-duplicates.";
        shingle_size: usize = default(Shape::Integer(1, 64), Literal::Integer(3)),
            "The words per shingle.";
        inner: Box<SlicerConfig> = INNER_SLICER,
            "The slicer that chooses among the rest.";
    }

    "ladder" Ladder LadderSlice::from_config
    "Shortens items to their views, then drops items, until the rest fits." {
        steps: Vec<LadderStep> = required(Shape::Array(A_LADDER_STEP, 0)),
            "What is given up, in order.";
        marker_tokens: i64 = default(COUNT, Literal::Integer(0)),
            "The tokens reserved for a marker if an item is dropped.";
        gradual: bool = default(Shape::Bool, Literal::Bool(false)),
            "Whether items are shortened one at a time, lowest rank first, instead of all at once at each level.";
    }

    "choice" Choice ChoiceSlice::from_config
    "The items and views with the highest total score (multiple-choice knapsack)." {
        state_limit: Option<u64> = optional(Shape::Integer(1, i64::MAX)),
            "The most pairs of tokens and value examined. Defaults to 50,000,000.";
    }
}

impl SlicerConfig {
    /// Builds the `inner` slicer of another.
    #[expect(
        clippy::boxed_local,
        reason = "a recursive enum is boxed where it nests"
    )]
    pub(crate) fn into_inner(self: Box<Self>) -> Result<Box<dyn Slicer>, ConfigError> {
        self.into_built().map_err(|error| error.within("inner"))
    }
}

/// Describes, reads and writes an entry of a kind with a minimum and a maximum.
macro_rules! kind_entry {
    (
        $(#[$doc:meta])*
        $record:ident $entry:ident $name:literal $about:literal
        $min:ident: $min_field:expr, $min_about:literal;
        $max:ident: $max_field:expr, $max_about:literal;
    ) => {
        $(#[$doc])*
        pub static $record: Record = Record {
            name: $name,
            doc: $about,
            fields: &[
                required(Shape::Label).named("kind", "The kind."),
                $min_field.named(stringify!($min), $min_about),
                $max_field.named(stringify!($max), $max_about),
            ],
            nullable: false,
        };

        impl Data for $entry {
            fn read(node: &Node<'_>, _: Shape) -> Result<Self, ConfigError> {
                let fields = Fields::of(node, &$record)?;
                let (kind, min) = (fields.read("kind")?, fields.read(stringify!($min))?);
                let max = fields.read(stringify!($max))?;
                Self::new(kind, min, max).map_err(ConfigError::invalid)
            }

            fn write(&self) -> RawValue {
                object([
                    ("kind", self.kind().write()),
                    (stringify!($min), self.$min().write()),
                    (stringify!($max), self.$max().write()),
                ])
            }
        }
    };
}

/// The steps of the slicer `ladder`.
pub static LADDER_STEPS: Family = Family {
    name: "ladder_step",
    types: &[
        Record {
            name: "shorten",
            doc: "Caps the items of a kind: each is kept as its largest view within the cap.",
            fields: &[
                required(Shape::Label).named("kind", "The kind."),
                default(Shape::Bool, Literal::Bool(false)).named(
                    "mandatory",
                    "Whether the items with the metadata `cupel:mandatory` are capped, one at a time, or the others, all at once.",
                ),
                required(Shape::Array(&COUNT, 1)).named("levels", "The caps in tokens, in order."),
            ],
            nullable: false,
        },
        Record {
            name: "supersede",
            doc: "Caps the items that a newer result of the same call (metadata `cupel:call`) supersedes: each is kept as its largest view within the cap.",
            fields: &[
                required(Shape::Array(&COUNT, 1)).named("levels", "The caps in tokens, in order."),
            ],
            nullable: false,
        },
        Record {
            name: "drop",
            doc: "Drops the items without the metadata `cupel:mandatory`, group by group, lowest rank first.",
            fields: &[],
            nullable: false,
        },
    ],
};

impl Data for LadderStep {
    fn read(node: &Node<'_>, _: Shape) -> Result<Self, ConfigError> {
        let fields = Fields::of_family(node, &LADDER_STEPS)?;
        match fields.record_name() {
            "shorten" => Ok(Self::Shorten {
                kind: fields.read("kind")?,
                mandatory: fields.read("mandatory")?,
                levels: fields.read("levels")?,
            }),
            "supersede" => Ok(Self::Supersede {
                levels: fields.read("levels")?,
            }),
            _ => Ok(Self::Drop),
        }
    }

    fn write(&self) -> RawValue {
        let tag = |name: &str| ("type", RawValue::Text(name.to_owned()));
        match self {
            Self::Shorten {
                kind,
                mandatory,
                levels,
            } => object([
                tag("shorten"),
                ("kind", kind.write()),
                ("mandatory", mandatory.write()),
                ("levels", levels.write()),
            ]),
            Self::Supersede { levels } => object([tag("supersede"), ("levels", levels.write())]),
            Self::Drop => object([tag("drop")]),
        }
    }
}

kind_entry! {
    /// The share of a kind.
    QUOTA QuotaEntry "quota_entry"
    "The share of the target that a kind must and may have, in percent."
    require: default(PERCENT, Literal::Number(0.0)), "The least share, at most `cap`.";
    cap: default(PERCENT, Literal::Number(100.0)), "The largest share.";
}

kind_entry! {
    /// The counts of a kind.
    COUNT_ENTRY CountQuotaEntry "count_entry"
    "How many items of a kind there must and may be."
    require_count: required(COUNT), "The least number, at most `cap_count`.";
    cap_count: required(COUNT), "The largest number.";
}

family! {
    PLACERS "placer" "The placers." =>
    /// A placer as data: a row of [`registry::PLACERS`](super::registry::PLACERS).
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    PlacerConfig builds Box<dyn Placer>, Box::new;

    "chronological" Chronological ChronologicalPlacer
    "Oldest first, items without a timestamp last."

    "u-shaped" UShaped UShapedPlacer
    "The best scores at both ends, the worst in the middle."
}
