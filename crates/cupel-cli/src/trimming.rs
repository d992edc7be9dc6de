//! How a chat is trimmed, on the command line: one option per row of [`CHAT_SETTINGS`].

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use cupel::config::registry::{Literal, Need};
use cupel::config::{CHAT_SETTINGS, ChatSetting, ChatValue};
use cupel::{Shorten, ToolResults};
use cupel_app::ChatOptions;

use crate::budget::tokens;

/// How a chat is trimmed. Each option takes precedence over the policy.
#[derive(Debug, Clone, Default)]
pub(crate) struct TrimmingArgs {
    pub(crate) options: ChatOptions,
}

/// Parses a token count of at least 1.
pub(crate) fn at_least_one(text: &str) -> Result<i64, String> {
    match tokens(text)? {
        0 => Err("expected at least 1 token".to_owned()),
        tokens => Ok(tokens),
    }
}

/// Parses how the results of a tool are treated, such as `todo_write=keep`.
fn tool_results(text: &str) -> Result<(String, ToolResults), String> {
    let names = ToolResults::NAMES.join(", ");
    let Some((tool, how)) = text.rsplit_once('=') else {
        return Err(format!(
            "write a tool and one of {names}, such as todo_write=keep"
        ));
    };
    let found = ToolResults::find(how.trim());
    let how = found.ok_or_else(|| format!("unknown name `{how}`; expected one of {names}"))?;
    Ok((tool.trim().to_owned(), how))
}

/// Returns the name of an option: `max-result`.
fn name(setting: &ChatSetting) -> String {
    setting.name().replace('_', "-")
}

/// Returns the option that turns a switch off, if it is on by default: `no-keep-task`.
fn opposite(setting: &ChatSetting) -> Option<String> {
    let is_on = setting.field.need == Need::Default(Literal::Bool(true));
    is_on.then(|| format!("no-{}", name(setting)))
}

/// Adds what the options have in common.
fn described(option: Arg, setting: &ChatSetting, help: &str) -> Arg {
    option
        .help(help.to_owned())
        .help_heading("Chats")
        .hide_short_help(!setting.is_common)
}

/// Returns the option of a setting, and the one that turns it off if it is on by default.
fn options(setting: &ChatSetting) -> impl Iterator<Item = Arg> {
    let option = Arg::new(name(setting)).long(name(setting));
    let option = described(option, setting, setting.help);
    // clap breaks the line at `{n}`.
    let doc = setting.field.doc.replace("{n}", "an n in braces");
    let option = option.long_help(format!("{}\n\n{doc}", setting.help));
    let option = match (setting.value)(&mut ChatOptions::default().settings) {
        ChatValue::Switch(_) => option.action(ArgAction::SetTrue),
        ChatValue::Tokens(_) => option.value_name("TOKENS").value_parser(at_least_one),
        ChatValue::Text(_) => option.value_name("TEXT|off"),
        ChatValue::Messages(_) => option
            .value_name("MESSAGES")
            .value_delimiter(',')
            .action(ArgAction::Append),
        ChatValue::Shorten(_) => option
            .value_name("WHICH")
            .value_parser(PossibleValuesParser::new(Shorten::NAMES))
            .hide_possible_values(true),
        ChatValue::Tools(_) => option
            .value_name("TOOL=HOW")
            .value_delimiter(',')
            .action(ArgAction::Append)
            .value_parser(tool_results),
    };
    let off = opposite(setting).map(|off| {
        let help = format!("Turn off --{}", name(setting));
        let option = Arg::new(off.clone()).long(off).action(ArgAction::SetTrue);
        described(option, setting, &help).overrides_with(name(setting))
    });
    let option = match opposite(setting) {
        Some(off) => option.overrides_with(off),
        None => option,
    };
    [option].into_iter().chain(off)
}

impl Args for TrimmingArgs {
    fn augment_args(command: Command) -> Command {
        command.args(CHAT_SETTINGS.iter().flat_map(options))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for TrimmingArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut args = Self::default();
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        for setting in &CHAT_SETTINGS {
            let id = name(setting);
            let is_off = opposite(setting).is_some_and(|off| matches.get_flag(&off));
            let is_switch = matches!(
                (setting.value)(&mut self.options.settings),
                ChatValue::Switch(_)
            );
            let is_given = if is_switch {
                is_off || matches.get_flag(&id)
            } else {
                matches.contains_id(&id)
            };
            if !is_given {
                continue;
            }
            match self.options.value(setting) {
                ChatValue::Switch(value) => *value = !is_off,
                ChatValue::Tokens(value) => *value = matches.get_one(&id).copied(),
                ChatValue::Text(value) => *value = matches.get_one(&id).cloned(),
                ChatValue::Messages(value) => {
                    *value = matches.get_many(&id).unwrap_or_default().cloned().collect();
                }
                ChatValue::Shorten(value) => {
                    let name = matches.get_one::<String>(&id).map_or("", String::as_str);
                    *value = Shorten::find(name).unwrap_or_default();
                }
                ChatValue::Tools(value) => {
                    let given = matches.get_many(&id).unwrap_or_default();
                    *value = given.cloned().collect();
                }
            }
        }
        Ok(())
    }
}
