//! The answers for many targets, and for unsorted lists, against one choice per target.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::slicer::{SweepVisitor, ViewChange};
use crate::{
    ContextBudget, ContextItem, CupelError, DensitySlice, GreedySlice, GroupSlice, KnapsackSlice,
    RankSlice, ScoredRef, Slicer,
};

/// Tokens, score and group; an empty name is none.
type Row = (i64, f64, &'static str);

/// Free items, ties, and groups of three, two and one.
const ROWS: [Row; 9] = [
    (7, 0.5, ""),
    (0, 0.1, "a"),
    (3, 0.9, "a"),
    (5, 0.9, ""),
    (0, 0.0, ""),
    (4, 0.2, "b"),
    (2, 0.5, "b"),
    (6, 0.7, "a"),
    (3, 0.9, "c"),
];

/// Collects the choices of a sweep by target.
#[derive(Default)]
struct Choices {
    chosen: BTreeSet<usize>,
    changes: Vec<(i64, BTreeSet<usize>)>,
}

impl SweepVisitor for Choices {
    fn change(&mut self, target: i64, ranks: &[usize], views: &[ViewChange]) -> ControlFlow<()> {
        assert!(views.is_empty());
        for rank in ranks {
            if !self.chosen.remove(rank) {
                self.chosen.insert(*rank);
            }
        }
        self.changes.push((target, self.chosen.clone()));
        ControlFlow::Continue(())
    }

    fn fail(&mut self, target: i64, error: CupelError) {
        panic!("{target}: {error}");
    }
}

/// Compares the shortcuts of a slicer with its choices. Returns whether it has `select_unsorted` and
/// `sweep`.
fn check(slicer: &dyn Slicer, rows: &[Row]) -> [bool; 2] {
    let item = |&(tokens, _, group): &Row| {
        let item = ContextItem::builder("x", tokens);
        let item = match group {
            "" => item,
            name => item.meta(GroupSlice::KEY, name),
        };
        item.build().unwrap()
    };
    // The first candidate is not listed.
    let all = || std::iter::once(&(1, 1.0, "")).chain(rows);
    let items: Vec<ContextItem> = all().map(item).collect();
    let list = items.iter().zip(all()).enumerate().skip(1);
    let list = list.map(|(at, (item, &(_, score, _)))| ScoredRef::new(item, score, at));
    let list: Vec<ScoredRef<'_>> = list.collect();
    let mut ranking: Vec<usize> = (0..rows.len()).collect();
    ranking.sort_by(|&a, &b| rows[b].1.total_cmp(&rows[a].1));
    let ranked: Vec<ScoredRef<'_>> = ranking.iter().map(|&index| list[index]).collect();

    let limits = |target| ContextBudget::with_target(target, target).unwrap();
    let last = 40;
    let choices = (0..=last).map(|target| {
        let selection = slicer.select(&ranked, &limits(target)).unwrap();
        let mut kept: Vec<usize> = selection.kept().iter().map(|&r| ranking[r]).collect();
        kept.sort_unstable();
        kept
    });
    let choices: Vec<Vec<usize>> = choices.collect();
    let unsorted = (0..).zip(&choices).map(|(target, kept)| {
        let mut chosen = slicer.select_unsorted(&list, &limits(target))?;
        chosen.sort_unstable();
        assert_eq!(chosen, *kept, "at {target}");
        Some(())
    });
    let ranges = (0..=last).flat_map(|from| (from..=last).map(move |to| (from, to)));
    let swept = ranges.map(|(from, to)| {
        let mut sweep = Choices::default();
        let _ = slicer.sweep(&ranked, from..=to, &mut sweep)?;
        for (target, kept) in (0..)
            .zip(&choices)
            .filter(|(at, _)| (from..=to).contains(at))
        {
            let change = sweep.changes.iter().rfind(|(at, _)| *at <= target);
            let chosen = change.into_iter().flat_map(|(_, chosen)| chosen);
            let mut chosen: Vec<usize> = chosen.map(|&r| ranking[r]).collect();
            chosen.sort_unstable();
            assert_eq!(chosen, *kept, "at {target} of {from} to {to}");
        }
        let mut targets = sweep.changes.iter().map(|(target, _)| *target);
        assert!(targets.clone().is_sorted() && targets.all(|at| (from..=to).contains(&at)));
        Some(())
    });
    [
        unsorted.collect::<Option<()>>().is_some(),
        swept.collect::<Option<()>>().is_some(),
    ]
}

#[test]
fn shortcuts_agree_with_the_choice() {
    let group = |inner: Box<dyn Slicer>| Box::new(GroupSlice::new(inner)) as Box<dyn Slicer>;
    let alone = ROWS.map(|(tokens, score, _)| (tokens, score, ""));
    let (all, none) = ([true; 2], [false; 2]);
    let ranked_only = [false, true];
    let fills: [fn() -> Box<dyn Slicer>; 3] = [
        || Box::new(GreedySlice),
        || Box::new(RankSlice),
        || Box::new(DensitySlice::new(0.5).unwrap()),
    ];
    for fill in fills {
        assert_eq!(check(&fill(), &alone), all);
        assert_eq!(check(&group(fill()), &alone), all);
        assert_eq!(check(&group(fill()), &ROWS), ranked_only);
        // An item that frees tokens.
        let mut rows = alone;
        rows[5].0 = -4;
        assert_eq!(check(&fill(), &rows), none);
    }
    let knapsack = KnapsackSlice::new(1).unwrap();
    assert_eq!(check(&knapsack, &alone), ranked_only);
    assert_eq!(check(&group(Box::new(knapsack)), &ROWS), ranked_only);
}
