//! The bars: their numbers and the functions that measure them.

mod budget;
mod chat;
mod diagnostics;
pub(crate) mod duplicates;
mod large;
mod python;
mod relevance;
pub(crate) mod selection;
mod slicer;
mod tokenizer;

use crate::counts::{Reach, allocation_rows, instruction_rows};
use crate::measure::{Duel, Plan};
use crate::recipe::Scoring;
use crate::table::{Row, Unit, at_least};

/// How much to measure.
#[derive(Clone, Copy)]
pub(crate) struct Session {
    pub(crate) is_quick: bool,
}

impl Session {
    pub(crate) fn plan(self) -> Plan {
        if self.is_quick {
            Plan::QUICK
        } else {
            Plan::FULL
        }
    }

    fn reach(self) -> Reach {
        if self.is_quick {
            Reach::Quick
        } else {
            Reach::Full
        }
    }

    /// Returns the row without a figure if this is the quick run.
    fn only_in_full(self, row: &Row) -> Option<Row> {
        self.is_quick
            .then(|| row.clone().not_measured("takes the full run"))
    }
}

/// Bars that are measured together.
pub(crate) struct Group {
    pub(crate) bars: &'static [u8],
    pub(crate) what: &'static str,
    pub(crate) measure: fn(Session) -> Vec<Row>,
}

/// All bars. The limits are those of the project's speed report.
pub(crate) const GROUPS: &[Group] = &[
    Group {
        bars: &[1],
        what: "composite, N=10",
        measure: |session| composite(session, 1, 10, (20.0, 40.0)),
    },
    Group {
        bars: &[2],
        what: "composite, N=100",
        measure: |session| composite(session, 2, 100, (40.0, 70.0)),
    },
    Group {
        bars: &[3],
        what: "composite, N=1k",
        measure: |session| composite(session, 3, 1_000, (60.0, 120.0)),
    },
    Group {
        bars: &[4],
        what: "composite, N=10k",
        measure: |session| composite(session, 4, 10_000, (150.0, 500.0)),
    },
    Group {
        bars: &[5],
        what: "composite, N=100k",
        measure: |session| composite(session, 5, 100_000, (2_000.0, 5_000.0)),
    },
    Group {
        bars: &[6],
        what: "kind, tag, decay, N=10k",
        measure: |session| {
            let goal = at_least(40.0, 150.0);
            [Scoring::Kind, Scoring::Tag, Scoring::Decay]
                .map(|scoring| selection::against_peer(session, 6, scoring, 10_000, goal))
                .into()
        },
    },
    Group {
        bars: &[7],
        what: "kind, N=1M",
        measure: |session| vec![selection::kind_of_a_million(session)],
    },
    Group {
        bars: &[8],
        what: "frequency",
        measure: |session| {
            let row = |number, must, aim| {
                let goal = at_least(must, aim);
                selection::against_peer(session, 8, Scoring::Frequency, number, goal)
            };
            vec![row(1_000, 250.0, 800.0), row(10_000, 5_000.0, 15_000.0)]
        },
    },
    Group {
        bars: &[9],
        what: "scaled",
        measure: |session| {
            let row = |scoring, number, aim| {
                let goal = at_least(10_000.0, aim);
                selection::against_peer(session, 9, scoring, number, goal)
            };
            vec![
                row(Scoring::Scaled, 1_000, 20_000.0),
                row(Scoring::ScaledTwice, 100, 15_000.0),
            ]
        },
    },
    Group {
        bars: &[10, 11, 13, 14, 15],
        what: "instruction counts",
        measure: |session| instruction_rows(session.reach()),
    },
    Group {
        bars: &[12],
        what: "growth to N=1M",
        measure: |session| vec![selection::growth(session)],
    },
    Group {
        bars: &[14],
        what: "disabled trace, time",
        measure: diagnostics::disabled_trace,
    },
    Group {
        bars: &[15],
        what: "dry run",
        measure: diagnostics::dry_run,
    },
    Group {
        bars: &[16, 17],
        what: "least budget",
        measure: budget::least_budget,
    },
    Group {
        bars: &[18, 19, 20],
        what: "memory",
        measure: |session| allocation_rows(session.reach()),
    },
    Group {
        bars: &[21],
        what: "duplicates",
        measure: duplicates::against_reading,
    },
    Group {
        bars: &[22],
        what: "knapsack against the published one",
        measure: slicer::against_peer,
    },
    Group {
        bars: &[23],
        what: "knapsack, time per cell",
        measure: slicer::per_cell,
    },
    Group {
        bars: &[24, 25, 26],
        what: "knapsack, 10k items at 128k",
        measure: slicer::against_table_pass,
    },
    Group {
        bars: &[27, 28],
        what: "knapsack, 10k items at 1M and beyond",
        measure: large::beyond_the_guard,
    },
    Group {
        bars: &[29],
        what: "knapsack against the specification",
        measure: slicer::fuzz,
    },
    Group {
        bars: &[30, 31, 32],
        what: "Python peers",
        measure: python::all,
    },
    Group {
        bars: &[33],
        what: "tokenizer",
        measure: tokenizer::against_counting,
    },
    Group {
        bars: &[34, 35, 39, 40],
        what: "chats",
        measure: chat::rows,
    },
    Group {
        bars: &[36, 37, 38],
        what: "relevance",
        measure: relevance::rows,
    },
];

/// Rows without a bar, and runs that the published crate does not finish.
pub(crate) fn beyond(session: Session) -> Vec<Row> {
    let mut rows = budget::questions(session);
    rows.extend(crate::parallel::rows(session));
    rows.extend(selection::unfinished(session));
    rows
}

fn composite(session: Session, bar: u8, number: usize, goal: (f64, f64)) -> Vec<Row> {
    let goal = at_least(goal.0, goal.1);
    let hot = selection::against_peer(session, bar, Scoring::Composite, number, goal);
    if number > 10_000 {
        return vec![hot];
    }
    vec![hot, selection::cold(session, bar, number)]
}

/// Returns the row with both times and the ratio of the first to the second.
fn versus(row: Row, duel: Result<Duel, String>) -> Row {
    match duel {
        Ok(duel) => row
            .peer(duel.first.figure())
            .ours(duel.second.figure())
            .measured(duel.ratio(), Unit::Times),
        Err(difference) => row.missed(difference),
    }
}
