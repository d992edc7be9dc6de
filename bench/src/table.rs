//! Rows of the table: figures, limits, verdicts, and their text.

use std::fmt::Write as _;

/// The unit of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    /// CPU time.
    Seconds,
    NanosecondsPerItem,
    NanosecondsPerCell,
    Instructions,
    InstructionsPerItem,
    Allocations,
    Bytes,
    BytesPerItem,
    Instances,
    Cells,
    /// A ratio.
    Times,
    /// A ratio below one.
    Percent,
}

impl Unit {
    pub(crate) fn show(self, value: f64) -> String {
        match self {
            Self::Seconds => scaled(
                value,
                &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")],
            ),
            Self::NanosecondsPerItem => format!("{} ns/item", digits(value)),
            Self::NanosecondsPerCell => format!("{} ns/cell", digits(value)),
            Self::Instructions => scaled(value, &[(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")]),
            Self::InstructionsPerItem => format!("{} per item", digits(value)),
            Self::Bytes => scaled(value, &[(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")]),
            Self::BytesPerItem => format!("{} B/item", digits(value)),
            Self::Allocations | Self::Instances => format!("{value}"),
            Self::Cells => scaled(value, &[(1e12, "T"), (1e9, "G"), (1e6, "M"), (1.0, "")]),
            // Ratios near one need three decimals.
            Self::Times if (0.9..1.1).contains(&value) => format!("{value:.3}×"),
            Self::Times => format!("{}×", digits(value)),
            Self::Percent => format!("{} %", digits(value * 100.0)),
        }
    }
}

fn scaled(value: f64, scales: &[(f64, &str)]) -> String {
    let fits = scales.iter().find(|(scale, _)| value >= *scale);
    let (scale, name) = fits.or(scales.last()).copied().unwrap_or((1.0, ""));
    format!("{} {name}", digits(value / scale))
        .trim_end()
        .into()
}

/// Returns three significant digits, more before the decimal point.
fn digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    #[expect(clippy::cast_possible_truncation, reason = "a magnitude is small")]
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = usize::try_from(2 - magnitude).unwrap_or(0).min(6);
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// One side of a row.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Figure {
    Nothing,
    Value {
        value: f64,
        unit: Unit,
        /// How it was measured, if unlike the other figures of its row.
        note: String,
    },
    Words(String),
}

impl Figure {
    pub(crate) fn of(value: f64, unit: Unit) -> Self {
        let note = String::new();
        Self::Value { value, unit, note }
    }

    pub(crate) fn noted(value: f64, unit: Unit, note: impl Into<String>) -> Self {
        let note = note.into();
        Self::Value { value, unit, note }
    }

    pub(crate) fn show(&self) -> String {
        match self {
            Self::Nothing => "–".to_owned(),
            Self::Value { value, unit, note } if note.is_empty() => unit.show(*value),
            Self::Value { value, unit, note } => format!("{} ({note})", unit.show(*value)),
            Self::Words(words) => words.clone(),
        }
    }
}

/// A bound on a measured value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Limit {
    AtLeast(f64),
    AtMost(f64),
}

impl Limit {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
        }
    }

    fn show(self, unit: Unit) -> String {
        match self {
            Self::AtLeast(bound) => format!("≥ {}", unit.show(bound)),
            Self::AtMost(bound) => format!("≤ {}", unit.show(bound)),
        }
    }
}

/// The required and the desired limit of a row.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Goal {
    pub(crate) must: Limit,
    pub(crate) aim: Limit,
}

pub(crate) fn at_least(must: f64, aim: f64) -> Goal {
    let (must, aim) = (Limit::AtLeast(must), Limit::AtLeast(aim));
    Goal { must, aim }
}

pub(crate) fn at_most(must: f64, aim: f64) -> Goal {
    let (must, aim) = (Limit::AtMost(must), Limit::AtMost(aim));
    Goal { must, aim }
}

/// The result of a row.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Verdict {
    Aim,
    Must,
    /// Missed by its figures if the reason is empty.
    Missed(String),
    NotMeasured(String),
    /// The row has no goal.
    Shown,
}

impl Verdict {
    pub(crate) fn show(&self) -> String {
        match self {
            Self::Aim => "aim".to_owned(),
            Self::Must => "must".to_owned(),
            Self::Missed(reason) if reason.is_empty() => "MISSED".to_owned(),
            Self::Missed(reason) => format!("MISSED: {reason}"),
            Self::NotMeasured(reason) => format!("not measured here: {reason}"),
            Self::Shown => String::new(),
        }
    }
}

/// One line of the table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The bar; `None` for a row that belongs to none.
    pub(crate) bar: Option<u8>,
    /// The name of its limit in `limits.toml`, for counts.
    pub(crate) key: String,
    pub(crate) what: String,
    pub(crate) peer: Figure,
    pub(crate) ours: Figure,
    /// The value that the limits apply to, in `unit`.
    pub(crate) measured: Option<f64>,
    pub(crate) unit: Unit,
    pub(crate) goal: Option<Goal>,
    /// What was compared before measuring.
    pub(crate) checked: &'static str,
    fault: Option<Verdict>,
}

impl Row {
    pub(crate) fn new(bar: impl Into<Option<u8>>, what: impl Into<String>) -> Self {
        Self {
            bar: bar.into(),
            key: String::new(),
            what: what.into(),
            peer: Figure::Nothing,
            ours: Figure::Nothing,
            measured: None,
            unit: Unit::Times,
            goal: None,
            checked: "–",
            fault: None,
        }
    }

    pub(crate) fn key(mut self, key: impl Into<String>) -> Self {
        self.key = key.into();
        self
    }

    pub(crate) fn peer(mut self, figure: Figure) -> Self {
        self.peer = figure;
        self
    }

    pub(crate) fn ours(mut self, figure: Figure) -> Self {
        self.ours = figure;
        self
    }

    pub(crate) fn measured(mut self, value: f64, unit: Unit) -> Self {
        self.measured = Some(value);
        self.unit(unit)
    }

    /// Sets the unit of the limits, for a row that may stay without a value.
    pub(crate) fn unit(mut self, unit: Unit) -> Self {
        self.unit = unit;
        self
    }

    pub(crate) fn goal(mut self, goal: Goal) -> Self {
        self.goal = Some(goal);
        self
    }

    pub(crate) fn checked(mut self, what: &'static str) -> Self {
        self.checked = what;
        self
    }

    pub(crate) fn not_measured(mut self, reason: impl Into<String>) -> Self {
        self.fault = Some(Verdict::NotMeasured(reason.into()));
        self
    }

    /// Marks the bar as missed, regardless of its figures.
    pub(crate) fn missed(mut self, reason: impl Into<String>) -> Self {
        self.fault = Some(Verdict::Missed(reason.into()));
        self
    }

    pub(crate) fn verdict(&self) -> Verdict {
        if let Some(fault) = &self.fault {
            return fault.clone();
        }
        match (self.measured, self.goal) {
            (_, None) => Verdict::Shown,
            (None, Some(_)) => Verdict::Missed("nothing was measured".to_owned()),
            (Some(value), Some(goal)) if !goal.must.holds(value) => Verdict::Missed(String::new()),
            (Some(value), Some(goal)) if goal.aim.holds(value) => Verdict::Aim,
            _ => Verdict::Must,
        }
    }

    fn cells(&self) -> [String; 9] {
        let nothing = || "–".to_owned();
        let limit = |limit: fn(Goal) -> Limit| {
            let goal = self.goal;
            goal.map_or_else(nothing, |goal| limit(goal).show(self.unit))
        };
        [
            self.bar.map_or_else(nothing, |bar| bar.to_string()),
            self.what.clone(),
            self.peer.show(),
            self.ours.show(),
            self.measured
                .map_or_else(nothing, |value| self.unit.show(value)),
            limit(|goal| goal.must),
            limit(|goal| goal.aim),
            self.verdict().show(),
            self.checked.to_owned(),
        ]
    }
}

const HEADINGS: [&str; 9] = [
    "bar", "what", "peer", "ours", "ratio", "must", "aim", "verdict", "checked",
];

/// The rows as one table, in Markdown.
pub(crate) fn render(rows: &[Row]) -> String {
    let lines: Vec<[String; 9]> = rows.iter().map(Row::cells).collect();
    let width = |column: usize| {
        let cells = lines.iter().map(|cells| cells[column].chars().count());
        cells.max().unwrap_or(0).max(HEADINGS[column].len())
    };
    let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
    let mut table = String::new();
    let mut line = |cells: &[String]| {
        for (cell, width) in cells.iter().zip(&widths) {
            let _ = write!(table, "| {cell:width$} ");
        }
        table.push_str("|\n");
    };
    line(&HEADINGS.map(str::to_owned));
    line(
        &widths
            .iter()
            .map(|width| "-".repeat(*width))
            .collect::<Vec<_>>(),
    );
    for cells in &lines {
        line(cells);
    }
    table
}

/// Returns the number of rows per verdict, in one line.
pub(crate) fn summary(rows: &[Row]) -> String {
    let verdicts: Vec<Verdict> = rows.iter().map(Row::verdict).collect();
    let count = |wanted: fn(&Verdict) -> bool| verdicts.iter().filter(|v| wanted(v)).count();
    format!(
        "{} rows at their aim, {} at their must, {} MISSED, {} not measured",
        count(|verdict| *verdict == Verdict::Aim),
        count(|verdict| *verdict == Verdict::Must),
        count(|verdict| matches!(verdict, Verdict::Missed(_))),
        count(|verdict| matches!(verdict, Verdict::NotMeasured(_))),
    )
}
