//! Recorded sessions of agents, if `CUPEL_TAU_BENCH` names a file with one OpenAI Chat request per line.

use std::collections::BTreeMap;

use cupel::ContextBudget;
use cupel_chat::{Chat, Encoding, FitError, Role, Shape, newest_policy, single_policy};

use crate::valid;

#[test]
fn recorded_sessions_fit_at_every_turn() {
    let Ok(path) = std::env::var("CUPEL_TAU_BENCH") else {
        return;
    };
    let file = std::fs::read_to_string(&path).expect("CUPEL_TAU_BENCH names a file");
    let counter = Encoding::O200k;
    let policy = newest_policy();
    let (mut sessions, mut fits, mut too_large) = (0, 0, 0);
    for line in file.lines() {
        sessions += 1;
        let whole = Chat::parse(line, None).unwrap();
        assert_eq!(whole.shape(), Shape::OpenAi);
        let items = whole.items(&counter);
        let fixed: i64 = whole
            .messages()
            .filter(|message| message.role() == Role::System)
            .map(|message| items[message.index()].tokens())
            .sum::<i64>()
            + whole.overhead(&counter);
        let all = valid::messages(line);
        for end in 1..=all.len() {
            if !matches!(all[end - 1]["role"].as_str(), Some("user" | "tool")) {
                continue;
            }
            let prefix = whole.write(&(0..end).collect::<Vec<_>>());
            let chat = Chat::parse(&prefix, None).unwrap();
            for budget in [500, 1_000, 2_000, 4_000] {
                let tokens = budget + fixed;
                let limits = ContextBudget::with_target(tokens, tokens).unwrap();
                let fitted = match chat.fit(&policy, &limits, &counter) {
                    Ok(fitted) => fitted,
                    Err(FitError::TooLarge { needed, .. }) => {
                        assert!(needed > tokens);
                        too_large += 1;
                        continue;
                    }
                    Err(error) => panic!("{error}"),
                };
                fits += 1;
                let output = fitted.to_json();
                let kept = valid::messages(&output);
                assert_eq!(valid::objection(Shape::OpenAi, &kept), None);
                assert!(valid::is_subsequence(&kept, &all[..end]));
                let is_user = |message: &&serde_json::Value| message["role"] == "user";
                let last = all[..end].iter().rfind(is_user);
                assert_eq!(kept.iter().rfind(is_user), last);
                let again = Chat::parse(&output, Some(Shape::OpenAi)).unwrap();
                assert!(again.tokens(&counter) <= tokens);
                assert_eq!(again.tokens(&counter), fitted.tokens_after);
            }
        }
    }
    assert!(sessions > 0 && fits > 0);
    println!(
        "{sessions} sessions, {fits} fits, {too_large} where the mandatory messages exceed the budget"
    );
}

/// Growing budgets keep every message at least as long, and always the task and the newest step.
#[test]
fn windows_of_recorded_sessions_are_monotone() {
    let Ok(path) = std::env::var("CUPEL_TAU_BENCH") else {
        return;
    };
    let file = std::fs::read_to_string(&path).expect("CUPEL_TAU_BENCH names a file");
    let (counter, policy) = (Encoding::O200k, single_policy());
    let mut pairs = 0;
    for line in file.lines() {
        let chat = Chat::parse(line, None).unwrap();
        let candidates = chat.candidates_for(&policy, None, &counter).unwrap();
        let all = valid::messages(line);
        let is_call = |message: &serde_json::Value| !message["tool_calls"].is_null();
        let (task, newest) = (
            all.iter().position(|message| message["role"] == "user"),
            all.iter().rposition(is_call),
        );
        let mut smaller: BTreeMap<usize, i64> = BTreeMap::new();
        let whole = chat.tokens(&counter);
        for tokens in (whole / 10..=whole).step_by(61) {
            let budget = ContextBudget::with_target(tokens, tokens).unwrap();
            let Ok(fitted) = chat.fit_candidates(&policy, &budget, &candidates, &counter) else {
                assert!(smaller.is_empty(), "a smaller budget was enough");
                continue;
            };
            assert!(fitted.tokens_after <= tokens);
            for index in [task, newest].into_iter().flatten() {
                assert!(fitted.kept.contains(&index), "message {index} at {tokens}");
            }
            let kept = fitted
                .kept
                .iter()
                .map(|&index| (index, candidates[index].tokens()));
            let mut kept: BTreeMap<usize, i64> = kept.collect();
            kept.extend(
                fitted
                    .shortened
                    .iter()
                    .map(|short| (short.index, short.tokens)),
            );
            for (index, tokens) in &smaller {
                assert!(kept.get(index) >= Some(tokens), "message {index}");
            }
            pairs += usize::from(!smaller.is_empty());
            smaller = kept;
        }
    }
    println!("{pairs} pairs of budgets");
}
