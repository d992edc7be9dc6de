//! Compares the knapsack with the specification's pseudocode.
//!
//! `CUPEL_CASES` sets the number of random problems of each test. Random scores rarely tie, and
//! most bugs need ties, so most classes of problems consist of ties.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use cupel::slicer::{SweepVisitor, ViewChange};
use cupel::{ContextBudget, ContextItem, CupelError, KnapsackSlice, ScoredItem, ScoredRef, Slicer};
use cupel_conformance::testing::{Random, cases};

#[derive(Debug, Clone)]
struct Problem {
    /// Tokens and scores.
    items: Vec<(i64, f64)>,
    target: i64,
    bucket_size: i64,
}

impl Problem {
    fn knapsack(&self) -> KnapsackSlice {
        KnapsackSlice::new(self.bucket_size).unwrap()
    }

    fn scored(&self) -> Vec<ScoredItem> {
        let scored = |&(tokens, score): &(i64, f64)| ScoredItem {
            item: ContextItem::builder("x", tokens).build().unwrap(),
            score,
        };
        self.items.iter().map(scored).collect()
    }

    fn choice_of(&self, knapsack: KnapsackSlice) -> Result<Vec<usize>, CupelError> {
        let scored = self.scored();
        let ranked = ScoredRef::from_list(&scored);
        choice(knapsack, &ranked, self.target)
    }

    fn choice(&self) -> Vec<usize> {
        self.choice_of(self.knapsack()).unwrap()
    }

    /// KNAPSACK-SLICE(scoredItems, budget, bucketSize), with positions for items.
    fn literal_choice(&self) -> Vec<usize> {
        if self.items.is_empty() || self.target <= 0 {
            return Vec::new();
        }
        let mut zero_token_items = Vec::new();
        let mut candidates = Vec::new();
        for (position, (tokens, _)) in self.items.iter().enumerate() {
            if *tokens == 0 {
                zero_token_items.push(position);
            } else if *tokens > 0 {
                candidates.push(position);
            }
        }
        if candidates.is_empty() {
            return zero_token_items;
        }
        let n = candidates.len();
        let capacity = index(self.target / self.bucket_size);
        if capacity == 0 {
            return zero_token_items;
        }
        let mut values = Vec::new();
        let mut discretized_weights = Vec::new();
        for &candidate in &candidates {
            let (tokens, score) = self.items[candidate];
            values.push(literal_value(score));
            discretized_weights.push(index((tokens + self.bucket_size - 1) / self.bucket_size));
        }
        let mut dp = vec![0_i128; capacity + 1];
        let mut keep = vec![vec![false; capacity + 1]; n];
        for i in 0..n {
            let dw = discretized_weights[i];
            let dv = values[i];
            for w in (dw..=capacity).rev() {
                let with_item = dp[w - dw] + dv;
                if with_item > dp[w] {
                    dp[w] = with_item;
                    keep[i][w] = true;
                }
            }
        }
        let mut result = zero_token_items;
        let mut remaining_capacity = capacity;
        for i in (0..n).rev() {
            if keep[i][remaining_capacity] {
                result.push(candidates[i]);
                remaining_capacity -= discretized_weights[i];
            }
        }
        result
    }

    /// The same problem with fewer items, as long as they show the fault.
    fn shrunk(mut self, is_faulty: impl Fn(&Self) -> bool) -> Self {
        let mut position = 0;
        while position < self.items.len() {
            let mut fewer = self.clone();
            fewer.items.remove(position);
            if is_faulty(&fewer) {
                self = fewer;
            } else {
                position += 1;
            }
        }
        self
    }
}

fn choice(
    knapsack: KnapsackSlice,
    ranked: &[ScoredRef<'_>],
    target: i64,
) -> Result<Vec<usize>, CupelError> {
    let budget = ContextBudget::with_target(target, target).unwrap();
    Ok(knapsack.select(ranked, &budget)?.kept().to_vec())
}

fn index(count: i64) -> usize {
    usize::try_from(count).unwrap()
}

/// max(0, floor(score * 10000)), within 64 bits (R010).
#[expect(clippy::cast_possible_truncation, reason = "the number is whole")]
fn literal_value(score: f64) -> i128 {
    let value = (score * 10_000.0).floor();
    if value > 0.0 {
        (value.min(1e30) as i128).min(i64::MAX.into())
    } else {
        0
    }
}

/// How scores come about, from a weight and what else there is.
#[derive(Debug, Clone, Copy)]
enum Class {
    FiveLevels,
    Constant,
    Weight,
    Proportional,
    Steps,
    Ranks,
    StronglyCorrelated,
    InverselyCorrelated,
    WeaklyCorrelated,
    RoundedUp,
    TwoOffsets,
    NextToNothing,
    Uniform,
    AnyMagnitude,
    LargeTies,
    Odd,
}

impl Class {
    const ALL: [Self; 16] = [
        Self::FiveLevels,
        Self::Constant,
        Self::Weight,
        Self::Proportional,
        Self::Steps,
        Self::Ranks,
        Self::StronglyCorrelated,
        Self::InverselyCorrelated,
        Self::WeaklyCorrelated,
        Self::RoundedUp,
        Self::TwoOffsets,
        Self::NextToNothing,
        Self::Uniform,
        Self::AnyMagnitude,
        Self::LargeTies,
        Self::Odd,
    ];

    /// Scores for items of these weights; `offset` is a weight, too.
    fn scores(self, weights: &[i64], offset: i64, random: &mut Random) -> Vec<f64> {
        let heaviest = weights.iter().copied().max().unwrap_or(1);
        let magnitude = random.pick(&[0.01, 1.0, 1e3, 1e6, 1e9, 1e12]);
        let score = |(position, &weight): (usize, &i64)| match self {
            Self::FiveLevels => random.pick(&[0.2, 0.4, 0.6, 0.8, 1.0]),
            Self::Constant => 0.5,
            Self::Weight => worth(weight),
            Self::Proportional => weight as f64 / heaviest as f64,
            Self::Steps => worth(weight / 4 * 1000),
            Self::Ranks => (weights.len() - position) as f64 / weights.len() as f64,
            Self::StronglyCorrelated => worth(weight + offset),
            Self::InverselyCorrelated => worth(weight - offset),
            Self::WeaklyCorrelated => worth(weight + random.within(0..=offset)),
            Self::RoundedUp => worth((weight + 2) / 3 * 3),
            Self::TwoOffsets if weight % 6 == 0 => worth(weight + offset),
            Self::TwoOffsets => worth(weight + offset / 2),
            Self::NextToNothing => worth(random.within(0..=2)),
            Self::Uniform => random.unit(),
            Self::AnyMagnitude => random.unit() * magnitude,
            Self::LargeTies => (weight + random.within(0..=2)) as f64 * magnitude,
            Self::Odd => {
                let usual = [random.unit(), worth(weight)];
                let odd = [f64::INFINITY, f64::NAN, -1.0, -0.0, 1e300, 9e14];
                random.pick(&[&usual[..], &usual[..], &odd[..]].concat())
            }
        };
        weights.iter().enumerate().map(score).collect()
    }
}

/// The score of this value.
fn worth(value: i64) -> f64 {
    (value as f64 + 0.5) / 10_000.0
}

/// Random knapsack problems.
trait RandomProblems {
    /// Returns a problem of any class, small for the most part.
    fn problem(&mut self) -> Problem;

    /// Returns a problem of a class, three times in four in the order of the Sort stage.
    fn problem_of(&mut self, class: Class, weights: Vec<i64>) -> Problem;

    /// Returns weights of any step within any range up to `heaviest`.
    fn weights(&mut self, count: i64, heaviest: i64) -> Vec<i64>;
}

impl RandomProblems for Random {
    fn problem(&mut self) -> Problem {
        let class = self.pick(&Class::ALL);
        let (most_items, most_cells) = match self.within(1..=40) {
            1 => (250, 1_000_000),
            2..8 => (60, 100_000),
            _ => (16, 10_000),
        };
        let count = self.within(1..=most_items);
        let heaviest = self.pick(&[3, 8, 12, 40, 100, 300, 900]);
        let bucket_size = self.pick(&[1, 1, 1, 2, 7, 10]);
        let weights = self.weights(count, heaviest);
        let mut problem = self.problem_of(class, weights);
        let all: i64 = problem.items.iter().map(|(tokens, _)| tokens).sum();
        let most_target = (all + all / 10 + 1).min(most_cells / count * bucket_size);
        problem.target = self.within(0..=most_target);
        problem.bucket_size = bucket_size;
        if self.within(1..=4) == 1 {
            for (tokens, _) in &mut problem.items {
                *tokens = self.pick(&[*tokens, *tokens, *tokens, 0, -*tokens]);
            }
        }
        problem
    }

    fn problem_of(&mut self, class: Class, weights: Vec<i64>) -> Problem {
        let heaviest = weights.iter().copied().max().unwrap_or(1);
        let offset = self.within(1..=heaviest);
        let scores = class.scores(&weights, offset, self);
        let mut items: Vec<_> = weights.into_iter().zip(scores).collect();
        if self.within(1..=4) > 1 {
            sort(&mut items);
        }
        let target = items.iter().map(|(tokens, _)| tokens).sum::<i64>() / 3;
        Problem {
            items,
            target,
            bucket_size: 1,
        }
    }

    fn weights(&mut self, count: i64, heaviest: i64) -> Vec<i64> {
        let lightest = self.within(1..=heaviest);
        let step = self.pick(&[1, 1, 1, 2, 3, 5]);
        let weights = (0..count).map(|_| self.within(lightest..=heaviest) * step);
        weights.collect()
    }
}

/// In the order of the Sort stage.
fn sort(items: &mut [(i64, f64)]) {
    items.sort_by(|(_, a), (_, b)| {
        let by_score = b.partial_cmp(a);
        by_score.unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
    });
}

/// Compares a way to choose with the literal one on random problems, 200 per case.
fn check(default_cases: u32, seed: u64, choice: impl Fn(&Problem) -> Vec<usize>) {
    let mut random = Random::new(seed);
    for _ in 0..200 * cases(default_cases) {
        let problem = random.problem();
        let is_wrong = |problem: &Problem| choice(problem) != problem.literal_choice();
        if is_wrong(&problem) {
            let problem = problem.shrunk(is_wrong);
            let (chosen, expected) = (choice(&problem), problem.literal_choice());
            panic!("chose {chosen:?} instead of {expected:?} from {problem:?}");
        }
    }
}

// proves: KNAP-3, KNAP-4, KNAP-6, KNAP-7, KNAP-8, KNAP-9, KNAP-10, KNAP-11, KNAP-12, R009, R010, R061, R063
#[test]
fn choices_are_those_of_the_literal_table() {
    check(200, 1, Problem::choice);
}

/// Three items of 1 to 3 tokens and values of 1 to 4 in any order, with every target.
// proves: KNAP-9, KNAP-11
#[test]
fn choices_of_all_small_problems_are_those_of_the_literal_table() {
    let kinds: Vec<(i64, f64)> = (0..12)
        .map(|kind| (1 + kind % 3, worth(1 + kind / 3)))
        .collect();
    for items in kinds.iter().flat_map(|a| kinds.iter().map(move |b| (a, b))) {
        for third in &kinds {
            for target in 0..=9 {
                let problem = Problem {
                    items: vec![*items.0, *items.1, *third],
                    target,
                    bucket_size: 1,
                };
                assert_eq!(problem.choice(), problem.literal_choice(), "{problem:?}");
            }
        }
    }
}

/// The core grows from 32 rows to four times as many and a few more: to all of them, or almost all.
// proves: KNAP-9, KNAP-11
#[test]
fn choices_from_about_as_many_items_as_the_second_core_has() {
    let mut random = Random::new(3);
    for count in 130..=150 {
        for class in Class::ALL {
            let weights = random.weights(count, 40);
            let problem = random.problem_of(class, weights);
            assert_eq!(problem.choice(), problem.literal_choice(), "{problem:?}");
        }
    }
}

/// The choice with no more memory than it takes.
fn choice_within_least_memory(problem: &Problem) -> Vec<usize> {
    let mut bytes = 256;
    loop {
        match problem.choice_of(problem.knapsack().memory_limit(bytes)) {
            Ok(choice) => return choice,
            Err(CupelError::TableOverLimit { cells, limit }) => {
                assert!(
                    cells > limit && limit == bytes as u64 * 8,
                    "{cells} {limit}"
                );
                bytes += bytes / 8;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

// proves: KNAP-9, KNAP-11, KNAP-18
#[test]
fn choices_within_little_memory_are_those_of_the_literal_table() {
    check(50, 2, choice_within_least_memory);
}

// proves: KNAP-9, KNAP-11
#[test]
fn choices_from_many_items_are_those_of_the_literal_table() {
    let mut random = Random::new(3);
    for class in Class::ALL {
        let weights = random.weights(500, 100);
        let mut problem = random.problem_of(class, weights);
        problem.target = problem.target.min(20_000);
        let expected = problem.literal_choice();
        assert_eq!(problem.choice(), expected, "{class:?}");
        assert_eq!(choice_within_least_memory(&problem), expected, "{class:?}");
    }
}

/// Collects the changes of a sweep.
#[derive(Default)]
struct Changes(Vec<(i64, Vec<usize>)>);

impl SweepVisitor for Changes {
    fn change(&mut self, target: i64, ranks: &[usize], views: &[ViewChange]) -> ControlFlow<()> {
        assert!(views.is_empty());
        self.0.push((target, ranks.to_vec()));
        ControlFlow::Continue(())
    }

    fn fail(&mut self, target: i64, error: CupelError) {
        panic!("{target}: {error}");
    }
}

// proves: KNAP-9, KNAP-11
#[test]
fn one_sweep_chooses_as_the_literal_table_for_every_target() {
    let mut random = Random::new(4);
    for _ in 0..300 {
        let class = random.pick(&Class::ALL);
        let weights = random.weights(12, 20);
        let mut problem = random.problem_of(class, weights);
        problem.bucket_size = random.pick(&[1, 2, 7]);
        if let Some(first) = problem.items.first_mut() {
            first.0 = 0;
        }
        let first = random.within(0..=problem.target);
        let last = random.within(first..=2 * problem.target);
        let scored = problem.scored();
        let ranked = ScoredRef::from_list(&scored);
        let knapsack = problem.knapsack();
        let changes = |knapsack: KnapsackSlice| {
            let mut changes = Changes::default();
            let flow = knapsack.sweep(&ranked, first..=last, &mut changes);
            assert_eq!(flow, Some(ControlFlow::Continue(())));
            changes.0
        };
        let changed = changes(knapsack);
        assert_eq!(changed, changes(knapsack.memory_limit(1 << 20)));
        let mut steps = changed.iter().peekable();
        let mut kept: BTreeSet<usize> = BTreeSet::new();
        for target in first..=last {
            problem.target = target;
            let expected: BTreeSet<usize> = problem.literal_choice().into_iter().collect();
            let before = kept.clone();
            if let Some((_, changes)) = steps.next_if(|step| step.0 == target) {
                for &rank in changes {
                    if !kept.remove(&rank) {
                        kept.insert(rank);
                    }
                }
                assert!(target == first || kept != before, "{problem:?}");
            }
            assert_eq!(kept, expected, "{problem:?}");
        }
        assert_eq!(steps.next(), None);
    }
}

// proves: KNAP-18, R064
#[test]
fn what_is_refused_does_not_depend_on_what_could_be_solved() {
    // All items have one size: scaled by it, the table has a capacity of 1.
    let problem = Problem {
        items: vec![(600_000, 0.5); 100],
        target: 1_000_000,
        bucket_size: 1,
    };
    let error = CupelError::TableTooLarge {
        candidates: 100,
        capacity: 1_000_000,
        cells: 100_000_100,
    };
    assert_eq!(problem.choice_of(problem.knapsack()), Err(error));
    let knapsack = problem.knapsack().memory_limit(1 << 12);
    assert_eq!(problem.choice_of(knapsack), Ok(vec![0]));
}

#[test]
fn ten_thousand_items_in_a_million_tokens_need_little_memory() {
    let mut random = Random::new(5);
    for class in [Class::FiveLevels, Class::Ranks, Class::Uniform] {
        let weights = (0..10_000).map(|_| random.within(20..=1_500)).collect();
        let mut problem = random.problem_of(class, weights);
        problem.target = 1_000_000;
        sort(&mut problem.items);
        let choice_within = |bytes| problem.choice_of(problem.knapsack().memory_limit(bytes));
        let choice = choice_within(8 << 20).unwrap();
        let tokens: i64 = choice.iter().map(|&rank| problem.items[rank].0).sum();
        assert!(
            (999_000..=1_000_000).contains(&tokens),
            "{class:?}: {tokens}"
        );
        assert_eq!(choice_within(3 << 20), Ok(choice), "{class:?}");
    }
}

#[test]
fn the_last_limit_counts_and_is_shown() {
    let knapsack = KnapsackSlice::new(10).unwrap();
    let shown = |knapsack: KnapsackSlice| format!("{knapsack:?}");
    assert_eq!(shown(knapsack), "KnapsackSlice { bucket_size: 10 }");
    assert_eq!(knapsack.memory_limit(1).cell_limit(0), knapsack);
    assert_ne!(knapsack.memory_limit(1), knapsack);
    assert_eq!(
        shown(knapsack.cell_limit(60_000_000).memory_limit(4096)),
        "KnapsackSlice { bucket_size: 10, memory_limit: 4096 }"
    );
    assert_eq!(
        shown(knapsack.memory_limit(4096).cell_limit(60_000_000)),
        "KnapsackSlice { bucket_size: 10, cell_limit: 60000000 }"
    );
}
