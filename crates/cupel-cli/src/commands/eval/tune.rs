//! `cupel eval tune`

use std::collections::HashMap;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use cupel::ContextItem;
use cupel::config::{Format, PolicyConfig};
use serde_json::{Number, Value, json};

use super::dataset::{Dataset, Transcript};
use super::evaluation::{EvalPolicy, Evaluation, Measure};
use super::evidence::{Results, ascending, describe, note, percent};
use crate::failure::{Exit, Failure};
use crate::output::{Output, style};
use crate::text::{Table, counted, grouped_count, left, right};
use crate::trimming::at_least_one;

/// Search a grid of a policy's numbers
///
/// Runs every combination of the values on TRAIN, chooses the best by the mean of a measure over the
/// budgets, and reports it on another file. Prints the grid, the report and the policy document with the
/// chosen values. Among equal settings the first in the order of the grid is chosen.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = "cupel eval tune [OPTIONS] <TRAIN>")]
pub(super) struct Tune {
    /// Transcripts to choose on, one per line
    #[arg(value_name = "TRAIN")]
    train: PathBuf,

    /// Transcripts to report on; none of them may be in TRAIN
    #[arg(long, value_name = "FILE")]
    report: PathBuf,

    /// Policy to start from: a preset or a file
    #[arg(long, value_name = "NAME|FILE")]
    policy: String,

    /// Number of the policy and its values: scorer.k1=0.5,0.9; repeatable
    ///
    /// The path has the keys and positions that lead to the number, such as `scorer.entries[0].weight`.
    #[arg(long, value_name = "PATH=VALUES", value_parser = axis, required = true)]
    grid: Vec<Axis>,

    /// Token limits: 512,1024,2k
    #[arg(long, value_name = "TOKENS", value_parser = at_least_one, value_delimiter = ',', required = true)]
    budget: Vec<i64>,

    /// Measure to choose by: items or tokens
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        default_value = "items",
        hide_possible_values = true
    )]
    by: By,
}

const EXAMPLES: &str = "\
Examples:
  cupel eval tune train.jsonl --report val.jsonl --policy mine.toml \\
    --budget 1k,2k --grid scorer.k1=0.5,0.9,1.2 --grid scorer.b=0.3,0.5
  cupel eval tune train.jsonl --report val.jsonl --policy chat \\
    --budget 2k --grid 'scorer.entries[0].weight=1,3' --json | jq .policy";

/// The measure of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    Items,
    Tokens,
}

impl By {
    fn measure(self, budget: i64) -> Measure {
        match self {
            Self::Items => Measure::Items(budget),
            Self::Tokens => Measure::Tokens(budget),
        }
    }
}

/// A number of a policy document and the values to try.
#[derive(Debug, Clone)]
struct Axis {
    path: String,
    values: Vec<Number>,
}

/// Parses an axis such as `scorer.k1=0.5,0.9`.
fn axis(text: &str) -> Result<Axis, String> {
    let expected = "expected PATH=VALUES, such as scorer.k1=0.5,0.9,1.2";
    let (path, values) = text.split_once('=').ok_or(expected)?;
    if path.trim().is_empty() {
        return Err(expected.to_owned());
    }
    let value = |value: &str| {
        let value = value.trim();
        value
            .parse()
            .map_err(|_| format!("`{value}` is not a number; {expected}"))
    };
    Ok(Axis {
        path: path.trim().to_owned(),
        values: values.split(',').map(value).collect::<Result<_, _>>()?,
    })
}

/// The most settings of a grid.
const MAX_SETTINGS: usize = 10_000;

impl Tune {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let start = EvalPolicy::find(&self.policy)?;
        let settings = settings(&self.grid)?;
        let candidates = settings.iter().map(|setting| {
            let config = self.configured(&start.config, setting)?;
            let name = self.policy.clone();
            Ok(EvalPolicy { name, config })
        });
        let candidates = candidates.collect::<Result<Vec<_>, Failure>>()?;
        let budgets = ascending(self.budget.clone());
        let (train, report) = (Dataset::read(&self.train)?, Dataset::read(&self.report)?);
        check_disjoint(&train, &report)?;

        let evaluation = Evaluation::run(&train, &candidates, &budgets, output)?;
        let mean = |candidate: usize| {
            let means = budgets.iter();
            let means = means.map(|&budget| evaluation.mean(candidate, self.by.measure(budget)));
            means.sum::<f64>() / budgets.len() as f64
        };
        let means: Vec<f64> = (0..candidates.len()).map(mean).collect();
        let best = (0..means.len()).fold(0, |best, candidate| {
            if means[candidate] > means[best] {
                candidate
            } else {
                best
            }
        });

        let chosen = candidates[best].clone();
        // Another policy than the one that has this name and description.
        let config = PolicyConfig {
            name: None,
            version: None,
            description: None,
            ..chosen.config.clone()
        };
        let reported = Evaluation::run(&report, &[chosen, start], &budgets, output)?;
        let results = Results::new(&reported, &["chosen", &self.policy]);
        if output.is_json() {
            let grid = settings.iter().zip(&means);
            let grid =
                grid.map(|(setting, mean)| json!({"setting": self.named(setting), "mean": mean}));
            let mut document = json!({
                "by": self.by.measure(0).name(),
                "train": describe(&train),
                "grid": grid.collect::<Vec<_>>(),
                "chosen": self.named(&settings[best]),
                "report": describe(&report),
                "policy": config,
            });
            document["report"]["results"] = results.document();
            output.json(&document)?;
            return Ok(Exit::Success);
        }
        self.write_grid(&settings, &means, best, output)?;
        output.line("")?;
        let bold = style::HEADER;
        output.line(format_args!("{bold}Report on {}{bold:#}", report.name))?;
        output.line("")?;
        results.write(output)?;
        let text = config.to_text(Format::Json);
        output.text(text.map_err(|error| Failure::internal(error.to_string()))?)?;
        output.finish()?;
        output.note(format_args!(
            "{} tried on {}: {}, {}",
            counted(settings.len(), "setting"),
            train.name,
            counted(train.transcripts.len(), "transcript"),
            counted(train.questions(), "question"),
        ));
        note(&report, output);
        Ok(Exit::Success)
    }

    /// Returns the policy with the values of a setting.
    fn configured(
        &self,
        start: &PolicyConfig,
        setting: &[Number],
    ) -> Result<PolicyConfig, Failure> {
        let mut document =
            serde_json::to_value(start).map_err(|error| Failure::internal(error.to_string()))?;
        for (axis, value) in self.grid.iter().zip(setting) {
            set(&mut document, &axis.path, value).map_err(|problem| {
                Failure::input(format!("--grid {}: {problem}", axis.path)).help(format!(
                    "`cupel policy show {}` prints the document",
                    self.policy
                ))
            })?;
        }
        let config: Result<PolicyConfig, _> = serde_json::from_value(document);
        let config = config.map_err(|error| error.to_string());
        let config = config.and_then(|config| match config.build() {
            Ok(_) => Ok(config),
            Err(error) => Err(error.to_string()),
        });
        config.map_err(|error| Failure::input(format!("--grid: {error}")))
    }

    /// Returns the values of a setting by path.
    fn named(&self, setting: &[Number]) -> Value {
        let named = self.grid.iter().zip(setting);
        let named = named.map(|(axis, value)| (axis.path.clone(), Value::from(value.clone())));
        Value::Object(named.collect())
    }

    fn write_grid(
        &self,
        settings: &[Vec<Number>],
        means: &[f64],
        best: usize,
        output: &mut Output,
    ) -> Result<(), Failure> {
        const ROWS: usize = 30;
        let mut order: Vec<usize> = (0..settings.len()).collect();
        order.sort_by(|&a, &b| means[b].total_cmp(&means[a]));
        let mut headings: Vec<_> = self.grid.iter().map(|axis| right(&*axis.path)).collect();
        headings.extend([right(self.by.measure(0).name()), left("")]);
        let mut table = Table::new(headings, &[]);
        for &row in order.iter().take(ROWS) {
            let mut cells: Vec<String> = settings[row].iter().map(ToString::to_string).collect();
            let mark = if row == best { "chosen" } else { "" };
            cells.extend([percent(means[row]), mark.to_owned()]);
            table.row(cells);
        }
        output.table(&table)?;
        if order.len() > ROWS {
            let more = grouped_count(order.len() - ROWS);
            output.line(format_args!(
                "{more} more settings; --json writes all of them"
            ))?;
        }
        Ok(())
    }
}

/// Returns every combination of the values, the last axis varying fastest.
fn settings(grid: &[Axis]) -> Result<Vec<Vec<Number>>, Failure> {
    let count = grid.iter().try_fold(1_usize, |count, axis| {
        let count = count.checked_mul(axis.values.len());
        count.filter(|count| *count <= MAX_SETTINGS)
    });
    if count.is_none() {
        let most = grouped_count(MAX_SETTINGS);
        return Err(
            Failure::input(format!("the grid has more than {most} settings"))
                .help("give fewer values, or tune one number after the other"),
        );
    }
    Ok(grid.iter().fold(vec![Vec::new()], |settings, axis| {
        let longer = settings.into_iter().flat_map(|setting| {
            axis.values.iter().map(move |value| {
                let mut setting = setting.clone();
                setting.push(value.clone());
                setting
            })
        });
        longer.collect()
    }))
}

/// Sets a number of a document. The path has keys and positions: `scorer.entries[0].weight` or
/// `scorer.entries.0.weight`.
fn set(document: &mut Value, path: &str, number: &Number) -> Result<(), String> {
    let path = path.replace('[', ".").replace(']', "");
    let mut keys: Vec<&str> = path.split('.').collect();
    let last = keys.pop().unwrap_or_default();
    let mut place = document;
    for key in keys {
        let inner = match place {
            Value::Object(fields) => fields.get_mut(key),
            Value::Array(elements) => key.parse().ok().and_then(|at: usize| elements.get_mut(at)),
            _ => None,
        };
        place = inner.ok_or_else(|| format!("the policy has no `{key}` there"))?;
    }
    let number = Value::from(number.clone());
    let is_number = |value: &Value| value.is_number() || value.is_null();
    match place {
        Value::Object(fields) => match fields.get(last) {
            Some(value) if !is_number(value) => Err(format!("`{last}` is not a number")),
            _ => {
                fields.insert(last.to_owned(), number);
                Ok(())
            }
        },
        Value::Array(elements) => {
            let at = last.parse().ok();
            match at.and_then(|at: usize| elements.get_mut(at)) {
                Some(value) if is_number(value) => {
                    *value = number;
                    Ok(())
                }
                Some(_) => Err(format!("`{last}` is not a number")),
                None => Err(format!("the policy has no `{last}` there")),
            }
        }
        _ => Err(format!("the policy has no `{last}` there")),
    }
}

/// Returns the texts of a transcript: with other questions it is still the same transcript.
fn contents(transcript: &Transcript) -> Vec<&str> {
    transcript.items.iter().map(ContextItem::content).collect()
}

/// Refuses a report on transcripts that the setting was chosen on.
fn check_disjoint(train: &Dataset, report: &Dataset) -> Result<(), Failure> {
    let known: HashMap<Vec<&str>, usize> = train
        .transcripts
        .iter()
        .map(|transcript| (contents(transcript), transcript.line))
        .collect();
    let Some((line, trained)) = report.transcripts.iter().find_map(|transcript| {
        let trained = known.get(&contents(transcript))?;
        Some((transcript.line, *trained))
    }) else {
        return Ok(());
    };
    Err(Failure::input(format!(
        "line {line} of {} is also line {trained} of {}",
        report.name, train.name
    ))
    .help("report on transcripts that the setting is not chosen on: split the file in two"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_every_combination_in_order() {
        let grid = ["a=1,2", "b=0.5,3"].map(|text| axis(text).expect("an axis"));
        let settings = settings(&grid).expect("a small grid");
        let shown: Vec<String> = settings
            .iter()
            .map(|it| format!("{} {}", it[0], it[1]))
            .collect();
        assert_eq!(shown, ["1 0.5", "1 3", "2 0.5", "2 3"]);
    }

    #[test]
    fn a_grid_is_limited() {
        let values = (0..101)
            .map(|n| n.to_string())
            .collect::<Vec<_>>()
            .join(",");
        let axes = [format!("a={values}"), format!("b={values}")];
        let axes = axes.map(|text| axis(&text).expect("an axis"));
        assert!(settings(&axes).is_err());
        assert_eq!(settings(&axes[..1]).expect("one axis").len(), 101);
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
