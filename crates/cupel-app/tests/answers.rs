//! Answers as JSON.

use cupel_app::{Options, Prepared, Scope, Source};

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
