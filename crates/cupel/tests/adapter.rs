//! Adapters of the library for the conformance runner: one per entry point.

use std::collections::{BTreeMap, HashMap};

use cupel::config::{ConfigErrorKind, Document, Format, PolicyConfig, ScorerConfig};
use cupel::*;
use cupel_conformance::model::{self, Channel, Observation, Task};
use cupel_conformance::{Adapter, Unsupported};
use serde_json::json;

/// An entry point of the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surface {
    /// `Scorer::score`, `Slicer::slice`, `Placer::place`, `Pipeline::run_indices`.
    Plain,
    /// `Scorer::score_all`, `Slicer::select`, `Placer::arrange`, `Pipeline::dry_run`.
    Batch,
    /// `Pipeline::run_traced` with a collector at level Stage.
    TracedStage,
    /// `Pipeline::run_traced` with a collector at level Item.
    TracedItem,
    /// `Policy::run_traced`, taking the report from the completion hook.
    Completion,
    /// `Policy::decide`: its report, which has to agree with its answers by position.
    Decisions,
    /// Strategies with only the required method of their trait, as custom ones have it.
    Custom,
    /// Items and budget written as JSON and read back, then `Pipeline::dry_run`.
    Json,
    /// The policy read from a document, then as `Batch`.
    Document,
}

impl Surface {
    pub(crate) const ALL: &[Self] = &[
        Self::Plain,
        Self::Batch,
        Self::TracedStage,
        Self::TracedItem,
        Self::Completion,
        Self::Decisions,
        Self::Custom,
        Self::Json,
        Self::Document,
    ];
}

impl Adapter for Surface {
    fn name(&self) -> &str {
        match self {
            Self::Plain => "plain",
            Self::Batch => "batch",
            Self::TracedStage => "traced (stage)",
            Self::TracedItem => "traced (item)",
            Self::Completion => "completion hook",
            Self::Decisions => "decisions",
            Self::Custom => "provided methods",
            Self::Json => "json",
            Self::Document => "document",
        }
    }

    fn channels(&self, task: &Task) -> &[Channel] {
        use Channel::{Events, Order, Overflow, Report, Scores, Selection, Shortfalls, Window};
        let calls_strategies =
            matches!(self.entry_point(), Self::Plain | Self::Batch | Self::Custom);
        match (task, self.entry_point()) {
            (Task::Run { .. }, Self::Plain | Self::Custom) => &[Window],
            (Task::Run { .. }, Self::Batch | Self::TracedItem | Self::Completion) => {
                &[Window, Report, Events, Overflow]
            }
            (Task::Run { .. }, Self::TracedStage) => &[Window, Report, Overflow],
            (Task::Run { .. }, Self::Decisions) => &[Window, Report],
            (Task::Run { .. }, Self::Json) => &[Window, Report, Events],
            (Task::Run { .. }, Self::Document) => unreachable!("its entry point is `Batch`"),
            _ if !calls_strategies => &[],
            (Task::Score { .. }, _) => &[Scores],
            (Task::Slice { .. }, Self::Batch) => &[Selection, Shortfalls],
            (Task::Slice { .. }, _) => &[Selection],
            (Task::Place { .. }, _) => &[Order],
        }
    }

    fn observe(&self, task: &Task) -> Result<Observation, Unsupported> {
        if self.channels(task).is_empty() {
            return Err(Unsupported("not declared".into()));
        }
        Ok(self.attempt(task).unwrap_or_else(Observation::Failed))
    }
}

impl Surface {
    fn attempt(self, task: &Task) -> Result<Observation, model::Failure> {
        Ok(match task {
            Task::Score { scorer, items } => {
                let items = all(items, item).map_err(construction)?;
                let scorer = self.config(&json!({ "scorer": scorer }))?.scorer.build();
                let scorer = scorer.expect("the policy is valid");
                let one_by_one = items.iter().map(|item| scorer.score(item, &items));
                Observation::Scores(match self.entry_point() {
                    Self::Plain => one_by_one.collect(),
                    Self::Batch => scorer.score_all(&items).map_err(run)?,
                    Self::Custom => Legacy(scorer).score_all(&items).map_err(run)?,
                    _ => unreachable!("the surface declares runs only"),
                })
            }
            Task::Slice {
                slicer,
                budget,
                items,
            } => {
                let scored = all(items, scored_item).map_err(construction)?;
                let budget = build_budget(budget).map_err(construction)?;
                let slicer = self.config(&json!({ "scorer": ANY_SCORER, "slicer": slicer }))?;
                let slicer = slicer.slicer.build().expect("the policy is valid");
                let ranked = ScoredRef::from_list(&scored);
                Observation::Selected(match self.entry_point() {
                    Self::Plain => model::Selected {
                        kept: positions(&scored, &slicer.slice(&scored, &budget).map_err(run)?),
                        ..Default::default()
                    },
                    Self::Batch => selected(&slicer.select(&ranked, &budget).map_err(run)?),
                    Self::Custom => model::Selected {
                        kept: Legacy(slicer)
                            .select(&ranked, &budget)
                            .map_err(run)?
                            .kept()
                            .to_vec(),
                        ..Default::default()
                    },
                    _ => unreachable!("the surface declares runs only"),
                })
            }
            Task::Place { placer, items } => {
                let scored = all(items, scored_item).map_err(construction)?;
                let placer = self.config(&json!({ "scorer": ANY_SCORER, "placer": placer }))?;
                let placer = placer.placer.build().expect("the policy is valid");
                let refs = ScoredRef::from_list(&scored);
                Observation::Placed(match self.entry_point() {
                    Self::Plain => positions(&scored, &placer.place(&scored)),
                    Self::Batch => placer.arrange(&refs).map_err(run)?,
                    Self::Custom => Legacy(placer).arrange(&refs).map_err(run)?,
                    _ => unreachable!("the surface declares runs only"),
                })
            }
            Task::Run {
                policy,
                budget,
                items,
            } => {
                let items = all(items, item).map_err(construction)?;
                let budget = build_budget(budget).map_err(construction)?;
                let policy = self.policy(policy)?;
                let ran = self.entry_point().run(policy, &items, &budget);
                Observation::Ran(ran.map_err(run)?)
            }
        })
    }

    /// How the strategies are called.
    fn entry_point(self) -> Self {
        match self {
            Self::Document => Self::Batch,
            other => other,
        }
    }

    /// Reads a policy, for `Document` as written by the library in one of the formats.
    pub(crate) fn config(self, document: &model::Document) -> Result<PolicyConfig, model::Failure> {
        let config = read_policy(&document.to_string(), Format::Json)?;
        if self != Self::Document {
            return Ok(config);
        }
        // The choice is deterministic and covers all formats.
        let format = [Format::Json, Format::Toml, Format::Yaml][document.to_string().len() % 3];
        let written = config.to_text(format).expect("the policy is valid");
        let again = read_policy(&written, format)?;
        assert_eq!(again, config, "{written}");
        Ok(again)
    }

    pub(crate) fn policy(
        self,
        document: &model::Document,
    ) -> Result<PolicyBuilder, model::Failure> {
        // The error of a scorer comes before that of a slicer, whichever part of the reader finds it.
        self.config(&json!({ "scorer": document["scorer"] }))?;
        let config = self.config(document)?;
        let built = || {
            (
                config.scorer.build(),
                config.slicer.build(),
                config.placer.build(),
            )
        };
        let (Ok(scorer), Ok(slicer), Ok(placer)) = built() else {
            panic!("the policy is valid");
        };
        let builder = PolicyBuilder::new()
            .deduplication(config.deduplication)
            .overflow_strategy(config.overflow_strategy);
        Ok(if self == Self::Custom {
            builder
                .scorer(Legacy(scorer))
                .slicer(Legacy(slicer))
                .placer(Legacy(placer))
        } else {
            builder.scorer(scorer).slicer(slicer).placer(placer)
        })
    }

    fn run(
        self,
        policy: PolicyBuilder,
        items: &[ContextItem],
        budget: &ContextBudget,
    ) -> Result<model::Run, CupelError> {
        match self {
            Self::Plain => {
                let policy = policy.build()?;
                let output = policy.clone().run_indices(items, budget)?;
                let window = policy.run(items, budget)?;
                assert_eq!(window.len(), output.len(), "run and run_indices agree");
                for (item, &index) in window.iter().zip(&output) {
                    assert!(item.is_same(&items[index]), "run and run_indices agree");
                }
                Ok(model::Run {
                    output,
                    ..Default::default()
                })
            }
            Self::Decisions => {
                let policy = policy.build()?;
                let decisions = policy.decide(items, budget)?;
                let report = decisions.to_report();
                check_positions(&decisions, &report);
                let mut ran = ran(items, &report);
                if let Some(report) = &mut ran.report {
                    report.events = None;
                }
                Ok(ran)
            }
            Self::Custom => {
                let pipeline = policy.build()?;
                Ok(model::Run {
                    output: pipeline.run_indices(items, budget)?,
                    ..Default::default()
                })
            }
            Self::Batch => {
                let seen = std::sync::Arc::new(std::sync::Mutex::new(None));
                let observer = seen.clone();
                let policy = policy
                    .on_overflow(move |event| *observer.lock().unwrap() = Some(event.clone()))
                    .build()?;
                let report = policy.dry_run(items, budget)?;
                let mut ran = ran(items, &report);
                let event = seen.lock().unwrap().take();
                ran.overflow = Some(event.map(|event| overflow(items, &event)));
                Ok(ran)
            }
            Self::Json => {
                let items: Vec<ContextItem> = items.iter().map(json).collect();
                let budget = json(budget);
                let report = policy.build()?.dry_run(&items, &budget)?;
                let report = relabeled(&report, &json(&report));
                Ok(ran(&items, &report))
            }
            // Policies of documents are run as a batch, see `entry_point`.
            Self::Document => Self::Batch.run(policy, items, budget),
            Self::TracedStage | Self::TracedItem | Self::Completion => {
                let level = match self {
                    Self::TracedStage => TraceDetailLevel::Stage,
                    _ => TraceDetailLevel::Item,
                };
                let mut collector = (DiagnosticTraceCollector::new(level), Completed::default());
                let window = policy.build()?.run_traced(items, budget, &mut collector)?;
                let (own, completed) = collector;
                let mut report = own.into_report();
                if self == Self::Completion {
                    report = completed.report.expect("a finished run completes");
                }
                let mut ran = ran(items, &report);
                let event = completed.overflow;
                ran.overflow = Some(event.map(|event| overflow(items, &event)));
                ran.output = positions_of(items, &window);
                if let (Self::TracedStage, Some(report)) = (self, &mut ran.report) {
                    report.events = None;
                }
                Ok(ran)
            }
        }
    }
}

/// Checks what is said of every position against the entries of the report.
fn check_positions(decisions: &Decisions<'_>, report: &SelectionReport) {
    let items = decisions.items();
    let excluded = decisions.excluded();
    assert_eq!(decisions.window().len(), report.included.len());
    assert_eq!(excluded.len(), report.excluded.len());
    assert_eq!(decisions.shortfalls(), report.count_requirement_shortfalls);
    for (&candidate, entry) in decisions.window().iter().zip(&report.included) {
        assert!(items[candidate].is_same(&entry.item));
        assert_eq!(decisions.score(candidate).to_bits(), entry.score.to_bits());
        assert_eq!(decisions.inclusion(candidate), Some(entry.reason));
        assert_eq!(decisions.exclusion(candidate), None);
        assert_eq!(decisions.stage(candidate), None);
    }
    for (&candidate, entry) in excluded.iter().zip(&report.excluded) {
        assert!(items[candidate].is_same(&entry.item));
        assert_eq!(decisions.score(candidate).to_bits(), entry.score.to_bits());
        assert_eq!(decisions.inclusion(candidate), None);
        assert_eq!(decisions.exclusion(candidate).as_ref(), Some(&entry.reason));
        assert!(decisions.stage(candidate).is_some());
    }
    let beyond = items.len();
    assert_eq!(decisions.inclusion(beyond), None);
    assert_eq!(decisions.exclusion(beyond), None);
    assert_eq!(decisions.copy_of(beyond), None);
}

/// What the hooks of a finished run were told.
#[derive(Default)]
struct Completed {
    report: Option<SelectionReport>,
    overflow: Option<OverflowEvent>,
}

impl TraceCollector for Completed {
    fn is_enabled(&self) -> bool {
        true
    }

    fn record_stage_event(&mut self, _event: TraceEvent) {}

    fn record_item_event(&mut self, _event: TraceEvent) {}

    fn on_pipeline_completed(
        &mut self,
        report: &SelectionReport,
        _budget: &ContextBudget,
        stage_snapshots: &[StageTraceSnapshot],
    ) {
        assert_eq!(stage_snapshots.len(), 5, "every stage has a snapshot");
        self.report = Some(report.clone());
    }

    fn on_overflow(&mut self, event: &OverflowEvent) {
        self.overflow = Some(event.clone());
    }
}

/// A strategy reduced to the one method its trait requires.
struct Legacy<T>(T);

impl<T: Scorer> Scorer for Legacy<T> {
    fn score(&self, item: &ContextItem, all_items: &[ContextItem]) -> f64 {
        self.0.score(item, all_items)
    }
}

impl<T: Slicer> Slicer for Legacy<T> {
    fn slice(
        &self,
        sorted: &[ScoredItem],
        budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        self.0.slice(sorted, budget)
    }
}

impl<T: Placer> Placer for Legacy<T> {
    fn place(&self, items: &[ScoredItem]) -> Vec<ContextItem> {
        self.0.place(items)
    }
}

fn all<A, B>(
    list: &[A],
    build: impl Fn(&A) -> Result<B, CupelError>,
) -> Result<Vec<B>, CupelError> {
    list.iter().map(build).collect()
}

pub(crate) fn item(item: &model::Item) -> Result<ContextItem, CupelError> {
    let mut builder = ContextItem::builder(&item.content, item.tokens)
        .tags(item.tags.clone())
        .metadata(item.metadata.clone().into_iter().collect())
        .pinned(item.pinned);
    // An empty content is reported before an empty kind or source.
    if item.content.is_empty() {
        return builder.build();
    }
    if let Some(kind) = &item.kind {
        builder = builder.kind(ContextKind::new(kind)?);
    }
    if let Some(source) = &item.source {
        builder = builder.source(ContextSource::new(source)?);
    }
    if let Some(priority) = item.priority {
        builder = builder.priority(priority);
    }
    if let Some(timestamp) = item.timestamp {
        builder = builder.timestamp(timestamp);
    }
    if let Some(hint) = item.future_relevance_hint {
        builder = builder.future_relevance_hint(hint);
    }
    if let Some(tokens) = item.original_tokens {
        builder = builder.original_tokens(tokens);
    }
    builder.build()
}

pub(crate) fn scored_item(scored: &model::ScoredItem) -> Result<ScoredItem, CupelError> {
    Ok(ScoredItem {
        item: item(&scored.item)?,
        score: scored.score,
    })
}

pub(crate) fn build_budget(budget: &model::Budget) -> Result<ContextBudget, CupelError> {
    let mut slots = HashMap::new();
    for (kind, slot) in &budget.reserved_slots {
        slots.insert(ContextKind::new(kind)?, *slot);
    }
    ContextBudget::new(
        budget.max_tokens,
        budget.target_tokens,
        budget.output_reserve,
        slots,
        budget.estimation_safety_margin_percent,
    )
}

/// A document needs a scorer.
const ANY_SCORER: ScorerConfig = ScorerConfig::Recency;

/// Reads and builds a policy.
///
/// # Panics
///
/// If the document has a wrong key, name or type: a misspelled vector would pass if it expected
/// an error.
fn read_policy(text: &str, format: Format) -> Result<PolicyConfig, model::Failure> {
    use ConfigErrorKind::{DuplicateKey, Invalid, OutOfRange, WrongType};
    let read = Document::parse(text, format).and_then(|document| document.policy_config());
    read.map_err(|error| {
        let is_refused = match error.kind() {
            Invalid | OutOfRange => true,
            // A kind in two cases.
            DuplicateKey => text.contains("\"kind\""),
            // JSON has no NaN and no infinity.
            WrongType => ["NaN", "inf", "-inf"]
                .iter()
                .any(|name| error.message().ends_with(&format!("the string {name:?}"))),
            _ => false,
        };
        assert!(is_refused, "{error}\n{text}");
        let refusal = std::error::Error::source(&error).map(ToString::to_string);
        model::Failure {
            at_construction: true,
            code: error.code().expect("a strategy was refused").to_owned(),
            message: refusal.unwrap_or_else(|| error.to_string()),
        }
    })
}

fn failure(error: &CupelError, at_construction: bool) -> model::Failure {
    model::Failure {
        at_construction,
        code: error.code().to_owned(),
        message: error.to_string(),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "passed to map_err")]
pub(crate) fn construction(error: CupelError) -> model::Failure {
    failure(&error, true)
}

#[expect(clippy::needless_pass_by_value, reason = "passed to map_err")]
fn run(error: CupelError) -> model::Failure {
    failure(&error, false)
}

fn selected(selection: &Selection) -> model::Selected {
    let capped = selection.refusals().iter();
    model::Selected {
        kept: selection.kept().to_vec(),
        shortfalls: Some(selection.shortfalls().iter().map(shortfall).collect()),
        cap_rejected: Some(
            capped
                .filter(|(_, refusal)| matches!(refusal, Refusal::CountCap { .. }))
                .map(|(rank, _)| *rank)
                .collect(),
        ),
    }
}

fn shortfall(shortfall: &CountRequirementShortfall) -> model::Shortfall {
    model::Shortfall {
        kind: shortfall.kind.clone(),
        required_count: shortfall.required_count,
        satisfied_count: shortfall.satisfied_count,
    }
}

fn positions(scored: &[ScoredItem], items: &[ContextItem]) -> Vec<usize> {
    let offered: Vec<_> = scored.iter().map(|scored| scored.item.clone()).collect();
    positions_of(&offered, items)
}

/// The positions in `offered` of the same handles.
fn positions_of(offered: &[ContextItem], items: &[ContextItem]) -> Vec<usize> {
    let find = |item: &ContextItem| offered.iter().position(|other| other.is_same(item));
    items
        .iter()
        .map(|item| find(item).expect("only offered items come back"))
        .collect()
}

fn ran(items: &[ContextItem], report: &SelectionReport) -> model::Run {
    let index = |item: &ContextItem| positions_of(items, std::slice::from_ref(item))[0];
    let included: Vec<_> = report
        .included
        .iter()
        .map(|included| model::Included {
            index: index(&included.item),
            score: included.score,
            reason: included.reason.name().to_owned(),
        })
        .collect();
    let excluded = report.excluded.iter().map(|excluded| model::Excluded {
        index: index(&excluded.item),
        score: excluded.score,
        reason: excluded.reason.name().to_owned(),
        fields: reason_fields(&excluded.reason),
    });
    let events = report.events.iter().map(|event| model::Event {
        stage: event.stage.name().to_owned(),
        item_count: event.item_count,
        message: event.message.clone(),
    });
    model::Run {
        output: included.iter().map(|included| included.index).collect(),
        report: Some(model::Report {
            excluded: excluded.collect(),
            total_candidates: report.total_candidates,
            total_tokens_considered: report.total_tokens_considered,
            shortfalls: report
                .count_requirement_shortfalls
                .iter()
                .map(shortfall)
                .collect(),
            events: Some(events.collect()),
            included,
        }),
        overflow: None,
    }
}

fn overflow(items: &[ContextItem], event: &OverflowEvent) -> model::Overflow {
    model::Overflow {
        tokens_over_budget: event.tokens_over_budget,
        items: positions_of(items, &event.overflowing_items),
    }
}

/// The fields of a reason, as the report has them in JSON.
fn reason_fields(reason: &ExclusionReason) -> BTreeMap<String, model::Field> {
    let mut fields = json!(reason);
    let fields = fields.as_object_mut().expect("a reason is an object");
    fields.remove("reason");
    let field = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => model::Field::Text(text.clone()),
        number => model::Field::Integer(number.as_i64().expect("a number of tokens or items")),
    };
    let fields = fields.iter();
    fields
        .map(|(key, value)| (key.clone(), field(value)))
        .collect()
}

fn json<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
    let text = serde_json::to_string(value).expect("everything can be written");
    serde_json::from_str(&text).expect("what was written can be read")
}

/// A report read back from JSON, with the handles of the original in place of the items read.
fn relabeled(original: &SelectionReport, read: &SelectionReport) -> SelectionReport {
    let mut report = read.clone();
    let same = |a: &ContextItem, b: &ContextItem| format!("{a:?}") == format!("{b:?}");
    for (read, original) in report.included.iter_mut().zip(&original.included) {
        assert!(same(&read.item, &original.item), "items survive the wire");
        read.item = original.item.clone();
    }
    for (read, original) in report.excluded.iter_mut().zip(&original.excluded) {
        assert!(same(&read.item, &original.item), "items survive the wire");
        read.item = original.item.clone();
    }
    report
}
