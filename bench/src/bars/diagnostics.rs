//! The cost of a report: the timed half of bar 14, and bar 15.

use super::Session;
use crate::counts::short;
use crate::generator::Population;
use crate::measure::duel;
use crate::recipe::{BUDGET, Entry, Scoring};
use crate::table::{Figure, Row, Unit, at_most};
use crate::{ours, peer};

/// Bar 14: a run with a disabled collector, over a plain run.
pub(crate) fn disabled_trace(session: Session) -> Vec<Row> {
    [Scoring::Kind, Scoring::Composite]
        .map(|scoring| {
            let what = format!("traced(null) / run, {}, N=10k, time", scoring.name());
            let row = Row::new(14, what).goal(at_most(1.02, 1.01));
            cost_of(session, row, Entry::Null, scoring, 10_000)
        })
        .into()
}

/// Bar 15: the decisions on all candidates, over a plain run: by position, as a dry run with item
/// events, and as a report without them.
pub(crate) fn dry_run(session: Session) -> Vec<Row> {
    let mut rows = Vec::new();
    for (entry, name) in [
        (Entry::Decide, "decide"),
        (Entry::DryRun, "dry run"),
        (Entry::Report, "report"),
    ] {
        for scoring in [Scoring::Kind, Scoring::Composite] {
            for number in [1_000, 10_000] {
                let what = format!("{name} / run, {}, N={}", scoring.name(), short(number));
                let row = Row::new(15, what).goal(at_most(1.5, 1.25));
                rows.push(cost_of(session, row, entry, scoring, number));
            }
        }
    }
    rows
}

fn cost_of(session: Session, row: Row, entry: Entry, scoring: Scoring, number: usize) -> Row {
    let population = Population::new(number);
    let plan = session.plan();
    let theirs = {
        let (items, budget) = (peer::items(&population), peer::budget(BUDGET));
        let pipeline = peer::pipeline(scoring);
        duel(
            plan,
            || peer::call(&pipeline, entry, &items, &budget),
            || peer::call(&pipeline, Entry::Run, &items, &budget),
            |_, _| Ok(()),
        )
    };
    let (items, budget) = (ours::items(&population), ours::budget(BUDGET));
    let pipeline = ours::pipeline(scoring);
    let ours = duel(
        plan.precise(),
        || ours::call(&pipeline, entry, &items, &budget),
        || ours::call(&pipeline, Entry::Run, &items, &budget),
        |with, without| match (with, without) {
            (Ok(with), Ok(without)) if with == without => Ok(()),
            _ => Err("the two do not select the same number of items".to_owned()),
        },
    );
    let theirs = theirs.map_or(Figure::Nothing, |duel| Figure::of(duel.paired, Unit::Times));
    match ours {
        Ok(duel) => row
            .peer(theirs)
            .ours(duel.first.figure())
            .measured(duel.paired, Unit::Times)
            .checked("same count"),
        Err(difference) => row.missed(difference),
    }
}
