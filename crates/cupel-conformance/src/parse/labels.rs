//! The names expectations may use for items.

use super::reader::{Fields, Node};
use crate::{
    error::{Problem, VectorError},
    model::{Item, Task},
};

/// The items of a task by label.
pub(super) struct Labels<'a> {
    items: Vec<&'a Item>,
}

impl<'a> Labels<'a> {
    pub(super) fn of(task: &'a Task) -> Self {
        Self {
            items: match task {
                Task::Score { items, .. } | Task::Run { items, .. } => items.iter().collect(),
                Task::Slice { items, .. } | Task::Place { items, .. } => {
                    items.iter().map(|scored| &scored.item).collect()
                }
            },
        }
    }

    /// Reads a label that at least one item has.
    pub(super) fn known(&self, node: &Node<'_>) -> Result<String, VectorError> {
        self.find(node, Item::label)
    }

    /// Reads a label that exactly one item has.
    pub(super) fn unique(&self, node: &Node<'_>) -> Result<String, VectorError> {
        let label = self.known(node)?;
        match self
            .items
            .iter()
            .filter(|item| item.label() == label)
            .count()
        {
            1 => Ok(label),
            _ => Err(node.error(Problem::AmbiguousLabel { label })),
        }
    }

    /// Reads a content that at least one item has.
    pub(super) fn content(&self, node: &Node<'_>) -> Result<String, VectorError> {
        self.find(node, |item| &item.content)
    }

    /// Reads the list of labels under `key`; `None` if it is absent.
    pub(super) fn list(
        &self,
        fields: &Fields<'_>,
        key: &str,
    ) -> Result<Option<Vec<String>>, VectorError> {
        fields
            .optional::<Vec<Node<'_>>>(key)?
            .map(|nodes| nodes.iter().map(|node| self.known(node)).collect())
            .transpose()
    }

    fn find(&self, node: &Node<'_>, name: fn(&Item) -> &str) -> Result<String, VectorError> {
        let label: String = node.read()?;
        if self.items.iter().any(|item| name(item) == label) {
            return Ok(label);
        }
        let known = self
            .items
            .iter()
            .map(|item| name(item).to_owned())
            .collect();
        Err(node.error(Problem::UnknownLabel { label, known }))
    }
}
