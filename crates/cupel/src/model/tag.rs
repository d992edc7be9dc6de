//! [`Tags`]: an item's tags, each with a [`TagKey`] that scorers compare instead of the string.

use crate::fast::tag_key::TagKey;

/// Tags in order and with repeats.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Tags {
    texts: Vec<String>,
    keys: Vec<TagKey>,
}

impl Tags {
    pub(crate) fn push(&mut self, tag: String) {
        self.keys.push(TagKey::new(&tag));
        self.texts.push(tag);
    }

    pub(crate) fn texts(&self) -> &[String] {
        &self.texts
    }

    /// One key per text.
    pub(crate) fn keys(&self) -> &[TagKey] {
        &self.keys
    }
}

impl From<Vec<String>> for Tags {
    fn from(texts: Vec<String>) -> Self {
        let keys = texts.iter().map(|tag| TagKey::new(tag)).collect();
        Self { texts, keys }
    }
}
