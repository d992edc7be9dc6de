//! Errors: the fault, its place and its fix.

use std::fmt;
use std::path::Path;

use cupel::CupelError;
use cupel_chat::FitError;
use serde_json::json;

use crate::output::style;
use crate::text::{char_width, excerpt, printable};

/// The exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Success.
    Success = 0,
    /// The mandatory messages or pinned items are over the budget, or a conformance case fails.
    Over = 1,
    /// The input or the command line is invalid.
    Input = 2,
    /// An internal error.
    Internal = 3,
    /// Ctrl-C stopped a search; the answer covers the budgets up to that point. 128 plus SIGINT.
    Stopped = 130,
}

/// Why the command stops.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A problem to report.
    Told(Box<Problem>),
    /// The reader closed the pipe, which is not an error.
    ClosedPipe,
}

/// A problem as it is reported.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) exit: Exit,
    pub(crate) message: String,
    pub(crate) place: Option<Place>,
    pub(crate) help: Option<String>,
}

/// A place in a text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    /// The file name as given on the command line.
    pub(crate) file: String,
    /// The line, from 1; 0 for the whole file.
    pub(crate) line: usize,
    /// The column in characters, from 1.
    pub(crate) column: usize,
    /// The path of keys, such as `policy.scorer.entries[1]`; may be empty.
    pub(crate) path: String,
    /// The text of the line.
    pub(crate) source: Option<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self::Told(Box::new(Problem {
            exit,
            message: message.into(),
            place: None,
            help: None,
        }))
    }

    /// Returns a failure of the input or the command line.
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::new(Exit::Input, message)
    }

    /// Returns an internal error.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(Exit::Internal, message).help("internal error; please report it")
    }

    /// Adds the place.
    pub(crate) fn at(mut self, place: Place) -> Self {
        if let Self::Told(problem) = &mut self {
            problem.place = Some(place);
        }
        self
    }

    /// Names the file.
    pub(crate) fn in_file(self, file: &str) -> Self {
        self.at(Place {
            file: file.to_owned(),
            ..Place::default()
        })
    }

    /// Returns the problem; a closed pipe is passed on.
    pub(crate) fn into_problem(self) -> Result<Problem, Self> {
        match self {
            Self::Told(problem) => Ok(*problem),
            Self::ClosedPipe => Err(self),
        }
    }

    /// Adds the place, unless there is one.
    pub(crate) fn or_at(self, place: impl FnOnce() -> Place) -> Self {
        match &self {
            Self::Told(problem) if problem.place.is_none() => self.at(place()),
            _ => self,
        }
    }

    /// Adds the fix.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        if let Self::Told(problem) = &mut self {
            problem.help = Some(help.into());
        }
        self
    }

    /// Adds help unless there is some.
    pub(crate) fn or_help(self, help: &str) -> Self {
        match &self {
            Self::Told(problem) if problem.help.is_none() => self.help(help),
            _ => self,
        }
    }

    /// Returns the failure to read or write a file.
    pub(crate) fn io(doing: &str, path: &Path, error: &std::io::Error) -> Self {
        use std::io::ErrorKind as Kind;
        let failure = Self::input(format!(
            "cannot {doing} {}: {}",
            path.display(),
            plain(error)
        ));
        match error.kind() {
            Kind::NotFound if doing == "read" => {
                failure.help("check the path; `-` reads standard input")
            }
            Kind::NotFound => failure.help("create the directory first"),
            Kind::IsADirectory => failure.help("name a file, not a directory"),
            Kind::PermissionDenied => failure.help("check the permissions of the file"),
            _ => failure,
        }
    }

    /// Returns the failure to fit a chat.
    pub(crate) fn fit(error: &FitError) -> Self {
        match error {
            FitError::Policy(error) => Self::run(error),
            FitError::TooLarge { .. } => Self::new(Exit::Over, error.to_string()),
            _ => Self::input(error.to_string()),
        }
    }

    /// Returns the failure of a run: over the budget, invalid input, or an internal error.
    pub(crate) fn run(error: &CupelError) -> Self {
        let (exit, help) = match error {
            CupelError::PinnedExceedsBudget {
                pinned_tokens,
                available,
            } => (
                Exit::Over,
                Some(format!(
                    "raise the budget by {} tokens or unpin items",
                    pinned_tokens.saturating_sub(*available)
                )),
            ),
            CupelError::Overflow {
                merged_tokens,
                target_tokens,
            } => (
                Exit::Over,
                Some(format!(
                    "raise the target by {} tokens, or set \"overflow_strategy\" to \"truncate\" or \"proceed\"",
                    merged_tokens.saturating_sub(*target_tokens)
                )),
            ),
            CupelError::TableTooLarge { .. } | CupelError::TableOverLimit { .. } => (
                Exit::Input,
                Some("raise \"bucket_size\" of the knapsack, or use the greedy slicer".to_owned()),
            ),
            // A run has this error only for a required count that cannot be met.
            CupelError::SlicerConfig(_) => (
                Exit::Input,
                Some(
                    "lower \"require_count\" of the kind, or set \"scarcity\" to \"degrade\""
                        .to_owned(),
                ),
            ),
            CupelError::Contract { .. } => (Exit::Internal, None),
            _ => (Exit::Input, None),
        };
        let failure = Self::new(exit, error.to_string());
        match help {
            Some(help) => failure.help(help),
            None => failure,
        }
    }
}

/// Returns the text of a system error without its number.
fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}

impl Problem {
    /// Returns the problem of a command line from clap's text: the fault, then the help.
    pub(crate) fn usage(told: &str) -> Self {
        let (message, help) = told.trim().split_once("\n\n").unwrap_or((told, ""));
        let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        Self {
            exit: Exit::Input,
            message: one_line(message.trim_start_matches("error: ")),
            place: None,
            help: (!help.is_empty()).then(|| one_line(help)),
        }
    }

    /// Returns the problem as a JSON object.
    pub(crate) fn json(&self) -> serde_json::Value {
        let mut error = json!({ "message": self.message, "exit_code": self.exit as u8 });
        if let Some(place) = &self.place {
            error["file"] = place.file.clone().into();
            if place.line > 0 {
                error["line"] = place.line.into();
                error["column"] = place.column.into();
            }
            if !place.path.is_empty() {
                error["path"] = place.path.clone().into();
            }
        }
        if let Some(help) = &self.help {
            error["help"] = help.clone().into();
        }
        json!({ "error": error })
    }
}

/// Formats the problem for a terminal, with styles.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (error, help) = (style::ERROR, style::HELP);
        writeln!(f, "{error}error{error:#}: {}", self.message)?;
        if let Some(place) = &self.place {
            place.write(f)?;
        }
        if let Some(text) = &self.help {
            writeln!(f, "{help}help{help:#}: {text}")?;
        }
        Ok(())
    }
}

impl Place {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rule, error) = (style::RULE, style::ERROR);
        let number = self.line.to_string();
        let gutter = " ".repeat(number.len());
        write!(f, "{gutter}{rule}-->{rule:#} {}", self.file)?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        if !self.path.is_empty() {
            write!(f, " ({})", excerpt(&self.path, 60))?;
        }
        writeln!(f)?;
        if let Some(source) = &self.source {
            let (shown, before) = window(source, self.column);
            writeln!(f, "{gutter} {rule}|{rule:#}")?;
            writeln!(f, "{rule}{number} |{rule:#} {shown}")?;
            let indent = " ".repeat(before);
            writeln!(f, "{gutter} {rule}|{rule:#} {indent}{error}^{error:#}")?;
        }
        Ok(())
    }
}

/// Returns the part of a line around a column that fits a terminal, and the width before the column.
fn window(source: &str, column: usize) -> (String, usize) {
    const WHOLE: usize = 100;
    const BEFORE: usize = 60;
    let at = column.saturating_sub(1);
    let first = match source.chars().count() {
        0..=WHOLE => 0,
        _ => at.saturating_sub(BEFORE),
    };
    let mut shown = String::from(if first > 0 { "..." } else { "" });
    let mut before = shown.len();
    let mut characters = source.chars();
    for (index, c) in characters.by_ref().enumerate().skip(first).take(WHOLE) {
        shown.push(printable(c));
        if index < at {
            before += char_width(c);
        }
    }
    if characters.next().is_some() {
        shown.push_str("...");
    }
    (shown, before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain_text(problem: &Problem) -> String {
        anstream::adapter::strip_str(&problem.to_string()).to_string()
    }

    #[test]
    fn a_problem_shows_its_line_and_points_at_the_column() {
        let problem = Problem {
            exit: Exit::Input,
            message: "unknown key `buget`".into(),
            place: Some(Place {
                file: "request.json".into(),
                line: 12,
                column: 5,
                path: "policy".into(),
                source: Some("\t漢字\"buget\": 1".into()),
            }),
            help: Some("did you mean `budget`?".into()),
        };
        assert_eq!(
            plain_text(&problem),
            "error: unknown key `buget`\n  \
             --> request.json:12:5 (policy)\n   |\n12 |  漢字\"buget\": 1\n   |       ^\nhelp: did you mean `budget`?\n"
        );
    }

    #[test]
    fn a_long_line_is_cut_around_the_column() {
        let source = "x".repeat(500);
        let (shown, before) = window(&source, 300);
        assert_eq!(shown, format!("...{}...", "x".repeat(100)));
        assert_eq!(before, 3 + 60);
        assert_eq!(window("short", 99), ("short".to_owned(), 5));
    }
}
