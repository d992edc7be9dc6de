//! The contracts of scorers, slicers and placers, as tests for your own.
//!
//! One line tests a strategy on a fixed spread of inputs: none, one, ties, twins, an item
//! twice, free items, missing fields, unusual scores, forty mixed ones.
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
//! [`scorer`], [`slicer`] and [`placer`] panic at the line that called them, with a [`LawViolation`] as
//! the payload and its text on standard error. [`check_scorer`], [`check_slicer`] and
//! [`check_placer`] take an input of yours and return the violation.
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

mod placing;
mod scoring;
mod slicing;
mod spread;
mod violation;

use cupel::{ContextItem, Placer, ScoredItem, ScoredRef, Scorer, Slicer};

pub use placing::check_placer;
pub use scoring::check_scorer;
pub use slicing::check_slicer;
pub use violation::{Law, LawViolation};

use crate::error::raise;

/// Panics with the first law that the scorer breaks on the spread of inputs.
///
/// One of the items has a negative token count, as an item may; a pipeline drops such items
/// before it scores. A scorer that cannot score every item is for [`check_scorer`].
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
/// With a [`LawViolation`].
#[track_caller]
pub fn scorer(scorer: &(impl Scorer + ?Sized)) {
    for case in spread::items() {
        if let Err(violation) = check_scorer(scorer, &case.input) {
            raise(violation.on(case.name));
        }
    }
}

/// Panics with the first law that the slicer breaks on the spread of inputs.
///
/// The lists are as a pipeline hands them over: sorted by score, without negative token counts.
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
/// With a [`LawViolation`].
#[track_caller]
pub fn slicer(slicer: &(impl Slicer + ?Sized)) {
    for case in spread::sorted() {
        for budget in spread::budgets(&case.input) {
            if let Err(violation) = check_slicer(slicer, &case.input, &budget) {
                raise(violation.on(case.name));
            }
        }
    }
}

/// Panics with the first law that the placer breaks on the spread of inputs.
///
/// The lists are as a pipeline hands them over: pinned items first, then by score.
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
/// With a [`LawViolation`].
#[track_caller]
pub fn placer(placer: &(impl Placer + ?Sized)) {
    for case in spread::merged() {
        if let Err(violation) = check_placer(placer, &case.input) {
            raise(violation.on(case.name));
        }
    }
}

/// A position in an answer that holds what it must not.
enum Stray {
    Unknown(usize),
    Repeated(usize),
}

impl Stray {
    fn told_of(&self, method: &str) -> String {
        match self {
            Self::Unknown(position) => {
                format!("{method} returned at position {position} what it had not received")
            }
            Self::Repeated(position) => {
                format!("{method} returned at position {position} what it had returned before")
            }
        }
    }
}

/// The positions in `offered` of the returned items. A handle offered several times
/// matches its positions in order.
fn positions(offered: &[ScoredItem], returned: &[ContextItem]) -> Result<Vec<usize>, Stray> {
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
            None if is_offered => return Err(Stray::Repeated(position)),
            None => return Err(Stray::Unknown(position)),
        }
    }
    Ok(found)
}

/// The positions again, if each is one of `offered` and comes once.
fn distinct(positions: &[usize], offered: usize) -> Result<Vec<usize>, Stray> {
    let mut taken = vec![false; offered];
    for (position, &at) in positions.iter().enumerate() {
        match taken.get_mut(at) {
            None => return Err(Stray::Unknown(position)),
            Some(true) => return Err(Stray::Repeated(position)),
            Some(taken) => *taken = true,
        }
    }
    Ok(positions.to_vec())
}

fn borrowed(items: &[ScoredItem]) -> Vec<ScoredRef<'_>> {
    ScoredRef::from_list(items)
}

/// A list as a violation shows it: its length and its first entries.
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

/// The beginning of a text, in quotes.
fn excerpt(text: &str) -> String {
    const SHOWN: usize = 40;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}
