//! "Did you mean": the nearest of a list of names.

/// The name of `known` that is nearest to `name`, if it is near enough to be meant: a third of its
/// letters may be wrong, a swap of neighbours counting once, or it is the only one that begins so.
pub(super) fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let name: Vec<char> = folded(name);
    let distances = known.iter().map(|known| {
        let letters = folded(known);
        (distance(&name, &letters), letters.len(), *known)
    });
    let near = distances
        .filter(|(distance, length, _)| distance * 3 <= (*length).max(3))
        .min_by_key(|(distance, _, _)| *distance)
        .map(|(_, _, known)| known);
    near.or_else(|| {
        let begins = |known: &&&str| name.len() >= 3 && folded(known).starts_with(&name);
        let mut longer = known.iter().filter(begins);
        longer.next().filter(|_| longer.next().is_none()).copied()
    })
}

/// Lower case without separators: `bucketSize` is as good as `bucket_size`.
fn folded(name: &str) -> Vec<char> {
    let letters = name.chars().take(64).filter(|c| !matches!(c, '_' | '-'));
    letters.flat_map(char::to_lowercase).collect()
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_finds_its_name_and_a_stranger_finds_none() {
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
            assert_eq!(nearest(name, &known), expected, "{name}");
        }
    }
}
