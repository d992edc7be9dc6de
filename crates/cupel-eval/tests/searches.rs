//! Searches over the numbers of a policy.

use cupel::config::PolicyConfig;
use cupel_eval::{
    Axis, Grid, GridError, Measure, Objective, Overlap, Setting, TuneError, Tuning, unobserved,
};
use serde_json::{Number, json};

use crate::{dataset, later, line};

/// The newer item by 5 to 1, or by less the item with the hint.
fn start() -> PolicyConfig {
    let policy = json!({
        "name": "mine",
        "scorer": {"type": "composite", "entries": [
            {"scorer": {"type": "recency"}, "weight": 5},
            {"scorer": {"type": "reflexive"}, "weight": 1},
        ]},
        "slicer": {"type": "rank"},
    });
    serde_json::from_value(policy).expect("a policy")
}

fn grid(path: &str, values: impl IntoIterator<Item = f64>) -> Grid {
    let values = values.into_iter().filter_map(Number::from_f64);
    let axis = Axis {
        path: path.to_owned(),
        values: values.collect(),
    };
    Grid::new(vec![axis]).expect("a grid")
}

fn search(grid: &Grid, train: &str, report: &str) -> Result<cupel_eval::Tuned, TuneError> {
    let tuning = Tuning {
        start: &start(),
        grid,
        objective: Objective::Items,
        budgets: &[5],
        train: &dataset("train", train),
        report: &dataset("report", report),
        baselines: &[later()],
    };
    tuning.run(&mut unobserved)
}

#[test]
fn the_chosen_policy_is_compared_with_a_custom_strategy() {
    let weights = grid("scorer.entries[0].weight", [5.0, 0.5, 0.25]);
    let report = line("b", 0) + &line("c", 0) + &line("d", 1);
    let tuned = search(&weights, &line("a", 0), &report).expect("a search");
    // The first of the two equal settings.
    assert_eq!((tuned.best, &tuned.chosen), (1, &tuned.grid[1].setting));
    let means: Vec<f64> = tuned.grid.iter().map(|trial| trial.mean).collect();
    assert_eq!(means, [0.0, 1.0, 1.0]);
    assert_eq!(tuned.policy.name, None);
    let comparison = &tuned.report.results;
    assert_eq!(comparison.measures[0], Measure::Items(5));
    let values: Vec<_> = comparison
        .columns
        .iter()
        .map(|column| {
            let value = column.estimates[0].expect("a value").value;
            (&*column.policy, column.minus.as_deref(), value)
        })
        .collect();
    assert_eq!(values[0], ("chosen", None, 2.0 / 3.0));
    assert_eq!(values[1], ("later", None, 1.0 / 3.0));
    assert_eq!((values[2].0, values[2].1), ("chosen", Some("later")));
    assert!((values[2].2 - 1.0 / 3.0).abs() < 1e-12);
}

#[test]
fn a_search_is_serialized_with_its_settings_by_path() {
    let weights = grid("scorer.entries[0].weight", [0.5]);
    let tuned = search(&weights, &line("a", 0), &line("b", 0)).expect("a search");
    let document = serde_json::to_value(&tuned).expect("JSON");
    let keys: Vec<&String> = document.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["by", "chosen", "grid", "policy", "report", "train"]);
    assert_eq!(document["by"], "items_kept");
    assert_eq!(document["chosen"], json!({"scorer.entries[0].weight": 0.5}));
    assert_eq!(
        document["train"],
        json!({"file": "train", "transcripts": 1, "questions": 1, "skipped": 0, "samples": 2000})
    );
    assert_eq!(document["report"]["file"], "report");
    let row = json!({"measure": "items_kept", "at": 5, "policy": "chosen", "minus": null, "value": 1.0, "low": 1.0, "high": 1.0});
    assert_eq!(document["report"]["results"][0], row);
}

#[test]
fn a_transcript_to_report_on_must_be_another_one() {
    let weights = grid("scorer.entries[0].weight", [0.5]);
    let report = line("a", 0) + "\n" + &line("b", 1);
    // Other questions do not make it another transcript.
    let error = search(&weights, &(line("c", 0) + &line("b", 0)), &report).expect_err("the same");
    let overlap = Overlap {
        report: 3,
        train: 2,
    };
    assert_eq!(error, TuneError::Overlap(overlap));
    assert_eq!(
        error.to_string(),
        "line 3 of the report is also line 2 of the training data"
    );
}

#[test]
fn an_invalid_setting_names_the_path() {
    let apply = |path: &str, value: f64| -> Result<PolicyConfig, GridError> {
        let settings: Vec<Setting> = grid(path, [value]).settings();
        settings[0].apply(&start())
    };
    let valid = apply("scorer.entries.0.weight", 2.0).expect("a weight");
    let document = serde_json::to_value(valid).expect("JSON");
    assert_eq!(document["scorer"]["entries"][0]["weight"], 2.0);
    for (path, value, fault) in [
        (
            "scorer.entries[7].weight",
            1.0,
            "scorer.entries[7].weight: the policy has no `7` there",
        ),
        (
            "scorer.entries[0].scorer",
            1.0,
            "scorer.entries[0].scorer: `scorer` is not a number",
        ),
        (
            "scorer.entries[0].wieght",
            1.0,
            "scorer.entries[0].wieght: unknown key \"wieght\"; did you mean \"weight\"?",
        ),
    ] {
        assert_eq!(apply(path, value).expect_err(fault).to_string(), fault);
    }
    let negative = apply("scorer.entries[0].weight", -1.0).expect_err("a negative weight");
    assert!(
        matches!(negative, GridError::InvalidPolicy(_)),
        "{negative:?}"
    );
}
