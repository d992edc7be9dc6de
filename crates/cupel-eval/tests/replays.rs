//! Replays of recorded runs.

use cupel::{
    ChronologicalPlacer, ContextBudget, ContextItem, CupelError, Policy, RecencyScorer, ScoredItem,
    Slicer,
};
use cupel_chat::{Chat, Encoding};
use cupel_eval::{
    Billing, EvalPolicy, Method, ReplayError, ReplayMeasure, ReplayReport, RunsError, parse_runs,
    replay, unobserved,
};

use crate::later;

/// Four messages; the call of the last one names the parcel of the first.
const MESSAGES: [&str; 4] = [
    r#"{"role": "user", "content": "Please track parcel PX-1001 for me."}"#,
    r#"{"role": "assistant", "content": "I will look it up. One moment."}"#,
    r#"{"role": "user", "content": "Thanks."}"#,
    r#"{"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "track", "arguments": "{\"parcel\": \"PX-1001\"}"}}]}"#,
];

fn replayed(runs: &[Chat], method: Method, budget: i64) -> ReplayReport {
    let report = replay(
        runs,
        &[method],
        &[budget],
        &Billing::default(),
        &Encoding::O200k,
        &mut unobserved,
    );
    report.expect("a replay")
}

#[test]
fn one_message_per_line_is_one_run() {
    let parse = |text: &str| parse_runs(text, "", None).expect(text);
    let lines = parse(&MESSAGES.join("\n"));
    let list = parse(&format!("[{}]", MESSAGES.join(",\n")));
    assert_eq!((lines.len(), list.len()), (1, 1));
    for budget in [0, 5, 15, 1_000] {
        for method in [Method::Suffix, Method::Fit(later())] {
            let [lines, list] = [&lines, &list].map(|runs| replayed(runs, method.clone(), budget));
            assert_eq!(lines, list, "{budget}");
            assert_eq!(lines.requests, 2);
        }
    }
}

#[test]
fn lists_one_per_line_are_runs() {
    let run = format!("[{}]", MESSAGES.join(","));
    let runs = parse_runs(&format!("{run}\n\n{run}\n"), "", None).expect("two runs");
    assert_eq!(runs.iter().map(Chat::len).collect::<Vec<_>>(), [4, 4]);
}

/// Nothing comes before the first answer, so it is no request.
#[test]
fn a_run_may_start_with_an_answer() {
    let runs = parse_runs(&MESSAGES[1..].join("\n"), "", None).expect("a run");
    assert_eq!(replayed(&runs, Method::Suffix, 5).requests, 1);
    let runs = parse_runs(MESSAGES[1], "", None).expect("a run");
    let report = replay(
        &runs,
        &[Method::Suffix],
        &[5],
        &Billing::default(),
        &Encoding::O200k,
        &mut unobserved,
    );
    assert_eq!(report, Err(ReplayError::NoAnswer));
}

/// Keeps nothing that may be dropped.
struct Nothing;

impl Slicer for Nothing {
    fn slice(&self, _: &[ScoredItem], _: &ContextBudget) -> Result<Vec<ContextItem>, CupelError> {
        Ok(Vec::new())
    }
}

#[test]
fn an_empty_window_has_no_evidence() {
    let runs = parse_runs(&MESSAGES.join("\n"), "", None).expect("a run");
    let nothing = Policy::new(RecencyScorer, Nothing, ChronologicalPlacer);
    let nothing = EvalPolicy::new("nothing", nothing);
    for method in [Method::Suffix, Method::Fit(nothing)] {
        let report = replayed(&runs, method, 0);
        let row = &report.results[0];
        assert_eq!((row.trimmed, row.steps), (2, 1));
        let recall = row
            .estimates
            .get(ReplayMeasure::Grounding)
            .expect("a recall");
        assert_eq!(recall.value, 0.0);
    }
}

#[test]
fn invalid_runs_have_their_place_in_the_whole_text() {
    let run = format!(r#"{{"messages": [{}]}}"#, MESSAGES.join(","));
    let robot =
        r#"{"messages": [{"role": "user", "content": "a"}, {"role": "robot", "content": "b"}]}"#;
    let place = |text: &str| match parse_runs(text, "", None) {
        Err(RunsError::Chat(error)) => (error.place.line, error.place.column, error.path),
        other => panic!("{other:?}"),
    };
    let path = "messages[1].role".to_owned();
    assert_eq!(place(&format!("{run}\n\n{robot}\n")), (3, 49, path.clone()));
    assert_eq!(
        place(&format!("[{run}, {robot}]")),
        (1, run.chars().count() + 3 + 49, path.clone())
    );
    assert_eq!(place(&format!("[{run},\n  {robot}]")), (2, 2 + 49, path));
    let messages = format!(
        "{}\n{}\n",
        MESSAGES[0], r#"{"role": "robot", "content": "b"}"#
    );
    assert_eq!(place(&messages).0, 2);
    let items = format!(
        "{run}\n{}\n",
        r#"{"items": [{"content": "a", "tokens": 1}]}"#
    );
    let error = parse_runs(&items, "", None).expect_err("items");
    assert_eq!(error, RunsError::Items { line: 2 });
}
