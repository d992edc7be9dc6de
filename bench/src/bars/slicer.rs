//! The knapsack against the published one and the specification: bars 22 to 26, and 29.

use cupel::Slicer as _;
use cupel_peer::Slicer as _;

use super::{Session, versus};
use crate::attempt::table_pass;
use crate::counts::short;
use crate::generator::Random;
use crate::knapsack::{self, Class, Instance, specified};
use crate::measure::{Duel, Timing, duel};
use crate::recipe::digest;
use crate::table::{Figure, Row, Unit, at_least, at_most};
use crate::{ours, peer};

const SAME_ORDER: &str = "same order";

/// Bar 22: the slicer alone, near the cell limit of the published one, and at a fourth of it.
pub(crate) fn against_peer(session: Session) -> Vec<Row> {
    let full = at_least(100.0, 150.0);
    let hard = at_least(10.0, 20.0);
    let bucketed = at_least(40.0, 80.0);
    let (uniform, levels, proportional) = (Scores::Uniform, Scores::Levels, Scores::Proportional);
    [
        (uniform, 128_000, 1, 390, full),
        (uniform, 128_000, 100, 39_000, full),
        (uniform, 1_000_000, 100, 5_000, full),
        (uniform, 50_000, 1, 1_000, full),
        (levels, 128_000, 1, 390, full),
        (levels, 128_000, 100, 39_000, full),
        (proportional, 128_000, 1, 390, hard),
        (proportional, 20_000, 1, 2_400, hard),
        (proportional, 8_000, 1, 6_000, hard),
        (uniform, 128_000, 100, 10_000, bucketed),
        (levels, 128_000, 100, 10_000, bucketed),
        (proportional, 128_000, 100, 10_000, bucketed),
    ]
    .map(|(scores, target, bucket, count, goal)| {
        let tokens = short(usize::try_from(target).unwrap_or(0));
        let (name, count_name) = (scores.name(), short(count));
        let what = format!("knapsack, {name}, {tokens} tokens, bucket {bucket}, n={count_name}");
        let row = Row::new(22, what).goal(goal).checked(SAME_ORDER);
        versus(
            row,
            slicers(session, &scores.instance(count), target, bucket),
        )
    })
    .into()
}

/// The scores of bar 22.
#[derive(Clone, Copy)]
enum Scores {
    Uniform,
    Levels,
    Proportional,
}

impl Scores {
    fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Levels => "5 levels",
            Self::Proportional => "score ∝ tokens",
        }
    }

    fn instance(self, count: usize) -> Instance {
        match self {
            Self::Uniform => knapsack::uniform(count),
            Self::Levels => Class::Kind.instance(count),
            Self::Proportional => Class::Proportional.instance(count),
        }
    }
}

/// Bar 23: time per cell of the whole table, for the slowest class. No class forces a solver to compute
/// every cell.
pub(crate) fn per_cell(session: Session) -> Vec<Row> {
    let (count, target) = (390, 128_000);
    let row = Row::new(23, "knapsack, time per table cell, slowest of 14 classes");
    // The limit is the one for a kernel without intrinsics; with AVX2 it would be 10.
    let row = row.goal(at_least(3.0, 18.0)).checked(SAME_ORDER);
    let mut worst: Option<(Class, Duel)> = None;
    for class in Class::ALL {
        match slicers(session, &class.instance(count), target, 1) {
            Err(difference) => return vec![row.missed(format!("{}: {difference}", class.name()))],
            Ok(duel) => {
                if worst.is_none_or(|(_, worst)| duel.ratio() < worst.ratio()) {
                    worst = Some((class, duel));
                }
            }
        }
    }
    let Some((class, duel)) = worst else {
        return vec![row];
    };
    let per_cell = |seconds: f64| seconds * 1e9 / (count as f64 * target as f64);
    let unit = Unit::NanosecondsPerCell;
    let row = row
        .peer(Figure::of(per_cell(duel.first.seconds), unit))
        .ours(Figure::noted(
            per_cell(duel.second.seconds),
            unit,
            class.name(),
        ))
        .measured(duel.ratio(), Unit::Times);
    vec![row]
}

/// Bars 24, 25 and 26: over the time to write and read one fresh bit per cell.
pub(crate) fn against_table_pass(session: Session) -> Vec<Row> {
    let typical = [
        Class::Recency,
        Class::Composite,
        Class::Priority,
        Class::Decay,
    ];
    let level = [Class::Kind, Class::Equal, Class::Strong];
    let refused = refusal(&Class::Recency.instance(10_000), 128_000).show();
    let mut rows = Vec::new();
    let mut worst: Option<(Class, Passed)> = None;
    let mut fault = None;
    for class in Class::ALL {
        let passed = match Passed::measure(session, class, 10_000, 128_000) {
            Ok(passed) => passed,
            Err(reason) => {
                fault = fault.or(Some(format!("{}: {reason}", class.name())));
                continue;
            }
        };
        let (bar, goal) = match class {
            _ if typical.contains(&class) => (24, at_most(0.02, 0.004)),
            _ if level.contains(&class) => (25, at_most(0.1, 0.03)),
            _ => (26, at_most(2.5, 0.6)),
        };
        if bar != 26 {
            let what = format!("knapsack / table pass, n=10k, C=128k, {}", class.name());
            rows.push(passed.fill(Row::new(bar, what).goal(goal), &refused, ""));
        }
        if worst
            .as_ref()
            .is_none_or(|(_, worst)| passed.ratio() > worst.ratio())
        {
            worst = Some((class, passed));
        }
    }
    let row = Row::new(
        26,
        "knapsack / table pass, n=10k, C=128k, worst of 14 classes",
    );
    let row = row.goal(at_most(2.5, 0.6));
    let row = match worst {
        Some((class, passed)) => passed.fill(row, &refused, class.name()),
        None => row,
    };
    rows.push(match fault {
        Some(reason) => row.missed(reason),
        None => row,
    });
    rows
}

/// Our time and that of a pass over a fresh table.
struct Passed {
    ours: Timing,
    pass: f64,
}

impl Passed {
    /// First compares the selection with the specification's: at the measured size, or in the quick run
    /// at a hundredth of it.
    fn measure(session: Session, class: Class, count: usize, target: i64) -> Result<Self, String> {
        if session.is_quick {
            let instance = class.instance(count / 10);
            let budget = ours::budget(target / 10);
            let chosen = ours::knapsack(1).slice(&ours::scored(&instance), &budget);
            let chosen = chosen.map_err(|error| error.to_string())?;
            same(
                &specified(&instance, target / 10, 1),
                &ours::positions(&chosen),
            )?;
        }
        let answer = table_pass(class, count, target, session)?;
        let expected = || digest(&specified(&class.instance(count), target, 1));
        if !session.is_quick && answer.get::<u64>("digest")? != expected() {
            return Err("not the specified set".to_owned());
        }
        Ok(Self {
            ours: answer.timing()?,
            pass: answer.get("pass")?,
        })
    }

    fn ratio(&self) -> f64 {
        self.ours.seconds / self.pass
    }

    fn fill(&self, row: Row, refused: &str, note: &str) -> Row {
        let pass = Unit::Seconds.show(self.pass);
        row.peer(Figure::Words(format!("{refused}; pass {pass}")))
            .ours(Figure::noted(self.ours.seconds, Unit::Seconds, note))
            .measured(self.ratio(), Unit::Times)
            .checked("specification")
    }
}

/// Bar 29: small instances with many ties against the specification's program.
pub(crate) fn fuzz(session: Session) -> Vec<Row> {
    let instances = if session.is_quick { 20_000 } else { 200_000 };
    let row = Row::new(
        29,
        format!("knapsack = specification, {instances} instances"),
    );
    let row = row.goal(at_least(1.0, 1.0)).checked("specification");
    let mut random = Random::new(0xf022);
    let mut equal = 0_u32;
    let mut first = None;
    for number in 0..instances {
        let (instance, target, bucket) = knapsack::fuzz(&mut random);
        let expected = specified(&instance, target, bucket);
        let budget = ours::budget(target);
        let chosen = ours::knapsack(bucket).slice(&ours::scored(&instance), &budget);
        if chosen.is_ok_and(|chosen| ours::positions(&chosen) == expected) {
            equal += 1;
        } else {
            first = first.or(Some(number));
        }
    }
    let row = row
        .ours(Figure::of(f64::from(equal), Unit::Instances))
        .measured(f64::from(equal) / f64::from(instances), Unit::Percent);
    vec![match first {
        None => row,
        Some(number) => row.missed(format!("the first that differs is number {number}")),
    }]
}

/// Measures both slicers on the same list.
fn slicers(
    session: Session,
    instance: &[(f64, i64)],
    target: i64,
    bucket: i64,
) -> Result<Duel, String> {
    let (our_list, our_budget) = (ours::scored(instance), ours::budget(target));
    let (peer_list, peer_budget) = (peer::scored(instance), peer::budget(target));
    let ours = ours::knapsack(bucket);
    let peer = cupel_peer::KnapsackSlice::new(bucket).map_err(|error| error.to_string())?;
    duel(
        session.plan(),
        || peer.slice(&peer_list, &peer_budget),
        || ours.slice(&our_list, &our_budget),
        |peer, ours| {
            let peer = peer.as_ref().map_err(|error| format!("peer: {error}"))?;
            let ours = ours.as_ref().map_err(ToString::to_string)?;
            same(&peer::positions(peer), &ours::positions(ours))
        },
    )
}

fn same(expected: &[usize], ours: &[usize]) -> Result<(), String> {
    if expected == ours {
        return Ok(());
    }
    let common = ours.iter().filter(|position| expected.contains(position));
    Err(format!(
        "the choices differ: {} items here, {} expected, {} in common",
        ours.len(),
        expected.len(),
        common.count()
    ))
}

/// Returns the published slicer's answer to an instance at a bucket of 1.
pub(super) fn refusal(instance: &[(f64, i64)], target: i64) -> Figure {
    let slicer = cupel_peer::KnapsackSlice::new(1).expect("a positive size");
    Figure::Words(
        match slicer.slice(&peer::scored(instance), &peer::budget(target)) {
            Err(cupel_peer::CupelError::TableTooLarge { .. }) => "refused".to_owned(),
            Err(error) => error.to_string(),
            Ok(_) => "not refused".to_owned(),
        },
    )
}
