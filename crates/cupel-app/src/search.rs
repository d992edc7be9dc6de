//! The question `search`: the passages that match a question.

use std::collections::BTreeSet;

use cupel::config::{PolicyConfig, ScorerConfig};
use cupel::{ContextItem, Language, RelevanceScorer, ScorePart, Scorer};
use cupel_chat::Shape;
use serde::Serialize;
use serde_json::json;

use crate::error::{Error, Fault};
use crate::input::{Classified, Input};
use crate::notice::Notice;
use crate::options::Options;
use crate::policy::NamedPolicy;
use crate::precedence::Stated;
use crate::prepared::Scope;
use crate::run::write_score;
use crate::source::Source;

/// The passages that match a question, best first.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchAnswer {
    /// The question.
    pub query: String,
    /// The name of the scorer or of its policy.
    pub scorer: String,
    /// How many messages or items score above 0.
    pub matching: usize,
    /// The best of them.
    pub passages: Vec<Passage>,
    /// The format of the input.
    #[serde(skip)]
    pub shape: Shape,
    /// How many messages or items there are.
    #[serde(skip)]
    pub len: usize,
    /// The words of the passages that match a term of the question.
    #[serde(skip)]
    pub matched_words: BTreeSet<String>,
    /// A scorer that does not read the question.
    #[serde(skip)]
    pub notices: Vec<Notice>,
}

/// A message or an item that matches.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Passage {
    /// Its position.
    pub index: usize,
    /// The role of a message as written, or the kind of an item.
    pub role: String,
    /// Its tokens.
    pub tokens: i64,
    /// Its score; a string if it is not finite.
    #[serde(serialize_with = "write_score")]
    #[cfg_attr(feature = "schema", schemars(with = "cupel::schema::Float"))]
    pub score: f64,
    /// What the score is made of.
    pub parts: Vec<ScorePart>,
    /// Its text.
    pub content: String,
    /// The score with its parts.
    #[serde(skip)]
    pub part: ScorePart,
}

/// Finds the passages of an input that match a question. The policy of the options gives the scorer; the budget
/// and the rules for chats play no part.
///
/// # Errors
///
/// What is wrong with the input or the options.
pub fn search(
    source: &Source,
    query: &str,
    top: usize,
    options: &Options,
) -> Result<SearchAnswer, Error> {
    let scorer = options.policy.clone();
    let NamedPolicy { name, policy } = scorer.map_or_else(|| scorer_named(DEFAULT_SCORER), Ok)?;
    let Passages {
        shape,
        labels,
        items,
    } = Passages::read(source, options)?;
    let mut notices = Vec::new();
    if !policy.needs_query() {
        let scorer = name.clone();
        notices.push(Notice::ScorerIgnoresQuery { scorer });
    }
    let policy = policy.with_query(query);
    let parts = policy.scorer().explain_all(&items)?;
    let mut ranked: Vec<(usize, ScorePart)> = parts.into_iter().enumerate().collect();
    ranked.retain(|(_, part)| part.score > 0.0);
    ranked.sort_by(|(a, one), (b, other)| other.score.total_cmp(&one.score).then(a.cmp(b)));
    let matching = ranked.len();
    ranked.truncate(top);
    let matched_words = matched_words(
        &items,
        &ranked,
        policy.scorer().language().unwrap_or_default(),
    );
    let passages = ranked.into_iter().map(|(index, part)| Passage {
        index,
        role: labels[index].clone(),
        tokens: items[index].tokens(),
        score: part.score,
        parts: part.parts.clone(),
        content: items[index].content().to_owned(),
        part,
    });
    Ok(SearchAnswer {
        query: query.to_owned(),
        scorer: name,
        matching,
        passages: passages.collect(),
        shape,
        len: items.len(),
        matched_words,
        notices,
    })
}

/// The scorer that is used unless the options name one.
const DEFAULT_SCORER: &str = "conversation";

/// Returns a policy with the scorer of that name, for [`search`].
///
/// # Errors
///
/// [`Fault::Scorer`] if it is unknown or needs fields.
pub fn scorer_named(name: &str) -> Result<NamedPolicy, Error> {
    let config: Result<ScorerConfig, _> = serde_json::from_value(json!({ "type": name }));
    let config = config.map_err(|error| error.to_string());
    let policy = config.and_then(|scorer| {
        let policy = PolicyConfig::new(scorer).build();
        policy.map_err(|error| error.to_string())
    });
    let policy = policy.map_err(|problem| {
        let name = name.to_owned();
        Error::new(Fault::Scorer { name, problem })
    });
    Ok(NamedPolicy::new(name, policy?))
}

/// The messages or items of an input.
struct Passages {
    shape: Shape,
    /// The role of each message, or the kind of each item.
    labels: Vec<String>,
    items: Vec<ContextItem>,
}

impl Passages {
    fn read(source: &Source, options: &Options) -> Result<Self, Error> {
        let classified = Classified::of(source, &options.read);
        let counter = options.counter_of_items()?;
        let count = |text: &str| counter.count(text);
        Ok(
            match Input::read(source, &classified, &options.read, &count)? {
                Input::Chat(chat) => {
                    let stated = Stated::by_chat(chat.model(), Scope::OneBudget);
                    let options = options.resolved(&stated).options;
                    let model = options.budget.model.as_deref().or(chat.model());
                    let counter = options.counter.counter(model, Some(chat.shape()))?;
                    Self {
                        shape: chat.shape(),
                        labels: chat.messages().map(|it| it.label().to_owned()).collect(),
                        items: chat.items(&*counter),
                    }
                }
                Input::Items { request, .. } => {
                    let labels = request.items.iter().map(|it| it.kind().to_string());
                    Self {
                        shape: Shape::Items,
                        labels: labels.collect(),
                        items: request.items,
                    }
                }
            },
        )
    }
}

/// Splits the name of a part, such as `term "keys", 2 items before`, into the word of the question and the rest,
/// which says where it matches. `None` for a part that is not about a word.
pub fn term(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("term \"")?.rsplit_once('"')
}

/// Returns the words of the passages that match a term of the question.
fn matched_words(
    items: &[ContextItem],
    ranked: &[(usize, ScorePart)],
    language: Language,
) -> BTreeSet<String> {
    let mut terms = BTreeSet::new();
    let mut texts = BTreeSet::new();
    for (index, part) in ranked {
        collect_terms(part, &mut terms);
        texts.extend(words(items[*index].content()));
    }
    // A word matches if it scores above 0 as a text of its own: stemming is then that of the scorer.
    let texts: Vec<ContextItem> = texts
        .into_iter()
        .filter_map(|word| ContextItem::builder(word, 1).build().ok())
        .collect();
    let query = terms.into_iter().collect::<Vec<_>>().join(" ");
    let scorer = RelevanceScorer::new(query).with_language(language);
    let scores = scorer.score_all(&texts).unwrap_or_default();
    let matched = texts.iter().zip(scores).filter(|(_, score)| *score > 0.0);
    matched.map(|(word, _)| word.content().to_owned()).collect()
}

fn collect_terms<'p>(part: &'p ScorePart, terms: &mut BTreeSet<&'p str>) {
    terms.extend(term(&part.scorer).map(|(word, _)| word));
    for inner in &part.parts {
        collect_terms(inner, terms);
    }
}

/// Returns the runs of letters and digits in a text.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| !word.is_empty())
}
