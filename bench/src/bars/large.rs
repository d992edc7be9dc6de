//! The knapsack beyond the limit of the published one: bars 27 and 28. Each class has a process of its
//! own, to measure its memory and to limit its time.

use std::time::Duration;

use cupel_peer::Slicer as _;

use super::Session;
use super::slicer::refusal;
use crate::attempt::{Answer, knapsack};
use crate::knapsack::{Class, specified};
use crate::peer;
use crate::recipe::digest;
use crate::table::{Figure, Row, Unit, at_least, at_most};

const COUNT: usize = 10_000;
const TARGET: i64 = 1_000_000;
/// The limit per class; the survey stops at a class that exceeds it.
const MOST_SECONDS: f64 = 3.0;

const TYPICAL: [Class; 5] = [
    Class::Recency,
    Class::Composite,
    Class::Priority,
    Class::Decay,
    Class::Weak,
];

pub(crate) fn beyond_the_guard(session: Session) -> Vec<Row> {
    let limit = Duration::from_secs(if session.is_quick { 20 } else { 60 });
    let survey = Survey::take(session, limit);
    let refused = refusal(&Class::Recency.instance(COUNT), TARGET);
    let checked = if survey.is_checked() {
        "2 classes"
    } else {
        "–"
    };
    let row = |what: &str, goal| {
        let row = Row::new(27, format!("knapsack, n=10k, C=1M, {what}"));
        row.goal(goal).peer(refused.clone()).checked(checked)
    };
    let typical = row("slowest of 5 typical classes", at_most(0.005, 0.0015));
    let all = row("slowest of 14 classes", at_most(MOST_SECONDS, 1.0));
    let memory = row("peak memory", at_most(256e6, 96e6));
    vec![
        survey.most(typical, &TYPICAL, Unit::Seconds, |solved| solved.seconds),
        survey.most(all, &Class::ALL, Unit::Seconds, |solved| solved.seconds),
        survey.most(memory, &Class::ALL, Unit::Bytes, |solved| solved.peak),
        accepted(!survey.solved.is_empty(), limit),
    ]
}

/// Two classes with many ties are compared with the specification's program, in the full run only: it
/// fills 10^10 cells.
const CHECKED: [Class; 2] = [Class::Kind, Class::Inverse];

/// The classes, typical ones first, up to the first that fails.
struct Survey {
    solved: Vec<(Class, Solved)>,
    /// The number of classes compared with the specification's program.
    checked: usize,
    /// The reason why later classes were not tried.
    stopped: Option<String>,
}

impl Survey {
    fn take(session: Session, limit: Duration) -> Self {
        let mut survey = Self {
            solved: Vec::new(),
            checked: 0,
            stopped: None,
        };
        let others = Class::ALL.into_iter();
        let others = others.filter(|class| !TYPICAL.contains(class));
        for class in TYPICAL.into_iter().chain(others) {
            if let Err(reason) = survey.add(class, session, limit) {
                survey.stopped = Some(format!("stopped at {}: {reason}", class.name()));
                break;
            }
        }
        survey
    }

    fn add(&mut self, class: Class, session: Session, limit: Duration) -> Result<(), String> {
        let solved = Solved::of(&knapsack(class, COUNT, TARGET, limit)?)?;
        let (seconds, digest_of_choice) = (solved.seconds, solved.digest);
        self.solved.push((class, solved));
        if seconds > MOST_SECONDS {
            return Err(format!("it took {}", Unit::Seconds.show(seconds)));
        }
        let is_checked = CHECKED.contains(&class) && !session.is_quick;
        self.checked += usize::from(is_checked);
        if is_checked && digest(&specified(&class.instance(COUNT), TARGET, 1)) != digest_of_choice {
            return Err("not the specified set".to_owned());
        }
        Ok(())
    }

    fn is_checked(&self) -> bool {
        self.checked == CHECKED.len()
    }

    /// Returns the row with the largest figure among some classes; missed if one was not tried.
    fn most(&self, row: Row, among: &[Class], unit: Unit, figure: fn(&Solved) -> f64) -> Row {
        let solved = self
            .solved
            .iter()
            .filter(|(class, _)| among.contains(class));
        let figures = solved.map(|(class, solved)| (class, figure(solved)));
        let most = figures.max_by(|(_, one), (_, other)| one.total_cmp(other));
        let is_tried = |class: &Class| self.solved.iter().any(|(tried, _)| tried == class);
        let row = match most {
            Some((class, most)) => row
                .ours(Figure::noted(most, unit, class.name()))
                .measured(most, unit),
            None => row.unit(unit),
        };
        match &self.stopped {
            Some(reason) if !among.iter().all(is_tried) => row.missed(reason),
            _ => row,
        }
    }
}

/// The result of one class.
struct Solved {
    seconds: f64,
    /// Bytes.
    peak: f64,
    digest: u64,
}

impl Solved {
    fn of(answer: &Answer) -> Result<Self, String> {
        Ok(Self {
            seconds: answer.get("seconds")?,
            peak: answer.get("peak")?,
            digest: answer.get("digest")?,
        })
    }
}

/// Bar 28: the largest table that is accepted and solved within the limit.
fn accepted(is_ten_thousand_solved: bool, limit: Duration) -> Row {
    let row = Row::new(
        28,
        "knapsack, bucket 1, cells of the largest instance solved",
    );
    let row = row.goal(at_least(1e10, 1e12));
    let peer_accepts = |count| {
        let scored = peer::scored(&Class::Recency.instance(count));
        let slicer = cupel_peer::KnapsackSlice::new(1).expect("a positive size");
        slicer.slice(&scored, &peer::budget(128_000)).is_ok()
    };
    let peer = if peer_accepts(390) && !peer_accepts(391) {
        Figure::noted(390.0 * 128_000.0, Unit::Cells, "390 items at 128k")
    } else {
        Figure::Words("another limit than 390 items at 128k".to_owned())
    };
    let million = knapsack(Class::Recency, 1_000_000, TARGET, limit);
    let (cells, note) = match million.and_then(|answer| Solved::of(&answer)) {
        Ok(solved) => (1e12, Unit::Seconds.show(solved.seconds)),
        Err(reason) if is_ten_thousand_solved => (1e10, format!("1M items at 1M: {reason}")),
        Err(reason) => (5e7, reason),
    };
    row.peer(peer)
        .ours(Figure::noted(cells, Unit::Cells, note))
        .measured(cells, Unit::Cells)
}
