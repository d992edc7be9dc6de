//! [`ScorePart`]: a score with its parts.

use std::fmt;

/// A score with the scores it is computed from.
///
/// ```
/// use cupel::*;
///
/// let scorer = CompositeScorer::builder()
///     .add(ReflexiveScorer, 3.0)
///     .add(KindScorer::with_default_weights(), 1.0)
///     .build()?;
/// let items = [ContextItem::builder("hello", 1).future_relevance_hint(1.0).build()?];
/// let part = scorer.explain(&items, 0)?;
/// assert_eq!(part.scorer, "CompositeScorer");
/// assert_eq!(part.parts[0].contribution, Some(0.75));
/// assert_eq!(part.parts[1].score, 0.2);
/// # Ok::<(), CupelError>(())
/// ```
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScorePart {
    /// The name of the scorer.
    pub scorer: String,
    /// Its score.
    #[cfg_attr(feature = "serde", serde(with = "crate::wire::float"))]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Float"))]
    pub score: f64,
    /// Its normalized weight in a weighted average.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub weight: Option<f64>,
    /// Its contribution to a weighted average: score times weight.
    #[cfg_attr(
        feature = "serde",
        serde(
            skip_serializing_if = "Option::is_none",
            serialize_with = "crate::wire::float::serialize_some"
        )
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::schema::Float>"))]
    pub contribution: Option<f64>,
    /// The scores it is computed from.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub parts: Vec<ScorePart>,
}

impl ScorePart {
    /// Creates a score without parts.
    pub fn new(scorer: impl Into<String>, score: f64) -> Self {
        Self {
            scorer: scorer.into(),
            score,
            weight: None,
            contribution: None,
            parts: Vec::new(),
        }
    }

    /// Sets the scores it is computed from.
    pub fn with_parts(mut self, parts: Vec<Self>) -> Self {
        self.parts = parts;
        self
    }

    /// Sets its weight in a weighted average, and its contribution.
    pub fn with_weight(mut self, weight: f64) -> Self {
        self.set_weight(weight);
        self
    }

    pub(super) fn set_weight(&mut self, weight: f64) {
        self.weight = Some(weight);
        self.contribution = Some(self.score * weight);
    }

    /// Writes one line per part, indented by depth.
    pub(crate) fn write(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        let indent = 2 * depth;
        write!(f, "{:indent$}{} {:.6}", "", self.scorer, self.score)?;
        if let (Some(weight), Some(contribution)) = (self.weight, self.contribution) {
            write!(f, " x {weight:.6} = {contribution:.6}")?;
        }
        writeln!(f)?;
        self.parts
            .iter()
            .try_for_each(|part| part.write(f, depth + 1))
    }
}

/// Writes the tree, one line per part.
impl fmt::Display for ScorePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::ScorePart;

    #[test]
    fn the_tree_has_one_line_per_part() {
        let leaf = ScorePart::new("leaf", 0.25).with_weight(0.5);
        let inner = ScorePart::new("inner", 0.5).with_parts(vec![leaf]);
        let tree = ScorePart::new("outer", 1.0).with_parts(vec![inner]);
        let expected =
            "outer 1.000000\n  inner 0.500000\n    leaf 0.250000 x 0.500000 = 0.125000\n";
        assert_eq!(tree.to_string(), expected);
    }
}
