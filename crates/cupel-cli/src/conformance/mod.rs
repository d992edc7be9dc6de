//! The conformance suite over documents: this command in its own process, or any program.
//!
//! A question is one JSON object, and so is its answer; `crates/cupel-conformance/PROGRAM.md` describes
//! both. The library gets the same questions as any other program.

mod answer;
mod library;
mod program;

use cupel_conformance::model::{Channel, Observation, Task};
use cupel_conformance::{Adapter, Unsupported};

pub(crate) use self::library::answer_to;
pub(crate) use self::program::Program;

/// The library, through questions and answers as documents.
pub(crate) struct Library;

impl Adapter for Library {
    fn name(&self) -> &'static str {
        "cupel"
    }

    fn channels(&self, _task: &Task) -> &[Channel] {
        &Channel::ALL
    }

    fn observe(&self, task: &Task) -> Result<Observation, Unsupported> {
        answer::parse(&answer_to(&task.question().to_string()), task)
    }
}
