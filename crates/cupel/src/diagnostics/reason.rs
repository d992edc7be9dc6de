//! Reasons for inclusion and exclusion, with everything that is written about them.
//!
//! The table at [`exclusion_reasons!`] is the only place that words an exclusion reason. A new reason
//! is a new row: its variant, its fields, its wire form and its texts follow from the row.

use std::fmt;

use super::UnknownName;

/// Declares [`ExclusionReason`] from one row per reason.
///
/// A row has the variant with its fields, and three texts as arguments of `format!`. The fields are
/// in scope by name, and the identifier before the rows holds the item's kind if kind quotas took part.
/// Then follow the field that holds another item's content, if there is one, whether a larger budget may include
/// the item, and the [`Blocker`].
macro_rules! exclusion_reasons {
    (
        $quota_kind:ident:
        $(
            $(#[doc = $doc:literal])*
            $name:ident { $($(#[doc = $field_doc:literal])* $field:ident: $type:ty,)* }
            sentence($($sentence:tt)*)
            phrase($($phrase:tt)*)
            summary($($summary:tt)*)
            content($($content:ident)?)
            larger_budget($larger_budget:literal)
            blocker($blocker:ident)
        )*
    ) => {
        /// Why an item is not in the window, with the numbers behind it.
        ///
        /// Built-in stages emit `BudgetExceeded`, `Deduplicated`, `NegativeTokens`,
        /// `PinnedOverride`, `CountCapExceeded`, `GroupExcluded`, `RankedBelow`, `NearDuplicate`,
        /// `Redundant` and `Superseded`. Custom slicers may give any reason through [`Refusal::Because`](crate::Refusal::Because).
        ///
        /// ```
        /// use cupel::ExclusionReason;
        ///
        /// let reason = ExclusionReason::BudgetExceeded { item_tokens: 2048, available_tokens: 512 };
        /// assert_eq!(reason.name(), "BudgetExceeded");
        /// assert_eq!(reason.to_string(), "BudgetExceeded: 2048 tokens requested, 512 available");
        /// assert_eq!(reason.phrase(), "no room: needs 2,048, 512 left");
        /// assert_eq!(reason.summary(), "no room");
        /// ```
        #[non_exhaustive]
        #[derive(Debug, Clone, PartialEq)]
        pub enum ExclusionReason {
            $($(#[doc = $doc])* $name { $($(#[doc = $field_doc])* $field: $type,)* },)*
            /// A reason of another version or implementation, kept as it was read.
            Unknown(UnknownReason),
            #[doc(hidden)]
            _Unknown,
        }

        #[allow(unused_variables, reason = "a text need not mention every field")]
        impl ExclusionReason {
            /// Returns the variant's name; `None` for a reason that this version does not know.
            pub fn known_name(&self) -> Option<&'static str> {
                match self {
                    $(Self::$name { .. } => Some(stringify!($name)),)*
                    Self::Unknown(_) | Self::_Unknown => None,
                }
            }

            /// Returns the names and values of the fields, in the order of the wire format.
            ///
            /// ```
            /// use cupel::{ExclusionReason, RawValue};
            ///
            /// let reason = ExclusionReason::NegativeTokens { tokens: -1 };
            /// assert_eq!(reason.fields(), [("tokens", RawValue::Integer(-1))]);
            /// ```
            pub fn fields(&self) -> Vec<(&str, RawValue)> {
                match self {
                    $(Self::$name { $($field),* } => {
                        vec![$((stringify!($field), $field.to_raw())),*]
                    })*
                    Self::Unknown(unknown) => {
                        let fields = unknown.fields.iter();
                        fields.map(|(key, value)| (key.as_str(), value.clone())).collect()
                    }
                    Self::_Unknown => Vec::new(),
                }
            }

            /// Builds the reason of that name from fields that `take` looks up; `None` for a name
            /// that this version does not know.
            #[cfg(feature = "serde")]
            pub(crate) fn from_fields<E: serde::de::Error>(
                name: &str,
                mut take: impl FnMut(&'static str) -> Result<RawValue, E>,
            ) -> Result<Option<Self>, E> {
                Ok(match name {
                    $(stringify!($name) => Some(Self::$name {
                        $($field: field(stringify!($field), take(stringify!($field))?)?,)*
                    }),)*
                    _ => None,
                })
            }

            /// Replaces the contents of items.
            pub(crate) fn remove_content(&mut self, replacement: &str) {
                match self {
                    $($(Self::$name { $content, .. } => replacement.clone_into($content),)?)*
                    Self::Unknown(unknown) => unknown.fields.clear(),
                    _ => {}
                }
            }

            /// Returns the content of the other item.
            pub(crate) fn content(&self) -> Option<&str> {
                match self {
                    $($(Self::$name { $content, .. } => Some($content),)?)*
                    _ => None,
                }
            }

            /// Returns whether a larger budget may include the item.
            pub(crate) fn is_for_lack_of_tokens(&self) -> bool {
                match self {
                    $(Self::$name { .. } => $larger_budget,)*
                    Self::Unknown(_) | Self::_Unknown => false,
                }
            }

            /// Returns which items are in the window in its place.
            pub(crate) fn blocker(&self) -> Blocker {
                match self {
                    $(Self::$name { .. } => Blocker::$blocker,)*
                    Self::Unknown(_) | Self::_Unknown => Blocker::LowerRanks,
                }
            }

            pub(crate) fn phrase_with(&self, $quota_kind: Option<&str>) -> String {
                match self {
                    $(Self::$name { $($field),* } => format!($($phrase)*),)*
                    Self::Unknown(_) | Self::_Unknown => self.unknown(),
                }
            }

            pub(crate) fn summary_with(&self, $quota_kind: Option<&str>) -> String {
                match self {
                    $(Self::$name { $($field),* } => format!($($summary)*),)*
                    Self::Unknown(_) | Self::_Unknown => self.unknown(),
                }
            }
        }

        /// Writes the name, a colon and a sentence with the numbers.
        #[allow(unused_variables, reason = "a text need not mention every field")]
        impl fmt::Display for ExclusionReason {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}: ", self.name())?;
                match self {
                    $(Self::$name { $($field),* } => write!(f, $($sentence)*),)*
                    Self::Unknown(_) | Self::_Unknown => f.write_str("not known to this version"),
                }
            }
        }

        /// The known reasons, from the table, and any other one with a `reason` and fields of its own: a custom
        /// slicer may give it.
        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for ExclusionReason {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                "ExclusionReason".into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let known = vec![$(crate::schema::reason(
                    stringify!($name),
                    concat!($($doc, "\n",)*),
                    vec![$((
                        stringify!($field),
                        concat!($($field_doc, "\n",)*),
                        generator.subschema_for::<<$type as FieldType>::Written>(),
                    ),)*],
                ),)*];
                crate::schema::open_reasons("Why an item is not in the window.", known)
            }
        }
    };
}

exclusion_reasons! { quota_kind:
    /// The item does not fit.
    BudgetExceeded {
        /// The tokens the item needs.
        item_tokens: i64,
        /// The tokens left when the stage finished; negative after over-commitment.
        available_tokens: i64,
    }
    sentence("{item_tokens} tokens requested, {available_tokens} available")
    phrase("{}: {}", Shortage::of(*item_tokens, *available_tokens, quota_kind), Need(*item_tokens, *available_tokens))
    summary("{}", Shortage::of(*item_tokens, *available_tokens, quota_kind))
    content()
    larger_budget(true)
    blocker(LowerRanks)

    /// The item scored below a threshold. No built-in stage emits it.
    ScoredTooLow {
        /// The item's score.
        score: f64,
        /// The threshold.
        threshold: f64,
    }
    sentence("score {score} is below {threshold}")
    phrase("score {score} is below {threshold}")
    summary("score is below {threshold}")
    content()
    larger_budget(false)
    blocker(LowerRanks)

    /// Another item has the same content and a higher score, or the same score and an earlier position.
    Deduplicated {
        /// The content of the item that stayed.
        deduplicated_against: String,
    }
    sentence("same content as {}", Excerpt(deduplicated_against))
    phrase("duplicate of another item")
    summary("duplicate of another item")
    content(deduplicated_against)
    larger_budget(false)
    blocker(Survivor)

    /// The quota of the item's kind is used up. No built-in stage emits it.
    QuotaCapExceeded {
        /// The kind.
        kind: String,
        /// The kind's limit.
        cap: i64,
        /// The amount with the item included.
        actual: i64,
    }
    sentence("kind '{kind}' may have {cap}, would have {actual}")
    phrase("quota of {} for kind `{kind}`: would be {}", Grouped(*cap), Grouped(*actual))
    summary("quota of {} for kind `{kind}`", Grouped(*cap))
    content()
    larger_budget(false)
    blocker(LowerRanks)

    /// A requirement of another kind took the item's place. No built-in stage emits it.
    QuotaRequireDisplaced {
        /// The other kind.
        displaced_by_kind: String,
    }
    sentence("kind '{displaced_by_kind}' requires its place")
    phrase("displaced by required kind `{displaced_by_kind}`")
    summary("displaced by required kind `{displaced_by_kind}`")
    content()
    larger_budget(false)
    blocker(LowerRanks)

    /// The item's token count is negative.
    NegativeTokens {
        /// The token count.
        tokens: i64,
    }
    sentence("{tokens} tokens")
    phrase("negative token count: {}", Grouped(*tokens))
    summary("negative token count")
    content()
    larger_budget(false)
    blocker(LowerRanks)

    /// The item fits without the pinned items, but not with them.
    PinnedOverride {
        /// The content of the first pinned item that has tokens.
        displaced_by: String,
    }
    sentence("displaced by pinned {}", Excerpt(displaced_by))
    phrase("does not fit next to the pinned items")
    summary("does not fit next to the pinned items")
    content(displaced_by)
    larger_budget(true)
    blocker(Pinned)

    /// A filter removed the item. No built-in stage emits it.
    Filtered {
        /// The filter.
        filter_name: String,
    }
    sentence("dropped by filter '{filter_name}'")
    phrase("{filter_name} (filtered)")
    summary("{filter_name} (filtered)")
    content()
    larger_budget(false)
    blocker(LowerRanks)

    /// The window holds as many items of the item's kind as the count limit allows.
    CountCapExceeded {
        /// The kind.
        kind: String,
        /// The count limit.
        cap: usize,
        /// The number of items of the kind.
        count: usize,
    }
    sentence("kind '{kind}' has {count} items, may have {cap}")
    phrase("count limit of {cap} for kind `{kind}`")
    summary("count limit of {cap} for kind `{kind}`")
    content()
    larger_budget(false)
    blocker(SameKind)

    /// No candidates of the kind were left. No built-in stage emits it.
    CountRequireCandidatesExhausted {
        /// The kind.
        kind: String,
    }
    sentence("kind '{kind}' has no candidates left")
    phrase("no candidates left of kind `{kind}`")
    summary("no candidates left of kind `{kind}`")
    content()
    larger_budget(false)
    blocker(LowerRanks)

    /// The group the item belongs to does not fit; see [`GroupSlice`](crate::GroupSlice).
    GroupExcluded {
        /// The number of items in the group.
        group_size: usize,
        /// The tokens of the group.
        group_tokens: i64,
        /// The tokens left when the slicer finished; negative after over-commitment.
        available_tokens: i64,
    }
    sentence(
        "its group of {group_size} items ({group_tokens} tokens) {}, {available_tokens} available",
        Shortage::of(*group_tokens, *available_tokens, None).of_group()
    )
    phrase(
        "group of {group_size} {}: {}",
        Shortage::of(*group_tokens, *available_tokens, quota_kind).of_whole(),
        NeedOf(*group_tokens, *available_tokens)
    )
    summary("group {}", Shortage::of(*group_tokens, *available_tokens, quota_kind).of_whole())
    content()
    larger_budget(true)
    blocker(LowerRanks)

    /// Items are dropped lowest rank first, and one of a higher rank does not fit; see
    /// [`LadderSlice`](crate::LadderSlice).
    RankedBelow {
        /// The tokens of the item, or of its group.
        item_tokens: i64,
        /// The tokens of the item or group of a higher rank that does not fit.
        blocking_tokens: i64,
        /// The tokens left for that one when the slicer finished.
        available_tokens: i64,
    }
    sentence("{item_tokens} tokens, ranked below {blocking_tokens} tokens that do not fit, {available_tokens} available")
    phrase("below the cut: the first beyond it {}", NeedOf(*blocking_tokens, *available_tokens))
    summary("below the cut")
    content()
    larger_budget(true)
    blocker(LowerRanks)

    /// A better item of similar content is in the window; see
    /// [`NearDuplicateSlice`](crate::NearDuplicateSlice).
    NearDuplicate {
        /// The content of the better item.
        similar_to: String,
        /// The similarity of both, from 0 to 1.
        similarity: f64,
    }
    sentence("{:.0} % similar to {}", similarity * 100.0, Excerpt(similar_to))
    phrase("near-duplicate of another item: {:.0} % similar", similarity * 100.0)
    summary("near-duplicate of another item")
    content(similar_to)
    larger_budget(false)
    blocker(OtherItem)

    /// The item does not fit, and is similar to one in the window, which lowered its marginal gain; see
    /// [`DiversitySlice`](crate::DiversitySlice).
    Redundant {
        /// The marginal gain of the item, or an upper bound of it: it is not computed again once the item does
        /// not fit.
        gain: f64,
        /// The content of the similar item.
        similar_to: String,
        /// The similarity of both, from 0 to 1.
        similarity: f64,
    }
    sentence("marginal gain {gain:.6}, {:.0} % similar to {}", similarity * 100.0, Excerpt(similar_to))
    phrase("no room; marginal gain {gain:.3}: {:.0} % similar to another item", similarity * 100.0)
    summary("no room; similar to another item")
    content(similar_to)
    larger_budget(true)
    blocker(LowerRanks)

    /// A newer result of the same call is in the window; see
    /// [`NearDuplicateSlice`](crate::NearDuplicateSlice).
    Superseded {
        /// The content of the newer result.
        superseded_by: String,
    }
    sentence("same call as the newer {}", Excerpt(superseded_by))
    phrase("superseded by a newer result")
    summary("superseded by a newer result")
    content(superseded_by)
    larger_budget(false)
    blocker(OtherItem)
}

/// Which items are in the window in place of an excluded one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blocker {
    /// Those of a lower rank.
    LowerRanks,
    /// The one with the same content.
    Survivor,
    /// The one whose content the reason has.
    OtherItem,
    /// The pinned ones.
    Pinned,
    /// Those of its kind.
    SameKind,
}

impl ExclusionReason {
    /// Returns the variant's name on the wire.
    pub fn name(&self) -> &str {
        match self {
            Self::Unknown(unknown) => &unknown.name,
            known => known.known_name().unwrap_or("_Unknown"),
        }
    }

    /// Returns a few words with the numbers, for a table cell.
    ///
    /// [`Decisions::phrase`](crate::Decisions::phrase) also knows whether kind quotas took part in
    /// the run and is more specific where they did.
    pub fn phrase(&self) -> String {
        self.phrase_with(None)
    }

    /// Returns a few words without the numbers that differ from item to item, to group by.
    pub fn summary(&self) -> String {
        self.summary_with(None)
    }

    fn unknown(&self) -> String {
        format!("unknown reason `{}`", self.name())
    }
}

/// Why tokens were refused that a candidate, or a group of candidates, needs.
#[derive(Clone, Copy)]
enum Shortage<'k> {
    /// They exceed what was left.
    NoRoom,
    /// They fit into what was left, but not into the quota of their kind.
    KindQuota(&'k str),
    /// They fit into what was left. A slicer that rounds token counts, such as `KnapsackSlice`, or
    /// has rules of its own did not select them.
    Slicer,
}

impl<'k> Shortage<'k> {
    fn of(needed: i64, available: i64, quota_kind: Option<&'k str>) -> Self {
        match quota_kind {
            _ if needed > available => Self::NoRoom,
            Some(kind) => Self::KindQuota(kind),
            None => Self::Slicer,
        }
    }

    fn of_group(self) -> String {
        match self {
            Self::NoRoom => "does not fit".to_owned(),
            Self::KindQuota(kind) => format!("does not fit into the `{kind}` quota"),
            Self::Slicer => "was not selected by the slicer".to_owned(),
        }
    }

    /// Returns the same for a phrase, which starts with the group.
    fn of_whole(self) -> String {
        match self {
            Self::NoRoom => "too large".to_owned(),
            Self::KindQuota(kind) => format!("too large for the `{kind}` quota"),
            Self::Slicer => "not selected by the slicer".to_owned(),
        }
    }
}

impl fmt::Display for Shortage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRoom => f.write_str("no room"),
            Self::KindQuota(kind) => write!(f, "`{kind}` quota is full"),
            Self::Slicer => f.write_str("not selected by the slicer"),
        }
    }
}

/// `needs 812, 70 left` for the tokens needed and the tokens left.
struct Need(i64, i64);

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(needed, available) = *self;
        write!(f, "needs {}, ", Grouped(needed))?;
        match available.checked_neg() {
            Some(over @ 1..) => write!(f, "{} over budget", Grouped(over)),
            _ => write!(f, "{} left", Grouped(available)),
        }
    }
}

/// `needs 812 of 70 left` for the tokens needed and the tokens left.
struct NeedOf(i64, i64);

impl fmt::Display for NeedOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(needed, available) = *self;
        match available {
            0.. => write!(
                f,
                "needs {} of {} left",
                Grouped(needed),
                Grouped(available)
            ),
            _ => Need(needed, available).fmt(f),
        }
    }
}

/// A number with its digits in groups of three: `6,011`.
pub(crate) struct Grouped(pub(crate) i64);

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.unsigned_abs().to_string();
        f.write_str(if self.0 < 0 { "-" } else { "" })?;
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

/// The beginning of a content, in quotes.
pub(crate) struct Excerpt<'a>(pub(crate) &'a str);

impl Excerpt<'_> {
    const LONGEST: usize = 60;

    /// Returns as much of a content as its excerpt depends on.
    pub(crate) fn needed(content: &str) -> &str {
        match content.char_indices().nth(Self::LONGEST + 1) {
            Some((end, _)) => &content[..end],
            None => content,
        }
    }
}

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(Self::LONGEST) {
            Some((end, _)) => write!(f, "{:?}...", &self.0[..end]),
            None => write!(f, "{:?}", self.0),
        }
    }
}

/// The type of a reason's field.
trait FieldType: Sized {
    /// The type whose JSON Schema describes a written value.
    #[cfg(feature = "schema")]
    type Written: schemars::JsonSchema;

    fn to_raw(&self) -> RawValue;

    /// Fails with what the value must be.
    #[cfg(feature = "serde")]
    fn from_raw(value: RawValue) -> Result<Self, &'static str>;
}

#[cfg(feature = "serde")]
fn field<T: FieldType, E: serde::de::Error>(key: &str, value: RawValue) -> Result<T, E> {
    T::from_raw(value).map_err(|expected| E::custom(format!("field `{key}` must be {expected}")))
}

macro_rules! integer_fields {
    ($($type:ty),*) => {$(
        impl FieldType for $type {
            #[cfg(feature = "schema")]
            type Written = Self;

            fn to_raw(&self) -> RawValue {
                RawValue::Integer(i128::try_from(*self).unwrap_or(i128::MAX))
            }

            #[cfg(feature = "serde")]
            fn from_raw(value: RawValue) -> Result<Self, &'static str> {
                let number = match value {
                    RawValue::Integer(number) => Self::try_from(number).ok(),
                    _ => None,
                };
                number.ok_or("an integer in range")
            }
        }
    )*};
}

integer_fields!(i64, usize);

impl FieldType for f64 {
    #[cfg(feature = "schema")]
    type Written = crate::schema::Float;

    fn to_raw(&self) -> RawValue {
        RawValue::Float(*self)
    }

    #[cfg(feature = "serde")]
    fn from_raw(value: RawValue) -> Result<Self, &'static str> {
        crate::wire::float::from_raw(&value).ok_or("a number")
    }
}

impl FieldType for String {
    #[cfg(feature = "schema")]
    type Written = Self;

    fn to_raw(&self) -> RawValue {
        RawValue::Text(self.clone())
    }

    #[cfg(feature = "serde")]
    fn from_raw(value: RawValue) -> Result<Self, &'static str> {
        match value {
            RawValue::Text(text) => Ok(text),
            _ => Err("a string"),
        }
    }
}

/// An exclusion reason this version does not know: its name and its fields as they were read.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq)]
pub struct UnknownReason {
    /// The name.
    pub name: String,
    /// The fields other than the name, in order.
    pub fields: Vec<(String, RawValue)>,
}

impl UnknownReason {
    /// Creates a reason from its name and fields.
    pub fn new(name: impl Into<String>, fields: Vec<(String, RawValue)>) -> Self {
        Self {
            name: name.into(),
            fields,
        }
    }
}

/// A value of a document in the JSON data model.
#[derive(Debug, Clone, PartialEq)]
pub enum RawValue {
    /// Null.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Integer(i128),
    /// A number with a fraction or an exponent.
    Float(f64),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<RawValue>),
    /// An object; keys keep their order.
    Map(Vec<(String, RawValue)>),
}

/// Declares [`InclusionReason`] from one row per reason: the variant with its fields, and its phrase
/// as arguments of `format!`. The fields are in scope by name.
macro_rules! inclusion_reasons {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident $({ $($(#[doc = $field_doc:literal])* $field:ident: $type:ty,)+ })?
        phrase($($phrase:tt)*)
    )*) => {
        /// Why an item is in the window.
        ///
        /// ```
        /// use cupel::InclusionReason;
        ///
        /// assert_eq!(InclusionReason::ZeroToken.name(), "ZeroToken");
        /// assert_eq!(InclusionReason::ZeroToken.phrase(), "needs no tokens");
        /// let shortened = InclusionReason::Shortened { tokens: 96, original_tokens: 1310 };
        /// assert_eq!(shortened.phrase(), "shortened to 96 of 1,310 tokens");
        /// ```
        #[non_exhaustive]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum InclusionReason {
            $($(#[doc = $doc])* $name $({ $($(#[doc = $field_doc])* $field: $type,)+ })?,)*
            /// A reason of another version or implementation.
            Unknown(UnknownName),
        }

        impl InclusionReason {
            /// Returns the variant's name on the wire.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$name { .. } => stringify!($name),)*
                    Self::Unknown(name) => name.as_str(),
                }
            }

            /// Returns the names and values of the fields, in the order of the wire format.
            pub fn fields(&self) -> Vec<(&'static str, RawValue)> {
                match self {
                    $(Self::$name $({ $($field),+ })? => {
                        vec![$($((stringify!($field), $field.to_raw())),+)?]
                    })*
                    Self::Unknown(_) => Vec::new(),
                }
            }

            /// Builds the reason of that name from fields that `take` looks up; `None` for a name
            /// that this version does not know.
            #[cfg(feature = "serde")]
            pub(crate) fn from_fields<E: serde::de::Error>(
                name: &str,
                mut take: impl FnMut(&'static str) -> Result<RawValue, E>,
            ) -> Result<Option<Self>, E> {
                Ok(match name {
                    $(stringify!($name) => Some(Self::$name $({
                        $($field: field(stringify!($field), take(stringify!($field))?)?,)+
                    })?),)*
                    _ => None,
                })
            }

            /// Returns a few words with the numbers, for a table cell.
            pub fn phrase(&self) -> String {
                match self {
                    $(Self::$name $({ $($field),+ })? => format!($($phrase)*),)*
                    Self::Unknown(name) => name.as_str().to_owned(),
                }
            }
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for InclusionReason {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                "InclusionReason".into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                // No run includes an item for an unknown reason, so that these are all.
                let known = vec![$(crate::schema::reason(
                    stringify!($name),
                    concat!($($doc, "\n",)*),
                    vec![$($((
                        stringify!($field),
                        concat!($($field_doc, "\n",)*),
                        generator.subschema_for::<<$type as FieldType>::Written>(),
                    ),)+)?],
                ),)*];
                crate::schema::reasons("Why an item is in the window.", &known)
            }
        }
    };
}

inclusion_reasons! {
    /// The slicer selected the item by its score.
    Scored phrase("selected by score")
    /// The item is pinned.
    Pinned phrase("pinned")
    /// The item has no tokens.
    ZeroToken phrase("needs no tokens")
    /// The slicer selected a view of the item.
    Shortened {
        /// The tokens of the view.
        tokens: i64,
        /// The tokens of the item in full.
        original_tokens: i64,
    }
    phrase("shortened to {} of {} tokens", Grouped(*tokens), Grouped(*original_tokens))
}

impl fmt::Display for InclusionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_room(item_tokens: i64, available_tokens: i64) -> ExclusionReason {
        ExclusionReason::BudgetExceeded {
            item_tokens,
            available_tokens,
        }
    }

    #[test]
    fn the_needed_beginning_has_the_excerpt_of_the_whole() {
        for length in [0, 1, 59, 60, 61, 62, 200] {
            let content = "é".repeat(length);
            let needed = Excerpt::needed(&content);
            assert!(needed.chars().count() <= 61);
            assert_eq!(Excerpt(needed).to_string(), Excerpt(&content).to_string());
        }
    }

    #[test]
    fn an_item_that_fits_what_is_left_names_the_slicer_or_the_quota() {
        let texts = |reason: &ExclusionReason, quota_kind: Option<&str>| {
            let phrase = reason.phrase_with(quota_kind);
            (phrase, reason.summary_with(quota_kind))
        };
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        for quota_kind in [None, Some("Memory")] {
            let expected = pair("no room: needs 812, 70 left", "no room");
            assert_eq!(texts(&no_room(812, 70), quota_kind), expected);
        }
        assert_eq!(
            texts(&no_room(70, 1812), None),
            pair(
                "not selected by the slicer: needs 70, 1,812 left",
                "not selected by the slicer"
            )
        );
        assert_eq!(
            texts(&no_room(70, 70), Some("Memory")),
            pair(
                "`Memory` quota is full: needs 70, 70 left",
                "`Memory` quota is full"
            )
        );
        assert_eq!(
            no_room(5, -1200).phrase(),
            "no room: needs 5, 1,200 over budget"
        );
        let group = |available_tokens| ExclusionReason::GroupExcluded {
            group_size: 3,
            group_tokens: 812,
            available_tokens,
        };
        assert_eq!(
            texts(&group(70), None),
            pair(
                "group of 3 too large: needs 812 of 70 left",
                "group too large"
            )
        );
        assert_eq!(
            texts(&group(900), Some("Memory")),
            pair(
                "group of 3 too large for the `Memory` quota: needs 812 of 900 left",
                "group too large for the `Memory` quota"
            )
        );
        assert_eq!(group(900).summary(), "group not selected by the slicer");
    }

    #[test]
    fn phrases_and_summaries_of_the_other_reasons() {
        let kind = || "Memory".to_owned();
        let rows = [
            (
                ExclusionReason::ScoredTooLow {
                    score: 0.2,
                    threshold: 0.5,
                },
                "score 0.2 is below 0.5",
                "score is below 0.5",
            ),
            (
                ExclusionReason::Deduplicated {
                    deduplicated_against: "text".to_owned(),
                },
                "duplicate of another item",
                "duplicate of another item",
            ),
            (
                ExclusionReason::QuotaCapExceeded {
                    kind: kind(),
                    cap: 3000,
                    actual: 4000,
                },
                "quota of 3,000 for kind `Memory`: would be 4,000",
                "quota of 3,000 for kind `Memory`",
            ),
            (
                ExclusionReason::QuotaRequireDisplaced {
                    displaced_by_kind: kind(),
                },
                "displaced by required kind `Memory`",
                "displaced by required kind `Memory`",
            ),
            (
                ExclusionReason::NegativeTokens { tokens: -1234 },
                "negative token count: -1,234",
                "negative token count",
            ),
            (
                ExclusionReason::PinnedOverride {
                    displaced_by: "rules".to_owned(),
                },
                "does not fit next to the pinned items",
                "does not fit next to the pinned items",
            ),
            (
                ExclusionReason::Filtered {
                    filter_name: "age".to_owned(),
                },
                "age (filtered)",
                "age (filtered)",
            ),
            (
                ExclusionReason::CountCapExceeded {
                    kind: kind(),
                    cap: 2,
                    count: 2,
                },
                "count limit of 2 for kind `Memory`",
                "count limit of 2 for kind `Memory`",
            ),
            (
                ExclusionReason::CountRequireCandidatesExhausted { kind: kind() },
                "no candidates left of kind `Memory`",
                "no candidates left of kind `Memory`",
            ),
            (
                ExclusionReason::Unknown(UnknownReason {
                    name: "TooBlue".to_owned(),
                    fields: Vec::new(),
                }),
                "unknown reason `TooBlue`",
                "unknown reason `TooBlue`",
            ),
        ];
        for (reason, phrase, summary) in rows {
            assert_eq!(reason.phrase(), phrase);
            assert_eq!(reason.summary(), summary);
        }
    }
}
