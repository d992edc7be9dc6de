//! One chat, one budget, one window: with candidates made for the budget and with candidates made for
//! every budget. A larger budget keeps at least what a smaller one keeps.
//!
//! The fuzz target `windows` shares this file.

use cupel::{ContextBudget, Policy};
use cupel_chat::{Candidates, Chat, Fitted, TokenCounter};

/// What a window has of each message, by position: its tokens and its changed texts; `None` for a
/// dropped one.
type Messages = Vec<Option<(i64, Vec<(String, String)>)>>;

fn messages(chat: &Chat, candidates: &Candidates, fitted: &Fitted<'_>) -> Messages {
    let mut messages: Messages = vec![None; chat.len()];
    for &index in &fitted.kept {
        messages[index] = Some((candidates[index].tokens(), Vec::new()));
    }
    for short in &fitted.shortened {
        messages[short.index] = Some((short.tokens, short.texts.clone()));
    }
    messages
}

/// Checks the windows of a chat at some budgets, in ascending order.
///
/// Both ways to make the candidates give the same window, or the same error. Each message of a window is in the next
/// one with at least as many tokens.
pub(crate) fn check(
    chat: &Chat,
    policy: &Policy,
    counter: &dyn TokenCounter,
    budgets: impl IntoIterator<Item = i64>,
) -> Result<(), String> {
    let Ok(candidates) = chat.candidates_for(policy, None, counter) else {
        return Ok(());
    };
    let mut before: Option<(i64, Messages)> = None;
    for tokens in budgets {
        let budget = ContextBudget::with_target(tokens, tokens).expect("a positive budget");
        let one = chat.fit(policy, &budget, counter);
        let any = chat.fit_candidates(policy, &budget, &candidates, counter);
        let (one, any) = match (one, any) {
            (Ok(one), Ok(any)) => (one, any),
            (Err(one), Err(any)) if one == any => match before {
                Some((smaller, _)) => {
                    return Err(format!("a window at {smaller}, at {tokens} {one}"));
                }
                None => continue,
            },
            (one, any) => {
                let one = one.map(|fitted| fitted.kept);
                let any = any.map(|fitted| fitted.kept);
                return Err(format!("at {tokens} {one:?}, for any budget {any:?}"));
            }
        };
        let kept = messages(chat, &candidates, &any);
        let differs = |index: &usize| messages(chat, &candidates, &one)[*index] != kept[*index];
        if let Some(index) = (0..chat.len()).find(differs) {
            let one = &messages(chat, &candidates, &one)[index];
            let any = &kept[index];
            return Err(format!(
                "at {tokens} message {index} is {one:?}, for any budget {any:?}"
            ));
        }
        if (&one.markers, one.tokens_after) != (&any.markers, any.tokens_after) {
            return Err(format!("at {tokens} {one:?}, for any budget {any:?}"));
        }
        if one.tokens_after > tokens {
            return Err(format!("{} tokens at {tokens}", one.tokens_after));
        }
        if let Some((smaller, before)) = before {
            let tokens_of = |window: &Messages, index: usize| match &window[index] {
                Some((tokens, _)) => *tokens,
                None => -1,
            };
            let is_less = |&index: &usize| tokens_of(&kept, index) < tokens_of(&before, index);
            if let Some(index) = (0..chat.len()).find(is_less) {
                let (less, more) = (&kept[index], &before[index]);
                return Err(format!(
                    "message {index} is {more:?} at {smaller} and {less:?} at {tokens}"
                ));
            }
        }
        before = Some((tokens, kept));
    }
    Ok(())
}
