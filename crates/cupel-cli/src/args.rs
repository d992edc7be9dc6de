//! The command line.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::builder::{StyledStr, Styles};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _, Parser};
use cupel::config::{nearest_name, removed};

use crate::commands::{Command, GROUPS};
use crate::output::{Color, OutputOptions, columns};
use crate::text::wrap;
use crate::version;

/// Fits chats and items into a token budget, and explains why
///
/// The answer goes to standard output, everything else to standard error. FILE may be `-` for
/// standard input.
#[derive(Debug, Parser)]
#[command(
    name = "cupel",
    version,
    long_version = version::long(),
    arg_required_else_help = true,
    after_help = EXAMPLES,
    after_long_help = MORE,
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Write the answer to FILE instead of standard output
    #[arg(short, long, global = true, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write errors only: no summary, no warnings, no progress
    #[arg(short, long, global = true)]
    quiet: bool,

    /// Write answers and errors as JSON
    #[arg(long, global = true)]
    json: bool,

    /// Use colors: auto, always or never
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "WHEN",
        hide_default_value = true,
        hide_possible_values = true
    )]
    color: Color,
}

const EXAMPLES: &str = "\
Examples:
  cupel fit chat.json > fitted.json          # into the model's window
  cupel explain chat.json --budget 8k        # why is a message in or out?";

const MORE: &str = "\
Examples:
  cupel fit chat.json > fitted.json          # into the model's window
  cupel fit chat.json --budget 8k -o fitted.json
  cupel explain chat.json --budget 8k        # why is a message in or out?
  cupel select items.jsonl --budget 2k --policy rag

Exit status: 0 success, 1 over budget or not conformant, 2 invalid input or
usage, 3 internal error, 130 stopped by Ctrl-C.";

/// The end of the help of a subcommand.
const GLOBAL_OPTIONS: &str =
    "\n\nOptions of every command: -o FILE, -q, --json, --color WHEN (`cupel -h`)";

/// The width of the help on a wide terminal.
const MAX_HELP_COLUMNS: usize = 100;

impl Cli {
    /// Parses the command line.
    pub(crate) fn parse(arguments: &[OsString]) -> Result<Self, clap::Error> {
        let mut command = command();
        let matches = command.try_get_matches_from_mut(arguments);
        let matches = matches.map_err(|error| with_suggestion(error, &command, arguments))?;
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }

    /// Returns how the command writes.
    pub(crate) fn output_options(&self) -> OutputOptions {
        OutputOptions {
            color: self.color,
            json: self.json,
            quiet: self.quiet,
            file: self.output.clone(),
        }
    }
}

/// Adds what to use instead of an option that was removed, or the nearest subcommand to an unknown one. Clap's
/// similarity (Jaro) finds none for a transposition of two letters in a name as short as `fit`.
fn with_suggestion(
    mut error: clap::Error,
    command: &clap::Command,
    arguments: &[OsString],
) -> clap::Error {
    if let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg)
        && error.kind() == ErrorKind::UnknownArgument
        && let Some(instead) = removed("key", unknown.trim_start_matches('-'))
    {
        let tips =
            ContextValue::StyledStrs(vec![format!("the option was removed; {instead}").into()]);
        // In the place of a similar option.
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, tips);
        return error;
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    // `cupel policy lsit`: the subcommands of `policy`.
    let parent = arguments.iter().skip(1).find_map(|argument| {
        let parent = command.find_subcommand(argument)?;
        parent.has_subcommands().then_some(parent)
    });
    let known = parent.unwrap_or(command).get_subcommands();
    let nearest = nearest_name(unknown, known.map(clap::Command::get_name));
    if let Some(nearest) = nearest {
        let nearest = ContextValue::Strings(vec![nearest.to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, nearest);
    }
    error
}

/// Returns the command line. Its help groups the subcommands, and shows global options once.
fn command() -> clap::Command {
    let command = Cli::command();
    let global = command.get_arguments().filter(|arg| arg.is_global_set());
    let hidden: Vec<clap::Arg> = global.map(|arg| arg.clone().hide(true)).collect();
    // A subcommand with an argument of the same id does not get the global one.
    let command = command.mut_subcommands(|subcommand| {
        let with_options = |help: Option<&StyledStr>| {
            let help = help.map(ToString::to_string).unwrap_or_default();
            help + GLOBAL_OPTIONS
        };
        let short = with_options(subcommand.get_after_help());
        let long = subcommand.get_after_long_help();
        let long = with_options(long.or(subcommand.get_after_help()));
        let subcommand = subcommand.after_help(short).after_long_help(long);
        subcommand.args(hidden.clone())
    });
    let columns = columns().min(MAX_HELP_COLUMNS);
    let template = help_template(&command, columns);
    command.help_template(template).term_width(columns)
}

/// Returns the main help with the subcommands in groups.
fn help_template(command: &clap::Command, columns: usize) -> String {
    let styles = Styles::styled();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let mut template = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (heading, names) in GROUPS {
        let _ = write!(template, "\n{header}{heading}:{header:#}\n");
        for name in *names {
            let subcommand = command.find_subcommand(name);
            let about = subcommand.and_then(|subcommand| subcommand.get_about());
            let about = about.map(ToString::to_string).unwrap_or_default();
            let line = format!("  {literal}{name:<11}{literal:#}  {about}");
            for line in wrap(&line, columns, 15) {
                let _ = writeln!(template, "{line}");
            }
        }
    }
    let _ = write!(template, "\n{header}Options:{header:#}\n");
    template + "{options}{after-help}"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_lists_every_subcommand_once() {
        let mut listed: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        listed.sort_unstable();
        let command = Cli::command();
        let mut known: Vec<&str> = command
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect();
        known.sort_unstable();
        assert_eq!(listed, known);
    }
}
