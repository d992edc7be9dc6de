//! [`Index`]: an inverted index over the words of items.
//!
//! The postings of all terms are in one array, term after term (compressed sparse rows). For the
//! items 0 `the key, the shelf` and 1 `shelf`, with the terms 0 `the`, 1 `key`, 2 `shelf`:
//!
//! ```text
//! ends     1    2    4          where the postings of each term end
//! items    0  | 0  | 0  1       `the` is in item 0, `key` in 0, `shelf` in 0 and 1
//! counts   2  | 1  | 1  1       how often
//! ```
//!
//! A query reads one range per term, in order. Items come in ascending order in each range, because
//! they are added in that order and the counting sort of `Builder::build` is stable.

use std::sync::{Arc, Mutex, PoisonError};

use rust_stemmers::Stemmer;

use super::words::each_word;
use crate::ContextItem;
use crate::fast::interner::{Interner, index32};
use crate::fast::tag_key::TagKey;
use crate::scorer::settings::Language;

/// The metadata key of the name of a speaker.
const SPEAKER: &str = "cupel:speaker";

/// The most characters of a name before a colon that is taken for a speaker. Longer text before a
/// colon is a sentence that introduces a list.
const LONGEST_NAME: usize = 40;

/// What a name may contain besides letters, digits and spaces.
const NAME_MARKS: &str = ".,'’-_#&()";

/// An inverted index (Zobel and Moffat 2006): for every term the items that contain it, and how often.
pub(super) struct Index {
    terms: Texts,
    /// The end of each term's postings.
    ends: Vec<u32>,
    /// The items of all postings, term by term, ascending.
    items: Vec<u32>,
    /// The term frequencies of all postings. They saturate: BM25 does not tell 65,535 occurrences
    /// from more.
    counts: Vec<u16>,
    /// The number of words of each item.
    lengths: Vec<u32>,
    /// Which answers the words of each item can be part of, as sets.
    answers: Vec<u8>,
    /// The terms in the name of each item's speaker.
    speakers: Vec<Box<[u32]>>,
    /// The items that are the query itself, ascending.
    queries: Vec<usize>,
    mean_length: f64,
}

impl Index {
    pub(super) fn new(items: &[ContextItem], language: Language) -> Self {
        let mut builder = Builder::new(language);
        for item in items {
            builder.add(item);
        }
        let is_query = |place: &usize| items[*place].is_query();
        builder.build((0..items.len()).filter(is_query).collect())
    }

    /// Returns the number of items.
    pub(super) fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Returns the number of a term.
    pub(super) fn term(&self, stem: &str) -> Option<u32> {
        self.terms.find(stem).map(index32)
    }

    /// Returns the positions of the items that contain a term, and how often they do.
    pub(super) fn postings(&self, term: u32) -> impl ExactSizeIterator<Item = (usize, u16)> {
        let term = term as usize;
        let start = term
            .checked_sub(1)
            .map_or(0, |before| self.ends[before] as usize);
        let range = start..self.ends[term] as usize;
        let items = self.items[range.clone()].iter();
        let postings = items.zip(&self.counts[range]);
        postings.map(|(&item, &count)| (item as usize, count))
    }

    /// Returns the length of an item relative to the mean.
    pub(super) fn relative_length(&self, item: usize) -> f64 {
        f64::from(self.lengths[item]) / self.mean_length
    }

    /// Returns which answers the words of an item can be part of.
    pub(super) fn answers(&self, item: usize) -> u8 {
        self.answers[item]
    }

    /// Returns whether an item is the query itself.
    pub(super) fn is_query(&self, item: usize) -> bool {
        self.queries.binary_search(&item).is_ok()
    }

    /// Returns the terms in the name of an item's speaker.
    pub(super) fn speaker(&self, item: usize) -> &[u32] {
        &self.speakers[item]
    }
}

/// Numbers of lowercase texts from 0 on, and the texts of numbers.
struct Texts {
    interner: Interner,
    text: String,
    ends: Vec<u32>,
}

impl Texts {
    fn new() -> Self {
        Self {
            interner: Interner::new(8),
            text: String::new(),
            ends: Vec::new(),
        }
    }

    fn get(&self, number: usize) -> &str {
        let start = number
            .checked_sub(1)
            .map_or(0, |before| self.ends[before] as usize);
        &self.text[start..self.ends[number] as usize]
    }

    /// Returns the number of a lowercase text.
    fn find(&self, text: &str) -> Option<usize> {
        let key = TagKey::new(text);
        let is_same = |number| key.is_inline() || self.get(number - 1) == text;
        self.interner.find(key.folded(), is_same).checked_sub(1)
    }

    /// Returns the number of a lowercase text, which is the next one if it is new.
    fn intern(&mut self, text: &str) -> usize {
        let key = TagKey::new(text);
        let Self {
            interner,
            text: all,
            ends,
        } = self;
        let is_same = |number: usize| {
            let start = number
                .checked_sub(2)
                .map_or(0, |before| ends[before] as usize);
            key.is_inline() || &all[start..ends[number - 1] as usize] == text
        };
        let number = interner.intern(key.folded(), is_same) - 1;
        if number == ends.len() {
            all.push_str(text);
            ends.push(index32(all.len()));
        }
        number
    }

    fn len(&self) -> usize {
        self.ends.len()
    }
}

/// What is known of a word: its term and the answers it can be part of.
#[derive(Clone, Copy)]
struct Word {
    /// Nothing for a clitic.
    term: Option<u32>,
    answers: u8,
}

struct Builder {
    language: Language,
    stemmer: Option<Stemmer>,
    /// The words seen so far: each is stemmed once. Most words of a text are repeated, and the
    /// stemmer takes longer than a lookup.
    words: Texts,
    known: Vec<Word>,
    terms: Texts,
    /// The item of each term's last posting, and the posting. It tells a repetition in the same
    /// item from a first occurrence without a table per item.
    last: Vec<(u32, u32)>,
    /// Term, item and frequency, in the order of the items.
    postings: Vec<(u32, u32, u16)>,
    lengths: Vec<u32>,
    answers: Vec<u8>,
    speakers: Vec<Box<[u32]>>,
}

impl Builder {
    fn new(language: Language) -> Self {
        Self {
            language,
            stemmer: language.algorithm().map(Stemmer::create),
            words: Texts::new(),
            known: Vec::new(),
            terms: Texts::new(),
            last: Vec::new(),
            postings: Vec::new(),
            lengths: Vec::new(),
            answers: Vec::new(),
            speakers: Vec::new(),
        }
    }

    fn word(&mut self, word: &str) -> Word {
        let number = self.words.intern(word);
        if number == self.known.len() {
            let lists = self.language.lists();
            let is_clitic = lists.is_some_and(|lists| lists.is_clitic(word));
            let stem = stem(self.stemmer.as_ref(), word);
            self.known.push(Word {
                term: (!is_clitic).then(|| index32(self.terms.intern(&stem))),
                answers: lists.map_or(0, |lists| lists.answers(word)),
            });
            self.last.resize(self.terms.len(), (u32::MAX, 0));
        }
        self.known[number]
    }

    fn add(&mut self, item: &ContextItem) {
        let position = index32(self.lengths.len());
        let (mut length, mut answers) = (0_u32, 0);
        each_word(item.content(), |word| {
            if is_full(self.postings.len(), self.words.text.len()) {
                return;
            }
            let Word {
                term: Some(term),
                answers: own,
            } = self.word(word)
            else {
                return;
            };
            length += 1;
            answers |= own;
            let last = &mut self.last[term as usize];
            if last.0 == position {
                let count = &mut self.postings[last.1 as usize].2;
                *count = count.saturating_add(1);
            } else {
                *last = (position, index32(self.postings.len()));
                self.postings.push((term, position, 1));
            }
        });
        let mut speaker = Vec::new();
        each_word(speaker_of(item).unwrap_or_default(), |word| {
            speaker.extend(self.word(word).term);
        });
        self.speakers.push(speaker.into());
        self.lengths.push(length);
        self.answers.push(answers);
    }

    /// Sorts the postings by term: a counting sort, which keeps the order of the items.
    fn build(self, queries: Vec<usize>) -> Index {
        let mut starts = vec![0_u32; self.terms.len() + 1];
        for &(term, ..) in &self.postings {
            starts[term as usize + 1] += 1;
        }
        for term in 0..self.terms.len() {
            starts[term + 1] += starts[term];
        }
        let (mut items, mut counts) = (vec![0; self.postings.len()], vec![0; self.postings.len()]);
        for (term, item, count) in self.postings {
            let place = &mut starts[term as usize];
            items[*place as usize] = item;
            counts[*place as usize] = count;
            *place += 1;
        }
        // Each start has moved to the end.
        starts.pop();
        let total: u64 = self.lengths.iter().copied().map(u64::from).sum();
        Index {
            terms: self.terms,
            ends: starts,
            items,
            counts,
            mean_length: total as f64 / self.lengths.len() as f64,
            lengths: self.lengths,
            answers: self.answers,
            speakers: self.speakers,
            queries,
        }
    }
}

/// Returns the stem of a lowercase word.
pub(super) fn stem(stemmer: Option<&Stemmer>, word: &str) -> String {
    match stemmer {
        Some(stemmer) => stemmer.stem(word).into_owned(),
        None => word.to_owned(),
    }
}

/// Returns the name of an item's speaker: its metadata `cupel:speaker`, else what is before a colon at the start
/// of the text, as in `Ada: Good morning` or `[9:30] Ada: Good morning`.
fn speaker_of(item: &ContextItem) -> Option<&str> {
    if let Some(name) = item.metadata().get(SPEAKER) {
        return Some(name);
    }
    let text = item.content();
    let bracket = text
        .strip_prefix('[')
        .and_then(|text| text.split_once("] "));
    let text = bracket.map_or(text, |(_, text)| text);
    let mut chars = text.char_indices().take(LONGEST_NAME + 1);
    let (colon, _) = chars.find(|&(_, c)| c == ':' || c == '\n')?;
    let (name, rest) = text.split_at(colon);
    // Code such as `f({"path": 1})` is not a name.
    let is_name = |c: char| c.is_alphanumeric() || c == ' ' || NAME_MARKS.contains(c);
    (rest.starts_with(": ") && !name.is_empty() && name.chars().all(is_name)).then_some(name)
}

/// The indexes of the last item sets that a scorer saw, shared by its copies for other queries.
#[derive(Clone, Default)]
pub(super) struct SharedIndex {
    recent: Arc<Mutex<Vec<Indexed>>>,
}

/// The most item sets that are remembered, so that runs on several threads do not displace each other's.
const RECENT: usize = 16;

/// An index and what it was built from. The items keep the handles alive, so that a handle of
/// another item cannot have the same address and be taken for one of them.
struct Indexed {
    items: Vec<ContextItem>,
    language: Language,
    index: Arc<Index>,
}

impl SharedIndex {
    /// Returns the index of the items, which is built unless they are the items of a recent call.
    pub(super) fn of(&self, items: &[ContextItem], language: Language) -> Arc<Index> {
        let is_same = |known: &Indexed| {
            let mut pairs = known.items.iter().zip(items);
            known.language == language
                && known.items.len() == items.len()
                && pairs.all(|(known, item)| known.is_same(item))
        };
        if let Some(known) = self.lock().iter().find(|known| is_same(known)) {
            return known.index.clone();
        }
        // Built without the lock, so that other threads do not wait.
        let index = Arc::new(Index::new(items, language));
        let mut recent = self.lock();
        recent.truncate(RECENT - 1);
        let known = Indexed {
            items: items.to_vec(),
            language,
            index: index.clone(),
        };
        recent.insert(0, known);
        index
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Indexed>> {
        // The list is valid between any two statements.
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether another word might not fit into 32 bits, with so many postings and bytes of text. Words of more
/// than 4 GB of text are ignored.
fn is_full(postings: usize, text: usize) -> bool {
    const MOST: usize = u32::MAX as usize - 1_024;
    postings > MOST || text > MOST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_full_before_a_word_exceeds_32_bits() {
        // A word that is added has less than 1,024 bytes and one posting.
        let last = (1 << 32) - 1 - 1_024;
        assert!(!is_full(last, last));
        assert!(is_full(last + 1, 0) && is_full(0, last + 1));
        assert!(is_full(last + 9, 0) && is_full(0, last + 9));
    }

    #[test]
    fn the_indexes_of_the_last_16_lists_are_shared() {
        let item = |number: usize| ContextItem::builder(format!("key {number}"), 1).build();
        let items: Vec<ContextItem> = (0..20).filter_map(|number| item(number).ok()).collect();
        let shared = SharedIndex::default();
        let of = |length: usize| shared.of(&items[..length], Language::English);
        let indexes: Vec<Arc<Index>> = (0..=20).map(of).collect();
        for (length, index) in indexes.iter().enumerate().rev() {
            assert_eq!(index.len(), length);
            assert_eq!(Arc::ptr_eq(&of(length), index), length > 4, "{length}");
        }
    }

    #[test]
    fn an_index_is_not_shared_between_languages() {
        let items = [ContextItem::builder("keys", 1).build()].map(Result::unwrap);
        let shared = SharedIndex::default();
        assert!(shared.of(&items, Language::English).term("key").is_some());
        assert!(shared.of(&items, Language::Other).term("key").is_none());
    }
}
