//! Cases: a task and its expected result.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use crate::model::{Channel, Field, Shortfall, Task};

/// One test case, read from one file.
///
/// Built by [`Vector::parse`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Vector {
    /// Where it was read from, with forward slashes.
    pub path: String,
    /// The level its directory gives it.
    pub level: Level,
    /// A sentence that is true when the case passes.
    pub name: String,
    /// The requirement rows the case proves.
    pub requirements: Vec<String>,
    /// The rulings the case proves.
    pub rulings: Vec<String>,
    /// The classes of bug the case catches.
    pub flags: Vec<String>,
    /// How the expected values follow from the specification; empty if the file does not say.
    pub why: String,
    /// The task.
    pub task: Task,
    /// The expected answer.
    pub expected: Expected,
    /// A score passes when it is less than this away from the expected one.
    pub epsilon: f64,
    /// Key paths of fields the reader did not use: unknown ones, and known ones out of place.
    pub ignored: Vec<String>,
}

impl Vector {
    /// Returns the name of the stage under test, as in the file.
    pub fn stage(&self) -> &'static str {
        match self.task {
            Task::Score { .. } => "scoring",
            Task::Slice { .. } => "slicing",
            Task::Place { .. } => "placing",
            Task::Run { .. } => "pipeline",
        }
    }

    /// Returns the channels the case expects something on.
    pub fn channels(&self) -> BTreeSet<Channel> {
        let expects: &[(Channel, bool)] = match &self.expected {
            Expected::Selected(expected) => &[
                (
                    Channel::Selection,
                    expected.selected.is_some() || expected.emitted.is_some(),
                ),
                (
                    Channel::Shortfalls,
                    expected.shortfall_count.is_some() || expected.cap_excluded_count.is_some(),
                ),
            ],
            Expected::Ran(expected) => &[
                (Channel::Window, expected.output.is_some()),
                (
                    Channel::Report,
                    expected.included.is_some()
                        || expected.excluded.is_some()
                        || expected.total_candidates.is_some()
                        || expected.total_tokens_considered.is_some()
                        || expected.shortfalls.is_some()
                        || expected.shortfall_count.is_some()
                        || expected.cap_excluded_count.is_some(),
                ),
                (
                    Channel::Events,
                    expected.stages.is_some() || expected.item_events.is_some(),
                ),
                (Channel::Overflow, expected.overflow.is_some()),
            ],
            Expected::Error(_) | Expected::Scores(_) | Expected::Placed(_) => {
                &[(self.task.channel(), true)]
            }
        };
        let expects = expects.iter().filter(|(_, expects)| *expects);
        expects.map(|(channel, _)| *channel).collect()
    }
}

/// How binding a case is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Every implementation must pass.
    Required,
    /// A fully conformant implementation passes.
    Optional,
    /// Needs a field or a behavior this project added.
    Extension,
    /// None of these directories is in the path.
    Other,
}

impl Level {
    /// Every level, most binding first.
    pub const ALL: [Self; 4] = [Self::Required, Self::Optional, Self::Extension, Self::Other];

    /// Returns the level of a file: the nearest directory that is named after a level.
    ///
    /// ```
    /// use cupel_conformance::Level;
    ///
    /// assert_eq!(Level::of("optional/mine/required/scoring/a.toml"), Level::Required);
    /// assert_eq!(Level::of("scoring/required.toml"), Level::Other);
    /// ```
    pub fn of(path: &str) -> Self {
        path.rsplit(['/', '\\'])
            .skip(1)
            .find_map(|directory| {
                Self::ALL
                    .into_iter()
                    .find(|level| *level != Self::Other && level.name() == directory)
            })
            .unwrap_or(Self::Other)
    }

    /// Returns the name of the level and of its directory.
    pub fn name(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Optional => "optional",
            Self::Extension => "extension",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The expected result. Items are named by their label.
#[derive(Debug, Clone, PartialEq)]
pub enum Expected {
    /// The task fails.
    Error(ExpectedError),
    /// The listed items have these scores.
    Scores(Vec<ExpectedScore>),
    /// A slicer makes this selection.
    Selected(ExpectedSelection),
    /// A placer gives this order.
    Placed(Vec<String>),
    /// A run has this result.
    Ran(ExpectedRun),
}

/// An error a case expects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExpectedError {
    /// Whether it must come from construction, before the run.
    pub at_construction: bool,
    /// Its code.
    pub code: Option<String>,
    /// Strings its message must contain.
    pub contains: Vec<String>,
}

/// A score a case expects.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpectedScore {
    /// The item.
    pub label: String,
    /// Its score.
    pub score: f64,
}

/// The choice a case expects of a slicer; `None` is not compared.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExpectedSelection {
    /// The kept items, as a set.
    pub selected: Option<Vec<String>>,
    /// The kept items in the order the slicer emits them.
    pub emitted: Option<Vec<String>>,
    /// The number of requirements the slicer does not meet.
    pub shortfall_count: Option<usize>,
    /// The number of items a count cap rejected.
    pub cap_excluded_count: Option<usize>,
}

/// The result a case expects of a run; `None` is not compared.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExpectedRun {
    /// The window in order.
    pub output: Option<Vec<String>>,
    /// The report's included items in order.
    pub included: Option<Vec<ExpectedEntry>>,
    /// The report's excluded items in order.
    pub excluded: Option<Vec<ExpectedEntry>>,
    /// The report's number of candidates.
    pub total_candidates: Option<usize>,
    /// The report's token sum.
    pub total_tokens_considered: Option<i64>,
    /// The report's shortfalls in order.
    pub shortfalls: Option<Vec<Shortfall>>,
    /// The number of shortfalls in the report.
    pub shortfall_count: Option<usize>,
    /// The number of items the report excludes for a count cap.
    pub cap_excluded_count: Option<usize>,
    /// Stage and item count of every stage event in order.
    pub stages: Option<Vec<(String, usize)>>,
    /// Stage and reason of every item event in order.
    pub item_events: Option<Vec<(String, String)>>,
    /// The overflow; the inner `None` expects that there was none.
    pub overflow: Option<Option<ExpectedOverflow>>,
}

/// One line of a report a case expects.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpectedEntry {
    /// The item.
    pub label: String,
    /// Its score.
    pub score: f64,
    /// The variant name of the reason.
    pub reason: String,
    /// The fields of the reason that are compared.
    pub fields: BTreeMap<String, Field>,
}

/// The overflow a case expects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedOverflow {
    /// How far the merged items exceed the limit.
    pub tokens_over_budget: i64,
    /// The merged items in order.
    pub labels: Vec<String>,
}
