//! The result of a run.

use std::{collections::BTreeMap, fmt};

use super::{Adapter, KnownFailure, Mismatch, Options, Outcome};
use crate::{
    model::Channel,
    vector::{Level, Vector},
};

/// The result of a run.
///
/// Displays as one line per mismatch, one line per adapter and level, and a table of adapters by
/// channel with the number of passed cases that compared the channel.
#[derive(Debug, Clone)]
pub struct Summary {
    /// Counts by adapter, in the order they were given, and by level.
    pub tallies: Vec<(String, BTreeMap<Level, Tally>)>,
    /// Passed cases by adapter, in the order they were given, and by the channels they compared.
    pub channels: Vec<(String, BTreeMap<Channel, usize>)>,
    /// Every failed case.
    pub failures: Vec<Failed>,
    /// Known failures that name no case or no adapter of the run.
    pub stale: Vec<KnownFailure>,
    whole: bool,
}

/// Numbers of cases by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Cases that met every expectation.
    pub passed: usize,
    /// Cases that failed.
    pub failed: usize,
    /// Cases that failed and are listed as known failures.
    pub known: usize,
    /// Cases without a compared expectation.
    pub unsupported: usize,
}

/// A case that failed on an adapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// The file of the case.
    pub path: String,
    /// The name of the case.
    pub name: String,
    /// The level of the case.
    pub level: Level,
    /// The name of the adapter.
    pub adapter: String,
    /// The cause.
    pub cause: Cause,
}

/// The cause of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The observation differs from what is expected; never empty.
    Mismatches(Vec<Mismatch>),
    /// The adapter panicked; holds the panic message.
    Panic(String),
    /// The adapter declares a channel and its answer lacks it.
    Unsupported {
        /// The declared channel.
        channel: Channel,
        /// Why the answer lacks it.
        reason: String,
    },
    /// The case is listed as a known failure, for this reason, and did not fail.
    NotFailing(String),
}

/// A level of conformance that may be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Claim {
    /// Every required case passes.
    Conformant,
    /// Every required and every optional case passes.
    FullyConformant,
}

impl Summary {
    pub(super) fn new(vectors: &[Vector], adapters: &[&dyn Adapter], options: &Options) -> Self {
        let is_stale = |known: &&KnownFailure| {
            !adapters
                .iter()
                .any(|adapter| adapter.name() == known.adapter)
                || !vectors.iter().any(|vector| vector.name == known.name)
        };
        let names = adapters.iter().map(|adapter| adapter.name().to_owned());
        Self {
            tallies: names.clone().map(|name| (name, BTreeMap::new())).collect(),
            channels: names.map(|name| (name, BTreeMap::new())).collect(),
            failures: Vec::new(),
            stale: options
                .known_failures
                .iter()
                .filter(is_stale)
                .cloned()
                .collect(),
            whole: options.selects_all(),
        }
    }

    pub(super) fn record(
        &mut self,
        vector: &Vector,
        adapter: &str,
        outcome: Outcome,
        options: &Options,
    ) {
        let known = options
            .known_failures
            .iter()
            .find(|known| known.adapter == adapter && known.name == vector.name);
        let mut now = Tally::default();
        let cause = match (outcome, known) {
            (Outcome::Failed(_), Some(_)) => {
                now.known = 1;
                None
            }
            (Outcome::Failed(cause), None) => Some(cause),
            (_, Some(known)) => Some(Cause::NotFailing(known.reason.clone())),
            (Outcome::Passed(channels), None) => {
                now.passed = 1;
                self.add_channels(adapter, channels);
                None
            }
            (Outcome::Unsupported, None) => {
                now.unsupported = 1;
                None
            }
        };
        if let Some(cause) = cause {
            now.failed = 1;
            self.failures.push(Failed {
                path: vector.path.clone(),
                name: vector.name.clone(),
                level: vector.level,
                adapter: adapter.to_owned(),
                cause,
            });
        }
        self.add(adapter, vector.level, now);
    }

    fn add(&mut self, adapter: &str, level: Level, now: Tally) {
        if let Some((_, levels)) = self.tallies.iter_mut().find(|(name, _)| name == adapter) {
            let tally = levels.entry(level).or_default();
            tally.passed += now.passed;
            tally.failed += now.failed;
            tally.known += now.known;
            tally.unsupported += now.unsupported;
        }
    }

    fn add_channels(&mut self, adapter: &str, channels: Vec<Channel>) {
        if let Some((_, counts)) = self.channels.iter_mut().find(|(name, _)| name == adapter) {
            for channel in channels {
                *counts.entry(channel).or_default() += 1;
            }
        }
    }

    /// Returns the number of passed cases in which an adapter's answer was compared on a channel.
    pub fn compared(&self, adapter: &str, channel: Channel) -> usize {
        count(&self.channels, adapter, &channel)
    }

    /// Returns the counts of one adapter at one level; zero if no case ran.
    pub fn tally(&self, adapter: &str, level: Level) -> Tally {
        count(&self.tallies, adapter, &level)
    }

    /// Returns whether no case failed, the list of known failures is exact, and at least one case
    /// was compared.
    ///
    /// A filter that selects no case is not a success.
    pub fn is_success(&self) -> bool {
        let tried = |tally: &Tally| tally.passed + tally.known > 0;
        self.failures.is_empty()
            && self.stale.is_empty()
            && self
                .tallies
                .iter()
                .any(|(_, levels)| levels.values().any(tried))
    }

    /// Returns the level an adapter may claim; `None` if a filter is set or a required case does
    /// not pass.
    ///
    /// State the version of the vectors with the claim: [`SUITE_VERSION`](crate::SUITE_VERSION)
    /// for the embedded ones.
    pub fn claim(&self, adapter: &str) -> Option<Claim> {
        let all_pass = |level| {
            let tally = self.tally(adapter, level);
            tally.passed > 0 && tally.failed + tally.known + tally.unsupported == 0
        };
        (self.whole && all_pass(Level::Required)).then(|| {
            if all_pass(Level::Optional) {
                Claim::FullyConformant
            } else {
                Claim::Conformant
            }
        })
    }
}

/// Returns what one adapter has under a key; nothing has no entry.
fn count<K: Ord, V: Copy + Default>(
    counts: &[(String, BTreeMap<K, V>)],
    adapter: &str,
    key: &K,
) -> V {
    let mut own = counts.iter().filter(|(name, _)| name == adapter);
    let count = own.next().and_then(|(_, counts)| counts.get(key).copied());
    count.unwrap_or_default()
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for failed in &self.failures {
            write!(f, "{failed}")?;
        }
        for known in &self.stale {
            writeln!(
                f,
                "known failure [{}] {:?}: no such case or adapter, remove it from the list",
                known.adapter, known.name
            )?;
        }
        for (adapter, levels) in &self.tallies {
            for (level, tally) in levels {
                writeln!(f, "{adapter} {level}: {tally}")?;
            }
            if let Some(claim) = self.claim(adapter) {
                writeln!(f, "{adapter} is {claim}")?;
            }
        }
        self.write_channels(f)
    }
}

impl Summary {
    /// Writes the table of adapters by channel, with the channels that were compared.
    fn write_channels(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let compared = |channel: &Channel| {
            let mut adapters = self.channels.iter();
            adapters.any(|(_, counts)| counts.contains_key(channel))
        };
        let columns: Vec<Channel> = Channel::ALL.into_iter().filter(compared).collect();
        if columns.is_empty() {
            return Ok(());
        }
        let title = "passed cases by channel";
        let names = self.channels.iter().map(|(name, _)| name.chars().count());
        let width = names.fold(title.len(), usize::max);
        write!(f, "{title:width$}")?;
        for column in &columns {
            write!(f, " {column:>10}")?;
        }
        for (adapter, counts) in &self.channels {
            write!(f, "\n{adapter:width$}")?;
            for column in &columns {
                let count = counts.get(column).map_or("-".to_owned(), usize::to_string);
                write!(f, " {count:>10}")?;
            }
        }
        writeln!(f)
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            adapter,
            cause,
            ..
        } = self;
        match cause {
            Cause::Mismatches(mismatches) => mismatches
                .iter()
                .try_for_each(|mismatch| writeln!(f, "{path} [{adapter}] {mismatch}")),
            Cause::Panic(text) => {
                writeln!(
                    f,
                    "{path} [{adapter}] expected an answer, got a panic: {text}"
                )
            }
            Cause::Unsupported { channel, reason } => writeln!(
                f,
                "{path} [{adapter}] {channel}: declared, but not observed: {reason}"
            ),
            Cause::NotFailing(reason) => writeln!(
                f,
                "{path} [{adapter}] listed as a known failure, but does not fail; remove it from the list \
                 (its reason: {reason})"
            ),
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        for (count, what) in [
            (self.known, "known to fail"),
            (self.unsupported, "unsupported"),
        ] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Conformant => "Cupel Conformant",
            Self::FullyConformant => "Cupel Fully Conformant",
        })
    }
}
