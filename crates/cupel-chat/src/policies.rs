//! The policies for chats.

use cupel::{
    ChronologicalPlacer, ContextKind, LadderSlice, LadderStep, Policy, RankSlice, RecencyScorer,
};

/// Returns the default policy for chats: shorten first, then drop the oldest; the preset `agent`.
///
/// System messages, the task (the first user turn), the last user turn and the newest step (the last
/// tool calls with their results) always stay. To fit a budget, the policy gives up in a fixed order:
///
/// 1. Results that a newer result of the same call (name and arguments) supersedes are shortened to 100 tokens.
/// 2. Old tool results are shortened to 6,400 tokens, then to half as many again and again, down to 100.
/// 3. Old assistant texts without tool calls are shortened to 100 tokens, then results and texts to 60,
///    then texts to 30.
/// 4. The oldest messages are dropped.
/// 5. The task and the results of the newest step are shortened.
///
/// The first state that fits is taken, so a larger budget never drops or shortens what a smaller one
/// kept.
///
/// ```
/// assert_eq!(cupel_chat::default_policy().scorer().scorer_name(), "RecencyScorer");
/// ```
pub fn default_policy() -> Policy {
    ladder(RESULTS, (1.0, 1.0))
}

/// Returns the policy for a session that remembers its decisions ([`Fitter`](crate::Fitter)); the preset
/// `session`.
///
/// As the [`default_policy`], but if the budget is exceeded it shortens old results and texts to 100,
/// 60 and 30 tokens until 70 % of the budget is used, or drops messages until 90 % is used. The next windows
/// then only grow, and the provider's prompt cache can reuse their prefix.
pub fn session_policy() -> Policy {
    ladder(&[100], (0.7, 0.9))
}

/// Returns the policy that keeps the newest messages as they are and drops the others; the preset
/// `newest`.
pub fn newest_policy() -> Policy {
    Policy::new(RecencyScorer, RankSlice, ChronologicalPlacer)
}

/// The levels of old tool results, before texts are shortened.
const RESULTS: &[i64] = &[6_400, 3_200, 1_600, 800, 400, 200, 100];

fn ladder(results: &[i64], (shorten_to, drop_to): (f64, f64)) -> Policy {
    let (result, text) = (ContextKind::tool_output, ContextKind::message);
    let steps = vec![
        LadderStep::Supersede { levels: vec![100] },
        LadderStep::shorten(result(), results),
        LadderStep::shorten(text(), [100]),
        LadderStep::shorten(result(), [60]),
        LadderStep::shorten(text(), [60, 30]),
        LadderStep::Drop,
        LadderStep::shorten_mandatory(text(), [4_000, 2_000, 1_000]),
        LadderStep::shorten_mandatory(result(), [6_400, 3_200, 1_600, 800, 400, 200, 100, 50, 25]),
        LadderStep::shorten_mandatory(text(), [500, 250, 100]),
    ];
    let ladder = LadderSlice::new(steps).with_marks(shorten_to, drop_to);
    let ladder = ladder.expect("the marks are constants in range");
    Policy::new(RecencyScorer, ladder, ChronologicalPlacer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policies_are_the_presets_of_their_names() {
        for (name, policy) in [
            ("agent", default_policy()),
            ("session", session_policy()),
            ("newest", newest_policy()),
        ] {
            let preset = Policy::preset(name).unwrap();
            assert_eq!(format!("{policy:?}"), format!("{preset:?}"), "{name}");
        }
    }
}
