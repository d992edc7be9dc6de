//! Every preset inside of every decorator, on items: what is mandatory stays and what is long is shortened,
//! or an error names both.

use cupel::config::{SlicerConfig, preset, presets};
use cupel::{ContextBudget, ContextItem, ContextKind, ContextView, LadderSlice, Policy};
use serde_json::json;

fn wrapped(name: &str, decorators: &[&str]) -> Result<Policy, String> {
    let mut config = preset(name).unwrap().config().clone();
    let mut slicer = serde_json::to_value(&config.slicer).unwrap();
    for decorator in decorators.iter().rev() {
        slicer = match *decorator {
            "quota" => json!({"type": "quota", "quotas": [], "inner": slicer}),
            "count_quota" => json!({"type": "count_quota", "entries": [], "inner": slicer}),
            name => json!({"type": name, "inner": slicer}),
        };
    }
    let read: Result<SlicerConfig, _> = serde_json::from_value(slicer);
    config.slicer = read.map_err(|error| error.to_string())?;
    let policy = config.build().map_err(|error| error.to_string())?;
    Ok(policy.with_query("result five"))
}

/// A mandatory task and tool results with views: pairs of a call and its result, in a group each.
fn items() -> Vec<ContextItem> {
    let task = ContextItem::builder("the task of all this", 40).meta(LadderSlice::MANDATORY, "");
    let pairs = (0..12).flat_map(|pair: i64| {
        let call = ContextItem::builder(format!("call {pair}"), 10);
        let text = format!(
            "result {pair}, which is long and says {} to everyone",
            pair * pair
        );
        let view = ContextView::new(format!("result {pair}"), 30).with_level(100);
        let result = ContextItem::builder(text, 200)
            .kind(ContextKind::tool_output())
            .view(view);
        [call, result].map(|item| item.meta("cupel:group", format!("pair {pair}")))
    });
    let all = std::iter::once(task).chain(pairs);
    all.map(|item| item.build().unwrap()).collect()
}

#[test]
fn every_preset_works_in_every_decorator_or_the_error_names_both() {
    let items = items();
    let decorators: [&[&str]; 7] = [
        &["near_duplicates"],
        &["group"],
        &["quota"],
        &["count_quota"],
        &["near_duplicates", "group"],
        &["group", "near_duplicates"],
        &["count_quota", "group"],
    ];
    let mut refused = 0;
    for preset in presets() {
        let plain = wrapped(preset.name(), &[]).unwrap();
        let has_ladder = plain.slicer().ladder().is_some();
        let inner = if has_ladder { "ladder" } else { "knapsack" };
        for decorators in decorators {
            let context = format!("{} in {decorators:?}", preset.name());
            let policy = match wrapped(preset.name(), decorators) {
                Ok(policy) => policy,
                Err(error) => {
                    let outer = decorators.iter().find(|it| it.contains("quota")).unwrap();
                    assert!(error.contains(outer) && error.contains(inner), "{error}");
                    refused += 1;
                    continue;
                }
            };
            for tokens in [400, 700, 1_300, 2_600] {
                let budget = ContextBudget::with_target(tokens, tokens).unwrap();
                let decisions = policy.decide(&items, &budget).unwrap();
                assert!(decisions.tokens_used() <= tokens, "{context} at {tokens}");
                if !has_ladder {
                    continue;
                }
                assert!(decisions.window().contains(&0), "{context} at {tokens}");
                let alone = plain.decide(&items, &budget).unwrap();
                let views = |decisions: &cupel::Decisions<'_>| {
                    let all = 0..items.len();
                    all.filter(|&it| decisions.view(it).is_some()).count()
                };
                assert_eq!(views(&decisions), views(&alone), "{context} at {tokens}");
                assert_eq!(views(&alone) > 0, tokens < 2_560, "{context} at {tokens}");
                for pair in 0..12 {
                    let [call, result] =
                        [1, 2].map(|it| decisions.window().contains(&(2 * pair + it)));
                    assert_eq!(call, result, "{context} at {tokens}: pair {pair}");
                }
            }
        }
    }
    assert_eq!(refused, 4 * 3);
}
