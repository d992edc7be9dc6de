//! From matches of terms to scores: near and wide kernels, boosts, normalization.
//!
//! In a conversation the answer often lacks the words of the question, but it is near an item that
//! has them. Matches are therefore propagated to the items around, in the manner of positional
//! language models (Lv and Zhai 2009). Both kernels fall exponentially with the distance, so one
//! pass per direction computes them (first-order recursive filters), whatever their reach:
//!
//! ```text
//! matches of one term          1      0      0      0.5
//! forward 0.6                  1      0.6    0.36   0.5      max(0.6 * value before, own)
//! backward 0.4                 1      0.08   0.2    0.5      max(0.4 * value after, own)
//! near                         1      0.6    0.36   0.5      the larger of both
//! ```
//!
//! The near kernel takes the maximum per term, so that a word that is repeated in many items does
//! not add up, while different words around an item do. The wide kernel sums over whole scores: it
//! finds passages.
//!
//! The steps: near values of all terms are summed and divided by the largest sum; boosts multiply;
//! the wide part is added; the result is divided by the largest score.

use std::ops::Range;

use super::index::Index;
use super::lists::Answer;
use crate::scorer::settings::{NearKernel, WideKernel};
use crate::{CupelError, ScorePart};

/// Visits the matches of every term: its name and one number per item.
pub(super) type VisitTerm<'v> = dyn FnMut(&str, &mut [f64]) + 'v;

/// How the matches of items become scores.
pub(super) struct Method<'a> {
    pub(super) near: NearKernel,
    pub(super) wide: WideKernel,
    /// The parts of the conversation that do not influence each other. Every item is in one.
    pub(super) sections: Vec<Range<usize>>,
    pub(super) boosts: Option<Boosts<'a>>,
}

/// Factors for items by properties of their text.
pub(super) struct Boosts<'a> {
    pub(super) index: &'a Index,
    /// The answers that the query asks for, as a set.
    pub(super) answers: u8,
    pub(super) answer_boost: f64,
    /// The terms of the query, ascending.
    pub(super) terms: Vec<u32>,
    pub(super) speaker_boost: f64,
}

impl Boosts<'_> {
    /// Visits the factors of the item at `place`. Scoring and explaining share it, so that an
    /// explanation has exactly the factors that were applied.
    fn each(&self, place: usize, mut visit: impl FnMut(&'static str, f64)) {
        let found = self.answers & self.index.answers(place);
        for answer in Answer::ALL
            .iter()
            .filter(|answer| found & answer.bit() != 0)
        {
            visit(answer.name(), self.answer_boost);
        }
        let speaker = self.index.speaker(place);
        if speaker
            .iter()
            .any(|term| self.terms.binary_search(term).is_ok())
        {
            visit("speaker is named in the query", self.speaker_boost);
        }
    }
}

/// The parts of all scores, for explanations. It holds a column per term, so it is filled only on
/// request.
#[derive(Default)]
pub(super) struct Record {
    terms: Vec<TermRecord>,
    /// What the sum over terms is divided by.
    largest_sum: f64,
    /// The wide part of each score.
    wide: Vec<f64>,
    /// What the whole is divided by.
    largest: f64,
    scores: Vec<f64>,
}

struct TermRecord {
    name: String,
    /// The largest match.
    largest: f64,
    matches: Vec<f64>,
    near: Vec<f64>,
}

impl Method<'_> {
    /// Returns the scores of `len` items, and their parts in `record`.
    pub(super) fn scores(
        &self,
        len: usize,
        each_term: impl FnOnce(&mut VisitTerm<'_>) -> Result<(), CupelError>,
        mut record: Option<&mut Record>,
    ) -> Result<Vec<f64>, CupelError> {
        let mut scores = vec![0.0; len];
        let mut scratch = vec![0.0; 2 * len];
        each_term(&mut |name, matches| {
            let before = record.is_some().then(|| matches.to_vec());
            self.spread_near(matches, &mut scratch);
            scores
                .iter_mut()
                .zip(&*matches)
                .for_each(|(sum, near)| *sum += near);
            if let Some((record, before)) = record.as_deref_mut().zip(before) {
                record.terms.push(TermRecord {
                    name: name.to_owned(),
                    largest: before.iter().fold(0.0_f64, |a, &b| a.max(b)),
                    matches: before,
                    near: matches.to_vec(),
                });
            }
        })?;
        let largest_sum = normalize(&mut scores);
        // A factor changes nothing at 0: an item must match before a boost counts.
        if let Some(boosts) = &self.boosts {
            for (place, score) in scores.iter_mut().enumerate().filter(|(_, it)| **it > 0.0) {
                boosts.each(place, |_, factor| *score *= factor);
            }
        }
        let wide = self.wide_parts(&scores, scratch);
        scores
            .iter_mut()
            .zip(&wide)
            .for_each(|(score, wide)| *score += wide);
        let largest = normalize(&mut scores);
        if let Some(record) = record {
            record.largest_sum = largest_sum;
            record.wide = wide;
            record.largest = largest;
            record.scores.clone_from(&scores);
        }
        Ok(scores)
    }

    /// Replaces each match by the largest match around it, which fades with the distance.
    fn spread_near(&self, matches: &mut [f64], scratch: &mut [f64]) {
        let NearKernel { forward, backward } = self.near;
        if forward <= 0.0 && backward <= 0.0 {
            return;
        }
        let (ahead, behind) = scratch.split_at_mut(matches.len());
        for section in &self.sections {
            let from = &matches[section.clone()];
            let (mut before, mut after) = (0.0_f64, 0.0_f64);
            // Both directions in one loop: each step waits for the one before it, but not for the other direction.
            for (offset, (&first, &last)) in from.iter().zip(from.iter().rev()).enumerate() {
                before = (forward * before).max(first);
                after = (backward * after).max(last);
                ahead[section.start + offset] = before;
                behind[section.end - 1 - offset] = after;
            }
        }
        for ((own, ahead), behind) in matches.iter_mut().zip(ahead).zip(behind) {
            *own = ahead.max(*behind);
        }
    }

    /// Returns what the neighborhood of each item adds to its score: sums of powers of the scores around it, which
    /// fade slowly with the distance.
    fn wide_parts(&self, scores: &[f64], mut powers: Vec<f64>) -> Vec<f64> {
        let WideKernel {
            weight,
            decay,
            power,
        } = self.wide;
        let mut sums = vec![0.0; scores.len()];
        let largest = scores.iter().fold(0.0_f64, |a, &b| a.max(b));
        if weight <= 0.0 || largest <= 0.0 {
            return sums;
        }
        // By multiplication: `powi` may differ between platforms.
        for (raised, score) in powers.iter_mut().zip(scores) {
            let relative = score / largest;
            *raised = (1..power).fold(relative, |product, _| product * relative);
        }
        for section in &self.sections {
            let (powers, sums) = (&powers[section.clone()], &mut sums[section.clone()]);
            let (mut before, mut after) = (0.0, 0.0);
            // An item's own power is in the forward sum only, so that it counts once.
            for (offset, (first, own)) in powers.iter().zip(powers.iter().rev()).enumerate() {
                sums[offset] += first + before;
                sums[powers.len() - 1 - offset] += after;
                before = decay * (before + first);
                after = decay * (after + own);
            }
        }
        normalize(&mut sums);
        for sum in &mut sums {
            *sum *= weight;
        }
        sums
    }

    /// Explains the score of the item at `place`. The scores of the parts add up to it.
    pub(super) fn explain(&self, record: &Record, place: usize, name: &str) -> ScorePart {
        let score = record.scores.get(place).copied().unwrap_or_default();
        let part = ScorePart::new(name, score);
        if score <= 0.0 {
            return part;
        }
        let mut parts = Vec::new();
        let mut sum = 0.0;
        for term in record.terms.iter().filter(|term| term.near[place] > 0.0) {
            let share = term.near[place] / record.largest_sum / record.largest;
            sum += share;
            let name = match self.source(term, place) {
                source if source < place => {
                    format!("{}, {}", term.name, away(place - source, "before"))
                }
                source if source > place => {
                    format!("{}, {}", term.name, away(source - place, "after"))
                }
                _ => term.name.clone(),
            };
            parts.push(ScorePart::new(name, share));
        }
        if let Some(boosts) = self.boosts.as_ref().filter(|_| sum > 0.0) {
            boosts.each(place, |name, factor| {
                parts.push(ScorePart::new(name, sum * (factor - 1.0)));
                sum *= factor;
            });
        }
        let wide = record.wide[place] / record.largest;
        if wide > 0.0 {
            parts.push(ScorePart::new("matches in the wider conversation", wide));
        }
        part.with_parts(parts)
    }

    /// Returns the place of the match that a near value comes from.
    ///
    /// The kernels keep values, not their origins, so the search repeats the propagation around one
    /// item. It ends where even the largest match of the term could not reach the best one found.
    fn source(&self, term: &TermRecord, place: usize) -> usize {
        let at = self
            .sections
            .partition_point(|section| section.end <= place);
        let section = &self.sections[at];
        let NearKernel { forward, backward } = self.near;
        let walk = |places: &mut dyn Iterator<Item = usize>, decay: f64| {
            let mut best = (term.matches[place], place);
            let mut factor = 1.0;
            for source in places {
                factor *= decay;
                if factor * term.largest <= best.0 {
                    break;
                }
                if factor * term.matches[source] > best.0 {
                    best = (factor * term.matches[source], source);
                }
            }
            best
        };
        let before = walk(&mut (section.start..place).rev(), forward);
        let after = walk(&mut (place + 1..section.end), backward);
        if after.0 > before.0 {
            after.1
        } else {
            before.1
        }
    }
}

fn away(distance: usize, direction: &str) -> String {
    let items = if distance == 1 { "item" } else { "items" };
    format!("{distance} {items} {direction}")
}

/// Divides by the largest number and returns it. If no number is positive, all become 0.
fn normalize(numbers: &mut [f64]) -> f64 {
    let largest = numbers.iter().fold(0.0_f64, |a, &b| a.max(b));
    let divisor = if largest > 0.0 {
        largest
    } else {
        f64::INFINITY
    };
    for number in numbers {
        *number /= divisor;
    }
    largest
}
