//! What is run, independent of the library.

/// A configured scorer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scoring {
    Recency,
    Priority,
    Kind,
    Tag,
    Frequency,
    /// Recency, priority and kind at 0.5, 0.3 and 0.2.
    Composite,
    /// Recency in one `ScaledScorer`.
    Scaled,
    /// Recency in two.
    ScaledTwice,
    Decay,
}

impl Scoring {
    pub(crate) const ALL: [Self; 9] = [
        Self::Recency,
        Self::Priority,
        Self::Kind,
        Self::Tag,
        Self::Frequency,
        Self::Composite,
        Self::Scaled,
        Self::ScaledTwice,
        Self::Decay,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Recency => "recency",
            Self::Priority => "priority",
            Self::Kind => "kind",
            Self::Tag => "tag",
            Self::Frequency => "frequency",
            Self::Composite => "composite",
            Self::Scaled => "scaled",
            Self::ScaledTwice => "scaled2",
            Self::Decay => "decay",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scoring| scoring.name() == name)
    }
}

/// Which entry point of a pipeline is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Entry {
    Run,
    /// A traced run whose collector records nothing.
    Null,
    /// The decision on every candidate, by position.
    Decide,
    /// A traced run whose collector makes a report, without item events.
    Report,
    DryRun,
}

impl Entry {
    const ALL: [Self; 5] = [
        Self::Run,
        Self::Null,
        Self::Decide,
        Self::Report,
        Self::DryRun,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Null => "null",
            Self::Decide => "decide",
            Self::Report => "report",
            Self::DryRun => "dry",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|entry| entry.name() == name)
    }
}

/// The library that runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Ours,
    #[cfg(feature = "full")]
    Peer,
}

impl Side {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            #[cfg(feature = "full")]
            Self::Peer => "peer",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "ours" => Some(Self::Ours),
            #[cfg(feature = "full")]
            "peer" => Some(Self::Peer),
            _ => None,
        }
    }
}

/// The budgets of the bars: maximum and target, no reserve.
pub(crate) const BUDGET: i64 = 128_000;
/// The ceiling of the search for the least budget.
pub(crate) const CEILING: i32 = 1_000_000;

/// Returns the FNV-1a hash of positions (Fowler, Noll and Vo 1991), to compare selections.
pub(crate) fn digest(positions: &[usize]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325;
    positions.iter().fold(start, |digest: u64, &position| {
        (digest ^ position as u64).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
