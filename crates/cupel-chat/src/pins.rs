//! Pins: the messages that a policy always keeps.

use std::collections::BTreeSet;

use crate::chat::Chat;
use crate::fit::FitError;

impl Chat {
    /// Returns the messages that pins name, with their groups.
    pub(crate) fn pinned_by(&self, pins: &[String]) -> Result<BTreeSet<usize>, FitError> {
        let mut pinned = BTreeSet::new();
        for pin in pins {
            for index in self.named_by(pin)? {
                self.check_complete(index)?;
                pinned.extend(self.groups.with(index));
            }
        }
        Ok(pinned)
    }

    /// Returns the messages that one pin names: `3`, `3-5` or `role:user`.
    fn named_by(&self, pin: &str) -> Result<Vec<usize>, FitError> {
        let invalid = |problem: String| FitError::InvalidPin {
            pin: pin.to_owned(),
            problem,
        };
        if let Some(role) = pin.strip_prefix("role:") {
            let has_role = |index: &usize| self.messages[*index].label == role;
            let found: Vec<usize> = (0..self.len()).filter(has_role).collect();
            let roles: BTreeSet<&str> = self.messages.iter().map(|m| m.label.as_str()).collect();
            let roles: Vec<&str> = roles.into_iter().collect();
            return if found.is_empty() {
                Err(invalid(format!(
                    "no message has the role `{role}`; the chat has {}",
                    roles.join(", ")
                )))
            } else {
                Ok(found)
            };
        }
        let (first, last) = pin.split_once('-').unwrap_or((pin, pin));
        let position = |text: &str| text.trim().parse::<usize>().ok();
        let (Some(first), Some(last)) = (position(first), position(last)) else {
            return Err(invalid(
                "expected a position (`3`), a range (`3-5`) or a role (`role:user`)".to_owned(),
            ));
        };
        if first > last {
            return Err(invalid(format!(
                "the range is empty; write `{last}-{first}`"
            )));
        }
        match self.len().checked_sub(1) {
            Some(end) if last <= end => Ok((first..=last).collect()),
            Some(end) => Err(invalid(format!(
                "out of range; positions start at 0 and the last is {end}"
            ))),
            None => Err(invalid("the chat has no messages".to_owned())),
        }
    }
}
