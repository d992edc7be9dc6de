//! Small chats whose sweep equals one run per budget, below, at and above the tokens of the whole chat.

use std::ops::ControlFlow;

use cupel::slicer::{SweepVisitor, ViewChange};
use cupel::{
    ChatSettings, ChronologicalPlacer, ContextBudget, ContextItem, ContextItemBuilder, ContextView,
    CupelError, GreedySlice, KindScorer, KnapsackSlice, LadderSlice, LadderStep, Policy, RankSlice,
    RecencyScorer, ScoredItem, ScoredRef, Shorten, Slicer,
};
use cupel_chat::{Chat, Heuristic, Shape, newest_policy, single_policy};
use serde_json::{Value, json};

use crate::characters::Characters;
use crate::generated::policies;
use crate::windows;

fn budget(tokens: i64) -> ContextBudget {
    ContextBudget::with_target(tokens, tokens).unwrap()
}

/// Returns a chat by the roles and the lengths of its messages: `u` for the user, `a` for the model, `s` for
/// the system, `o` for a result without a call.
fn chat(shape: Shape, messages: &str) -> Chat {
    let messages = messages.split(' ').map(|message| {
        let text = "x".repeat(message[1..].parse().unwrap());
        let role = match &message[..1] {
            "u" => "user",
            "a" => "assistant",
            "s" => "system",
            _ => "tool",
        };
        match (shape, role) {
            (Shape::Anthropic, "tool") => json!({"role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "gone", "content": text}]}),
            (Shape::LangChain, "tool") => {
                json!({"type": "tool", "tool_call_id": "gone", "content": text})
            }
            (Shape::LangChain, "user") => json!({"type": "human", "content": text}),
            (Shape::LangChain, "assistant") => json!({"type": "ai", "content": text}),
            (Shape::LangChain, _) => json!({"type": "system", "content": text}),
            (_, "tool") => json!({"role": role, "tool_call_id": "gone", "content": text}),
            _ => json!({"role": role, "content": text}),
        }
    });
    let messages: Vec<Value> = messages.collect();
    Chat::from_messages(&messages, shape).unwrap()
}

/// The kept candidates with their views, or the code of the error.
type Window = Result<Vec<(usize, Option<usize>)>, &'static str>;

/// Returns the window of one run.
fn run(policy: &Policy, items: &[ContextItem], tokens: i64) -> Window {
    let decisions = policy.decide(items, &budget(tokens));
    let decisions = decisions.map_err(|error| error.code())?;
    let mut kept = decisions.window().to_vec();
    kept.sort_unstable();
    Ok(kept.iter().map(|&it| (it, decisions.view(it))).collect())
}

/// Checks the sweep of a chat's policy against one run per budget, for ranges that end below, at and above
/// the tokens of all items; and whether the slicer sweeps, or budgets are tried one by one.
#[track_caller]
fn check_items(policy: &Policy, items: &[ContextItem], is_swept: bool) {
    let all: i64 = items.iter().map(ContextItem::tokens).sum();
    let pipeline = policy.clone();
    let sweep = pipeline.sweep_sampled(items, &budget(all), 0..=all, 1);
    assert_eq!(sweep.unwrap().exact, is_swept);
    let runs: Vec<Window> = (0..=all + 3).map(|it| run(policy, items, it)).collect();
    let from = [0, all / 3, all / 2, all * 2 / 3, all - 1, all, all + 1];
    let to = [all / 15, all - 1, all, all + 1, all + 3];
    let ranges = from.iter().flat_map(|from| to.map(|to| (*from, to)));
    for (from, to) in ranges.filter(|(from, to)| from <= to) {
        let sweep = pipeline.sweep(items, &budget(all), from..=to).unwrap();
        assert!(sweep.exact);
        assert_eq!(sweep.steps[0].from, from);
        assert_eq!(sweep.steps.last().map(|step| step.to), Some(to));
        for tokens in from..=to {
            let step = sweep.steps.iter().find(|step| tokens <= step.to).unwrap();
            let forms = sweep.items.iter().flat_map(|item| {
                let forms = item.forms().into_iter();
                forms.map(|(from, to, view)| (item.index, from..=to, view))
            });
            let kept = forms.filter(|(_, budgets, _)| budgets.contains(&tokens));
            let kept = kept.map(|(index, _, view)| (index, view)).collect();
            let swept = step.error.map_or(Ok(kept), Err);
            let expected = &runs[usize::try_from(tokens).unwrap()];
            assert_eq!(swept, *expected, "at {tokens} of {from}..={to}");
            let kept = expected.as_ref().map_or(0, Vec::len);
            assert_eq!(step.included, kept, "at {tokens} of {from}..={to}");
        }
    }
}

/// Checks the sweep of a chat under a policy.
#[track_caller]
fn check(chat: &Chat, policy: &Policy) {
    let candidates = chat.candidates_for(policy, None, &Characters).unwrap();
    check_items(&chat.policy_over(policy, &candidates), &candidates, true);
}

fn with(policy: &Policy, change: impl FnOnce(&mut ChatSettings)) -> Policy {
    let mut settings = policy.chat().clone();
    change(&mut settings);
    policy.to_builder().chat(settings).build().unwrap()
}

fn strict(policy: &Policy) -> Policy {
    with(policy, |settings| settings.strict = true)
}

fn recency(slicer: impl Slicer + 'static) -> Policy {
    Policy::new(RecencyScorer, slicer, ChronologicalPlacer)
}

const CHATS: [(Shape, &str); 8] = [
    // The start of the window changes with the budget.
    (Shape::Anthropic, "u9 a4 u30 a9 u2 a1 u1"),
    (Shape::Anthropic, "a3 u20 a1 u1 a30 u2 a5"),
    (Shape::Anthropic, "u5 o3 u5 a9 u1 a2 u1"),
    // Mandatory system messages do not start a window.
    (Shape::LangChain, "s3 u9 a4 u2 a9 s1 u5 a1"),
    (Shape::LangChain, "s3 a4 o9 u2 a9 u5 a1"),
    (Shape::OpenAi, "s1 u3 a9 o5 u2 a7 u1"),
    (Shape::OpenAi, "s1 u3 a9 u2 a7 u1"),
    // Only the whole chat is a window.
    (Shape::Anthropic, "a3 a9 a4"),
];

#[test]
fn the_sweep_of_a_small_chat_equals_one_run_per_budget() {
    for (shape, messages) in CHATS {
        let chat = chat(shape, messages);
        for policy in [newest_policy(), recency(GreedySlice), single_policy()] {
            check(&chat, &policy);
            check(&chat, &strict(&policy));
        }
    }
}

/// Returns the candidates of a chat with one of them changed.
fn items_with(
    chat: &Chat,
    index: usize,
    change: impl FnOnce(ContextItemBuilder) -> ContextItemBuilder,
) -> Vec<ContextItem> {
    let mut items = chat.candidates(&Characters);
    items[index] = change(items[index].to_builder()).build().unwrap();
    items
}

fn short(tokens: i64) -> ContextView {
    ContextView::new("short", tokens)
}

#[test]
fn a_slicer_that_fails_after_the_start_is_not_swept() {
    let chat = chat(Shape::Anthropic, "u30 a1 u1");
    // The start leaves too little for the last turn.
    let mandatory = |item: ContextItemBuilder| item.pinned(false).meta(LadderSlice::MANDATORY, "");
    let items = items_with(&chat, 2, mandatory);
    let policy = chat.policy(&recency(LadderSlice::new(vec![LadderStep::Drop])));
    check_items(&policy, &items, false);
    assert_eq!(run(&policy, &items, 42), Err("MandatoryExceedsBudget"));
}

#[test]
fn a_slicer_that_fails_before_the_start_is_not_swept() {
    let chat = chat(Shape::Anthropic, "u30 a1 u1");
    let policy = with(&newest_policy(), |settings| {
        settings.pin = vec!["1".to_owned()];
    });
    let candidates = chat.candidates_for(&policy, None, &Characters).unwrap();
    let mut items = candidates.to_vec();
    let mandatory = items[0].to_builder().meta(LadderSlice::MANDATORY, "");
    items[0] = mandatory.build().unwrap();
    let ladder = recency(LadderSlice::new(vec![LadderStep::Drop]));
    let policy = chat.policy_over(&ladder, &candidates);
    check_items(&policy, &items, false);
}

#[test]
fn a_slicer_that_shortens_after_the_start_is_not_swept() {
    let chat = chat(Shape::Anthropic, "u60 a1 u40");
    let items = items_with(&chat, 2, |item| {
        let item = item.pinned(false).meta(LadderSlice::MANDATORY, "");
        item.view(short(5))
    });
    let shorten = LadderStep::shorten_mandatory(items[2].kind().clone(), [5]);
    let ladder = LadderSlice::new(vec![LadderStep::Drop, shorten]);
    let policy = chat.policy(&recency(ladder));
    check_items(&policy, &items, false);
    let (turn, overhead) = ((0, None), (3, None));
    assert_eq!(
        run(&policy, &items, 100),
        Ok(vec![turn, (2, Some(0)), overhead])
    );
}

#[test]
fn a_slicer_that_shortens_only_before_the_start_is_swept() {
    let chat = chat(Shape::Anthropic, "a20 u3 a1 u1");
    let items = items_with(&chat, 0, |item| item.view(short(5)));
    let shorten = LadderStep::shorten(items[0].kind().clone(), [5]);
    let ladder = LadderSlice::new(vec![shorten, LadderStep::Drop]);
    check_items(&chat.policy(&recency(ladder)), &items, true);
}

#[test]
fn a_slicer_that_keeps_the_whole_chat_only_above_its_tokens_is_swept() {
    // In multiples of 4, the four messages need 3 tokens more.
    let chat = chat(Shape::Anthropic, "u4 a3 u4 a8 u1");
    let scorer = KindScorer::with_default_weights();
    let knapsack = KnapsackSlice::new(4).unwrap();
    let policy = Policy::new(scorer, knapsack, ChronologicalPlacer);
    check(&chat, &policy);
    let candidates = chat.candidates(&Characters);
    let policy = chat.policy(&policy);
    let all = chat.tokens(&Characters);
    let kept = |tokens| run(&policy, &candidates, tokens).unwrap().len();
    assert_eq!([kept(all), kept(all + 3)], [5, 6]);
}

/// Keeps the best items up to the maximum of a budget instead of its target.
struct MaxSlice;

impl Slicer for MaxSlice {
    fn slice(
        &self,
        sorted: &[ScoredItem],
        budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        let max = budget.max_tokens();
        RankSlice.slice(sorted, &ContextBudget::with_target(max, max)?)
    }
}

#[test]
fn the_start_of_a_window_takes_its_tokens_from_both_limits() {
    let chat = chat(Shape::Anthropic, "u9 a4 u30 a9 u2 a1 u1");
    let items = chat.candidates(&Characters);
    let newest = chat.policy(&newest_policy());
    let policy = chat.policy(&recency(MaxSlice));
    for tokens in 0..=chat.tokens(&Characters) {
        let expected = run(&newest, &items, tokens);
        assert_eq!(run(&policy, &items, tokens), expected, "at {tokens}");
    }
}

#[test]
fn the_slicer_of_a_chat_tells_what_it_wraps() {
    let chat = chat(Shape::Anthropic, "u1 a1 u1");
    let policy = chat.policy(&recency(KnapsackSlice::new(1).unwrap()));
    assert!(policy.slicer().is_knapsack());
    assert!(!chat.policy(&newest_policy()).slicer().is_knapsack());
}

#[test]
fn dropped_messages_that_cost_no_more_than_their_markers_leave_no_gap() {
    // Two markers of 3 tokens, 9 characters of a role and 1 of text cost 26 tokens, as message 1 does.
    let rest = 8 + 22 + 22 + 8 + 3;
    let policy = with(&single_policy(), |settings| {
        settings.shorten = Shorten::Off;
        settings.marker = Some("M".to_owned());
    });
    let chat = chat(Shape::OpenAi, "u1 a14 a10 a10 u1");
    let fitted = chat.fit(&policy, &budget(rest), &Characters).unwrap();
    assert_eq!((fitted.kept, fitted.tokens_after), (vec![0, 2, 3, 4], rest));
}

/// Returns the windows of a chat at all budgets, without the overhead, each with its first budget.
fn windows(chat: &Chat, policy: &Policy) -> Vec<(i64, Vec<usize>)> {
    let mut windows: Vec<(i64, Vec<usize>)> = Vec::new();
    for tokens in 0..=chat.tokens(&Characters) {
        let Ok(fitted) = chat.fit(policy, &budget(tokens), &Characters) else {
            continue;
        };
        if windows.last().is_none_or(|(_, last)| *last != fitted.kept) {
            windows.push((tokens, fitted.kept));
        }
    }
    windows
}

/// Checks all windows of a chat of the newest messages: `budget: positions`.
#[track_caller]
fn check_windows(shape: Shape, messages: &str, expected: &[&str]) {
    let windows = windows(&chat(shape, messages), &newest_policy());
    let windows = windows.iter().map(|(tokens, kept)| {
        let kept = kept.iter().map(ToString::to_string).collect::<String>();
        format!("{tokens}: {kept}")
    });
    assert_eq!(windows.collect::<Vec<_>>(), expected);
}

#[test]
fn a_window_starts_on_a_user_turn_where_the_format_does() {
    // The turn before the first kept message is the start, if it fits by itself.
    check_windows(
        Shape::Anthropic,
        "u9 a4 u30 a9 u2 a1 u1",
        &[
            "11: 6",
            "20: 46",
            "33: 456",
            "49: 0456",
            "54: 26",
            "57: 246",
            "61: 256",
            "70: 03456",
            "86: 013456",
            "91: 23456",
            "107: 023456",
            "123: 0123456",
        ],
    );
    // System messages come before the start.
    check_windows(
        Shape::LangChain,
        "s3 u9 a4 u2 a9 s1 u5 a1",
        &[
            "38: 056",
            "44: 0567",
            "53: 0356",
            "54: 03567",
            "67: 01567",
            "68: 034567",
            "77: 014567",
            "84: 0124567",
            "85: 0134567",
            "94: 01234567",
        ],
    );
    // Any message starts a window, and invalid ones are in none but the whole.
    check_windows(
        Shape::OpenAi,
        "s1 u3 a9 o5 u2 a7 u1",
        &[
            "21: 06",
            "30: 046",
            "40: 056",
            "49: 0456",
            "59: 01456",
            "70: 02456",
            "80: 012456",
            "92: 0123456",
        ],
    );
}

/// The targets of a sweep's changes.
#[derive(Default)]
struct Targets(Vec<i64>);

impl SweepVisitor for Targets {
    fn change(&mut self, target: i64, _: &[usize], _: &[ViewChange]) -> ControlFlow<()> {
        self.0.push(target);
        ControlFlow::Continue(())
    }

    fn fail(&mut self, target: i64, _: CupelError) {
        self.0.push(target);
    }
}

#[test]
fn a_sweep_has_no_changes_beyond_its_targets() {
    let chat = chat(Shape::OpenAi, "u3 a9 o5 a2 u1");
    for policy in [newest_policy(), single_policy()] {
        let candidates = chat.candidates_for(&policy, None, &Characters).unwrap();
        let policy = chat.policy_over(&policy, &candidates);
        let ranked = candidates.iter().cloned();
        let ranked = ranked.map(|item| ScoredItem { item, score: 0.5 });
        let ranked: Vec<ScoredItem> = ranked.collect();
        let slicer = policy.slicer();
        let all = chat.tokens(&Characters);
        for to in [all / 2, all - 2, all - 1, all] {
            let mut targets = Targets::default();
            let swept = slicer.sweep(&ScoredRef::from_list(&ranked), 0..=to, &mut targets);
            assert_eq!(swept, Some(ControlFlow::Continue(())));
            assert!(targets.0.is_sorted(), "{:?}", targets.0);
            let last = targets.0.last().copied();
            assert!(last <= Some(to), "{last:?} of {to}");
            // Only the whole chat has the result without a call.
            assert_eq!(last == Some(all), to == all);
        }
    }
}

#[test]
fn the_windows_of_the_examples_are_the_same_for_one_budget_as_for_any() {
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples");
    let mut files = vec![examples.join("agent-session.json")];
    let shapes = std::fs::read_dir(examples.join("shapes")).unwrap();
    files.extend(shapes.map(|entry| entry.unwrap().path()));
    files.sort();
    assert_eq!(files.len(), 11);
    for file in files {
        let chat = Chat::parse(&std::fs::read_to_string(&file).unwrap(), None).unwrap();
        let all = chat.tokens(&Heuristic);
        for policy in policies() {
            let budgets = (1..=all + 1).step_by(101);
            windows::check(&chat, &policy, &Heuristic, budgets)
                .unwrap_or_else(|problem| panic!("{}: {problem}", file.display()));
        }
    }
}

/// Returns a chat with one old result and one old answer of a number of characters each.
fn old_texts(result: usize, answer: usize) -> Chat {
    let (result, answer) = ("word ".repeat(result / 5), "line ".repeat(answer / 5));
    let call = |id: &str| json!({"id": id, "function": {"name": "read", "arguments": id}});
    let messages = [
        json!({"role": "user", "content": "task"}),
        json!({"role": "assistant", "tool_calls": [call("a")]}),
        json!({"role": "tool", "tool_call_id": "a", "content": result}),
        json!({"role": "assistant", "content": answer}),
        json!({"role": "user", "content": "more"}),
        json!({"role": "assistant", "tool_calls": [call("b")]}),
        json!({"role": "tool", "tool_call_id": "b", "content": "done"}),
    ];
    Chat::from_messages(&messages, Shape::OpenAi).unwrap()
}

#[test]
fn a_text_within_a_level_stays_at_it_though_its_message_is_not() {
    // Ten tokens of a role are over the level of 100; the text is not.
    for (result, answer) in [(700, 95), (95, 95)] {
        let chat = old_texts(result, answer);
        for policy in policies() {
            let budgets = 1..=chat.tokens(&Characters) + 1;
            windows::check(&chat, &policy, &Characters, budgets)
                .unwrap_or_else(|problem| panic!("{result} and {answer}: {problem}"));
        }
    }
}
