//! Bar 21: the time to find equal texts over the time to read all texts once.

use super::Session;
use crate::attempt::deduplication;
use crate::generator::Population;
use crate::measure::{median, timed};
use crate::ours;
use crate::recipe::{BUDGET, Scoring};
use crate::table::{Figure, Row, Unit, at_most};

pub(crate) fn against_reading(session: Session) -> Vec<Row> {
    let (number, rounds, size) = if session.is_quick {
        (100_000, 3, "100k")
    } else {
        (1_000_000, 5, "1M")
    };
    let what = format!("deduplication of {size} × 1 KB / reading them");
    let row = Row::new(21, what)
        .goal(at_most(4.0, 2.0))
        .checked("same copies");
    let costs = deduplication(number, rounds).and_then(|answer| {
        Ok(Costs {
            reading: answer.get("reading")?,
            building: answer.get("building")?,
            finding: answer.get("finding")?,
        })
    });
    let costs = match costs {
        Ok(costs) => costs,
        Err(reason) => return vec![row.missed(reason)],
    };
    let ours = costs.building + costs.finding;
    let note = format!(
        "{} building, {} in the run",
        Unit::Seconds.show(costs.building),
        Unit::Seconds.show(costs.finding)
    );
    let row = row
        .peer(Figure::noted(costs.reading, Unit::Seconds, "reading"))
        .ours(Figure::noted(ours, Unit::Seconds, note))
        .measured(ours / costs.reading, Unit::Times);
    vec![row]
}

/// The cost of texts of a kilobyte, in seconds.
pub(crate) struct Costs {
    /// One read of all texts.
    pub(crate) reading: f64,
    /// Building items with them, minus building items with nine bytes.
    pub(crate) building: f64,
    /// A run with deduplication, minus one without.
    pub(crate) finding: f64,
}

/// Measures medians. Every round builds new items, so a hash stored in the item is computed in every
/// round.
pub(crate) fn costs(number: usize, rounds: usize) -> Result<Costs, String> {
    let population = Population::of_length(number, 1_000);
    let mut reading = Vec::new();
    let mut building = Vec::new();
    let mut finding = Vec::new();
    for _ in 0..rounds {
        let (short, _) = built(&Population::of_length(number, 9));
        let (long, items) = built(&population);
        building.push(long - short);

        let run = |deduplicates: bool| {
            let pipeline = ours::pipeline_with(Scoring::Kind, deduplicates);
            let budget = ours::budget(BUDGET);
            timed(|| pipeline.run(&items, &budget).map(drop)).0
        };
        let with = run(true);
        finding.push(with - run(false));
        let sum = || items.iter().map(|item| read(item.content())).sum::<u64>();
        reading.push(timed(sum).0);

        let (found, expected) = (copies_reported(&items), population.copies());
        if found != expected {
            return Err(format!("{found} copies found of {expected}"));
        }
    }
    Ok(Costs {
        reading: median(reading),
        building: median(building).max(0.0),
        finding: median(finding).max(0.0),
    })
}

/// Returns the time of the last build step of all items, and the items.
fn built(population: &Population) -> (f64, Vec<cupel::ContextItem>) {
    let builders: Vec<_> = population.candidates().map(ours::builder).collect();
    timed(|| builders.into_iter().map(ours::finish).collect())
}

fn read(text: &str) -> u64 {
    let words = text.as_bytes().chunks_exact(8);
    let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
    words.fold(0, |sum, bytes| sum.wrapping_add(word(bytes)))
}

fn copies_reported(items: &[cupel::ContextItem]) -> usize {
    use cupel::ExclusionReason::Deduplicated;

    let report = ours::pipeline(Scoring::Kind).dry_run(items, &ours::budget(BUDGET));
    let excluded = report.map(|report| report.excluded).unwrap_or_default();
    let copies = excluded.iter().map(|excluded| &excluded.reason);
    copies
        .filter(|reason| matches!(reason, Deduplicated { .. }))
        .count()
}
