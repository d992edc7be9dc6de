//! [`Fitter`]: trims a growing chat turn by turn and remembers its decisions.
//!
//! A window that is chosen anew each turn changes near its beginning each turn: another message is
//! dropped, another result shortened. A prompt cache then has to read everything after it again.
//! With a state, decisions stay, and new ones are made only when the budget is exceeded:
//!
//! ```text
//! turn   chat           window         state                reused of the previous window
//! 1      0 1 2          0 1 2
//! 2      0 1 2 3 4      0 3 4          1 and 2 dropped      0
//! 3      0 .. 5         0 3 4 5        1 and 2 dropped      0 3 4
//! 4      0 .. 6         0 3 4 5 6      1 and 2 dropped      0 3 4 5
//! ```

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use cupel::config::PolicyConfig;
use cupel::{ContextBudget, ContextItem, Policy};
use serde::{Deserialize, Serialize};

use crate::cache::unmarked;
use crate::candidates::{Base, SessionMemory};
use crate::chat::Chat;
use crate::fit::{FitError, Fitted};
use crate::message::{ParsedMessage, Role};
use crate::tokens::TokenCounter;

/// Trims a growing chat turn by turn, so that consecutive windows share a long prefix.
///
/// A provider's prompt cache reuses the prefix that a request shares with an earlier one. A fitter
/// remembers which messages it dropped and how far it shortened others. Nothing changes until the chat
/// exceeds the budget; new messages are appended. Token counts are remembered too.
///
/// ```
/// use cupel::ContextBudget;
/// use cupel_chat::{Chat, Encoding, Fitter, session_policy};
///
/// let mut fitter = Fitter::new(session_policy());
/// let budget = ContextBudget::with_target(60, 60)?;
/// let mut messages = vec![r#"{"role": "user", "content": "Count with me."}"#.to_owned()];
/// for turn in 1..=9 {
///     messages.push(format!(r#"{{"role": "assistant", "content": "I say the number {turn}."}}"#));
///     messages.push(format!(r#"{{"role": "user", "content": "Then I say {turn} and a half."}}"#));
///     let chat = Chat::parse(&format!("[{}]", messages.join(",")), None)?;
///     let window = fitter.fit(&chat, &budget, &Encoding::O200k)?;
///     assert!(window.fitted.tokens_after <= 60);
///     assert_eq!(window.fitted.kept[0], 0); // the task
/// }
/// let state = fitter.state().to_json();
/// assert_eq!(cupel_chat::FitState::from_json(&state)?, *fitter.state());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Fitter {
    policy: Policy,
    /// The hash of the policy. Decisions of another policy are of no use.
    fingerprint: u64,
    state: FitState,
    /// The items and shortened messages of the last window. A state file has only their tokens and levels.
    originals: Vec<ContextItem>,
    bases: Vec<Option<Base>>,
}

/// A window of a session.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SessionWindow<'a> {
    /// The trimmed chat.
    pub fitted: Fitted<'a>,
    /// What the window shares with the one before it; `None` for the first.
    pub reuse: Option<Reuse>,
    /// Why decisions of the state were discarded; `None` if all of them were followed.
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

/// Why decisions of a state were discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Rebuilt {
    /// The message at this position is not the one that earlier windows had there. Decisions about the
    /// messages before it stay.
    #[cfg_attr(feature = "schema", schemars(title = "HistoryChanged"))]
    HistoryChanged(usize),
    /// The state is that of another policy, chat format or token counter.
    OtherSettings,
}

impl fmt::Display for Rebuilt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HistoryChanged(index) => write!(
                f,
                "the history changed at message {index}; decisions from there on were made again"
            ),
            Self::OtherSettings => f.write_str(
                "the state has another policy, format or counter; all decisions were made again",
            ),
        }
    }
}

/// What a [`Fitter`] remembers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FitState {
    /// The policy, the format and the counter; 0 before the first window.
    settings: u64,
    messages: Vec<Remembered>,
    /// The messages of the last window as written: position, hash and tokens.
    window: Vec<(usize, u64, i64)>,
}

/// The decision about one message.
#[derive(Debug, Clone, PartialEq)]
struct Remembered {
    /// The hash of this message and all before it (a hash chain), without breakpoints of the prompt cache. A decision depends on the
    /// messages before it, so it holds as long as all of them are the same: the first chain that
    /// differs tells where the history was edited.
    chain: u64,
    tokens: i64,
    level: Option<i64>,
    is_dropped: bool,
}

/// The error of reading a state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}; delete the state to start again")]
pub struct InvalidState(String);

/// The version of the file format. It changes with anything that gives a field another meaning: the
/// hash function, the levels, the order of the fields.
const VERSION: u32 = 2;

/// The file format of a state. It has hashes, token counts and positions, and no text of the chat.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StateFile {
    cupel_state: u32,
    settings: u64,
    /// Chain, tokens, level and whether it is dropped.
    messages: Vec<(u64, i64, Option<i64>, bool)>,
    window: Vec<(usize, u64, i64)>,
    /// The hash of the other fields: a file that was cut off or edited is refused, because its
    /// decisions would be followed silently.
    check: u64,
}

impl FitState {
    /// Returns the state as JSON in one line.
    pub fn to_json(&self) -> String {
        let messages = self.messages.iter();
        let mut file = StateFile {
            cupel_state: VERSION,
            settings: self.settings,
            messages: messages
                .map(|it| (it.chain, it.tokens, it.level, it.is_dropped))
                .collect(),
            window: self.window.clone(),
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
                .map(|(chain, tokens, level, is_dropped)| Remembered {
                    chain,
                    tokens,
                    level,
                    is_dropped,
                })
                .collect(),
            window: file.window,
        })
    }
}

impl StateFile {
    fn hash(&self) -> u64 {
        let fields = (self.settings, &self.messages, &self.window);
        hash(
            0,
            serde_json::to_string(&fields)
                .unwrap_or_default()
                .as_bytes(),
        )
    }
}

impl Fitter {
    /// Starts a session. See [`session_policy`](crate::session_policy).
    pub fn new(policy: Policy) -> Self {
        Self::resume(policy, FitState::default())
    }

    /// Continues a session.
    pub fn resume(policy: Policy, state: FitState) -> Self {
        // A state outlives the process, so the fingerprint must not depend on addresses.
        let data = PolicyConfig::of(&policy).ok();
        let data = data.and_then(|config| serde_json::to_string(&config).ok());
        // A policy that is not data is known by its Debug form.
        let data = data.unwrap_or_else(|| format!("{policy:?}"));
        Self {
            fingerprint: hash(0, data.as_bytes()),
            originals: Vec::new(),
            bases: Vec::new(),
            policy,
            state,
        }
    }

    /// Returns what the next window is based on.
    pub fn state(&self) -> &FitState {
        &self.state
    }

    /// Forgets all decisions: the next window starts a session, also one of another conversation.
    pub fn restart(&mut self) {
        self.state = FitState::default();
        self.originals.clear();
        self.bases.clear();
    }

    /// Trims the chat to a budget; see [`Chat::fit`]. If that fails, the state does not change.
    ///
    /// A state of another conversation is an error, because the new decisions would replace those of the
    /// other one. System messages aside, which many conversations of an agent share, the chat then has
    /// neither the first messages of the state nor any that its last window kept as it was. An edited
    /// history still has some of them, and so does a compacted one that keeps its newest messages; a chat
    /// with a compaction of its format is never another conversation. [`restart`](Self::restart) starts
    /// again.
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
            .fold(self.fingerprint, |seed, text| hash(seed, text.as_bytes()));
        let messages = chat.messages.iter().enumerate();
        let texts = messages.map(|(index, message)| {
            // A breakpoint of the prompt cache moves with every request, and is no edit.
            let text = unmarked(chat.layout.json(index), message);
            // Paths in a message may change with its breakpoints, so its shortened form is not remembered.
            let is_as_written = matches!(text, Cow::Borrowed(_));
            (hash(0, text.as_bytes()), is_as_written)
        });
        let (hashes, is_as_written): (Vec<u64>, Vec<bool>) = texts.unzip();
        let chains: Vec<u64> = hashes
            .iter()
            .scan(settings, |chain, own| {
                *chain = hash(*chain, &own.to_le_bytes());
                Some(*chain)
            })
            .collect();

        let (known, rebuilt) = self.known(settings, &chains);
        if self.is_other_conversation(chat, &hashes, known) {
            return Err(FitError::OtherConversation);
        }
        let known = &self.state.messages[..known];
        // A replay makes the earlier cuts again, so their decisions are not remembered for it.
        let decided = if self.policy.chat().replay {
            &[]
        } else {
            known
        };
        let mut memory = SessionMemory {
            tokens: known.iter().map(|message| message.tokens).collect(),
            levels: decided.iter().map(|message| message.level).collect(),
            dropped: decided.iter().map(|message| message.is_dropped).collect(),
            originals: std::mem::take(&mut self.originals),
            bases: std::mem::take(&mut self.bases),
        };
        // Items of messages that changed since must be built again.
        memory.originals.truncate(known.len());
        memory.bases.truncate(known.len());
        for (base, is_as_written) in memory.bases.iter_mut().zip(&is_as_written) {
            base.take_if(|_| !is_as_written);
        }
        let window = chat
            .candidates_after(&memory, &self.policy, Some(budget), counter)
            .and_then(|candidates| {
                let fitted = chat.fit_candidates(&self.policy, budget, &candidates, counter)?;
                Ok((candidates, fitted))
            });
        // Returned before the error is: a caller may try again with another budget.
        (self.originals, self.bases) = (memory.originals, memory.bases);
        let (candidates, fitted) = window?;

        let mut is_kept = vec![false; chat.len()];
        for &index in &fitted.kept {
            is_kept[index] = true;
        }
        let remembered = |index: usize| {
            Remembered {
                chain: chains[index],
                tokens: candidates.originals[index].tokens(),
                level: None,
                // The result of a call may follow, so an invalid message is not dropped for good.
                is_dropped: !is_kept[index] && chat.groups.defect(index).is_none(),
            }
        };
        let mut messages: Vec<Remembered> = (0..chat.len()).map(remembered).collect();
        let mut bases = vec![None; chat.len()];
        for short in &fitted.shortened {
            messages[short.index].level = Some(short.level);
            if is_as_written[short.index] {
                bases[short.index] = candidates.base(short.index, short.level);
            }
        }
        let window = written(&fitted, &hashes, &messages);
        let reuse = Reuse::between(&self.state.window, &window);
        (self.originals, self.bases) = (candidates.originals, bases);
        self.state = FitState {
            settings,
            messages,
            window,
        };
        Ok(SessionWindow {
            fitted,
            reuse,
            rebuilt,
        })
    }

    /// Returns whether the state is that of another conversation; `known` messages are the same.
    fn is_other_conversation(&self, chat: &Chat, hashes: &[u64], known: usize) -> bool {
        let own = |index: &usize| chat.messages[*index].role() != Role::System;
        let mut own = (0..chat.len()).filter(own);
        // Without messages of its own a chat is the start of any conversation.
        let Some(first) = own.clone().next() else {
            return false;
        };
        // The hash of a message in full does not depend on the settings of the state.
        let window: HashSet<u64> = self.state.window.iter().map(|(_, hash, _)| *hash).collect();
        !window.is_empty()
            && first >= known
            && !chat.messages.iter().any(ParsedMessage::is_compaction)
            && !own.any(|index| window.contains(&hashes[index]))
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
fn written(fitted: &Fitted<'_>, hashes: &[u64], messages: &[Remembered]) -> Vec<(usize, u64, i64)> {
    let mut shortened = fitted.shortened.iter().peekable();
    let mut window = Vec::with_capacity(fitted.kept.len() + fitted.markers.len());
    for &index in &fitted.kept {
        if let Some(marker) = fitted.marker_before(index) {
            window.push((index, hash(0, marker.json.as_bytes()), marker.tokens));
        }
        let short = shortened.next_if(|short| short.index == index);
        let tokens = short.map_or(messages[index].tokens, |short| short.tokens);
        let marker = fitted.marker_in(index).map_or(0, |marker| marker.tokens);
        let texts = fitted.replaced(index);
        let hash = texts
            .iter()
            .fold(hashes[index], |seed, (_, text)| hash(seed, text.as_bytes()));
        window.push((index, hash, tokens + marker));
    }
    window
}

impl Reuse {
    fn between(old: &[(usize, u64, i64)], new: &[(usize, u64, i64)]) -> Option<Self> {
        let pairs = old.iter().zip(new);
        let shared = pairs
            .take_while(|((_, old, _), (_, new, _))| old == new)
            .count();
        let sum = |window: &[(usize, u64, i64)]| {
            let tokens = window.iter().map(|(_, _, tokens)| *tokens);
            tokens.fold(0, i64::saturating_add)
        };
        let (tokens, of) = (sum(&old[..shared]), sum(old));
        (!old.is_empty()).then(|| Self {
            tokens,
            of,
            share: if of > 0 {
                tokens as f64 / of as f64
            } else {
                1.0
            },
            first_changed: old.get(shared).map(|(index, ..)| *index),
        })
    }
}

/// A 64-bit multiplicative hash over four lanes of 8-byte words: the same on every machine and in every
/// version, and fast enough to read a whole history every turn.
///
/// The lanes are independent, so that their multiplications overlap in the processor. The length is
/// hashed, too. Without it, the zeros that pad the last word would equal zeros of the text. It
/// detects edits and damage; it does not resist an attacker.
fn hash(seed: u64, bytes: &[u8]) -> u64 {
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
