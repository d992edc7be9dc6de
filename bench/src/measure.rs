//! Time: the CPU time of this thread, medians, both sides taking turns.

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};

use crate::table::{Figure, Unit};

/// How much is measured.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    /// Rounds, where they can be afforded.
    rounds: usize,
    /// What is shorter than this is repeated until it is not, and divided.
    sample: f64,
    /// What takes longer than this is run once.
    once_above: f64,
    /// What all rounds together may take; three are done in any case.
    all: f64,
}

impl Plan {
    pub(crate) const QUICK: Self = Self {
        rounds: 5,
        sample: 0.002,
        once_above: 1.0,
        all: 3.0,
    };
    pub(crate) const FULL: Self = Self {
        rounds: 9,
        sample: 0.005,
        once_above: 5.0,
        all: 30.0,
    };

    /// More rounds, for ratios close to one.
    pub(crate) fn precise(self) -> Self {
        Self {
            rounds: self.rounds * 5,
            ..self
        }
    }

    fn rounds(&self, round: f64) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a small positive number"
        )]
        let affordable = (self.all / round.max(self.sample)).min(1e6) as usize;
        self.rounds.min(affordable.max(3))
    }

    fn repeats(&self, first: f64) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a positive number, and the cast saturates"
        )]
        let repeats = (self.sample / first.max(1e-9)).ceil() as usize;
        repeats.clamp(1, 1_000_000)
    }
}

/// One side's time for one call, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// The median.
    pub(crate) seconds: f64,
    /// How many samples it is the median of.
    pub(crate) rounds: usize,
}

impl Timing {
    pub(crate) fn figure(&self) -> Figure {
        let note = if self.rounds == 1 { "one run" } else { "" };
        Figure::noted(self.seconds, Unit::Seconds, note)
    }
}

/// Two sides measured in turns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Duel {
    pub(crate) first: Timing,
    pub(crate) second: Timing,
    /// The median of first over second within a round.
    pub(crate) paired: f64,
}

impl Duel {
    /// How many times as long the first took.
    pub(crate) fn ratio(&self) -> f64 {
        self.first.seconds / self.second.seconds
    }
}

/// The CPU time of `work`, in seconds, and its result.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let before = now();
    let result = black_box(work());
    (now() - before, result)
}

/// The time of one call, and the result of the first.
pub(crate) fn alone<T>(plan: Plan, mut work: impl FnMut() -> T) -> (Timing, T) {
    let (first, result) = timed(&mut work);
    (continued(plan, first, work), result)
}

/// The time of one call of what took `first` when it was called before.
pub(crate) fn continued<T>(plan: Plan, first: f64, work: impl FnMut() -> T) -> Timing {
    if first > plan.once_above {
        return Timing {
            seconds: first,
            rounds: 1,
        };
    }
    let mut side = Side::new(plan, work);
    for _ in 0..plan.rounds(side.per_sample()) {
        side.sample();
    }
    side.timing()
}

/// Two sides in turns. Each runs once, `same` looks at both results, and only then are they timed; a
/// side whose first run is already long is not run again.
pub(crate) fn duel<A, B>(
    plan: Plan,
    mut first: impl FnMut() -> A,
    mut second: impl FnMut() -> B,
    same: impl FnOnce(&A, &B) -> Result<(), String>,
) -> Result<Duel, String> {
    let (first_time, first_result) = timed(&mut first);
    let (second_time, second_result) = timed(&mut second);
    same(&first_result, &second_result)?;
    drop((first_result, second_result));
    if first_time.max(second_time) > plan.once_above {
        let first = continued(plan, first_time, first);
        let second = continued(plan, second_time, second);
        let paired = first.seconds / second.seconds;
        return Ok(Duel {
            first,
            second,
            paired,
        });
    }
    let (mut first, mut second) = (Side::new(plan, first), Side::new(plan, second));
    let rounds = plan.rounds(first.per_sample() + second.per_sample());
    for round in 0..rounds {
        if round % 2 == 0 {
            first.sample();
            second.sample();
        } else {
            second.sample();
            first.sample();
        }
    }
    let ratios = first.samples.iter().zip(&second.samples);
    let paired = median(ratios.map(|(first, second)| first / second).collect());
    Ok(Duel {
        first: first.timing(),
        second: second.timing(),
        paired,
    })
}

/// One side of a duel.
struct Side<F> {
    work: F,
    repeats: usize,
    /// What one call took before the rounds.
    call: f64,
    samples: Vec<f64>,
}

impl<T, F: FnMut() -> T> Side<F> {
    fn new(plan: Plan, mut work: F) -> Self {
        let (call, _) = timed(&mut work);
        Self {
            work,
            repeats: plan.repeats(call),
            call,
            samples: Vec::new(),
        }
    }

    fn per_sample(&self) -> f64 {
        self.call * self.repeats as f64
    }

    fn sample(&mut self) {
        // A short call finds its own data in the caches, as it does when it is made again and
        // again; a long one warms them itself.
        if self.call < 0.02 {
            black_box((self.work)());
        }
        let (time, ()) = timed(|| {
            for _ in 0..self.repeats {
                black_box((self.work)());
            }
        });
        self.samples.push(time / self.repeats as f64);
    }

    fn timing(&self) -> Timing {
        Timing {
            seconds: median(self.samples.clone()),
            rounds: self.samples.len(),
        }
    }
}

pub(crate) fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    let middle = samples.len() / 2;
    match samples.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => samples[middle],
        _ => f64::midpoint(samples[middle - 1], samples[middle]),
    }
}

/// The CPU time of this thread so far, in seconds.
fn now() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}
