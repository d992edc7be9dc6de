//! [`PlacementRule`].

/// The order of every subset of a list; see [`Placer::rule`](crate::Placer::rule).
///
/// The members of a subset are placed one after another, in the order of
/// [`sequence`](Self::sequence). Each takes the first or the last free place: [`end`](Self::end).
///
/// ```
/// use cupel::{WindowEnd, PlacementRule};
///
/// let rule = PlacementRule::with_ends(vec![3, 1, 2, 0], vec![WindowEnd::Front, WindowEnd::Back, WindowEnd::Front, WindowEnd::Back]);
/// assert_eq!(rule.order(|_| true), [3, 2, 0, 1]);
/// assert_eq!(rule.order(|position| position != 1), [3, 0, 2]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementRule {
    sequence: Vec<usize>,
    /// The end for the first member of a subset, the second, and so on; [`WindowEnd::Front`] beyond.
    ends: Vec<WindowEnd>,
}

/// An end of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WindowEnd {
    /// The first free place.
    Front,
    /// The last free place.
    Back,
}

impl PlacementRule {
    /// Creates the rule that every subset is in the order of a sequence.
    pub fn in_sequence(sequence: Vec<usize>) -> Self {
        Self::with_ends(sequence, Vec::new())
    }

    /// Creates a rule from a sequence and the end for each member of a subset by its number. Members
    /// without an end go to the front.
    pub fn with_ends(sequence: Vec<usize>, ends: Vec<WindowEnd>) -> Self {
        Self { sequence, ends }
    }

    /// Returns all positions in the order in which they are placed.
    pub fn sequence(&self) -> &[usize] {
        &self.sequence
    }

    /// Returns where the member with this number goes, from 0.
    pub fn end(&self, number: usize) -> WindowEnd {
        self.ends.get(number).copied().unwrap_or(WindowEnd::Front)
    }

    /// Returns the order of the subset of positions for which `is_member` holds.
    pub fn order(&self, is_member: impl Fn(usize) -> bool) -> Vec<usize> {
        let sequence = self.sequence.iter().copied();
        self.place(sequence.filter(|&position| is_member(position)))
    }

    /// Returns the order of the whole list.
    pub(crate) fn into_order(mut self) -> Vec<usize> {
        if self.ends.is_empty() {
            return self.sequence;
        }
        let sequence = std::mem::take(&mut self.sequence);
        self.place(sequence.into_iter())
    }

    /// Returns the rule with other numbers for the positions.
    pub(crate) fn map(mut self, number: impl Fn(usize) -> usize) -> Self {
        for position in &mut self.sequence {
            *position = number(*position);
        }
        self
    }

    fn place(&self, members: impl Iterator<Item = usize>) -> Vec<usize> {
        let (mut front, mut back) = (Vec::new(), Vec::new());
        for (number, member) in members.enumerate() {
            match self.end(number) {
                WindowEnd::Front => front.push(member),
                WindowEnd::Back => back.push(member),
            }
        }
        front.extend(back.into_iter().rev());
        front
    }
}

#[cfg(test)]
mod tests {
    use super::{PlacementRule, WindowEnd};

    #[test]
    fn members_take_the_first_or_the_last_free_place() {
        let ends = vec![WindowEnd::Back, WindowEnd::Front, WindowEnd::Back];
        let rule = PlacementRule::with_ends(vec![4, 2, 7, 1, 3], ends.clone());
        assert_eq!(rule.sequence(), [4, 2, 7, 1, 3]);
        assert_eq!(
            [0, 1, 2, 3].map(|number| rule.end(number)),
            [
                WindowEnd::Back,
                WindowEnd::Front,
                WindowEnd::Back,
                WindowEnd::Front
            ]
        );
        assert_eq!(rule.order(|_| true), [2, 1, 3, 7, 4]);
        assert_eq!(rule.order(|position| position != 2), [7, 3, 1, 4]);
        assert_eq!(rule.clone().into_order(), [2, 1, 3, 7, 4]);
        let rule = rule.map(|position| 10 * position);
        assert_eq!(
            rule,
            PlacementRule::with_ends(vec![40, 20, 70, 10, 30], ends)
        );
        let rule = PlacementRule::in_sequence(vec![4, 2, 7]);
        assert_eq!(rule.order(|position| position != 2), [4, 7]);
        assert_eq!(rule.into_order(), [4, 2, 7]);
    }
}
