//! The progress of a long command: a line on the terminal; for a search over budgets also an estimate and Ctrl-C.

use std::io::IsTerminal as _;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cupel::SweepProgress;

use crate::output::Output;
use crate::text::grouped;

/// A search is announced if it takes longer than this.
const LONG: Duration = Duration::from_secs(1);
/// The time after which the duration is estimated.
const FIRST_ESTIMATE: Duration = Duration::from_millis(500);
/// The time between two updates of the terminal.
const UPDATE: Duration = Duration::from_millis(200);

/// A line on the terminal that is written again and again. A short command writes none.
pub(crate) struct Meter {
    /// Whether anything is written.
    is_shown: bool,
    next: Instant,
    /// Whether the line is on the terminal.
    is_written: bool,
}

impl Meter {
    pub(crate) fn new(output: &Output) -> Self {
        Self {
            is_shown: std::io::stderr().is_terminal() && !output.is_quiet(),
            next: now() + FIRST_ESTIMATE,
            is_written: false,
        }
    }

    /// Writes the line if it is due.
    pub(crate) fn update(&mut self, output: &mut Output, text: impl FnOnce() -> String) {
        if !self.is_shown || now() < self.next {
            return;
        }
        self.next = now() + UPDATE;
        self.is_written = true;
        output.progress(&text());
    }

    /// Clears the line.
    pub(crate) fn clear(&mut self, output: &mut Output) {
        if std::mem::take(&mut self.is_written) {
            output.progress("");
        }
    }
}

/// Observes a search. A short one writes nothing.
pub(crate) struct Progress<'o> {
    output: &'o mut Output,
    meter: Meter,
    started: Instant,
    one_by_one: bool,
    /// Set by Ctrl-C, once a long search is announced.
    interrupted: Option<Arc<AtomicBool>>,
}

impl<'o> Progress<'o> {
    pub(crate) fn new(output: &'o mut Output) -> Self {
        Self {
            meter: Meter::new(output),
            output,
            started: now(),
            one_by_one: false,
            interrupted: None,
        }
    }

    /// Updates the progress line. Breaks if Ctrl-C stops the search.
    pub(crate) fn observe(&mut self, progress: SweepProgress) -> ControlFlow<()> {
        if progress.one_by_one && !self.one_by_one {
            self.one_by_one = true;
            self.started = now();
        }
        let elapsed = now() - self.started;
        let left = time_left(elapsed, progress.fraction());
        let Some(interrupted) = &self.interrupted else {
            let is_long = elapsed >= FIRST_ESTIMATE && elapsed + left > LONG;
            if is_long {
                self.announce(elapsed + left);
            }
            return ControlFlow::Continue(());
        };
        if interrupted.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        self.meter.update(self.output, || {
            format!(
                "budget {} of {} ({:.0} %), {} left",
                grouped(progress.reached),
                grouped(progress.last),
                progress.fraction() * 100.0,
                seconds(left),
            )
        });
        ControlFlow::Continue(())
    }

    /// Announces a long search. From here on Ctrl-C ends the search with what is known; a second one
    /// ends the command.
    fn announce(&mut self, total: Duration) {
        let interrupted = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&interrupted);
        let handled = ctrlc::set_handler(move || {
            if flag.swap(true, Ordering::Relaxed) {
                std::process::exit(crate::failure::Exit::Stopped as i32);
            }
        });
        self.output.note(format_args!(
            "trying budgets takes {}{}",
            seconds(total),
            match handled {
                Ok(()) => "; Ctrl-C stops and shows the budgets reached so far",
                Err(_) => "",
            }
        ));
        self.interrupted = Some(interrupted);
    }

    /// Clears the terminal's line.
    pub(crate) fn finish(mut self) {
        self.meter.clear(self.output);
    }
}

/// Returns the time that is left if the search goes on at its average speed.
fn time_left(elapsed: Duration, fraction: f64) -> Duration {
    let total = elapsed.as_secs_f64() / fraction;
    Duration::try_from_secs_f64(total)
        .unwrap_or(Duration::MAX)
        .saturating_sub(elapsed)
}

/// Formats a duration in whole seconds or minutes.
fn seconds(duration: Duration) -> String {
    match duration.as_secs().saturating_add(1) {
        seconds @ ..120 => format!("about {seconds} s"),
        seconds => format!("about {} min", grouped((seconds / 60).cast_signed())),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the library stays free of clocks; a command may say how long it takes"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_estimated_from_the_average_speed() {
        let second = Duration::from_secs(1);
        assert_eq!(time_left(second, 0.25), 3 * second);
        assert_eq!(time_left(second, 1.0), Duration::ZERO);
        assert_eq!(time_left(second, 0.0), Duration::MAX.saturating_sub(second));
    }

    #[test]
    fn long_durations_are_in_minutes() {
        assert_eq!(seconds(Duration::from_millis(2_300)), "about 3 s");
        assert_eq!(seconds(Duration::from_secs(600)), "about 10 min");
        assert!(seconds(Duration::MAX).starts_with("about 307,445,734,561,825,8"));
    }
}
