//! Names of spans, attributes and events.

use cupel::PipelineStage;

pub(crate) const ROOT: &str = "cupel.pipeline";
pub(crate) const MAX_TOKENS: &str = "cupel.budget.max_tokens";
pub(crate) const VERBOSITY: &str = "cupel.verbosity";
pub(crate) const COMPACTED: &str = "gen_ai.conversation.compacted";
pub(crate) const TOKENS_BEFORE: &str = "cupel.tokens.before";
pub(crate) const TOKENS_AFTER: &str = "cupel.tokens.after";
pub(crate) const ERROR_TYPE: &str = "error.type";

/// The prefix of a stage span's name; a dot and the stage's name follow.
pub(crate) const STAGE: &str = "cupel.stage";
pub(crate) const STAGE_NAME: &str = "cupel.stage.name";
pub(crate) const ITEM_COUNT_IN: &str = "cupel.stage.item_count_in";
pub(crate) const ITEM_COUNT_OUT: &str = "cupel.stage.item_count_out";

pub(crate) const EXCLUSION_COUNT: &str = "cupel.exclusion.count";
pub(crate) const EXCLUSION: &str = "cupel.exclusion";
pub(crate) const EXCLUSION_REASON: &str = "cupel.exclusion.reason";
pub(crate) const EXCLUSION_ITEM_KIND: &str = "cupel.exclusion.item_kind";
pub(crate) const EXCLUSION_ITEM_TOKENS: &str = "cupel.exclusion.item_tokens";

pub(crate) const INCLUDED: &str = "cupel.item.included";
pub(crate) const ITEM_KIND: &str = "cupel.item.kind";
pub(crate) const ITEM_TOKENS: &str = "cupel.item.tokens";
pub(crate) const ITEM_SCORE: &str = "cupel.item.score";
pub(crate) const ITEM_ORIGINAL_TOKENS: &str = "cupel.item.original_tokens";

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
