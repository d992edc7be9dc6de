//! The measures of two tiny conversations, computed by hand.
//!
//! As in `bills.rs`, a message has 4 tokens and its words, and a request 3 more:
//!
//! ```text
//! tokens      first: 10 user, 20 assistant, 10 user, 20 assistant, 10 user; 73 with the request
//!             second: 40 user; 43 with the request
//! request 1   13 tokens    request 2   43 tokens    request 3   73 tokens
//! ```

use cupel::{
    ChronologicalPlacer, ContextBudget, ContextItem, CupelError, Policy, RecencyScorer, ScoredItem,
    Slicer,
};
use cupel_chat::Chat;
use cupel_eval::{
    Conversation, ConversationError, CriteriaError, CriteriaMeasure, CriteriaReport, EvalPolicy,
    Method, Share, criteria, parse_conversations, unobserved,
};
use serde_json::{Value, json};

use crate::bills::Words;

/// A message of `tokens` tokens, whose first word is `word`.
fn message(role: &str, tokens: usize, word: &str) -> Value {
    let words: Vec<&str> = [word].into_iter().chain(vec!["and"; tokens - 5]).collect();
    json!({"role": role, "content": words.join(" ")})
}

fn line(messages: &[Value], terms: &[(&[&str], f64)]) -> String {
    let terms: Vec<Value> = terms
        .iter()
        .map(|(forms, weight)| json!({"forms": forms, "weight": weight}))
        .collect();
    format!(
        "{}\n",
        json!({"id": 7, "messages": messages, "terms": terms})
    )
}

fn conversations() -> Vec<Conversation> {
    let first = line(
        &[
            message("user", 10, "Taxi"),
            message("assistant", 20, "Bus"),
            message("user", 10, "Walking"),
            message("assistant", 20, "Tram"),
            message("user", 10, "Train"),
        ],
        &[
            (&["taxi"], 1.0),
            (&["walk", "walking"], 2.0),
            (&["tram"], 5.0),
        ],
    );
    let second = line(&[message("user", 40, "Car")], &[(&["car"], 1.0)]);
    parse_conversations(&(first + &second), "", None).expect("two conversations")
}

fn measured(method: Method, share: &str) -> CriteriaReport {
    let shares = [share.parse().expect("a share")];
    let report = criteria(
        &conversations(),
        &[method],
        &shares,
        &Words,
        &mut unobserved,
    );
    report.expect("a report")
}

fn is_close(report: &CriteriaReport, measure: CriteriaMeasure, expected: f64) {
    let estimate = report.results[0].estimates.get(measure);
    let value = estimate.expect("a value").value;
    assert!(
        (value - expected).abs() < 1e-12,
        "{measure:?}: {value} {expected}"
    );
}

#[test]
fn the_whole_conversation_has_every_term_and_no_bill() {
    let report = measured(Method::Suffix, "100");
    assert_eq!((report.conversations, report.requests), (2, 4));
    for measure in [
        CriteriaMeasure::Recall,
        CriteriaMeasure::Fill,
        CriteriaMeasure::Bill,
    ] {
        is_close(&report, measure, 1.0);
    }
    is_close(&report, CriteriaMeasure::Failed, 0.0);
}

/// The budgets are 43 of 73 tokens and 25 of 43. The window of the first conversation is `Walking`, `Tram` and
/// `Train`, with 43 tokens; the second one has no window.
#[test]
fn a_suffix_keeps_the_terms_of_its_messages() {
    let report = measured(Method::Suffix, "60%");
    // 7 of 8, and 43 of 43 tokens, as means with the 0 of the second one.
    is_close(&report, CriteriaMeasure::Recall, 7.0 / 16.0);
    is_close(&report, CriteriaMeasure::Fill, 0.5);
    is_close(&report, CriteriaMeasure::Failed, 0.5);
    // Request 1 has 13 tokens and request 2 has 43, of which 13 are cached. The window of request 3 shares the 3 tokens
    // of the request only; without trimming 43 are cached. The second conversation is sent as it is.
    let bill = 13.0 + (1.3 + 30.0) + (0.3 + 40.0) + 43.0;
    let untrimmed = 13.0 + (1.3 + 30.0) + (4.3 + 30.0) + 43.0;
    is_close(&report, CriteriaMeasure::Bill, bill / untrimmed);
}

/// Fails.
struct Fails;

impl Slicer for Fails {
    fn slice(&self, _: &[ScoredItem], _: &ContextBudget) -> Result<Vec<ContextItem>, CupelError> {
        Err(CupelError::SlicerConfig("no window".into()))
    }
}

#[test]
fn a_request_that_cannot_be_trimmed_keeps_nothing_and_is_sent_as_it_is() {
    let policy = Policy::new(RecencyScorer, Fails, ChronologicalPlacer);
    let report = measured(Method::Fit(EvalPolicy::new("fails", policy)), "60");
    is_close(&report, CriteriaMeasure::Failed, 1.0);
    is_close(&report, CriteriaMeasure::Recall, 0.0);
    is_close(&report, CriteriaMeasure::Fill, 0.0);
    is_close(&report, CriteriaMeasure::Bill, 1.0);
}

#[test]
fn there_must_be_a_conversation() {
    let shares: [Share; 0] = [];
    let report = criteria(&[], &[Method::Suffix], &shares, &Words, &mut unobserved);
    assert_eq!(report, Err(CriteriaError::NoConversation));
}

#[test]
fn invalid_conversations_have_their_place_and_the_fix() {
    let user = message("user", 6, "Car");
    let with_terms = |terms: &str| {
        let good = line(std::slice::from_ref(&user), &[(&["car"], 1.0)]);
        format!(r#"{good}{{"messages": [{user}], "terms": {terms}}}"#)
    };
    // `{"messages": [` has 14 characters and `], "terms": [` has 13.
    let column = 14 + 13 + 1 + user.to_string().chars().count();
    for (terms, column, path, problem) in [
        (
            "[]",
            1,
            "",
            "missing `terms`: expected an array of at least one term",
        ),
        (
            "{}",
            1,
            "",
            "missing `terms`: expected an array of at least one term",
        ),
        (
            "[7]",
            column,
            "terms[0]",
            "expected an object with `forms` and `weight`",
        ),
        (
            r#"[{"forms": ["car"], "weight": 0}]"#,
            column,
            "terms[0].weight",
            "expected a number above 0",
        ),
        (
            r#"[{"forms": [], "weight": 1}]"#,
            column,
            "terms[0].forms",
            "expected an array of at least one word",
        ),
        (
            r#"[{"forms": ["car", "Red car"], "weight": 1}]"#,
            column,
            "terms[0].forms[1]",
            "`Red car` is not one word in lower case: at least 3 letters, or digits",
        ),
    ] {
        let error = parse_conversations(&with_terms(terms), "", None).expect_err(terms);
        let shown = match path {
            "" => format!("line 2, column {column}: {problem}"),
            path => format!("line 2, column {column}, {path}: {problem}"),
        };
        assert_eq!(error.to_string(), shown);
    }
    let answered = line(&[user, message("assistant", 6, "Yes")], &[(&["car"], 1.0)]);
    let error = parse_conversations(&answered, "", None).expect_err("an answer");
    assert_eq!(
        error.to_string(),
        "line 1, column 1: the last message is not a user turn; end each conversation on the turn that was judged"
    );
    let error = parse_conversations("{\"terms\": []}", "", None).expect_err("no chat");
    assert!(matches!(error, ConversationError::Chat(_)), "{error}");
}

/// A conversation inside of another document; its terms are beside the document's fields.
#[test]
fn a_pointer_names_the_chat_of_each_line() {
    let chat = json!({"messages": [message("user", 6, "Car")]});
    let terms = json!([{"forms": ["car"], "weight": 1}]);
    let line = json!({"log": chat, "terms": terms}).to_string();
    let text = format!("\u{feff}{line}\n\n{line}\n");
    let found = parse_conversations(&text, "/log", None).expect("two conversations");
    assert_eq!(found.len(), 2);
    let chat = Chat::parse_at(&line, "/log", None).expect("a chat");
    assert_eq!(chat.len(), 1);
}
