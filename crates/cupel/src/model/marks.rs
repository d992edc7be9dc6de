//! [`Marks`]: what a caller tells the strategies of a run about an item.

use super::{ContextItem, ContextItemBuilder};

/// What the caller of a run tells its strategies about an item: typed, and never serialized.
///
/// A document states the same in the item's [metadata](ContextItem::metadata). A mark takes precedence. Read
/// both together through [`retention`](ContextItem::retention), [`group`](ContextItem::group),
/// [`level`](ContextItem::level), [`call`](ContextItem::call), [`is_query`](ContextItem::is_query) and
/// [`shorten_first`](ContextItem::shorten_first).
///
/// ```
/// use cupel::{ContextItem, Retention};
///
/// let marked = ContextItem::builder("Fix the build.", 5)
///     .mark(|marks| marks.retention = Retention::Mandatory)
///     .build()?;
/// let from_document = ContextItem::builder("Fix the build.", 5).meta("cupel:mandatory", "").build()?;
/// assert_eq!(marked.retention(), from_document.retention());
/// assert!(marked.metadata().is_empty());
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[non_exhaustive]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    /// Whether the item may be dropped. Metadata: `cupel:mandatory`, `cupel:keep` and `cupel:late`.
    pub retention: Retention,
    /// The name of its group, whose items are kept or dropped together. Metadata: `cupel:group`.
    pub group: Option<String>,
    /// The level that the caller shortened it to already. Metadata: `cupel:level`.
    pub level: Option<i64>,
    /// The call that it is the result of. Metadata: `cupel:call`.
    pub call: Option<String>,
    /// Whether it is the query itself. Metadata: `cupel:query`.
    pub is_query: bool,
    /// Whether it is shortened before others of its kind. Metadata: `cupel:shorten_first`.
    pub shorten_first: bool,
}

/// Whether a [`LadderSlice`](crate::LadderSlice) may drop an item.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Retention {
    /// It may be dropped.
    #[default]
    Droppable,
    /// It is dropped after all that may be dropped, and not shortened before.
    Late,
    /// It is never dropped, and shortened like others of its kind.
    Kept,
    /// It is never dropped, and shortened as a last resort only.
    Mandatory,
}

/// The metadata keys of the marks in documents.
pub(crate) mod key {
    pub(crate) const MANDATORY: &str = "cupel:mandatory";
    pub(crate) const KEEP: &str = "cupel:keep";
    pub(crate) const LATE: &str = "cupel:late";
    pub(crate) const SHORTEN_FIRST: &str = "cupel:shorten_first";
    pub(crate) const GROUP: &str = "cupel:group";
    pub(crate) const LEVEL: &str = "cupel:level";
    pub(crate) const CALL: &str = "cupel:call";
    pub(crate) const QUERY: &str = "cupel:query";
}

impl ContextItem {
    /// Returns whether the item may be dropped, by its marks or its metadata.
    pub fn retention(&self) -> Retention {
        let marked = self.marks().map_or(Retention::Droppable, |it| it.retention);
        let has = |key: &str| self.metadata().contains_key(key);
        if has(key::MANDATORY) {
            Retention::Mandatory
        } else if has(key::KEEP) {
            marked.max(Retention::Kept)
        } else if has(key::LATE) {
            marked.max(Retention::Late)
        } else {
            marked
        }
    }

    /// Returns the name of the item's group, by its marks or its metadata.
    pub fn group(&self) -> Option<&str> {
        let marked = self.marks().and_then(|marks| marks.group.as_deref());
        marked.or_else(|| self.text(key::GROUP))
    }

    /// Returns the level that the item was shortened to already, by its marks or its metadata.
    pub fn level(&self) -> Option<i64> {
        let marked = self.marks().and_then(|marks| marks.level);
        marked.or_else(|| self.text(key::LEVEL)?.parse().ok())
    }

    /// Returns the call that the item is the result of, by its marks or its metadata.
    pub fn call(&self) -> Option<&str> {
        let marked = self.marks().and_then(|marks| marks.call.as_deref());
        marked.or_else(|| self.text(key::CALL))
    }

    /// Returns whether the item is the query itself, by its marks or its metadata.
    pub fn is_query(&self) -> bool {
        self.marks().is_some_and(|marks| marks.is_query) || self.text(key::QUERY).is_some()
    }

    /// Returns whether the item is shortened before others of its kind, by its marks or its metadata.
    pub fn shorten_first(&self) -> bool {
        self.marks().is_some_and(|marks| marks.shorten_first)
            || self.text(key::SHORTEN_FIRST).is_some()
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.metadata().get(key).map(String::as_str)
    }
}

impl ContextItemBuilder {
    /// Changes the [`Marks`] of the item, which a run reads and no document contains.
    pub fn mark(mut self, change: impl FnOnce(&mut Marks)) -> Self {
        change(self.marks_mut());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_takes_precedence_over_the_metadata() {
        let item = ContextItem::builder("x", 1)
            .meta(key::KEEP, "")
            .meta(key::GROUP, "a")
            .meta(key::LEVEL, "7")
            .meta(key::CALL, "f(1)");
        let stated = item.clone().build().unwrap();
        let read = |it: &ContextItem| {
            let texts = [it.group(), it.call()].map(|text| text.map(str::to_owned));
            (it.retention(), texts, it.level(), it.is_query())
        };
        let texts = |group: &str, call: &str| [Some(group.to_owned()), Some(call.to_owned())];
        let expected = (Retention::Kept, texts("a", "f(1)"), Some(7), false);
        assert_eq!(read(&stated), expected);
        let marked = item.mark(|marks| {
            marks.retention = Retention::Mandatory;
            marks.group = Some("b".to_owned());
            marks.level = Some(8);
            marks.call = Some("f(2)".to_owned());
            marks.is_query = true;
        });
        let marked = marked.build().unwrap();
        let expected = (Retention::Mandatory, texts("b", "f(2)"), Some(8), true);
        assert_eq!(read(&marked), expected);
        assert_eq!(marked.metadata(), stated.metadata());
        assert_ne!(marked, stated);
        assert_eq!(read(&marked.to_builder().build().unwrap()), expected);
    }

    #[cfg(feature = "serde")]
    #[test]
    fn marks_are_not_serialized() {
        let item = ContextItem::builder("x", 1).mark(|marks| marks.is_query = true);
        let json = serde_json::to_value(item.build().unwrap()).unwrap();
        let plain = ContextItem::builder("x", 1).build().unwrap();
        assert_eq!(json, serde_json::to_value(plain).unwrap());
    }
}
