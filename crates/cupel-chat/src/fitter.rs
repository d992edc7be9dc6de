//! [`Fitter`]: trims a growing chat request by request, and remembers what was counted.
//!
//! A policy with [`replay`](cupel::ChatSettings::replay) makes the cuts of the earlier requests again, so a window does
//! not depend on the state. The state saves work, and tells what a prompt cache can reuse:
//!
//! ```text
//! request   chat           window         counted       reused of the previous window
//! 1         0 1 2          0 1 2          0 1 2
//! 2         0 1 2 3 4      0 3 4          3 4           0
//! 3         0 .. 5         0 3 4 5        5             0 3 4
//! ```

use std::collections::BTreeMap;
use std::fmt;

use cupel::{ContextBudget, ContextItem, Policy};
use serde::{Deserialize, Serialize};

use crate::cache::unmarked;
use crate::candidates::SessionMemory;
use crate::chat::Chat;
use crate::fit::{FitError, Fitted};
use crate::tokens::TokenCounter;

/// Trims a growing chat request by request, and tells how much of the previous window is reused.
///
/// The windows are those of [`Chat::fit`]. A fitter remembers the token counts of the messages and the last window; a
/// caller that sends a history again pays for its new messages only, also in another process.
///
/// ```
/// use cupel::ContextBudget;
/// use cupel_chat::{Chat, Encoding, Fitter, default_policy};
///
/// let mut fitter = Fitter::new(default_policy());
/// let budget = ContextBudget::with_target(60, 60)?;
/// let mut messages = vec![r#"{"role": "user", "content": "Count with me."}"#.to_owned()];
/// for turn in 1..=9 {
///     messages.push(format!(r#"{{"role": "assistant", "content": "I say the number {turn}."}}"#));
///     messages.push(format!(r#"{{"role": "user", "content": "Then I say {turn} and a half."}}"#));
///     let chat = Chat::parse(&format!("[{}]", messages.join(",")), None)?;
///     let window = fitter.fit(&chat, &budget, &Encoding::O200k)?;
///     let alone = chat.fit(&default_policy(), &budget, &Encoding::O200k)?;
///     assert_eq!(window.fitted.to_json(), alone.to_json());
/// }
/// let state = fitter.state().to_json();
/// assert_eq!(cupel_chat::FitState::from_json(&state)?, *fitter.state());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Fitter {
    policy: Policy,
    state: FitState,
    /// The items of the last chat. A state file has only their tokens.
    originals: Vec<ContextItem>,
}

/// A window of a session.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SessionWindow<'a> {
    /// The trimmed chat.
    pub fitted: Fitted<'a>,
    /// What the window shares with the one before it; `None` for the first.
    pub reuse: Option<Reuse>,
    /// Why a part of the state is of no use; `None` if all of it is that of the chat.
    pub rebuilt: Option<Rebuilt>,
}

/// The prefix that a window shares with the one before it, byte for byte but for breakpoints of the prompt cache.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reuse {
    /// The tokens of the shared prefix.
    pub tokens: i64,
    /// The tokens of the previous window.
    pub of: i64,
    /// The share of the previous window that is the prefix, in `[0, 1]`.
    pub share: f64,
    /// The position of the first message of the previous window that changed or was dropped.
    pub first_changed: Option<usize>,
}

/// Why a part of a state is of no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Rebuilt {
    /// The message at this position is not the one that the chat had there before. A prompt cache ends before it.
    #[cfg_attr(feature = "schema", schemars(title = "HistoryChanged"))]
    HistoryChanged(usize),
    /// The state is that of another chat format or token counter.
    OtherSettings,
}

impl fmt::Display for Rebuilt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HistoryChanged(index) => write!(
                f,
                "the history changed at message {index}, so a prompt cache ends before it"
            ),
            Self::OtherSettings => f.write_str(
                "the state has another format or counter, so all messages were counted again",
            ),
        }
    }
}

/// What a [`Fitter`] remembers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FitState {
    /// The hash of the format and the counter; 0 before the first window.
    settings: u64,
    messages: Vec<Remembered>,
    /// The messages of the last window as written: position, hash and tokens.
    window: Vec<(usize, u64, i64)>,
    summaries: BTreeMap<String, String>,
}

/// What is remembered of one message.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Remembered {
    /// The hash of this message and all before it (a hash chain), without breakpoints of the prompt cache: the first
    /// chain that differs tells where the history was edited.
    chain: u64,
    tokens: i64,
}

/// The error of reading a state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}; delete the state to start again")]
pub struct InvalidState(String);

/// The version of the file format. It changes with anything that gives a field another meaning: the
/// hash function, the order of the fields.
const VERSION: u32 = 3;

/// The file format of a state. It has hashes, token counts and positions, and no text of the chat but its summaries.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StateFile {
    cupel_state: u32,
    settings: u64,
    /// Chain and tokens.
    messages: Vec<(u64, i64)>,
    window: Vec<(usize, u64, i64)>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    summaries: BTreeMap<String, String>,
    /// The hash of the other fields: a file that was cut off or edited is refused, because wrong
    /// counts would be used silently.
    check: u64,
}

impl FitState {
    /// Returns the state as JSON in one line.
    pub fn to_json(&self) -> String {
        let messages = self.messages.iter();
        let mut file = StateFile {
            cupel_state: VERSION,
            settings: self.settings,
            messages: messages.map(|it| (it.chain, it.tokens)).collect(),
            window: self.window.clone(),
            summaries: self.summaries.clone(),
            check: 0,
        };
        file.check = file.hash();
        // Numbers and lists of them always serialize.
        serde_json::to_string(&file).unwrap_or_default()
    }

    /// Reads a state.
    ///
    /// # Errors
    ///
    /// [`InvalidState`] if the text is not a state, is incomplete, was changed, or has another version.
    pub fn from_json(text: &str) -> Result<Self, InvalidState> {
        #[derive(Deserialize)]
        struct Version {
            cupel_state: u32,
        }
        let version = serde_json::from_str::<Version>(text);
        let version = version.map_err(|error| InvalidState(format!("not a state: {error}")))?;
        if version.cupel_state != VERSION {
            return Err(InvalidState(format!(
                "the state has version {}, and this is version {VERSION}",
                version.cupel_state
            )));
        }
        let file = serde_json::from_str::<StateFile>(text);
        let file = file.map_err(|error| InvalidState(format!("the state is damaged: {error}")))?;
        if file.check != file.hash() {
            return Err(InvalidState(
                "the state is damaged: wrong checksum".to_owned(),
            ));
        }
        let messages = file.messages.into_iter();
        Ok(Self {
            settings: file.settings,
            messages: messages
                .map(|(chain, tokens)| Remembered { chain, tokens })
                .collect(),
            window: file.window,
            summaries: file.summaries,
        })
    }

    /// The summaries of dropped messages of the last window, by the caller's keys.
    pub fn summaries(&self) -> &BTreeMap<String, String> {
        &self.summaries
    }
}

impl StateFile {
    fn hash(&self) -> u64 {
        let fields = (self.settings, &self.messages, &self.window);
        let fields = serde_json::to_string(&fields).unwrap_or_default();
        let summaries = self.summaries.iter();
        summaries
            .flat_map(|(key, text)| [key, text])
            .fold(hash(0, fields.as_bytes()), |seed, text| {
                hash(seed, text.as_bytes())
            })
    }
}

impl Fitter {
    /// Starts a session.
    pub fn new(policy: Policy) -> Self {
        Self::resume(policy, FitState::default())
    }

    /// Continues a session.
    pub fn resume(policy: Policy, state: FitState) -> Self {
        Self {
            policy,
            state,
            originals: Vec::new(),
        }
    }

    /// Returns what is remembered.
    pub fn state(&self) -> &FitState {
        &self.state
    }

    /// Remembers the summaries of the last window in the place of earlier ones. A fitter does not read them: the caller
    /// asks for a new summary if the state has none with its key.
    pub fn remember_summaries(&mut self, summaries: BTreeMap<String, String>) {
        self.state.summaries = summaries;
    }

    /// Trims the chat to a budget; see [`Chat::fit`]. If that fails, the state does not change.
    ///
    /// The state of another conversation is replaced.
    ///
    /// # Errors
    ///
    /// [`FitError`].
    pub fn fit<'a>(
        &mut self,
        chat: &'a Chat,
        budget: &ContextBudget,
        counter: &dyn TokenCounter,
    ) -> Result<SessionWindow<'a>, FitError> {
        let settings = [chat.shape().name(), counter.name()];
        let settings = settings
            .iter()
            .fold(0, |seed, text| hash(seed, text.as_bytes()));
        let messages = chat.messages.iter().enumerate();
        // A breakpoint of the prompt cache moves with every request, and is no edit.
        let hashes = messages.map(|(index, message)| {
            let text = unmarked(chat.layout.json(index), message);
            hash(0, text.as_bytes())
        });
        let hashes: Vec<u64> = hashes.collect();
        let chains: Vec<u64> = hashes
            .iter()
            .scan(settings, |chain, own| {
                *chain = hash(*chain, &own.to_le_bytes());
                Some(*chain)
            })
            .collect();

        let (known, rebuilt) = self.known(settings, &chains);
        let known = &self.state.messages[..known];
        let mut memory = SessionMemory {
            tokens: known.iter().map(|message| message.tokens).collect(),
            originals: std::mem::take(&mut self.originals),
        };
        // Items of messages that changed since must be built again.
        memory.originals.truncate(known.len());
        let window = chat
            .candidates_after(&memory, &self.policy, Some(budget), counter)
            .and_then(|candidates| {
                let fitted = chat.fit_candidates(&self.policy, budget, &candidates, counter)?;
                Ok((candidates, fitted))
            });
        // Returned before the error is: a caller may try again with another budget.
        self.originals = memory.originals;
        let (candidates, fitted) = window?;

        let messages = chains.into_iter().zip(&candidates.originals);
        let messages = messages.map(|(chain, item)| Remembered {
            chain,
            tokens: item.tokens(),
        });
        let messages: Vec<Remembered> = messages.collect();
        let window = written(&fitted, |it| hashes[it], |it| messages[it].tokens);
        let previous = &self.state.window;
        let reuse = (!previous.is_empty()).then(|| Reuse::between(previous, &window, (0, 0)));
        self.originals = candidates.originals;
        self.state = FitState {
            settings,
            messages,
            window,
            summaries: std::mem::take(&mut self.state.summaries),
        };
        Ok(SessionWindow {
            fitted,
            reuse,
            rebuilt,
        })
    }

    /// Returns how many messages of the state are those of the chat, and why not all are.
    fn known(&self, settings: u64, chains: &[u64]) -> (usize, Option<Rebuilt>) {
        let state = &self.state;
        if state.settings != settings {
            let is_new = *state == FitState::default();
            return (0, (!is_new).then_some(Rebuilt::OtherSettings));
        }
        let pairs = state.messages.iter().zip(chains);
        let known = pairs
            .take_while(|(message, chain)| message.chain == **chain)
            .count();
        let is_changed = known < state.messages.len();
        (known, is_changed.then_some(Rebuilt::HistoryChanged(known)))
    }
}

/// Returns the messages of a window as written: position, hash and tokens. A marker has the position of
/// the message after it.
pub(crate) fn written(
    fitted: &Fitted<'_>,
    hash_of: impl Fn(usize) -> u64,
    tokens_of: impl Fn(usize) -> i64,
) -> Vec<(usize, u64, i64)> {
    let mut shortened = fitted.shortened.iter().peekable();
    let mut window = Vec::with_capacity(fitted.kept.len() + fitted.markers.len());
    for &index in &fitted.kept {
        if let Some(marker) = fitted.marker_before(index) {
            window.push((index, hash(0, marker.json.as_bytes()), marker.tokens));
        }
        let short = shortened.next_if(|short| short.index == index);
        let tokens = short.map_or_else(|| tokens_of(index), |short| short.tokens);
        let marker = fitted.marker_in(index).map_or(0, |marker| marker.tokens);
        let texts = fitted.replaced(index);
        let hash = texts.iter().fold(hash_of(index), |seed, (_, text)| {
            hash(seed, text.as_bytes())
        });
        window.push((index, hash, tokens + marker));
    }
    window
}

impl Reuse {
    /// Compares two windows by message: position, hash and tokens. `overhead` are tokens before them: how many are shared,
    /// and how many the old window has.
    pub(crate) fn between(
        old: &[(usize, u64, i64)],
        new: &[(usize, u64, i64)],
        overhead: (i64, i64),
    ) -> Self {
        let pairs = old.iter().zip(new);
        let shared = pairs
            .take_while(|((_, old, _), (_, new, _))| old == new)
            .count();
        let sum = |window: &[(usize, u64, i64)]| {
            let tokens = window.iter().map(|(_, _, tokens)| *tokens);
            tokens.fold(0, i64::saturating_add)
        };
        let tokens = overhead.0.saturating_add(sum(&old[..shared]));
        let of = overhead.1.saturating_add(sum(old));
        Self {
            tokens,
            of,
            share: if of > 0 {
                tokens as f64 / of as f64
            } else {
                1.0
            },
            first_changed: old.get(shared).map(|(index, ..)| *index),
        }
    }
}

/// A 64-bit multiplicative hash over four lanes of 8-byte words: the same on every machine and in every
/// version, and fast enough to read a whole history every turn.
///
/// The lanes are independent, so that their multiplications overlap in the processor. The length is
/// hashed, too. Without it, the zeros that pad the last word would equal zeros of the text. It
/// detects edits and damage; it does not resist an attacker.
pub(crate) fn hash(seed: u64, bytes: &[u8]) -> u64 {
    // 2^64 divided by the golden ratio, odd (Fibonacci hashing; Knuth, TAOCP volume 3, section
    // 6.4).
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(MULTIPLIER).rotate_left(29);
    let mut lanes = [0, 1, 2, 3];
    let (words, tail) = bytes.as_chunks::<8>();
    let (blocks, rest) = words.as_chunks::<4>();
    for block in blocks {
        for (lane, word) in lanes.iter_mut().zip(block) {
            *lane = mix(*lane, u64::from_le_bytes(*word));
        }
    }
    let mut last = [0; 8];
    last[..tail.len()].copy_from_slice(tail);
    let rest = rest.iter().chain([&last]).copied().map(u64::from_le_bytes);
    let words = lanes.into_iter().chain(rest).chain([bytes.len() as u64]);
    words.fold(seed.wrapping_add(MULTIPLIER), mix)
}

#[cfg(test)]
mod tests {
    use super::hash;

    #[test]
    fn a_hash_depends_on_the_seed_and_on_every_byte() {
        for length in [0, 1, 7, 8, 31, 32, 33, 100] {
            let bytes = vec![7_u8; length];
            let base = hash(1, &bytes);
            assert_ne!(base, hash(2, &bytes), "{length}");
            assert_ne!(base, hash(1, &vec![7_u8; length + 1]), "{length}");
            for index in 0..length {
                let mut changed = bytes.clone();
                changed[index] ^= 1;
                assert_ne!(base, hash(1, &changed), "{index} of {length}");
            }
        }
    }
}
