//! The bars that are counted, not timed: the same number in every run.
//!
//! The table shows them with the timed ones; `--check` compares them with `limits.toml`.

use crate::allocator::{Usage, counted};
use crate::generator::Population;
use crate::instructions::{Case, count};
use crate::ours;
#[cfg(feature = "full")]
use crate::peer;
use crate::recipe::{BUDGET, Entry, Scoring, Side};
use crate::table::{Figure, Row, Unit, at_most};

/// Which sizes and libraries are counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// One and ten thousand items, our library only.
    Check,
    /// The same, with the published crate where it can be counted.
    #[cfg(feature = "full")]
    Quick,
    /// A hundred thousand items too.
    #[cfg(feature = "full")]
    Full,
}

impl Reach {
    fn peer(self) -> Option<Side> {
        match self {
            Self::Check => None,
            #[cfg(feature = "full")]
            Self::Quick | Self::Full => Some(Side::Peer),
        }
    }

    fn largest(self) -> usize {
        match self {
            Self::Check => 10_000,
            #[cfg(feature = "full")]
            Self::Quick => 10_000,
            #[cfg(feature = "full")]
            Self::Full => 100_000,
        }
    }
}

const BOTH: [Scoring; 2] = [Scoring::Kind, Scoring::Composite];

/// Bars 10, 11, 13 and the counted halves of 14 and 15.
pub(crate) fn instruction_rows(reach: Reach) -> Vec<Row> {
    match Instructions::count(reach) {
        Ok(instructions) => instructions.rows(),
        Err(reason) => [
            (10, "cost of two scaled wrappers, instructions"),
            (11, "growth, instructions"),
            (13, "instructions per item"),
            (14, "disabled trace, instructions"),
            (15, "report, instructions"),
        ]
        .map(|(bar, what)| Row::new(bar, what).not_measured(reason.clone()))
        .into(),
    }
}

/// The counts behind the rows.
struct Instructions {
    reach: Reach,
    counts: Vec<(Side, usize, Case, f64)>,
}

impl Instructions {
    fn count(reach: Reach) -> Result<Self, String> {
        let run = |scoring| Case(scoring, Entry::Run);
        let both = BOTH.map(run).to_vec();
        let traced = [Entry::Null, Entry::Decide, Entry::Report, Entry::DryRun];
        let null = BOTH.map(|scoring| Case(scoring, Entry::Null)).to_vec();
        let traced = traced.map(|entry| BOTH.map(|scoring| Case(scoring, entry)));
        let more = vec![run(Scoring::Recency), run(Scoring::Frequency)];
        let small = [both.clone(), more].concat();
        let wrapped = vec![run(Scoring::ScaledTwice)];
        let middle = [small.clone(), traced.concat(), wrapped].concat();
        let mut jobs = vec![(Side::Ours, 1_000, small), (Side::Ours, 10_000, middle)];
        if reach.largest() > 10_000 {
            jobs.push((Side::Ours, 100_000, both.clone()));
        }
        if let Some(peer) = reach.peer() {
            jobs.push((peer, 100, both.clone()));
            jobs.push((peer, 1_000, [both, null].concat()));
        }
        let mut counts = Vec::new();
        for (side, number, cases) in jobs {
            let counted = count(side, number, &cases)?.into_iter();
            counts.extend(counted.map(|(case, count)| (side, number, case, count)));
        }
        Ok(Self { reach, counts })
    }

    fn rows(&self) -> Vec<Row> {
        let mut rows = vec![self.wrappers()];
        let growing = [BOTH, [Scoring::Recency, Scoring::Frequency]].concat();
        rows.extend(
            growing
                .into_iter()
                .map(|scoring| self.growth(scoring, 1_000)),
        );
        if self.reach.largest() > 10_000 {
            rows.extend(BOTH.map(|scoring| self.growth(scoring, 10_000)));
        }
        rows.extend(BOTH.map(|scoring| self.per_item(scoring)));
        rows.extend(BOTH.map(|scoring| self.disabled_trace(scoring)));
        for entry in [Entry::Decide, Entry::DryRun, Entry::Report] {
            rows.extend(BOTH.map(|scoring| self.report(scoring, entry)));
        }
        rows
    }

    fn ours(&self, number: usize, scoring: Scoring, entry: Entry) -> f64 {
        let found = self.find(Side::Ours, number, Case(scoring, entry));
        found.unwrap_or(f64::NAN)
    }

    fn find(&self, side: Side, number: usize, case: Case) -> Option<f64> {
        let mut counts = self.counts.iter();
        let found = counts.find(|(s, n, c, _)| (*s, *n, *c) == (side, number, case));
        found.map(|(.., count)| *count)
    }

    /// Returns the ratio of two counts of the published crate, if both are known.
    fn peer_ratio(&self, over: (usize, Case), under: (usize, Case)) -> Option<f64> {
        let find = |(number, case)| self.find(self.reach.peer()?, number, case);
        Some(find(over)? / find(under)?)
    }

    fn wrappers(&self) -> Row {
        let wrapped = self.ours(10_000, Scoring::ScaledTwice, Entry::Run);
        let bare = self.ours(10_000, Scoring::Recency, Entry::Run);
        let peer = self.reach.peer();
        let peer = peer.map_or(Figure::Nothing, |_| Figure::Words("does not finish".into()));
        Row::new(10, "scaled(scaled(recency)) / recency, N=10k, instructions")
            .key("scaled2_10k")
            .peer(peer)
            .ours(Figure::of(wrapped, Unit::Instructions))
            .measured(wrapped / bare, Unit::Times)
            .goal(at_most(1.15, 1.05))
    }

    fn growth(&self, scoring: Scoring, from: usize) -> Row {
        let few = self.ours(from, scoring, Entry::Run);
        let many = self.ours(from * 10, scoring, Entry::Run);
        let case = Case(scoring, Entry::Run);
        let peer = self.peer_ratio((1_000, case), (100, case));
        let (name, low, high) = (scoring.name(), short(from), short(from * 10));
        Row::new(11, format!("growth {low}→{high}, {name}, instructions"))
            .key(format!("{name}_{low}_{high}"))
            .peer(noted(peer, Unit::Times, "100→1k"))
            .ours(Figure::of(many, Unit::Instructions))
            .measured(many / few, Unit::Times)
            .goal(at_most(12.0, 11.0))
    }

    fn per_item(&self, scoring: Scoring) -> Row {
        let name = scoring.name();
        let count = self.ours(10_000, scoring, Entry::Run);
        let peer = self.reach.peer();
        let peer = peer.and_then(|peer| self.find(peer, 1_000, Case(scoring, Entry::Run)));
        let peer = peer.map(|count| count / 1_000.0);
        let goal = match scoring {
            Scoring::Kind => at_most(700.0, 400.0),
            _ => at_most(1_200.0, 800.0),
        };
        Row::new(13, format!("instructions per item, {name}, N=10k"))
            .key(format!("{name}_10k"))
            .peer(noted(peer, Unit::InstructionsPerItem, "N=1k"))
            .ours(Figure::of(count, Unit::Instructions))
            .measured(count / 10_000.0, Unit::InstructionsPerItem)
            .goal(goal)
    }

    /// The instruction counts of bar 15, whose limits are on time.
    fn report(&self, scoring: Scoring, entry: Entry) -> Row {
        let (name, entry_name) = (scoring.name(), entry.name());
        let with = self.ours(10_000, scoring, entry);
        let without = self.ours(10_000, scoring, Entry::Run);
        let what = format!("{entry_name} / run, {name}, N=10k, instructions");
        Row::new(15, what)
            .key(format!("{entry_name}_{name}_10k"))
            .ours(Figure::of(with, Unit::Instructions))
            .measured(with / without, Unit::Times)
    }

    fn disabled_trace(&self, scoring: Scoring) -> Row {
        let name = scoring.name();
        let traced = self.ours(10_000, scoring, Entry::Null);
        let plain = self.ours(10_000, scoring, Entry::Run);
        let (null, run) = (Case(scoring, Entry::Null), Case(scoring, Entry::Run));
        let peer = self.peer_ratio((1_000, null), (1_000, run));
        Row::new(
            14,
            format!("traced(null) / run, {name}, N=10k, instructions"),
        )
        .key(format!("{name}_10k"))
        .peer(noted(peer, Unit::Times, "N=1k"))
        .ours(Figure::of(traced, Unit::Instructions))
        .measured(traced / plain, Unit::Times)
        .goal(at_most(1.01, 1.001))
    }
}

/// Returns a figure with a note, if there is one.
fn noted(value: Option<f64>, unit: Unit, note: &str) -> Figure {
    value.map_or(Figure::Nothing, |value| Figure::noted(value, unit, note))
}

/// Bars 18, 19 and 20.
pub(crate) fn allocation_rows(reach: Reach) -> Vec<Row> {
    let mut rows = vec![
        peak_memory(reach, Scoring::Composite, Entry::Run),
        peak_memory(reach, Scoring::Frequency, Entry::Run),
        peak_memory(reach, Scoring::Composite, Entry::Decide),
        peak_memory(reach, Scoring::Composite, Entry::DryRun),
        peak_memory(reach, Scoring::Composite, Entry::Report),
    ];
    let sizes = [1_000, 10_000, 100_000].into_iter();
    let sizes = sizes.filter(|&number| number <= reach.largest());
    rows.extend(sizes.map(|number| allocations(reach, number)));
    rows.push(copies(reach));
    rows
}

fn peak_memory(reach: Reach, scoring: Scoring, entry: Entry) -> Row {
    let population = Population::new(10_000);
    let (key, goal) = match (scoring, entry) {
        (_, Entry::Decide) => ("decide_10k", at_most(160.0, 96.0)),
        (_, Entry::DryRun) => ("dry_run_10k", at_most(160.0, 96.0)),
        (_, Entry::Report) => ("report_10k", at_most(160.0, 96.0)),
        (Scoring::Frequency, _) => ("frequency_10k", at_most(320.0, 128.0)),
        _ => ("greedy_10k", at_most(96.0, 48.0)),
    };
    // Frequency over ten thousand items takes the published crate half a minute.
    let peer = reach.peer().filter(|_| scoring != Scoring::Frequency);
    let peer = peer.map(|peer| usage(peer, &population, scoring, entry).1);
    let (_, ours) = usage(Side::Ours, &population, scoring, entry);
    let per_item = |usage: Usage| usage.peak as f64 / 10_000.0;
    let what = format!("{} {}", scoring.name(), entry.name());
    Row::new(18, format!("peak memory beyond input, {what}, N=10k"))
        .key(key)
        .peer(counted_figure(peer.map(per_item), Unit::BytesPerItem))
        .ours(Figure::of(ours.peak as f64, Unit::Bytes))
        .measured(per_item(ours), Unit::BytesPerItem)
        .goal(goal)
}

fn allocations(reach: Reach, number: usize) -> Row {
    let population = Population::new(number);
    let measure = |side| usage(side, &population, Scoring::Composite, Entry::Run);
    let peer = reach.peer().filter(|_| number <= 10_000);
    let peer = peer.map(|peer| measure(peer).1.allocations as f64);
    let (selected, ours) = measure(Side::Ours);
    let ours = ours.allocations as f64;
    let size = short(number);
    let what = format!("allocations per run, composite, N={size}, {selected} selected");
    Row::new(19, what)
        .key(format!("composite_{size}"))
        .peer(counted_figure(peer, Unit::Allocations))
        .ours(Figure::of(ours, Unit::Allocations))
        .measured(ours, Unit::Allocations)
        .goal(at_most(64.0 + selected as f64, 40.0))
}

/// Returns how often a run copies contents: the extra bytes it requests when all texts are four times
/// as long, over the extra bytes of the texts.
fn copies(reach: Reach) -> Row {
    let (plain, long) = (Population::new(1_000), Population::stretched(1_000, 4));
    let content = |population: &Population| {
        let lengths = population.candidates().map(|c| c.content.len() as f64);
        lengths.sum::<f64>()
    };
    let longer = content(&long) - content(&plain);
    let copied = |side| {
        let requested = |population| {
            let (_, usage) = usage(side, population, Scoring::Composite, Entry::Run);
            usage.bytes as f64
        };
        (requested(&long) - requested(&plain)).max(0.0)
    };
    let peer = reach.peer().map(|peer| copied(peer) / longer);
    let ours = copied(Side::Ours);
    Row::new(20, "bytes copied over bytes of content, composite, N=1k")
        .key("composite_1k")
        .peer(counted_figure(peer, Unit::Times))
        .ours(Figure::of(ours, Unit::Bytes))
        .measured(ours / longer, Unit::Times)
        .goal(at_most(0.0, 0.0))
}

fn counted_figure(value: Option<f64>, unit: Unit) -> Figure {
    noted(value, unit, "")
}

/// Returns how many items one call selects and its memory use, with its result still held at the end.
fn usage(side: Side, population: &Population, scoring: Scoring, entry: Entry) -> (usize, Usage) {
    /// The same code for either library.
    macro_rules! usage_of {
        ($library:ident) => {{
            let items = $library::items(population);
            let budget = $library::budget(BUDGET);
            let pipeline = $library::pipeline(scoring);
            let selected = $library::call(&pipeline, Entry::Run, &items, &budget).expect("a run");
            let usage = match entry {
                Entry::Run | Entry::Null => counted(|| pipeline.run(&items, &budget)).1,
                Entry::Decide => counted(|| $library::decide(&pipeline, &items, &budget)).1,
                Entry::Report => counted(|| $library::report(&pipeline, &items, &budget)).1,
                Entry::DryRun => counted(|| pipeline.dry_run(&items, &budget)).1,
            };
            (selected, usage)
        }};
    }
    match side {
        Side::Ours => usage_of!(ours),
        #[cfg(feature = "full")]
        Side::Peer => usage_of!(peer),
    }
}

/// Returns 1000 as `1k`.
pub(crate) fn short(number: usize) -> String {
    match number {
        1_000_000.. if number.is_multiple_of(1_000_000) => format!("{}M", number / 1_000_000),
        1_000.. if number.is_multiple_of(1_000) => format!("{}k", number / 1_000),
        _ => number.to_string(),
    }
}
