//! Whole runs: bars 1 to 9 and 12.

use std::time::Duration;

use super::{Session, versus};
use crate::attempt;
use crate::counts::short;
use crate::generator::Population;
use crate::measure::{Timing, duel};
use crate::recipe::{BUDGET, Scoring, Side};
use crate::table::{Figure, Goal, Row, Unit, at_least, at_most};
use crate::{ours, peer};

const SAME_ORDER: &str = "same order";

/// A run of both, scorer as named, greedy slicer, chronological placer.
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

/// Bar 12: how much longer a hundred times as many take.
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

/// What the published crate is given up on, beside our time for the same.
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

/// What of a window the specification leaves no room for: items with a timestamp, all of them
/// different, in their order; those without come last and count as a set (R034).
pub(crate) fn comparable(population: &Population, window: &[usize]) -> Vec<usize> {
    let has_time = |position: &usize| population.has_timestamp(*position);
    let (mut ordered, mut rest): (Vec<usize>, Vec<usize>) =
        window.iter().partition(|p| has_time(p));
    rest.sort_unstable();
    ordered.extend(rest);
    ordered
}

/// What can be had without swapping, in bytes.
fn available_memory() -> f64 {
    let facts = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = facts
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.map_or(f64::INFINITY, |kilobytes| kilobytes * 1024.0)
}
