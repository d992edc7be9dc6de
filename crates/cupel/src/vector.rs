//! Vectors of items, given in their metadata, and their similarity.

use crate::diagnostics::Excerpt;
use crate::{ContextItem, CupelError};

/// The metadata key of an item's vector.
pub(crate) const KEY: &str = "cupel:vector";

/// Returns the vector in the metadata `cupel:vector`: numbers separated by commas or spaces, in brackets or not.
///
/// # Errors
///
/// [`CupelError::InvalidVector`] if it is not a list of finite numbers.
pub(crate) fn of_item(item: &ContextItem) -> Result<Option<Vec<f32>>, CupelError> {
    let Some(text) = item.metadata().get(KEY) else {
        return Ok(None);
    };
    let fault = |number: &str| {
        CupelError::InvalidVector(format!(
            "`{number}` in metadata `{KEY}` of {} is not a finite number; separate numbers by commas",
            Excerpt(item.content())
        ))
    };
    let numbers = text.trim().trim_start_matches('[').trim_end_matches(']');
    let numbers = numbers.split(|char: char| char == ',' || char.is_whitespace());
    let numbers = numbers.filter(|number| !number.is_empty()).map(|number| {
        let parsed = number
            .parse()
            .ok()
            .filter(|number: &f32| number.is_finite());
        parsed.ok_or_else(|| fault(number))
    });
    numbers.collect::<Result<_, _>>().map(Some)
}

/// Returns the cosine similarity of two vectors of one length, 0 at least. It is 0 if a vector has length 0.
pub(crate) fn cosine<A: Into<f64> + Copy, B: Into<f64> + Copy>(a: &[A], b: &[B]) -> f64 {
    let (mut product, mut a_squared, mut b_squared) = (0.0, 0.0, 0.0);
    for (&a, &b) in a.iter().zip(b) {
        let (a, b): (f64, f64) = (a.into(), b.into());
        product += a * b;
        a_squared += a * a;
        b_squared += b * b;
    }
    let lengths = f64::sqrt(a_squared) * f64::sqrt(b_squared);
    if lengths > 0.0 {
        (product / lengths).clamp(0.0, 1.0)
    } else {
        0.0
    }
}
