//! Compares every statement of a page with one run per budget. With `CUPEL_PAGES` set, writes the pages and
//! the expectations there for the browser test.

use std::sync::{LazyLock, OnceLock};

use cupel::*;
use cupel_app::{Options, Prepared, Scope, Source};
use cupel_chat::{
    Candidates, Chat, Encoding, FitError, Fitted, FittedMessage, Heuristic, TokenCounter,
    default_policy, single_policy,
};
use cupel_conformance::testing::Random;
use serde_json::{Value, json};

use super::{About, ChatPart, Date, Subject};

struct Case {
    name: &'static str,
    items: Vec<ContextItem>,
    budget: ContextBudget,
    pipeline: Pipeline,
    /// The chat whose messages the items are.
    chat: Option<ChatCase>,
    page: OnceLock<String>,
}

struct ChatCase {
    chat: Chat,
    candidates: Candidates,
    policy: Policy,
    counter: Box<dyn TokenCounter>,
    /// The text of the chat, if the policy has a replay.
    replayed: Option<&'static str>,
}

/// The cases, which several tests share: the long session takes a second to read.
static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let (items, budget) = incident();
    vec![
        Case {
            name: "incident",
            items: items.clone(),
            budget: budget.clone(),
            pipeline: Pipeline::new(relevance(), GreedySlice, ChronologicalPlacer),
            chat: None,
            page: OnceLock::new(),
        },
        Case {
            name: "u-shaped",
            items: items.clone(),
            budget: ContextBudget::builder(1_500)
                .target_tokens(1_300)
                .output_reserve(250)
                .reserved_slot(ContextKind::memory(), 40)
                .safety_margin_percent(5.0)
                .build()
                .unwrap(),
            pipeline: Pipeline::new(relevance(), KnapsackSlice::new(1).unwrap(), UShapedPlacer),
            chat: None,
            page: OnceLock::new(),
        },
        sampled(&items),
        hostile(),
        many(),
        agent(),
        replayed(),
        long_session(),
    ]
});

const SESSION: &str = include_str!("../../examples/agent-session.json");

/// The session of a coding agent, under the policy for one request.
fn agent() -> Case {
    of_chat("agent-session", SESSION, 2_000, Encoding::O200k)
}

/// The same under the default policy.
fn replayed() -> Case {
    let policy = default_policy();
    let chat = Chat::parse(SESSION, None).unwrap();
    let budget = ContextBudget::with_target(2_000, 2_000).unwrap();
    let candidates = chat.candidates_for(&policy, Some(&budget), &Encoding::O200k);
    let candidates = candidates.unwrap();
    Case {
        name: "replayed",
        items: candidates.to_vec(),
        budget,
        pipeline: chat.policy_over(&policy, &candidates),
        chat: Some(ChatCase {
            chat,
            candidates,
            policy,
            counter: Box::new(Encoding::O200k),
            replayed: Some(SESSION),
        }),
        page: OnceLock::new(),
    }
}

/// A session of 5,000 messages, with a marker for dropped ones and hostile texts.
fn long_session() -> Case {
    let mut random = Random::new(11);
    let mut messages = vec![
        json!({"role": "system", "content": "You keep the books."}),
        json!({"role": "user", "content": "</script><script>document.title = 'taken'</script>"}),
    ];
    while messages.len() < 5_000 {
        let number = messages.len();
        match random.below(12) {
            0 => messages.push(json!({"role": "user", "content": format!("Question {number}?")})),
            1 => messages.push(
                json!({"role": "assistant", "content": format!("Answer {number}. ").repeat(9)}),
            ),
            _ => {
                let id = format!("call_{number}");
                let function =
                    json!({"name": "read", "arguments": format!("{{\"page\": {number}}}")});
                let call = json!({"id": id, "type": "function", "function": function});
                messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
                let lines = (0..3 + random.below(40))
                    .map(|line| format!("{number}: entry {line} of the ledger"));
                let lines = lines.collect::<Vec<_>>().join("\n");
                messages.push(json!({"role": "tool", "tool_call_id": id, "content": lines}));
            }
        }
    }
    messages.push(json!({"role": "user", "content": "And the sum?"}));
    let chat = json!({ "messages": messages }).to_string();
    of_chat("long-session", &chat, 60_000, Heuristic)
}

fn of_chat(
    name: &'static str,
    text: &str,
    budget: i64,
    counter: impl TokenCounter + 'static,
) -> Case {
    of_chat_under(name, text, budget, counter, single_policy())
}

fn of_chat_under(
    name: &'static str,
    text: &str,
    budget: i64,
    counter: impl TokenCounter + 'static,
    policy: Policy,
) -> Case {
    let chat = Chat::parse(text, None).unwrap();
    let candidates = chat.candidates_for(&policy, None, &counter).unwrap();
    Case {
        name,
        items: candidates.to_vec(),
        budget: ContextBudget::with_target(budget, budget).unwrap(),
        pipeline: chat.policy_over(&policy, &candidates),
        chat: Some(ChatCase {
            chat,
            candidates,
            policy,
            counter: Box::new(counter),
            replayed: None,
        }),
        page: OnceLock::new(),
    }
}

/// An incident, as an assistant on call sees it.
fn incident() -> (Vec<ContextItem>, ContextBudget) {
    let document: Value =
        serde_json::from_str(include_str!("../../tests/browser/incident.json")).unwrap();
    let items = serde_json::from_value(document["items"].clone()).unwrap();
    let budget = serde_json::from_value(document["budget"].clone()).unwrap();
    (items, budget)
}

fn relevance() -> CompositeScorer {
    CompositeScorer::builder()
        .add(ReflexiveScorer, 3.0)
        .add(RecencyScorer, 2.0)
        .add(ScaledScorer::new(KindScorer::with_default_weights()), 1.0)
        .build()
        .unwrap()
}

/// Quotas are run at each budget, and there are too many budgets to try all.
fn sampled(items: &[ContextItem]) -> Case {
    let enlarged = |item: &ContextItem| {
        let mut builder = ContextItem::builder(item.content(), item.tokens() * 17)
            .kind(item.kind().clone())
            .pinned(item.pinned());
        if let Some(hint) = item.future_relevance_hint() {
            builder = builder.future_relevance_hint(hint);
        }
        builder.build().unwrap()
    };
    let quotas = vec![
        QuotaEntry::new(ContextKind::tool_output(), 10.0, 40.0).unwrap(),
        QuotaEntry::new(ContextKind::memory(), 5.0, 100.0).unwrap(),
    ];
    let slicer = QuotaSlice::new(quotas, Box::new(GreedySlice)).unwrap();
    Case {
        name: "sampled",
        items: items.iter().map(enlarged).collect(),
        budget: ContextBudget::with_target(20_011, 20_011).unwrap(),
        pipeline: Pipeline::new(ReflexiveScorer, slicer, UShapedPlacer),
        chat: None,
        page: OnceLock::new(),
    }
}

/// Texts with markup and control characters, and numbers at the ends of their range.
fn hostile() -> Case {
    let long = "x".repeat(5_000);
    let texts: [(&str, i64, f64); 14] = [
        (
            "</script><script>document.title = 'taken'</script>",
            10,
            0.9,
        ),
        (
            "<img src=x onerror=\"document.title = 'taken'\"><b>bold</b>",
            12,
            0.8,
        ),
        (
            "<!-- <script> --> {{script}} {{data}} ${1+1} &lt;&amp;",
            9,
            0.7,
        ),
        ("</pre></details></li></template><h1>broken</h1>", 8, 0.65),
        ("javascript:alert(1) 'quotes\" \\u003c \\", 7, 0.6),
        ("Emoji: 👩‍👩‍👧‍👦 🏳️‍🌈 é 𝔘", 11, 0.55),
        ("שלום עולם, זה טקסט מימין לשמאל (123)", 14, 0.5),
        ("left \u{202e}detrever\u{202c} right", 6, 0.45),
        (&long, 900, 0.4),
        (" \n\t ", 1, 0.35),
        (
            "nul \0 bell \u{7} escape \u{1b}[31m delete \u{7f} line\u{2028}separator\r\nnext",
            13,
            0.3,
        ),
        ("free of charge", 0, f64::NAN),
        ("larger than anything", i64::MAX, 0.2),
        ("in debt", -5, 0.1),
    ];
    let kinds = ["Message", "message", "<i>Odd</i>", "Memory"];
    let mut items: Vec<ContextItem> = texts
        .iter()
        .enumerate()
        .map(|(index, (text, tokens, hint))| {
            ContextItem::builder(*text, *tokens)
                .kind(ContextKind::new(kinds[index % 4]).unwrap())
                .future_relevance_hint(*hint)
                .meta("<key>", "</dd><script>1</script>")
                .priority(i64::MIN)
                .build()
                .unwrap()
        })
        .collect();
    // The same handle again, and a separate copy.
    items.push(items[1].clone());
    items.push(items[1].to_builder().build().unwrap());
    Case {
        name: "hostile",
        items,
        budget: ContextBudget::with_target(100, 60).unwrap(),
        pipeline: Pipeline::new(ReflexiveScorer, GreedySlice, UShapedPlacer),
        chat: None,
        page: OnceLock::new(),
    }
}

fn many() -> Case {
    let mut random = Random::new(7);
    let kinds = ["Message", "Document", "ToolOutput", "Memory"];
    let items = (0..10_000).map(|index| {
        let words = 12 + random.below(120);
        let text = format!("passage {index} {}", "lorem ipsum dolor ".repeat(words / 3));
        ContextItem::builder(text, i64::try_from(words).unwrap())
            .kind(ContextKind::new(kinds[random.below(4)]).unwrap())
            .future_relevance_hint(random.below(1_000_000) as f64 / 1e6)
            .build()
            .unwrap()
    });
    Case {
        name: "many",
        items: items.collect(),
        budget: ContextBudget::with_target(32_000, 32_000).unwrap(),
        pipeline: Pipeline::new(ReflexiveScorer, GreedySlice, ChronologicalPlacer),
        chat: None,
        page: OnceLock::new(),
    }
}

impl Case {
    fn page(&self) -> &str {
        self.page.get_or_init(|| self.render())
    }

    fn render(&self) -> String {
        let title = format!("{}.json", self.name);
        let chat = self.chat.as_ref();
        if let Some(text) = chat.and_then(|it| it.replayed) {
            let mut options = Options::default();
            options.budget.budget = Some(self.budget.max_tokens().into());
            let source = Source::new("agent-session.json", text);
            let prepared = Prepared::new(source, &options, Scope::Budget);
            let date = Date::parse("2026-11-16").ok();
            return super::render(&prepared.unwrap(), date).unwrap();
        }
        let subject = Subject {
            prepared: None,
            replayed: None,
            before: None,
            title: &title,
            items: &self.items,
            budget: &self.budget,
            pipeline: &self.pipeline,
            chat: chat.map(|it| ChatPart::new(&it.chat, &it.candidates, &*it.counter, &it.policy)),
            about: About {
                policy: "agent".to_owned(),
                model: Some("gpt-4o".to_owned()),
                counter: "counted by o200k_base".to_owned(),
                format: "openai",
                date: Date::parse("2026-11-16").ok(),
                version: "1.3.0",
            },
        };
        subject.render().unwrap()
    }

    /// Returns the messages that some budgets send; none for items and for a long chat.
    fn sent(&self) -> Vec<(i64, Value)> {
        let chat = self.chat.as_ref().filter(|it| it.chat.len() < 100);
        let budgets = [750, 1_100, 1_700, 2_000, 2_500, 3_400, 4_500, 5_869];
        let sent = |it: &ChatCase| budgets.map(|budget| (budget, it.sent(budget)));
        chat.map(|it| sent(it).to_vec()).unwrap_or_default()
    }

    /// Returns the number of messages or items.
    fn len(&self) -> usize {
        let chat = self.chat.as_ref();
        chat.map_or(self.items.len(), |it| it.chat.len())
    }

    /// Returns the result of a run with this budget.
    fn expectation(&self, target: i64) -> Value {
        let gap = self.budget.max_tokens() - self.budget.target_tokens();
        let budget = self.budget.with_limits(target + gap, target);
        if let (Some(chat), Ok(budget)) = (&self.chat, &budget) {
            return chat.expectation(budget);
        }
        match budget.and_then(|budget| self.pipeline.run_indices(&self.items, &budget)) {
            Ok(window) => {
                let tokens: i128 = window
                    .iter()
                    .map(|&index| i128::from(self.items[index].tokens()))
                    .sum();
                json!({"budget": target, "window": window, "tokens": tokens.to_string()})
            }
            Err(error) => {
                json!({"budget": target, "window": [], "tokens": "0", "error": error.code()})
            }
        }
    }

    /// Budgets the slider can be moved to: all of them, or the given one, some steps, and some between.
    fn probes(&self, data: &Value) -> Vec<i64> {
        let last = int(&data["last"]);
        let is_replayed = self.chat.as_ref().is_some_and(|it| it.replayed.is_some());
        if data["exact"] == true && last < 6_000 && !is_replayed {
            return (0..=last).collect();
        }
        let steps = data["steps"].as_array().unwrap();
        let stride = steps.len() / 24 + 1;
        let steps = steps.iter().step_by(stride).map(int);
        let mut probes: Vec<i64> = steps.chain([self.budget.target_tokens()]).collect();
        if data["exact"] == true {
            probes.extend((0..=20).map(|part| last / 20 * part));
        }
        if is_replayed {
            // On both sides of every step.
            let steps = data["steps"].as_array().unwrap().iter().map(int);
            probes.extend(steps.flat_map(|step| [step, (step - 1).max(0)]));
            probes.extend([750, 1_100, 1_700, 2_500, 3_400, 4_500, 5_869]);
        }
        probes.sort_unstable();
        probes.dedup();
        probes
    }
}

impl ChatCase {
    /// Returns the result of [`Chat::fit_candidates`] with this budget.
    fn expectation(&self, budget: &ContextBudget) -> Value {
        let target = budget.target_tokens();
        match self.fit(budget) {
            Ok(fitted) => json!({
                "budget": target,
                "window": fitted.kept,
                "tokens": fitted.tokens_after.to_string(),
                "shortened": fitted.shortened.iter().map(|it| (it.index, it.tokens, it.original_tokens)).collect::<Vec<_>>(),
                "markers": fitted.markers,
            }),
            Err(error) => {
                json!({"budget": target, "window": [], "tokens": "0", "error": error.to_string()})
            }
        }
    }

    fn fit(&self, budget: &ContextBudget) -> Result<Fitted<'_>, FitError> {
        let (policy, counter) = (&self.policy, &*self.counter);
        match self.replayed {
            Some(_) => self.chat.fit(policy, budget, counter),
            None => self
                .chat
                .fit_candidates(policy, budget, &self.candidates, counter),
        }
    }

    /// Returns the messages that a budget sends: role, text, and names of the called tools.
    fn sent(&self, budget: i64) -> Value {
        let budget = ContextBudget::with_target(budget, budget).unwrap();
        let request: Value = serde_json::from_str(&self.fit(&budget).unwrap().to_json()).unwrap();
        let messages = request["messages"].as_array().unwrap().iter();
        let messages = messages.map(|message| {
            let calls = message["tool_calls"].as_array().into_iter().flatten();
            let calls: Vec<&Value> = calls.map(|call| &call["function"]["name"]).collect();
            let text = message["content"].as_str().unwrap_or_default();
            json!([message["role"], text, calls])
        });
        messages.collect()
    }
}

/// Returns the data of a page.
fn embedded(page: &str) -> Value {
    let opening = "<script type=\"application/json\" id=\"data\">";
    let (_, data) = page.split_once(opening).unwrap();
    let (data, rest) = data.split_once("</script>").unwrap();
    assert_eq!(
        rest.matches("<script").count(),
        1,
        "only the page's own script follows"
    );
    assert!(!data.contains('<'));
    serde_json::from_str(data).unwrap()
}

fn int(value: &Value) -> i64 {
    let text = value.as_str().map(str::to_owned);
    text.unwrap_or_else(|| value.to_string()).parse().unwrap()
}

/// Returns the window at a budget from the page's data, as its script does.
fn window_at(data: &Value, budget: i64) -> Vec<u64> {
    let items = data["items"].as_array().unwrap();
    let at_target = budget == int(&data["budget"]["target"]);
    let is_in = |item: &Value| {
        let intervals = item["intervals"].as_array().unwrap();
        let mut intervals = intervals.iter();
        intervals.any(|interval| int(&interval[0]) <= budget && budget <= int(&interval[1]))
    };
    let sequence = data["order"]["sequence"].as_array().unwrap().iter();
    let sequence = sequence.map(|index| index.as_u64().unwrap());
    let item = |index: &u64| &items[usize::try_from(*index).unwrap()];
    if at_target {
        let mut members: Vec<u64> = sequence
            .filter(|index| !item(index)["position"].is_null())
            .collect();
        members.sort_by_key(|index| item(index)["position"].as_u64());
        return members;
    }
    let members = sequence.filter(|index| is_in(item(index)));
    if data["is_chat"] == true {
        return members.collect();
    }
    let ends = data["order"]["ends"].as_str().unwrap().chars();
    let (back, front): (Vec<_>, Vec<_>) = members.zip(ends).partition(|(_, end)| *end == 'b');
    let window = front.into_iter().chain(back.into_iter().rev());
    window.map(|(index, _)| index).collect()
}

#[test]
fn a_page_shows_the_window_of_a_run_at_every_budget() {
    for case in CASES.iter() {
        let data = embedded(case.page());
        assert_eq!(data["exact"], case.name != "sampled");
        for budget in case.probes(&data) {
            let expected = case.expectation(budget);
            let name = case.name;
            assert_eq!(
                json!(window_at(&data, budget)),
                expected["window"],
                "{name} at {budget}"
            );
            let failures = data["failures"].as_array().unwrap();
            let fails = failures
                .iter()
                .any(|failure| int(&failure["from"]) <= budget && budget <= int(&failure["to"]));
            assert_eq!(fails, expected["error"].is_string(), "{name} at {budget}");
            assert_eq!(fails, budget < int(&data["least"]), "{name} at {budget}");
            if case.chat.is_some() && !fails {
                assert_eq!(
                    tokens_at(&data, budget),
                    expected["tokens"],
                    "{name} at {budget}"
                );
                assert_eq!(
                    markers_at(&data, budget),
                    &expected["markers"],
                    "{name} at {budget}"
                );
            }
        }
    }
}

/// Returns the tokens of a window from the page's data, as its script does.
fn tokens_at(data: &Value, budget: i64) -> String {
    let items = data["items"].as_array().unwrap();
    let at_target = budget == int(&data["budget"]["target"]);
    let is_at = |range: &&Value| int(&range[0]) <= budget && budget <= int(&range[1]);
    let tokens = window_at(data, budget).into_iter().map(|index| {
        let item = &items[usize::try_from(index).unwrap()];
        let views = item["views"].as_array().into_iter().flatten();
        let form = if at_target {
            item["shortened"].as_u64()
        } else {
            views
                .filter(is_at)
                .map(|view| view[2].as_u64().unwrap())
                .next()
        };
        match form {
            Some(form) => int(&item["forms"][usize::try_from(form).unwrap()][0]),
            None => int(&item["tokens"]),
        }
    });
    let markers = markers_at(data, budget).as_array().unwrap();
    let markers: i64 = markers.iter().map(|marker| int(&marker["tokens"])).sum();
    (tokens.sum::<i64>() + markers + int(&data["overhead"])).to_string()
}

/// Returns the markers of a window from the page's data, as its script does.
fn markers_at(data: &Value, budget: i64) -> &Value {
    static NONE: LazyLock<Value> = LazyLock::new(|| json!([]));
    let entries = data["markers"].as_array().unwrap().iter();
    let entries = entries.take_while(|entry| int(&entry["from"]) <= budget);
    entries.last().map_or(&NONE, |entry| &entry["markers"])
}

/// The cached prefix at every probed budget is what the window has in common with the one of the previous request, and
/// the cuts are those of a fit.
#[test]
fn a_page_of_a_replay_has_its_cuts_and_the_shared_prefix() {
    let case = CASES.iter().find(|it| it.name == "replayed").unwrap();
    let chat = case.chat.as_ref().unwrap();
    let data = embedded(case.page());
    let at = |list: &str, budget: i64| {
        let entries = data[list].as_array().unwrap().iter();
        let entries = entries.take_while(|entry| int(&entry["from"]) <= budget);
        entries.last().cloned().unwrap_or_default()
    };
    // The previous request: all before the last run of messages of the model.
    let request: Value = serde_json::from_str(SESSION).unwrap();
    let messages = request["messages"].as_array().unwrap();
    let is_model = |index: usize| messages[index]["role"] == "assistant";
    let last = (0..messages.len()).rfind(|&it| is_model(it)).unwrap();
    let end = (0..last).rfind(|&it| !is_model(it)).unwrap() + 1;
    let mut earlier = request.clone();
    earlier["messages"].as_array_mut().unwrap().truncate(end);
    let earlier = Chat::parse(&earlier.to_string(), None).unwrap();
    let mut found = [0; 2];
    for budget in (700..=5_900).step_by(130) {
        let limits = ContextBudget::with_target(budget, budget).unwrap();
        let Ok(fitted) = chat.fit(&limits) else {
            continue;
        };
        let cuts = &at("cuts", budget)["cuts"];
        match &fitted.cuts {
            None => assert!(cuts.is_null(), "{budget}: {cuts}"),
            Some(expected) => {
                found[0] += 1;
                let made = expected.made.iter();
                let made =
                    made.map(|it| (it.request, it.messages, it.tokens_before, it.tokens_after));
                assert_eq!(cuts["made"], json!(made.collect::<Vec<_>>()), "{budget}");
                assert_eq!(cuts["budget"], expected.budget);
                let points = cuts["tokens"].as_array().unwrap();
                assert_eq!(points.len(), expected.requests);
                for cut in &expected.made {
                    assert_eq!(
                        points[cut.request - 1],
                        json!([cut.request, cut.tokens_after])
                    );
                }
            }
        }
        let Ok(before) = earlier.fit(&chat.policy, &limits, &*chat.counter) else {
            continue;
        };
        let window = |fitted: &Fitted<'_>| {
            let request: Value = serde_json::from_str(&fitted.to_json()).unwrap();
            request["messages"].as_array().unwrap().clone()
        };
        let (now, before) = (window(&fitted), window(&before));
        let same = now.iter().zip(&before).take_while(|(a, b)| a == b).count();
        let shared = &at("shared", budget)["shared"];
        // Messages and markers of the prefix; its last one is at this position of the input.
        let positions = fitted.messages();
        let expected = positions[..same].iter().next_back().map(|it| match it {
            FittedMessage::Original(index) | FittedMessage::Changed { index, .. } => *index,
            FittedMessage::Marker { before, .. } => *before,
        });
        assert_eq!(shared[0].as_u64(), expected.map(|it| it as u64), "{budget}");
        found[1] += usize::from(same > 3 && same < now.len());
    }
    assert!(found[0] > 20 && found[1] > 10, "{found:?}");
}

/// Each cut has its step, and the level that the text was cut to.
#[test]
fn a_page_says_which_step_shortened_a_message_and_to_how_much() {
    /// The most tokens that the role and the id of a message have.
    const ROLE: i64 = 10;
    let case = CASES.iter().find(|it| it.name == "agent-session").unwrap();
    let data = embedded(case.page());
    let chat = case.chat.as_ref().unwrap();
    let fitted =
        chat.chat
            .fit_candidates(&chat.policy, &case.budget, &chat.candidates, &*chat.counter);
    let fitted = fitted.unwrap();
    assert!(fitted.shortened.len() > 3);
    // Those of the preset `agent`.
    let levels = [
        6400, 4000, 3200, 2000, 1600, 1000, 800, 500, 400, 250, 200, 100, 60, 50, 30, 25,
    ];
    for item in data["items"].as_array().unwrap() {
        for form in item["forms"].as_array().into_iter().flatten() {
            let (tokens, level) = (int(&form[0]), int(&form[2]));
            assert!(levels.contains(&level), "{item}");
            assert!(
                tokens <= level + ROLE && level < int(&item["tokens"]),
                "{item}"
            );
            assert!(!form[3].as_str().unwrap().is_empty(), "{item}");
        }
    }
    for cut in &fitted.shortened {
        let item = &data["items"][cut.index];
        let form = usize::try_from(item["shortened"].as_u64().unwrap()).unwrap();
        assert_eq!(int(&item["forms"][form][0]), cut.tokens);
        assert_eq!(int(&item["tokens"]), cut.original_tokens);
    }
    let step = |index: usize| {
        let item = &data["items"][index];
        let form = usize::try_from(item["shortened"].as_u64().unwrap()).unwrap();
        item["forms"][form][3].as_str().unwrap()
    };
    assert_eq!(step(24), "tool results");
    assert_eq!(step(41), "what is always kept (newest step)");
    assert_eq!(step(42), "texts");
}

/// A limit for tool results shortens a message at every budget, which is no form of it.
#[test]
fn a_page_has_the_tokens_before_the_limit_for_tool_results() {
    let long = "a line of a long result\n".repeat(200);
    let call = json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let again =
        json!({"id": "b", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let messages = json!([
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": long},
        {"role": "assistant", "content": null, "tool_calls": [again]},
        {"role": "tool", "tool_call_id": "b", "content": long},
        {"role": "user", "content": "And?"},
    ]);
    let policy = single_policy();
    let mut settings = policy.chat().clone();
    settings.max_result = Some(300);
    let policy = policy.to_builder().chat(settings).build().unwrap();
    let case = of_chat_under("limited", &messages.to_string(), 500, Heuristic, policy);
    let data = embedded(case.page());
    for index in [2, 4] {
        let item = &data["items"][index];
        assert!(
            int(&item["tokens"]) <= 300 && int(&item["original"]) > 600,
            "{item}"
        );
    }
    // The older result of the same call is cut first.
    let forms = data["items"][2]["forms"].as_array().unwrap();
    let of_level = |level| forms.iter().find(|form| int(&form[2]) == level).unwrap()[3].clone();
    let repeated = "results of a repeated call (the newest is #4)";
    assert_eq!(of_level(100), repeated);
    assert_eq!(of_level(60), "tool results");
}

#[test]
fn a_page_lists_excluded_items_in_the_order_of_the_report() {
    for case in CASES.iter() {
        let data = embedded(case.page());
        let report = case.pipeline.dry_run(&case.items, &case.budget).unwrap();
        let listed = data["by_score"].as_array().unwrap().iter();
        let listed = listed.map(|index| usize::try_from(index.as_u64().unwrap()).unwrap());
        let listed: Vec<usize> = listed
            .filter(|&index| data["items"][index]["position"].is_null())
            .collect();
        assert_eq!(listed.len(), report.excluded.len());
        for (index, excluded) in listed.into_iter().zip(&report.excluded) {
            let item = &data["items"][index];
            assert!(
                case.items[index].is_same(&excluded.item),
                "{} #{index}",
                case.name
            );
            assert!(item["reason"].is_string());
            let always = matches!(
                excluded.reason,
                ExclusionReason::Deduplicated { .. } | ExclusionReason::NegativeTokens { .. }
            );
            assert_eq!(item["always"] == true, always);
        }
    }
}

#[test]
fn reasons_are_the_phrases_of_the_run() {
    let case = hostile();
    let data = embedded(case.page());
    let reason = |index: usize| {
        data["items"][index]["reason"]
            .as_str()
            .unwrap_or("in")
            .to_owned()
    };
    // By density 9, 0, 4, 3, 2, 7 and 1 take 53 of 60 tokens.
    assert_eq!(reason(8), "no room: needs 900, 7 left");
    assert_eq!(
        reason(12),
        "no room: needs 9,223,372,036,854,775,807, 7 left"
    );
    assert_eq!(reason(13), "negative token count: -5");
    for copy in [14, 15] {
        assert_eq!(reason(copy), "duplicate of another item");
        let facts = data["items"][copy]["facts"].as_array().unwrap();
        assert!(facts.contains(&json!(["duplicate of", "#1"])), "{facts:?}");
    }
    assert_eq!(reason(11), "in");
}

fn page_of(items: &[ContextItem], budget: &ContextBudget, pipeline: &Pipeline) -> String {
    let subject = Subject {
        prepared: None,
        replayed: None,
        before: None,
        title: "items.json",
        items,
        budget,
        pipeline,
        chat: None,
        about: About::default(),
    };
    subject.render().unwrap()
}

#[test]
fn scores_have_their_parts() {
    let (items, budget) = incident();
    let pipeline = Pipeline::new(relevance(), GreedySlice, ChronologicalPlacer);
    let data = embedded(&page_of(&items, &budget, &pipeline));
    let names: Vec<_> = data["scorers"][0]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| {
            (
                node["depth"].as_u64().unwrap(),
                node["name"].as_str().unwrap(),
                node["weight"].as_f64(),
            )
        })
        .collect();
    assert_eq!(
        names,
        [
            (0, "CompositeScorer", None),
            (1, "ReflexiveScorer", Some(3.0 / 6.0)),
            (1, "RecencyScorer", Some(2.0 / 6.0)),
            (1, "ScaledScorer", Some(1.0 / 6.0)),
            (2, "KindScorer", None),
        ]
    );
    assert_eq!(data["scorers"].as_array().unwrap().len(), 1);
    // The last message: hint 1.0, the newest; its kind has the lowest weight.
    let last = items.len() - 1;
    let (shape, scores) = (
        &data["items"][last]["parts"][0],
        &data["items"][last]["parts"][1],
    );
    assert_eq!(shape, 0);
    assert_eq!(scores[1], 1.0);
    assert_eq!(scores[2], 1.0);
    assert_eq!(scores[3], 0.0);
    assert!((scores[0].as_f64().unwrap() - 5.0 / 6.0).abs() < 1e-12);
}

#[test]
fn a_placer_without_a_rule_has_an_order_at_the_given_budget_only() {
    struct ByLength;
    impl Placer for ByLength {
        fn place(&self, items: &[ScoredItem]) -> Vec<ContextItem> {
            let mut placed: Vec<_> = items.iter().map(|scored| scored.item.clone()).collect();
            placed.sort_by_key(|item| item.content().len());
            placed
        }
    }
    let (items, budget) = incident();
    let pipeline = Pipeline::new(relevance(), GreedySlice, ByLength);
    let data = embedded(&page_of(&items, &budget, &pipeline));
    assert_eq!(data["order"], Value::Null);
    let window = pipeline.run_indices(&items, &budget).unwrap();
    for (position, index) in window.into_iter().enumerate() {
        assert_eq!(data["items"][index]["position"], position);
    }
}

#[test]
fn the_same_input_gives_the_same_page() {
    for case in CASES.iter() {
        assert!(case.page() == case.render(), "{}", case.name);
    }
}

#[test]
fn a_page_handles_the_ends_of_the_number_range() {
    let item = |tokens| {
        ContextItem::builder(format!("{tokens} tokens"), tokens)
            .future_relevance_hint(0.5)
            .build()
            .unwrap()
    };
    let pipeline = Pipeline::new(ReflexiveScorer, GreedySlice, ChronologicalPlacer);
    for (max, target) in [
        (i64::MAX, i64::MAX),
        (i64::MAX, 8),
        (0, 0),
        (1 << 60, 1 << 54),
    ] {
        let budget = ContextBudget::with_target(max, target).unwrap();
        let items = [item(i64::MAX), item(1 << 53), item(1)];
        let data = embedded(&page_of(&items, &budget, &pipeline));
        let window = pipeline.run_indices(&items, &budget).unwrap();
        assert_eq!(json!(window_at(&data, target)), json!(window));
        assert_eq!(data["items"][0]["tokens"], "9223372036854775807");
    }
    let budget = ContextBudget::with_target(10, 10).unwrap();
    assert_eq!(
        embedded(&page_of(&[], &budget, &pipeline))["items"],
        json!([])
    );
}

#[test]
fn pages_and_expectations_for_the_browser_are_written() {
    let own;
    let directory = match std::env::var_os("CUPEL_PAGES") {
        Some(directory) => std::path::PathBuf::from(directory),
        None => {
            own = tempfile::tempdir().unwrap();
            own.path().to_owned()
        }
    };
    let mut expectations = serde_json::Map::new();
    for case in CASES.iter() {
        let page = case.page();
        let probes = case.probes(&embedded(page)).into_iter();
        let report = case.pipeline.dry_run(&case.items, &case.budget).unwrap();
        let window = case
            .pipeline
            .run_indices(&case.items, &case.budget)
            .unwrap();
        // A handle may be in the input twice; the other one is in the window.
        let position = |excluded: &ExcludedItem| {
            let mut items = case.items.iter().enumerate();
            items.position(|(index, item)| item.is_same(&excluded.item) && !window.contains(&index))
        };
        let kinds: Vec<_> = case
            .items
            .iter()
            .map(|item| item.kind().as_str().to_lowercase())
            .collect();
        let expected = json!({
            "target": case.budget.target_tokens(),
            "kinds": kinds,
            "count": case.len(),
            "is_chat": case.chat.is_some(),
            "excluded": report.excluded.iter().map(position).collect::<Vec<_>>(),
            "runs": probes.map(|budget| case.expectation(budget)).collect::<Vec<_>>(),
            "sent": case.sent(),
        });
        expectations.insert(case.name.to_owned(), expected);
        std::fs::write(directory.join(format!("{}.html", case.name)), page).unwrap();
    }
    let expectations = Value::Object(expectations).to_string();
    std::fs::write(directory.join("expectations.json"), expectations).unwrap();
}
