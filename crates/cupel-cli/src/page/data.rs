//! The data of the page.

use std::ops::RangeInclusive;

use cupel::{
    BudgetSweep, ContextBudget, ContextItem, ContextKind, CupelError, Decisions, End,
    ItemIntervals, Pipeline, PipelineStage, PlacementRule, ScorePart, total_tokens,
};
use serde::{Serialize, Serializer};

use crate::text::grouped;

/// Everything the page needs. Candidates are named by their positions in the input.
#[derive(Serialize)]
pub(super) struct PageData<'a> {
    title: &'a str,
    budget: Budget<'a>,
    /// Whether the window is known at every budget up to `last`. If not, it is known at the first
    /// budget of every step.
    exact: bool,
    /// The last budget of the sweep.
    last: Int,
    /// The first budget of every step. The window is the same up to the next step.
    steps: Vec<Int>,
    failures: Vec<Failure>,
    kinds: Vec<&'a str>,
    /// `None` if the placer has no rule. Then only the order at the given budget is known.
    order: Option<Order>,
    /// All candidates, best score first: the order in which excluded ones are listed.
    by_score: Vec<usize>,
    /// How many candidates are ranked.
    ranked: usize,
    /// The distinct scorer trees; items refer to them by index.
    scorers: Vec<Vec<ScorerNode>>,
    items: Vec<Item<'a>>,
}

#[derive(Serialize)]
struct Budget<'a> {
    target: Int,
    max: Int,
    reserve: Int,
    slots: Vec<(&'a str, Int)>,
    margin: Float,
}

/// Budgets without a window.
#[derive(Serialize)]
struct Failure {
    from: Int,
    to: Int,
    why: String,
}

#[derive(Serialize)]
struct Item<'a> {
    text: &'a str,
    /// The index in `kinds`.
    kind: usize,
    tokens: Int,
    score: Float,
    /// The index in `scorers`, and the scores in that order.
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<(usize, Vec<Float>)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<usize>,
    pinned: bool,
    /// The position in the window at the given budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<usize>,
    /// Why the item is out at the given budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Whether the reason holds at every budget.
    always: bool,
    /// The tokens of its view, if the item is shortened at the given budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    shortened: Option<Int>,
    /// The budgets that include the item.
    intervals: Vec<(Int, Int)>,
    /// The budgets that include a view of the item, with the tokens of the view.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    views: Vec<(Int, Int, Int)>,
    facts: Vec<(&'a str, String)>,
}

/// A scorer in a tree of scorers, in preorder.
#[derive(Serialize, PartialEq)]
struct ScorerNode {
    depth: usize,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    weight: Option<Float>,
}

/// The placer's rule for the order of any window: its members take, in the order of the sequence, the
/// first or the last free place.
#[derive(Serialize)]
struct Order {
    sequence: Vec<usize>,
    /// One character per member: `f` takes the first free place, `b` the last.
    ends: String,
}

impl Order {
    fn new(rule: &PlacementRule) -> Self {
        let end = |number| match rule.end(number) {
            End::Front => 'f',
            End::Back => 'b',
        };
        let sequence = rule.sequence().to_vec();
        Self {
            ends: (0..sequence.len()).map(end).collect(),
            sequence,
        }
    }
}

impl<'a> PageData<'a> {
    pub(super) fn new(
        title: &'a str,
        items: &'a [ContextItem],
        budget: &'a ContextBudget,
        pipeline: &Pipeline,
    ) -> Result<Self, CupelError> {
        let decisions = pipeline.decide(items, budget)?;
        let parts = decisions.score_parts()?;
        let samples = (CANDIDATE_RUNS / items.len().max(1)).clamp(64, Pipeline::SWEEP_SAMPLES);
        let targets = targets(items, budget);
        let last = *targets.end();
        let sweep = pipeline.sweep_sampled(items, budget, targets, samples)?;
        let mut kinds: Vec<&ContextKind> = items.iter().map(ContextItem::kind).collect();
        kinds.sort();
        kinds.dedup();
        let mut scorers = Vec::new();
        let items_of_page = parts.iter().zip(&sweep.items).enumerate();
        let items_of_page = items_of_page.map(|(index, (parts, swept))| {
            let kind = kinds.iter().position(|kind| *kind == items[index].kind());
            let parts = parts.as_ref().map(|parts| flat(parts, &mut scorers));
            Item::new(&decisions, index, parts, kind, swept)
        });
        Ok(Self {
            title,
            budget: Budget::new(budget),
            exact: sweep.exact,
            last: Int(last),
            steps: sweep.steps.iter().map(|step| Int(step.from)).collect(),
            failures: failures(&sweep, items),
            items: items_of_page.collect(),
            kinds: kinds.iter().map(|kind| kind.as_str()).collect(),
            order: decisions.placement_rule().as_ref().map(Order::new),
            by_score: by_score(&decisions),
            ranked: decisions.ranking().len(),
            scorers,
        })
    }

    /// Returns the data as JSON that no text of an item can break out of a script element.
    pub(super) fn to_json(&self) -> String {
        let json = serde_json::to_string(self).expect("the data holds nothing JSON cannot say");
        json.replace('<', "\\u003c")
    }
}

/// The limit of candidates times budgets that are tried one by one.
const CANDIDATE_RUNS: usize = 4_000_000;

/// Returns the budgets of the slider: up to the first that includes everything, at most four times
/// the budget.
fn targets(items: &[ContextItem], budget: &ContextBudget) -> RangeInclusive<i64> {
    let tokens = |pinned: bool| -> i128 {
        let items = items
            .iter()
            .filter(|item| item.pinned() == pinned && item.tokens() > 0);
        items.map(|item| i128::from(item.tokens())).sum()
    };
    let gap = budget.max_tokens() - budget.target_tokens();
    let slots = i128::from(budget.total_reserved()) - i128::from(budget.output_reserve());
    let share = 1.0 - budget.estimation_safety_margin_percent() / 100.0;
    #[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
    let others = (tokens(false) as f64 / share).ceil() as i128;
    let everything = tokens(true)
        .saturating_add(others)
        .saturating_add(slots)
        .saturating_add(i128::from((budget.output_reserve() - gap).max(0)));
    let target = i128::from(budget.target_tokens());
    let last = everything.min(4 * target.max(250)).max(target);
    // Both limits of every budget stay below the largest number.
    let last = last.min(i128::from(i64::MAX - 1 - gap));
    0..=i64::try_from(last).unwrap_or(budget.target_tokens())
}

impl<'a> Budget<'a> {
    fn new(budget: &'a ContextBudget) -> Self {
        let slots = budget.reserved_slots().iter();
        let mut slots: Vec<_> = slots
            .map(|(kind, tokens)| (kind.as_str(), Int(*tokens)))
            .collect();
        slots.sort_by_key(|(kind, _)| *kind);
        Self {
            target: Int(budget.target_tokens()),
            max: Int(budget.max_tokens()),
            reserve: Int(budget.output_reserve()),
            slots,
            margin: Float(budget.estimation_safety_margin_percent()),
        }
    }
}

impl<'a> Item<'a> {
    fn new(
        decisions: &Decisions<'a>,
        index: usize,
        parts: Option<(usize, Vec<Float>)>,
        kind: Option<usize>,
        swept: &ItemIntervals,
    ) -> Self {
        let item = &decisions.items()[index];
        let shortened = decisions
            .view(index)
            .map(|view| item.views()[view].tokens());
        let intervals = swept.intervals.iter();
        let views = swept.views.iter().map(|view| {
            let tokens = item.views()[view.view].tokens();
            (Int(view.from), Int(view.to), Int(tokens))
        });
        Self {
            text: item.content(),
            kind: kind.unwrap_or_default(),
            tokens: Int(item.tokens()),
            score: Float(decisions.score(index)),
            parts,
            rank: decisions.rank(index),
            pinned: item.pinned(),
            position: decisions.position(index),
            reason: decisions.phrase(index),
            always: decisions
                .stage(index)
                .is_some_and(|stage| stage < PipelineStage::Slice),
            shortened: shortened.map(Int),
            intervals: intervals.map(|&(from, to)| (Int(from), Int(to))).collect(),
            views: views.collect(),
            facts: facts(item, decisions.copy_of(index)),
        }
    }
}

/// Returns the index of a scorer tree in `scorers`, and the scores in preorder.
fn flat(root: &ScorePart, scorers: &mut Vec<Vec<ScorerNode>>) -> (usize, Vec<Float>) {
    fn walk(part: &ScorePart, depth: usize, nodes: &mut Vec<ScorerNode>, scores: &mut Vec<Float>) {
        nodes.push(ScorerNode {
            depth,
            name: part.scorer.clone(),
            weight: part.weight.map(Float),
        });
        scores.push(Float(part.score));
        for part in &part.parts {
            walk(part, depth + 1, nodes, scores);
        }
    }
    let (mut nodes, mut scores) = (Vec::new(), Vec::new());
    walk(root, 0, &mut nodes, &mut scores);
    let known = scorers.iter().position(|known| *known == nodes);
    let shape = known.unwrap_or_else(|| {
        scorers.push(nodes);
        scorers.len() - 1
    });
    (shape, scores)
}

/// Returns the other fields of an item.
fn facts(item: &ContextItem, copy_of: Option<usize>) -> Vec<(&str, String)> {
    let mut facts = vec![("source", item.source().to_string())];
    let mut add = |name, value: Option<String>| facts.extend(value.map(|value| (name, value)));
    add("duplicate of", copy_of.map(|index| format!("#{index}")));
    add("time", item.timestamp().map(|time| time.to_rfc3339()));
    add(
        "priority",
        item.priority().map(|priority| priority.to_string()),
    );
    add(
        "tags",
        Some(item.tags().join(", ")).filter(|tags| !tags.is_empty()),
    );
    add(
        "relevance hint",
        item.future_relevance_hint().map(|hint| hint.to_string()),
    );
    add(
        "tokens before shortening",
        item.original_tokens().map(|tokens| tokens.to_string()),
    );
    let metadata = item.metadata().iter();
    let mut metadata: Vec<_> = metadata
        .map(|(key, value)| (key.as_str(), value.clone()))
        .collect();
    metadata.sort();
    facts.extend(metadata);
    facts
}

fn failures(sweep: &BudgetSweep, items: &[ContextItem]) -> Vec<Failure> {
    let pinned = items
        .iter()
        .filter(|item| item.pinned() && item.tokens() > 0);
    let pinned = total_tokens(pinned);
    let failing = sweep
        .steps
        .iter()
        .filter_map(|step| Some((step, step.error?)));
    failing
        .map(|(step, code)| Failure {
            from: Int(step.from),
            to: Int(step.to),
            why: match code {
                "InvalidBudget" => "the output reserve exceeds the budget".to_owned(),
                "PinnedExceedsBudget" => {
                    format!("the pinned items alone need {} tokens", grouped(pinned))
                }
                "Overflow" => {
                    "the selection exceeds the budget, and the policy does not accept an overflow"
                        .to_owned()
                }
                "TableTooLarge" => "the knapsack table is too large".to_owned(),
                code => format!("the run ends with {code}"),
            },
        })
        .collect()
}

/// Returns the candidates in the order of a report's exclusions: by score, stage and position.
fn by_score(decisions: &Decisions<'_>) -> Vec<usize> {
    let mut candidates: Vec<usize> = (0..decisions.items().len()).collect();
    let stage = |candidate: usize| decisions.stage(candidate).unwrap_or(PipelineStage::Slice);
    candidates.sort_by(|&a, &b| {
        let (left, right) = (decisions.score(a), decisions.score(b));
        let by_score = right.partial_cmp(&left);
        let by_score = by_score.unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()));
        by_score.then_with(|| stage(a).cmp(&stage(b)))
    });
    candidates
}

/// An integer that a binary64 reader keeps exact: beyond 2^53 it is a string.
#[derive(Clone, Copy)]
struct Int(i64);

impl Serialize for Int {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const LARGEST_SAFE: u64 = (1 << 53) - 1;
        if self.0.unsigned_abs() <= LARGEST_SAFE {
            serializer.serialize_i64(self.0)
        } else {
            serializer.collect_str(&self.0)
        }
    }
}

/// A number; one that is not finite is a string that JavaScript parses.
#[derive(Clone, Copy, PartialEq)]
struct Float(f64);

impl Serialize for Float {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_finite() {
            serializer.serialize_f64(self.0)
        } else if self.0.is_nan() {
            serializer.serialize_str("NaN")
        } else if self.0 > 0.0 {
            serializer.serialize_str("Infinity")
        } else {
            serializer.serialize_str("-Infinity")
        }
    }
}
