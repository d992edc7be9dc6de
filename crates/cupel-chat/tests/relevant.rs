//! The preset `relevant`: older messages by their relevance to the question.

use cupel::{ContextBudget, Policy};
use cupel_chat::{Chat, Encoding, Shape};

const COUNTER: Encoding = Encoding::O200k;

fn budget(tokens: i64) -> ContextBudget {
    ContextBudget::with_target(tokens, tokens).unwrap()
}

fn relevant() -> Policy {
    Policy::preset("relevant").unwrap()
}

/// A long chat about small talk with one exchange about a key at 20, and a question at the end.
fn chat(question: &str) -> Chat {
    let mut messages = vec![serde_json::json!({"role": "system", "content": "Be brief."})];
    for turn in 0..60 {
        let role = ["user", "assistant"][turn % 2];
        let text = match turn {
            20 => "I put the spare key under the blue flower pot".to_owned(),
            21 => "Noted, I will remind you if you ask.".to_owned(),
            _ => format!("Some words about the weather of day {turn}, which was fine and dry."),
        };
        messages.push(serde_json::json!({"role": role, "content": text}));
    }
    messages.push(serde_json::json!({"role": "user", "content": question}));
    Chat::from_messages(&messages, Shape::OpenAi).unwrap()
}

#[test]
fn the_exchange_that_answers_the_question_stays() {
    let chat = chat("Where did I leave the spare key?");
    let fitted = chat.fit(&relevant(), &budget(400), &COUNTER).unwrap();
    // System, task, the exchange, the question.
    for index in [0, 1, 21, 22, 61] {
        assert!(fitted.kept.contains(&index), "{index} of {:?}", fitted.kept);
    }
    assert!(fitted.tokens_after <= 400);
    let newest = Policy::preset("newest").unwrap();
    let fitted = chat.fit(&newest, &budget(400), &COUNTER).unwrap();
    assert!(!fitted.kept.contains(&21));
}

#[test]
fn the_newest_messages_get_their_share() {
    let chat = chat("Where did I leave the spare key?");
    let fitted = chat.fit(&relevant(), &budget(800), &COUNTER).unwrap();
    let newest = fitted.kept.iter().rev().zip((0..chat.len()).rev());
    let newest = newest.take_while(|(kept, index)| *kept == index).count();
    let items = chat.items(&COUNTER);
    let tokens = items[chat.len() - newest..].iter();
    let tokens: i64 = tokens.map(cupel::ContextItem::tokens).sum();
    // 40 % of what the mandatory messages leave, at most one message less.
    assert!(
        (240..=500).contains(&tokens),
        "{newest} messages of {tokens} tokens"
    );
}

#[test]
fn gaps_are_marked_largest_first() {
    let chat = chat("Where did I leave the spare key?");
    let fitted = chat.fit(&relevant(), &budget(400), &COUNTER).unwrap();
    let mut gaps: Vec<usize> = Vec::new();
    let mut next = 0;
    for &index in &fitted.kept {
        gaps.extend((index > next).then_some(index - next));
        next = index + 1;
    }
    let marked: Vec<usize> = fitted.markers.iter().map(|marker| marker.omitted).collect();
    assert!(!marked.is_empty());
    let least = marked.iter().min().unwrap();
    let larger = gaps.iter().filter(|&gap| gap > least);
    larger.for_each(|gap| assert!(marked.contains(gap), "{gaps:?}, marked {marked:?}"));
    assert!(fitted.to_json().contains("[omitted: "));
}

#[test]
fn an_explicit_query_replaces_the_last_user_turn() {
    let chat = chat("Thanks!");
    let kept = |policy: &Policy| chat.fit(policy, &budget(400), &COUNTER).unwrap().kept;
    assert!(!kept(&relevant()).contains(&21));
    assert!(kept(&relevant().with_query("spare key")).contains(&21));
}

#[test]
fn a_sweep_equals_one_fit_per_budget() {
    let chat = chat("Where did I leave the spare key?");
    let policy = relevant();
    let candidates = chat.candidates_for(&policy, None, &COUNTER).unwrap();
    let pipeline = chat.policy_over(&policy, &candidates);
    let sweep = pipeline
        .sweep(&candidates, &budget(2_000), 150..=1_600)
        .unwrap();
    for tokens in (150..=1_600).step_by(37) {
        let fitted = chat.fit(&policy, &budget(tokens), &COUNTER).unwrap();
        let step = sweep
            .steps
            .iter()
            .rfind(|step| step.from <= tokens)
            .unwrap();
        // The request overhead is an item of its own.
        assert_eq!(step.included, fitted.kept.len() + 1, "budget {tokens}");
    }
}

#[test]
fn a_chat_without_a_user_turn_says_that_the_query_is_missing() {
    let assistant = serde_json::json!({"role": "assistant", "content": "words ".repeat(90)});
    let chat = Chat::from_messages(&[&assistant, &assistant], Shape::OpenAi).unwrap();
    let error = chat.fit(&relevant(), &budget(120), &COUNTER).unwrap_err();
    assert!(error.to_string().contains("has no query"), "{error}");
}
