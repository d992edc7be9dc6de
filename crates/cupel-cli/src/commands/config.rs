//! `cupel config`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use cupel_app::{Config as Configuration, EffectiveValue, Place, ValueOrigin, config_schema};
use serde_json::json;

use crate::config::{ConfigArgs, load_policy, read};
use crate::dialect::CommandLine;
use crate::failure::{Exit, Failure};
use crate::output::{Output, style};
use crate::task::{PolicyArg, SettingsArgs};
use crate::text::{Give, Table, left};
use crate::trimming::TrimmingArgs;
use cupel_app::Dialect as _;

/// Show and check the configuration
///
/// The configuration is the file cupel.toml in the working directory, or in the nearest one above that has it. --config
/// or the environment variable `CUPEL_CONFIG` names another. It sets what fit, select, explain, search, count, compare,
/// batch, sweep, min-budget and marginal use where nothing else does.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = MORE, arg_required_else_help = true)]
pub(crate) struct Config {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "\
Examples:
  cupel init                                  write a cupel.toml
  cupel config show                           what applies, and from where
  cupel config check                          find every mistake
  cupel config schema > cupel.schema.json     for editors";

const MORE: &str = "\
Examples:
  cupel init                                  write a cupel.toml
  cupel config show                           what applies, and from where
  cupel config check                          find every mistake
  cupel config schema > cupel.schema.json     for editors

What comes first:
  1. an option, such as --budget 8k
  2. what the input states: the budget, the policy and the query of a request
     document, the model of a chat, and an answer that needs a larger reserve
  3. the configuration, whether it was found or named
  4. the default

A budget of an option or a request takes the place of budget, target, reserve
and slot of the configuration. A model of an option takes the place of its
encoding. A policy of an option keeps the settings for chats that it states.";

#[derive(Debug, Subcommand)]
enum Action {
    /// Show the values that apply, and where each is from
    ///
    /// For an input that states nothing itself. Options of `cupel fit` are shown too.
    #[command(after_help = SHOW_EXAMPLES)]
    Show(Box<Show>),
    /// Check configurations
    Check(Check),
    /// Print the JSON Schema of cupel.toml
    #[command(after_help = SCHEMA_EXAMPLES)]
    Schema,
}

const SHOW_EXAMPLES: &str = "\
Examples:
  cupel config show
  cupel config show --budget 4k               with an option
  cupel config show --config other.toml --json";

const SCHEMA_EXAMPLES: &str = "\
Examples:
  cupel config schema > cupel.schema.json";

#[derive(Debug, Args)]
struct Show {
    #[command(flatten)]
    policy: PolicyArg,

    #[command(flatten)]
    settings: SettingsArgs,

    #[command(flatten)]
    trimming: TrimmingArgs,
}

#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
struct Check {
    /// Configurations. Default: the one that applies
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    config: ConfigArgs,
}

const CHECK_EXAMPLES: &str = "\
Examples:
  cupel config check
  cupel config check */cupel.toml";

impl Config {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        match self.action {
            Action::Show(show) => show.run(output),
            Action::Check(check) => check.run(output),
            Action::Schema => {
                output.text(config_schema())?;
                Ok(Exit::Success)
            }
        }
    }
}

/// Returns where a value is from: `--budget`, `cupel.toml:3`, `default`.
fn origin(value: &EffectiveValue) -> String {
    match &value.origin {
        ValueOrigin::Caller => CommandLine.argument(value.argument),
        ValueOrigin::Config(Place { file, line, .. }) => format!("{file}:{line}"),
        ValueOrigin::Default => "default".to_owned(),
    }
}

impl Show {
    fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let options = self.settings.options(&self.policy, &self.trimming)?;
        options.check()?;
        let file = options.config.as_ref().map(|config| config.name());
        let values = options.effective();
        if output.is_json() {
            let values = values.iter().map(|value| {
                json!({ "key": value.argument.key(), "value": value.value, "origin": origin(value) })
            });
            output.json(&json!({ "file": file, "values": values.collect::<Vec<_>>() }))?;
            return Ok(Exit::Success);
        }
        let mut table = Table::new([left("key"), left("value"), left("from")], GIVES);
        for value in &values {
            let shown = value.value.as_ref().unwrap_or(&value.default);
            table.row(vec![value.argument.key(), shown.clone(), origin(value)]);
        }
        output.table(&table)?;
        output.finish()?;
        let quiet = style::QUIET;
        output.note(match file {
            Some(file) => format!("{quiet}configuration: {file}{quiet:#}"),
            None => format!("{quiet}no configuration; `cupel init` writes one{quiet:#}"),
        });
        Ok(Exit::Success)
    }
}

/// The order in which columns make room.
const GIVES: &[Give] = &[Give::Cut("value", 24), Give::Cut("from", 16)];

impl Check {
    /// Reports every mistake of every file.
    fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let files = match self.files {
            files if files.is_empty() => self.config.path().into_iter().collect(),
            files => files,
        };
        if files.is_empty() {
            return Err(Failure::input("there is no cupel.toml here or above")
                .help("`cupel init` writes one; or name a file"));
        }
        let mut exit = Exit::Success;
        let mut checked = Vec::new();
        for path in &files {
            let faults = match read(path) {
                Ok(source) => Configuration::faults(&source, &mut |name| load_policy(path, name))
                    .into_iter()
                    .map(Failure::from)
                    .collect(),
                Err(failure) => vec![failure],
            };
            let name = path.display().to_string();
            checked.push(super::policy::report(&name, faults, &mut exit, output)?);
        }
        if output.is_json() {
            output.json(&checked)?;
        }
        Ok(exit)
    }
}
