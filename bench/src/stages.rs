//! Times of single stages of our library, without limits.

use cupel::{
    ChronologicalPlacer, GreedySlice, Placer, ScoredItem, Scorer as _, Slicer, UShapedPlacer,
};

use crate::bars::Session;
use crate::counts::short;
use crate::generator::Population;
use crate::measure::alone;
use crate::ours;
use crate::recipe::{BUDGET, Entry, Scoring};
use crate::table::{Row, Unit};

pub(crate) fn rows(session: Session) -> Vec<Row> {
    let sizes: &[usize] = if session.is_quick {
        &[1_000, 10_000]
    } else {
        &[1_000, 10_000, 100_000]
    };
    sizes
        .iter()
        .flat_map(|&number| at(session, number))
        .collect()
}

fn at(session: Session, number: usize) -> Vec<Row> {
    let population = Population::new(number);
    let (items, budget) = (ours::items(&population), ours::budget(BUDGET));
    let mut rows = Vec::new();
    let mut row = |what: &str, work: &mut dyn FnMut()| {
        let (timing, ()) = alone(session.plan(), work);
        let per_item = timing.seconds * 1e9 / number as f64;
        let row = Row::new(None, format!("{what}, N={}", short(number)));
        rows.push(
            row.ours(timing.figure())
                .measured(per_item, Unit::NanosecondsPerItem),
        );
    };

    for scoring in Scoring::ALL {
        let scorer = ours::scorer(scoring);
        let name = format!("score {}", scoring.name());
        row(&name, &mut || done(scorer.score_all(&items)));
    }
    for (scoring, entry) in [
        (Scoring::Kind, Entry::Run),
        (Scoring::Kind, Entry::DryRun),
        (Scoring::Composite, Entry::Run),
        (Scoring::Composite, Entry::DryRun),
    ] {
        let pipeline = ours::pipeline(scoring);
        let name = format!("{} {}", entry.name(), scoring.name());
        row(&name, &mut || {
            done(ours::call(&pipeline, entry, &items, &budget));
        });
    }
    let pipeline = ours::pipeline_with(Scoring::Kind, false);
    row("run kind without deduplication", &mut || {
        done(pipeline.run(&items, &budget));
    });

    let scores = ours::scorer(Scoring::Composite).score_all(&items);
    let scores = scores.expect("a built-in scorer answers");
    let pairs = items.iter().cloned().zip(scores);
    let mut ranked: Vec<ScoredItem> = pairs
        .map(|(item, score)| ScoredItem { item, score })
        .collect();
    ranked.sort_by(|one, other| other.score.total_cmp(&one.score));
    let bucketed = ours::knapsack(100);
    let slicers: [(&str, &dyn Slicer); 2] = [("greedy", &GreedySlice), ("knapsack 100", &bucketed)];
    for (name, slicer) in slicers {
        row(&format!("slice {name}"), &mut || {
            done(slicer.slice(&ranked, &budget));
        });
    }
    let placers: [(&str, &dyn Placer); 2] = [
        ("chronological", &ChronologicalPlacer),
        ("u-shaped", &UShapedPlacer),
    ];
    for (name, placer) in placers {
        row(&format!("place {name}"), &mut || {
            std::hint::black_box(placer.place(&ranked));
        });
    }
    rows
}

fn done<T, E: std::fmt::Debug>(result: Result<T, E>) {
    std::hint::black_box(result.expect("a built-in strategy answers"));
}
