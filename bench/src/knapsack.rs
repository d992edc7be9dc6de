//! Knapsack instances, and the specification's dynamic program, transcribed.

use crate::generator::Random;

/// How the scores of an instance depend on tokens, which makes it easy or hard (Pisinger 2005).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// Ranks, all different.
    Recency,
    /// Ranks, priorities and kinds at 0.5, 0.3 and 0.2.
    Composite,
    /// Five levels.
    Kind,
    /// A hundred levels, and none for three in ten.
    Priority,
    /// Exponential decay over ten half-lives.
    Decay,
    Equal,
    /// Tokens plus or minus up to a tenth of the largest.
    Weak,
    /// Tokens plus a constant.
    Strong,
    /// Tokens minus a constant.
    Inverse,
    /// In proportion to tokens, then rounded down.
    Proportional,
    /// Tokens.
    SubsetSum,
    /// Ten levels by tokens.
    Levels,
    /// Even tokens plus a constant.
    Even,
    /// Tokens rounded up to a multiple of three.
    Ceiling,
}

impl Class {
    pub(crate) const ALL: [Self; 14] = [
        Self::Recency,
        Self::Composite,
        Self::Kind,
        Self::Priority,
        Self::Decay,
        Self::Equal,
        Self::Weak,
        Self::Strong,
        Self::Inverse,
        Self::Proportional,
        Self::SubsetSum,
        Self::Levels,
        Self::Even,
        Self::Ceiling,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Recency => "recency",
            Self::Composite => "composite",
            Self::Kind => "5-levels",
            Self::Priority => "priority",
            Self::Decay => "decay",
            Self::Equal => "all-equal",
            Self::Weak => "weakly-correlated",
            Self::Strong => "strongly-correlated",
            Self::Inverse => "inverse-correlated",
            Self::Proportional => "proportional",
            Self::SubsetSum => "subset-sum",
            Self::Levels => "10-levels-by-tokens",
            Self::Even => "even-weights",
            Self::Ceiling => "profit-ceiling",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    /// Returns scores and tokens of `count` items of 20 to 1500 tokens, highest score first. The class
    /// `Inverse` starts at 170 tokens, so that scores stay positive.
    pub(crate) fn instance(self, count: usize) -> Instance {
        let mut random = Random::new(0x4b4a_0000 + count as u64);
        let ranks = random.permutation(count);
        let item = |rank: u32| {
            let tokens = match self {
                Self::Even => random.within(10, 750) * 2,
                Self::Inverse => random.within(170, 1_500),
                _ => random.within(20, 1_500),
            };
            (self.score(&mut random, rank, count, tokens), tokens)
        };
        let mut items: Instance = ranks.into_iter().map(item).collect();
        items.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        items
    }

    fn score(self, random: &mut Random, rank: u32, count: usize, tokens: i64) -> f64 {
        // A score whose value in the dynamic program is exactly `value`.
        let worth = |value: i64| (value as f64 + 0.5) / 10_000.0;
        let recency = f64::from(rank) / (count.max(2) - 1) as f64;
        let kind = (1 + random.below(5)) as f64 / 5.0;
        let level = random.within(0, 99) as f64 / 99.0;
        let priority = if random.below(10) < 7 { level } else { 0.0 };
        match self {
            Self::Recency => recency,
            Self::Composite => 0.5 * recency + 0.3 * priority + 0.2 * kind,
            Self::Kind => kind,
            Self::Priority => priority,
            Self::Decay => 0.5_f64.powf(recency * 10.0),
            Self::Equal => 0.5,
            Self::Weak => worth((tokens + random.within(-150, 150)).max(1)),
            Self::Strong | Self::Even => worth(tokens + 150),
            Self::Inverse => worth(tokens - 150),
            Self::Proportional => tokens as f64 / 1_500.0,
            Self::SubsetSum => worth(tokens),
            Self::Levels => (tokens / 150) as f64 / 10.0,
            Self::Ceiling => worth((tokens + 2) / 3 * 3),
        }
    }
}

/// Scores and tokens, highest score first unless said otherwise.
pub(crate) type Instance = Vec<(f64, i64)>;

/// Returns an instance with scores uniform in `[0, 1)`, for the comparison with the published slicer.
pub(crate) fn uniform(count: usize) -> Instance {
    let mut random = Random::new(0x0001_f02d + count as u64);
    let items = (0..count).map(|_| (random.unit(), random.within(20, 1_500)));
    let mut items: Instance = items.collect();
    items.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    items
}

/// Returns the ranks that the specification's dynamic program selects, in the order it emits them. The
/// table of kept cells has a bit per cell; nothing else differs from the text.
pub(crate) fn specified(instance: &[(f64, i64)], target: i64, bucket: i64) -> Vec<usize> {
    if target <= 0 {
        return Vec::new();
    }
    let tokens = |rank: &usize| instance[*rank].1;
    let ranks = || 0..instance.len();
    let mut selected: Vec<usize> = ranks().filter(|rank| tokens(rank) == 0).collect();
    let candidates: Vec<usize> = ranks().filter(|rank| tokens(rank) > 0).collect();
    let capacity = index(target / bucket);
    if candidates.is_empty() || capacity == 0 {
        return selected;
    }
    let weights: Vec<usize> = candidates
        .iter()
        .map(|rank| index((tokens(rank) + bucket - 1) / bucket))
        .collect();
    let mut best = vec![0_u64; capacity + 1];
    let words = (capacity + 1).div_ceil(64);
    let mut keep = vec![0_u64; candidates.len() * words];
    for (row, (&rank, &weight)) in candidates.iter().zip(&weights).enumerate() {
        let value = value(instance[rank].0);
        let keep = &mut keep[row * words..][..words];
        for at in (weight..=capacity).rev() {
            let with_item = best[at - weight] + value;
            if with_item > best[at] {
                best[at] = with_item;
                keep[at / 64] |= 1 << (at % 64);
            }
        }
    }
    let mut left = capacity;
    for row in (0..candidates.len()).rev() {
        if keep[row * words + left / 64] >> (left % 64) & 1 == 1 {
            selected.push(candidates[row]);
            left -= weights[row];
        }
    }
    selected
}

/// Returns the value of a score in the dynamic program.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "scores are small and not negative"
)]
pub(crate) fn value(score: f64) -> u64 {
    (score * 10_000.0).floor().max(0.0) as u64
}

fn index(count: i64) -> usize {
    usize::try_from(count).unwrap_or(0)
}

/// Returns a small instance with many ties, sorted or not.
pub(crate) fn fuzz(random: &mut Random) -> (Instance, i64, i64) {
    // One in a hundred is large enough for the solver's other code paths.
    let (count, heaviest) = match random.below(100) {
        0 => (50 + random.below(200), 300),
        _ => (1 + random.below(20), [6, 12, 40][random.below(3)]),
    };
    let shape = random.below(9);
    let mut item = || {
        let tokens = random.within(0, heaviest);
        let score = match shape {
            0 => (1 + random.below(5)) as f64 / 5.0,
            1 => 0.5,
            2 => (tokens as f64 + 0.5) / 10_000.0,
            3 => random.unit(),
            4 => tokens as f64 / heaviest as f64,
            5 => ((tokens + heaviest / 10) as f64 + 0.5) / 10_000.0,
            6 => (tokens * 10 / heaviest) as f64 / 10.0,
            7 => random.below(3) as f64 / 20_000.0,
            _ => ((tokens + 2) / 3 * 3) as f64 / 1_000.0,
        };
        (score, tokens)
    };
    let mut instance: Instance = (0..count).map(|_| item()).collect();
    if random.below(2) == 0 {
        instance.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    }
    let total: i64 = instance.iter().map(|(_, tokens)| tokens).sum();
    let target = random.within(0, total + 2);
    let bucket = [1, 1, 2, 7][random.below(4)];
    (instance, target, bucket)
}
