//! Errors: the fault, its place and its fix.

use std::fmt::{self, Write as _};
use std::path::Path;

use anstream::adapter::strip_str;
use cupel::CupelError;
use cupel_app::{Detail, Error, ErrorAnswer, ErrorClass, ErrorObject, Place};

use crate::dialect::CommandLine;
use crate::output::style;
use crate::text::{char_width, excerpt, grouped, printable, width, wrap};

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
    Problem(Box<Problem>),
    /// The reader closed the pipe, which is not an error.
    ClosedPipe,
}

/// A problem as it is reported: the fault, its place and its fix.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) exit: Exit,
    pub(crate) message: String,
    /// What it is, for programs.
    pub(crate) code: Option<&'static str>,
    pub(crate) place: Option<Place>,
    /// What the message sums up, one line each.
    pub(crate) details: Vec<Detail>,
    pub(crate) help: Option<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self::Problem(Box::new(Problem {
            exit,
            message: message.into(),
            code: None,
            place: None,
            details: Vec::new(),
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
        if let Self::Problem(problem) = &mut self {
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
            Self::Problem(problem) => Ok(*problem),
            Self::ClosedPipe => Err(self),
        }
    }

    /// Adds the place, unless there is one.
    pub(crate) fn or_at(self, place: impl FnOnce() -> Place) -> Self {
        match &self {
            Self::Problem(problem) if problem.place.is_none() => self.at(place()),
            _ => self,
        }
    }

    /// Adds the fix.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        if let Self::Problem(problem) = &mut self {
            problem.help = Some(help.into());
        }
        self
    }

    /// Adds help unless there is some.
    pub(crate) fn or_help(self, help: &str) -> Self {
        match &self {
            Self::Problem(problem) if problem.help.is_none() => self.help(help),
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
}

/// An error of a question, in the words of the command line.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = match error.class() {
            ErrorClass::OverBudget => Exit::Over,
            ErrorClass::InvalidInput => Exit::Input,
            ErrorClass::Internal => Exit::Internal,
        };
        Self::Problem(Box::new(Problem {
            exit,
            message: error.message(&CommandLine),
            code: error.code(),
            help: error.help(&CommandLine),
            details: error.details(),
            place: error.place,
        }))
    }
}

impl From<CupelError> for Failure {
    fn from(error: CupelError) -> Self {
        Error::from(error).into()
    }
}

/// Returns the text of a system error without its number.
pub(crate) fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}

/// Writes the message.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl Problem {
    /// Returns the problem of a command line from clap's text: the fault, then the help.
    pub(crate) fn usage(text: &str) -> Self {
        let (message, help) = text.trim().split_once("\n\n").unwrap_or((text, ""));
        let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        Self {
            exit: Exit::Input,
            message: one_line(message.trim_start_matches("error: ")),
            code: None,
            place: None,
            details: Vec::new(),
            help: (!help.is_empty()).then(|| one_line(help)),
        }
    }

    /// Returns the problem as a JSON object, as `--json` writes it.
    pub(crate) fn json(&self) -> serde_json::Value {
        // Cannot fail: all keys are strings.
        serde_json::to_value(self.answer()).unwrap_or_default()
    }

    /// Returns the problem in the place of an answer.
    pub(crate) fn answer(&self) -> ErrorAnswer {
        let object = ErrorObject::new(&self.message, self.exit as u8).with_details(&self.details);
        let object = match &self.place {
            Some(place) => object.at(place),
            None => object,
        };
        ErrorAnswer {
            error: ErrorObject {
                help: self.help.clone(),
                code: self.code,
                ..object
            },
            custom_id: None,
        }
    }
}

impl Problem {
    /// Returns the problem with styles, in lines of at most `columns`; the message and the help are one line
    /// each without a limit.
    pub(crate) fn text(&self, columns: Option<usize>) -> String {
        let (error, help) = (style::ERROR, style::HELP);
        let columns = columns.unwrap_or(usize::MAX);
        let mut lines = wrap(
            &format!("{error}error{error:#}: {}", self.message),
            columns,
            "error: ".len(),
        );
        if let Some(place) = &self.place {
            lines.extend(lines_of(place, columns.min(MAX_COLUMNS)));
        }
        let details = self.details.iter();
        lines.extend(details.map(|it| format!("{:>8}  {}", grouped(it.tokens), it.what)));
        if let Some(text) = &self.help {
            lines.extend(wrap(
                &format!("{help}help{help:#}: {text}"),
                columns,
                "help: ".len(),
            ));
        }
        lines.push(String::new());
        lines.join("\n")
    }
}

/// The most columns of a line of the input in an error.
const MAX_COLUMNS: usize = 100;

/// Returns a place, and its line with a mark below the column.
fn lines_of(place: &Place, columns: usize) -> Vec<String> {
    let (rule, error) = (style::RULE, style::ERROR);
    let number = place.line.to_string();
    let gutter = " ".repeat(number.len());
    let mut heading = format!("{gutter}{rule}-->{rule:#} {}", place.file);
    if place.line > 0 {
        let _ = write!(heading, ":{}:{}", place.line, place.column);
    }
    let mut lines = vec![heading];
    if !place.path.is_empty() {
        let path = format!(
            " ({})",
            excerpt(
                &place.path,
                columns.saturating_sub(number.len() + 6).min(60)
            )
        );
        let heading = width(&strip_str(&lines[0]).to_string());
        if heading + width(&path) <= columns {
            lines[0].push_str(&path);
        } else {
            lines.push(format!("{gutter}   {path}"));
        }
    }
    if let Some(source) = &place.source {
        let (shown, before) = window(source, place.column, columns - number.len() - 3);
        let indent = " ".repeat(before);
        lines.push(format!("{gutter} {rule}|{rule:#}"));
        lines.push(format!("{rule}{number} |{rule:#} {shown}"));
        lines.push(format!(
            "{gutter} {rule}|{rule:#} {indent}{error}^{error:#}"
        ));
    }
    lines
}

/// Returns the part of a line around a column that has at most `columns`, and the width before the column.
fn window(source: &str, column: usize, columns: usize) -> (String, usize) {
    let at = column.saturating_sub(1);
    let widths: Vec<usize> = source.chars().map(char_width).collect();
    let room = columns.saturating_sub("......".len());
    let is_whole = widths.iter().sum::<usize>() <= columns;
    let (mut first, mut before) = (at.min(widths.len()), 0);
    while first > 0 && (is_whole || before + widths[first - 1] <= room * 3 / 5) {
        first -= 1;
        before += widths[first];
    }
    let mut shown = String::from(if first > 0 { "..." } else { "" });
    before += shown.len();
    let mut taken = 0;
    for (c, width) in source.chars().zip(&widths).skip(first) {
        taken += width;
        if taken > room && !is_whole {
            shown.push_str("...");
            break;
        }
        shown.push(printable(c));
    }
    (shown, before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain_text(problem: &Problem) -> String {
        strip_str(&problem.text(None)).to_string()
    }

    #[test]
    fn a_problem_shows_its_line_and_points_at_the_column() {
        let problem = Problem {
            exit: Exit::Input,
            message: "unknown key `buget`".into(),
            code: None,
            place: Some(Place {
                file: "request.json".into(),
                line: 12,
                column: 5,
                path: "policy".into(),
                source: Some("\t漢字\"buget\": 1".into()),
            }),
            details: Vec::new(),
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
        let (shown, before) = window(&source, 300, 106);
        assert_eq!(shown, format!("...{}...", "x".repeat(100)));
        assert_eq!(before, 3 + 60);
        assert_eq!(window("short", 99, 80), ("short".to_owned(), 5));
        let (shown, _) = window(&"漢".repeat(500), 300, 56);
        assert!(width(&shown) <= 56, "{shown}");
    }

    #[test]
    fn a_problem_fits_the_columns() {
        let problem = Problem {
            exit: Exit::Input,
            message: "one two three four five six seven eight nine ten eleven".into(),
            code: None,
            place: Some(Place {
                file: "request.json".into(),
                line: 12,
                column: 90,
                path: "policy.scorer.entries[1].scorer.weights".into(),
                source: Some("x".repeat(300)),
            }),
            details: vec![Detail {
                tokens: 123,
                what: "message 0 (system)".into(),
            }],
            help: Some("one two three four five six seven eight nine ten".into()),
        };
        for columns in [40, 60, 80] {
            let text = strip_str(&problem.text(Some(columns))).to_string();
            assert!(text.lines().all(|line| width(line) <= columns), "{text}");
        }
    }
}
