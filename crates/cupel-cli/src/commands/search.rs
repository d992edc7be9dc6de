//! `cupel search`

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use cupel::config::{PolicyConfig, ScorerConfig};
use cupel::{ContextItem, Language, RelevanceScorer, ScorePart, Scorer};
use cupel_chat::Shape;
use serde_json::json;

use crate::classify::{Classified, Input};
use crate::counting::ChatArgs;
use crate::failure::{Exit, Failure};
use crate::input::Source;
use crate::output::{Output, columns, style};
use crate::task::NamedPolicy;
use crate::text::{char_width, counted, excerpt, grouped, score, width, wrap};

/// Find the passages that match a question
///
/// Prints the messages or items with the best scores, and what each word of the question adds. Shows
/// what a policy with this scorer sees; the budget and the rules for chats play no part.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Search {
    /// Chat, items or request document; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Question, or words to find
    #[arg(value_name = "QUERY", value_parser = NonEmptyStringValueParser::new())]
    query: String,

    /// Passages to print
    #[arg(long, value_name = "N", default_value_t = 5)]
    top: usize,

    /// Scorer, such as relevance. Default: conversation
    #[arg(long, value_name = "NAME", conflicts_with = "policy")]
    scorer: Option<String>,

    /// Preset or policy file whose scorer is used
    #[arg(long, value_name = "NAME|FILE")]
    policy: Option<String>,

    #[command(flatten)]
    chat: ChatArgs,
}

const EXAMPLES: &str = "\
Examples:
  cupel search chat.json 'Which test fails?'
  cupel search items.json 'carrier of order 4711' --top 3
  cupel search chat.json timeout --scorer relevance --json";

/// The scorer without `--scorer` and `--policy`.
const DEFAULT_SCORER: &str = "conversation";

impl Search {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let NamedPolicy { name, policy } = self.scorer()?;
        let passages = self.read()?;
        if !policy.needs_query() {
            output.warn(format_args!("the scorer {name} does not read the question"));
        }
        let policy = policy.with_query(&*self.query);
        let parts = policy
            .scorer()
            .explain_all(&passages.items)
            .map_err(|error| Failure::run(&error))?;
        let mut ranked: Vec<(usize, ScorePart)> = parts.into_iter().enumerate().collect();
        ranked.retain(|(_, part)| part.score > 0.0);
        ranked.sort_by(|(a, one), (b, other)| other.score.total_cmp(&one.score).then(a.cmp(b)));
        let matching = ranked.len();
        ranked.truncate(self.top);
        if output.is_json() {
            let passages = ranked.iter().map(|(index, part)| {
                let item = &passages.items[*index];
                json!({
                    "index": index,
                    "role": passages.labels[*index],
                    "tokens": item.tokens(),
                    "score": part.score,
                    "parts": part.parts,
                    "content": item.content(),
                })
            });
            output.json(&json!({
                "query": self.query,
                "scorer": name,
                "matching": matching,
                "passages": passages.collect::<Vec<_>>(),
            }))?;
            return Ok(Exit::Success);
        }
        let matched = matched_words(
            &passages.items,
            &ranked,
            policy.scorer().language().unwrap_or_default(),
        );
        for (index, part) in &ranked {
            passages.write(*index, part, &matched, output)?;
        }
        output.finish()?;
        let unit = passages.shape.unit();
        output.note(match matching {
            0 => format!("no {unit} matches"),
            _ => format!(
                "{} of {} score above 0, scorer {name}",
                grouped(i64::try_from(matching).unwrap_or(i64::MAX)),
                counted(passages.items.len(), unit)
            ),
        });
        Ok(Exit::Success)
    }

    /// Returns a policy with the scorer, under the name of the option.
    fn scorer(&self) -> Result<NamedPolicy, Failure> {
        if let Some(name) = &self.policy {
            return NamedPolicy::find(name);
        }
        let name = self.scorer.as_deref().unwrap_or(DEFAULT_SCORER);
        let config: Result<ScorerConfig, _> = serde_json::from_value(json!({ "type": name }));
        let config = config.map_err(|error| error.to_string());
        let policy = config.and_then(|scorer| {
            let policy = PolicyConfig::new(scorer).build();
            policy.map_err(|error| error.to_string())
        });
        Ok(NamedPolicy {
            name: name.to_owned(),
            policy: policy.map_err(|error| {
                Failure::input(format!("--scorer {name}: {error}"))
                    .help("--policy FILE names a scorer with fields")
            })?,
        })
    }

    fn read(&self) -> Result<Passages, Failure> {
        let source = Source::read(&self.file)?;
        let classified = Classified::of(&source, &self.chat.read);
        let counter = self.chat.counter(None, None)?;
        let input = Input::read(&source, &classified, &self.chat.read, &|text| {
            counter.count(text)
        })?;
        Ok(match input {
            Input::Chat(chat) => {
                let counter = self.chat.counter(chat.model(), Some(chat.shape()))?;
                Passages {
                    shape: chat.shape(),
                    labels: chat.messages().map(|it| it.label().to_owned()).collect(),
                    items: chat.items(&*counter),
                }
            }
            Input::Items { request, .. } => Passages {
                shape: Shape::Items,
                labels: request
                    .items
                    .iter()
                    .map(|it| it.kind().to_string())
                    .collect(),
                items: request.items,
            },
        })
    }
}

/// The messages or items of an input.
struct Passages {
    shape: Shape,
    /// The role of each message, or the kind of each item.
    labels: Vec<String>,
    items: Vec<ContextItem>,
}

/// The columns before the text of a passage, and its most lines.
const INDENT: usize = 8;
const LINES: usize = 3;

impl Passages {
    fn write(
        &self,
        index: usize,
        part: &ScorePart,
        matched: &BTreeSet<String>,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let (item, bold, quiet) = (&self.items[index], style::HEADER, style::QUIET);
        let unit = self.shape.unit();
        let label = excerpt(&self.labels[index], 24);
        output.line(format_args!(
            "{bold}{}{bold:#}  {unit} {index} ({label}), {} tokens",
            score(part.score),
            grouped(item.tokens())
        ))?;
        let indent = " ".repeat(INDENT);
        let passage = passage(item.content(), matched, columns() - INDENT);
        for line in wrap(&format!("{indent}{passage}"), columns(), INDENT) {
            output.line(line)?;
        }
        let added: Vec<String> = added(part)
            .into_iter()
            .map(|(name, score)| format!("{name} {score:.4}"))
            .collect();
        if !added.is_empty() {
            let added = format!("{indent}{}", added.join(", "));
            for line in wrap(&added, columns(), INDENT) {
                output.line(format_args!("{quiet}{line}{quiet:#}"))?;
            }
        }
        output.line("")
    }
}

/// Returns what each part adds to a score, by name. A part whose own parts do not add up to it, such as a rank, is
/// not taken apart.
fn added(part: &ScorePart) -> Vec<(String, f64)> {
    fn collect(part: &ScorePart, factor: f64, added: &mut Vec<(String, f64)>) {
        let is_weighted = part.parts.iter().any(|inner| inner.weight.is_some());
        let weight =
            |inner: &ScorePart| inner.weight.unwrap_or(if is_weighted { 0.0 } else { 1.0 });
        let sum: f64 = part.parts.iter().map(|it| it.score * weight(it)).sum();
        if part.parts.is_empty() || (sum - part.score).abs() > 1e-9 {
            return added.push((part_name(&part.scorer), part.score * factor));
        }
        for inner in part.parts.iter().filter(|inner| weight(inner) > 0.0) {
            collect(inner, factor * weight(inner), added);
        }
    }
    let mut added = Vec::new();
    collect(part, 1.0, &mut added);
    added
}

/// Returns the word of the question in the name of a part, and where it matches.
fn term(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("term \"")?.rsplit_once('"')
}

/// Returns the name of a part: `keys`, `keys (2 items before)`.
fn part_name(name: &str) -> String {
    match term(name) {
        Some((word, "")) => word.to_owned(),
        Some((word, place)) => format!("{word} ({})", place.trim_start_matches(", ")),
        None => name.to_owned(),
    }
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
    // A word matches if it has a score as a text of its own.
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
fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| !word.is_empty())
}

/// Returns about three lines of a text from shortly before its first match, with the matches highlighted.
fn passage(text: &str, matched: &BTreeSet<String>, columns: usize) -> String {
    let pieces: Vec<String> = text
        .split_whitespace()
        .flat_map(|word| split(word, columns))
        .collect();
    let is_match = |piece: &String| words(piece).any(|word| matched.contains(word));
    let room = LINES * columns - columns / 4;
    let total: usize = pieces.iter().map(|piece| width(piece) + 1).sum();
    let mut start = 0;
    if total > room {
        // A quarter of the room is for the words before the first match.
        start = pieces.iter().position(is_match).unwrap_or(0);
        let mut before = 0;
        while start > 0 && before + width(&pieces[start - 1]) < room / 4 {
            start -= 1;
            before += width(&pieces[start]) + 1;
        }
    }
    let mut shown = Vec::new();
    let mut taken = 0;
    for piece in &pieces[start..] {
        taken += width(piece) + 1;
        if taken > room {
            break;
        }
        shown.push(highlighted(piece, matched));
    }
    let is_cut = start + shown.len() < pieces.len();
    if start > 0 {
        shown.insert(0, "...".to_owned());
    }
    if is_cut {
        shown.push("...".to_owned());
    }
    shown.join(" ")
}

/// Splits a word into pieces of at most `columns`. Control characters are replaced.
fn split(word: &str, columns: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut taken = 0;
    for c in word.chars().map(crate::text::printable) {
        taken += char_width(c);
        if taken > columns {
            pieces.push(String::new());
            taken = char_width(c);
        }
        pieces.last_mut().expect("one piece").push(c);
    }
    pieces
}

/// Returns a piece with the style of a match around each matched word.
fn highlighted(piece: &str, matched: &BTreeSet<String>) -> String {
    let style = style::MATCH;
    let mut text = String::new();
    let mut rest = piece;
    while !rest.is_empty() {
        let is_word = rest.starts_with(char::is_alphanumeric);
        let end = rest.find(|c: char| c.is_alphanumeric() != is_word);
        let (run, after) = rest.split_at(end.unwrap_or(rest.len()));
        if matched.contains(run) {
            let _ = write!(text, "{style}{run}{style:#}");
        } else {
            text.push_str(run);
        }
        rest = after;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_named_by_its_word_and_place() {
        assert_eq!(part_name("term \"keys\""), "keys");
        assert_eq!(
            part_name("term \"keys\", 2 items before"),
            "keys (2 items before)"
        );
        assert_eq!(part_name("recency"), "recency");
    }

    #[test]
    fn weights_of_combined_scorers_scale_what_a_part_adds() {
        let leaf = ScorePart::new("term \"keys\"", 0.5);
        let inner = ScorePart::new("relevance", 0.5)
            .with_parts(vec![leaf])
            .with_weight(0.5);
        let part = ScorePart::new("composite", 0.25).with_parts(vec![inner]);
        assert_eq!(added(&part), [("keys".to_owned(), 0.25)]);
    }

    #[test]
    fn a_score_that_its_parts_do_not_add_up_to_is_not_taken_apart() {
        let leaf = ScorePart::new("term \"keys\"", 0.3);
        let part = ScorePart::new("fusion", 0.9).with_parts(vec![leaf]);
        assert_eq!(added(&part), [("fusion".to_owned(), 0.9)]);
    }

    #[test]
    fn a_long_passage_starts_shortly_before_its_first_match() {
        let matched: BTreeSet<String> = ["key".to_owned()].into();
        let text = format!("{} key {}", "before ".repeat(60), "after ".repeat(60));
        let plain = |columns| {
            let passage = passage(&text, &matched, columns);
            anstream::adapter::strip_str(&passage).to_string()
        };
        let shown = plain(40);
        assert!(
            shown.starts_with("... before ") && shown.ends_with(" after ..."),
            "{shown}"
        );
        assert!(shown.contains(" key "), "{shown}");
        assert!(width(&shown) <= 3 * 40, "{shown}");
        assert_eq!(passage("no match", &matched, 40), "no match");
    }

    #[test]
    fn words_longer_than_a_line_are_split() {
        assert_eq!(split(&"漢".repeat(5), 4), ["漢漢", "漢漢", "漢"]);
    }
}
