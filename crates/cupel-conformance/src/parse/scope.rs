//! Where a strategy finds its fields: in its own table, else in `[config]`.

use super::reader::{Fields, Node, Read};
use crate::error::VectorError;

/// The tables one strategy may read, and the keys it may not.
///
/// A key that led from a strategy to its part is not offered to the part
/// again, so no strategy can contain itself.
#[derive(Clone)]
pub(super) struct Scope<'a> {
    own: Fields<'a>,
    own_hidden: Option<&'static str>,
    shared: Fields<'a>,
    shared_hidden: Vec<&'static str>,
}

impl<'a> Scope<'a> {
    /// The scope of a strategy whose fields stand in `[config]` itself.
    pub(super) fn config(config: Fields<'a>) -> Self {
        Self {
            own: config.clone(),
            own_hidden: None,
            shared: config,
            shared_hidden: Vec::new(),
        }
    }

    /// The scope of a part that `key` names, its fields beside the name.
    pub(super) fn beside(&self, key: &'static str) -> Self {
        let mut part = self.clone();
        part.own_hidden = Some(key);
        part.shared_hidden.push(key);
        part
    }

    /// The scope of a part that has a table of its own, found under `key`.
    pub(super) fn within(&self, key: &'static str, own: Fields<'a>) -> Self {
        let mut part = self.clone();
        part.own = own;
        part.own_hidden = None;
        part.shared_hidden.push(key);
        part
    }

    pub(super) fn get(&self, key: &str) -> Option<Node<'a>> {
        let own = (self.own_hidden != Some(key)).then(|| self.own.get(key));
        let shared = || (!self.shared_hidden.contains(&key)).then(|| self.shared.get(key));
        own.flatten().or_else(|| shared().flatten())
    }

    pub(super) fn optional<T: Read<'a>>(&self, key: &str) -> Result<Option<T>, VectorError> {
        self.get(key).map(|node| node.read()).transpose()
    }

    pub(super) fn required<T: Read<'a>>(&self, key: &str) -> Result<T, VectorError> {
        self.optional(key)?
            .ok_or_else(|| self.own.missing(key, T::WHAT))
    }

    /// The strategy's own table, for what is never shared.
    pub(super) fn own(&self) -> &Fields<'a> {
        &self.own
    }
}
