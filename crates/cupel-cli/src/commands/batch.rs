//! `cupel batch`

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Cursor, IsTerminal as _, Read, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use rayon::prelude::*;
use serde::de::IgnoredAny;
use serde_json::json;

use crate::classify::Form;
use crate::failure::{Exit, Failure, Place, Problem};
use crate::input::Source;
use crate::output::Output;
use crate::task::{Need, PolicyArg, Settings, SettingsArgs};
use crate::text::counted;
use crate::trimming::TrimmingArgs;

/// Answer many requests, one per line
///
/// Line k of OUT answers line k of IN as `cupel select --json` does. An invalid line is reported
/// with its number and answered by an object with `error`; the other lines are still answered.
/// Requests run on all cores. Memory does not grow with their number.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Batch {
    /// Request documents, one per line; `-` reads standard input
    #[arg(value_name = "IN")]
    input: PathBuf,

    /// File for the answers; `-` writes standard output
    #[arg(value_name = "OUT", default_value = "-")]
    answers: PathBuf,

    /// Leave out the items and the report
    #[arg(long)]
    brief: bool,

    #[command(flatten)]
    policy: PolicyArg,

    #[command(flatten)]
    settings: SettingsArgs,
}

const EXAMPLES: &str = "\
Examples:
  cupel batch requests.jsonl answers.jsonl
  cupel batch requests.jsonl answers.jsonl --policy candidate.toml
  zcat requests.jsonl.gz | cupel batch - --brief | jq -c '[.selected[].index]'

A line: {\"items\": [...], \"budget\": {\"max_tokens\": 8000}, \"policy\": \"chat\"}
Exit status: 2 if a line is invalid, otherwise 1 if the pinned items of a request
are over its budget.";

/// The size of a chunk that is read before it is answered, whichever limit comes first.
const CHUNK_LINES: usize = 1024;
const CHUNK_BYTES: usize = 8 << 20;

impl Batch {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let trimming = TrimmingArgs::default();
        let settings = Settings::new(&self.settings, &self.policy, &trimming)?;
        let mut input = Input::open(&self.input)?;
        let mut sink = Sink::open(&self.answers, &self.input, output)?;
        let mut tally = Tally::default();
        loop {
            let first = tally.lines + 1;
            let lines = input.chunk()?;
            if lines.is_empty() {
                break;
            }
            tally.lines += lines.len();
            let answers: Vec<Result<String, Failure>> = lines
                .into_par_iter()
                .enumerate()
                .map(|(offset, line)| {
                    answer(&settings, &input.name, first + offset, line, self.brief)
                })
                .collect();
            for answer in answers {
                let text = match answer {
                    Ok(text) => text,
                    Err(failure) => {
                        let problem = failure.into_problem()?;
                        tally.tell(&problem, sink.output());
                        problem.json().to_string()
                    }
                };
                sink.line(&text)?;
            }
            tally.progress(sink.output());
        }
        sink.finish()?;
        tally.finish(output);
        Ok(tally.exit)
    }
}

fn answer(
    settings: &Settings<'_>,
    name: &str,
    number: usize,
    line: Vec<u8>,
    brief: bool,
) -> Result<String, Failure> {
    let answered = Source::line(name, number, line)
        .and_then(|source| settings.task(source, Need::Budget))
        .and_then(|task| {
            if task.form()? == Form::Lines {
                return Err(Failure::input("this is an item, not a request")
                    .help("each line holds one request; `cupel select` reads one item per line"));
            }
            let run = task.run()?.without_times();
            let answer = if brief {
                run.brief_answer()
            } else {
                run.answer()
            };
            serde_json::to_string(&answer).map_err(|error| Failure::internal(error.to_string()))
        });
    let here = || Place {
        file: name.to_owned(),
        line: number,
        column: 1,
        ..Place::default()
    };
    answered.map_err(|failure| failure.or_at(here))
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
        file: BufWriter<File>,
        path: PathBuf,
        output: &'o mut Output,
    },
}

impl<'o> Sink<'o> {
    fn open(path: &Path, input: &Path, output: &'o mut Output) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self::Output(output));
        }
        let same = |path: &Path| path.canonicalize().ok();
        if same(path).is_some_and(|path| same(input) == Some(path)) {
            return Err(Failure::input("OUT is the same file as IN")
                .in_file(&path.display().to_string())
                .help("give OUT another name than IN"));
        }
        let file = File::create(path).map_err(|error| Failure::io("write", path, &error))?;
        Ok(Self::File {
            file: BufWriter::with_capacity(1 << 16, file),
            path: path.to_owned(),
            output,
        })
    }

    fn line(&mut self, text: &str) -> Result<(), Failure> {
        match self {
            Self::Output(output) => output.line(text),
            Self::File { file, path, .. } => {
                writeln!(file, "{text}").map_err(|error| Failure::io("write", path, &error))
            }
        }
    }

    fn finish(&mut self) -> Result<(), Failure> {
        match self {
            Self::Output(output) => output.finish(),
            Self::File { file, path, .. } => file
                .flush()
                .map_err(|error| Failure::io("write", path, &error)),
        }
    }

    fn output(&mut self) -> &mut Output {
        match self {
            Self::Output(output) | Self::File { output, .. } => output,
        }
    }
}

/// Counts of answered and failed requests.
struct Tally {
    lines: usize,
    failed: usize,
    exit: Exit,
    /// Whether standard error is a terminal.
    terminal: bool,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            lines: 0,
            failed: 0,
            exit: Exit::Success,
            terminal: std::io::stderr().is_terminal(),
        }
    }
}

impl Tally {
    fn tell(&mut self, problem: &Problem, output: &mut Output) {
        const TOLD: usize = 20;
        self.failed += 1;
        self.exit = self.exit.max(problem.exit);
        self.erase(output);
        if self.failed <= TOLD {
            output.problem(problem);
        } else if self.failed == TOLD + 1 && !output.is_json() {
            output.note("more lines failed; see their answers");
        }
    }

    /// Rewrites one line of the terminal.
    fn progress(&self, output: &mut Output) {
        if self.terminal {
            self.erase(output);
            let requests = counted(self.lines, "request");
            output.note_part(format_args!("{requests}, {} failed", self.failed));
        }
    }

    fn erase(&self, output: &mut Output) {
        if self.terminal {
            output.note_part("\r\u{1b}[K");
        }
    }

    fn finish(&self, output: &mut Output) {
        self.erase(output);
        let answered = self.lines - self.failed;
        if output.is_json() {
            output.note(json!({ "answered": answered, "failed": self.failed }));
        } else {
            let answered = counted(answered, "request");
            output.note(format_args!("{answered} answered, {} failed", self.failed));
        }
    }
}
