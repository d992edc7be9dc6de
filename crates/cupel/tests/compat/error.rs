//! `cupel::error`: every variant and its text.

use std::error::Error;

use cupel::CupelError;

/// The error prints this text and has no source.
#[track_caller]
fn check(error: &CupelError, text: &str) {
    assert_eq!(error.to_string(), text);
    assert!(error.source().is_none());
}

#[test]
fn each_error_has_its_text() {
    check(&CupelError::EmptyContent, "content must be non-empty");
    check(
        &CupelError::EmptyKind,
        "kind must be a non-empty, non-whitespace-only string",
    );
    check(
        &CupelError::EmptySource,
        "source must be a non-empty, non-whitespace-only string",
    );
    check(
        &CupelError::InvalidBudget("why".to_string()),
        "invalid budget: why",
    );
    check(
        &CupelError::PinnedExceedsBudget {
            pinned_tokens: 150,
            available: 100,
        },
        "pinned tokens (150) exceed available budget (100)",
    );
    check(
        &CupelError::Overflow {
            merged_tokens: 160,
            target_tokens: 100,
        },
        "merged tokens (160) exceed target tokens (100)",
    );
    check(
        &CupelError::PipelineConfig("why".to_string()),
        "invalid pipeline configuration: why",
    );
    check(
        &CupelError::ScorerConfig("why".to_string()),
        "invalid scorer configuration: why",
    );
    check(
        &CupelError::SlicerConfig("why".to_string()),
        "invalid slicer configuration: why",
    );
    check(
        &CupelError::CycleDetected,
        "cycle detected: scorer appears in its own dependency graph",
    );
    check(
        &CupelError::TableTooLarge {
            candidates: 600,
            capacity: 100_000,
            cells: 60_000_000,
        },
        "KnapsackSlice DP table exceeds the 50,000,000-cell limit: \
         candidates=600, capacity=100000, cells=60000000",
    );
}

#[test]
fn an_error_can_be_taken_apart_and_carried_away() {
    fn numbers(error: &CupelError) -> Option<(i64, i64)> {
        match error {
            CupelError::PinnedExceedsBudget {
                pinned_tokens,
                available,
            } => Some((*pinned_tokens, *available)),
            CupelError::Overflow {
                merged_tokens,
                target_tokens,
            } => Some((*merged_tokens, *target_tokens)),
            CupelError::TableTooLarge {
                candidates,
                capacity,
                cells: _,
            } => Some((
                i64::try_from(*candidates).unwrap(),
                i64::try_from(*capacity).unwrap(),
            )),
            _ => None,
        }
    }

    fn payload(error: &CupelError) -> Option<&String> {
        match error {
            CupelError::InvalidBudget(text)
            | CupelError::PipelineConfig(text)
            | CupelError::ScorerConfig(text)
            | CupelError::SlicerConfig(text) => Some(text),
            _ => None,
        }
    }

    let error = CupelError::Overflow {
        merged_tokens: 160,
        target_tokens: 100,
    };
    assert_eq!(numbers(&error), Some((160, 100)));
    assert_eq!(payload(&error), None);
    assert_eq!(
        payload(&CupelError::InvalidBudget("why".to_string())).map(String::as_str),
        Some("why")
    );
    assert_eq!(numbers(&CupelError::CycleDetected), None);
    assert_eq!(
        format!("{:?}", error.clone()),
        "Overflow { merged_tokens: 160, target_tokens: 100 }"
    );
    let boxed: Box<dyn Error + Send + Sync> = error.into();
    assert!(boxed.downcast_ref::<CupelError>().is_some());
}
