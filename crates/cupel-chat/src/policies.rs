//! The policies for chats.

use cupel::Policy;

/// Returns the default policy for chats, which go on request by request; the preset `agent`.
///
/// System messages, the task (the first user turn), the last user turn and the newest step (the last
/// tool calls with their results) always stay. A request over the budget is cut deeper than it must, and the next
/// ones follow that cut until they exceed the budget again, so that a provider's prompt cache reuses the prefix. No
/// state is kept: the cuts are found again by replaying the history. Old tool results give way first and deeply,
/// then old answers mildly, then the oldest messages; each oldest first.
///
/// ```
/// assert!(cupel_chat::default_policy().chat().replay);
/// ```
pub fn default_policy() -> Policy {
    preset("agent")
}

/// Returns the policy for a single request, after which the chat does not go on; the preset `single`.
///
/// The window is chosen anew, so it fills the budget, and a larger budget never drops or shortens what a smaller
/// one kept. What always stays is as for the [`default_policy`]. To fit a budget, the policy gives up in a fixed
/// order:
///
/// 1. Results that a newer result of the same call (name and arguments) supersedes are shortened to 100 tokens.
/// 2. Old tool results are shortened to 6,400 tokens, then to half as many again and again, down to 100.
/// 3. Old assistant texts without tool calls are shortened to 400, 200 and 100 tokens, then results and texts to 60,
///    then texts to 30.
/// 4. The oldest messages are dropped.
/// 5. The task and the results of the newest step are shortened.
///
/// At each level one message is shortened after the other, oldest first. The first state that fits is taken.
///
/// ```
/// assert!(!cupel_chat::single_policy().chat().replay);
/// ```
pub fn single_policy() -> Policy {
    preset("single")
}

/// Returns the policy that keeps the newest messages as they are and drops the others; the preset
/// `newest`.
pub fn newest_policy() -> Policy {
    preset("newest")
}

fn preset(name: &str) -> Policy {
    Policy::preset(name)
        .expect("the preset is part of cupel and needs no feature; a test builds it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policies_rank_by_time_and_two_of_them_are_ladders() {
        let policies = [default_policy(), single_policy(), newest_policy()];
        assert!(
            policies
                .iter()
                .all(|policy| policy.scorer().ranks_by_time())
        );
        let ladders = policies.map(|policy| policy.slicer().ladder().is_some());
        assert_eq!(ladders, [true, true, false]);
    }
}
