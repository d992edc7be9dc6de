//! [`Warning`]: what a provider may reject in a window, and lost cache breakpoints.

use std::fmt;

use crate::chat::Chat;
use crate::groups::Defect;
use crate::message::Role;
use crate::shape::Start;

/// A warning about a window; see [`Fitted::warnings`](crate::Fitted::warnings).
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Warning {
    /// What is wrong.
    pub kind: WarningKind,
    /// The positions of the messages, in ascending order.
    pub messages: Vec<usize>,
}

/// What a [`Warning`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum WarningKind {
    /// A kept tool call has no result.
    CallWithoutResult,
    /// A kept tool result has no call.
    ResultWithoutCall,
    /// Kept reasoning has no following item.
    ReasoningWithoutItem,
    /// A kept tool result is not right after its call.
    ResultOutOfPlace,
    /// A kept tool result is the second one of its call.
    DuplicateResult,
    /// A kept message has the role of the one before, in a format whose roles alternate.
    RepeatedRole,
    /// A kept message precedes the first user turn in a format that starts on one.
    BeforeUserTurn,
    /// A dropped message has a breakpoint of the provider's prompt cache (`cache_control`).
    CacheBreakpointDropped,
}

impl WarningKind {
    fn of(defect: Defect) -> Self {
        match defect {
            Defect::CallWithoutResult => Self::CallWithoutResult,
            Defect::ResultWithoutCall => Self::ResultWithoutCall,
            Defect::ReasoningWithoutItem => Self::ReasoningWithoutItem,
            Defect::ResultOutOfPlace => Self::ResultOutOfPlace,
            Defect::DuplicateResult => Self::DuplicateResult,
            Defect::RepeatedRole => Self::RepeatedRole,
        }
    }

    fn describe(self) -> String {
        if self == Self::CacheBreakpointDropped {
            return "dropped with its `cache_control`".to_owned();
        }
        let defect = Defect::ALL.into_iter().find(|it| Self::of(*it) == self);
        let problem = defect.map_or("before the first user turn", Defect::describe);
        format!("{problem}; the provider may reject it")
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 10;
        let plural = if self.messages.len() == 1 { "" } else { "s" };
        let shown = self.messages.iter().take(SHOWN).map(usize::to_string);
        let shown = shown.collect::<Vec<_>>().join(", ");
        let more = if self.messages.len() > SHOWN {
            ", ..."
        } else {
            ""
        };
        write!(f, "message{plural} {shown}{more}: {}", self.kind.describe())
    }
}

impl Chat {
    /// Returns the warnings about a window that keeps these messages: invalid ones in it, messages before the
    /// first user turn, and cache breakpoints that are not in it.
    ///
    /// ```
    /// use cupel_chat::Chat;
    ///
    /// let chat = Chat::parse(r#"[
    ///   {"role": "user", "content": "Weather?"},
    ///   {"role": "tool", "tool_call_id": "gone", "content": "12 degrees"}
    /// ]"#, None)?;
    /// let warnings = chat.warnings(&[0, 1]);
    /// assert_eq!(
    ///     warnings[0].to_string(),
    ///     "message 1: tool result without a call; the provider may reject it"
    /// );
    /// # Ok::<(), cupel_chat::ChatError>(())
    /// ```
    pub fn warnings(&self, kept: &[usize]) -> Vec<Warning> {
        if !self.shape.is_chat() {
            return Vec::new();
        }
        let mut is_kept = vec![false; self.len()];
        for &index in kept {
            is_kept[index] = true;
        }
        let mut warnings = Vec::new();
        let mut warn = |kind, is_meant: &dyn Fn(usize) -> bool| {
            let messages = (0..self.len()).filter(|&index| is_meant(index));
            let messages: Vec<usize> = messages.collect();
            if !messages.is_empty() {
                warnings.push(Warning { kind, messages });
            }
        };
        for defect in Defect::ALL {
            warn(WarningKind::of(defect), &|index| {
                is_kept[index] && self.groups.own_defect(index) == Some(defect)
            });
        }
        let starts = (0..self.len()).any(|index| self.can_start(index));
        let start = if self.shape.format().start == Start::User && !starts {
            self.len()
        } else {
            self.earliest_start()
        };
        warn(WarningKind::BeforeUserTurn, &|index| {
            index < start && is_kept[index] && self.messages[index].role() != Role::System
        });
        warn(WarningKind::CacheBreakpointDropped, &|index| {
            !is_kept[index] && self.messages[index].has_cache_breakpoint
        });
        warnings
    }
}
