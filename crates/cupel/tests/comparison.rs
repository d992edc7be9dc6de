//! Compares the answer of a surface with the expected one, bit for bit.

use cupel_conformance::Adapter;
use cupel_conformance::model::{Channel, Observation, Task};

use crate::adapter::Surface;

/// Compares a surface with the expected answer. Returns whether the surface declares the task.
///
/// # Errors
///
/// Returns both answers if they differ.
pub(crate) fn compare(
    surface: Surface,
    task: &Task,
    expected: &Observation,
) -> Result<bool, String> {
    let declared = surface.channels(task);
    if declared.is_empty() {
        return Ok(false);
    }
    let observed = surface.observe(task).map_err(|error| error.to_string())?;
    let (observed, expected) = comparable(observed, expected.clone(), declared);
    if observed == expected {
        Ok(true)
    } else {
        let name = surface.name();
        Err(format!(
            "surface {name}\nexpected {expected}\nobserved {observed}"
        ))
    }
}

/// Returns both answers as text, in which every number is exact and NaN equals NaN. Channels
/// that are not declared are removed from the expected answer, the wording of messages from both.
fn comparable(
    mut observed: Observation,
    mut expected: Observation,
    declared: &[Channel],
) -> (String, String) {
    let has = |channel| declared.contains(&channel);
    match (&mut observed, &mut expected) {
        (_, Observation::Selected(expected)) => {
            expected.shortfalls.take_if(|_| !has(Channel::Shortfalls));
            expected.cap_rejected.take_if(|_| !has(Channel::Shortfalls));
        }
        (Observation::Ran(observed), Observation::Ran(expected)) => {
            expected.overflow.take_if(|_| !has(Channel::Overflow));
            expected.report.take_if(|_| !has(Channel::Report));
            for report in [&mut observed.report, &mut expected.report] {
                let events = report.iter_mut().flat_map(|report| &mut report.events);
                for event in events.flatten() {
                    let message = event.message.take();
                    event.message = message.map(|text| text.split(':').take(1).collect());
                }
            }
            if let Some(report) = &mut expected.report {
                report.events.take_if(|_| !has(Channel::Events));
            }
        }
        (Observation::Failed(observed), Observation::Failed(expected)) => {
            observed.message.clear();
            expected.message.clear();
        }
        _ => {}
    }
    (format!("{observed:#?}"), format!("{expected:#?}"))
}
