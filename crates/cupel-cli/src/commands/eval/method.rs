//! How `cupel eval agent` and `cupel eval criteria` trim, and the errors of their inputs.

use clap::Args;
use cupel_app::{Error, Fault, NamedPolicy, Source};
use cupel_eval::{EvalPolicy, Method, RunsError};

use crate::failure::Failure;
use crate::task::find_policy;
use crate::trimming::TrimmingArgs;

/// The policies that are compared.
#[derive(Debug, Args)]
pub(super) struct MethodArgs {
    /// Policies: presets, files, or `suffix`, the newest messages that fit
    ///
    /// Default: `suffix` and `agent`.
    #[arg(long, value_name = "NAME|FILE", value_delimiter = ',')]
    policy: Vec<String>,

    #[command(flatten)]
    trimming: TrimmingArgs,
}

impl MethodArgs {
    pub(super) fn methods(&self) -> Result<Vec<Method>, Failure> {
        let method = |policy: NamedPolicy| {
            let NamedPolicy { name, policy } = self.trimming.options.apply(policy)?;
            Ok(Method::Fit(EvalPolicy::new(name, policy)))
        };
        if self.policy.is_empty() {
            return Ok(vec![Method::Suffix, method(NamedPolicy::for_chats())?]);
        }
        let policies = self.policy.iter().map(|name| match name.as_str() {
            Method::SUFFIX => Ok(Method::Suffix),
            name => find_policy(name).and_then(method),
        });
        policies.collect()
    }
}

/// Returns the failure of a text that is no list of chats. `line` is the format of a line.
pub(super) fn runs_failure(error: RunsError, source: &Source, line: &str) -> Failure {
    match error {
        RunsError::Chat(error) => {
            let place = source.place(error.place.line, error.place.column, error.path.clone());
            let is_array = false;
            Error::new(Fault::Chat { error, is_array }).at(place).into()
        }
        RunsError::Items { line: number } => Failure::input("this is not a chat")
            .at(source.place(number, 1, String::new()))
            .help(line),
    }
}
