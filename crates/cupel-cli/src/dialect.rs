//! [`CommandLine`]: how the command writes arguments and questions in errors and notes.

use cupel_app::{Argument, Dialect, Question};

/// The dialect of the command line: `--shorten`, `` `cupel fit` ``.
pub(crate) struct CommandLine;

impl Dialect for CommandLine {
    fn argument(&self, argument: Argument) -> String {
        let name = match argument {
            // The option is repeated.
            Argument::Policies => Argument::Policy.name(),
            argument => argument.name(),
        };
        format!("--{}", name.replace('_', "-"))
    }

    fn with_value(&self, argument: Argument, value: &str) -> String {
        format!("{} {value}", self.argument(argument))
    }

    fn question(&self, question: Question) -> String {
        match question {
            Question::Presets => "`cupel policy list`".to_owned(),
            question => format!("`cupel {}`", question.name()),
        }
    }
}
