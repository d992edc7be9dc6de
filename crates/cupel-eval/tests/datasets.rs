//! Data sets from text: what is read, and what is wrong where.

use cupel_chat::Encoding;
use cupel_eval::{Dataset, DatasetProblem, Question, Transcript};

use crate::{dataset, line};

fn fault(text: &str) -> String {
    let error = Dataset::parse("mine", text, &Encoding::O200k).expect_err(text);
    error.to_string()
}

/// A line with these items and questions.
fn with(items: &str, questions: &str) -> String {
    format!(r#"{{"items": [{items}], "questions": [{questions}]}}"#)
}

const ITEM: &str = r#"{"content": "a", "tokens": 1}"#;
const QUESTION: &str = r#"{"query": "q", "evidence": [0]}"#;

#[test]
fn questions_without_evidence_and_blank_lines_are_skipped() {
    let questions = format!(r#"{QUESTION}, {{"query": "q"}}, {{"query": "q", "evidence": []}}"#);
    let text = format!("\u{feff}\n{}\n\n{}", with(ITEM, &questions), line("b", 1));
    let dataset = dataset("mine", &text);
    let size = dataset.size();
    assert_eq!((size.transcripts, size.questions, size.skipped), (2, 2, 2));
    let numbers: Vec<usize> = dataset.transcripts().iter().map(|it| it.line).collect();
    assert_eq!(numbers, [2, 4]);
}

#[test]
fn a_data_set_of_values_is_the_one_of_their_text() {
    let parsed = dataset("mine", &with(ITEM, r#"{"query": "q", "evidence": [0, 0]}"#));
    let built = Transcript {
        line: 1,
        items: parsed.transcripts()[0].items.clone(),
        questions: vec![
            Question::new("q", vec![0, 0]),
            Question::new("no evidence", vec![]),
        ],
    };
    let built = Dataset::new("mine", vec![built]);
    assert_eq!(built.transcripts(), parsed.transcripts());
    assert_eq!((built.size().skipped, parsed.size().skipped), (1, 0));
    assert_eq!(built.transcripts()[0].questions[0].evidence(), [0]);
}

/// Digits that a binary64 does not hold are kept.
#[test]
fn sessions_become_metadata_and_leave_the_item_as_it_is() {
    let item = r#"{"content": "a", "session": "2 ü", "tokens": 9007199254740993}"#;
    let number = r#"{"session": 12, "content": "b", "tokens": 1}"#;
    let dataset = dataset(
        "mine",
        &with(&format!("{item}, {number}, {ITEM}"), QUESTION),
    );
    let items = &dataset.transcripts()[0].items;
    let sessions: Vec<_> = items
        .iter()
        .map(|item| item.metadata().get("cupel:session").map(String::as_str))
        .collect();
    assert_eq!(sessions, [Some("2 ü"), Some("12"), None]);
    assert_eq!(items[0].tokens(), 9_007_199_254_740_993);
}

/// The text that is not stated is counted by the caller's counter: `a` is one token of `o200k_base`.
#[test]
fn tokens_that_are_not_stated_are_counted() {
    let dataset = dataset("mine", &with(r#"{"content": "a"}"#, QUESTION));
    assert_eq!(dataset.transcripts()[0].items[0].tokens(), 1);
}

#[test]
fn faults_have_their_line_column_and_path() {
    let good = line("a", 0);
    let cases = [
        (
            with(r#"{"content": "ä", "session": 1, "tokens": "1"}"#, QUESTION),
            "line 3, column 53, items[0].tokens: expected an integer, got the string \"1\"",
        ),
        (
            with(r#"{"content": "a", "session": [], "tokens": 1}"#, QUESTION),
            "line 3, column 12, items[0].session: expected a string or a number",
        ),
        (
            with(r#"{"content": "a", "tokns": 1}"#, QUESTION),
            "line 3, column 29, items[0].tokns: unknown key \"tokns\"; did you mean \"tokens\"?",
        ),
        (
            with(ITEM, r#"{"evidence": [0]}"#),
            "line 3, column 58, questions[0]: missing `query`",
        ),
        (
            with("", QUESTION),
            "line 3, column 1, items: the transcript has no items",
        ),
        (
            format!(r#"{{"items": [{ITEM}]}}"#),
            "line 3, column 1: missing `questions`",
        ),
        (
            r#"{"items": ["#.to_owned(),
            "line 3, column 11: EOF while parsing a list",
        ),
    ];
    for (line, expected) in cases {
        assert_eq!(fault(&format!("{good}\n{line}\n")), expected);
    }
    let twice = with(
        r#"{"content": "a", "content": "b", "session": 1, "tokens": 1}"#,
        QUESTION,
    );
    let once = twice.replace(r#", "session": 1"#, "");
    assert_eq!(fault(&twice), fault(&once));
    assert!(fault(&once).contains("duplicate"), "{}", fault(&once));
}

#[test]
fn a_data_set_needs_evidence() {
    for text in ["", "\n", &with(ITEM, r#"{"query": "q"}"#)] {
        let error = Dataset::parse("mine", text, &Encoding::O200k).expect_err(text);
        assert_eq!(
            (error.line, &error.problem),
            (0, &DatasetProblem::NoEvidence)
        );
        assert_eq!(error.to_string(), "no question has evidence");
    }
}
