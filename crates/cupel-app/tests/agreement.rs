//! Every question shows the same window of an input at a budget.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use cupel_app::{
    Content, NamedPolicy, Options, Prepared, Scope, Source, SweepAnswer, for_each_window,
};
use proptest::prelude::*;

/// A window as one question shows it.
#[derive(Debug, Clone, PartialEq)]
struct Window {
    /// The text of each kept message, by position.
    kept: BTreeMap<usize, String>,
    tokens: i64,
    /// The tokens of the markers, by the position that they precede.
    markers: Vec<(usize, i64)>,
}

fn options(budget: Option<i64>, policy: Option<&str>) -> Options {
    let mut options = Options::default();
    options.budget.budget = budget.map(Into::into);
    let none = |_: &str| Ok::<_, cupel_app::Error>(None);
    options.policy = policy.map(|name| NamedPolicy::find(name, none).unwrap());
    options
}

fn prepared(text: &str, options: &Options, scope: Scope) -> Prepared {
    Prepared::new(Source::new("chat.json", text), options, scope).unwrap()
}

fn markers_of(
    prepared: &Prepared,
    kept: &[usize],
    view: impl Fn(usize) -> Option<usize>,
) -> Vec<(usize, i64)> {
    let (Content::Chat { chat, candidates }, Some(counter)) =
        (&prepared.content, &prepared.setting.counter)
    else {
        return Vec::new();
    };
    let markers = chat.markers_for(candidates, kept, view, &**counter);
    markers.iter().map(|it| (it.before, it.tokens)).collect()
}

/// Returns the window that `fit` writes; `None` if the mandatory messages do not fit.
fn fitted(text: &str, budget: i64, policy: Option<&str>) -> Option<Window> {
    let prepared = prepared(text, &options(Some(budget), policy), Scope::OneBudget);
    let fit = prepared.fit().ok()?;
    let answer = fit.answer();
    let text = |index: &usize| (*index, fit.run.decisions.item(*index).content().to_owned());
    let window = Window {
        kept: answer.kept.iter().map(text).collect(),
        tokens: answer.tokens_after,
        markers: answer
            .markers
            .iter()
            .map(|it| (it.before, it.tokens))
            .collect(),
    };
    // The list of shortened messages is that of the decisions.
    let shortened: Vec<usize> = answer.shortened.iter().map(|it| it.index).collect();
    let decisions = &fit.run.decisions;
    let tokens_before = |index| match &prepared.content {
        Content::Chat { candidates, .. } => candidates.tokens_before(index),
        Content::Items { .. } => None,
    };
    let is_short = |it: &usize| tokens_before(*it) > Some(decisions.item(*it).tokens());
    let short: Vec<usize> = answer.kept.iter().copied().filter(is_short).collect();
    assert_eq!(shortened, short, "at {budget}");
    Some(window)
}

/// Returns the window that `explain` shows.
fn explained(text: &str, budget: i64, policy: Option<&str>) -> Option<Window> {
    let prepared = prepared(text, &options(Some(budget), policy), Scope::Budget);
    let answer = prepared.explain().ok()?;
    let decisions = prepared.decide().unwrap();
    let included = answer.candidates.iter().filter(|it| it.included);
    let text = |index| (index, decisions.item(index).content().to_owned());
    let kept: BTreeMap<usize, String> = included.map(|it| text(it.index)).collect();
    let indices: Vec<usize> = kept.keys().copied().collect();
    Some(Window {
        markers: markers_of(&prepared, &indices, |index| decisions.view(index)),
        tokens: answer.tokens_used,
        kept,
    })
}

/// Returns the windows that `sweep` shows at some budgets.
fn swept(prepared: &Prepared, sweep: &SweepAnswer, budgets: &[i64]) -> Vec<Option<Window>> {
    let sweep = &sweep.sweep;
    let (Some(first), Some(last)) = (sweep.steps.first(), sweep.steps.last()) else {
        return Vec::new();
    };
    // The forms of a replay are views of candidates of its own, and its markers those of each budget.
    let mut go_on = |_| ControlFlow::Continue(());
    let replayed = prepared.replayed(first.from..=last.to, &mut go_on).unwrap();
    let items = replayed.as_ref().map(|it| &*it.candidates);
    let items = items.unwrap_or_else(|| prepared.items());
    let mut windows = vec![None; budgets.len()];
    for_each_window(sweep, prepared.len(), |step, kept| {
        for (window, budget) in windows.iter_mut().zip(budgets) {
            if step.error.is_some() || !(step.from..=step.to).contains(budget) {
                continue;
            }
            let view = |index| sweep.view_at(index, *budget);
            let text = |&index: &usize| {
                let item = &items[index];
                let content = match view(index) {
                    Some(view) => item.views()[view].content(),
                    None => item.content(),
                };
                (index, content.to_owned())
            };
            *window = Some(Window {
                kept: kept.iter().map(text).collect(),
                tokens: step.tokens_used,
                markers: match &replayed {
                    Some(replayed) => {
                        let markers = replayed.markers_at(*budget).iter();
                        markers.map(|it| (it.before, it.tokens)).collect()
                    }
                    None => markers_of(prepared, kept, view),
                },
            });
        }
    });
    windows
}

/// Compares all questions at some budgets.
fn check(text: &str, budgets: &[i64], policy: &str) {
    let all = prepared(text, &options(None, Some(policy)), Scope::AnyBudget);
    let mut go_on = |_| ControlFlow::Continue(());
    let top = budgets
        .iter()
        .copied()
        .max()
        .unwrap_or(0)
        .max(all.all_tokens());
    let sweep = all.sweep(0, Some(top), &mut go_on).unwrap();
    assert!(sweep.sweep.exact);
    let least = all.min_budget(None, Some(top), &mut go_on).unwrap();
    let swept = swept(&all, &sweep, budgets);
    for (&budget, swept) in budgets.iter().zip(swept) {
        let fitted = fitted(text, budget, Some(policy));
        let explained = explained(text, budget, Some(policy));
        assert_eq!(fitted, explained, "fit and explain at {budget}");
        assert_eq!(fitted, swept, "fit and sweep at {budget}");
        let Some(window) = fitted else { continue };
        for entry in &least.items {
            let is_in = entry
                .ranges
                .iter()
                .any(|(from, to)| (*from..=*to).contains(&budget));
            let name = format!("min_budget of {} at {budget}", entry.index);
            assert_eq!(is_in, window.kept.contains_key(&entry.index), "{name}");
        }
        let options = options(Some(budget), None);
        let other = prepared(text, &options, Scope::OtherPolicies);
        let none = |_: &str| Ok::<_, cupel_app::Error>(None);
        let find = |name: &str| NamedPolicy::find(name, none).unwrap();
        let policies = vec![find(policy), find("newest")];
        // The other policy may have no window at this budget.
        let Ok(compared) = other.compare(policies) else {
            continue;
        };
        let variant = &compared.variants[0];
        let mut selected = variant.selected.clone();
        selected.sort_unstable();
        let kept: Vec<usize> = window.kept.keys().copied().collect();
        assert_eq!(selected, kept, "compare at {budget}");
        assert_eq!(variant.tokens, window.tokens, "compare at {budget}");
    }
}

/// Returns `count` budgets from 0 to a little above the tokens of the input, and those around its levels.
fn budgets(text: &str, count: i64) -> Vec<i64> {
    let prepared = prepared(text, &options(None, None), Scope::AnyBudget);
    let all = prepared.all_tokens() + 40;
    let mut budgets: Vec<i64> = (1..=count).map(|step| all * step / count).collect();
    budgets.retain(|&budget| budget > 0);
    budgets.dedup();
    budgets
}

fn examples() -> Vec<PathBuf> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut files = vec![examples.join("agent-session.json")];
    let shapes = std::fs::read_dir(examples.join("shapes")).unwrap();
    let shapes = shapes.map(|entry| entry.unwrap().path());
    files.extend(shapes.filter(|path| path.extension().is_some_and(|it| it == "json")));
    files.sort();
    files
}

#[test]
fn all_questions_show_the_same_window_of_every_example() {
    let files = examples();
    assert!(files.len() > 5, "{files:?}");
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let is_long = path.ends_with("agent-session.json");
        let budgets = budgets(&text, if is_long { 120 } else { 25 });
        for policy in ["agent", "single", "tool-use", "newest"] {
            check(&text, &budgets, policy);
        }
    }
}

/// The budget at which `fit` once kept a message in full that `explain` showed shortened.
#[test]
fn fit_and_explain_agree_where_they_once_differed() {
    let example = &examples()[0];
    let text = std::fs::read_to_string(example).unwrap();
    let budgets: Vec<i64> = (3_560..=3_640).step_by(8).collect();
    check(&text, &budgets, "single");
}

/// Returns the positions that `fit` keeps, and those that it keeps in full.
fn kept(text: &str, budget: i64) -> Option<(Vec<usize>, Vec<usize>)> {
    let prepared = prepared(text, &options(Some(budget), None), Scope::OneBudget);
    let answer = prepared.fit().ok()?.answer();
    let shortened: Vec<usize> = answer.shortened.iter().map(|it| it.index).collect();
    let in_full = answer.kept.iter().copied();
    let in_full = in_full.filter(|it| !shortened.contains(it)).collect();
    Some((answer.kept, in_full))
}

#[test]
fn with_a_replay_the_budgets_that_explain_names_are_those_of_fit() {
    let text = std::fs::read_to_string(&examples()[0]).unwrap();
    let mut checked = [0; 3];
    for budget in (1_700..5_900).step_by(700) {
        let prepared = prepared(&text, &options(Some(budget), None), Scope::Budget);
        for index in 0..prepared.len() {
            let answer = prepared.explain_item(index).unwrap();
            let explanation = &answer.explanation;
            let (own, own_in_full) = kept(&text, budget).unwrap();
            let (ranges, is_there) = match (own.contains(&index), own_in_full.contains(&index)) {
                (true, true) => {
                    assert!(answer.in_full.is_empty() && explanation.included_at.is_empty());
                    continue;
                }
                (true, false) => (&answer.in_full, 1),
                (false, _) => (&explanation.included_at, 0),
            };
            let first = ranges.first().map(|(from, _)| *from);
            match is_there {
                1 => assert_eq!(explanation.in_full_at, first),
                _ => assert_eq!(explanation.extra_tokens, first.map(|it| it - budget)),
            }
            assert!(
                ranges.last().unwrap().1 >= 5_869,
                "{index} at {budget}: {ranges:?}"
            );
            // The first budgets of a range include it, and those before and behind it do not.
            for &(from, to) in ranges {
                for (at, expected) in [(from - 1, false), (from, true), (to, true), (to + 1, false)]
                {
                    if at <= budget || at > 5_869 {
                        continue;
                    }
                    let (all, in_full) = kept(&text, at).unwrap();
                    let found = if is_there == 1 { in_full } else { all };
                    assert_eq!(
                        found.contains(&index),
                        expected,
                        "{index} of {budget} at {at}"
                    );
                    checked[usize::from(expected)] += 1;
                }
            }
            // A cut of an earlier request, or what this request needs beyond all cuts.
            let decisions = prepared.decide().unwrap();
            let words = prepared.cut_words(&decisions, index).unwrap();
            match answer.cut {
                Some(cut) => {
                    assert!(cut.budget <= budget && cut.tokens_before > cut.budget);
                    assert!(words.starts_with(&format!("at request {} of ", cut.request)));
                    checked[2] += 1;
                }
                None => assert_eq!(words, "for this request alone"),
            }
        }
    }
    assert!(checked.iter().all(|&count| count > 20), "{checked:?}");
}

/// A tool call and its result, with a result of about `size` words.
fn step(number: usize, size: usize) -> String {
    let words: Vec<String> = (0..size)
        .map(|word| format!("value_{number}_{word}"))
        .collect();
    let result = words
        .chunks(9)
        .map(|line| line.join(" "))
        .collect::<Vec<_>>()
        .join("\\n");
    format!(
        r#",{{"role": "assistant", "content": null, "tool_calls": [{{"id": "c{number}", "type": "function", "function": {{"name": "read", "arguments": "{{\"path\": \"file{}.txt\"}}"}}}}]}},{{"role": "tool", "tool_call_id": "c{number}", "content": "{result}"}}"#,
        number % 3
    )
}

/// A turn of a conversation with an answer of about `size` words.
fn turn(number: usize, size: usize) -> String {
    let words: Vec<String> = (0..size).map(|word| format!("word{word}")).collect();
    let answer = words
        .chunks(12)
        .map(|line| line.join(" "))
        .collect::<Vec<_>>()
        .join(".\\n");
    format!(
        r#",{{"role": "assistant", "content": "Answer {number}: {answer}"}},{{"role": "user", "content": "And question {number}?"}}"#
    )
}

fn chat() -> impl Strategy<Value = String> {
    let part = (any::<bool>(), 1_usize..160);
    prop::collection::vec(part, 1..9).prop_map(|parts| {
        let mut text = String::from(
            r#"[{"role": "system", "content": "You help."},{"role": "user", "content": "Fix the build, please."}"#,
        );
        for (number, (is_step, size)) in parts.into_iter().enumerate() {
            text += &if is_step { step(number, size) } else { turn(number, size) };
        }
        text + "]"
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn all_questions_show_the_same_window_of_random_chats(text in chat(), policy in 0_usize..4) {
        let policy = ["agent", "single", "tool-use", "newest"][policy];
        check(&text, &budgets(&text, 14), policy);
    }
}
