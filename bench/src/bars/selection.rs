//! Whole runs: bars 1 to 9 and 12.

use std::time::Duration;

use super::{Session, versus};
use crate::attempt;
use crate::counts::short;
use crate::generator::Population;
use crate::measure::{Eviction, Timing, cold_duel, duel};
use crate::recipe::{BUDGET, Scoring, Side};
use crate::table::{Figure, Goal, Row, Unit, at_least, at_most};
use crate::{ours, peer};

const SAME_ORDER: &str = "same order";

/// Runs both libraries with a scorer, the greedy slicer and the chronological placer, hot.
pub(crate) fn against_peer(
    session: Session,
    bar: u8,
    scoring: Scoring,
    number: usize,
    goal: Goal,
) -> Row {
    let row = run_row(bar, scoring, number, goal);
    let takes_long = match scoring {
        Scoring::Frequency => number >= 10_000,
        _ => number >= 100_000,
    };
    if takes_long && let Some(row) = session.only_in_full(&row) {
        return row;
    }
    let population = Population::new(number);
    let (our_items, our_budget) = (ours::items(&population), ours::budget(BUDGET));
    let (peer_items, peer_budget) = (peer::items(&population), peer::budget(BUDGET));
    let (our_pipeline, peer_pipeline) = (ours::pipeline(scoring), peer::pipeline(scoring));
    let result = duel(
        session.plan(),
        || peer_pipeline.run(&peer_items, &peer_budget),
        || our_pipeline.run(&our_items, &our_budget),
        |peer_window, our_window| {
            let peer_window = peer_window.as_ref().map_err(ToString::to_string)?;
            let our_window = our_window.as_ref().map_err(ToString::to_string)?;
            let (peer, ours) = (peer::positions(peer_window), ours::positions(our_window));
            same_window(&population, &peer, &ours)
        },
    );
    versus(row, result)
}

/// Runs both libraries with the composite scorer, cold: before each call a buffer larger than the caches is
/// written and other pipelines run.
pub(crate) fn cold(session: Session, bar: u8, number: usize) -> Row {
    let what = format!("composite + greedy run, N={}, cold", short(number));
    let population = Population::new(number);
    let (our_items, our_budget) = (ours::items(&population), ours::budget(BUDGET));
    let (peer_items, peer_budget) = (peer::items(&population), peer::budget(BUDGET));
    let our_pipeline = ours::pipeline(Scoring::Composite);
    let peer_pipeline = peer::pipeline(Scoring::Composite);

    let other_items = ours::items(&Population::new(2_000));
    let others = [Scoring::Frequency, Scoring::Tag, Scoring::Decay].map(ours::pipeline);
    let mut eviction = Eviction::new();
    let duel = cold_duel(
        session.plan(),
        || peer_pipeline.run(&peer_items, &peer_budget),
        || our_pipeline.run(&our_items, &our_budget),
        || {
            eviction.evict();
            for other in &others {
                std::hint::black_box(other.run(&other_items, &our_budget).is_ok());
            }
        },
    );
    versus(Row::new(bar, what), Ok(duel))
}

/// Bar 7: each side in a process of its own, because both together would not fit into memory.
pub(crate) fn kind_of_a_million(session: Session) -> Row {
    const NEEDED: f64 = 11e9;
    let (number, scoring) = (1_000_000, Scoring::Kind);
    let row = run_row(7, scoring, number, at_least(100.0, 300.0));
    if let Some(row) = session.only_in_full(&row) {
        return row;
    }
    if available_memory() < NEEDED {
        return row.not_measured(format!("needs {} of memory", Unit::Bytes.show(NEEDED)));
    }
    let ask = |side, limit| {
        let answer = attempt::run(side, scoring, number, Duration::from_secs(limit))?;
        Ok::<_, String>((answer.timing()?, answer.get::<u64>("digest")?))
    };
    let (ours, our_window) = match ask(Side::Ours, 300) {
        Ok(answer) => answer,
        Err(reason) => return row.missed(reason),
    };
    let (peer, peer_window) = match ask(Side::Peer, 600) {
        Ok(answer) => answer,
        Err(reason) => {
            let row = row.peer(Figure::Words(reason)).ours(ours.figure());
            return row.not_measured("the peer did not finish");
        }
    };
    if our_window != peer_window {
        return row.missed("the windows differ");
    }
    row.peer(peer.figure())
        .ours(ours.figure())
        .measured(peer.seconds / ours.seconds, Unit::Times)
}

/// Bar 12: growth of time for a hundred times the items.
pub(crate) fn growth(session: Session) -> Row {
    let row = Row::new(12, "growth T(1M) / T(10k), composite, time").goal(at_most(350.0, 200.0));
    if let Some(row) = session.only_in_full(&row) {
        return row;
    }
    let time = |number| our_time(Scoring::Composite, number);
    match (time(10_000), time(1_000_000)) {
        (Ok(few), Ok(many)) => row
            .peer(Figure::Words("does not finish".to_owned()))
            .ours(many.figure())
            .measured(many.seconds / few.seconds, Unit::Times),
        (Err(error), _) | (_, Err(error)) => row.missed(error),
    }
}

/// Runs that the published crate does not finish within a minute, with our time.
pub(crate) fn unfinished(session: Session) -> Vec<Row> {
    const LIMIT: Duration = Duration::from_secs(60);
    let cells = [
        (Scoring::Scaled, 10_000),
        (Scoring::ScaledTwice, 1_000),
        (Scoring::Frequency, 100_000),
        (Scoring::Composite, 1_000_000),
    ];
    let row = |(scoring, number): (Scoring, usize)| {
        let what = format!("{} + greedy run, N={}", scoring.name(), short(number));
        let row = Row::new(None, what);
        if let Some(row) = session.only_in_full(&row) {
            return row;
        }
        let peer = attempt::run(Side::Peer, scoring, number, LIMIT);
        let peer = peer.and_then(|answer| answer.timing());
        let figure = |time: Result<Timing, String>| match time {
            Ok(timing) => timing.figure(),
            Err(reason) => Figure::Words(reason),
        };
        row.peer(figure(peer))
            .ours(figure(our_time(scoring, number)))
    };
    cells.map(row).into()
}

fn our_time(scoring: Scoring, number: usize) -> Result<Timing, String> {
    attempt::run(Side::Ours, scoring, number, Duration::from_secs(300))?.timing()
}

fn run_row(bar: u8, scoring: Scoring, number: usize, goal: Goal) -> Row {
    let what = format!("{} + greedy run, N={}", scoring.name(), short(number));
    Row::new(bar, what).goal(goal).checked(SAME_ORDER)
}

fn same_window(population: &Population, peer: &[usize], ours: &[usize]) -> Result<(), String> {
    if comparable(population, peer) == comparable(population, ours) {
        return Ok(());
    }
    let common = ours.iter().filter(|position| peer.contains(position));
    Err(format!(
        "the windows differ: {} items here, {} there, {} in common",
        ours.len(),
        peer.len(),
        common.count()
    ))
}

/// Returns the part of a window that the specification determines: items with a timestamp, all of them
/// different, in their order; those without come last and are compared as a set (R034).
pub(crate) fn comparable(population: &Population, window: &[usize]) -> Vec<usize> {
    let has_time = |position: &usize| population.has_timestamp(*position);
    let (mut ordered, mut rest): (Vec<usize>, Vec<usize>) =
        window.iter().partition(|p| has_time(p));
    rest.sort_unstable();
    ordered.extend(rest);
    ordered
}

/// Returns the memory that is available without swapping, in bytes.
fn available_memory() -> f64 {
    let facts = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = facts
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.map_or(f64::INFINITY, |kilobytes| kilobytes * 1024.0)
}
