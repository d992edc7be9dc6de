//! Numbers in sentences.

/// Returns a number with its digits in groups of three: `-1,234,567`.
pub fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::from(if number < 0 { "-" } else { "" });
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a number of tokens: `1 token`, `1,234 tokens`.
pub(crate) fn tokens(number: i64) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} token{s}", grouped(number))
}

/// Returns a count as [`grouped`] does.
pub fn grouped_count(count: usize) -> String {
    grouped(i64::try_from(count).unwrap_or(i64::MAX))
}
