//! CPU time of this thread: medians, both sides in turns, hot or cold.

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};

use crate::table::{Figure, Unit};

/// How often a call is measured.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    /// Rounds, if the time limit allows.
    rounds: usize,
    /// A shorter call is repeated until a sample takes this long.
    sample: f64,
    /// A call that takes longer is run once.
    once_above: f64,
    /// Limit of all rounds together; at least three are done.
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

    /// Returns a plan with more rounds, for ratios close to one.
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

/// The time of one call, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// The median.
    pub(crate) seconds: f64,
    /// The number of samples.
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
    /// Returns the time of the first over the time of the second.
    pub(crate) fn ratio(&self) -> f64 {
        self.first.seconds / self.second.seconds
    }
}

/// Returns the CPU time of `work`, in seconds, and its result.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let before = now();
    let result = black_box(work());
    (now() - before, result)
}

/// Returns the time of one call, and the result of the first.
pub(crate) fn alone<T>(plan: Plan, mut work: impl FnMut() -> T) -> (Timing, T) {
    let (first, result) = timed(&mut work);
    (continued(plan, first, work), result)
}

/// Returns the time of one call, whose first call took `first`.
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

/// Measures two sides in turns, hot. Both run once, `same` compares the results, and then they are
/// timed; a side with a long first run is not run again.
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

/// Measures two sides in turns, cold: `disturb` runs before each single call.
pub(crate) fn cold_duel<A, B>(
    plan: Plan,
    mut first: impl FnMut() -> A,
    mut second: impl FnMut() -> B,
    mut disturb: impl FnMut(),
) -> Duel {
    let mut samples = [Vec::new(), Vec::new()];
    let (estimate, _) = timed(|| (first(), second()));
    for round in 0..plan.precise().rounds(estimate.max(COLD_ROUND)) {
        for side in [round % 2, (round + 1) % 2] {
            disturb();
            samples[side].push(match side {
                0 => timed(&mut first).0,
                _ => timed(&mut second).0,
            });
        }
    }
    let [first, second] = samples;
    let ratios = first.iter().zip(&second);
    let paired = median(ratios.map(|(first, second)| first / second).collect());
    let timing = |samples: Vec<f64>| Timing {
        rounds: samples.len(),
        seconds: median(samples),
    };
    Duel {
        first: timing(first),
        second: timing(second),
        paired,
    }
}

/// The estimated seconds of a cold round, mostly `disturb`.
const COLD_ROUND: f64 = 0.1;

/// Larger than the last-level cache of the machines at hand (32 MiB), in words.
const EVICTION_WORDS: usize = (96 << 20) / size_of::<u64>();

/// Replaces the contents of the caches by a buffer.
pub(crate) struct Eviction(Vec<u64>);

impl Eviction {
    pub(crate) fn new() -> Self {
        Self(vec![0; EVICTION_WORDS])
    }

    pub(crate) fn evict(&mut self) {
        self.0.iter_mut().for_each(|word| *word += 1);
        black_box(&mut self.0);
    }
}

/// One side of a duel.
struct Side<F> {
    work: F,
    repeats: usize,
    /// The time of one call before the rounds.
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
        // A hot figure: the data of a short call is in the caches. A long call warms them itself.
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

/// Returns the CPU time of this thread so far, in seconds.
fn now() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}
