//! The conformance suite over documents: this command in its own process, or any program.
//!
//! A case goes out as one JSON object and its answer comes back as one; `crates/cupel-conformance/PROGRAM.md`
//! describes both. The library is asked in the same words as a stranger's program.

mod answer;
mod library;
mod program;
mod question;

use cupel_conformance::model::{Channel, Observation, Task};
use cupel_conformance::{Adapter, Unsupported};

pub(crate) use self::library::answer_to;
pub(crate) use self::program::Program;

/// The library, asked through documents.
pub(crate) struct Library;

impl Adapter for Library {
    fn name(&self) -> &'static str {
        "cupel"
    }

    fn channels(&self, _task: &Task) -> &[Channel] {
        &Channel::ALL
    }

    fn observe(&self, task: &Task) -> Result<Observation, Unsupported> {
        let question = question::write(task).to_string();
        answer::read(&answer_to(&question), task)
    }
}
