//! The readers: no input panics, and what is read can be written and read again.

use std::fmt::Debug;

use cupel::config::{Document, Format, PolicyConfig};
use cupel::{ContextBudget, ContextItem, SelectionReport, TraceEvent};
use cupel_chat::{
    Chat, FitState, Fitter, Heuristic, Shape, TokenCounter, default_policy, parse_budget,
    single_policy,
};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::shorten::{Query, Shortener, Words};

const FORMATS: [Format; 3] = [Format::Json, Format::Toml, Format::Yaml];

/// Returns the input as a document in each format that can parse it.
fn documents(data: &[u8]) -> impl Iterator<Item = Document<'_>> {
    let text = std::str::from_utf8(data).ok();
    let formats = text
        .into_iter()
        .flat_map(|text| FORMATS.map(|format| (text, format)));
    formats.filter_map(|(text, format)| Document::parse(text, format).ok())
}

/// Reads a policy. A valid one builds, and is the same after a round trip through every format.
pub(crate) fn policy(data: &[u8]) {
    for document in documents(data) {
        let faults = document.policy_faults();
        let Ok(config) = document.policy_config() else {
            assert!(!faults.is_empty(), "an invalid policy has no faults");
            continue;
        };
        assert!(faults.is_empty(), "{faults:?}");
        document.policy().expect("a valid policy builds");
        round_trip_policy(&config);
    }
}

fn round_trip_policy(config: &PolicyConfig) {
    for format in FORMATS {
        let Ok(text) = config.to_text(format) else {
            continue;
        };
        let document = Document::parse(&text, format).expect("a written policy parses");
        let again = document.policy_config().expect("a written policy is valid");
        // Debug text, because NaN is not equal to itself.
        assert_eq!(format!("{again:?}"), format!("{config:?}"), "{text}");
    }
}

/// Reads a request and runs it if it has a budget and a policy.
pub(crate) fn request(data: &[u8]) {
    for document in documents(data) {
        let Ok(request) = document.request() else {
            continue;
        };
        if let (Some(budget), Some(config)) = (&request.budget, &request.policy) {
            round_trip_policy(config);
            let policy = config.build().expect("a valid policy builds");
            // A run may fail, for example when pinned items exceed the budget.
            let _ = policy.dry_run(&request.items, budget);
        }
    }
}

/// Reads one item per line.
pub(crate) fn jsonl(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    for line in text.lines() {
        if let Ok(item) = Document::parse(line, Format::Json).and_then(|line| line.item()) {
            round_trip(&item);
        }
    }
}

/// Reads a chat in the detected shape and in each given one, writes it back and fits it.
pub(crate) fn chat(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let _ = parse_budget(text, Some(128_000));
    for shape in Shape::ALL.into_iter().map(Some).chain([None]) {
        if let Ok(chat) = Chat::parse(text, shape) {
            let all: Vec<usize> = (0..chat.len()).collect();
            assert_eq!(chat.write(&all), text, "an untouched chat keeps its bytes");
            for tokens in [20, 80, 320, 1_280] {
                fit(&chat, tokens);
            }
        }
    }
}

fn fit(chat: &Chat, tokens: i64) {
    let budget = ContextBudget::with_target(tokens, tokens).expect("the budget is valid");
    let Ok(fitted) = chat.fit(&default_policy(), &budget, &Heuristic) else {
        return;
    };
    let written = fitted.to_json();
    let again = Chat::parse(&written, Some(chat.shape())).expect("a fitted chat parses");
    assert!(
        again.tokens(&Heuristic) <= tokens,
        "over {tokens}: {written}"
    );
}

/// Reads a chat and fits it to many budgets: candidates for one budget and for any give the same window,
/// and a larger budget keeps at least what a smaller one keeps.
pub(crate) fn windows(data: &[u8]) {
    let text = std::str::from_utf8(data);
    let Some(chat) = text.ok().and_then(|text| Chat::parse(text, None).ok()) else {
        return;
    };
    let all = chat.tokens(&Heuristic).clamp(0, 1 << 20);
    let step = usize::try_from(all / 40 + 1).expect("a small number");
    let budgets = (1..=all.saturating_add(1)).step_by(step);
    let budgets = budgets.flat_map(|tokens| [tokens, tokens + 1]);
    crate::windows::check(&chat, &single_policy(), &Heuristic, budgets)
        .unwrap_or_else(|problem| panic!("{problem}"));
}

/// Shortens a text to a level, which the first byte states. The result is within the level, and JSON
/// stays JSON.
pub(crate) fn shorten(data: &[u8]) {
    let Some((&level, text)) = data.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let level = 2 * i64::from(level);
    let is_json = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_ok();
    let is_structured = text.trim_start().starts_with(['{', '[', '"']) && is_json(text);
    // The words of the text itself are those that it was asked for.
    let query = Query {
        turn: Words::of(std::iter::once(text)).into(),
        ..Query::default()
    };
    let shorteners = [
        Shortener::of_result(text, &query),
        Shortener::of_text(text, &query),
    ];
    let shortened = shorteners.map(|it| it.shorten(level, &Heuristic));
    for short in shortened.iter().flatten() {
        assert!(Heuristic.count(short) <= level, "over {level}: {short}");
        assert!(!is_structured || is_json(short), "not JSON: {short}");
    }
}

/// Reads the state of a session, writes it back and continues the session.
pub(crate) fn state(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(state) = FitState::from_json(text) else {
        return;
    };
    let written = state.to_json();
    let again = FitState::from_json(&written).expect("a written state is read");
    assert_eq!(again.to_json(), written);
    let chat = include_str!("../../examples/agent-session.json");
    let chat = Chat::parse(chat, None).expect("the example is a chat");
    let mut fitter = Fitter::resume(default_policy(), again);
    for tokens in [600, 1_200, 100_000] {
        let budget = ContextBudget::with_target(tokens, tokens).expect("the budget is valid");
        if let Ok(window) = fitter.fit(&chat, &budget, &Heuristic) {
            assert!(window.fitted.tokens_after <= tokens, "over {tokens}");
        }
    }
}

/// Reads a conformance vector.
pub(crate) fn vector(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = cupel_conformance::Vector::parse("scoring/fuzz.toml", text);
    }
}

/// Reads items, budgets, reports and events from JSON and writes them back.
pub(crate) fn wire(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        read_again::<ContextItem>(text);
        read_again::<ContextBudget>(text);
        read_again::<TraceEvent>(text);
        read_again::<SelectionReport>(text);
    }
}

fn read_again<T: Serialize + DeserializeOwned + PartialEq + Debug>(text: &str) {
    if let Ok(value) = serde_json::from_str::<T>(text) {
        round_trip(&value);
    }
}

fn round_trip<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    // A value that JSON cannot hold, such as NaN, is refused when written.
    let Ok(text) = serde_json::to_string(value) else {
        return;
    };
    let again: T = serde_json::from_str(&text).expect("a written value is read");
    assert_eq!(&again, value, "{text}");
}
