//! Answers as JSON.

use cupel::ContextItem;
use cupel_app::{Options, Prepared, Scope, Source};
use cupel_chat::Chat;

/// A request with numbers and keys that a JSON reader for values changes.
const CHAT: &str = r#"{"z": 1, "seed": 12345678901234567890123, "a": 1.0e400, "temperature": 0.10,
  "messages": [{"role": "user", "content": "Hello!", "extra": 1.50}, {"role": "assistant", "content": "Hi."},
  {"role": "user", "content": "What is 2 + 2?"}], "user": "\ud800"}"#;

fn answer(text: &str, budget: &str) -> String {
    let mut options = Options::default();
    options.budget.budget = Some(budget.into());
    let prepared = Prepared::new(Source::new("chat.json", text), &options, Scope::OneBudget);
    let prepared = prepared.unwrap();
    let fit = prepared.fit().unwrap();
    let answer = fit.answer().with_chat(&fit.text().unwrap()).unwrap();
    serde_json::to_string(&answer).unwrap()
}

#[test]
fn the_chat_in_an_answer_has_the_bytes_of_the_input() {
    assert!(answer(CHAT, "8k").ends_with(&format!("\"chat\":{CHAT}}}")));
}

#[test]
fn one_message_per_line_is_an_array_of_the_same_bytes() {
    let lines = "{\"role\": \"user\", \"content\": \"Hi!\", \"n\": 1.0}\n{\"role\": \"user\",  \"content\": \"Bye.\"}\n";
    let expected = "\"chat\":[{\"role\": \"user\", \"content\": \"Hi!\", \"n\": 1.0},{\"role\": \"user\",  \"content\": \"Bye.\"}]}";
    let answer = answer(lines, "8k");
    assert!(answer.ends_with(expected), "{answer}");
}

#[test]
fn a_parsed_chat_and_items_are_answered_as_their_texts() {
    let answer = |prepared: Prepared| {
        let fit = prepared.fit().unwrap();
        let text: serde_json::Value = serde_json::from_str(&fit.text().unwrap()).unwrap();
        (fit.answer().kept, text)
    };
    let mut options = Options::default();
    options.budget.budget = Some(34.into());
    let scope = Scope::OneBudget;
    let text =
        |text: &str| Prepared::new(Source::new("input.json", text), &options, scope).unwrap();

    let chat = r#"[{"role": "user", "content": "Hello!"}, {"role": "assistant", "content": "Hi, what can I do?"},
        {"role": "user", "content": "What is 2 + 2?"}]"#;
    let parsed = Chat::parse(chat, None).unwrap();
    let parsed = Prepared::from_chat("chat", parsed, &options, scope).unwrap();
    assert_eq!(answer(parsed), answer(text(chat)));

    let json = r#"[{"content": "a", "tokens": 20}, {"content": "b", "tokens": 20}]"#;
    let items: Vec<ContextItem> = serde_json::from_str(json).unwrap();
    let (kept, written) = answer(Prepared::from_items("items", items, &options, scope).unwrap());
    assert_eq!(kept, answer(text(json)).0);
    assert_eq!(written.as_array().unwrap().len(), kept.len());
}
