//! Every preset inside of every decorator, on chats: what must stay stays and what is long is shortened, or
//! an error names both.

use cupel::config::{PolicyConfig, SlicerConfig, presets};
use cupel::{
    ChronologicalPlacer, ContextBudget, ContextItem, CupelError, LadderSlice, LadderStep, Policy,
    RecencyScorer, ScoredItem, Shorten, Slicer,
};
use cupel_chat::{Chat, Encoding, FitError, Fitted, Shape};
use serde_json::{Value, json};

use crate::valid;

const AGENT_SESSION: &str = include_str!("examples/agent-session.json");

fn budget(tokens: i64) -> ContextBudget {
    ContextBudget::with_target(tokens, tokens).unwrap()
}

/// The decorators that a document can name, from the outermost to the innermost.
const DECORATORS: [&[&str]; 9] = [
    &[],
    &["near_duplicates"],
    &["group"],
    &["quota"],
    &["count_quota"],
    &["near_duplicates", "group"],
    &["group", "near_duplicates"],
    &["quota", "near_duplicates"],
    &["count_quota", "group"],
];

/// Returns the policy of a preset inside of decorators.
fn wrapped(preset: &str, decorators: &[&str]) -> Result<Policy, String> {
    let mut config = cupel::config::preset(preset).unwrap().config().clone();
    let mut slicer = serde_json::to_value(&config.slicer).unwrap();
    for decorator in decorators.iter().rev() {
        slicer = match *decorator {
            "quota" => json!({"type": "quota", "inner": slicer,
                "quotas": [{"kind": "ToolOutput", "cap": 60}]}),
            "count_quota" => json!({"type": "count_quota", "inner": slicer,
                "entries": [{"kind": "ToolOutput", "require_count": 1, "cap_count": 8}]}),
            name => json!({"type": name, "inner": slicer}),
        };
    }
    let read: Result<SlicerConfig, _> = serde_json::from_value(slicer);
    config.slicer = read.map_err(|error| error.to_string())?;
    config.build().map_err(|error| error.to_string())
}

/// A chat whose results repeat: every third call is a repetition, and so are the answers.
fn repeating(shape: Shape) -> Chat {
    let mut messages = vec![json!({"role": "user", "content": "Watch the queue and report."})];
    for step in 0..12 {
        let (id, page) = (format!("c{step}"), step % 3);
        let rows: Vec<String> = (0..30)
            .map(|row| format!("row {row} of page {page} has {} jobs", row * 7 + page))
            .collect();
        let text = rows.join("\n");
        let answer = format!("Page {page} of the queue is as long as it was before, all is well.");
        if shape == Shape::Anthropic {
            messages.push(json!({"role": "assistant", "content": [
                {"type": "tool_use", "id": id, "name": "queue", "input": {"page": page}}]}));
            messages.push(json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": id, "content": text}]}));
        } else {
            messages.push(json!({"role": "assistant", "content": null, "tool_calls": [
                {"id": id, "type": "function",
                 "function": {"name": "queue", "arguments": format!("{{\"page\":{page}}}")}}]}));
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": text}));
        }
        messages.push(json!({"role": "assistant", "content": answer}));
        messages.push(json!({"role": "user", "content": format!("And now, at {step}?")}));
    }
    let text = if shape == Shape::Anthropic {
        json!({"model": "claude-sonnet-4-5", "max_tokens": 1000, "messages": messages})
    } else {
        json!({"model": "gpt-4o", "messages": messages})
    };
    Chat::parse(&text.to_string(), Some(shape)).unwrap()
}

/// Checks a window: within the budget, valid for the provider, with everything that is never dropped.
fn check(chat: &Chat, policy: &Policy, fitted: &Fitted<'_>, tokens: i64, context: &str) {
    let counter = Encoding::O200k;
    assert!(fitted.tokens_after <= tokens, "{context}");
    let written = fitted.to_json();
    let reread = Chat::parse(&written, Some(chat.shape())).unwrap();
    assert_eq!(reread.tokens(&counter), fitted.tokens_after, "{context}");
    let objection = valid::objection(chat.shape(), &valid::messages(&written));
    assert_eq!(objection, None, "{context}");
    let candidates = chat.candidates_for(policy, None, &counter).unwrap();
    for index in 0..chat.len() {
        let is_kept = fitted.kept.contains(&index);
        let must_stay = candidates.kept_because(index).is_some();
        assert!(is_kept || !must_stay, "{context}: message {index}");
    }
}

#[test]
fn every_preset_works_in_every_decorator_or_the_error_names_both() {
    let chats = [
        Chat::parse(AGENT_SESSION, None).unwrap(),
        repeating(Shape::OpenAi),
        repeating(Shape::Anthropic),
    ];
    let (mut works, mut refused) = (0, 0);
    for preset in presets() {
        let plain = wrapped(preset.name(), &[]).unwrap();
        let has_ladder = plain.slicer().ladder().is_some();
        for decorators in DECORATORS {
            let context = format!("{} in {decorators:?}", preset.name());
            let limits = ["quota", "count_quota"];
            let outer = decorators.iter().find(|it| limits.contains(it));
            let policy = match (wrapped(preset.name(), decorators), outer) {
                (Ok(policy), outer) => {
                    assert!(outer.is_none() || !has_ladder, "{context}");
                    policy
                }
                (Err(error), Some(outer)) => {
                    assert!(has_ladder, "{context}: {error}");
                    assert!(error.contains(outer) && error.contains("ladder"), "{error}");
                    refused += 1;
                    continue;
                }
                (Err(error), None) => panic!("{context}: {error}"),
            };
            works += 1;
            assert_eq!(
                policy.slicer().ladder(),
                plain.slicer().ladder(),
                "{context}"
            );
            for (number, chat) in chats.iter().enumerate() {
                let total = chat.tokens(&Encoding::O200k);
                for tokens in [total / 4, total / 2, total] {
                    let context = format!("{context}, chat {number} at {tokens}");
                    let fit = |policy: &Policy| {
                        let fitted = chat.fit(policy, &budget(tokens), &Encoding::O200k);
                        fitted.map(|it| (it.shortened.len(), it.kept.len()))
                    };
                    let fitted = chat.fit(&policy, &budget(tokens), &Encoding::O200k);
                    let fitted = fitted.unwrap_or_else(|error| panic!("{context}: {error}"));
                    check(chat, &policy, &fitted, tokens, &context);
                    let (shortened, _) = fit(&plain).unwrap();
                    // Near-duplicates leave more room, so less has to be shortened, but at a quarter.
                    let is_tight = tokens == total / 4 && number == 0;
                    if has_ladder && (is_tight || !decorators.contains(&"near_duplicates")) {
                        let is_shortened = !fitted.shortened.is_empty();
                        assert_eq!(is_shortened, shortened > 0, "{context}");
                    }
                    if decorators == ["group"] {
                        assert_eq!(fit(&policy), fit(&plain), "{context}");
                    }
                }
            }
        }
    }
    assert!(works >= 12 * 5 && refused == 4 * 4, "{works}, {refused}");
}

#[test]
fn a_wrapped_ladder_keeps_as_many_messages_as_the_ladder_alone() {
    let chat = Chat::parse(AGENT_SESSION, None).unwrap();
    let fit = |decorators: &[&str]| {
        let policy = wrapped("agent", decorators).unwrap();
        chat.fit(&policy, &budget(2_000), &Encoding::O200k).unwrap()
    };
    let (plain, wrapped) = (fit(&[]), fit(&["near_duplicates"]));
    let task = chat.messages().position(cupel_chat::Message::is_user_turn);
    assert!(wrapped.kept.contains(&task.unwrap()));
    assert!(!wrapped.shortened.is_empty());
    // A repeated call is dropped, and the room goes to others.
    assert!(
        wrapped.kept.len() + 4 >= plain.kept.len(),
        "{:?}",
        wrapped.kept
    );
}

#[test]
fn the_chat_settings_reach_a_wrapped_ladder() {
    let chat = repeating(Shape::OpenAi);
    let fit = |settings: Value, tokens: i64| {
        let policy = json!({"extends": "agent", "chat": settings, "slicer": {
            "type": "near_duplicates", "threshold": 1, "shingle_size": 64,
            "inner": serde_json::to_value(&cupel::config::preset("agent").unwrap().config().slicer).unwrap(),
        }});
        let config: PolicyConfig = serde_json::from_value(policy).unwrap();
        let policy = config.build().unwrap();
        let fitted = chat
            .fit(&policy, &budget(tokens), &Encoding::O200k)
            .unwrap();
        check(&chat, &policy, &fitted, tokens, "settings");
        (
            fitted.shortened.len(),
            fitted.markers.len(),
            fitted.tokens_after,
        )
    };
    // Twelve calls of three kinds: nine results are superseded and dropped, though all would fit. The three
    // others have about 1,000 tokens.
    let (shortened, ..) = fit(json!({}), 800);
    assert!(shortened > 0);
    let (shortened, ..) = fit(json!({"shorten": "off"}), 800);
    assert_eq!(shortened, 0);
    let total = chat.tokens(&Encoding::O200k);
    for tokens in [total, 1_500, 900] {
        let (_, markers, _) = fit(json!({"marker": "[{n} messages left out]"}), tokens);
        assert!(markers > 0, "{tokens}");
    }
    for tokens in (600..2_400).step_by(150) {
        fit(
            json!({"marker": "[{n} messages were left out here]"}),
            tokens,
        );
    }
}

/// A decorator as a user may write it: `slice` and `inner`.
struct Decorator(LadderSlice);

impl Slicer for Decorator {
    fn slice(
        &self,
        sorted: &[ScoredItem],
        budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        self.0.slice(sorted, budget)
    }

    fn inner(&self) -> Option<&dyn Slicer> {
        Some(&self.0)
    }
}

#[test]
fn a_custom_decorator_that_cannot_adapt_its_ladder_is_an_error_that_names_both() {
    let chat = repeating(Shape::OpenAi);
    let slicer = Decorator(LadderSlice::new(vec![LadderStep::Drop]));
    let policy = Policy::new(RecencyScorer, slicer, ChronologicalPlacer);
    let error = chat
        .fit(&policy, &budget(1_000), &Encoding::O200k)
        .unwrap_err();
    assert!(matches!(error, FitError::Policy(_)));
    let text = error.to_string();
    assert!(text.contains("LadderSlice inside of Decorator"), "{text}");
    assert!(text.contains("with_ladder"), "{text}");
    assert_eq!(policy.chat().shorten, Shorten::All);
}
