//! "Did you mean": the nearest of a list of names.

use strsim::osa_distance;

/// Returns the name of `known` that `name` was probably meant to be.
///
/// Case, `_` and `-` do not count. The nearest name by optimal string alignment distance
/// (insertions, deletions, replacements and swaps of neighbors) is returned if at most a third
/// of its letters differ; ties go to the first in the alphabet. Otherwise the only name that
/// starts with `name` is returned, if `name` has at least three letters.
///
/// ```
/// use cupel::config::nearest_name;
///
/// let known = ["recency", "bucket_size", "max"];
/// assert_eq!(nearest_name("rceency", known), Some("recency"));
/// assert_eq!(nearest_name("bucketSize", known), Some("bucket_size"));
/// assert_eq!(nearest_name("min", known), None);
/// ```
pub fn nearest_name<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let name = folded(name);
    let known: Vec<(String, &str)> = known.into_iter().map(|k| (folded(k), k)).collect();
    let distances = known.iter().map(|(letters, known)| {
        (
            osa_distance(&name, letters),
            letters.chars().count(),
            *known,
        )
    });
    let nearest = distances
        .filter(|(distance, length, _)| distance * 3 <= (*length).max(3))
        .min_by_key(|(distance, _, known)| (*distance, *known))
        .map(|(_, _, known)| known);
    nearest.or_else(|| {
        let mut longer = known
            .iter()
            .filter(|(letters, _)| name.len() >= 3 && letters.starts_with(&name));
        let only = longer.next().filter(|_| longer.next().is_none());
        only.map(|(_, known)| *known)
    })
}

/// What documents and commands no longer have: what it was, its name, and what to use instead.
const REMOVED: [(&str, &str, &str); 4] = [
    (
        "preset",
        "session",
        "use \"agent\", which keeps the prefix of a growing chat without a state",
    ),
    ("key", "step", USE_REPLAY),
    ("key", "shorten_to", USE_REPLAY),
    ("key", "drop_to", USE_REPLAY),
];
const USE_REPLAY: &str = "use replay, which cuts rarely, as the preset \"agent\" does";

/// Returns what to use instead of a name that was removed; `what` it was is a `preset` or a `key`.
///
/// ```
/// use cupel::config::{preset, removed};
///
/// let instead = removed("preset", "session").unwrap();
/// let error = preset("session").unwrap_err().to_string();
/// assert_eq!(error, format!("the preset \"session\" was removed; {instead}"));
/// ```
pub fn removed(what: &str, name: &str) -> Option<&'static str> {
    let mut removed = REMOVED.iter();
    let (.., instead) = removed.find(|(known, removed, _)| (*known, *removed) == (what, name))?;
    Some(instead)
}

/// Lowercase letters without separators. The limit bounds the cost for very long input.
fn folded(name: &str) -> String {
    let letters = name.chars().take(64).filter(|c| !matches!(c, '_' | '-'));
    letters.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::nearest_name;

    #[test]
    fn a_typo_finds_its_name_and_an_unrelated_word_finds_none() {
        let known = ["recency", "reflexive", "bucket_size", "u-shaped", "max"];
        for (name, expected) in [
            ("recencyy", Some("recency")),
            ("rceency", Some("recency")),
            ("Reflexiv", Some("reflexive")),
            ("bucketSize", Some("bucket_size")),
            ("u_shaped", Some("u-shaped")),
            ("mix", Some("max")),
            ("buc", Some("bucket_size")),
            ("re", None),
            ("min", None),
            ("zzz", None),
            ("", None),
        ] {
            assert_eq!(nearest_name(name, known), expected, "{name}");
        }
    }
}
