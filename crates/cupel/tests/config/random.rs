//! Random policies and requests: round-trips and damaged documents.

use cupel::config::{Document, Format, PolicyConfig, ScorerConfig, policy_schema, request_schema};
use cupel::{ContextBudget, ContextItem};
use cupel_conformance::model::Task;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::schema::validator;
use crate::adapter::{build_budget, item};
use crate::arbitrary;

fn check<T: std::fmt::Debug>(
    cases: u32,
    strategy: impl Strategy<Value = T>,
    holds: impl Fn(T) -> Result<(), TestCaseError>,
) {
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new(config)
        .run(&strategy, holds)
        .unwrap_or_else(|error| panic!("{error}"));
}

/// Lowercases tags that ignore case, as a built policy does.
fn lowercase_tags(scorer: &mut ScorerConfig) {
    match scorer {
        ScorerConfig::Tag {
            tag_weights,
            ignore_case: true,
        } => {
            let weights = std::mem::take(tag_weights).into_iter();
            *tag_weights = weights
                .map(|(tag, weight)| (tag.to_ascii_lowercase(), weight))
                .collect();
        }
        ScorerConfig::Composite { entries } | ScorerConfig::Fusion { entries, .. } => {
            for entry in entries {
                lowercase_tags(&mut entry.scorer);
            }
        }
        ScorerConfig::Product { scorers } => scorers.iter_mut().for_each(lowercase_tags),
        ScorerConfig::Scaled { inner } => lowercase_tags(inner),
        _ => {}
    }
}

#[test]
fn a_policy_round_trips_through_its_data() {
    let schema = validator(&policy_schema());
    check(500, arbitrary::run(), |task| {
        let Task::Run { policy, .. } = &task else {
            return Ok(());
        };
        let text = policy.to_string();
        let Ok(config) = Document::parse(&text, Format::Json).and_then(|it| it.policy_config())
        else {
            return Ok(());
        };
        let mut expected = config.clone();
        lowercase_tags(&mut expected.scorer);
        prop_assert_eq!(PolicyConfig::of(&config.build().unwrap()), Ok(expected));

        let json = serde_json::to_value(&config).unwrap();
        prop_assert!(schema.is_valid(&json), "{}", json);
        let again: PolicyConfig = serde_json::from_value(json).unwrap();
        prop_assert_eq!(again, config);
        Ok(())
    });
}

#[test]
fn a_request_round_trips() {
    let schema = validator(&request_schema());
    check(300, arbitrary::run(), |task| {
        let Task::Run { budget, items, .. } = &task else {
            return Ok(());
        };
        let items: Result<Vec<ContextItem>, _> = items.iter().map(item).collect();
        let (Ok(items), Ok(budget)) = (items, build_budget(budget)) else {
            return Ok(());
        };
        let json = serde_json::json!({"items": items, "budget": budget});
        prop_assert!(schema.is_valid(&json), "{}", json);
        let text = json.to_string();
        let request = Document::parse(&text, Format::Json).and_then(|it| it.request());
        let request = request.map_err(|error| TestCaseError::fail(error.to_string()))?;
        // NaN is not equal to itself, so the JSON is compared.
        let written = |items: &[ContextItem], budget: &ContextBudget| {
            serde_json::json!({"items": items, "budget": budget}).to_string()
        };
        prop_assert_eq!(written(&request.items, &request.budget.unwrap()), text);
        prop_assert_eq!(request.policy, None);
        Ok(())
    });
}

#[test]
fn the_error_of_a_damaged_document_has_a_position_in_its_text() {
    let texts = [
        (Format::Json, super::documents::JSON),
        (Format::Toml, super::documents::TOML),
        (Format::Yaml, super::documents::YAML),
    ];
    let damage = (
        0..texts.len(),
        any::<prop::sample::Index>(),
        0..4_usize,
        prop::sample::select(&[
            "", "\"", "{", "]", ",", ":", "\n", "é", "0", "\\", "- ", "\u{0}",
        ]),
    );
    check(1_500, damage, |(which, place, length, inserted)| {
        let (format, text) = texts[which];
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let start = place.index(places.len());
        let end = places.get(start + length).copied().unwrap_or(text.len());
        let damaged = [&text[..places[start]], inserted, &text[end..]].concat();
        for read in [
            |document: Document<'_>| document.policy().map(|_| ()),
            |document: Document<'_>| document.request().map(|_| ()),
        ] {
            if let Err(error) = Document::parse(&damaged, format).and_then(read) {
                let position = error.position();
                prop_assert!(position.is_some(), "{}", error);
                prop_assert!(damaged.get(position.unwrap().span.clone()).is_some());
            }
        }
        Ok(())
    });
}
