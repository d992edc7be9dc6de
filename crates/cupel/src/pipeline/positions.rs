//! [`Positions`].

use crate::CupelError;

/// A list of positions in the input, four bytes each.
#[derive(Clone, Default)]
pub(crate) struct Positions(Vec<u32>);

impl Positions {
    /// Returns an error if an input has more positions than 32 bits can hold.
    pub(super) fn check(items: usize) -> Result<(), CupelError> {
        if u32::try_from(items).is_ok() {
            return Ok(());
        }
        Err(CupelError::PipelineConfig(format!(
            "a run takes at most {} candidates, got {items}; run them in parts",
            u32::MAX
        )))
    }

    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self(Vec::with_capacity(capacity))
    }

    #[expect(clippy::cast_possible_truncation, reason = "`check` bounds the input")]
    pub(super) fn push(&mut self, position: usize) {
        self.0.push(position as u32);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<usize> {
        self.0.get(index).map(|&position| position as usize)
    }

    pub(crate) fn at(&self, index: usize) -> usize {
        self.0[index] as usize
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.0.iter().map(|&position| position as usize)
    }

    /// Keeps the positions for which `keep` holds.
    pub(super) fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        self.0.retain(|&position| keep(position as usize));
    }

    /// Returns the positions as they are stored.
    pub(crate) fn as_slice(&self) -> &[u32] {
        &self.0
    }
}

impl FromIterator<usize> for Positions {
    #[expect(clippy::cast_possible_truncation, reason = "`check` bounds the input")]
    fn from_iter<I: IntoIterator<Item = usize>>(positions: I) -> Self {
        Self(
            positions
                .into_iter()
                .map(|position| position as u32)
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_inputs_with_too_many_positions_are_refused() {
        let most = u32::MAX as usize;
        assert_eq!(Positions::check(most), Ok(()));
        assert_eq!(
            Positions::check(most + 1).unwrap_err().to_string(),
            "invalid pipeline configuration: a run takes at most 4294967295 candidates, got \
             4294967296; run them in parts"
        );
    }
}
