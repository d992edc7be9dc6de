//! `cupel batch`

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use cupel_app::{Options, Place, Prepared, Scope, Source};
use rayon::prelude::*;
use serde::de::IgnoredAny;
use serde_json::json;

use super::fit::json_line;
use crate::chats::{Errors, note_config};
use crate::failure::{Exit, Failure, Problem};
use crate::output::{Output, style};
use crate::progress::{Meter, now};
use crate::replace::NewFile;
use crate::task::{PolicyArg, SettingsArgs};
use crate::text::{counted, grouped, grouped_count};
use crate::trimming::TrimmingArgs;

/// Answer many chats or requests, one per line
///
/// Line k of OUT answers line k of IN: a chat as `cupel fit --json` does, a request document as `cupel
/// select --json` does. An invalid line is reported with its number and answered by an object with
/// `error`; the other lines are still answered. Lines run on all cores. Memory does not grow with
/// their number.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Batch {
    /// Chats or request documents, one per line; `-` reads standard input
    #[arg(value_name = "IN")]
    input: PathBuf,

    /// File for the answers. Default: standard output
    #[arg(value_name = "OUT", conflicts_with = "output")]
    answers: Option<PathBuf>,

    /// Leave out the chats, the items and the reports
    #[arg(long)]
    brief: bool,

    #[command(flatten)]
    policy: PolicyArg,

    #[command(flatten)]
    settings: SettingsArgs,

    #[command(flatten)]
    trimming: TrimmingArgs,
}

const EXAMPLES: &str = "\
Examples:
  cupel batch chats.jsonl fitted.jsonl --budget 8k
  zcat requests.jsonl.gz | cupel batch - --brief | jq -c '[.selected[].index]'

A line: {\"model\": \"gpt-4o\", \"messages\": [...]}
    or: {\"items\": [...], \"budget\": {\"max_tokens\": 8000}, \"policy\": \"chat\"}
Exit status: 2 if a line is invalid, otherwise 1 if what must stay is over a
budget.";

/// The size of a chunk that is read before it is answered, whichever limit comes first. The progress is
/// updated after each.
const CHUNK_LINES: usize = 1024;
const CHUNK_BYTES: usize = 1 << 20;

impl Batch {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let options = self.settings.options(&self.policy, &self.trimming)?;
        // A wrong argument is one error of the command line, not one per request.
        options.check()?;
        let mut input = Input::open(&self.input)?;
        let answers = output.take_file().or(self.answers);
        let mut meter = Meter::new(output);
        let mut sink = Sink::open(answers.as_deref(), &self.input, output)?;
        let mut tally = Tally::default();
        loop {
            let first = tally.lines + 1;
            let lines = input.chunk()?;
            if lines.is_empty() {
                break;
            }
            let answers: Vec<Result<Answered, Failure>> = lines
                .into_par_iter()
                .enumerate()
                .map(|(offset, line)| {
                    answer(&options, &input.name, first + offset, line, self.brief)
                })
                .collect();
            meter.clear(sink.output());
            for answer in answers {
                tally.lines += 1;
                let text = match answer {
                    Ok(answered) => {
                        tally.add(&answered);
                        answered.text
                    }
                    Err(failure) => {
                        let problem = failure.into_problem()?;
                        tally.tell(&problem, sink.output());
                        problem.json().to_string()
                    }
                };
                sink.line(&text)?;
            }
            meter.update(sink.output(), || {
                let lines = counted(tally.lines, "request");
                format!("{lines}, {} failed", grouped_count(tally.failed))
            });
        }
        sink.finish()?;
        meter.clear(output);
        tally.finish(output);
        note_config(&options, output);
        Ok(tally.exit)
    }
}

/// An answered line.
struct Answered {
    text: String,
    /// The number of messages or items.
    candidates: usize,
    dropped: usize,
    shortened: usize,
    tokens_before: i64,
    tokens_after: i64,
    time: Duration,
}

fn answer(
    options: &Options,
    name: &str,
    number: usize,
    line: Vec<u8>,
    brief: bool,
) -> Result<Answered, Failure> {
    let started = now();
    let answered = Source::line(name, number, line)
        .and_then(|source| Prepared::new(source, options, Scope::OneBudget))
        .map_err(Failure::from)
        .and_then(|prepared| answer_request(&prepared, brief));
    let here = || Place {
        file: name.to_owned(),
        line: number,
        column: 1,
        ..Place::default()
    };
    let mut answered = answered.map_err(|failure| failure.or_at(here))?;
    answered.time = now() - started;
    Ok(answered)
}

fn answer_request(prepared: &Prepared, brief: bool) -> Result<Answered, Failure> {
    prepared.check_request()?;
    let mut fit = prepared.fit()?;
    fit.run = fit.run.without_times();
    let answer = fit.answer();
    let (dropped, shortened) = (answer.dropped.len(), answer.shortened.len());
    let (tokens_before, tokens_after) = (answer.tokens_before, answer.tokens_after);
    let decisions = &fit.run.decisions;
    let (text, shortened) = match &fit.fitted {
        Some(_) if brief => (json_line(&answer.without_texts())?, shortened),
        Some(_) => (json_line(&answer.with_chat(&fit.text()?)?)?, shortened),
        None => {
            let kept = answer.kept.iter();
            let shortened = kept.filter(|it| decisions.view(**it).is_some()).count();
            let answer = if brief {
                fit.run.brief_answer()
            } else {
                fit.run.answer()
            };
            (json_line(&answer)?, shortened)
        }
    };
    Ok(Answered {
        text,
        candidates: prepared.len(),
        dropped,
        shortened,
        tokens_before,
        tokens_after,
        time: Duration::ZERO,
    })
}

/// The lines of the requests.
struct Input {
    name: String,
    path: PathBuf,
    lines: Box<dyn BufRead>,
}

impl Input {
    /// Opens the input. Refuses a document that spans lines before anything is answered.
    fn open(path: &Path) -> Result<Self, Failure> {
        let mut lines: Box<dyn BufRead> = if path == Path::new("-") {
            Box::new(std::io::stdin().lock())
        } else {
            let file = File::open(path).map_err(|error| Failure::io("read", path, &error))?;
            Box::new(BufReader::with_capacity(1 << 16, file))
        };
        let name = crate::input::name(path);
        let head = first_value(&mut lines).map_err(|error| Failure::io("read", path, &error))?;
        if head.is_over_lines {
            return Err(Failure::input("this is a JSON document that spans several lines")
                .in_file(&name)
                .help("a batch has one request per line; `jq -c .` puts a document on one line, `jq -c '.[]'` each element of a list; `cupel select` answers a single request"));
        }
        Ok(Self {
            name,
            path: path.to_owned(),
            lines: Box::new(Cursor::new(head.bytes).chain(lines)),
        })
    }

    /// Returns the next lines without their line ends; an empty list at the end.
    fn chunk(&mut self) -> Result<Vec<Vec<u8>>, Failure> {
        let mut chunk = Vec::new();
        let mut bytes = 0;
        while chunk.len() < CHUNK_LINES && bytes < CHUNK_BYTES {
            let mut line = Vec::new();
            let read = self
                .lines
                .read_until(b'\n', &mut line)
                .map_err(|error| Failure::io("read", &self.path, &error))?;
            if read == 0 {
                break;
            }
            bytes += read;
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            chunk.push(line);
        }
        Ok(chunk)
    }
}

/// The bytes read to find the end of the first JSON value.
struct Head {
    bytes: Vec<u8>,
    /// Whether the first value spans several lines.
    is_over_lines: bool,
}

/// Reads up to the end of the first JSON value, or to the first byte that cannot be in one.
fn first_value(input: &mut dyn BufRead) -> io::Result<Head> {
    const MARK: &[u8] = "\u{feff}".as_bytes();
    /// Keeps the bytes that are read.
    struct Kept<'i>(&'i mut dyn BufRead, Vec<u8>);
    impl Read for Kept<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let read = self.0.read(buffer)?;
            self.1.extend_from_slice(&buffer[..read]);
            Ok(read)
        }
    }
    if input.fill_buf()?.starts_with(MARK) {
        input.consume(MARK.len());
    }
    let mut kept = Kept(input, Vec::new());
    let values = serde_json::Deserializer::from_reader(&mut kept).into_iter::<IgnoredAny>();
    let is_value = match values.take(1).next() {
        Some(Err(error)) if error.is_io() => return Err(error.into()),
        value => matches!(value, Some(Ok(_))),
    };
    let Kept(_, bytes) = kept;
    Ok(Head {
        is_over_lines: is_value && bytes.trim_ascii().contains(&b'\n'),
        bytes,
    })
}

/// The destination of the answers.
enum Sink<'o> {
    Output(&'o mut Output),
    File {
        file: NewFile,
        output: &'o mut Output,
    },
}

impl<'o> Sink<'o> {
    fn open(path: Option<&Path>, input: &Path, output: &'o mut Output) -> Result<Self, Failure> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            return Ok(Self::Output(output));
        };
        let same = |path: &Path| path.canonicalize().ok();
        if same(path).is_some_and(|path| same(input) == Some(path)) {
            return Err(Failure::input("OUT is the same file as IN")
                .in_file(&path.display().to_string())
                .help("give OUT another name than IN"));
        }
        let file = NewFile::create(path)?;
        Ok(Self::File { file, output })
    }

    fn line(&mut self, text: &str) -> Result<(), Failure> {
        match self {
            Self::Output(output) => output.data_line(text),
            Self::File { file, .. } => {
                writeln!(file, "{text}").map_err(|error| file.failure(&error))
            }
        }
    }

    fn finish(self) -> Result<(), Failure> {
        match self {
            Self::Output(output) => output.finish(),
            Self::File { file, .. } => file.commit(),
        }
    }

    fn output(&mut self) -> &mut Output {
        match self {
            Self::Output(output) | Self::File { output, .. } => output,
        }
    }
}

/// Sums over the lines.
struct Tally {
    lines: usize,
    failed: usize,
    candidates: usize,
    dropped: usize,
    shortened: usize,
    tokens_before: i64,
    tokens_after: i64,
    /// The slowest line and its time.
    slowest: Option<(usize, Duration)>,
    errors: Errors,
    exit: Exit,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            lines: 0,
            failed: 0,
            candidates: 0,
            dropped: 0,
            shortened: 0,
            tokens_before: 0,
            tokens_after: 0,
            slowest: None,
            errors: Errors::default(),
            exit: Exit::Success,
        }
    }
}

impl Tally {
    /// Adds the answer of the current line.
    fn add(&mut self, answered: &Answered) {
        self.candidates += answered.candidates;
        self.dropped += answered.dropped;
        self.shortened += answered.shortened;
        self.tokens_before = self.tokens_before.saturating_add(answered.tokens_before);
        self.tokens_after = self.tokens_after.saturating_add(answered.tokens_after);
        if self.slowest.is_none_or(|(_, time)| time < answered.time) {
            self.slowest = Some((self.lines, answered.time));
        }
    }

    fn tell(&mut self, problem: &Problem, output: &mut Output) {
        self.failed += 1;
        self.exit = self.exit.max(problem.exit);
        self.errors.add(self.lines, problem, output);
    }

    fn finish(&self, output: &mut Output) {
        self.errors.finish(output);
        let answered = self.lines - self.failed;
        if output.is_json() {
            output.note_json(&json!({
                "answered": answered,
                "failed": self.failed,
                "dropped": self.dropped,
                "shortened": self.shortened,
                "tokens_before": self.tokens_before,
                "tokens_after": self.tokens_after,
                "slowest": self.slowest.map(|(line, time)| json!({ "line": line, "ms": milliseconds(time) })),
            }));
            return;
        }
        let quiet = style::QUIET;
        output.note(format_args!(
            "{} answered, {} failed",
            counted(answered, "request"),
            grouped_count(self.failed)
        ));
        let Some((line, time)) = self.slowest else {
            return;
        };
        let (before, after) = (grouped(self.tokens_before), grouped(self.tokens_after));
        let (dropped, all) = (grouped_count(self.dropped), grouped_count(self.candidates));
        let rows = [
            ("tokens", format!("{before} before, {after} after")),
            ("dropped", format!("{dropped} of {all}")),
            ("shortened", grouped_count(self.shortened)),
            (
                "slowest",
                format!(
                    "line {}, {} ms",
                    grouped_count(line),
                    grouped(milliseconds(time))
                ),
            ),
        ];
        for (label, text) in rows {
            output.note(format_args!("{quiet}  {label:<9}  {text}{quiet:#}"));
        }
    }
}

/// Returns a time in milliseconds, rounded up.
fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_micros().div_ceil(1000)).unwrap_or(i64::MAX)
}
