//! [`Shortened`].

use crate::error::{ContractViolation, StrategyRole};
use crate::{ContextItem, CupelError};

/// The candidates that a slicer keeps as views. Empty, without an allocation, for most runs.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Shortened(Vec<Entry>);

/// A candidate that is kept as a view.
#[derive(Clone, PartialEq)]
struct Entry {
    candidate: usize,
    view: usize,
    /// The view as an item.
    item: ContextItem,
}

impl Shortened {
    /// Builds the views of candidates.
    ///
    /// # Errors
    ///
    /// [`CupelError::Contract`] if a candidate has no such view.
    pub(super) fn new(
        items: &[ContextItem],
        views: impl Iterator<Item = (usize, usize)>,
    ) -> Result<Self, CupelError> {
        let entry = |(position, (candidate, view)): (usize, (usize, usize))| {
            let Some(item) = items[candidate].as_view(view) else {
                return Err(CupelError::Contract {
                    strategy: StrategyRole::Slicer,
                    violation: ContractViolation::UnknownView { position },
                });
            };
            Ok(Entry {
                candidate,
                view,
                item,
            })
        };
        let mut entries: Vec<Entry> = views.enumerate().map(entry).collect::<Result<_, _>>()?;
        entries.sort_unstable_by_key(|entry| entry.candidate);
        Ok(Self(entries))
    }

    fn get(&self, candidate: usize) -> Option<&Entry> {
        // Most runs shorten nothing.
        if self.0.is_empty() {
            return None;
        }
        let index = self.0.binary_search_by_key(&candidate, |e| e.candidate);
        index.ok().map(|index| &self.0[index])
    }

    /// Returns the kept view of a candidate.
    pub(crate) fn view(&self, candidate: usize) -> Option<usize> {
        self.get(candidate).map(|entry| entry.view)
    }

    /// Returns the candidates with their views, in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.0.iter().map(|entry| (entry.candidate, entry.view))
    }

    /// Returns a candidate as it is kept: in full, or as a view.
    pub(crate) fn item<'s>(
        &'s self,
        items: &'s [ContextItem],
        candidate: usize,
    ) -> &'s ContextItem {
        self.get(candidate)
            .map_or(&items[candidate], |entry| &entry.item)
    }
}
