//! Bar 33: the time of a run over the time to count the tokens of the same texts.

use super::Session;
use crate::generator::Population;
use crate::measure::duel;
use crate::ours;
use crate::recipe::{BUDGET, Scoring};
use crate::table::{Row, Unit, at_most};

pub(crate) fn against_counting(session: Session) -> Vec<Row> {
    let row = Row::new(
        33,
        "composite run / counting tokens (tiktoken crate, cl100k), N=10k",
    );
    let row = row.goal(at_most(0.01, 0.003)).unit(Unit::Percent);
    let Some(encoding) = tiktoken::get_encoding("cl100k_base") else {
        return vec![row.not_measured("the tokenizer has no cl100k_base")];
    };
    let items = ours::items(&Population::new(10_000));
    let (pipeline, budget) = (ours::pipeline(Scoring::Composite), ours::budget(BUDGET));
    let result = duel(
        session.plan(),
        || {
            let counts = items.iter().map(|item| encoding.count(item.content()));
            counts.sum::<usize>()
        },
        || pipeline.run(&items, &budget),
        |_, _| Ok(()),
    );
    let row = match result {
        Ok(duel) => row
            .peer(duel.first.figure())
            .ours(duel.second.figure())
            .measured(1.0 / duel.ratio(), Unit::Percent),
        Err(difference) => row.missed(difference),
    };
    vec![row]
}
