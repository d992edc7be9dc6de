//! The arguments of commands that run a policy, as the options of a question.

use std::path::{Path, PathBuf};

use clap::Args;
use cupel::SelectionReport;
use cupel::config::{PolicyConfig, Preset, preset};
use cupel_app::{Content, Error, Fault, NamedPolicy, Options, Prepared, Scope, Source, UsedConfig};

use crate::budget::BudgetArgs;
use crate::config::ConfigArgs;
use crate::counting::ChatArgs;
use crate::dialect::CommandLine;
use crate::failure::Failure;
use crate::input::{self, ReadArgs, check_output};
use crate::output::Output;
use crate::replace::write_file;
use crate::trimming::TrimmingArgs;

/// The arguments of every command that runs one policy over one input.
#[derive(Debug, Args)]
pub(crate) struct TaskArgs {
    #[command(flatten)]
    policy: PolicyArg,

    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    trimming: TrimmingArgs,
}

/// The arguments of a command that reads items only.
#[derive(Debug, Args)]
pub(crate) struct ItemsArgs {
    #[command(flatten)]
    policy: PolicyArg,

    #[command(flatten)]
    input: InputArgs,
}

/// An input, its limits, and how it is read.
#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// Chat, items or request document; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    settings: SettingsArgs,
}

/// The limits of a run and how an input is read.
#[derive(Debug, Args)]
pub(crate) struct SettingsArgs {
    #[command(flatten)]
    budget: BudgetArgs,

    /// Question that the window is to answer
    ///
    /// For policies that score by relevance to it. Default: `query` of the request document; for a chat the
    /// text of the last user turn.
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    query: Option<String>,

    #[command(flatten)]
    chat: ChatArgs,

    #[command(flatten)]
    config: ConfigArgs,
}

/// The policy of a run.
#[derive(Debug, Args)]
pub(crate) struct PolicyArg {
    /// Policy: a preset or a file (see `cupel policy list`)
    ///
    /// Default: the request's policy, otherwise that of cupel.toml, otherwise the preset `agent` for a chat and `chat`
    /// for items.
    #[arg(long, value_name = "NAME|FILE")]
    policy: Option<String>,
}

/// Where the report goes.
#[derive(Debug, Args)]
pub(crate) struct ReportArg {
    /// Write the report of the run to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

impl ReportArg {
    pub(crate) fn is_given(&self) -> bool {
        self.report.is_some()
    }

    /// Fails if `--report` names the input.
    pub(crate) fn check(&self, input: &Path) -> Result<(), Failure> {
        check_output(input, "--report", self.report.as_deref())
    }

    /// Writes the report if `--report` asks for it.
    pub(crate) fn write(&self, report: &SelectionReport) -> Result<(), Failure> {
        let Some(path) = &self.report else {
            return Ok(());
        };
        let report = serde_json::to_string_pretty(report)
            .map_err(|error| Failure::internal(error.to_string()))?;
        write_file(path, &format!("{report}\n"))
    }
}

impl TaskArgs {
    /// Reads the input.
    pub(crate) fn load(&self, scope: Scope) -> Result<Prepared, Failure> {
        let source = self.source()?;
        Ok(Prepared::new(source, &self.options()?, scope)?)
    }

    /// Returns the file of the input.
    pub(crate) fn file(&self) -> &Path {
        &self.input.file
    }

    /// Reads the text of the input.
    pub(crate) fn source(&self) -> Result<Source, Failure> {
        input::read(&self.input.file)
    }

    /// Returns how a chat is read.
    pub(crate) fn read_args(&self) -> &ReadArgs {
        &self.input.settings.chat.read
    }

    /// Returns the options of the command line.
    pub(crate) fn options(&self) -> Result<Options, Failure> {
        self.input.settings.options(&self.policy, &self.trimming)
    }
}

impl ItemsArgs {
    /// Returns the file of the input.
    pub(crate) fn file(&self) -> &Path {
        &self.input.file
    }

    /// Reads the input.
    pub(crate) fn load(&self) -> Result<Prepared, Failure> {
        let source = input::read(&self.input.file)?;
        let trimming = TrimmingArgs::default();
        let options = self.input.settings.options(&self.policy, &trimming)?;
        Ok(Prepared::new(source, &options, Scope::Budget)?)
    }
}

impl InputArgs {
    /// Reads the input for policies that are named later.
    pub(crate) fn load_for_variants(&self, trimming: &TrimmingArgs) -> Result<Prepared, Failure> {
        let source = input::read(&self.file)?;
        let options = self
            .settings
            .options(&PolicyArg { policy: None }, trimming)?;
        Ok(Prepared::new(source, &options, Scope::OtherPolicies)?)
    }
}

impl SettingsArgs {
    pub(crate) fn options(
        &self,
        policy: &PolicyArg,
        trimming: &TrimmingArgs,
    ) -> Result<Options, Failure> {
        Ok(Options {
            budget: self.budget.options(),
            policy: policy.policy.as_deref().map(find_policy).transpose()?,
            query: self.query.clone(),
            read: self.chat.read.options(),
            counter: self.chat.counter(),
            chat: trimming.options.clone(),
            summary_tokens: None,
            config: self.config.load()?,
        })
    }
}

/// Parses a position in the input.
pub(crate) fn position(text: &str) -> Result<usize, &'static str> {
    text.parse()
        .map_err(|_| "expected a position: a whole number from 0")
}

/// A preset or a policy file.
pub(crate) enum Named {
    Preset(&'static Preset),
    File(Source),
}

impl Named {
    /// Returns the policy as data.
    pub(crate) fn config(&self) -> Result<PolicyConfig, Failure> {
        match self {
            Self::Preset(preset) => Ok(preset.config().clone()),
            Self::File(source) => Ok(source.policy()?),
        }
    }

    /// Finds the preset or the file of that name.
    pub(crate) fn find(name: &str) -> Result<Self, Failure> {
        match preset(name) {
            Ok(preset) => Ok(Self::Preset(preset)),
            Err(unknown) => match load(name)? {
                Some(source) => Ok(Self::File(source)),
                None => Err(Error::new(Fault::UnknownPolicy(unknown)).into()),
            },
        }
    }
}

/// Finds the policy of that name: a preset or a file.
pub(crate) fn find_policy(name: &str) -> Result<NamedPolicy, Failure> {
    NamedPolicy::find(name, load)
}

/// Reads a policy file. A name without a directory and an extension is that of a file only if there is one.
pub(crate) fn load(name: &str) -> Result<Option<Source>, Failure> {
    let path = Path::new(name);
    let looks_like_a_file = path.components().count() > 1 || path.extension().is_some();
    if looks_like_a_file || path.exists() {
        input::read(path).map(Some)
    } else {
        Ok(None)
    }
}

/// Writes the notices about the settings, for a command without a summary.
pub(crate) fn warn(prepared: &Prepared, output: &mut Output) {
    if !output.is_json() {
        for notice in &prepared.setting.notices {
            output.warn(notice.message(&CommandLine));
        }
        if let Some(config) = &prepared.setting.config {
            output.note(config_line(config));
        }
    }
}

/// Returns which configuration was used, and what of it.
pub(crate) fn config_line(config: &UsedConfig) -> String {
    format!("config: {}", config.describe())
}

/// Returns the heading of a table column of labels.
pub(crate) fn label_heading(prepared: &Prepared) -> &'static str {
    match prepared.content {
        Content::Chat { .. } => "role",
        Content::Items { .. } => "kind",
    }
}
