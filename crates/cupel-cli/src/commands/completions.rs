//! `cupel completions`

use clap::builder::PossibleValuesParser;
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;
use cupel::config::{Preset, presets};

use crate::args::Cli;
use crate::failure::{Exit, Failure};
use crate::output::Output;

/// Write a shell completion script
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Completions {
    /// Shell
    #[arg(value_enum)]
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  cupel completions bash > ~/.local/share/bash-completion/completions/cupel
  cupel completions zsh > ~/.zfunc/_cupel
  cupel completions fish > ~/.config/fish/completions/cupel.fish";

impl Completions {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let mut script = Vec::new();
        let mut command = with_presets(Cli::command());
        clap_complete::generate(self.shell, &mut command, "cupel", &mut script);
        output.text(with_files(self.shell, &String::from_utf8_lossy(&script)))?;
        Ok(Exit::Success)
    }
}

/// The name of the value of every argument that takes a preset or a policy file.
const POLICY: &str = "NAME|FILE";

/// Makes the names of the presets possible values of every argument that takes a policy.
fn with_presets(command: clap::Command) -> clap::Command {
    let is_policy = |arg: &clap::Arg| {
        let names = arg.get_value_names().unwrap_or_default();
        names.iter().any(|name| name == POLICY)
    };
    let command = command.mut_args(|arg| {
        if is_policy(&arg) {
            arg.value_parser(PossibleValuesParser::new(names()))
        } else {
            arg
        }
    });
    command.mut_subcommands(with_presets)
}

fn names() -> impl Iterator<Item = &'static str> {
    presets().iter().map(Preset::name)
}

/// Lets the script complete files beside the presets: possible values of clap are the only ones.
fn with_files(shell: Shell, script: &str) -> String {
    let names: Vec<&str> = names().collect();
    let (first, names) = (names[0], names.join(" "));
    match shell {
        Shell::Bash => script.replace(
            &format!("compgen -W \"{names}\""),
            &format!("compgen -f -W \"{names}\""),
        ),
        Shell::Zsh => script.replace(
            &format!(":({names})"),
            &format!(":{{compadd {names}; _files}}"),
        ),
        Shell::Fish => script.replace(
            &format!("-r -f -a \"{first}\\t''"),
            &format!("-r -F -a \"{first}\\t''"),
        ),
        _ => script.to_owned(),
    }
}
