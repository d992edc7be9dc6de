//! A program as the implementation under test.

use std::cell::{Cell, RefCell};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use cupel_conformance::model::{Channel, Observation, Task};
use cupel_conformance::{Adapter, Unsupported};

use super::answer;
use crate::failure::Failure;

/// A program that reads one question per line and writes one answer per line.
pub(crate) struct Program {
    name: String,
    command: Vec<String>,
    /// The channels that must not be unsupported.
    channels: Vec<Channel>,
    timeout: Duration,
    running: RefCell<Option<Running>>,
    /// The number of consecutive timeouts.
    timeouts: Cell<u32>,
}

/// After so many consecutive timeouts no more questions are sent.
const MAX_TIMEOUTS: u32 = 3;

impl Program {
    /// Starts a program with its arguments. `timeout` limits the time for one answer.
    pub(crate) fn new(
        command: Vec<String>,
        channels: Vec<Channel>,
        timeout: Duration,
    ) -> Result<Self, Failure> {
        let program = Self {
            name: command.join(" "),
            command,
            channels,
            timeout,
            running: RefCell::new(None),
            timeouts: Cell::new(0),
        };
        let running = program.start().map_err(|error| {
            Failure::input(format!("cannot run {}: {error}", program.name))
                .help("--exec takes the path of a program, then its arguments")
        })?;
        *program.running.borrow_mut() = Some(running);
        Ok(program)
    }

    fn start(&self) -> std::io::Result<Running> {
        let (name, arguments) = self.command.split_first().ok_or_else(|| {
            std::io::Error::new(std::io::ErrorKind::InvalidInput, "the command is empty")
        })?;
        let mut child = Command::new(name)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(std::io::Error::other("the program has no pipes"));
        };
        let (sender, answers) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Running {
            child,
            stdin: Some(stdin),
            answers,
            answered: 0,
        })
    }

    /// Returns the answer to one question, or why there is none.
    fn ask(&self, question: &str) -> Result<String, String> {
        if self.timeouts.get() == MAX_TIMEOUTS {
            return Err(format!(
                "not asked: the program timed out {MAX_TIMEOUTS} times in a row"
            ));
        }
        let mut running = self.running.borrow_mut();
        loop {
            let mut program = match running.take() {
                Some(program) => program,
                None => self.start().map_err(|error| error.to_string())?,
            };
            let received = match program.send(question) {
                Ok(()) => program.answers.recv_timeout(self.timeout),
                Err(_) => Err(RecvTimeoutError::Disconnected),
            };
            match received {
                Ok(Ok(answer)) => {
                    program.answered += 1;
                    self.timeouts.set(0);
                    *running = Some(program);
                    return Ok(answer);
                }
                Ok(Err(error)) => return Err(format!("cannot read the answer: {error}")),
                Err(RecvTimeoutError::Timeout) => {
                    self.timeouts.set(self.timeouts.get() + 1);
                    return Err(format!(
                        "no answer within {} seconds; does the program write a line and flush after every question?",
                        self.timeout.as_secs()
                    ));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let status = program.child.wait().map_err(|error| error.to_string())?;
                    // A program may answer one question per process.
                    if !(status.success() && program.answered > 0) {
                        return Err(format!("the program ended without an answer ({status})"));
                    }
                }
            }
        }
    }
}

impl Adapter for Program {
    fn name(&self) -> &str {
        &self.name
    }

    fn channels(&self, _task: &Task) -> &[Channel] {
        &self.channels
    }

    fn observe(&self, task: &Task) -> Result<Observation, Unsupported> {
        let question = format!("{}\n", task.question());
        match self.ask(&question) {
            Ok(text) => answer::parse(&text, task),
            Err(reason) => Ok(answer::no_answer(reason)),
        }
    }
}

/// A started program.
struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    answers: Receiver<std::io::Result<String>>,
    answered: usize,
}

impl Running {
    fn send(&mut self, question: &str) -> std::io::Result<()> {
        match &mut self.stdin {
            Some(stdin) => stdin
                .write_all(question.as_bytes())
                .and_then(|()| stdin.flush()),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        }
    }
}

/// Closes the input and waits up to half a second before it kills the program.
impl Drop for Running {
    fn drop(&mut self) {
        const POLL: Duration = Duration::from_millis(10);
        drop(self.stdin.take());
        for _ in 0..50 {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            std::thread::sleep(POLL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
