//! `cupel search`

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use cupel::ScorePart;
use cupel_app::{Options, Passage, SearchAnswer, scorer_named, search, term, words};

use crate::config::ConfigArgs;
use crate::counting::ChatArgs;
use crate::dialect::CommandLine;
use crate::failure::{Exit, Failure};
use crate::input;
use crate::output::{Output, columns, style};
use crate::task::find_policy;
use crate::text::{char_width, counted, excerpt, grouped, grouped_count, score, width, wrap};

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

    #[command(flatten)]
    config: ConfigArgs,
}

const EXAMPLES: &str = "\
Examples:
  cupel search chat.json 'Which test fails?'
  cupel search items.json 'carrier of order 4711' --top 3
  cupel search chat.json timeout --scorer relevance --json";

impl Search {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let policy = match (&self.policy, &self.scorer) {
            (Some(name), _) => Some(find_policy(name)?),
            (None, Some(name)) => Some(scorer_named(name)?),
            (None, None) => None,
        };
        let options = Options {
            policy,
            read: self.chat.read.options(),
            counter: self.chat.counter(),
            config: self.config.load()?,
            ..Options::default()
        };
        let source = input::read(&self.file)?;
        let answer = search(&source, &self.query, self.top, &options)?;
        for notice in &answer.notices {
            output.warn(notice.message(&CommandLine));
        }
        if output.is_json() {
            output.json(&answer)?;
            return Ok(Exit::Success);
        }
        for passage in &answer.passages {
            write(&answer, passage, output)?;
        }
        output.finish()?;
        let unit = answer.shape.unit();
        output.note(match answer.matching {
            0 => format!("no {unit} matches"),
            matching => format!(
                "{} of {} score above 0, scorer {}",
                grouped_count(matching),
                counted(answer.len, unit),
                answer.scorer
            ),
        });
        Ok(Exit::Success)
    }
}

/// The columns before the text of a passage, and its most lines.
const INDENT: usize = 8;
const LINES: usize = 3;

/// Writes a passage: its score, its text around the first match, and what each word adds.
fn write(answer: &SearchAnswer, found: &Passage, output: &mut Output) -> Result<(), Failure> {
    let (bold, quiet) = (style::HEADER, style::QUIET);
    output.line(format_args!(
        "{bold}{}{bold:#}  {} {} ({}), {} tokens",
        score(found.score),
        answer.shape.unit(),
        found.index,
        excerpt(&found.role, 24),
        grouped(found.tokens)
    ))?;
    let indent = " ".repeat(INDENT);
    let text = passage(&found.content, &answer.matched_words, columns() - INDENT);
    for line in wrap(&format!("{indent}{text}"), columns(), INDENT) {
        output.line(line)?;
    }
    let added: Vec<String> = added(&found.part)
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

/// Returns the name of a part: `keys`, `keys (2 items before)`.
fn part_name(name: &str) -> String {
    match term(name) {
        Some((word, "")) => word.to_owned(),
        Some((word, place)) => format!("{word} ({})", place.trim_start_matches(", ")),
        None => name.to_owned(),
    }
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
