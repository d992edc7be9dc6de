//! Checks that your own scorers, slicers and placers keep their contracts.
//!
//! One call tests a strategy on fixed inputs: an empty list, one item, ties, equal items, the same
//! item twice, zero-token items, missing fields, NaN and infinite scores, forty mixed items.
//!
//! ```
//! use cupel::{ContextItem, Scorer};
//! use cupel_testing::laws;
//!
//! struct Brevity;
//!
//! impl Scorer for Brevity {
//!     fn score(&self, item: &ContextItem, _all_items: &[ContextItem]) -> f64 {
//!         1.0 / (1.0 + item.content().len() as f64)
//!     }
//! }
//!
//! laws::scorer(&Brevity);
//! ```
//!
//! [`scorer`], [`slicer`] and [`placer`] panic at the caller's line with the text of a
//! [`LawViolation`]. [`check_scorer`], [`check_slicer`] and [`check_placer`] take your own input and
//! return the violation.
//!
//! | law | scorer | slicer | placer |
//! |---|---|---|---|
//! | [`Answers`](Law::Answers) | `score_all` | | `arrange` |
//! | [`Repeatable`](Law::Repeatable) | both methods | both methods | both methods |
//! | [`OneScorePerItem`](Law::OneScorePerItem) | `score_all` | | |
//! | [`BatchEqualsSingle`](Law::BatchEqualsSingle) | `score_all` | | |
//! | [`Subset`](Law::Subset), [`NoRepeats`](Law::NoRepeats) | | both methods | |
//! | [`WithinTarget`](Law::WithinTarget) | | both methods | |
//! | [`NothingFromNothing`](Law::NothingFromNothing) | | both methods | |
//! | [`SelectEqualsSlice`](Law::SelectEqualsSlice) | | `select` | |
//! | [`Permutation`](Law::Permutation) | | | both methods |
//! | [`ArrangeEqualsPlace`](Law::ArrangeEqualsPlace) | | | `arrange` |
//! | [`RuleEqualsArrange`](Law::RuleEqualsArrange) | | | `rule`, if there is one |

mod inputs;
mod placing;
mod scoring;
mod slicing;
mod violation;

use cupel::{ContextItem, Placer, ScoredItem, ScoredRef, Scorer, Slicer};

pub use placing::check_placer;
pub use scoring::check_scorer;
pub use slicing::check_slicer;
pub use violation::{Law, LawViolation};

/// Asserts that the scorer keeps its laws on the fixed inputs.
///
/// One item has a negative token count. A pipeline drops such items before scoring; if the scorer
/// cannot score them, use [`check_scorer`] with your own input.
///
/// ```
/// use cupel::{RecencyScorer, ScaledScorer};
/// use cupel_testing::laws;
///
/// laws::scorer(&ScaledScorer::new(RecencyScorer));
/// ```
///
/// # Panics
///
/// Panics with the text of the first [`LawViolation`].
#[track_caller]
pub fn scorer(scorer: &(impl Scorer + ?Sized)) {
    for case in inputs::items() {
        if let Err(violation) = check_scorer(scorer, &case.input) {
            panic!("{}", violation.on(case.name));
        }
    }
}

/// Asserts that the slicer keeps its laws on the fixed inputs.
///
/// The lists are as a pipeline passes them: sorted by score, without negative token counts.
///
/// ```
/// use cupel::KnapsackSlice;
/// use cupel_testing::laws;
///
/// laws::slicer(&KnapsackSlice::new(1)?);
/// # Ok::<(), cupel::CupelError>(())
/// ```
///
/// # Panics
///
/// Panics with the text of the first [`LawViolation`].
#[track_caller]
pub fn slicer(slicer: &(impl Slicer + ?Sized)) {
    for case in inputs::sorted() {
        for budget in inputs::budgets(&case.input) {
            if let Err(violation) = check_slicer(slicer, &case.input, &budget) {
                panic!("{}", violation.on(case.name));
            }
        }
    }
}

/// Asserts that the placer keeps its laws on the fixed inputs.
///
/// The lists are as a pipeline passes them: pinned items first, then by score.
///
/// ```
/// use cupel::UShapedPlacer;
/// use cupel_testing::laws;
///
/// laws::placer(&UShapedPlacer);
/// ```
///
/// # Panics
///
/// Panics with the text of the first [`LawViolation`].
#[track_caller]
pub fn placer(placer: &(impl Placer + ?Sized)) {
    for case in inputs::merged() {
        if let Err(violation) = check_placer(placer, &case.input) {
            panic!("{}", violation.on(case.name));
        }
    }
}

/// The position of an entry that must not be in an answer.
enum BadEntry {
    Unknown(usize),
    Repeated(usize),
}

impl BadEntry {
    fn finding(&self, method: &str) -> String {
        match self {
            Self::Unknown(position) => {
                format!("{method} returned an item at position {position} that it did not receive")
            }
            Self::Repeated(position) => {
                format!("{method} returned an item again at position {position}")
            }
        }
    }
}

/// Returns the positions in `offered` of the returned items. An item offered several times matches
/// its positions in order.
fn positions(offered: &[ScoredItem], returned: &[ContextItem]) -> Result<Vec<usize>, BadEntry> {
    let mut taken = vec![false; offered.len()];
    let mut found = Vec::with_capacity(returned.len());
    for (position, item) in returned.iter().enumerate() {
        let mut same = (0..offered.len()).filter(|&at| offered[at].item.is_same(item));
        let is_offered = same.clone().next().is_some();
        match same.find(|&at| !taken[at]) {
            Some(at) => {
                taken[at] = true;
                found.push(at);
            }
            None if is_offered => return Err(BadEntry::Repeated(position)),
            None => return Err(BadEntry::Unknown(position)),
        }
    }
    Ok(found)
}

/// Returns the positions if each is below `offered` and occurs once.
fn distinct(positions: &[usize], offered: usize) -> Result<Vec<usize>, BadEntry> {
    let mut taken = vec![false; offered];
    for (position, &at) in positions.iter().enumerate() {
        match taken.get_mut(at) {
            None => return Err(BadEntry::Unknown(position)),
            Some(true) => return Err(BadEntry::Repeated(position)),
            Some(taken) => *taken = true,
        }
    }
    Ok(positions.to_vec())
}

fn borrowed(items: &[ScoredItem]) -> Vec<ScoredRef<'_>> {
    ScoredRef::from_list(items)
}

/// Formats a list for a violation: its length and its first entries.
fn described<T>(list: &[T], entry: fn(&T) -> String) -> String {
    const SHOWN: usize = 8;
    let mut entries: Vec<String> = list.iter().take(SHOWN).map(entry).collect();
    if list.len() > SHOWN {
        entries.push("...".to_owned());
    }
    match list.len() {
        0 => "no items".to_owned(),
        1 => format!("1 item: {}", entries[0]),
        count => format!("{count} items: {}", entries.join(", ")),
    }
}

fn with_score(scored: &ScoredItem) -> String {
    let (item, score) = (&scored.item, scored.score);
    let content = excerpt(item.content());
    format!("{content} ({} tokens, score {score})", item.tokens())
}

/// Returns the first characters of a text, quoted.
fn excerpt(text: &str) -> String {
    const SHOWN: usize = 40;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}
