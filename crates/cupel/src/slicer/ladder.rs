//! [`LadderSlice`]: shortens first, drops second.
//!
//! A sequence of states is built from the candidates alone, and the budget only chooses one of
//! them, so the choice is monotone: a larger budget takes the same state or an earlier one, and earlier states keep
//! more. Two results of 500 and 700 tokens with views at the levels 400 and 100, a task of 50 that is mandatory, and
//! the steps `shorten [400, 100]`, `drop`:
//!
//! ```text
//! state   old result   new result   task   tokens   changes
//! 0       500          700          50     1,250
//! 1       390          380          50       820    both capped at 400
//! 2        90           95          50       235    both capped at 100
//! 3                     95          50       145    the old result has the lowest rank
//! 4                                 50        50    the new result
//! ```
//!
//! A target of 300 takes state 2. Only the changes are stored, so the cost of a state is the number of its
//! changes, and a sweep goes from state to state ([`Cursor`]).
//!
//! A later state can have more tokens than an earlier one: a view may be longer than the item, and
//! a drop can add a marker. The first state that fits is found by binary search over running minima.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;

use super::group::ranks_by_group;
use super::near_duplicate::newest_results;
use super::{Refusal, Selection, Slicer, SweepVisitor, slice_by_select};
use crate::diagnostics::ExclusionReason;
use crate::model::marks::key;
use crate::model::saturate;
use crate::{ContextBudget, ContextItem, ContextKind, CupelError, Retention, ScoredRef};

/// Shortens items to their views, then drops items, in one fixed sequence of states.
///
/// The first state is all candidates in full. Each [step](LadderStep) adds states, and each state keeps
/// less than the one before. The slicer takes the first state that fits the target, so a larger budget
/// never drops or shortens what a smaller one keeps.
///
/// Metadata keys of the candidates, whose values have no meaning unless stated; a program sets the same as
/// [`Marks`](crate::Marks):
///
/// | key | effect |
/// |---|---|
/// | `cupel:mandatory` | never dropped; shortened only by steps for mandatory candidates |
/// | `cupel:keep` | never dropped; shortened by all steps of its kind |
/// | `cupel:late` | dropped after all others that may be dropped, and not shortened before |
/// | `cupel:shorten_first` | a step takes it through all its levels before it shortens another candidate |
/// | `cupel:group` | the value names its group, as in [`GroupSlice`](crate::GroupSlice). A group is dropped as a whole, and never if one of the first two keys marks a member. |
/// | `cupel:call` | the value identifies the call that the item is the result of, for [`LadderStep::Supersede`] |
/// | `cupel:level` | the value is the level of the item in full: caps from there on leave it as it is. Defaults to its token count. |
///
/// If no state fits, the run fails with [`CupelError::MandatoryExceedsBudget`].
///
/// # States
///
/// A state says for every candidate whether it is kept in full, as a view or not at all. Its tokens are
/// the sum over the kept forms, and a marker if its condition holds
/// ([`with_marker_tokens`](Self::with_marker_tokens)). Steps work on the state before them; one that
/// changes nothing adds no state. "First" is in the order of the states, so a later state is not taken
/// because it has fewer tokens than an earlier one that fits.
///
/// At a target of 0 or less only the last state counts: every step is applied, so that everything that
/// may be dropped is dropped, also candidates of 0 tokens. If the tokens of the last state, with its marker,
/// are above 0, the run fails. Without a [`Drop`](LadderStep::Drop) step, candidates of 0 tokens stay.
///
/// The error has the tokens of the smallest state, whatever its place in the sequence.
///
/// ```
/// use cupel::{ChronologicalPlacer, ContextBudget, ContextItem, ContextKind, ContextView};
/// use cupel::{LadderSlice, LadderStep, Pipeline, ReflexiveScorer};
///
/// let result = |content: &str, tokens, hint| {
///     ContextItem::builder(content, tokens)
///         .kind(ContextKind::tool_output())
///         .future_relevance_hint(hint)
/// };
/// let items = [
///     result("old result", 500, 0.1).view(ContextView::new("extract", 90)).build()?,
///     result("new result", 700, 0.9).view(ContextView::new("its extract", 95)).build()?,
/// ];
/// let shorten = LadderStep::shorten(ContextKind::tool_output(), [400, 100]);
/// let slicer = LadderSlice::new(vec![shorten, LadderStep::Drop]);
/// let pipeline = Pipeline::new(ReflexiveScorer, slicer, ChronologicalPlacer);
/// let tokens = |budget| -> Result<_, cupel::CupelError> {
///     let window = pipeline.run(&items, &ContextBudget::with_target(budget, budget)?)?;
///     Ok(window.iter().map(ContextItem::tokens).collect::<Vec<_>>())
/// };
/// assert_eq!(tokens(1200)?, [700, 500]);
/// assert_eq!(tokens(1199)?, [95, 90]);
/// assert_eq!(tokens(184)?, [95]);
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LadderSlice {
    steps: Vec<LadderStep>,
    marker_tokens: i64,
    is_gradual: bool,
}

/// A step of a [`LadderSlice`].
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq)]
pub enum LadderStep {
    /// Caps the candidates of a kind at each level in order.
    ///
    /// At a level, a candidate whose own level is higher becomes its view with the highest level that is
    /// not above the cap. It stays as it is if it has no such view. The own level of a candidate in full is
    /// the metadata `cupel:level` if it is an integer, otherwise its token count; that of a view is
    /// [`ContextView::level`](crate::ContextView::level).
    Shorten {
        /// The kind.
        kind: ContextKind,
        /// Which candidates are capped.
        ///
        /// `false`: those that are not marked as mandatory or late, all at once: one state per level, or one at a time
        /// with [`with_gradual`](LadderSlice::with_gradual). Those marked with
        /// [`SHORTEN_FIRST`](LadderSlice::SHORTEN_FIRST) go through all levels before the others. `true`: those
        /// that are never dropped (marked with [`MANDATORY`](LadderSlice::MANDATORY) or
        /// [`KEEP`](LadderSlice::KEEP), or in a group with such a candidate), one at a time, most tokens
        /// first, ties by rank: one state per candidate and level. The order is that of the tokens at the
        /// start of each level.
        mandatory: bool,
        /// The caps, in tokens.
        levels: Vec<i64>,
    },
    /// Caps the candidates that are not mandatory or late and that a newer result of the same call supersedes (same string in
    /// the metadata `cupel:call`; newest by timestamp, then by position), all at once: one state per level.
    Supersede {
        /// The caps, in tokens.
        levels: Vec<i64>,
    },
    /// Drops the groups without a member that is marked with [`MANDATORY`](LadderSlice::MANDATORY) or
    /// [`KEEP`](LadderSlice::KEEP), lowest rank first: one state per group. Groups with a member that is marked with
    /// [`LATE`](LadderSlice::LATE) come after all others. A group has the rank of its best member; a candidate without a
    /// group is one of its own.
    Drop,
}

impl LadderStep {
    /// Creates a step that caps the candidates of a kind that are not mandatory.
    pub fn shorten(kind: ContextKind, levels: impl Into<Vec<i64>>) -> Self {
        Self::Shorten {
            kind,
            mandatory: false,
            levels: levels.into(),
        }
    }

    /// Creates a step that caps the mandatory candidates of a kind.
    pub fn shorten_mandatory(kind: ContextKind, levels: impl Into<Vec<i64>>) -> Self {
        Self::Shorten {
            kind,
            mandatory: true,
            levels: levels.into(),
        }
    }
}

impl LadderSlice {
    /// The metadata key that marks a mandatory item. Its value has no meaning.
    pub const MANDATORY: &str = key::MANDATORY;

    /// The metadata key that marks an item that is never dropped, and that every step of its kind may
    /// shorten. Its value has no meaning.
    pub const KEEP: &str = key::KEEP;

    /// The metadata key that marks an item that is dropped after all others, and not shortened before. Its value has
    /// no meaning.
    pub const LATE: &str = key::LATE;

    /// The metadata key that marks an item that a step takes through all its levels before it shortens another one. Its
    /// value has no meaning.
    pub const SHORTEN_FIRST: &str = key::SHORTEN_FIRST;

    /// The metadata key of the level of an item in full: caps from there on leave it as it is. Set it for an item
    /// that the caller has already shortened, or whose text is within a level although the item with
    /// everything around the text is not. Defaults to the token count of the item.
    pub const LEVEL: &str = key::LEVEL;

    /// Creates a slicer from its steps, in order.
    pub fn new(steps: Vec<LadderStep>) -> Self {
        Self {
            steps,
            marker_tokens: 0,
            is_gradual: false,
        }
    }

    /// Sets the tokens of a marker that the caller puts in place of dropped candidates. Defaults to 0; a
    /// negative number counts as 0.
    ///
    /// A state needs these tokens once, in addition to the kept forms, if the candidates dropped up to it had
    /// more than so many tokens together. Each counts with the tokens that it had just before it was dropped:
    /// those of its view, if an earlier step shortened it. In place of as many tokens or fewer a marker would
    /// save nothing, and the state needs no marker.
    pub fn with_marker_tokens(mut self, tokens: i64) -> Self {
        self.marker_tokens = tokens.max(0);
        self
    }

    /// Sets whether a step shortens the candidates that are not mandatory one at a time, lowest rank first, instead of
    /// all at once: one state per candidate and level. Defaults to `false`.
    ///
    /// All at once, ten texts of 500 tokens that exceed a target by one token are ten texts of 100. One at a time, the
    /// lowest is shortened, and the others stay.
    pub fn with_gradual(mut self, is_gradual: bool) -> Self {
        self.is_gradual = is_gradual;
        self
    }

    /// Replaces the steps.
    pub fn with_steps(mut self, steps: Vec<LadderStep>) -> Self {
        self.steps = steps;
        self
    }

    /// Returns the steps.
    pub fn steps(&self) -> &[LadderStep] {
        &self.steps
    }

    /// Returns whether candidates are shortened one at a time.
    pub fn is_gradual(&self) -> bool {
        self.is_gradual
    }

    /// Returns the tokens of a marker.
    pub fn marker_tokens(&self) -> i64 {
        self.marker_tokens
    }

    /// Returns the targets of a range, in ascending order, at which the choice may differ from the one at
    /// the target before: those at which another state fits.
    fn breakpoints(states: &States, targets: RangeInclusive<i64>) -> BTreeSet<i64> {
        // Between two breakpoints the same states fit, so the same one is chosen: a sweep has one
        // run per breakpoint instead of one per target. `choose` has a rule of its own for targets
        // below 1.
        let mut breakpoints = BTreeSet::from([*targets.start(), 1]);
        let tokens = states.tokens.iter();
        breakpoints.extend(tokens.filter_map(|&tokens| i64::try_from(tokens).ok()));
        breakpoints.retain(|target| targets.contains(target));
        breakpoints
    }
}

/// How a candidate is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Full,
    View(usize),
    Dropped,
}

impl Form {
    fn tokens(self, item: &ContextItem) -> i64 {
        match self {
            Self::Full => item.tokens(),
            Self::View(view) => item.views()[view].tokens(),
            Self::Dropped => 0,
        }
    }

    /// Returns the form under a cap.
    fn capped(self, item: &ContextItem, level: i64) -> Self {
        let own = match self {
            Self::Full => own_level(item),
            Self::View(view) => item.views()[view].level(),
            Self::Dropped => return self,
        };
        // Views are sorted by level, highest first.
        let mut views = item.views().iter();
        match views.position(|view| view.level() <= level) {
            Some(view) if own > level => Self::View(view),
            _ => self,
        }
    }
}

/// Returns the level of an item in full. Defaults to its token count.
fn own_level(item: &ContextItem) -> i64 {
    item.level().unwrap_or(item.tokens())
}

/// A candidate that one state keeps in another form than the state before.
struct Change {
    rank: usize,
    before: Form,
    after: Form,
}

/// The sequence of states. Each is the one before with some changes; state 0 keeps everything in
/// full.
struct States {
    /// The tokens of each state, with the marker. 128 bits, because the sum of tokens may exceed
    /// 64.
    tokens: Vec<i128>,
    /// The running minimum of `tokens`.
    ///
    /// The tokens may rise from one state to the next; the running minimum never does, so it can be searched by
    /// bisection. It first reaches a limit at the first state that fits the limit: for tokens 9, 5, 7, 3 the minima
    /// are 9, 5, 5, 3, and a limit of 6 is first met by the second state in both.
    minima: Vec<i128>,
    /// The number of changes up to each state: state `s` is state 0 with `changes[..ends[s]]`
    /// applied.
    ends: Vec<usize>,
    /// The changes of all states in order. Each has the form before, so that it can be undone.
    changes: Vec<Change>,
    /// The candidates that are dropped together, as ranks. The best group is first.
    groups: Vec<Vec<usize>>,
}

impl States {
    fn new(slicer: &LadderSlice, ranked: &[ScoredRef<'_>]) -> Self {
        let mut builder = StatesBuilder::new(slicer, ranked);
        builder.end_state();
        for step in &slicer.steps {
            match step {
                LadderStep::Shorten {
                    kind,
                    mandatory,
                    levels,
                } => builder.shorten(kind, *mandatory, levels),
                LadderStep::Supersede { levels } => builder.supersede(levels),
                LadderStep::Drop => builder.drop_groups(),
            }
        }
        builder.finish()
    }

    /// Returns the first state that fits a target.
    ///
    /// # Errors
    ///
    /// [`CupelError::MandatoryExceedsBudget`] if no state fits.
    fn choose(&self, target: i64) -> Result<usize, CupelError> {
        let last = self.tokens.len() - 1;
        let chosen = if target <= 0 {
            // Only the last state: everything that may be dropped is dropped (SLICER-4).
            (self.tokens[last] <= 0).then_some(last)
        } else {
            let is_above = |least: &i128| *least > i128::from(target);
            let first = self.minima.partition_point(is_above);
            (first <= last).then_some(first)
        };
        chosen.ok_or_else(|| CupelError::MandatoryExceedsBudget {
            needed_tokens: saturate(self.minima[last]),
            available: target,
        })
    }

    /// Returns the changes up to a state.
    fn changes_up_to(&self, state: usize) -> &[Change] {
        &self.changes[..self.ends[state]]
    }

    /// Returns why each candidate that a state drops is dropped at a target. The group that was dropped last
    /// is the one that did not fit; the others have lower ranks.
    fn drops(
        &self,
        ranked: &[ScoredRef<'_>],
        state: usize,
        target: i64,
    ) -> Vec<(usize, ExclusionReason)> {
        let mut before_drop: Vec<Option<Form>> = vec![None; ranked.len()];
        let mut last_drop = None;
        for (index, change) in self.changes_up_to(state).iter().enumerate() {
            if change.after == Form::Dropped {
                before_drop[change.rank] = Some(change.before);
                last_drop = Some((index, change.rank));
            }
        }
        let Some((index, last)) = last_drop else {
            return Vec::new();
        };
        let tokens_of = |members: &[usize]| {
            let forms = members.iter().map(|&rank| (rank, before_drop[rank]));
            let tokens =
                forms.map(|(rank, form)| form.map_or(0, |it| it.tokens(ranked[rank].item)));
            saturate(tokens.map(i128::from).sum())
        };
        // The room for the group that was dropped last is what it had minus what the state before
        // was over the target.
        let is_last = |members: &[usize]| members.contains(&last);
        let blocking = self.groups.iter().find(|members| is_last(members));
        let blocking_tokens = blocking.map_or(0, |members| tokens_of(members));
        let state_before = self.ends.partition_point(|&end| end <= index) - 1;
        let excess = self.tokens[state_before] - i128::from(target);
        let available_tokens = saturate(i128::from(blocking_tokens) - excess).max(0);
        let reason = |members: &[usize]| match members.len() {
            _ if !is_last(members) => ExclusionReason::RankedBelow {
                item_tokens: tokens_of(members),
                blocking_tokens,
                available_tokens,
            },
            1 => ExclusionReason::BudgetExceeded {
                item_tokens: blocking_tokens,
                available_tokens,
            },
            group_size => ExclusionReason::GroupExcluded {
                group_size,
                group_tokens: blocking_tokens,
                available_tokens,
            },
        };
        let groups = self.groups.iter();
        let dropped = groups.filter(|members| before_drop[members[0]].is_some());
        let reasons = dropped.flat_map(|members| {
            let reason = reason(members);
            members.iter().map(move |&rank| (rank, reason.clone()))
        });
        reasons.collect()
    }
}

/// The current state of a sweep. Reports to the visitor what changes when it goes to another state.
struct Cursor<'s> {
    states: &'s States,
    /// The forms in the current state.
    forms: Vec<Form>,
    /// The current state.
    state: usize,
    /// The last state that the visitor saw; `None` for a failure, and before the first visit.
    last_reported: Option<usize>,
    has_failed: bool,
}

impl<'s> Cursor<'s> {
    fn new(states: &'s States, ranks: usize) -> Self {
        Self {
            states,
            forms: vec![Form::Full; ranks],
            state: 0,
            last_reported: None,
            has_failed: false,
        }
    }

    fn fail(&mut self, target: i64, error: CupelError, visitor: &mut dyn SweepVisitor) {
        if !self.has_failed {
            visitor.fail(target, error);
        }
        (self.has_failed, self.last_reported) = (true, None);
    }

    fn visit(
        &mut self,
        target: i64,
        state: usize,
        visitor: &mut dyn SweepVisitor,
    ) -> ControlFlow<()> {
        if self.last_reported == Some(state) {
            return ControlFlow::Continue(());
        }
        let before = self.go_to(state);
        let changed: Vec<(usize, Form)> = match self.last_reported {
            Some(_) => before.into_iter().collect(),
            // Nothing was chosen: everything that the state keeps enters.
            None => (0..self.forms.len())
                .map(|rank| (rank, Form::Dropped))
                .collect(),
        };
        (self.last_reported, self.has_failed) = (Some(state), false);
        let mut ranks = Vec::new();
        let mut views = Vec::new();
        for (rank, before) in changed {
            let after = self.forms[rank];
            if (before == Form::Dropped) != (after == Form::Dropped) {
                ranks.push(rank);
            }
            match after {
                Form::View(view) => views.push((rank, Some(view))),
                // An item that enters is in full unless a view is listed; one that was a view needs an entry.
                Form::Full if before != Form::Dropped => views.push((rank, None)),
                Form::Full | Form::Dropped => {}
            }
        }
        visitor.change(target, &ranks, &views)
    }

    /// Goes to a state. Returns the changed ranks with their forms before.
    fn go_to(&mut self, state: usize) -> BTreeMap<usize, Form> {
        let mut before = BTreeMap::new();
        let (from, to) = (self.states.ends[self.state], self.states.ends[state]);
        let changes = &self.states.changes;
        let mut set = |rank: usize, form: Form| {
            before.entry(rank).or_insert(self.forms[rank]);
            self.forms[rank] = form;
        };
        // One of the two ranges is empty: forward, or backward in reverse order.
        for change in &changes[from.min(to)..to] {
            set(change.rank, change.after);
        }
        for change in changes[to.min(from)..from].iter().rev() {
            set(change.rank, change.before);
        }
        self.state = state;
        before
    }
}

/// Applies the steps one after the other to the forms of all candidates and records what changes.
/// The forms are those of the state that is being built.
struct StatesBuilder<'r, 'a> {
    ranked: &'r [ScoredRef<'a>],
    marker_tokens: i64,
    is_gradual: bool,
    forms: Vec<Form>,
    /// Whether a candidate is shortened by steps for mandatory ones only.
    is_spared: Vec<bool>,
    /// Whether a candidate is never dropped.
    is_kept: Vec<bool>,
    groups: Vec<Vec<usize>>,
    /// The tokens of the candidates in their current forms.
    kept_tokens: i128,
    /// The tokens that the dropped candidates had.
    dropped_tokens: i128,
    tokens: Vec<i128>,
    ends: Vec<usize>,
    changes: Vec<Change>,
}

impl<'r, 'a> StatesBuilder<'r, 'a> {
    fn new(slicer: &LadderSlice, ranked: &'r [ScoredRef<'a>]) -> Self {
        let groups = ranks_by_group(ranked);
        let retained = ranked.iter().map(|scored| scored.item.retention());
        let retained: Vec<Retention> = retained.collect();
        let is_spared = |it: &Retention| matches!(it, Retention::Late | Retention::Mandatory);
        // `Retention` is ordered: a mandatory candidate is kept, too.
        let is_kept = |it: &Retention| *it >= Retention::Kept;
        let mut is_kept: Vec<bool> = retained.iter().map(is_kept).collect();
        // A group is dropped as a whole or not at all, so one member that is never dropped keeps
        // the others.
        for members in &groups {
            if members.iter().any(|&rank| is_kept[rank]) {
                for &rank in members {
                    is_kept[rank] = true;
                }
            }
        }
        let tokens = ranked.iter().map(|scored| i128::from(scored.item.tokens()));
        Self {
            ranked,
            marker_tokens: slicer.marker_tokens,
            is_gradual: slicer.is_gradual,
            forms: vec![Form::Full; ranked.len()],
            is_spared: retained.iter().map(is_spared).collect(),
            is_kept,
            groups,
            kept_tokens: tokens.sum(),
            dropped_tokens: 0,
            tokens: Vec::new(),
            ends: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// Adds the states of [`LadderStep::Shorten`].
    fn shorten(&mut self, kind: &ContextKind, mandatory: bool, levels: &[i64]) {
        // Candidates that are kept but not mandatory are capped by both variants of the step.
        let is_capped = |&rank: &usize| {
            let has_role = if mandatory {
                self.is_kept[rank]
            } else {
                !self.is_spared[rank]
            };
            has_role && self.ranked[rank].item.kind() == kind
        };
        // The lowest first.
        let ranks = (0..self.ranked.len()).rev().filter(is_capped);
        let is_first = |&rank: &usize| !mandatory && self.ranked[rank].item.shorten_first();
        let (first, others): (Vec<usize>, Vec<usize>) = ranks.partition(is_first);
        for mut ranks in [first, others] {
            for &level in levels {
                // Mandatory candidates are cut as little as possible: one at a time, the largest first.
                if mandatory {
                    ranks.sort_by_key(|&rank| (Reverse(self.tokens_of(rank)), rank));
                }
                for &rank in &ranks {
                    let form = self.forms[rank].capped(self.ranked[rank].item, level);
                    self.change(rank, form);
                    if mandatory || self.is_gradual {
                        self.end_state();
                    }
                }
                self.end_state();
            }
        }
    }

    /// Adds the states of [`LadderStep::Supersede`].
    fn supersede(&mut self, levels: &[i64]) {
        let newest = newest_results(self.ranked, |_| true);
        for &level in levels {
            for (rank, scored) in self.ranked.iter().enumerate().rev() {
                let is_newest = scored.item.call().is_none_or(|call| newest[call] == rank);
                if !is_newest && !self.is_spared[rank] {
                    self.change(rank, self.forms[rank].capped(scored.item, level));
                    if self.is_gradual {
                        self.end_state();
                    }
                }
            }
            self.end_state();
        }
    }

    /// Adds the states of [`LadderStep::Drop`], the lowest group first.
    fn drop_groups(&mut self) {
        let is_late = |&group: &usize| {
            let mut members = self.groups[group].iter();
            members.any(|&rank| self.ranked[rank].item.retention() == Retention::Late)
        };
        let groups = (0..self.groups.len()).rev();
        let (late, others): (Vec<usize>, Vec<usize>) = groups.partition(is_late);
        for group in others.into_iter().chain(late) {
            // If one member is kept, all are.
            if self.is_kept[self.groups[group][0]] {
                continue;
            }
            for member in 0..self.groups[group].len() {
                self.change(self.groups[group][member], Form::Dropped);
            }
            self.end_state();
        }
    }

    fn tokens_of(&self, rank: usize) -> i64 {
        self.forms[rank].tokens(self.ranked[rank].item)
    }

    /// Gives a candidate another form in the state that is being built.
    fn change(&mut self, rank: usize, after: Form) {
        let before = self.forms[rank];
        if before != after {
            let tokens = i128::from(self.tokens_of(rank));
            self.kept_tokens -= tokens;
            if after == Form::Dropped {
                self.dropped_tokens += tokens;
            }
            self.forms[rank] = after;
            self.kept_tokens += i128::from(self.tokens_of(rank));
            self.changes.push(Change {
                rank,
                before,
                after,
            });
        }
    }

    /// Ends a state, unless it equals the one before.
    fn end_state(&mut self) {
        if self.ends.last() != Some(&self.changes.len()) {
            let marker_tokens = i128::from(self.marker_tokens);
            let has_marker = self.dropped_tokens > marker_tokens;
            self.tokens
                .push(self.kept_tokens + if has_marker { marker_tokens } else { 0 });
            self.ends.push(self.changes.len());
        }
    }

    fn finish(self) -> States {
        let minima = self.tokens.iter().scan(i128::MAX, |least, &tokens| {
            *least = tokens.min(*least);
            Some(*least)
        });
        States {
            minima: minima.collect(),
            tokens: self.tokens,
            ends: self.ends,
            changes: self.changes,
            groups: self.groups,
        }
    }
}

impl Slicer for LadderSlice {
    slice_by_select!();

    fn ladder(&self) -> Option<&LadderSlice> {
        Some(self)
    }

    fn with_ladder(&self, ladder: LadderSlice) -> Option<Arc<dyn Slicer>> {
        Some(Arc::new(ladder))
    }

    fn kinds(&self) -> Vec<ContextKind> {
        let kinds = self.steps.iter().filter_map(|step| match step {
            LadderStep::Shorten { kind, .. } => Some(kind.clone()),
            LadderStep::Supersede { .. } | LadderStep::Drop => None,
        });
        kinds.collect()
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::SlicerConfig, super::ConfigError> {
        Ok(super::SlicerConfig::Ladder {
            steps: self.steps.clone(),
            marker_tokens: self.marker_tokens,
            gradual: self.is_gradual,
        })
    }

    fn select(
        &self,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        let target = budget.target_tokens();
        let tokens = ranked.iter().map(|scored| i128::from(scored.item.tokens()));
        // State 0 without building the others: most calls of a session fit.
        if target > 0 && tokens.sum::<i128>() <= i128::from(target) {
            return Ok(Selection::keep((0..ranked.len()).collect()));
        }
        let states = States::new(self, ranked);
        let state = states.choose(target)?;
        let mut forms = vec![Form::Full; ranked.len()];
        for change in states.changes_up_to(state) {
            forms[change.rank] = change.after;
        }
        let mut selection = Selection::default();
        for (rank, form) in forms.iter().enumerate() {
            match *form {
                Form::Full => selection.push(rank),
                Form::View(view) => {
                    selection.push(rank);
                    selection.shorten(rank, view);
                }
                Form::Dropped => {}
            }
        }
        for (rank, reason) in states.drops(ranked, state, target) {
            selection.refuse(rank, Refusal::Because(reason));
        }
        Ok(selection)
    }

    fn sweep(
        &self,
        ranked: &[ScoredRef<'_>],
        targets: RangeInclusive<i64>,
        visitor: &mut dyn SweepVisitor,
    ) -> Option<ControlFlow<()>> {
        let states = States::new(self, ranked);
        let mut cursor = Cursor::new(&states, ranked.len());
        for target in Self::breakpoints(&states, targets) {
            let flow = match states.choose(target) {
                Ok(state) => cursor.visit(target, state, visitor),
                Err(error) => {
                    cursor.fail(target, error, visitor);
                    ControlFlow::Continue(())
                }
            };
            if flow.is_break() {
                return Some(flow);
            }
        }
        Some(ControlFlow::Continue(()))
    }
}

#[cfg(feature = "serde")]
impl LadderSlice {
    #[expect(
        clippy::unnecessary_wraps,
        reason = "the table of strategies builds all of them alike"
    )]
    pub(crate) fn from_config(
        steps: Vec<LadderStep>,
        marker_tokens: i64,
        gradual: bool,
    ) -> Result<Self, super::ConfigError> {
        let slicer = Self::new(steps).with_marker_tokens(marker_tokens);
        Ok(slicer.with_gradual(gradual))
    }
}
