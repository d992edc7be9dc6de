//! A shortened text as lines of the original, so that a page holds no text twice.

use serde::Serialize;

/// A run of lines of a shortened text.
#[derive(Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum Lines {
    /// The first line and the number of lines that are copied from the original.
    Copied(usize, usize),
    /// A line of its own.
    Own(String),
}

/// Returns a shortened text as lines of the original and lines of its own.
///
/// Each line is matched with the next equal line of the original after the previous match. A blank
/// line matches only the line that follows directly: others are equal by chance.
pub(super) fn lines_of(shortened: &str, original: &str) -> Vec<Lines> {
    let original: Vec<&str> = original.split('\n').collect();
    let mut runs: Vec<Lines> = Vec::new();
    let mut next = 0;
    for line in shortened.split('\n') {
        let mut rest = original[next..].iter();
        let skipped = match line.trim() {
            "" => rest.next().filter(|found| **found == line).map(|_| 0),
            _ => rest.position(|found| *found == line),
        };
        match (skipped, runs.last_mut()) {
            (Some(0), Some(Lines::Copied(_, count))) => *count += 1,
            (Some(skipped), _) => runs.push(Lines::Copied(next + skipped, 1)),
            (None, _) => runs.push(Lines::Own(line.to_owned())),
        }
        next += skipped.map_or(0, |skipped| skipped + 1);
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(runs: &[Lines], original: &str) -> String {
        let original: Vec<&str> = original.split('\n').collect();
        let lines = runs.iter().flat_map(|run| match run {
            Lines::Copied(first, count) => original[*first..first + count].to_vec(),
            Lines::Own(line) => vec![line.as_str()],
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn lines_of_the_original_are_copied_and_other_lines_are_written() {
        let original = "one\ntwo\n\nthree\nfour\n\nfive";
        let shortened = "one\ntwo\n[3 lines omitted]\n\nfive";
        let runs = lines_of(shortened, original);
        let own = |line: &str| Lines::Own(line.to_owned());
        let expected = [
            Lines::Copied(0, 2),
            own("[3 lines omitted]"),
            Lines::Copied(2, 1),
            Lines::Copied(6, 1),
        ];
        assert_eq!(runs, expected);
        assert_eq!(text(&runs, original), shortened);
    }

    #[test]
    fn any_text_can_be_restored() {
        let texts = [
            "",
            "\n",
            "a",
            "a\nb",
            "b\na",
            "a\n\nb\n",
            "\n\na",
            "x\r\ny",
            "é\na\nb\na",
        ];
        for original in texts {
            for shortened in texts {
                let runs = lines_of(shortened, original);
                assert_eq!(
                    text(&runs, original),
                    shortened,
                    "{shortened:?} of {original:?}"
                );
            }
        }
    }
}
