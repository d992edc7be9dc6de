//! Policies with strategies that no document describes.

use cupel::config::PolicyConfig;
use cupel::{
    ChronologicalPlacer, ContextBudget, ContextItem, CupelError, Policy, RankSlice, RecencyScorer,
    ScoredItem, Slicer,
};
use cupel_chat::Encoding;
use cupel_eval::{
    Billing, EvalPolicy, Evaluation, Measure, Method, parse_runs, replay, unobserved,
};

use crate::{Later, dataset, later, line};

/// Keeps the best items up to the first that does not fit.
struct Prefix;

impl Slicer for Prefix {
    fn slice(
        &self,
        sorted: &[ScoredItem],
        budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        let mut left = budget.target_tokens();
        let fits = |scored: &&ScoredItem| {
            left -= scored.item.tokens();
            left >= 0
        };
        let kept = sorted.iter().take_while(fits);
        Ok(kept.map(|scored| scored.item.clone()).collect())
    }
}

fn newest() -> EvalPolicy {
    let policy = Policy::new(RecencyScorer, RankSlice, ChronologicalPlacer);
    EvalPolicy::new("newest", policy)
}

#[test]
fn a_custom_scorer_is_evaluated_as_the_equal_built_in_one() {
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/examples/questions.jsonl"
    ));
    let questions = dataset("questions", &text.expect("the example"));
    assert!(PolicyConfig::of(&later().policy).is_err());
    let policies = [later(), newest()];
    let evaluation = Evaluation::run(&questions, &policies, &[40, 90, 300], &mut unobserved);
    let evaluation = evaluation.expect("an evaluation");
    for &measure in evaluation.measures() {
        let [custom, built_in] = [0, 1].map(|policy| evaluation.estimate(policy, measure));
        assert!(custom.is_some());
        assert_eq!(custom, built_in, "{measure:?}");
        let difference = evaluation.difference(0, 1, measure).expect("a difference");
        assert_eq!((difference.low, difference.high), (0.0, 0.0));
    }
}

/// The newer item is the first in the ranking, so that only it fits 5 tokens; at 9 tokens the prefix ends there
/// too, and 10 hold both.
#[test]
fn a_custom_slicer_is_evaluated() {
    let questions = dataset("questions", &(line("a", 0) + &line("b", 0) + &line("c", 1)));
    let prefix = Policy::new(Later, Prefix, ChronologicalPlacer);
    let prefix = [EvalPolicy::new("prefix", prefix)];
    let evaluation = Evaluation::run(&questions, &prefix, &[5, 9, 10], &mut unobserved);
    let evaluation = evaluation.expect("an evaluation");
    let items = [5, 9, 10].map(|budget| evaluation.mean(0, Measure::Items(budget)));
    assert_eq!(items, [Some(1.0 / 3.0), Some(1.0 / 3.0), Some(1.0)]);
    assert_eq!(evaluation.mean(0, Measure::RecallAt(5)), Some(1.0));
    assert_eq!(evaluation.mean(0, Measure::RecallAt(3)), None);
    assert_eq!(evaluation.mean(1, Measure::Items(5)), None);
}

#[test]
fn runs_are_replayed_with_a_custom_strategy() {
    let runs = include_str!("runs.jsonl");
    let runs = parse_runs(runs, "", None).expect("runs");
    let mut newest = newest();
    newest.name = later().name;
    let replayed = |policy| {
        let report = replay(
            &runs,
            &[Method::Fit(policy)],
            &[150, 300],
            &Billing::default(),
            &Encoding::O200k,
            &mut unobserved,
        );
        report.expect("a replay")
    };
    let (custom, built_in) = (replayed(later()), replayed(newest));
    assert!(custom.results.iter().all(|row| row.trimmed > 0));
    assert_eq!(custom, built_in);
}

#[test]
fn the_failure_of_a_policy_names_it_and_the_transcript() {
    let pinned = r#"{"items": [{"content": "a", "tokens": 99, "pinned": true}], "questions": [{"query": "q", "evidence": [0]}]}"#;
    let questions = dataset("mine", &(line("a", 0) + "\n" + pinned));
    let evaluation = Evaluation::run(&questions, &[later()], &[50], &mut unobserved);
    let error = evaluation.expect_err("pinned tokens over the budget");
    assert_eq!(
        error.to_string(),
        "line 3 of mine: later: pinned tokens (99) exceed available budget (50)"
    );
}

#[test]
fn a_budget_is_at_least_1() {
    let questions = dataset("mine", &line("a", 0));
    for (budgets, fault) in [
        (&[][..], "there is no budget"),
        (&[5, 0], "invalid budget 0: expected at least 1 token"),
        (&[-3, 5], "invalid budget -3: expected at least 1 token"),
    ] {
        let evaluation = Evaluation::run(&questions, &[later()], budgets, &mut unobserved);
        assert_eq!(evaluation.expect_err(fault).to_string(), fault);
    }
}
