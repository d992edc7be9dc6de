//! Why an item is in or out.

use std::fmt;

use super::UnknownName;

/// Why an item is not in the window, with the numbers behind it.
///
/// Built-in stages emit `BudgetExceeded`, `Deduplicated`, `NegativeTokens`, `PinnedOverride`,
/// `CountCapExceeded` and `GroupExcluded`. The others are there for custom slicers, which may give any reason
/// through [`Refusal::Because`](crate::Refusal::Because).
///
/// ```
/// use cupel::ExclusionReason;
///
/// let reason = ExclusionReason::BudgetExceeded { item_tokens: 2048, available_tokens: 512 };
/// assert_eq!(reason.name(), "BudgetExceeded");
/// assert_eq!(reason.to_string(), "BudgetExceeded: 2048 tokens requested, 512 available");
/// ```
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq)]
pub enum ExclusionReason {
    /// It did not fit.
    BudgetExceeded {
        /// What it needs.
        item_tokens: i64,
        /// What was left when the stage had finished; negative after over-commitment.
        available_tokens: i64,
    },
    /// It scored below a threshold. Reserved.
    ScoredTooLow {
        /// Its score.
        score: f64,
        /// The threshold.
        threshold: f64,
    },
    /// Another item has the same content and a better claim.
    Deduplicated {
        /// The content of the survivor.
        deduplicated_against: String,
    },
    /// Its kind has its share already. Reserved.
    QuotaCapExceeded {
        /// The kind.
        kind: String,
        /// What the kind may have.
        cap: i64,
        /// What it would have had.
        actual: i64,
    },
    /// Another kind's requirement took its place. Reserved.
    QuotaRequireDisplaced {
        /// The other kind.
        displaced_by_kind: String,
    },
    /// Its token count is negative.
    NegativeTokens {
        /// The count.
        tokens: i64,
    },
    /// It would have fitted without the pinned items. Every item with this reason carries the pinned
    /// item's text.
    PinnedOverride {
        /// The content of the first pinned item that takes room.
        displaced_by: String,
    },
    /// A filter dropped it. Reserved.
    Filtered {
        /// The filter.
        filter_name: String,
    },
    /// Its kind has as many items as it may have.
    CountCapExceeded {
        /// Its kind.
        kind: String,
        /// The largest number allowed.
        cap: usize,
        /// The number there was.
        count: usize,
    },
    /// Its kind ran out of candidates. Reserved.
    CountRequireCandidatesExhausted {
        /// The kind.
        kind: String,
    },
    /// The group it is kept or dropped with did not fit; see [`GroupSlice`](crate::GroupSlice).
    GroupExcluded {
        /// The number of items in the group.
        group_size: usize,
        /// What they need together.
        group_tokens: i64,
        /// What was left when the slicer had finished; negative after over-commitment.
        available_tokens: i64,
    },
    /// A reason of another version or implementation, kept as it was read.
    Unknown(UnknownReason),
    #[doc(hidden)]
    _Unknown,
}

impl ExclusionReason {
    /// The variant's name on the wire.
    pub fn name(&self) -> &str {
        match self {
            Self::BudgetExceeded { .. } => "BudgetExceeded",
            Self::ScoredTooLow { .. } => "ScoredTooLow",
            Self::Deduplicated { .. } => "Deduplicated",
            Self::QuotaCapExceeded { .. } => "QuotaCapExceeded",
            Self::QuotaRequireDisplaced { .. } => "QuotaRequireDisplaced",
            Self::NegativeTokens { .. } => "NegativeTokens",
            Self::PinnedOverride { .. } => "PinnedOverride",
            Self::Filtered { .. } => "Filtered",
            Self::CountCapExceeded { .. } => "CountCapExceeded",
            Self::CountRequireCandidatesExhausted { .. } => "CountRequireCandidatesExhausted",
            Self::GroupExcluded { .. } => "GroupExcluded",
            Self::Unknown(unknown) => &unknown.name,
            Self::_Unknown => "_Unknown",
        }
    }
}

/// The name, a colon, and the numbers as a sentence.
impl fmt::Display for ExclusionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name())?;
        match self {
            Self::BudgetExceeded {
                item_tokens,
                available_tokens,
            } => sentence::BudgetExceeded::new(*available_tokens).write(f, *item_tokens),
            Self::Deduplicated {
                deduplicated_against,
            } => sentence::SameContent(deduplicated_against).fmt(f),
            Self::PinnedOverride { displaced_by } => sentence::DisplacedBy(displaced_by).fmt(f),
            Self::ScoredTooLow { score, threshold } => {
                write!(f, "score {score} is below {threshold}")
            }
            Self::QuotaCapExceeded { kind, cap, actual } => {
                write!(f, "kind '{kind}' may have {cap}, would have {actual}")
            }
            Self::QuotaRequireDisplaced { displaced_by_kind } => {
                write!(f, "kind '{displaced_by_kind}' requires its place")
            }
            Self::NegativeTokens { tokens } => write!(f, "{tokens} tokens"),
            Self::Filtered { filter_name } => write!(f, "dropped by filter '{filter_name}'"),
            Self::CountCapExceeded { kind, cap, count } => {
                write!(f, "kind '{kind}' has {count} items, may have {cap}")
            }
            Self::CountRequireCandidatesExhausted { kind } => {
                write!(f, "kind '{kind}' has no candidates left")
            }
            Self::GroupExcluded {
                group_size,
                group_tokens,
                available_tokens,
            } => write!(
                f,
                "its group of {group_size} items ({group_tokens} tokens) did not fit, {available_tokens} available"
            ),
            Self::Unknown(_) | Self::_Unknown => f.write_str("not known to this version"),
        }
    }
}

/// The sentences of the reasons that a run gives often: an item event can be written without an
/// [`ExclusionReason`], which owns its texts.
pub(crate) mod sentence {
    use std::fmt::{self, Write};

    use super::Excerpt;

    /// What was available is the same for all items of a stage, so it is written once. A run has up
    /// to one such sentence for every candidate and writes it without the machinery of `write!`.
    pub(crate) struct BudgetExceeded {
        after_tokens: String,
    }

    impl BudgetExceeded {
        pub(crate) fn new(available_tokens: i64) -> Self {
            Self {
                after_tokens: format!(" tokens requested, {available_tokens} available"),
            }
        }

        pub(crate) fn write(&self, text: &mut impl Write, item_tokens: i64) -> fmt::Result {
            let mut digits = Digits::default();
            text.write_str(digits.of(item_tokens))?;
            text.write_str(&self.after_tokens)
        }

        /// The message of an item event.
        pub(crate) fn message(&self, item_tokens: i64) -> String {
            const NAME: &str = "BudgetExceeded: ";
            let mut digits = Digits::default();
            let digits = digits.of(item_tokens);
            let length = NAME.len() + digits.len() + self.after_tokens.len();
            let mut text = String::with_capacity(length);
            text.push_str(NAME);
            text.push_str(digits);
            text.push_str(&self.after_tokens);
            text
        }
    }

    /// The message of an item event.
    pub(crate) fn deduplicated(against: &str) -> String {
        format!("Deduplicated: {}", SameContent(against))
    }

    /// The message of an item event.
    pub(crate) fn pinned_override(by: &str) -> String {
        format!("PinnedOverride: {}", DisplacedBy(by))
    }

    pub(super) struct SameContent<'a>(pub(super) &'a str);

    impl fmt::Display for SameContent<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "same content as {}", Excerpt(self.0))
        }
    }

    pub(super) struct DisplacedBy<'a>(pub(super) &'a str);

    impl fmt::Display for DisplacedBy<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "displaced by pinned {}", Excerpt(self.0))
        }
    }

    /// Where the digits of a number are written.
    #[derive(Default)]
    struct Digits([u8; 20]);

    impl Digits {
        fn of(&mut self, number: i64) -> &str {
            let mut start = self.0.len();
            let mut left = number.unsigned_abs();
            loop {
                start -= 1;
                self.0[start] = b"0123456789"[(left % 10) as usize];
                left /= 10;
                if left == 0 {
                    break;
                }
            }
            if number < 0 {
                start -= 1;
                self.0[start] = b'-';
            }
            str::from_utf8(&self.0[start..]).unwrap_or_default()
        }
    }

    #[cfg(test)]
    mod tests {
        #[test]
        fn numbers_read_as_they_always_do() {
            for number in [0, 7, -7, 10, 99, 100, 1_234_567, i64::MAX, i64::MIN] {
                assert_eq!(super::Digits::default().of(number), number.to_string());
            }
        }
    }
}

/// The beginning of a content, in quotes.
pub(crate) struct Excerpt<'a>(pub(crate) &'a str);

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LONGEST: usize = 60;
        match self.0.char_indices().nth(LONGEST) {
            Some((end, _)) => write!(f, "{:?}...", &self.0[..end]),
            None => write!(f, "{:?}", self.0),
        }
    }
}

/// An exclusion reason this version does not know: its name and its fields as they were read.
#[derive(Debug, Clone, PartialEq)]
pub struct UnknownReason {
    /// The name.
    pub name: String,
    /// The fields beside the name, in order.
    pub fields: Vec<(String, RawValue)>,
}

/// A value of a document, kept without knowing what it means.
#[derive(Debug, Clone, PartialEq)]
pub enum RawValue {
    /// Nothing.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Integer(i128),
    /// Any other number.
    Float(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<RawValue>),
    /// A map, in order.
    Map(Vec<(String, RawValue)>),
}

/// Why an item is in the window.
///
/// ```
/// use cupel::InclusionReason;
///
/// assert_eq!(InclusionReason::ZeroToken.name(), "ZeroToken");
/// ```
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InclusionReason {
    /// By its score, within the budget.
    Scored,
    /// Because it is pinned.
    Pinned,
    /// Because it costs nothing.
    ZeroToken,
    /// A reason of another version or implementation.
    Unknown(UnknownName),
}

impl InclusionReason {
    const KNOWN: [Self; 3] = [Self::Scored, Self::Pinned, Self::ZeroToken];

    /// The variant's name on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Scored => "Scored",
            Self::Pinned => "Pinned",
            Self::ZeroToken => "ZeroToken",
            Self::Unknown(name) => name.as_str(),
        }
    }

    /// The reason of that name.
    pub fn from_name(name: &str) -> Self {
        let known = Self::KNOWN.into_iter().find(|reason| reason.name() == name);
        known.unwrap_or_else(|| Self::Unknown(UnknownName::new(name)))
    }
}

impl fmt::Display for InclusionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
