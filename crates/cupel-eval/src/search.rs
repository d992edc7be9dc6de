//! Searches a grid of a policy's numbers on one data set, and reports the best setting on another.

use std::collections::HashMap;
use std::fmt;
use std::ops::ControlFlow;

use cupel::config::PolicyConfig;
use cupel::{ContextItem, CupelError};
use serde::{Serialize, Serializer};
use serde_json::{Number, Value};

use crate::dataset::{Dataset, DatasetSize, Transcript};
use crate::evidence::{EvalError, EvalPolicy, Evaluation, EvidenceReport, Measure, ascending};
use crate::progress::Progress;

/// A number of a policy document and the values to try.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The keys and positions that lead to the number, such as `scorer.entries[0].weight`.
    pub path: String,
    /// The values.
    pub values: Vec<Number>,
}

/// Every combination of the values of some axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid(Vec<Axis>);

/// The values of one combination by path, in the order of the axes. Serialized, it is an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting(Vec<(String, Number)>);

/// What is wrong with a grid, or with a policy and a grid.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GridError {
    /// An axis has no values.
    #[error("{0}: there is no value to try")]
    NoValues(String),
    /// Two axes have the same path.
    #[error("{0}: duplicate path")]
    DuplicatePath(String),
    /// There are more than [`Grid::MAX_SETTINGS`].
    #[error("the grid has more than {} settings", Grid::MAX_SETTINGS)]
    TooManySettings,
    /// A path leads nowhere.
    #[error("{path}: the policy has no `{key}` there")]
    UnknownKey {
        /// The path.
        path: String,
        /// The key or position that does not exist.
        key: String,
    },
    /// A path leads to something else than a number.
    #[error("{path}: `{key}` is not a number")]
    NotANumber {
        /// The path.
        path: String,
        /// The last key or position of the path.
        key: String,
    },
    /// A setting makes an invalid policy. The text names the field.
    #[error("{0}")]
    InvalidPolicy(String),
}

impl Grid {
    /// The most settings of a grid.
    pub const MAX_SETTINGS: usize = 10_000;

    /// Creates a grid.
    ///
    /// # Errors
    ///
    /// An axis without values, two with the same path, or more than [`MAX_SETTINGS`](Self::MAX_SETTINGS) settings.
    pub fn new(axes: Vec<Axis>) -> Result<Self, GridError> {
        let mut settings: usize = 1;
        for (position, axis) in axes.iter().enumerate() {
            if axis.values.is_empty() {
                return Err(GridError::NoValues(axis.path.clone()));
            }
            if axes[..position].iter().any(|other| other.path == axis.path) {
                return Err(GridError::DuplicatePath(axis.path.clone()));
            }
            settings = settings.saturating_mul(axis.values.len());
        }
        if settings > Self::MAX_SETTINGS {
            return Err(GridError::TooManySettings);
        }
        Ok(Self(axes))
    }

    /// Returns the axes.
    pub fn axes(&self) -> &[Axis] {
        &self.0
    }

    /// Returns every combination, the last axis varying fastest.
    pub fn settings(&self) -> Vec<Setting> {
        let none = vec![Setting(Vec::new())];
        self.0.iter().fold(none, |settings, axis| {
            let longer = settings.into_iter().flat_map(|setting| {
                axis.values.iter().map(move |value| {
                    let mut setting = setting.clone();
                    setting.0.push((axis.path.clone(), value.clone()));
                    setting
                })
            });
            longer.collect()
        })
    }
}

impl Setting {
    /// Returns the paths and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Number)> {
        self.0.iter().map(|(path, value)| (path.as_str(), value))
    }

    /// Returns a policy with these values.
    ///
    /// # Errors
    ///
    /// A path that leads to no number of the policy; values that the policy does not accept.
    pub fn apply(&self, policy: &PolicyConfig) -> Result<PolicyConfig, GridError> {
        let invalid = |error: &dyn fmt::Display| GridError::InvalidPolicy(error.to_string());
        let mut document = serde_json::to_value(policy).map_err(|error| invalid(&error))?;
        for (path, value) in self.iter() {
            set(&mut document, path, value)?;
        }
        let config: PolicyConfig =
            serde_json::from_value(document).map_err(|error| invalid(&error))?;
        config.build().map_err(|error| invalid(&error))?;
        Ok(config)
    }
}

impl Serialize for Setting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// The measure of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Objective {
    /// The evidence items that are kept.
    #[serde(rename = "items_kept")]
    Items,
    /// The evidence tokens that are kept.
    #[serde(rename = "tokens_kept")]
    Tokens,
}

impl Objective {
    /// Returns the measure at a budget.
    pub fn at(self, budget: i64) -> Measure {
        match self {
            Self::Items => Measure::Items(budget),
            Self::Tokens => Measure::Tokens(budget),
        }
    }
}

/// A search: what is tried, how a setting is chosen, and what the chosen one is compared with.
///
/// ```
/// use cupel::config::PolicyConfig;
/// use cupel_chat::Encoding;
/// use cupel_eval::{Axis, Dataset, EvalPolicy, Grid, Measure, Objective, Tuning, unobserved};
///
/// // The evidence has the hint; the other item is newer.
/// let questions = |id: &str| {
///     let line = r#"{"items": [{"content": "ID: hinted", "tokens": 5, "future_relevance_hint": 1.0},
///         {"content": "ID: newer", "tokens": 5}], "questions": [{"query": "q", "evidence": [0]}]}"#;
///     Dataset::parse(id, &line.replace("ID", id).replace('\n', " "), &Encoding::O200k)
/// };
/// let start: PolicyConfig = serde_json::from_str(
///     r#"{"scorer": {"type": "composite", "entries": [{"scorer": {"type": "recency"}, "weight": 5},
///         {"scorer": {"type": "reflexive"}, "weight": 1}]}, "slicer": {"type": "rank"}}"#,
/// )?;
/// let tuned = Tuning {
///     start: &start,
///     grid: &Grid::new(vec![Axis {
///         path: "scorer.entries[0].weight".to_owned(),
///         values: ["5", "2", "0.5"].map(str::parse).into_iter().collect::<Result<_, _>>()?,
///     }])?,
///     objective: Objective::Items,
///     budgets: &[5],
///     train: &questions("train")?,
///     report: &questions("report")?,
///     baselines: &[EvalPolicy::new("start", start.build()?)],
/// }
/// .run(&mut unobserved)?;
/// let means: Vec<f64> = tuned.grid.iter().map(|trial| trial.mean).collect();
/// assert_eq!((means, tuned.best), (vec![0.0, 0.0, 1.0], 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Tuning<'a> {
    /// The policy to start from.
    pub start: &'a PolicyConfig,
    /// The settings to try.
    pub grid: &'a Grid,
    /// The measure to choose by: its mean over the budgets.
    pub objective: Objective,
    /// The budgets.
    pub budgets: &'a [i64],
    /// The transcripts to choose on.
    pub train: &'a Dataset,
    /// The transcripts to report on.
    pub report: &'a Dataset,
    /// The policies that the chosen one is compared with.
    pub baselines: &'a [EvalPolicy],
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tuned {
    /// The measure of the choice.
    pub by: Objective,
    /// The transcripts of the choice.
    pub train: DatasetSize,
    /// Every setting in the order of the grid.
    pub grid: Vec<Trial>,
    /// The position of the chosen setting.
    #[serde(skip)]
    pub best: usize,
    /// The chosen setting.
    pub chosen: Setting,
    /// The chosen policy, named `chosen`, and its differences to the baselines on other transcripts.
    pub report: EvidenceReport,
    /// The chosen policy.
    pub policy: PolicyConfig,
}

/// A setting and its result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trial {
    /// The values.
    pub setting: Setting,
    /// The mean of the measure over questions and budgets.
    pub mean: f64,
}

/// A transcript that both data sets have, as lines from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overlap {
    /// The line of the transcripts to report on.
    pub report: usize,
    /// The line of the transcripts to choose on.
    pub train: usize,
}

/// Why a search has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// The grid is invalid.
    #[error(transparent)]
    Grid(#[from] GridError),
    /// A transcript to report on is one to choose on, whose result would be too good.
    #[error("line {} of the report is also line {} of the training data", .0.report, .0.train)]
    Overlap(Overlap),
    /// A policy cannot be evaluated.
    #[error(transparent)]
    Eval(#[from] EvalError),
}

impl Tuning<'_> {
    /// Evaluates every setting, chooses the best, and evaluates it on the other transcripts. Among equal settings
    /// the first in the order of the grid is chosen.
    ///
    /// The observer is called for both evaluations in turn. If it breaks, the search stops.
    ///
    /// # Errors
    ///
    /// A setting that makes an invalid policy, a transcript that both data sets have, and those of
    /// [`Evaluation::run`].
    pub fn run(
        &self,
        observe: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Tuned, TuneError> {
        let budgets = ascending(self.budgets)?;
        let settings = self.grid.settings();
        let configs = settings.iter().map(|setting| setting.apply(self.start));
        let configs = configs.collect::<Result<Vec<_>, _>>()?;
        if let Some(overlap) = overlap(self.train, self.report) {
            return Err(TuneError::Overlap(overlap));
        }
        let build = |position: usize| {
            let policy = configs[position].build();
            policy.map_err(|error| CupelError::PipelineConfig(error.to_string()))
        };
        let names = settings.iter().map(ToString::to_string).collect();
        let trained = Evaluation::run_each(self.train, names, &build, &budgets, observe)?;
        let mean = |position: usize| {
            let means = budgets.iter().map(|&budget| self.objective.at(budget));
            // Without questions every setting is as good as the first.
            let means = means.map(|measure| trained.mean(position, measure).unwrap_or_default());
            means.sum::<f64>() / budgets.len() as f64
        };
        let mut best = 0;
        let mut trials: Vec<Trial> = Vec::with_capacity(settings.len());
        for (position, setting) in settings.into_iter().enumerate() {
            let mean = mean(position);
            trials.push(Trial { setting, mean });
            if mean > trials[best].mean {
                best = position;
            }
        }
        let mut compared = vec![EvalPolicy::new(
            "chosen",
            build(best).map_err(|error| GridError::InvalidPolicy(error.to_string()))?,
        )];
        compared.extend_from_slice(self.baselines);
        let reported = Evaluation::run(self.report, &compared, &budgets, observe)?;
        Ok(Tuned {
            by: self.objective,
            train: self.train.size(),
            best,
            chosen: trials[best].setting.clone(),
            grid: trials,
            report: reported.report(),
            // The name and the description are those of the policy before its numbers were changed.
            policy: PolicyConfig {
                name: None,
                version: None,
                description: None,
                ..configs[best].clone()
            },
        })
    }
}

/// Writes `scorer.k1=0.9 scorer.b=0.3`.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (path, value)) in self.iter().enumerate() {
            let space = if position == 0 { "" } else { " " };
            write!(f, "{space}{path}={value}")?;
        }
        Ok(())
    }
}

/// Sets a number of a document. The path has keys and positions: `scorer.entries[0].weight` or
/// `scorer.entries.0.weight`.
///
/// A key that an object lacks is added, because a document does not state defaults that are absent; the reader of
/// policies refuses it if it is unknown.
fn set(document: &mut Value, path: &str, number: &Number) -> Result<(), GridError> {
    let unknown = |key: &str| GridError::UnknownKey {
        path: path.to_owned(),
        key: key.to_owned(),
    };
    let dotted = path.replace('[', ".").replace(']', "");
    let mut keys: Vec<&str> = dotted.split('.').collect();
    let last = keys.pop().unwrap_or_default();
    let mut place = document;
    for key in keys {
        let inner = match place {
            Value::Object(fields) => fields.get_mut(key),
            Value::Array(elements) => element(elements, key),
            _ => None,
        };
        place = inner.ok_or_else(|| unknown(key))?;
    }
    let value = match place {
        Value::Object(fields) => fields.entry(last).or_insert(Value::Null),
        Value::Array(elements) => element(elements, last).ok_or_else(|| unknown(last))?,
        _ => return Err(unknown(last)),
    };
    if !value.is_number() && !value.is_null() {
        return Err(GridError::NotANumber {
            path: path.to_owned(),
            key: last.to_owned(),
        });
    }
    *value = Value::from(number.clone());
    Ok(())
}

fn element<'v>(elements: &'v mut [Value], position: &str) -> Option<&'v mut Value> {
    elements.get_mut(position.parse::<usize>().ok()?)
}

/// Returns the texts of a transcript, by which transcripts are compared: with other questions it is still the same
/// transcript.
fn contents(transcript: &Transcript) -> Vec<&str> {
    transcript.items.iter().map(ContextItem::content).collect()
}

/// Returns the first transcript to report on that is also one to choose on.
fn overlap(train: &Dataset, report: &Dataset) -> Option<Overlap> {
    let trained = train.transcripts().iter();
    let trained: HashMap<Vec<&str>, usize> = trained
        .map(|transcript| (contents(transcript), transcript.line))
        .collect();
    report.transcripts().iter().find_map(|transcript| {
        Some(Overlap {
            report: transcript.line,
            train: *trained.get(&contents(transcript))?,
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn axis(path: &str, values: impl IntoIterator<Item = f64>) -> Axis {
        let values = values.into_iter().filter_map(Number::from_f64);
        Axis {
            path: path.to_owned(),
            values: values.collect(),
        }
    }

    #[test]
    fn settings_are_every_combination_in_order() {
        let grid = Grid::new(vec![axis("a", [1.0, 2.0]), axis("b", [0.5, 3.0])]);
        let settings = grid.expect("a small grid").settings();
        let shown: Vec<String> = settings.iter().map(ToString::to_string).collect();
        let expected = ["a=1.0 b=0.5", "a=1.0 b=3.0", "a=2.0 b=0.5", "a=2.0 b=3.0"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_grid_is_limited() {
        let hundred = |path| axis(path, (0..100).map(f64::from));
        let grid = Grid::new(vec![hundred("a"), hundred("b")]).expect("10,000 settings");
        assert_eq!(grid.settings().len(), Grid::MAX_SETTINGS);
        let more = vec![hundred("a"), hundred("b"), axis("c", [1.0, 2.0])];
        assert_eq!(Grid::new(more), Err(GridError::TooManySettings));
        let twice = vec![axis("a", [1.0]), axis("a", [2.0])];
        assert_eq!(
            Grid::new(twice),
            Err(GridError::DuplicatePath("a".to_owned()))
        );
        let none = vec![axis("a", [])];
        assert_eq!(Grid::new(none), Err(GridError::NoValues("a".to_owned())));
    }

    #[test]
    fn numbers_are_set_by_keys_and_positions() {
        let mut document = json!({"a": {"b": [{"c": 1}, 2]}, "d": "text"});
        let three = Number::from(3);
        for path in ["a.b[0].c", "a.b.1", "a.new"] {
            set(&mut document, path, &three).expect(path);
        }
        assert_eq!(
            document,
            json!({"a": {"b": [{"c": 3}, 3], "new": 3}, "d": "text"})
        );
        for path in ["d", "a.b", "a.x.y", "a.b[7].c", "a.b[7]", "d.e", "a.b[0]"] {
            assert!(set(&mut document, path, &three).is_err(), "{path}");
        }
    }
}
