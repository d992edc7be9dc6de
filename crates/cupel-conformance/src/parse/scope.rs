//! Finds the fields of a strategy: in its own table, otherwise in `[config]`.

use super::reader::{Fields, Node, Read};
use crate::error::VectorError;

/// The tables one strategy may read, and the keys it may not.
///
/// The key that names a child is not visible to the child, so no strategy contains itself.
#[derive(Clone)]
pub(super) struct Scope<'a> {
    own: Fields<'a>,
    own_hidden: Option<&'static str>,
    shared: Fields<'a>,
    shared_hidden: Vec<&'static str>,
}

impl<'a> Scope<'a> {
    /// Returns the scope of a strategy whose fields are in `[config]` itself.
    pub(super) fn config(config: Fields<'a>) -> Self {
        Self {
            own: config.clone(),
            own_hidden: None,
            shared: config,
            shared_hidden: Vec::new(),
        }
    }

    /// Returns the scope of a child named under `key`, with its fields beside the name.
    pub(super) fn beside(&self, key: &'static str) -> Self {
        let mut part = self.clone();
        part.own_hidden = Some(key);
        part.shared_hidden.push(key);
        part
    }

    /// Returns the scope of a child with its own table under `key`.
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

    /// Returns the strategy's own table, for fields that are never shared.
    pub(super) fn own(&self) -> &Fields<'a> {
        &self.own
    }
}
