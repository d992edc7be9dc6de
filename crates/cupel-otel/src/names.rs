//! Names of spans, attributes and events, as the table of the [crate documentation](crate#attributes-and-events) lists
//! them.

use cupel::PipelineStage;

/// The root span.
pub const ROOT: &str = "cupel.pipeline";
/// `max_tokens` of the budget.
pub const MAX_TOKENS: &str = "cupel.budget.max_tokens";
/// The tier.
pub const VERBOSITY: &str = "cupel.verbosity";
/// Whether items were excluded or shortened.
pub const COMPACTED: &str = "gen_ai.conversation.compacted";
/// The tokens of all candidates.
pub const TOKENS_BEFORE: &str = "cupel.tokens.before";
/// The tokens of the window.
pub const TOKENS_AFTER: &str = "cupel.tokens.after";
/// The code of a failed run's error.
pub const ERROR_TYPE: &str = "error.type";

/// The prefix of a stage span's name; a dot and the stage's name follow.
pub const STAGE: &str = "cupel.stage";
/// The stage's name.
pub const STAGE_NAME: &str = "cupel.stage.name";
/// The number of items that entered a stage.
pub const ITEM_COUNT_IN: &str = "cupel.stage.item_count_in";
/// The number of items that left a stage.
pub const ITEM_COUNT_OUT: &str = "cupel.stage.item_count_out";

/// The number of items that a stage excluded.
pub const EXCLUSION_COUNT: &str = "cupel.exclusion.count";
/// The event of an excluded item.
pub const EXCLUSION: &str = "cupel.exclusion";
/// Why an item is excluded.
pub const EXCLUSION_REASON: &str = "cupel.exclusion.reason";
/// The kind of an excluded item.
pub const EXCLUSION_ITEM_KIND: &str = "cupel.exclusion.item_kind";
/// The tokens of an excluded item.
pub const EXCLUSION_ITEM_TOKENS: &str = "cupel.exclusion.item_tokens";

/// The event of an item of the window.
pub const INCLUDED: &str = "cupel.item.included";
/// The kind of an item of the window.
pub const ITEM_KIND: &str = "cupel.item.kind";
/// The tokens of an item of the window.
pub const ITEM_TOKENS: &str = "cupel.item.tokens";
/// The score of an item of the window.
pub const ITEM_SCORE: &str = "cupel.item.score";
/// The tokens of a shortened item in full.
pub const ITEM_ORIGINAL_TOKENS: &str = "cupel.item.original_tokens";

/// Returns the stage's name in lower case (OTEL-5).
pub(crate) fn stage(stage: PipelineStage) -> &'static str {
    match stage {
        PipelineStage::Classify => "classify",
        PipelineStage::Score => "score",
        PipelineStage::Deduplicate => "deduplicate",
        PipelineStage::Slice => "slice",
        PipelineStage::Place => "place",
        _ => "unknown",
    }
}
