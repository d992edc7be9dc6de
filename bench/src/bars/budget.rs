//! Queries over other budgets: bars 16 and 17, the sweep and the marginal items.

use super::{Session, versus};
use crate::generator::Population;
use crate::measure::{alone, duel};
use crate::recipe::{BUDGET, CEILING, Scoring};
use crate::table::{Figure, Row, Unit, at_least, at_most};
use crate::{ours, peer};

const NUMBER: usize = 10_000;

/// Bars 16 and 17: the least budget at which an item from the middle of the window is selected.
pub(crate) fn least_budget(session: Session) -> Vec<Row> {
    let population = Population::new(NUMBER);
    let items = ours::items(&population);
    let budget = ours::budget(BUDGET);
    let plan = session.plan();

    let (against_peer, peer_ratio) = kind_against_peer(session, &population);
    let mut rows: Vec<Row> = [Scoring::Kind, Scoring::Composite, Scoring::Recency]
        .map(|scoring| {
            let what = format!("least budget / run, {}, N=10k", scoring.name());
            let row = Row::new(16, what).goal(at_most(3.0, 1.3));
            let row = match (scoring, peer_ratio) {
                (Scoring::Kind, Some(ratio)) => row.peer(Figure::of(ratio, Unit::Times)),
                _ => row,
            };
            let pipeline = ours::pipeline(scoring);
            let Ok(window) = pipeline.run(&items, &budget) else {
                return row.missed("the run failed");
            };
            let target = &window[window.len() / 2];
            let result = duel(
                plan.precise(),
                || pipeline.find_min_budget_for(&items, &budget, target, CEILING),
                || pipeline.run(&items, &budget),
                |_, _| Ok(()),
            );
            match result {
                Ok(duel) => row
                    .ours(duel.first.figure())
                    .measured(duel.paired, Unit::Times),
                Err(difference) => row.missed(difference),
            }
        })
        .into();
    rows.push(against_peer);
    rows
}

/// Bar 17, and the published crate's search over its run.
fn kind_against_peer(session: Session, population: &Population) -> (Row, Option<f64>) {
    let row = Row::new(17, "least budget, kind, N=10k")
        .goal(at_least(800.0, 3_000.0))
        .checked("same budget");
    let (our_items, our_budget) = (ours::items(population), ours::budget(BUDGET));
    let (peer_items, peer_budget) = (peer::items(population), peer::budget(BUDGET));
    let our_pipeline = ours::pipeline(Scoring::Kind);
    let peer_pipeline = peer::pipeline(Scoring::Kind);
    let Ok(window) = our_pipeline.run(&our_items, &our_budget) else {
        return (row.missed("the run failed"), None);
    };
    let target = ours::positions(&window)[window.len() / 2];
    let result = duel(
        session.plan(),
        || {
            let target = &peer_items[target];
            peer_pipeline.find_min_budget_for(&peer_items, &peer_budget, target, CEILING)
        },
        || {
            let target = &our_items[target];
            our_pipeline.find_min_budget_for(&our_items, &our_budget, target, CEILING)
        },
        |peer, ours| match (peer, ours) {
            (Ok(peer), Ok(ours)) if peer == ours => Ok(()),
            (Ok(peer), Ok(ours)) => Err(format!("the answers differ: {ours:?}, not {peer:?}")),
            _ => Err("a search failed".to_owned()),
        },
    );
    let (run, _) = alone(session.plan(), || {
        peer_pipeline.run(&peer_items, &peer_budget)
    });
    let ratio = result.as_ref().ok();
    let ratio = ratio.map(|duel| duel.first.seconds / run.seconds);
    (versus(row, result), ratio)
}

/// The other two queries, over a run.
pub(crate) fn questions(session: Session) -> Vec<Row> {
    let items = ours::items(&Population::new(NUMBER));
    let budget = ours::budget(BUDGET);
    let all: i64 = items.iter().map(cupel::ContextItem::tokens).sum();
    let pipeline = ours::pipeline(Scoring::Composite);
    let run = || pipeline.run(&items, &budget);

    let marginal = Row::new(None, "marginal items / run, composite, N=10k");
    let marginal = marginal.goal(at_most(1.5, 1.5));
    let result = duel(
        session.plan().precise(),
        || pipeline.get_marginal_items(&items, &budget, 1_000),
        run,
        |_, _| Ok(()),
    );
    let marginal = match result {
        Ok(duel) => marginal
            .ours(duel.first.figure())
            .measured(duel.paired, Unit::Times),
        Err(difference) => marginal.missed(difference),
    };

    let sweep = Row::new(None, "sweep of all budgets / run, composite, N=10k");
    let sweep = sweep.goal(at_most(20.0, 20.0)).checked("exact");
    let result = duel(
        session.plan(),
        || pipeline.sweep(&items, &budget, 0..=all),
        run,
        |sweep, _| match sweep {
            Ok(sweep) if sweep.exact => Ok(()),
            Ok(_) => Err("the sweep is sampled, not exact".to_owned()),
            Err(error) => Err(error.to_string()),
        },
    );
    let sweep = match result {
        Ok(duel) => sweep
            .ours(duel.first.figure())
            .measured(duel.paired, Unit::Times),
        Err(difference) => sweep.missed(difference),
    };
    vec![marginal, sweep]
}
