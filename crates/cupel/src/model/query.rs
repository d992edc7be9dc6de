//! [`Query`]: the question that a window is to answer.

/// The question that a window is to answer: one or more texts with weights.
///
/// ```
/// use cupel::Query;
///
/// let query = Query::from("Where are my keys?").and("find the keys before noon", 0.5);
/// assert_eq!(query.texts().count(), 2);
/// assert_eq!(query.text(), "Where are my keys?\nfind the keys before noon");
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Query {
    texts: Vec<(String, f64)>,
}

impl Query {
    /// Creates a query of one text with weight 1.
    pub fn new(text: impl Into<String>) -> Self {
        Self::default().and(text, 1.0)
    }

    /// Adds a text. A weight that is not positive and finite adds nothing.
    pub fn and(mut self, text: impl Into<String>, weight: f64) -> Self {
        if weight > 0.0 && weight.is_finite() {
            self.texts.push((text.into(), weight));
        }
        self
    }

    /// Returns the texts with their weights, in order.
    pub fn texts(&self) -> impl ExactSizeIterator<Item = (&str, f64)> {
        self.texts.iter().map(|(text, weight)| (&**text, *weight))
    }

    /// Returns the texts with their weights over the largest one, so that sums of large weights do not overflow.
    #[cfg(feature = "relevance")]
    pub(crate) fn relative_texts(&self) -> impl Iterator<Item = (&str, f64)> {
        let weights = self.texts().map(|(_, weight)| weight);
        let largest = weights.fold(f64::MIN_POSITIVE, f64::max);
        self.texts()
            .map(move |(text, weight)| (text, weight / largest))
    }

    /// Returns the texts, one per line.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.texts().map(|(text, _)| text).collect();
        texts.join("\n")
    }
}

impl From<&str> for Query {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Query {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}
