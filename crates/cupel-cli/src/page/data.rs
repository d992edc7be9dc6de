//! The data of the page.

use std::ops::RangeInclusive;

use cupel::{
    BudgetSweep, ContextBudget, ContextItem, ContextKind, Decisions, ExclusionReason,
    ItemIntervals, Pipeline, PipelineStage, PlacementRule, ScorePart, WindowEnd,
};
use cupel_app::{Error, enough};
use serde::Serialize;

use super::chat::{ChatPart, MarkersFrom, MessageFields};
use super::cuts::{CutsFrom, SharedFrom};
use super::lines::Lines;
use super::number::{Float, Int};
use super::{About, Subject};

/// Everything the page needs. Candidates are named by their positions in the input.
#[derive(Serialize)]
pub(super) struct PageData<'a> {
    title: &'a str,
    about: &'a About,
    budget: Budget<'a>,
    /// The tokens of the request overhead; 0 for items.
    overhead: Int,
    /// Whether the candidates are the messages of a chat.
    is_chat: bool,
    /// Whether the window is known at every budget up to `last`. If not, it is known at the first
    /// budget of every step.
    exact: bool,
    /// The least budget with a window.
    least: Int,
    /// The last budget of the sweep.
    last: Int,
    /// The first budget of every step. The window is the same up to the next step.
    steps: Vec<Int>,
    failures: Vec<Failure>,
    /// The roles of messages or the kinds of items.
    labels: Vec<Label>,
    /// `None` if the placer has no rule. Then only the order at the given budget is known.
    order: Option<Order>,
    /// The messages in the place of dropped ones, from each budget at which they change.
    markers: Vec<MarkersFrom>,
    /// The cuts of a replay, from each budget at which they change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cuts: Vec<CutsFrom>,
    /// The prefix that the window shares with the one of the previous request, from each budget at which it changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shared: Vec<SharedFrom>,
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

/// A role or a kind.
#[derive(Serialize, PartialEq, Eq, PartialOrd, Ord, Clone)]
struct Label {
    /// The color: one per author of a message, one per kind of an item.
    color: usize,
    name: String,
}

#[derive(Serialize)]
struct Item<'a> {
    #[serde(flatten)]
    message: MessageFields<'a>,
    /// The index in `labels`.
    label: usize,
    tokens: Int,
    /// The tokens before the limit for tool results, if it shortened the message at every budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    original: Option<Int>,
    score: Float,
    /// The index in `scorers`, and the scores in that order.
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<(usize, Vec<Float>)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<usize>,
    /// The position in the window at the given budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<usize>,
    /// Why the item is out at the given budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Which cut of a replay shortened or dropped the message at the given budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut: Option<String>,
    /// Whether the reason holds at every budget.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    always: bool,
    /// The index in `forms`, if the item is shortened at the given budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    shortened: Option<usize>,
    /// The budgets that include the item.
    intervals: Vec<(Int, Int)>,
    /// The budgets that include a shorter form of the item, with its index in `forms`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    views: Vec<(Int, Int, usize)>,
    /// The shorter forms that some budget includes: their tokens, their texts, the level of the ladder that they were
    /// made for, which limits the text without the role, and which step of the ladder has the level; `None` for items.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    forms: Vec<(Int, Vec<Lines>, Int, Option<String>)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
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
            WindowEnd::Front => 'f',
            WindowEnd::Back => 'b',
        };
        let sequence = rule.sequence().to_vec();
        Self {
            ends: (0..sequence.len()).map(end).collect(),
            sequence,
        }
    }

    /// Returns the rule of a chat: its messages are never reordered.
    fn of_input(len: usize) -> Self {
        Self {
            sequence: (0..len).collect(),
            ends: String::new(),
        }
    }
}

impl<'a> PageData<'a> {
    pub(super) fn new(subject: &'a Subject<'a>) -> Result<Self, Error> {
        let Subject {
            items,
            budget,
            pipeline,
            chat,
            ..
        } = subject;
        let decisions = match subject.prepared {
            Some(prepared) => prepared.decide()?,
            None => pipeline.decide(items, budget)?,
        };
        let parts = decisions.score_parts()?;
        let swept;
        let sweep = match subject.replayed {
            Some(replayed) => &replayed.sweep,
            None => {
                let tokens = items.iter().map(|item| (item.pinned(), item.tokens()));
                let targets = targets(enough(budget, tokens), budget);
                let samples = CANDIDATE_RUNS / items.len().max(1);
                let samples = samples.clamp(64, Pipeline::SWEEP_SAMPLES);
                swept = pipeline.sweep_sampled(items, budget, targets, samples)?;
                &swept
            }
        };
        let last = sweep.steps.last().map_or(0, |step| step.to);
        // The request overhead follows the messages.
        let len = chat.as_ref().map_or(items.len(), |chat| chat.chat.len());
        let labels = match chat {
            Some(chat) => Labels::of_roles(chat),
            None => Labels::of_kinds(items),
        };
        let mut scorers = Vec::new();
        let mut page_items = Vec::with_capacity(len);
        for (index, &label) in labels.of.iter().enumerate() {
            let parts = parts[index].as_ref();
            page_items.push(Item {
                parts: parts.map(|parts| flat(parts, &mut scorers)),
                ..Item::new(subject, &decisions, index, label, &sweep.items[index])
            });
        }
        let chat_part = chat.as_ref();
        let target = budget.target_tokens();
        let markers = chat_part.map(|chat| match subject.replayed {
            Some(replayed) => MarkersFrom::of(replayed),
            None => chat.markers(sweep, target, &decisions),
        });
        let cuts = subject.replayed.map(CutsFrom::of);
        let shared = subject.replayed.zip(subject.before);
        let shared = shared.map(|(replayed, before)| SharedFrom::of(replayed, before));
        let least = sweep.steps.iter().find(|step| step.error.is_none());
        Ok(Self {
            title: subject.title,
            about: &subject.about,
            budget: Budget::new(budget),
            overhead: Int(items[len..].iter().map(ContextItem::tokens).sum()),
            is_chat: chat.is_some(),
            exact: sweep.exact,
            least: Int(least.map_or(budget.target_tokens(), |step| step.from)),
            last: Int(last),
            steps: sweep.steps.iter().map(|step| Int(step.from)).collect(),
            failures: failures(sweep, chat.is_some()),
            items: page_items,
            labels: labels.distinct,
            order: match chat {
                Some(_) => Some(Order::of_input(len)),
                None => decisions.placement_rule().as_ref().map(Order::new),
            },
            markers: markers.unwrap_or_default(),
            cuts: cuts.unwrap_or_default(),
            shared: shared.unwrap_or_default(),
            by_score: by_score(&decisions, len),
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
pub(super) fn targets(enough: i64, budget: &ContextBudget) -> RangeInclusive<i64> {
    let target = budget.target_tokens();
    let last = enough.min(target.max(250).saturating_mul(4)).max(target);
    // Both limits of every budget stay below the largest number.
    let gap = budget.max_tokens() - target;
    0..=last.min(i64::MAX - 1 - gap)
}

/// The labels of the candidates.
struct Labels {
    distinct: Vec<Label>,
    /// The index in `distinct`, by candidate.
    of: Vec<usize>,
}

impl Labels {
    fn of_kinds(items: &[ContextItem]) -> Self {
        let mut kinds: Vec<&ContextKind> = items.iter().map(ContextItem::kind).collect();
        kinds.sort();
        kinds.dedup();
        let find = |item: &ContextItem| kinds.binary_search(&item.kind()).unwrap_or_default();
        let label = |(color, kind): (usize, &&ContextKind)| Label {
            color,
            name: kind.to_string(),
        };
        Self {
            of: items.iter().map(find).collect(),
            distinct: kinds.iter().enumerate().map(label).collect(),
        }
    }

    fn of_roles(chat: &ChatPart<'_>) -> Self {
        let label = |index| {
            let (color, name) = chat.role(index);
            Label { color, name }
        };
        let labels: Vec<Label> = (0..chat.chat.len()).map(label).collect();
        let mut distinct = labels.clone();
        distinct.sort();
        distinct.dedup();
        let find = |label: &Label| distinct.binary_search(label).unwrap_or_default();
        Self {
            of: labels.iter().map(find).collect(),
            distinct,
        }
    }
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
        subject: &'a Subject<'a>,
        decisions: &Decisions<'_>,
        index: usize,
        label: usize,
        swept: &ItemIntervals,
    ) -> Self {
        let item = &subject.items[index];
        let (message, facts) = match &subject.chat {
            Some(chat) => (chat.message(index, item), chat.facts(index, item)),
            None => (
                MessageFields::of_item(item),
                facts(item, decisions.copy_of(index)),
            ),
        };
        let chat = subject.chat.as_ref();
        // The forms of a replay are views of candidates of its own.
        let given = match subject.replayed {
            Some(replayed) => replayed
                .sweep
                .view_at(index, subject.budget.target_tokens()),
            None => decisions.view(index),
        };
        let used = swept.views.iter().map(|view| view.view);
        let mut used: Vec<usize> = used.chain(given).collect();
        used.sort_unstable();
        used.dedup();
        let form = |view: usize| used.binary_search(&view).unwrap_or_default();
        let forms = used.iter().map(|&view| {
            let view = &item.views()[view];
            let lines = message.lines_of_view(view.content());
            let step = chat.map(|chat| chat.step(index, view.level()));
            (Int(view.tokens()), lines, Int(view.level()), step)
        });
        let views = swept.views.iter();
        let intervals = swept.intervals.iter();
        let is_before_slice = decisions
            .stage(index)
            .is_some_and(|stage| stage < PipelineStage::Slice);
        let is_filtered = matches!(
            decisions.exclusion(index),
            Some(ExclusionReason::Filtered { .. })
        );
        let position = decisions.position(index);
        Self {
            label,
            tokens: Int(item.tokens()),
            original: item
                .original_tokens()
                .filter(|tokens| chat.is_some() && *tokens > item.tokens())
                .map(Int),
            score: Float(decisions.score(index)),
            parts: None,
            rank: decisions.rank(index),
            position: match subject.chat {
                Some(_) => position.map(|_| index),
                None => position,
            },
            reason: match subject.prepared {
                Some(prepared) if position.is_none() => Some(prepared.why(decisions, index)),
                _ => decisions.phrase(index),
            },
            always: is_before_slice || (is_filtered && swept.intervals.is_empty()),
            cut: subject
                .prepared
                .and_then(|it| it.cut_words(decisions, index)),
            shortened: given.map(form),
            intervals: intervals.map(|&(from, to)| (Int(from), Int(to))).collect(),
            views: views
                .map(|view| (Int(view.from), Int(view.to), form(view.view)))
                .collect(),
            forms: forms.collect(),
            facts,
            message,
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

fn failures(sweep: &BudgetSweep, is_chat: bool) -> Vec<Failure> {
    let mandatory = if is_chat {
        "the mandatory messages do not fit"
    } else {
        "the pinned items do not fit"
    };
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
                "PinnedExceedsBudget" | "MandatoryExceedsBudget" => mandatory.to_owned(),
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

/// Returns the candidates before `len` in the order of a report's exclusions: by score, stage and
/// position.
fn by_score(decisions: &Decisions<'_>, len: usize) -> Vec<usize> {
    let mut candidates: Vec<usize> = (0..len).collect();
    let stage = |candidate: usize| decisions.stage(candidate).unwrap_or(PipelineStage::Slice);
    candidates.sort_by(|&a, &b| {
        let (left, right) = (decisions.score(a), decisions.score(b));
        let by_score = right.partial_cmp(&left);
        let by_score = by_score.unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()));
        by_score.then_with(|| stage(a).cmp(&stage(b)))
    });
    candidates
}
